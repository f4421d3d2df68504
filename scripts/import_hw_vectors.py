#!/usr/bin/env python3
"""Converts a raw recording of hardware vectors into the form that the tests read (tests/data/hw).

    scripts/import_hw_vectors.py RECORDING [OUTPUT [GROUP...]]

RECORDING holds GROUP.json, GROUP.out.bin.gz and, for element-wise groups, GROUP.in.bin.gz as the recording
programs write them.  OUTPUT gets manifest.json, one GROUP.jsonl.zst (a case a line) and GROUP-N.bin.zst
(the arrays; cut so that a part stays below 1 MiB).  With GROUPs only these are imported, into the manifest that
OUTPUT has.  The reader is tests/emu/hw_vectors.h.  Needs `zstd`.
"""
import gzip
import json
import re
import subprocess
import sys
from pathlib import Path

GROUPS = ["cvt", "approx", "exact", "warp", "matrix_warp", "wgmma_layout", "wgmma_desc",
          "wgmma_numerics", "tma", "sync"]
PART_LIMIT = 1 << 20
# Prose and bookkeeping of the recorder; README.md of the data says in our words what a reader needs.
DROPPED = {"how", "tiles", "columns", "c_rule", "inactive", "smem",
           "host_model_mismatches", "mismatches_absolute_xor",
           "mismatches_xor_minus_base_offset", "mismatches_xor_plus_base_offset"}
PROSE = {"regs", "a", "b", "source"}         # a sentence in some cases, an array in others
RENAMED = {
    "a_desc_without_base": "a_desc", "b_desc_without_base": "b_desc", "desc_without_base": "desc",
    "a_LBO_SBO": "a_strides", "b_LBO_SBO": "b_strides", "LBO": "leading", "SBO": "stride",
    "element_index": "map", "lane_byte_offset": "rows", "smem_after": "after", "smem_image": "image",
    "mbarrier_word_after_copy_and_inval": "barrier_word", "tx_count_bits_21_to_41": "tx_count",
    "phase_complete_after_arrive_expect_tx_of_expected_bytes": "phase_complete",
    "dataType": "type", "globalDim": "dims", "globalStrides": "strides", "boxDim": "box",
    "elementStrides": "element_strides", "oobFill": "nan_fill",
    "smem_offset": "shared_offset", "global_pattern": "pattern", "global_after": "after",
    "source_array": "source", "dest_before": "before", "dest_after": "after",
    "global_before": "before", "CUresult": "encode_result",
    "descriptor_words": "words",
}


def fields(case):
    """The case with short keys, numbers for hexadecimal text, {"at","type","shape"} for arrays."""
    out = {}
    for key, value in case.items():
        key = re.match(r"[A-Za-z_0-9]+", key).group(0)
        if key in DROPPED or (key in PROSE and isinstance(value, str)):
            continue
        out[RENAMED.get(key, key)] = convert(value)
    return out


def convert(value):
    if isinstance(value, dict) and "offset" in value:
        shape = value["shape"] if "shape" in value else [value["count"]]
        return {"at": value["offset"], "type": value["dtype"], "shape": shape}
    if isinstance(value, dict):
        return {k: convert(v) for k, v in value.items()}
    if isinstance(value, list):
        return [convert(v) for v in value]
    if isinstance(value, str) and (fill := re.fullmatch(r"all 0x([0-9A-F]{2})", value)):
        return int(fill.group(1), 16)         # a buffer that holds this byte everywhere
    if isinstance(value, str) and re.fullmatch(r"0x[0-9a-fA-F]{1,16}", value):
        return int(value, 16)
    return value


def compress(data):
    return subprocess.run(["zstd", "-19", "--long=24", "-q", "-c"], input=data, capture_output=True,
                          check=True).stdout


def write_parts(out, stem, data):
    """Splits into the fewest equal parts that stay below the limit; returns [name, raw bytes] pairs."""
    for count in range(1, 64):
        size = -(-len(data) // count // 16) * 16 or 16
        parts = [compress(data[i:i + size]) for i in range(0, len(data), size)]
        if all(len(p) < PART_LIMIT for p in parts):
            break
    names = []
    for i, part in enumerate(parts):
        name = f"{stem}-{i}.bin.zst"
        (out / name).write_bytes(part)
        names.append({"file": name, "bytes": min(size, len(data) - i * size)})
    return names


def import_group(source, out, name):
    raw = json.loads((source / f"{name}.json").read_text())
    data = gzip.decompress((source / f"{name}.out.bin.gz").read_bytes())
    group = {"cases": len(raw["tests"])}
    if "arrays" in raw:                       # shared inputs go behind the outputs, in the same blob
        base = -(-len(data) // 16) * 16
        data = data.ljust(base, b"\0") + gzip.decompress((source / f"{name}.in.bin.gz").read_bytes())
        group["inputs"] = {k: dict(convert(v), at=v["offset"] + base) for k, v in raw["arrays"].items()}
    lines = "".join(json.dumps(fields(t), separators=(",", ":")) + "\n" for t in raw["tests"])
    (out / f"{name}.jsonl.zst").write_bytes(compress(lines.encode()))
    group["list"] = {"file": f"{name}.jsonl.zst", "bytes": len(lines.encode())}
    group["parts"] = write_parts(out, name, data)
    return group


def main():
    if len(sys.argv) < 2:
        sys.exit(__doc__)
    source = Path(sys.argv[1])
    out = Path(sys.argv[2]) if len(sys.argv) > 2 else \
        Path(__file__).resolve().parent.parent / "tests" / "data" / "hw"
    out.mkdir(parents=True, exist_ok=True)
    if len(sys.argv) > 3:
        manifest = json.loads((out / "manifest.json").read_text())
        for name in sys.argv[3:]:
            manifest["groups"][name] = import_group(source, out, name)
        (out / "manifest.json").write_text(json.dumps(manifest, indent=1) + "\n")
        return
    manifest = {"version": 1, "card": "NVIDIA H200", "driver": "580.159.04", "compiler": "ptxas 13.0.88",
                "target": "sm_90a", "recorded": "2026-11-30",
                "groups": {name: import_group(source, out, name) for name in GROUPS}}
    (out / "manifest.json").write_text(json.dumps(manifest, indent=1) + "\n")


if __name__ == "__main__":
    main()
