"""tasks/mha_with_lse_d{D}[_causal]/ and tasks/mha_bwd_d{D}[_causal]/ from tasks/attention_published.csv."""

import re

from task_families import common

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

# Two query tiles of 128 and a part of one, three key tiles of 128 or two of 176; an odd size besides.
SMOKE = [("smoke", {"B": 1, "H": 3, "S": 320}, 4), ("smoke-s200", {"B": 2, "H": 1, "S": 200}, 2)]


def definition(name, backward, d, causal):
    matrix = common.tensor("bfloat16", "B", "H", "S", "D")
    row = common.tensor("float32", "B", "H", "S")
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


def folders():
    for name, rows in common.published("attention_published.csv").items():
        kind, d, causal = re.fullmatch(r"mha_(with_lse|bwd)_d(\d+)(_causal)?", name).groups()
        made = definition(name, kind == "bwd", int(d), causal is not None)
        lines = [common.workload_line(made, uuid, axes, sms) for uuid, axes, sms in SMOKE]
        lines += [common.workload_line(made, row["workload_uuid"], {"S": int(row["S"])}) for row in rows]
        # Tiles on the diagonal are computed whole, others recompute: the share counts against the task's own work.
        yield name, common.files(made, lines, common.requirements("bf16.bf16.f32"),
                                 common.rounding_noise(made["outputs"]))
