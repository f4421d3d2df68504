#!/usr/bin/env bash
# Proves the two commands on a machine that has nothing: a bare Debian 12 in a folder, a clean clone of
# the committed state in it, no CUDA toolkit. Needs root, debootstrap and some 4 GB.
#
#   scripts/chroot_test.sh FOLDER [make targets; default: demo]
#
# FOLDER is made and removed again; KEEP=1 leaves it, and one that exists (kept from before) is used
# again. The package mirror, pip's settings and certificates are the host's.
set -euo pipefail
repo=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)
[ $# -ge 1 ] || { sed -n '2,9s/^# \{0,1\}//p' "$0"; exit 2; }
[ "$(id -u)" -eq 0 ] || { echo "must be root" >&2; exit 2; }
tree=$(realpath -m "$1")
shift
targets=${*:-demo}

say() { printf '\n== %s (%ss)\n' "$*" "$SECONDS"; }

# The first Debian mirror in the host's configuration, old or new format.
mirror() {
  { sed -n 's/^deb \(\[[^]]*\] \)\?\([^ ]*\) bookworm .*/\2/p' /etc/apt/sources.list
    sed -n 's/^URIs: *\([^ ]*\).*/\1/p' /etc/apt/sources.list.d/debian.sources
  } 2>/dev/null | head -n 1
}

make_tree() {
  command -v debootstrap >/dev/null || apt-get -qq install -y debootstrap
  debootstrap --variant=minbase bookworm "$tree" "$(mirror)" >"$tree.log" 2>&1 ||
    { tail "$tree.log"; exit 2; }
  rm -f "$tree.log"
  # The host's apt, without hooks that call programs which are not here.
  rm -f "$tree"/etc/apt/sources.list
  for file in /etc/apt/sources.list /etc/apt/sources.list.d/debian.sources /etc/apt/auth.conf; do
    [ -f "$file" ] && cp "$file" "$tree$file"
  done
  grep -L -- '-Invoke' /etc/apt/apt.conf.d/* | xargs -I{} cp {} "$tree/etc/apt/apt.conf.d/"
}

host_settings() {
  local file
  for file in /etc/resolv.conf /etc/hosts /etc/pip.conf; do
    [ -f "$file" ] && cp -L "$file" "$tree$file"
  done
  cp -L /etc/ssl/certs/ca-certificates.crt "$tree/root/host-ca.crt"
  env | grep -iE '^(PIP_|http_proxy|https_proxy|no_proxy)' |
    grep -vE '^PIP_(CERT|FIND_LINKS)=' | sed -E "s/'/'\\\\''/g; s/^([^=]*)=(.*)/export \1='\2'/" \
    >"$tree/root/environment" || true
  echo "export PIP_CERT=/root/host-ca.crt" >>"$tree/root/environment"
}

# A mount namespace of its own with the folder as its root (not a plain chroot, in which no sandbox can
# be made); it goes away with the last process.
inside() {
  TREE=$tree unshare --mount --pid --fork --kill-child --propagation private bash -c '
    set -e
    mount --bind "$TREE" "$TREE"
    cd "$TREE"
    mount -t proc proc proc
    mount --rbind /dev dev
    mount --rbind /sys sys  # control groups: the sandbox limits processes with them when it is root
    mount -t tmpfs tmpfs tmp
    mkdir -p old
    pivot_root . old
    umount -l /old
    exec env -i HOME=/root TERM=dumb LANG=C.UTF-8 PATH=/usr/sbin:/usr/bin:/sbin:/bin \
      bash -c "source /root/environment; $1"' bash "$1"
}

[ -n "${KEEP:-}" ] || trap 'rm -rf --one-file-system "$tree"' EXIT
if [ ! -x "$tree/bin/bash" ]; then
  say "bare Debian 12 in $tree"
  make_tree
fi
host_settings
say "clean clone of $(git -C "$repo" log -1 --format='%h %s')"
rm -rf "$tree/root/ptxbench"
git clone --quiet --no-hardlinks "$repo" "$tree/root/ptxbench"
say "what the user installs first: make"
inside 'apt-get -qq update && apt-get -qq install -y make >/root/make.log 2>&1'
inside 'if command -v nvcc; then echo "an nvcc is here already"; exit 2; fi'
for target in $targets; do
  say "make $target"
  inside "cd /root/ptxbench && make $target"
done
say "done"
