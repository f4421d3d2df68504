#!/bin/bash
# Whole kernels on a card against the emulator (docs/hardware-conformance.md).
#   bench/hardware/conformance.sh build PROGRAM    for both: the card's code and PTX, a shared runtime
#   PROGRAM DIR                                    on the card
#   bench/hardware/conformance.sh emulate PROGRAM DIR      here
#   bench/hardware/conformance.sh compare CARD_DIR EMULATED_DIR
# Status 1: an exact or tensor output differs in a bit, or an approximate one by more than its bound.
set -euo pipefail
root=$(cd "$(dirname "$0")/../.." && pwd)
case "${1:-}" in
build)
  nvcc -std=c++20 -O2 -cudart shared -DHEAD_DIM=64 -DHEAD_CAUSAL=true -I "$root/include" \
    -gencode 'arch=compute_90a,code=[compute_90a,sm_90a]' -o "$2" "$root/bench/hardware/conformance.cu" ;;
emulate)
  mkdir -p "$3"
  "${PTXBENCH:-$root/build/bin/ptxbench}" emulate --tensor hw -- "$2" "$3" ;;
compare)
  python3 - "$2" "$3" <<'PYTHON'
import math, struct, sys
from pathlib import Path
card, emulated = Path(sys.argv[1]), Path(sys.argv[2])
# Twice the ISA's bound: card and emulator each keep it. Relative to the result, and absolute.
BOUNDS = {"ex2": (2**-21, 2**-148), "lg2": (2**-21, 2**-21), "rcp": (2**-22, 2**-148), "rsqrt": (2**-21, 0),
          "sqrt": (2**-21, 2**-148), "sin": (0, 2**-19), "cos": (0, 2**-19), "tanh": (2**-9, 0)}
ATTENTION = (2**-6, 2**-6)                  # a few steps of bf16
failed = 0
def floats(path):
    data = path.read_bytes()
    return struct.unpack(f"<{len(data) // 4}f", data)
names = sorted(p.name for p in card.iterdir() if p.suffix in (".exact", ".tensor", ".approx", ".attention"))
if not names or names != sorted(p.name for p in emulated.iterdir()):
    sys.exit("the two folders hold different outputs")
for name in names:
    stem, kind = name.rsplit(".", 1)
    a, b = (card / name).read_bytes(), (emulated / name).read_bytes()
    if kind in ("exact", "tensor"):
        equal = a == b and len(a) > 0
        bad = 0 if equal else sum(x != y for x, y in zip(a, b)) + abs(len(a) - len(b))
        print(f"{name:34} {len(a):8} bytes  {'bit-equal' if equal else f'{bad} bytes differ'}")
        failed |= not equal
        continue
    x, y = floats(card / name), floats(emulated / name)
    relative, absolute = BOUNDS[stem] if kind == "approx" else ATTENTION
    differ = outside = 0
    worst = 0.0
    for p, q in zip(x, y):
        if struct.pack("<f", p) == struct.pack("<f", q):
            continue
        differ += 1
        if not (math.isfinite(p) and math.isfinite(q)):
            outside += 1
            continue
        d = abs(p - q)
        ulp = 2.0 ** (max(math.frexp(p)[1], -125) - 24)
        worst = max(worst, d / ulp if relative else d)
        outside += d > max(relative * abs(p), absolute)
    unit = "f32 ulp" if relative else "absolute"
    print(f"{name:34} {len(x):8} floats {differ} differ, at most {worst:.3g} {unit}; {outside} beyond the bound")
    failed |= outside > 0 or len(x) != len(y)
sys.exit(1 if failed else 0)
PYTHON
  ;;
*) sed -n 2,7p "$0"; exit 2 ;;
esac
