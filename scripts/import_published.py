#!/usr/bin/env python3
"""Published per-turn results and their aggregates, in the form in which the project keeps them.

    import_published.py FOLDER    FOLDER holds turns.csv and the three agg_*.csv

Writes examples/published/turns.csv.gz (all columns and rows, as they are) and examples/published/rates.csv
(the three aggregates joined, with the columns of a report's rates.csv). Tests compare reports with it.
"""

import csv
import gzip
import sys
from pathlib import Path

TARGET = Path(__file__).resolve().parent.parent / "examples" / "published"
KEY = ("model", "arch", "definition", "workload", "run", "turn_limit")


def rows(path):
    with open(path, newline="", encoding="utf-8") as file:
        return {tuple(row[k] for k in KEY): row for row in csv.DictReader(file)}


def main(folder):
    TARGET.mkdir(exist_ok=True)
    text = (folder / "turns.csv").read_bytes()
    (TARGET / "turns.csv.gz").write_bytes(gzip.compress(text, 9, mtime=0))
    correct = rows(folder / "agg_correctness_rate.csv")
    instructions = rows(folder / "agg_arch_instruction_rate.csv")
    speed = rows(folder / "agg_best_speedup.csv")
    if not correct.keys() == instructions.keys() == speed.keys():
        sys.exit("the aggregates do not have the same rows")
    with open(TARGET / "rates.csv", "w", newline="", encoding="utf-8") as file:
        out = csv.writer(file, lineterminator="\n")
        out.writerow(["model", "arch", "definition", "workload", "run", "turns", "n_trajectories", "correct",
                      "correctness_rate", "correct_with_arch", "correct_with_arch_rate", "best_speedup"])
        for key in sorted(correct, key=lambda k: (*k[:5], int(k[5]))):
            c, i = correct[key], instructions[key]
            out.writerow([*key, c["n_trajectories"], c["correct"], c["correctness_rate"],
                          i["correct_with_arch"], i["correct_with_arch_rate"], speed[key]["best_speedup"]])


if __name__ == "__main__":
    if len(sys.argv) != 2:
        sys.exit(__doc__)
    main(Path(sys.argv[1]))
