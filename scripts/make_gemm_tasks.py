#!/usr/bin/env python3
"""Writes tasks/gemm_n{N}_k{K}/ from tasks/gemm_published.csv and tasks/gemm_honest_error.json.

The folders are checked in; run this again after changing either file (or this script) and commit what
changes. `--check` writes nothing and exits 1 if a folder differs from what would be written.
"""

import argparse
import collections
import csv
import json
import pathlib
import re
import sys

TASKS = pathlib.Path(__file__).resolve().parent.parent / "tasks"

REFERENCE = """import torch


def run(A, B):
    # One dot product of length K per output element: float32 accumulation, one rounding to bfloat16.
    product = torch.matmul(A.to(torch.float32), B.to(torch.float32).transpose(0, 1))
    return product.to(torch.bfloat16)
"""

# Which instructions a solution has to run on, and in which type it has to compute.
REQUIREMENTS = {
    "compute_type": "bf16.bf16.f32",
    "min_flop_share": 0.9,
    "architectures": {
        "sm_90a": {"families": ["wgmma.mma_async", "cp.async.bulk.tensor.load"], "compute": "wgmma.mma_async"},
        "sm_100a": {"families": ["tcgen05.mma", "cp.async.bulk.tensor.load"], "compute": "tcgen05.mma"},
    },
}

BOUNDS = {"rel_frobenius_factor": 2.0, "tile_rel_frobenius_factor": 3.0, "misround": 0.02, "tile_misround": 0.08}


def smoke_workloads(n):
    """Small sizes with the tile structure of the real ones.

    K = 832 is 13 steps of 64: three wraps of a four-stage ring and one step over, so that ring phases differ
    from tile to tile. Eight tiles (128x256, or 128x128 where N is 128) on 4 SMs: two per persistent CTA.
    M is ragged. Narrow definitions keep their N.
    """
    if n <= 256:
        yield "smoke", {"M": 1000, "N": n, "K": 832}, 4
        yield "smoke-m70", {"M": 70, "N": n, "K": 1344}, 1
    else:
        yield "smoke", {"M": 200, "N": 1024, "K": 832}, 4
        yield "smoke-m70", {"M": 70, "N": 1024, "K": 832}, 2


def definition(name, n, k):
    return {
        "name": name,
        "op_type": "gemm",
        "description": f"C = A * B^T with N = {n} and K = {k}: A[M,K] and B[N,K] are row-major bfloat16, products are "
                       "summed in float32 along K, and each element of C[M,N] is rounded once to bfloat16.",
        "tags": ["family:gemm", "dtype:bf16", "accumulate:fp32"],
        "axes": {
            "M": {"type": "var", "description": "rows of A and C"},
            "N": {"type": "const", "value": n, "description": "rows of B, columns of C"},
            "K": {"type": "const", "value": k, "description": "length of the reduction"},
        },
        "inputs": {
            "A": {"shape": ["M", "K"], "dtype": "bfloat16"},
            "B": {"shape": ["N", "K"], "dtype": "bfloat16"},
        },
        "outputs": {"C": {"shape": ["M", "N"], "dtype": "bfloat16"}},
        "constraints": [],
        "reference": REFERENCE,
    }


def workload_line(name, uuid, axes, sm_count=None):
    workload = {"uuid": uuid, "axes": axes, "inputs": {"A": {"type": "random"}, "B": {"type": "random"}},
                "published": sm_count is None}
    if sm_count is not None:
        workload["device"] = {"sm_count": sm_count}
    return json.dumps({"definition": name, "solution": None, "workload": workload, "evaluation": None})


def calibration(honest):
    return {"kind": "single-reduction", "output": "C", "reduction_axis": "K", "bounds": BOUNDS, "honest": honest}


def folders():
    rows = collections.defaultdict(list)
    with open(TASKS / "gemm_published.csv", newline="", encoding="utf-8") as file:
        for row in csv.DictReader(file):
            rows[row["definition_name"]].append((row["workload_uuid"], int(row["M"])))
    honest = json.loads((TASKS / "gemm_honest_error.json").read_text(encoding="utf-8"))
    for name, workloads in sorted(rows.items()):
        n, k = map(int, re.fullmatch(r"gemm_n(\d+)_k(\d+)", name).groups())
        lines = [workload_line(name, uuid, axes, sms) for uuid, axes, sms in smoke_workloads(n)]
        lines += [workload_line(name, uuid, {"M": m}) for uuid, m in workloads]
        yield name, {
            "definition.json": json.dumps(definition(name, n, k), indent=2) + "\n",
            "workloads.jsonl": "\n".join(lines) + "\n",
            "requirements.json": json.dumps(REQUIREMENTS, indent=2) + "\n",
            "calibration.json": json.dumps(calibration(honest), indent=2) + "\n",
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
