#!/bin/bash
# Runs tests of verdicts with other input seeds than the fixed one, and names what fails: expectations
# that lie near a bound. usage: scripts/try_seeds.sh FIRST LAST [FILTER of test_cli]
set -uo pipefail
cd "$(dirname "$0")/.." || exit 2
[ $# -ge 2 ] || { echo "usage: scripts/try_seeds.sh FIRST LAST [FILTER]" >&2; exit 2; }
filter=${3:-*Kernels.*:*KernelFaults.*:Fp8Gemm.*:UserTask.*:*Examples.OneThread*}
failed=0
for seed in $(seq "$1" "$2"); do
  out=$(PTXBENCH_TEST_SEED=$seed "${BUILD:-build}/bin/test_cli" --gtest_filter="$filter" --gtest_brief=1 2>&1) || failed=1
  case $out in *"[==========]"*) ;; *) echo "seed $seed: nothing ran" && failed=1 ;; esac
  echo "seed $seed: $(grep -c '^\[  FAILED  \]' <<<"$out") lines of failures"
  grep '^\[  FAILED  \]' <<<"$out"
done
exit $failed
