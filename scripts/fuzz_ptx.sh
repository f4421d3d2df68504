#!/bin/bash
# fuzz_ptx.sh [SECONDS]: builds the libFuzzer target of the PTX front end with clang and runs it, one
# process, for SECONDS (default 60). Seeds are tests/ptx/corpus; the corpus that grows, the log and
# whatever crashed lie in build/fuzz. Exit 1: a crash, a hang (30 s for one input) or more than 1 GiB.
set -euo pipefail
cd "$(dirname "$0")/.."
seconds=${1:-60}
[[ $seconds =~ ^[1-9][0-9]*$ ]] || { echo "fuzz_ptx.sh: '$seconds' is no number of seconds" >&2; exit 2; }
clang=$(command -v clang++-14 || command -v clang++) || { echo "fuzz_ptx.sh: clang++ is not installed (scripts/setup.sh)" >&2; exit 2; }
out=build/fuzz
mkdir -p "$out/corpus" "$out/seeds" "$out/crashes"
[ -f "$out/build.ninja" ] || cmake -S tests/fuzz -B "$out" -G Ninja -DCMAKE_CXX_COMPILER="$clang" >/dev/null
ninja -C "$out" --quiet ptx_fuzz

# The language's words as a dictionary, from the tables that the parser itself reads.
sed -nE 's/^PTX_(OP|TYPE|MOD|SREG)\([^,]+, *"([^"]+)".*/"\2"/p' src/ptx/*.def | sort -u >"$out/words.dict"
printf '"%s"\n' .reg .entry .func .param .global .shared .local .const .align .version .target .address_size \
  .visible .extern .weak .common .loc .file .branchtargets .calltargets .callprototype .pragma .section >>"$out/words.dict"
# Each function of the compiled corpus under its module's header, where small enough to mutate.
rm -f "$out"/seeds/*
for file in tests/ptx/corpus/*.ptx; do
  awk -v stem="$out/seeds/$(basename "$file" .ptx)" '
    /^\.(version|target|address_size)/ { head = head $0 "\n"; next }
    { text = text $0 "\n" }
    /^}/ { if (length(text) < 6000) { name = stem "_" ++n ".ptx"; printf "%s%s", head, text > name; close(name) } text = "" }
  ' "$file"
done
cp tests/fuzz/seeds/*.ptx "$out/seeds/"

"$out/ptx_fuzz" -max_total_time="$seconds" -timeout=30 -rss_limit_mb=1024 -malloc_limit_mb=512 -max_len=8192 \
  -dict="$out/words.dict" -artifact_prefix="$out/crashes/" -print_final_stats=1 -verbosity=1 \
  "$out/corpus" "$out/seeds" >"$out/log" 2>&1 ||
  { grep -aE "property violated|ERROR|SUMMARY|runtime error|Test unit" "$out/log" >&2; exit 1; }
executed=$(sed -nE 's/^stat::number_of_executed_units: *([0-9]+)/\1/p' "$out/log")
covered=$(grep -aoE 'cov: [0-9]+' "$out/log" | tail -1)
memory=$(sed -nE 's/^stat::peak_rss_mb: *([0-9]+)/\1/p' "$out/log")
[ "${executed:-0}" -gt 0 ] || { echo "fuzz_ptx.sh: nothing was executed; see $out/log" >&2; exit 1; }
echo "fuzz_ptx: $executed inputs in $seconds s, ${covered#cov: } edges covered, ${memory} MB at most, no finding"
