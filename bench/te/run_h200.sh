#!/usr/bin/env bash
# Tests and measures the transformer engine on a machine with a Hopper GPU.
#   bench/te/run_h200.sh pack BUILD DIR     collects test_te, te_bench and what they need from a build folder
#   bench/te/run_h200.sh run DIR [full]     needs the GPU and a CUDA 13 runtime; no compiler. full: also the
#                                           plans that were not chosen, and PyTorch where it is installed: values and times
# DIR may be packed on one machine and run on another. Exit 0 only if every test passes and the bench ran.
set -euo pipefail
here=$(cd "$(dirname "$0")" && pwd)
usage() { sed -n '2,6p' "$0" >&2; exit 2; }
[ $# -ge 2 ] || usage

if [ "$1" = pack ]; then
  build=$2 dir=${3:?$(usage)}
  mkdir -p "$dir/lib"
  for program in "$build"/bin/test_te "$build"/bin/te_values "$build"/bin/te_bench*; do
    strip -o "$dir/$(basename "$program")" "$program"
    ldd "$program" | awk '/=> \//{print $3}' | grep -v 'libc\.so\|libm\.so\|libstdc++\|libgcc_s\|libcuda' | while read -r library; do
      cp -L "$library" "$dir/lib/"
    done
  done
  cp "$here/compare_torch.py" "$here/compare_values.py" "$0" "$dir/"
  exit 0
fi

[ "$1" = run ] || usage
cd "$2"
# A real runtime: the toolkit's, or the one that PyTorch brings.
cudart=$(find -L /usr/local/cuda/lib64 /usr/local/lib /usr/lib/python3* /opt /usr/lib/x86_64-linux-gnu \
  -name 'libcudart.so.13' -print -quit 2>/dev/null || true)
[ -n "$cudart" ] || { echo "no libcudart.so.13 on this machine" >&2; exit 2; }
export LD_LIBRARY_PATH=$(dirname "$cudart"):$PWD/lib
nvidia-smi --query-gpu=name,driver_version,clocks.sm,clocks.mem,temperature.gpu --format=csv,noheader
echo "runtime $cudart"
bad=0
chmod +x test_te te_values te_bench*
timeout 100 ./test_te --gtest_brief=1 || bad=1
variants=
[ "${3:-}" != full ] || variants=--variants
for program in ./te_bench*; do
  echo "== $program"
  timeout 60 "$program" --shape 8192x4096 $variants || bad=1
done
timeout 40 ./te_bench --rounds 9 --shape 16384x1024 --shape 2048x16384 --shape 8191x4100 --shape 1024x768 || bad=1
if [ "${3:-}" = full ] && python3 -c 'import torch' 2>/dev/null; then
  ./te_values values && timeout 100 python3 compare_values.py values || bad=1
  timeout 110 python3 compare_torch.py || bad=1
fi
exit $bad
