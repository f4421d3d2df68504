#!/usr/bin/env python3
"""Writes tasks/mha_with_lse_d{D}[_causal]/ and tasks/mha_bwd_d{D}[_causal]/ from tasks/attention_published.csv.

The folders are checked in; run this again after changing that file (or this script) and commit what changes.
`--check` writes nothing and exits 1 if a folder differs from what would be written.
"""

import argparse
import collections
import csv
import json
import pathlib
import re
import sys

TASKS = pathlib.Path(__file__).resolve().parent.parent / "tasks"

FORWARD = """import math

import torch


def run(Q, K, V):
    scores = torch.matmul(Q.float(), K.float().transpose(-1, -2)) / math.sqrt(Q.shape[-1])
{mask}    lse = torch.logsumexp(scores, dim=-1)
    probabilities = torch.exp(scores - lse[..., None])
    return torch.matmul(probabilities, V.float()).to(torch.bfloat16), lse
"""

BACKWARD = """import math

import torch


def run(Q, K, V, O, dO, L):
    scale = 1 / math.sqrt(Q.shape[-1])
    scores = torch.matmul(Q.float(), K.float().transpose(-1, -2)) * scale
{mask}    P = torch.exp(scores - L[..., None])
    dV = torch.matmul(P.transpose(-1, -2), dO.float())
    dP = torch.matmul(dO.float(), V.float().transpose(-1, -2))
    delta = (dO.float() * O.float()).sum(-1, keepdim=True)
    dS = P * (dP - delta) * scale
    dQ = torch.matmul(dS, K.float())
    dK = torch.matmul(dS.transpose(-1, -2), Q.float())
    return dQ.to(torch.bfloat16), dK.to(torch.bfloat16), dV.to(torch.bfloat16)
"""

MASK = """    hidden = torch.ones(scores.shape[-2:], dtype=torch.bool, device=scores.device).triu(1)
    scores = scores.masked_fill(hidden, float("-inf"))
"""

REQUIREMENTS = {
    "compute_type": "bf16.bf16.f32",
    # Tiles on the diagonal are computed whole, others recompute: the share counts against the task's own work.
    "min_flop_share": 0.9,
    "architectures": {
        "sm_90a": {"families": ["wgmma.mma_async", "cp.async.bulk.tensor.load"], "compute": "wgmma.mma_async"},
        "sm_100a": {"families": ["tcgen05.mma", "cp.async.bulk.tensor.load"], "compute": "tcgen05.mma"},
    },
}

# Two query tiles of 128 and a part of one, three key tiles of 128 or two of 176; an odd size besides.
SMOKE = [("smoke", {"B": 1, "H": 3, "S": 320}, 4), ("smoke-s200", {"B": 2, "H": 1, "S": 200}, 2)]


def tensor(dtype, *shape):
    return {"shape": list(shape), "dtype": dtype}


def definition(name, backward, d, causal):
    matrix, row = tensor("bfloat16", "B", "H", "S", "D"), tensor("float32", "B", "H", "S")
    seen = "keys j <= i" if causal else "all keys"
    if backward:
        text = (f"Gradient of attention with head dimension {d}; query i sees {seen}. O and L (natural logarithm of the "
                "sum of exponentials) are those of the forward pass. P = exp(QK^T/sqrt(D) - L), dV = P^T dO, "
                "dS = P o (dO V^T - rowsum(dO o O)), dQ = dS K / sqrt(D), dK = dS^T Q / sqrt(D).")
        inputs = {**{t: matrix for t in ("Q", "K", "V", "O", "dO")}, "L": row}
        outputs = {t: matrix for t in ("dQ", "dK", "dV")}
    else:
        text = (f"Attention with head dimension {d}: O = softmax(QK^T/sqrt(D)) V; query i sees {seen}. LSE is the natural "
                "logarithm of the sum of exponentials of the scaled scores.")
        inputs = {t: matrix for t in ("Q", "K", "V")}
        outputs = {"O": matrix, "LSE": row}
    return {
        "name": name,
        "op_type": "mha_bwd" if backward else "mha",
        "description": text,
        "tags": ["family:attention", "dtype:bf16", f"mask:{'causal' if causal else 'none'}"],
        "axes": {
            "B": {"type": "const", "value": 4, "description": "batches"},
            "H": {"type": "const", "value": 48, "description": "heads"},
            "S": {"type": "var", "description": "length of the sequence"},
            "D": {"type": "const", "value": d, "description": "dimension of a head"},
        },
        "inputs": inputs,
        "outputs": outputs,
        "constraints": [],
        "reference": (BACKWARD if backward else FORWARD).format(mask=MASK if causal else ""),
    }


def workload_line(name, inputs, uuid, axes, sm_count=None):
    workload = {"uuid": uuid, "axes": axes, "inputs": {i: {"type": "random"} for i in inputs},
                "published": sm_count is None}
    if sm_count is not None:
        workload["device"] = {"sm_count": sm_count}
    return json.dumps({"definition": name, "solution": None, "workload": workload, "evaluation": None})


def calibration(outputs):
    bounds = {"noise_ratio": 2.0, "tile_noise_ratio": 3.0}
    return {"kind": "rounding-noise", "outputs": {name: bounds for name in outputs}}


def folders():
    rows = collections.defaultdict(list)
    with open(TASKS / "attention_published.csv", newline="", encoding="utf-8") as file:
        for row in csv.DictReader(file):
            rows[row["definition_name"]].append((row["workload_uuid"], int(row["S"])))
    for name, workloads in sorted(rows.items()):
        kind, d, causal = re.fullmatch(r"mha_(with_lse|bwd)_d(\d+)(_causal)?", name).groups()
        made = definition(name, kind == "bwd", int(d), causal is not None)
        lines = [workload_line(name, made["inputs"], uuid, axes, sms) for uuid, axes, sms in SMOKE]
        lines += [workload_line(name, made["inputs"], uuid, {"S": s}) for uuid, s in workloads]
        yield name, {
            "definition.json": json.dumps(made, indent=2) + "\n",
            "workloads.jsonl": "\n".join(lines) + "\n",
            "requirements.json": json.dumps(REQUIREMENTS, indent=2) + "\n",
            "calibration.json": json.dumps(calibration(made["outputs"]), indent=2) + "\n",
        }


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--check", action="store_true")
    check = parser.parse_args().check
    differing = []
    for name, files in folders():
        for file, text in files.items():
            path = TASKS / name / file
            if path.exists() and path.read_text(encoding="utf-8") == text:
                continue
            differing.append(str(path.relative_to(TASKS.parent)))
            if not check:
                path.parent.mkdir(exist_ok=True)
                path.write_text(text, encoding="utf-8")
    for path in differing:
        print(("differs: " if check else "wrote ") + path)
    return 1 if check and differing else 0


if __name__ == "__main__":
    sys.exit(main())
