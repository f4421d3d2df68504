"""tasks/fp8_gemm_nt_{1d2d,1d1d}_n{N}_k{K}/ from tasks/fp8_gemm_published.csv.

The sizes are published, the workloads' ids are not: those in the table were drawn for it.
"""

import re

from task_families import common

REFERENCE = """import torch


def run(A, SF_A, B, SF_B):
    m, k = A.shape
    n, blocks = B.shape[0], k // 128
    scale_b = {scale_b}
    D = torch.zeros(m, n, dtype=torch.float32, device=A.device)
    for block in range(blocks):
        columns = slice(128 * block, 128 * (block + 1))
        product = torch.matmul(A[:, columns].float(), B[:, columns].float().transpose(0, 1))
        D += product * (SF_A[:, block, None] * scale_b[None, :, block])
    return D.to(torch.bfloat16)
"""

# K = 896 is 7 blocks of 128: a ring of 4 or 5 stages wraps once and is left at another phase. Eight tiles of 128x256
# on 4 SMs, two for each; M is ragged. The small one has fewer rows than a tile.
SMOKE = [("smoke", {"m": 200, "n": 1024, "k": 896}, 4), ("smoke-m70", {"m": 70, "n": 512, "k": 512}, 2)]


def definition(name, recipe, n, k):
    per_block = recipe == "1d2d"
    scale_b = "128 x 128 block" if per_block else "row and 128 columns"
    return {
        "name": name,
        "op_type": "fp8_gemm",
        "description": f"D = A * B^T with N = {n} and K = {k} in FP8: A[m,k] and B[n,k] are row-major e4m3. SF_A has a "
                       f"float32 scale for each row and 128 columns of A, SF_B one for each {scale_b} of B. The "
                       "product of both scales multiplies the sum of each block of 128 along K, which is added in "
                       "float32, and each element of D[m,n] is rounded once to bfloat16.",
        "tags": ["family:gemm", "dtype:fp8_e4m3", "accumulate:fp32", f"recipe:{recipe}", "layout:nt"],
        "axes": {
            "m": {"type": "var", "description": "rows of A and D"},
            "n": {"type": "const", "value": n, "description": "rows of B, columns of D"},
            "k": {"type": "const", "value": k, "description": "length of the reduction"},
            **({"num_nblock": {"type": "const", "value": n // 128, "description": "blocks of 128 rows of B"}}
               if per_block else {}),
            "num_kblock": {"type": "const", "value": k // 128, "description": "blocks of 128 along K"},
        },
        "inputs": {
            "A": common.tensor("float8_e4m3fn", "m", "k"),
            "SF_A": common.tensor("float32", "m", "num_kblock"),
            "B": common.tensor("float8_e4m3fn", "n", "k"),
            "SF_B": common.tensor("float32", "num_nblock" if per_block else "n", "num_kblock"),
        },
        "outputs": {"D": common.tensor("bfloat16", "m", "n")},
        "constraints": ["k % 128 == 0", "num_kblock == k // 128"]
        + (["num_nblock == (n + 127) // 128"] if per_block else []),
        "reference": REFERENCE.format(scale_b="SF_B.repeat_interleave(128, dim=0)[:n]" if per_block else "SF_B"),
    }


def folders():
    for name, rows in common.published("fp8_gemm_published.csv").items():
        recipe, n, k = re.fullmatch(r"fp8_gemm_nt_(1d2d|1d1d)_n(\d+)_k(\d+)", name).groups()
        made = definition(name, recipe, int(n), int(k))
        lines = [common.workload_line(made, uuid, axes, sms) for uuid, axes, sms in SMOKE]
        lines += [common.workload_line(made, row["workload_uuid"], {"m": int(row["m"])}) for row in rows]
        yield name, common.files(made, lines, common.requirements("e4m3.e4m3.f32"),
                                 common.rounding_noise(made["outputs"]))
