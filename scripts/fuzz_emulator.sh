#!/bin/bash
# Mutated kernels on the emulator, in processes of their own (docs/fuzzing.md).
#   scripts/fuzz_emulator.sh [MUTANTS of a process] [PROCESSES] [FIRST SEED]
# PTXBENCH_TEST_EMU names the test program where it is not build/bin/test_emu.
set -uo pipefail
root=$(cd "$(dirname "$0")/.." && pwd)
program=${PTXBENCH_TEST_EMU:-$root/build/bin/test_emu}
mutants=${1:-5000} processes=${2:-$(nproc)} first=${3:-100}
logs=$(mktemp -d)
trap 'rm -rf "$logs"' EXIT
for ((i = 0; i < processes; i++)); do
  seed=$((first + i))
  (PTXBENCH_HOSTILE=$mutants PTXBENCH_HOSTILE_SEED=$seed timeout 3600 "$program" \
    --gtest_filter=Hostile.Mutants >"$logs/$seed" 2>&1
   echo "seed $seed: status $?" >>"$logs/$seed") &
done
wait
failed=0
for log in "$logs"/*; do
  grep -h "mutants:" "$log"
  if ! grep -q "status 0$" "$log"; then failed=1; grep -h "hostile mutant\|status" "$log"; grep -m5 -A6 "Failure" "$log"; fi
done
exit $failed
