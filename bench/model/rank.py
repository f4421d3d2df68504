#!/usr/bin/env python3
"""How well does the time model rank kernels? Estimates every kernel whose time on an H200 stands in
docs/hardware-results.md (no GPU needed) and compares: Spearman's rank correlation, over all and within
each problem, and the ratio of estimate to time. Prints the table of docs/time-model.md.

    bench/model/rank.py [--ptxbench build/bin/ptxbench] [--only WORD] [--json FILE]
"""
import argparse
import json
import math
import pathlib
import statistics
import subprocess
import sys

ROOT = pathlib.Path(__file__).resolve().parents[2]


def load(path):
    """Rows of h200_times.tsv: problem, candidate, task, axes, milliseconds, source."""
    rows = []
    for line in path.read_text().splitlines():
        if line.strip() and not line.startswith("#"):
            problem, candidate, task, axes, ms, source = line.split("\t")
            rows.append(dict(problem=problem, candidate=candidate, task=task, axes=axes,
                             ms=float(ms), source=source))
    return rows


def estimate(program, row, machine):
    command = [program, "estimate", str(ROOT / row["candidate"]), "--task", row["task"],
               "--axes", row["axes"], "--machine", machine, "--quiet", "--json", "-"]
    run = subprocess.run(command, capture_output=True, text=True)
    if run.returncode != 0:
        message = (run.stderr or run.stdout).strip()
        return None, message.splitlines()[-1] if message else f"exit {run.returncode}"
    return json.loads(run.stdout), ""


def ranks(values):
    order = sorted(range(len(values)), key=lambda i: values[i])
    out = [0.0] * len(values)
    i = 0
    while i < len(order):
        j = i
        while j + 1 < len(order) and values[order[j + 1]] == values[order[i]]:
            j += 1
        for k in range(i, j + 1):
            out[order[k]] = (i + j) / 2
        i = j + 1
    return out


def spearman(a, b):
    ra, rb = ranks(a), ranks(b)
    ma, mb = statistics.mean(ra), statistics.mean(rb)
    cov = sum((x - ma) * (y - mb) for x, y in zip(ra, rb))
    return cov / math.sqrt(sum((x - ma) ** 2 for x in ra) * sum((y - mb) ** 2 for y in rb))


def pairs_in_order(rows):
    """Pairs of one problem whose times differ by more than 5 %, and those that the estimate orders alike."""
    right = total = 0
    wrong = []
    for i, a in enumerate(rows):
        for b in rows[i + 1:]:
            if a["problem"] != b["problem"] or abs(a["ms"] / b["ms"] - 1) < 0.05:
                continue
            total += 1
            if (a["ms"] < b["ms"]) == (a["estimate"] < b["estimate"]):
                right += 1
            else:
                wrong.append(f"{a['candidate']} and {b['candidate']} at {a['axes']}")
    return right, total, wrong


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--ptxbench", default=str(ROOT / "build/bin/ptxbench"))
    parser.add_argument("--machine", default="h200")
    parser.add_argument("--only", default="", help="rows that hold this word")
    parser.add_argument("--json", default="")
    options = parser.parse_args()
    rows, missing = [], []
    for row in load(pathlib.Path(__file__).with_name("h200_times.tsv")):
        if options.only and options.only not in "\t".join(map(str, row.values())):
            continue
        report, why = estimate(options.ptxbench, row, options.machine)
        if report is None:
            missing.append(f"{row['candidate']} {row['axes']}: {why}")
            continue
        row.update(estimate=report["ms"], bound=report["bound"],
                   causes=[c["kind"] for c in report["causes"][:2]])
        rows.append(row)
        print(f"| `{row['candidate']}` | {row['axes'].replace(',', ', ')} | {row['ms']:.4g} | "
              f"{row['estimate']:.4g} | {row['estimate'] / row['ms']:.2f} | {row['bound']} | "
              f"{', '.join(row['causes'])} |", flush=True)
    for line in missing:
        print("no estimate:", line)
    if len(rows) < 2:
        sys.exit("too few estimates to rank")
    times, estimates = [r["ms"] for r in rows], [r["estimate"] for r in rows]
    ratios = sorted(r["estimate"] / r["ms"] for r in rows)
    print(f"\n{len(rows)} kernels: Spearman's rho {spearman(times, estimates):.3f}; estimate over time: median "
          f"{statistics.median(ratios):.2f}, from {ratios[0]:.2f} to {ratios[-1]:.2f}")
    for family in sorted({r["problem"].split()[0] for r in rows}):
        some = [r for r in rows if r["problem"].split()[0] == family]
        if len(some) > 2:
            print(f"  {family}: {len(some)} kernels, rho "
                  f"{spearman([r['ms'] for r in some], [r['estimate'] for r in some]):.3f}")
    right, total, wrong = pairs_in_order(rows)
    print(f"  kernels of one problem: {right} of {total} pairs in the right order")
    for line in wrong:
        print("    wrong:", line)
    if options.json:
        pathlib.Path(options.json).write_text(json.dumps(rows, indent=1))


if __name__ == "__main__":
    main()
