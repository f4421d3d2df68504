#!/usr/bin/env python3
"""A second implementation of a report's metrics, from the definitions and with the standard library
alone; it shares no code with src/report. Compares every table that `ptxbench report --csv` writes for the
published turns, and the published aggregates.

    second_opinion.py PTXBENCH ROOT
"""

import csv
import gzip
import math
import random
import re
import subprocess
import sys
import tempfile
from collections import Counter, defaultdict
from datetime import date
from pathlib import Path

Z = 1.959963984540054
LIMITS = (1, 4, 8)
ARCH_TAG = {"hopper": "H", "blackwell": "B"}
LEVEL_OF_LABEL = {"Extraction error": "extraction", "Compilation error": "syntax", "Runtime error": "execution",
                  "Kernel Execution Timeout": "execution", "Sanitize Timeout": "execution",
                  "Numerical error": "numerics"}
ORDER = ["extraction", "syntax", "execution", "numerics", "instructions", "strategy", "frontier"]
# Run and turn limit where the published instruction count rests on evidence outside the per-turn file.
EXCEPTIONS = {("qwen36-27b-note-feedback2-3prompt-mha-bwd-d128", "8"),
              ("qwen36-27b-note-feedback2-3prompt-mha-bwd-d128-causal", "4"),
              ("qwen36-27b-note-feedback2-3prompt-mha-bwd-d128-causal", "8"),
              ("2026-0624-0939-mha-bwd-d128-causal", "8")}

checked = Counter()
wrong = []


def same(table, key, column, ours, theirs):
    """theirs: the text of a CSV field; ours: a number, a text or None for an empty field."""
    checked[table] += 1
    if ours is None:
        good = theirs == ""
    elif isinstance(ours, str):
        good = theirs == ours
    else:
        good = theirs != "" and math.isclose(float(theirs), ours, rel_tol=1e-9, abs_tol=1e-12)
    if not good:
        wrong.append(f"{table} {key}: {column}: {theirs!r}, second implementation {ours!r}")


def mean(values):
    return math.fsum(values) / len(values) if values else None


