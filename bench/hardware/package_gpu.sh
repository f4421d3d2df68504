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
cp "$root/bench/hardware/eval_all.sh" "$root/bench/hardware/eval_trouble.py" \
  "$root/examples/candidates/expected.json" "$dir/"
: >"$dir/plans.txt"
record() {  # record FILE NAME TASK SIZE...
  cp -rn "$root/tasks/$3" "$dir/tasks/"
  "$build/bin/ptxbench" record "$1" --task "$3" "${@:4}" -o "$dir/plans/$2.plan" --quiet \
    >"$dir/plans/$2.log" 2>&1 || echo "no plan of $2: $(head -1 "$dir/plans/$2.log")"
}
full() {  # full FILE NAME TASK SIZES LAUNCHES: a plan whose speed-up is measured
  record "$1" "$2" "$3" --axes "$4"
  if [ -f "$dir/plans/$2.plan" ]; then echo "$2 $3 $4 $5" >>"$dir/plans.txt"; fi
}
task=gemm_n7168_k5120 examples=$root/examples/candidates kernels=$root/kernels/sm_90a
for file in "$examples"/*.md "$examples"/*.cu "$examples"/*.ptx; do
  record "$file" "$(basename "$file").smoke" $task --workload smoke
done
record "$kernels/gemm_bf16.cu" gemm_bf16.cu.smoke $task --workload smoke
full "$examples/gemm_bf16.md" gemm_bf16.md.M8192 $task M=8192 25
full "$examples/gemm_bf16.md" gemm_bf16.md.M972 $task M=972 25
for file in gemm_bf16.md gemm_ptx.ptx naive_simt.cu; do
  full "$examples/$file" "$file.M4096" gemm_n4096_k4096 M=4096 25
done
for mask in "" _causal; do
  for kind in mha_with_lse_d{64,96,128,256} mha_bwd_d{64,96,128}; do
    full "$kernels/$kind$mask.cu" "$kind$mask.S1024" "$kind$mask" S=1024 16
  done
  for kind in mha_with_lse_d128 mha_bwd_d128; do
    full "$kernels/$kind$mask.cu" "$kind$mask.S4096" "$kind$mask" S=4096 11
  done
  for kind in fp8_mha_with_lse_d{64,128}; do
    if [ -f "$kernels/$kind$mask.cu" ]; then
      full "$kernels/$kind$mask.cu" "$kind$mask.L4096" "$kind$mask" L=4096 11
    fi
  done
done
for recipe in 1d2d 1d1d; do
  file=$kernels/fp8_gemm_nt_$recipe.cu
  [ -f "$file" ] || continue
  full "$file" "fp8_gemm_nt_$recipe.n4096_k7168" "fp8_gemm_nt_${recipe}_n4096_k7168" m=4096 16
  full "$file" "fp8_gemm_nt_$recipe.n24576_k1536" "fp8_gemm_nt_${recipe}_n24576_k1536" m=4096 16
done
record "$kernels/mha_with_lse_d128.cu" mha_with_lse_d128.counters mha_with_lse_d128 --workload smoke
record "$kernels/mha_bwd_d128.cu" mha_bwd_d128.counters mha_bwd_d128 --workload smoke
record "$kernels/fp8_gemm_nt_1d2d.cu" fp8_gemm_nt_1d2d.counters fp8_gemm_nt_1d2d_n4096_k7168 --workload smoke
# A plan for another GPU.
other=$(mktemp -d)
printf '.version 8.6\n.target sm_100a\n.address_size 64\n.visible .entry nothing(.param .u64 c)\n{\n\tret;\n}\n' \
  >"$other/other.ptx"
echo '{"launches": [{"kernel": "nothing", "grid": [1], "block": [32], "arguments": [{"buffer": "C"}]}]}' \
  >"$other/other.launch.json"
record "$other/other.ptx" other_gpu $task --workload smoke --arch sm_100a
rm -r "$other"
rm -f "$dir"/plans/*.log
du -sh "$dir"
