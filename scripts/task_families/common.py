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


def workload_line(definition, uuid, axes, sm_count=None):
    """One line of workloads.jsonl. `sm_count`: of a smoke workload's device; none makes it a published one."""
    workload = {"uuid": uuid, "axes": axes, "inputs": {i: {"type": "random"} for i in definition["inputs"]},
                "published": sm_count is None}
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


def rounding_noise(outputs):
    """Calibration in units of the error that the operation expects of honest rounding."""
    bounds = {"noise_ratio": 2.0, "tile_noise_ratio": 3.0}
    return {"kind": "rounding-noise", "outputs": {name: bounds for name in outputs}}


def files(definition, lines, required, calibration):
    return {
        "definition.json": json.dumps(definition, indent=2) + "\n",
        "workloads.jsonl": "\n".join(lines) + "\n",
        "requirements.json": json.dumps(required, indent=2) + "\n",
        "calibration.json": json.dumps(calibration, indent=2) + "\n",
    }
