#!/bin/bash
# Everything the GPU path claims, on a card, from a folder that package_gpu.sh made: labels of all
# example candidates against the emulator's, timing against itself and against an independent program,
# speed-ups of the project's kernels at published sizes, instructions in hardware counters, trouble.
#   eval_all.sh [candidates] [ratio] [kernels] [counters] [trouble]       all without arguments
# Prints tables for docs/hardware-results.md; exit 0 only if all is as it must be.
cd "$(dirname "$0")" || exit 2
here=$PWD out=${OUT:-$PWD/out}
mkdir -p "$out"
chmod +x bin/*
export LD_LIBRARY_PATH=$here/lib:${LD_LIBRARY_PATH:-} PTXBENCH_BUILD_DIR=$here PTXBENCH_SOURCE_DIR=$here
: "${PTXBENCH_CUBLASLT:=$(find /usr/local/cuda*/ /opt -name libcublasLt.so.13 2>/dev/null | head -1)}"
# cuDNN comes with PyTorch's wheels or lies where the loader looks; it needs the CUDA runtime and NVRTC.
wheels=$(python3 -c 'import nvidia; print(list(nvidia.__path__)[0])' 2>/dev/null)
first() { find ${wheels:+"$wheels"} /usr/local/cuda*/ /opt -name "$1" 2>/dev/null | head -1; }
: "${PTXBENCH_CUDNN:=$(first libcudnn.so.9)}"
CUDNN_FRONTEND_CUDART_LIB_NAME=$(first libcudart.so.13)
export PTXBENCH_CUBLASLT PTXBENCH_CUDNN CUDNN_FRONTEND_CUDART_LIB_NAME
for library in "$PTXBENCH_CUBLASLT" "$PTXBENCH_CUDNN" "$CUDNN_FRONTEND_CUDART_LIB_NAME" "$(first libnvrtc.so.13)"; do
  [ -n "$library" ] && LD_LIBRARY_PATH=$LD_LIBRARY_PATH:$(dirname "$library")
done
export LD_LIBRARY_PATH
bad=0
stages=${*:-candidates ratio kernels counters trouble}
date -u +%F
nvidia-smi --query-gpu=name,driver_version,vbios_version --format=csv,noheader
evaluate() {  # evaluate PLAN ARGUMENTS...: the verdict goes to $out/PLAN.json
  timeout 90 bin/ptxbench eval --device cuda --tasks tasks --quiet --plan "plans/$1.plan" \
    --json "$out/$1.json" "${@:2}" >"$out/$1.txt" 2>&1
}

