#!/bin/bash
# Makes a candidate of each disease of slow_gemm.cu: bench/model/variants.sh DIR
set -euo pipefail
here=$(cd "$(dirname "$0")" && pwd)
dir=${1:?usage: variants.sh DIR}
mkdir -p "$dir"
for name in $(sed -n 's/^#define \([A-Z_]*\) [0-9].*/\1/p' "$here/slow_gemm.cu"); do
  file="$dir/gemm_$(tr A-Z a-z <<<"$name").cu"
  { echo "#define DISEASE $name"; cat "$here/slow_gemm.cu"; } >"$file"
  echo "$file"
done
