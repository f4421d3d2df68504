#!/usr/bin/env bash
# Brings a Debian 12 machine to where `cmake --preset default` works. Every step first looks whether it is
# already done, so a second run takes well under a second. Usage: scripts/setup.sh [--lint]
#
#   packages   those of packages.txt that are missing (needs root)
#   .venv      the PyPI build inputs of requirements.txt
#   .venv/cuda a CUDA compiler, only where no nvcc is found (requirements-cuda.txt)
set -euo pipefail
here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
root=$(dirname "$here")
venv=$root/.venv
log=$root/.venv.log

say() { printf 'setup: %s\n' "$*" >&2; }
die() { say "$*"; exit 2; }

# Runs a noisy command quietly; shows the end of its output only if it fails.
quietly() {
  if ! "$@" >"$log" 2>&1; then
    tail -n 20 "$log" >&2
    die "failed: $*"
  fi
  rm -f "$log"
}

names() { sed -e 's/#.*//' -e '/^[[:space:]]*$/d' "$@"; }

install_packages() {
  local wanted missing=() name
  wanted=$(names "$@")
  for name in $wanted; do
    # "install ok installed" or, while it is on hold, "hold ok installed"
    dpkg-query -W -f '${Status}\n' "$name" 2>/dev/null | grep -q ' ok installed$' ||
      missing+=("$name")
  done
  [ ${#missing[@]} -eq 0 ] && return
  if [ "$(id -u)" -ne 0 ]; then
    die "these Debian packages are missing and installing needs root: ${missing[*]}"
  fi
  say "installing ${#missing[@]} Debian packages: ${missing[*]}"
  quietly apt-get -qq update
  quietly env DEBIAN_FRONTEND=noninteractive apt-get -qq install -y --no-install-recommends \
    "${missing[@]}"
}

# The toolchain's own search order (docs in README.md), without what this script makes itself.
found_nvcc() {
  local home
  for home in "${PTXBENCH_CUDA_HOME:-}" "${CUDA_HOME:-}"; do
    if [ -n "$home" ] && [ -x "$home/bin/nvcc" ]; then echo "$home/bin/nvcc"; return; fi
  done
  command -v nvcc 2>/dev/null && return
  if [ -x /usr/local/cuda/bin/nvcc ]; then echo /usr/local/cuda/bin/nvcc; fi
}

make_venv() {
  [ -x "$venv/bin/python" ] && return
  say "creating the virtual environment .venv"
  rm -rf "$venv"
  quietly /usr/bin/python3 -m venv "$venv"
}

# install_wheels NAME FILE [pip options]: once per content of FILE.
install_wheels() {
  local stamp=$venv/.installed-$1 file=$2
  shift 2
  cmp -s "$file" "$stamp" && return
  say "installing $(names "$file" | tr '\n' ' ')"
  quietly "$venv/bin/python" -m pip install --disable-pip-version-check --no-input "$@" -r "$file"
  cp "$file" "$stamp"
}

# The wheels bring one tree but not the names that the driver and the linker look for.
link_cuda_tree() {
  local tree
  tree=$(echo "$venv"/lib/python3*/site-packages/nvidia/cu13)
  [ -x "$tree/bin/nvcc" ] || die "no nvcc in $tree after installing the wheels"
  ln -sfn lib "$tree/lib64"
  ln -sfn libcudart.so.13 "$tree/lib/libcudart.so"
  ln -sfn "${tree#"$venv"/}" "$venv/cuda"
}

[ -r /etc/debian_version ] || say "this is not Debian; packages are not checked"
if [ -r /etc/debian_version ]; then
  lists=("$here/packages.txt")
  [ "${1:-}" = --lint ] && lists+=("$here/packages-lint.txt")
  install_packages "${lists[@]}"
fi
make_venv
install_wheels base "$here/requirements.txt"
nvcc=$(found_nvcc)
if [ -z "$nvcc" ] || ! "$nvcc" --version | grep -q 'release 13\.'; then
  install_wheels cuda "$here/requirements-cuda.txt" --no-deps
  [ -x "$venv/cuda/bin/nvcc" ] || link_cuda_tree
  # Candidates must link against libcudart.so.13, which the recording runtime stands in for.
  [ -z "$nvcc" ] || say "$nvcc is not CUDA 13: set PTXBENCH_CUDA_HOME=$venv/cuda"
fi
