#!/bin/bash
# Everything the GPU path claims, on a card, from a folder that package_gpu.sh made: labels of all
# example candidates against the emulator's, timing against itself and against an independent program,
# speed-ups at full size. Prints tables for docs/hardware-results.md; exit 0 only if all is as it must be.
cd "$(dirname "$0")" || exit 2
here=$PWD out=${OUT:-$PWD/out}
mkdir -p "$out"
chmod +x bin/*
export LD_LIBRARY_PATH=$here/lib:${LD_LIBRARY_PATH:-} PTXBENCH_BUILD_DIR=$here PTXBENCH_SOURCE_DIR=$here
: "${PTXBENCH_CUBLASLT:=$(find /usr/local/cuda*/ /opt -name libcublasLt.so.13 2>/dev/null | head -1)}"
export PTXBENCH_CUBLASLT
export LD_LIBRARY_PATH=$LD_LIBRARY_PATH:$(dirname "$PTXBENCH_CUBLASLT")
bad=0
stages=${*:-candidates ratio sizes}
date -u +%F
nvidia-smi --query-gpu=name,driver_version,vbios_version --format=csv,noheader
evaluate() {  # evaluate PLAN ARGUMENTS...: the verdict goes to $out/PLAN.json
  timeout 150 bin/ptxbench eval --device cuda --tasks tasks --quiet --plan "plans/$1.plan" \
    --json "$out/$1.json" "${@:2}" >"$out/$1.txt" 2>&1
}

case $stages in *candidates*)
echo "== candidates at the smoke size: card and emulator"
# Three at a time: these sizes are not about time. Alone and last the one that occupies the card.
for plan in plans/*.smoke.plan; do
  name=$(basename "$plan" .plan)
  [ "$name" = wrong_tx_count.cu.smoke ] && continue
  while [ "$(jobs -rp | wc -l)" -ge 3 ]; do sleep 0.05; done
  evaluate "$name" --task gemm_n7168_k5120 --workload smoke --groups 1 &
done
wait
evaluate wrong_tx_count.cu.smoke --task gemm_n7168_k5120 --workload smoke --timeout 4
python3 - "$out" expected.json <<'PY' || bad=1
import glob, json, os, re, sys
out, wanted = sys.argv[1], {c["file"]: c for c in json.load(open(sys.argv[2]))["candidates"]}
bad = 0
print(f"{'candidate':28} {'label on the card':26} {'emulator: level, reason':36} {'card: level, reason':30}")
for path in sorted(glob.glob(out + "/*.smoke.txt")):
    name = os.path.basename(path)[:-len(".smoke.txt")]
    try:
        v = json.load(open(path[:-4] + ".json"))
        v["label"]
    except Exception:
        print(f"{name:28} NO VERDICT: {open(path).read().strip().splitlines()[-1:]}")
        bad = 1
        continue
    notes = [n for n in v["notes"] if n.startswith("on the emulator: ")]
    level, reason, label = re.match(r"on the emulator: level (\d), ([\w-]+), ([\w ]+)", notes[0]).groups() if notes else ("-", "-", "-")
    # What the emulator calls latent may break on a card: it said so, and the card shows it.
    foretold = reason.startswith("latent-") and label == "Correct" and v["label"] != "Correct"
    same = label == v["label"] or foretold
    bad |= not same
    if name in wanted and wanted[name]["label"] != label and notes:
        print(f"{name}: the emulator's label {label} is not the expected one")
        bad = 1
    hidden = sorted({f["kind"] for f in v["findings"] if f["severity"] in ("latent", "repaired")})
    print(f"{name:28} {v['label']:26} {level + ', ' + reason:36} {str(v['level']) + ', ' + v['reason']:30}"
          f"{'' if same else '  LABELS DIFFER: emulator ' + label}{'  the latent hazard shows on this card' if foretold else ''}{'  hidden by silicon: ' + ', '.join(hidden) if hidden else ''}")
    for n in v["notes"]:
        if n.startswith("executed instructions differ"):
            print("   ", n)
            bad = 1
equal = sum(any(n.startswith("executed instructions of") for n in json.load(open(p))["notes"]) for p in glob.glob(out + "/*.smoke.json") if "notes" in json.load(open(p)))
print(f"instruction counts equal to the emulator's ledger in {equal} candidates, different in none" if not bad else f"equal counts: {equal}")
bad |= equal < 20
sys.exit(bad)
PY
;; esac

case $stages in *ratio*)
echo "== what is equal must be timed equal (4 groups, 48 pairs)"
bin/gpu_ratio same plans/gemm_bf16.md.M8192.plan || bad=1
bin/gpu_ratio same plans/gemm_bf16.md.M4096.plan || bad=1
bin/gpu_ratio library 8192 7168 5120 bin/cublaslt_alone || bad=1
bin/gpu_ratio library 4096 4096 4096 bin/cublaslt_alone || bad=1
;; esac

case $stages in *sizes*)
echo "== speed-up over cuBLASLt"
evaluate gemm_bf16.md.M8192 --task gemm_n7168_k5120 --axes M=8192
evaluate gemm_bf16.md.M972 --task gemm_n7168_k5120 --axes M=972
for plan in gemm_bf16.md gemm_ptx.ptx naive_simt.cu; do
  evaluate $plan.M4096 --task gemm_n4096_k4096 --axes M=4096
done
python3 - "$out" <<'PY' || bad=1
import glob, json, os, sys
bad = 0
print(f"{'candidate':24} {'level, reason':24} {'ms':>8} {'library':>8} {'speed-up [95 %]':>24} {'of light':>8} {'end to end ms':>20} {'verified':>9}")
for path in sorted(glob.glob(sys.argv[1] + "/*.M*.txt")):
    name = os.path.basename(path)[:-4]
    try:
        v = json.load(open(path[:-4] + ".json"))
        p = v["performance"]
        head = f"{name:24} {str(v['level']) + ', ' + v['reason']:24}"
    except Exception:
        print(f"{name:24} NO VERDICT: {open(path).read().strip().splitlines()[-1:]}")
        bad = 1
        continue
    if not p:
        print(head, v["message"])
        continue
    lo, hi = p["speedup_interval"]
    print(f"{head} {p['candidate_ms']:8.4f} {p['baseline_ms']:8.4f} {p['speedup']:8.4f} [{lo:.4f}, {hi:.4f}] "
          f"{p['speed_of_light']:7.2f} {p['candidate_end_to_end_ms']:9.4f} {p['baseline_end_to_end_ms']:9.4f} "
          f"{p['verified']:4}/{p['launches']}")
    print(f"    {p['baseline']}; floor {p['floor_ms']:.4f} ms; empty launch {p['empty_launch_ms']:.4f} ms; clocks {p['clocks']}; causes {p['causes']}")
sys.exit(bad)
PY
;; esac
[ $bad -eq 0 ] && echo "ALL AS IT MUST BE" || echo "NOT ALL AS IT MUST BE"
exit $bad
