"""tasks/{gqa,mla}_{paged,ragged}_*/ from tasks/serving_published.csv.

Definitions are named as published, with the arguments of the FlashInfer kernels they were captured from. The table
has one id of a workload for each and not its sizes: those here are ours, and the workloads say so.
"""

import math
import re

from task_families import common

NOTE = "the id is published, its sizes and page table are not: these are chosen"

PAGES = """    last = {last}
    rows = [kv_indices[kv_indptr[i]:kv_indptr[i + 1]].long() for i in range(len(kv_indptr) - 1)]
    rows = [(p[:, None] * {page} + torch.arange({page}, device=p.device)).flatten() for p in rows]
    rows = [r[:len(r) - {page} + int(n)] for r, n in zip(rows, last)]
"""

RAGGED = """    rows = [torch.arange(kv_indptr[i], kv_indptr[i + 1], device=q.device) for i in range(len(kv_indptr) - 1)]
"""

REFERENCE = """import math

import torch


def run({arguments}):
{prepare}    output, lse = torch.zeros({output}, device=q.device), torch.zeros(q.shape[:2], device=q.device)
    for i, keys in enumerate(rows):
        begin, end = int(queries[i]), int(queries[i + 1])
        k_i, v_i = (x[keys].repeat_interleave(q.shape[1] // x.shape[1], dim=1) for x in (k, v))
        scores = torch.einsum("qhd,khd->hqk", q[begin:end], k_i) * sm_scale
        hidden = torch.ones(scores.shape[1:], dtype=torch.bool, device=q.device).triu(len(keys) - (end - begin) + 1)
        scores = scores.masked_fill(hidden, float("-inf"))
        lse[begin:end] = (torch.logsumexp(scores, -1) / math.log(2.0)).T
        output[begin:end] = torch.einsum("hqk,khd->qhd", torch.softmax(scores, -1).nan_to_num(), v_i)
    return output.to(torch.bfloat16), lse
"""


def inputs_of(kind, paged, stage, page_size):
    """Inputs by name, in the order of the arguments."""
    tokens = "batch_size" if stage == "decode" else "total_q"
    if kind == "mla" and paged:
        made = {"q_nope": (tokens, "num_qo_heads", "head_dim_ckv"), "q_pe": (tokens, "num_qo_heads", "head_dim_kpe"),
                "ckv_cache": ("num_pages", "page_size", "head_dim_ckv"),
                "kpe_cache": ("num_pages", "page_size", "head_dim_kpe")}
    elif paged:
        cache = ("num_pages", "page_size", "num_kv_heads", "head_dim")
        made = {"q": (tokens, "num_qo_heads", "head_dim"), "k_cache": cache, "v_cache": cache}
    else:
        d_qk, d_vo = ("head_dim_qk", "head_dim_vo") if kind == "mla" else ("head_dim", "head_dim")
        heads = "num_qo_heads" if kind == "mla" else "num_kv_heads"
        made = {"q": (tokens, "num_qo_heads", d_qk), "k": ("total_kv", heads, d_qk), "v": ("total_kv", heads, d_vo)}
    made = {name: common.tensor("bfloat16", *shape) for name, shape in made.items()}
    if stage == "prefill":
        made["qo_indptr"] = common.tensor("int32", "len_indptr")
    made["kv_indptr"] = common.tensor("int32", "len_indptr")
    if paged:
        made["kv_indices"] = common.tensor("int32", "num_kv_indices")
    if page_size > 1:
        made["kv_last_page_len"] = common.tensor("int32", "batch_size" if stage == "decode" else "len_indptr")
    made["sm_scale"] = common.scalar("float32")
    return made


def axes_of(kind, paged, stage, numbers, page_size):
    axes = common.variables(**({"batch_size": "sequences, one query each"} if stage == "decode"
                               else {"total_q": "queries of all sequences"}))
    if kind == "gqa":
        axes |= common.constants(num_qo_heads=numbers["h"], num_kv_heads=numbers["kv"], head_dim=numbers["d"])
    elif paged:
        axes |= common.constants(num_qo_heads=numbers["h"], head_dim_ckv=numbers["ckv"], head_dim_kpe=numbers["kpe"])
    else:
        axes |= common.constants(num_qo_heads=numbers["h"], head_dim_qk=numbers["qk"], head_dim_vo=numbers["vo"])
    if paged:
        axes |= common.constants(page_size=page_size)
        axes |= common.variables(num_pages="pages of the cache", num_kv_indices="pages of all sequences")
    else:
        axes |= common.variables(total_kv="keys of all sequences")
    return axes | common.variables(len_indptr="sequences and one")


