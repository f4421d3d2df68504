#!/bin/bash
# mutate.sh [COUNT] [SEED]: COUNT (default 1000) random mutations each of manifests, PTX programs, plans, and
# traces with solutions, and a hundredth of that of CUDA candidates, which have to be compiled
# (tests/bench/mutation_test.cc). Prints how they ended. Exit 1: a crash, an unknown error, or a pass that did
# not repeat.
set -euo pipefail
cd "$(dirname "$0")/.."
count=${1:-1000} seed=${2:-2}
[[ $count =~ ^[1-9][0-9]*$ && $seed =~ ^[0-9]+$ ]] || { echo "mutate.sh: COUNT and SEED are numbers" >&2; exit 2; }
ninja -C build --quiet test_bench
export PTXBENCH_MUTATION_SEED=$seed
PTXBENCH_MUTATIONS=$count build/bin/test_bench --gtest_brief=1 --gtest_filter='Mutation.*-*.CudaCandidates'
PTXBENCH_MUTATIONS=$(((count + 99) / 100)) build/bin/test_bench --gtest_brief=1 --gtest_filter='*.CudaCandidates'