case $stages in *candidates*)
echo "== candidates at the smoke size: card and emulator"
# Three at a time: these sizes are not about time. Alone and last the one that occupies the card.
for plan in plans/*.smoke.plan; do
  name=$(basename "$plan" .plan)
  [ "$name" = wrong_tx_count.cu.smoke ] && continue
  while [ "$(jobs -rp | wc -l)" -ge 3 ]; do sleep 0.05; done
  evaluate "$name" --task gemm_n7168_k5120 --workload smoke --launches 2 &
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

case $stages in *kernels*)
echo "== kernels at published sizes against the libraries"
# plans.txt: plan, task, sizes, launches. The most telling first; none begins after so many seconds.
last_start=${EVAL_SECONDS:-370}
printf '%-34s %5s %8s %8s %24s %5s %17s %7s %7s %3s\n' candidate level ms library 'speed-up [95 %]' light 'end to end ms' verified sites s
while read -r _ plan task axes launches; do
  if [ $SECONDS -gt "$last_start" ]; then echo "$plan: not run, out of time" && bad=1 && continue; fi
  evaluate "$plan" --task "$task" --axes "$axes" --launches "$launches"
  python3 - "$out/$plan" <<'PY' || bad=1
import json, sys
name = sys.argv[1].split("/")[-1]
try:
    v = json.load(open(sys.argv[1] + ".json"))
except Exception:
    print(f"{name:34} NO VERDICT: {open(sys.argv[1] + '.txt').read().strip().splitlines()[-1:]}")
    sys.exit(1)
p = v["performance"]
if not p:
    print(f"{name:34} {v['level']:5} {v['reason']}: {v['message'][:150]}")
    sys.exit(not name.startswith("naive_simt"))
ms = lambda x: "      --" if x is None else f"{x:8.4f}"
interval = "--" if p["speedup"] is None else "{:.4f} [{:.4f}, {:.4f}]".format(p["speedup"], *p["speedup_interval"])
# Instructions of required families that can be reached in the machine code that was loaded.
sites = [e["machine_sites"] for e in v["evidence"]["families"].values() if e["required"]]
print(f"{name:34} {v['level']:5} {ms(p['candidate_ms'])} {ms(p['baseline_ms'])} {interval:>24} {p['speed_of_light']:5.2f} "
      f"{ms(p['candidate_end_to_end_ms'])} {ms(p['baseline_end_to_end_ms'])} {p['verified']:3}/{p['launches']:<3} "
      f"{'+'.join(str(n) for n in sites):>7} {v['total_ms'] / 1000:3.0f}  {(p['baseline'] or '')[:28]}")
for n in v["notes"]:
    if n.startswith(("no baseline", "the machine code")):
        print("    ", n[:200])
sys.exit(p["verified"] != p["launches"] or not sites or not all(sites))
PY
done < <(awk '{key = 5} /d128.*S4096/ {key = 1} /gemm_bf16/ {key = 2} /^fp8_gemm/ {key = 3} /^fp8_mha/ {key = 4} {print key, $0}' plans.txt | sort -s -k1,1n)
;; esac

case $stages in *counters*)
echo "== warp instructions of the tensor cores: hardware counter against the count by instrumentation"
ncu=$(command -v ncu || find /opt/nvidia -name ncu -type f 2>/dev/null | head -1)
counter=sm__inst_executed_pipe_tensor_op_gmma.sum
while read -r plan task kernel; do
  evaluate "$plan" --task "$task" --workload smoke --launches 1
  timeout 60 "$ncu" --target-processes all --kernel-name-base function -k "$kernel" --launch-count 1 --csv --metrics $counter \
    bin/ptxbench eval --device cuda --tasks tasks --quiet --plan "plans/$plan.plan" --task "$task" --workload smoke --launches 1 \
    >"$out/$plan.ncu" 2>&1
  python3 - "$out/$plan" $counter <<'PY' || bad=1
import csv, json, sys
counted = json.load(open(sys.argv[1] + ".json"))["evidence"]["families"]["wgmma.mma_async"]["warps"]
rows = [r for r in csv.reader(open(sys.argv[1] + ".ncu")) if sys.argv[2] in r]
measured = int(rows[0][-1].replace(",", "")) if rows else None
print(f"{sys.argv[1].split('/')[-1]:28} counter {measured}, instrumented {counted}: {'equal' if measured == counted else 'DIFFERENT' if rows else 'no counter read'}")
sys.exit(measured != counted)
PY
done <<'END'
gemm_bf16.md.smoke gemm_n7168_k5120 gemm
mha_with_lse_d128.counters mha_with_lse_d128 attention_forward_kernel
mha_bwd_d128.counters mha_bwd_d128 attention_backward_kernel
fp8_gemm_nt_1d2d.counters fp8_gemm_nt_1d2d_n4096_k7168 fp8_gemm_kernel
END
;; esac

case $stages in *trouble*)
echo "== trouble"
python3 eval_trouble.py bin/ptxbench plans tasks "$out" || bad=1
;; esac
case $stages in *ratio*)
echo "== what is equal must be timed equal (4 groups, 48 pairs)"
bin/gpu_ratio same plans/gemm_bf16.md.M8192.plan || bad=1
bin/gpu_ratio same plans/gemm_bf16.md.M4096.plan || bad=1
bin/gpu_ratio library 8192 7168 5120 bin/cublaslt_alone || bad=1
bin/gpu_ratio library 4096 4096 4096 bin/cublaslt_alone || bad=1
;; esac

[ $bad -eq 0 ] && echo "ALL AS IT MUST BE" || echo "NOT ALL AS IT MUST BE"
exit $bad
