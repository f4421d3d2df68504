"""tasks/gdn_{decode,mtp,prefill}_qk{Q}_v{V}_d128_k_last/ from tasks/gdn_published.csv.

The table has ids and lengths, not how many sequences there are (nor the size of a pool): those here are ours, and the
workloads say so.
"""

import math
import re

from task_families import common

NOTE = "the id and the length are published, the number of sequences is not: it is chosen"

GATES = """    decay = torch.exp(-torch.exp(A_log) * F.softplus(a.float() + dt_bias))
    beta = torch.sigmoid(b.float())
    group = v.shape[-2] // q.shape[-2]
    q, k = (x.float().repeat_interleave(group, dim=-2) for x in (q, k))
"""

STEP = """def step(S, q, k, v, decay, beta):
    S = decay[:, None, None] * S
    u = beta[:, None] * (v.float() - torch.einsum("hvk,hk->hv", S, k))
    S = S + u[:, :, None] * k[:, None, :]
    return S, torch.einsum("hvk,hk->hv", S, q)
"""

BATCHED = """    output = torch.zeros(v.shape, device=v.device)
{copy}    for i in range(len(q)):
        S = {begin}
        for t in range(q.shape[1]):
            S, o = step(S, q[i, t], k[i, t], v[i, t], decay[i, t], beta[i, t])
            output[i, t] = scale * o
{keep}    return output.to(torch.bfloat16), {state}
"""

PREFILL = """    output, new_state = torch.zeros(v.shape, device=v.device), state.clone()
    for i in range(len(state)):
        for t in range(int(cu_seqlens[i]), int(cu_seqlens[i + 1])):
            new_state[i], o = step(new_state[i], q[t], k[t], v[t], decay[t], beta[t])
            output[t] = scale * o
    return output.to(torch.bfloat16), new_state
"""


def definition(name, stage, q_heads, v_heads):
    tokens = ("total_seq_len",) if stage == "prefill" else ("batch_size", "seq_len")
    count = {"decode": "batch_size", "mtp": "pool_size", "prefill": "num_seqs"}[stage]
    state = common.tensor("float32", count, "num_v_heads", "head_size", "head_size")
    inputs = {"q": common.tensor("bfloat16", *tokens, "num_q_heads", "head_size"),
              "k": common.tensor("bfloat16", *tokens, "num_k_heads", "head_size"),
              "v": common.tensor("bfloat16", *tokens, "num_v_heads", "head_size"),
              "initial_state" if stage == "mtp" else "state": state}
    if stage == "mtp":
        inputs["initial_state_indices"] = common.tensor("int32", "batch_size")
    inputs |= {"A_log": common.tensor("float32", "num_v_heads"), "a": common.tensor("bfloat16", *tokens, "num_v_heads"),
               "dt_bias": common.tensor("float32", "num_v_heads"),
               "b": common.tensor("bfloat16", *tokens, "num_v_heads")}
    if stage == "prefill":
        inputs["cu_seqlens"] = common.tensor("int64", "len_cu_seqlens")
    inputs["scale"] = common.scalar("float32")
    axes = {"decode": common.variables(batch_size="sequences") | common.constants(seq_len=1),
            "mtp": common.variables(batch_size="sequences", seq_len="tokens of each", pool_size="states in the pool"),
            "prefill": common.variables(total_seq_len="tokens of all sequences", num_seqs="sequences",
                                        len_cu_seqlens="sequences and one")}[stage]
    body = PREFILL if stage == "prefill" else BATCHED.format(
        copy="" if stage == "mtp" else "    new_state = state.clone()\n",
        begin="initial_state[int(initial_state_indices[i])]" if stage == "mtp" else "state[i]",
        keep="" if stage == "mtp" else "        new_state[i] = S\n",
        state="initial_state.clone()" if stage == "mtp" else "new_state")
    text = {"decode": "one token for each sequence",
            "mtp": "a few tokens for each sequence, from states in a pool, which is handed back as it is (the published "
                   "definition's optional buffer of intermediate states is left out)",
            "prefill": "sequence i is tokens cu_seqlens[i] to cu_seqlens[i+1]"}[stage]
    return {
        "name": name,
        "op_type": "gdn",
        "description": f"The gated delta rule, {text}. For each head of values with state S [v,k]: "
                       "S <- exp(-exp(A_log) softplus(a + dt_bias)) S; u = sigmoid(b) (v - S k); S <- S + u k^T; "
                       "output = scale S q. Heads of values share heads of queries and keys in equal groups.",
        "tags": ["family:gated-delta-rule", f"stage:{stage}", "layout:k-last"],
        "axes": axes | common.constants(num_q_heads=q_heads, num_k_heads=q_heads, num_v_heads=v_heads, head_size=128),
        "inputs": inputs,
        "outputs": {"output": common.tensor("bfloat16", *tokens, "num_v_heads", "head_size"),
                    "final_state" if stage == "mtp" else "new_state": state},
        "constraints": ["len_cu_seqlens == num_seqs + 1", "total_seq_len == cu_seqlens[-1].item()"]
        if stage == "prefill" else [],
        "reference": "import torch\nimport torch.nn.functional as F\n\n\n" + STEP + f"\n\ndef run({', '.join(inputs)}):\n"
                     + GATES + body,
    }


def axes_of(stage, length, sequences):
    if stage == "decode":
        return {"batch_size": sequences}
    if stage == "mtp":
        return {"batch_size": sequences, "seq_len": length, "pool_size": 2 * sequences}
    return {"total_seq_len": length, "num_seqs": min(sequences, length)}


def folders():
    smoke = {"decode": [(1, 3), (1, 1)], "mtp": [(4, 3), (3, 1)], "prefill": [(70, 3), (33, 1)]}
    for name, rows in common.published("gdn_published.csv").items():
        stage, q_heads, v_heads = re.fullmatch(r"gdn_(\w+)_qk(\d+)_v(\d+)_d128_k_last", name).groups()
        made = definition(name, stage, int(q_heads), int(v_heads))
        scalars = {"scale": 1 / math.sqrt(128)}
        lines = [common.workload_line(made, uuid, axes_of(stage, *sizes), 4, scalars)
                 for uuid, sizes in zip(("smoke", "smoke-1"), smoke[stage])]
        for number, row in enumerate(rows):
            length = int(row["seq_len"])
            sequences = 4 if stage == "prefill" else 4 ** number if number < 5 else 512
            lines.append(common.workload_line(made, row["workload_uuid"], axes_of(stage, length, sequences), None, scalars,
                                              NOTE))
        yield name, common.files(made, lines, None, common.rounding_noise(made["outputs"]))