def median(values):
    values = sorted(values)
    if not values:
        return None
    return (values[(len(values) - 1) // 2] + values[len(values) // 2]) / 2


def geometric(values):
    return math.exp(math.fsum(map(math.log, values)) / len(values)) if values else None


def on_wilson_border(p_hat, n, bound):
    """The definition: the bound is where the score test just rejects; 0 and 1 where it cannot."""
    return math.isclose((p_hat - bound) ** 2, Z * Z * bound * (1 - bound) / n, rel_tol=1e-6, abs_tol=1e-9)


def sign_p(wins, losses):
    n = wins + losses
    tail = sum(math.comb(n, i) for i in range(min(wins, losses) + 1))
    return min(1.0, 2 * tail / 2 ** n)


def spearman(pairs):
    def ranked(values):
        places = defaultdict(list)
        for place, value in enumerate(sorted(values)):
            places[value].append(place)
        return [mean(places[v]) for v in values]
    if len(pairs) < 3:
        return None
    x, y = ranked([p[0] for p in pairs]), ranked([p[1] for p in pairs])
    mx, my = mean(x), mean(y)
    xx, yy = sum((a - mx) ** 2 for a in x), sum((b - my) ** 2 for b in y)
    return sum((a - mx) * (b - my) for a, b in zip(x, y)) / math.sqrt(xx * yy) if xx and yy else None


class Turn:
    def __init__(self, row):
        self.number = int(row["turn"])
        self.label = row["correctness"]
        self.correct = self.label == "Correct"
        self.speedup = float(row["speedup"])
        tags = [t.strip() for t in row["arch_tag"].split(",")]
        self.arch = self.correct and ARCH_TAG[row["arch"]] in tags
        self.tokens = int(row["reasoning_tokens"])
        self.level = LEVEL_OF_LABEL.get(self.label, "other")
        if self.correct:
            self.level = "instructions" if not self.arch else "frontier" if self.speedup >= 1 else "strategy"


def read_turns(root):
    groups = defaultdict(lambda: defaultdict(list))
    names = {}
    with gzip.open(root / "examples/published/turns.csv.gz", "rt", encoding="utf-8", newline="") as file:
        for row in csv.DictReader(file):
            key = tuple(row[k] for k in ("model", "arch", "definition", "workload", "run"))
            groups[key][row["trajectory_id"]].append(Turn(row))
            names[row["workload"], row["definition"]] = row["workload_name"]
    for trajectories in groups.values():
        for turns in trajectories.values():
            turns.sort(key=lambda t: t.number)
    return groups, names


def by_key(path, columns):
    with open(path, newline="", encoding="utf-8") as file:
        rows = list(csv.DictReader(file))
    table = {tuple(row[c] for c in columns): row for row in rows}
    assert len(table) == len(rows), f"{path}: rows share a key"
    return table


def same_rows(name, ours, theirs):
    if set(ours) != set(theirs):
        wrong.append(f"{name}: {len(theirs)} rows, second implementation {len(ours)}; "
                     f"first difference {sorted(set(ours) ^ set(theirs))[:1]}")
    return [k for k in ours if k in theirs]


def rates(groups, limit):
    """key -> (trajectories, correct, with instructions, best of each solved trajectory)"""
    result = {}
    for key, trajectories in groups.items():
        bests, arch = [], 0
        for turns in trajectories.values():
            good = [t for t in turns if t.correct and t.number < limit]
            if good:
                bests.append(max(t.speedup for t in good))
            arch += any(t.arch for t in good)
        result[key] = (len(trajectories), len(bests), arch, bests)
    return result


def check_rates(folder, groups, root):
    columns = ("model", "arch", "definition", "workload", "run", "turns")
    table = by_key(folder / "rates.csv", columns)
    statistics = by_key(folder / "statistics.csv", columns)
    published = by_key(root / "examples/published/rates.csv", columns)
    ours = {(*key, str(limit)): value for limit in LIMITS for key, value in rates(groups, limit).items()}
    same_rows("rates", ours, table), same_rows("published", ours, published)
    differ = set()
    for key in same_rows("statistics", ours, statistics):
        n, correct, arch, bests = ours[key]
        row, stat, agg = table[key], statistics[key], published[key]
        best = max(bests, default=0.0)
        for column, value in (("n_trajectories", n), ("correct", correct), ("correctness_rate", correct / n),
                              ("correct_with_arch", arch), ("correct_with_arch_rate", arch / n),
                              ("best_speedup", best)):
            same("rates", key, column, value, row[column])
        same("published", key, "n_trajectories", n, agg["n_trajectories"])
        same("published", key, "correct", correct, agg["correct"])
        if abs(float(agg["correctness_rate"]) - float(row["correctness_rate"])) > 1e-6:
            wrong.append(f"published {key}: correctness rate")
        # The aggregates carry nine digits.
        if abs(float(agg["best_speedup"]) - float(row["best_speedup"])) > 1e-8 * max(1, best):
            wrong.append(f"published {key}: best speed-up")
        checked["published"] += 2
        if agg["correct_with_arch"] != row["correct_with_arch"]:
            differ.add((key[4], key[5]))
        check_statistics(key, n, correct, arch, bests, stat)
    if differ != EXCEPTIONS:
        wrong.append(f"instruction rates differ from the published ones in {sorted(differ)}")
    notes = (folder / "problems.csv").read_text(encoding="utf-8")
    for run, turns in EXCEPTIONS:
        if not re.search(rf"published-differs.*'{run}' at {turns} turns", notes):
            wrong.append(f"the report's notes do not name {run} at {turns} turns")


def check_statistics(key, n, correct, arch, bests, stat):
    for prefix, count in (("correctness", correct), ("correct_with_arch", arch)):
        low, high = float(stat[prefix + "_low"]), float(stat[prefix + "_high"])
        p = count / n
        checked["statistics"] += 2
        if not (low <= p <= high and on_wilson_border(p, n, low) and on_wilson_border(p, n, high)):
            wrong.append(f"statistics {key}: {prefix} interval {low} to {high} of {count}/{n}")
    for k in (1, 2, 4, 8):
        expected = None if k > n else 1 - math.comb(n - correct, k) / math.comb(n, k)
        same("statistics", key, f"pass_at_{k}", expected, stat[f"pass_at_{k}"])
    for p in ("0.25", "0.5", "0.75", "1"):
        same("statistics", key, f"fast_{p}", sum(b > float(p) for b in bests) / n, stat[f"fast_{p}"])
    timed = [b for b in bests if b > 0]
    same("statistics", key, "solved_share", correct / n, stat["solved_share"])
    same("statistics", key, "timed", len(timed), stat["timed"])
    same("statistics", key, "geometric_mean_speedup", geometric(timed), stat["geometric_mean_speedup"])


def check_models(folder, groups):
    table = by_key(folder / "models.csv", ("model", "arch", "prompt"))
    tasks = defaultdict(lambda: defaultdict(list))
    for key, value in rates(groups, 8).items():
        tasks[key[0], key[1], ""][key[2], key[3]].append(value)
    turns = defaultdict(list)
    for key, trajectories in groups.items():
        turns[key[0], key[1], ""] += [t for ts in trajectories.values() for t in ts if t.correct]
    for key in same_rows("models", tasks, table):
        row, pooled = table[key], tasks[key]
        every = [v for values in pooled.values() for v in values]
        n = sum(v[0] for v in every)
        best = [max(b for v in values for b in v[3]) for values in pooled.values() if any(v[3] for v in values)]
        generic = [t for t in turns[key] if not t.arch]
        for column, value in (
                ("tasks", len(pooled)), ("solved", sum(any(v[1] for v in vs) for vs in pooled.values())),
                ("solved_with_arch", sum(any(v[2] for v in vs) for vs in pooled.values())),
                ("n_trajectories", n), ("correctness_rate", sum(v[1] for v in every) / n),
                ("correct_with_arch_rate", sum(v[2] for v in every) / n),
                ("geometric_mean_speedup", geometric(best)), ("best_speedup", max(best, default=None)),
                ("generic_share", len(generic) / len(turns[key]) if turns[key] else None)):
            same("models", key, column, value, row[column])


def check_progress(folder, groups):
    levels, steps, repairs = Counter(), Counter(), defaultdict(Counter)
    totals = Counter()
    for key, trajectories in groups.items():
        model = (key[0], key[1], "")
        for turns in trajectories.values():
            for t in turns:
                levels[(*model, str(t.number), t.level)] += 1
                totals[(*model, str(t.number))] += 1
            for here, there in zip(turns, turns[1:]):
                if there.number != here.number + 1:
                    continue
                steps[(*model, str(here.number), here.level, there.level)] += 1
                if here.correct:
                    continue
                count = repairs[(*model, here.label)]
                count["failed"] += 1
                count["repaired"] += there.correct
                known = "other" not in (here.level, there.level)
                count["advanced"] += there.correct or (
                    known and ORDER.index(there.level) > ORDER.index(here.level))
                count["repeated"] += here.label == there.label
                count["repaired_later"] += any(t.correct for t in turns if t.number > here.number)
    table = by_key(folder / "levels.csv", ("model", "arch", "prompt", "turn", "level"))
    for key in table:
        same("levels", key, "count", levels[key], table[key]["count"])
        same("levels", key, "share", levels[key] / totals[key[:4]], table[key]["share"])
    same("levels", "all", "turns", sum(levels.values()), str(sum(int(r["count"]) for r in table.values())))
    table = by_key(folder / "transitions.csv", ("model", "arch", "prompt", "turn", "from", "to"))
    for key in same_rows("transitions", steps, table):
        same("transitions", key, "count", steps[key], table[key]["count"])
    table = by_key(folder / "repairs.csv", ("model", "arch", "prompt", "label"))
    for key in same_rows("repairs", repairs, table):
        count = repairs[key]
        same("repairs", key, "failed", count["failed"], table[key]["failed"])
        for column in ("repaired", "advanced", "repeated", "repaired_later"):
            same("repairs", key, column, count[column] / count["failed"], table[key][column])


def check_tokens(folder, groups):
    table = by_key(folder / "tokens.csv", ("model", "arch", "prompt"))
    models = defaultdict(list)
    for key, trajectories in groups.items():
        models[key[0], key[1], ""] += trajectories.values()
    for key in same_rows("tokens", models, table):
        turns = [t for ts in models[key] for t in ts]
        solved = sum(any(t.correct for t in ts) for ts in models[key])
        pairs = [(sum(t.tokens for t in ts), max([t.speedup for t in ts if t.correct], default=0.0))
                 for ts in models[key]]
        for column, value in (
                ("turns", len(turns)), ("turns_with_tokens", len(turns)), ("mean", mean([t.tokens for t in turns])),
                ("median_correct", median([t.tokens for t in turns if t.correct])),
                ("median_failed", median([t.tokens for t in turns if not t.correct])),
                ("per_solved_trajectory", sum(t.tokens for t in turns) / solved if solved else None),
                ("rank_correlation", spearman(pairs))):
            same("tokens", key, column, value, table[key][column])


def check_sizes(folder, groups, names):
    table = by_key(folder / "sizes.csv", ("model", "arch", "prompt", "family"))
    families = defaultdict(lambda: defaultdict(list))
    for key, value in rates(groups, 8).items():
        family = re.sub(r"_(causal|[a-z]*\d\w*?)(?=_|$)", "", key[2])
        families[key[0], key[1], "", family][names[key[3], key[2]]].append(value)
    for key in same_rows("sizes", families, table):
        pooled = {task: (sum(v[1] for v in vs) / sum(v[0] for v in vs), [b for v in vs for b in v[3]])
                  for task, vs in families[key].items()}
        values = [rate for rate, _ in pooled.values()]
        best = [max(b) for _, b in pooled.values() if b]
        for column, value in (
                ("tasks", len(pooled)), ("solved", sum(r > 0 for r in values)), ("mean_rate", mean(values)),
                ("worst_rate", min(values)), ("best_rate", max(values)), ("spread", max(values) - min(values)),
                ("worst_speedup", min(best, default=None)), ("best_speedup", max(best, default=None))):
            same("sizes", key, column, value, table[key][column])
        for column, rate in (("worst_task", min(values)), ("best_task", max(values))):
            if pooled.get(table[key][column], (None,))[0] != rate:
                wrong.append(f"sizes {key}: {column} {table[key][column]}")


def check_dates(folder, groups):
    table = by_key(folder / "dates.csv", ("model", "arch", "definition", "run"))
    ptx = {"hopper": date(2022, 10, 5), "blackwell": date(2025, 1, 31)}
    library = {"hopper": date(2024, 7, 11), "blackwell": date(2025, 6, 30)}
    ours = {(k[0], k[1], k[2], k[4]): v for k, v in rates(groups, 8).items()}
    for key in same_rows("dates", ours, table):
        row = table[key]
        released = date.fromisoformat(row["model_date"])
        same("dates", key, "days_after_ptx", (released - ptx[key[1]]).days, row["days_after_ptx"])
        attention = None if key[2].startswith("gemm") else (released - library[key[1]]).days
        same("dates", key, "days_after_attention", attention, row["days_after_attention"])
        same("dates", key, "correctness_rate", ours[key][1] / ours[key][0], row["correctness_rate"])
        same("dates", key, "best_speedup", max(ours[key][3], default=0.0), row["best_speedup"])


def check_comparisons(folder, groups):
    table = by_key(folder / "comparisons.csv", ("a", "b", "arch"))
    models = defaultdict(lambda: defaultdict(list))
    for key, value in rates(groups, 8).items():
        models[key[0], key[1]][key[2], key[3]].append(value)
    pairs = {(a, b, arch) for a, arch in models for b, other in models
             if arch == other and a < b and models[a, arch].keys() & models[b, arch].keys()}
    for key in same_rows("comparisons", pairs, table):
        a, b = models[key[0], key[2]], models[key[1], key[2]]
        common = sorted(a.keys() & b.keys())
        rate = [[sum(v[1] for v in m[t]) / sum(v[0] for v in m[t]) for t in common] for m in (a, b)]
        best = [[max([x for v in m[t] for x in v[3]], default=0) for t in common] for m in (a, b)]
        timed = [(x, y) for x, y in zip(*best) if x > 0 and y > 0]
        differences = [x - y for x, y in zip(*rate)]
        wins, losses = sum(d > 1e-12 for d in differences), sum(d < -1e-12 for d in differences)
        faster, slower = sum(x > y for x, y in timed), sum(x < y for x, y in timed)
        for column, value in (
                ("tasks", len(common)), ("rate_a", mean(rate[0])), ("rate_b", mean(rate[1])),
                ("difference", mean(rate[0]) - mean(rate[1])), ("wins", wins), ("losses", losses),
                ("ties", len(common) - wins - losses), ("p", sign_p(wins, losses)), ("solved_both", len(timed)),
                ("speedup_ratio", geometric([x / y for x, y in timed])), ("faster", faster), ("slower", slower),
                ("p_speedup", sign_p(faster, slower))):
            same("comparisons", key, column, value, table[key][column])
        check_bootstrap(key, differences, table[key])


def check_bootstrap(key, differences, row):
    """Another random sequence gives nearly the same interval: within 12 % of the differences' range."""
    if len(differences) < 2:
        same("comparisons", key, "difference_low", None, row["difference_low"])
        return
    draw = random.Random(1)
    means = sorted(mean(draw.choices(differences, k=len(differences))) for _ in range(1000))
    slack = 0.12 * (max(differences) - min(differences)) + 1e-12
    checked["comparisons"] += 2
    for column, value in (("difference_low", means[25]), ("difference_high", means[974])):
        if abs(float(row[column]) - value) > slack:
            wrong.append(f"comparisons {key}: {column} {row[column]}, second implementation {value}")


def check_turns(program, folder, root):
    """The written turns are the source's turns, and importing them again gives the same rates."""
    with gzip.open(root / "examples/published/turns.csv.gz", "rt", encoding="utf-8", newline="") as file:
        source = list(csv.DictReader(file))
    columns = ("run", "model", "arch", "definition", "workload", "trajectory_id", "turn")
    written = by_key(folder / "turns.csv", columns)
    same("turns", "all", "rows", len(source), str(len(written)))
    for row in source:
        other = written[tuple(row[c] for c in columns)]
        for column in ("correctness", "arch_tag", "reasoning_token_source", "workload_name"):
            same("turns", columns, column, row[column], other[column])
        same("turns", columns, "speedup", float(row["speedup"]), other["speedup"])
        same("turns", columns, "tokens", int(row["reasoning_tokens"]), other["reasoning_tokens"])
    again = folder / "again"
    report(program, folder / "turns.csv", again)
    same("turns", "again", "rates", (folder / "rates.csv").read_text(), (again / "rates.csv").read_text())


def report(program, source, folder):
    subprocess.run([program, "report", source, "--csv", folder], check=True, stdout=subprocess.DEVNULL)


def main(program, root):
    groups, names = read_turns(root)
    with tempfile.TemporaryDirectory() as temporary:
        folder = Path(temporary) / "csv"
        report(program, root / "examples/published/turns.csv.gz", folder)
        check_rates(folder, groups, root)
        check_models(folder, groups)
        check_progress(folder, groups)
        check_tokens(folder, groups)
        check_sizes(folder, groups, names)
        check_dates(folder, groups)
        check_comparisons(folder, groups)
        check_turns(program, folder, root)
    least = {"rates": 1890, "published": 1260, "statistics": 3000, "models": 150, "levels": 2000,
             "transitions": 1700, "repairs": 450, "tokens": 100, "sizes": 400, "dates": 400,
             "comparisons": 1000, "turns": 80000}
    for table, number in least.items():
        if checked[table] < number:
            wrong.append(f"{table}: only {checked[table]} values compared, expected {number}")
    print(", ".join(f"{t} {n}" for t, n in sorted(checked.items())), "values compared")
    for line in wrong[:20]:
        print("WRONG", line)
    if wrong:
        print(f"{len(wrong)} differences")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1], Path(sys.argv[2])))
