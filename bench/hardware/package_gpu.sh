#!/bin/bash
# Lays out a folder that a GPU machine without this project's packages can run: programs with their
# libraries beside them, tasks, and the launch plans of candidates recorded here.
#   bench/hardware/package_gpu.sh DIR [BUILD]     then, there: bash DIR/eval_all.sh
set -euo pipefail
root=$(cd "$(dirname "$0")/../.." && pwd)
dir=${1:?usage: package_gpu.sh DIR [BUILD]} build=${2:-$root/build}
mkdir -p "$dir/bin" "$dir/lib" "$dir/plans" "$dir/tasks"
for program in ptxbench ptxbench-gpu gpu_ratio cublaslt_alone; do
  [ -x "$build/bin/$program" ] || continue
  cp "$build/bin/$program" "$dir/bin/"
  strip "$dir/bin/$program"
  ldd "$build/bin/$program" | awk '$3 ~ /^\// && $1 !~ /^(libc|libm|libdl|libpthread|libstdc|libgcc_s|ld-linux)/ {print $3}' |
    xargs -I{} cp -L {} "$dir/lib/"
done
cp -r "$root/tasks/gemm_n7168_k5120" "$root/tasks/gemm_n4096_k4096" "$dir/tasks/"
cp "$root/bench/hardware/eval_all.sh" "$root/examples/candidates/expected.json" "$dir/"
record() {  # record FILE NAME TASK SIZE...
  "$build/bin/ptxbench" record "$1" --task "$3" "${@:4}" -o "$dir/plans/$2.plan" --quiet \
    >"$dir/plans/$2.log" 2>&1 || echo "no plan of $2: $(head -1 "$dir/plans/$2.log")"
}
task=gemm_n7168_k5120
for file in "$root"/examples/candidates/*.md "$root"/examples/candidates/*.cu \
            "$root"/examples/candidates/*.ptx; do
  record "$file" "$(basename "$file").smoke" $task --workload smoke
done
record "$root/kernels/sm_90a/gemm_bf16.cu" gemm_bf16.cu.smoke $task --workload smoke
record "$root/examples/candidates/gemm_bf16.md" gemm_bf16.md.M8192 $task --axes M=8192
record "$root/examples/candidates/gemm_bf16.md" gemm_bf16.md.M972 $task --axes M=972
record "$root/examples/candidates/gemm_bf16.md" gemm_bf16.md.M4096 gemm_n4096_k4096 --axes M=4096
record "$root/examples/candidates/gemm_ptx.ptx" gemm_ptx.ptx.M4096 gemm_n4096_k4096 --axes M=4096
record "$root/examples/candidates/naive_simt.cu" naive_simt.cu.M4096 gemm_n4096_k4096 --axes M=4096
rm -f "$dir"/plans/*.log
du -sh "$dir"
