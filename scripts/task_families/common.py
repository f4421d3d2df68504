"""What the families' modules share. Each has folders(), which yields a task's name and its files by name."""

import collections
import csv
import json
import pathlib

TASKS = pathlib.Path(__file__).resolve().parent.parent.parent / "tasks"


def published(table):
    """Rows of tasks/TABLE by definition: {name: [row, ...]}, names sorted."""
    rows = collections.defaultdict(list)
    with open(TASKS / table, newline="", encoding="utf-8") as file:
        for row in csv.DictReader(file):
            rows[row["definition_name"]].append(row)
    return dict(sorted(rows.items()))


def tensor(dtype, *shape):
    return {"shape": list(shape), "dtype": dtype}


def scalar(dtype):
    return {"shape": None, "dtype": dtype}


def constants(**values):
    return {name: {"type": "const", "value": value} for name, value in values.items()}


def variables(**descriptions):
    return {name: {"type": "var", "description": text} for name, text in descriptions.items()}


def workload_line(definition, uuid, axes, sm_count=None, scalars=None, note=None):
    """One line of workloads.jsonl. `sm_count`: of a smoke workload's device; without it and a note on what is not
    published, the workload is a published one. `scalars`: values of inputs that are numbers."""
    inputs = {i: {"type": "random"} for i in definition["inputs"]}
    inputs.update({name: {"type": "scalar", "value": value} for name, value in (scalars or {}).items()})
    workload = {"uuid": uuid, "axes": axes, "inputs": inputs, "published": sm_count is None and note is None}
    if note is not None:
        workload["note"] = note
    if sm_count is not None:
        workload["device"] = {"sm_count": sm_count}
    return json.dumps({"definition": definition["name"], "solution": None, "workload": workload, "evaluation": None})


def requirements(compute_type, min_flop_share=0.9):
    """Which instructions a solution has to run on, and in which type it has to compute."""
    return {
        "compute_type": compute_type,
        "min_flop_share": min_flop_share,
        "architectures": {
            "sm_90a": {"families": ["wgmma.mma_async", "cp.async.bulk.tensor.load"], "compute": "wgmma.mma_async"},
            "sm_100a": {"families": ["tcgen05.mma", "cp.async.bulk.tensor.load"], "compute": "tcgen05.mma"},
        },
    }


def rounding_noise(outputs, ratio=2.0, tile_ratio=3.0):
    """Calibration in units of the error that the operation expects of honest rounding."""
    bounds = {"noise_ratio": ratio, "tile_noise_ratio": tile_ratio}
    return {"kind": "rounding-noise", "outputs": {name: bounds for name in outputs}}


def files(definition, lines, required, calibration):
    """`required` None: any instructions will do where the results are right."""
    made = {
        "definition.json": json.dumps(definition, indent=2) + "\n",
        "workloads.jsonl": "\n".join(lines) + "\n",
        "calibration.json": json.dumps(calibration, indent=2) + "\n",
    }
    if required is not None:
        made["requirements.json"] = json.dumps(required, indent=2) + "\n"
    return made
