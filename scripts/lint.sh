#!/usr/bin/env bash
# clang-tidy 14 over the rooms' sources. Usage: scripts/lint.sh [REGEX below src/], e.g. 'plan/.*'
set -euo pipefail
cd "$(dirname "$0")/.."
command -v run-clang-tidy-14 >/dev/null || { echo "clang-tidy 14 not found" >&2; exit 2; }
# Only for its compile commands: GCC's precompiled headers mean nothing to clang.
cmake --preset lint --log-level=WARNING >/dev/null
run-clang-tidy-14 -quiet -p build-lint -j "$(nproc)" -extra-arg=-Wno-unknown-warning-option \
  -extra-arg=-Wno-unused-command-line-argument "$PWD/src/${1:-.*}\.cc\$" |
  sed '/^clang-tidy-14 /d'
