#!/usr/bin/env bash
# Checks (or with --fix, repairs) the formatting of all C++ and CUDA files with the pinned clang-format.
set -euo pipefail
cd "$(dirname "$0")/.."
tool=$(command -v clang-format-14 || command -v clang-format || true)
if [ -z "$tool" ] || ! "$tool" --version | grep -q 'version 14\.'; then
  echo "clang-format 14 not found (scripts/packages.txt)" >&2
  exit 2
fi
# Not formatted: recorded or generated data, tables laid out by hand, and candidates as models write them.
mapfile -t files < <(find src include kernels tests bench examples -type f \
  \( -name '*.h' -o -name '*.cc' -o -name '*.cu' -o -name '*.cuh' \) \
  -not -path 'tests/data/*' -not -path 'examples/candidates/*' -not -path 'examples/siblings/*' 2>/dev/null | sort)
if [ ${#files[@]} -lt 20 ]; then
  echo "found only ${#files[@]} files to check: wrong folder?" >&2
  exit 2
fi
if [ "${1:-}" = --fix ]; then
  "$tool" -i "${files[@]}"
else
  "$tool" --dry-run --Werror "${files[@]}"
  echo "${#files[@]} files are formatted"
fi
