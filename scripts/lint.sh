#!/usr/bin/env bash
# clang-tidy 14 over every source that the build compiles. Usage: scripts/lint.sh [BUILD] [REGEX]
set -euo pipefail
cd "$(dirname "$0")/.."
build=${1:-build}
command -v run-clang-tidy-14 >/dev/null || { echo "clang-tidy 14 not found" >&2; exit 2; }
# GCC's precompiled header means nothing to clang, which then reads the text.
run-clang-tidy-14 -quiet -p "$build" -j "$(nproc)" \
  -extra-arg=-Wno-unknown-warning-option -extra-arg=-Wno-ignored-gch \
  "$PWD/src/${2:-.*}\.cc\$"
