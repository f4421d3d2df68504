#!/bin/bash
# Plants faults of synchronisation into every recorded kernel of kernels/ (hours on two cores).
# usage: scripts/mutants.sh [OPTIONS OF ptxbench_mutants], e.g. --markdown docs/mutants.md
# KERNELS="kernels/sm_90a/gemm_bf16.cu=gemm_n4096_k4096 ..." takes others; PLANS=FOLDER keeps plans.
set -euo pipefail
cd "$(dirname "$0")/.."
build=${BUILD:-build}
plans=${PLANS:-$(mktemp -d)}
mkdir -p "$plans"

task_of() {
  local name
  name=$(basename "$1" .cu)
  case $name in
    gemm_bf16*) echo gemm_n4096_k4096 ;;
    *) echo "${name%_deterministic}" ;;
  esac
}

if [ -z "${KERNELS:-}" ]; then
  for file in kernels/sm_*/*.cu; do
    task=$(task_of "$file")
    [ -d "tasks/$task" ] && KERNELS+=" $file=$task"
  done
fi
files=()
for pair in $KERNELS; do
  file=${pair%=*} task=${pair#*=}
  plan=$plans/$(basename "$(dirname "$file")")_$(basename "$file" .cu).plan
  [ -f "$plan" ] || "$build/bin/ptxbench" record "$file" --task "$task" -o "$plan" --quiet >/dev/null
  files+=("$plan")
done
exec "$build/bin/ptxbench_mutants" "${files[@]}" --reasons bench/mutants/reasons.json "$@"
