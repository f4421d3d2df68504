"""tasks/gemm_n{N}_k{K}/ from tasks/gemm_published.csv and tasks/gemm_honest_error.json."""

import json
import re

from task_families import common

REFERENCE = """import torch


def run(A, B):
    # One dot product of length K per output element: float32 accumulation, one rounding to bfloat16.
    product = torch.matmul(A.to(torch.float32), B.to(torch.float32).transpose(0, 1))
    return product.to(torch.bfloat16)
"""

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


def calibration(honest):
    return {"kind": "single-reduction", "output": "C", "reduction_axis": "K", "bounds": BOUNDS, "honest": honest}


def folders():
    honest = json.loads((common.TASKS / "gemm_honest_error.json").read_text(encoding="utf-8"))
    for name, rows in common.published("gemm_published.csv").items():
        n, k = map(int, re.fullmatch(r"gemm_n(\d+)_k(\d+)", name).groups())
        made = definition(name, n, k)
        lines = [common.workload_line(made, uuid, axes, sms) for uuid, axes, sms in smoke_workloads(n)]
        lines += [common.workload_line(made, row["workload_uuid"], {"M": int(row["M"])}) for row in rows]
        yield name, common.files(made, lines, common.requirements("bf16.bf16.f32"), calibration(honest))