def reference_of(kind, paged, stage, inputs, page_size):
    prepare = ""
    if kind == "mla" and paged:
        prepare += ("    q = torch.cat([q_nope, q_pe], -1).float()\n"
                    "    k = torch.cat([ckv_cache, kpe_cache], -1).float().reshape(-1, 1, q.shape[-1])\n"
                    "    v = ckv_cache.float().reshape(-1, 1, ckv_cache.shape[-1])\n")
    elif paged:
        prepare += "    q, k, v = q.float(), k_cache.float().flatten(0, 1), v_cache.float().flatten(0, 1)\n"
    else:
        prepare += "    q, k, v = q.float(), k.float(), v.float()\n"
    prepare += "    queries = " + ("qo_indptr" if stage == "prefill" else "range(len(kv_indptr))") + "\n"
    last = "kv_last_page_len" if page_size > 1 else "[1] * (len(kv_indptr) - 1)"
    prepare += PAGES.format(last=last, page=page_size) if paged else RAGGED
    return REFERENCE.format(arguments=", ".join(inputs), prepare=prepare, output="*q.shape[:2], v.shape[-1]")


def workloads(paged, stage, page_size, small):
    """Axes of a small size (two of them) or of a typical one."""
    sizes = ([("smoke", 7, 700), ("smoke-1", 1, 130)] if stage == "decode" else
             [("smoke", 3, 330), ("smoke-1", 1, 130)]) if small else [("", 64 if stage == "decode" else 8, 65536)]
    for uuid, batch, keys in sizes:
        axes = {"batch_size": batch} if stage == "decode" else {"total_q": keys // 2, "len_indptr": batch + 1}
        if paged:
            pages = (keys + page_size - 1) // page_size + (batch if page_size > 1 else 0)
            axes |= {"num_kv_indices": pages, "num_pages": pages + pages // 4 + 1}
        else:
            axes |= {"total_kv": keys}
        yield uuid, axes


def definition(name, kind, paged, stage, numbers, page_size):
    inputs = inputs_of(kind, paged, stage, page_size)
    heads = ("all query heads share one latent of 512 with 64 more for positions, whose first part is the value too"
             if kind == "mla" and paged else "query heads share heads of keys and values in equal groups")
    tokens = "batch_size" if stage == "decode" else "total_q"
    width = {"gqa": "head_dim", "mla": "head_dim_ckv" if paged else "head_dim_vo"}[kind]
    return {
        "name": name,
        "op_type": f"{kind}_{'paged' if paged else 'ragged'}",
        "description": f"Attention of sequences of different lengths, {stage}; {heads}. "
                       + (f"Keys and values lie in pages of {page_size} that kv_indices[kv_indptr[i]:kv_indptr[i+1]] names"
                          + (", the last with kv_last_page_len[i] tokens. " if page_size > 1 else ". ") if paged else
                          "Those of sequence i are rows kv_indptr[i] to kv_indptr[i+1]. ")
                       + ("Each sequence has one query, which sees all its keys. " if stage == "decode" else
                          "Query j of sequence i sees the keys up to j + (keys - queries). ")
                       + "output = softmax(sm_scale * q k^T) v; lse is the logarithm to base 2 of the sum of exponentials.",
        "tags": ["family:serving", f"stage:{stage}", "dtype:bf16"],
        "axes": axes_of(kind, paged, stage, numbers, page_size),
        "inputs": inputs,
        "outputs": {"output": common.tensor("bfloat16", tokens, "num_qo_heads", width),
                    "lse": common.tensor("float32", tokens, "num_qo_heads")},
        "constraints": (["len_indptr == batch_size + 1"] if stage == "decode" else ["total_q == qo_indptr[-1].item()"])
        + [("num_kv_indices" if paged else "total_kv") + " == kv_indptr[-1].item()"],
        "reference": reference_of(kind, paged, stage, inputs, page_size),
    }


def folders():
    for name, rows in common.published("serving_published.csv").items():
        kind, form, stage = re.match(r"(gqa|mla)_(paged|ragged)_(decode|prefill)", name).groups()
        numbers = {key: int(value) for key, value in re.findall(r"(?<=_)([a-z]+)(\d+)", name)}
        page_size, paged = numbers.get("ps", 1), form == "paged"
        made = definition(name, kind, paged, stage, numbers, page_size)
        width = 192 if kind == "mla" else numbers["d"]
        scalars = {"sm_scale": 1 / math.sqrt(width)}
        lines = [common.workload_line(made, uuid, axes, 4, scalars)
                 for uuid, axes in workloads(paged, stage, page_size, small=True)]
        for row in rows:
            for _, axes in workloads(paged, stage, page_size, small=False):
                lines.append(common.workload_line(made, row["workload_uuid"], axes, None, scalars, NOTE))
        yield name, common.files(made, lines, None, common.rounding_noise(made["outputs"]))
