"""tasks/fp8_mha_with_lse_d{D}[_causal]/ from tasks/fp8_attention_published.csv.

One workload of each definition is published with its id and without its length, for which the longest of the family
is taken; the ids of the other lengths in the table were drawn for it.
"""

import re

from task_families import common
from task_families.attention import MASK

REFERENCE = """import math

import torch


def run(Q, K, V, descale_q, descale_k, descale_v):
    q, k, v = Q.float() * descale_q, K.float() * descale_k, V.float() * descale_v
    scores = torch.matmul(q, k.transpose(-1, -2)) / math.sqrt(Q.shape[-1])
{mask}    lse = torch.logsumexp(scores, dim=-1)
    probabilities = torch.exp(scores - lse[..., None])
    return torch.matmul(probabilities, v).clamp(-448, 448).to(torch.float8_e4m3fn), lse
"""

# As for attention in bf16.
SMOKE = [("smoke", {"B": 1, "H": 3, "L": 320}, 4), ("smoke-s200", {"B": 2, "H": 1, "L": 200}, 2)]


def definition(name, d, causal):
    matrix, one = common.tensor("float8_e4m3fn", "B", "H", "L", "D"), common.tensor("float32", *["one"] * 4)
    return {
        "name": name,
        "op_type": "fp8_mha",
        "description": f"Attention in FP8 with head dimension {d}; query i sees {'keys j <= i' if causal else 'all keys'}. "
                       "Q, K and V are e4m3 and stand for Q * descale_q, K * descale_k and V * descale_v. "
                       "O = softmax(QK^T/sqrt(D)) V is rounded to e4m3 without a scale; LSE is the natural logarithm of "
                       "the sum of exponentials of the scaled scores. Both products take e4m3 operands.",
        "tags": ["family:attention", "dtype:fp8_e4m3", f"mask:{'causal' if causal else 'none'}"],
        "axes": {
            "B": {"type": "const", "value": 4, "description": "batches"},
            "H": {"type": "const", "value": 48, "description": "heads"},
            "L": {"type": "var", "description": "length of the sequence"},
            "D": {"type": "const", "value": d, "description": "dimension of a head"},
            "one": {"type": "const", "value": 1, "description": "a scale for a whole tensor"},
        },
        "inputs": {**{t: matrix for t in ("Q", "K", "V")}, **{f"descale_{t}": one for t in ("q", "k", "v")}},
        "outputs": {"O": matrix, "LSE": common.tensor("float32", "B", "H", "L")},
        "constraints": [],
        "reference": REFERENCE.format(mask=MASK if causal else ""),
    }


def folders():
    for name, rows in common.published("fp8_attention_published.csv").items():
        d, causal = re.fullmatch(r"fp8_mha_with_lse_d(\d+)(_causal)?", name).groups()
        made = definition(name, int(d), causal is not None)
        lines = [common.workload_line(made, uuid, axes, sms) for uuid, axes, sms in SMOKE]
        lines += [common.workload_line(made, row["workload_uuid"], {"L": int(row["L"])}) for row in rows]
        yield name, common.files(made, lines, common.requirements("e4m3.e4m3.f32"),
                                 common.rounding_noise(made["outputs"]))
