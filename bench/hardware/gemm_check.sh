#!/bin/sh
# Builds and runs the hardware check of the bf16 GEMM and of examples/candidates on a Hopper GPU.
#   bench/hardware/gemm_check.sh build DIR        needs nvcc and TVM_FFI (the root of the tvm_ffi package)
#   bench/hardware/gemm_check.sh run DIR          needs the GPU, a CUDA runtime and cuBLASLt; no compiler
# DIR may be built on one machine and run on another. Prints a log for docs/hardware-results.md; exit 0 only
# if every shape is right, the sanitizers are silent, and each faulty sibling fails in its own way.
set -u
here=$(cd "$(dirname "$0")" && pwd)
mode=${1:-} dir=${2:-}
[ -n "$mode" ] && [ -n "$dir" ] || { sed -n '2,5p' "$0" >&2; exit 2; }
bad=0
expect() {  # expect WANTED_RC COMMAND...
  wanted=$1; shift
  "$@"; got=$?
  [ $got -eq "$wanted" ] || { echo "UNEXPECTED rc $got, wanted $wanted: $*"; bad=1; }
}

if [ "$mode" = build ]; then
  root=$here/../..
  : "${TVM_FFI:?set TVM_FFI to the tvm_ffi package folder}"
  flags="-std=c++20 -O2 -gencode arch=compute_90a,code=sm_90a -lineinfo -I $root/include -I $TVM_FFI/include"
  mkdir -p "$dir/lib" && cp "$TVM_FFI/lib/libtvm_ffi.so" "$dir/lib/" && cp "$0" "$dir/" || exit 2
  cp "$root/tasks/gemm_published.csv" "$dir/" || exit 2
  nvcc $flags -cudart static -o "$dir/gemm_check" "$here/gemm_check.cu" -lcublasLt -ldl || exit 2
  awk '/^```cuda/{on=1;next} /^```/{on=0} on' "$root/examples/candidates/gemm_bf16.md" >"$dir/gemm_bf16_md.cu"
  for source in "$dir/gemm_bf16_md.cu" "$root/kernels/sm_90a/gemm_bf16.cu" "$root"/examples/candidates/*.cu; do
    name=$(basename "$source" .cu)
    [ "$name" = does_not_compile ] && continue
    nvcc $flags -cudart shared -shared -Xcompiler -fPIC -o "$dir/lib/$name.so" "$source" \
      -L "$TVM_FFI/lib" -ltvm_ffi || exit 2
  done
  exit 0
fi

cd "$dir" || exit 2
for library in libcublasLt.so.13 libcudart.so.13; do
  found=$(find /usr/local/cuda/lib64 /opt /usr/lib -name $library 2>/dev/null | head -1)
  [ -n "$found" ] && LD_LIBRARY_PATH=$(dirname "$found"):${LD_LIBRARY_PATH:-}
done
export LD_LIBRARY_PATH=$PWD/lib:$LD_LIBRARY_PATH
chmod +x gemm_check
date -u +%F
nvidia-smi --query-gpu=name,driver_version,vbios_version --format=csv,noheader

echo "== every published workload"
expect 0 ./gemm_check check gemm_published.csv >check.txt
tail -1 check.txt; grep -v '^ok' check.txt | head

echo "== smoke shapes, all variants"
for shape in "200 1024 832" "70 1024 832" "1000 128 832" "1000 256 832" "70 128 1344"; do
  expect 0 timeout 20 ./gemm_check one $shape
done
if command -v compute-sanitizer >/dev/null; then
  for tool in memcheck racecheck synccheck initcheck; do
    for shape in "200 1024 832" "1000 256 832"; do
      echo "== $tool $shape"
      expect 0 timeout 120 compute-sanitizer --error-exitcode 9 --tool $tool ./gemm_check one $shape >sanitizer.txt 2>&1
      tail -1 sanitizer.txt
    done
  done
else
  echo "no compute-sanitizer here"; bad=1
fi

echo "== candidates"
for shape in "200 1024 832" "70 1024 832" "8828 2048 5376"; do
  for good in gemm_bf16_md gemm_bf16 naive_simt; do expect 0 timeout 60 ./gemm_check candidate lib/$good.so $shape; done
  for wrong in early_read oob_store; do expect 1 timeout 60 ./gemm_check candidate lib/$wrong.so $shape; done
done

echo "== time (cold L2, interleaved, medians)"
expect 0 ./gemm_check time 8192 7168 5120 8192 8192 8192 4096 4096 4096 8828 2048 4096 2379 5376 21504 \
  972 7168 5120 70 7168 5120 70 2048 5376 8828 128 2048 901 256 7168

echo "== the hanging candidate, in its own process"
expect 124 timeout -k 2 8 ./gemm_check candidate lib/wrong_tx_count.so 200 1024 832
expect 0 timeout 20 ./gemm_check one 200 1024 832 chosen
[ $bad -eq 0 ] && echo "ALL AS EXPECTED"
exit $bad
