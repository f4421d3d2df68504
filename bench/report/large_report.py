#!/usr/bin/env python3
"""What reports cost: the published turns, and 100,000 synthetic ones.

    .venv/bin/python bench/report/large_report.py build/bin/ptxbench [--turns N]

Prints seconds and bytes; the time until the page can be used is measured by the page itself, from the start of
the navigation in headless Chromium.
"""

import argparse
import csv
import random
import subprocess
import tempfile
import time
from pathlib import Path

LABELS = ["Correct", "Compilation error", "Runtime error", "Numerical error", "Kernel Execution Timeout"]
COLUMNS = ["model", "arch", "definition", "workload", "workload_name", "run", "trajectory_id", "turn",
           "reasoning_tokens", "correctness", "speedup", "arch_tag"]


def synthetic(path, turns):
    draw = random.Random(7)
    with open(path, "w", newline="") as file:
        out = csv.writer(file)
        out.writerow(COLUMNS)
        for trajectory in range(turns // 8):
            model, task = trajectory % 20, trajectory // 20 % 25
            for turn in range(8):
                label = draw.choices(LABELS, [1 + turn + model / 4, 8 - turn, 5, 4, 3])[0]
                correct = label == "Correct"
                out.writerow([f"model-{model}", "hopper", f"gemm_n{128 << task % 5}_k{task}", f"w{task}", f"task_{task}",
                              f"run-{model}", f"exp_{trajectory:05}", turn, draw.randrange(100, 90000), label,
                              draw.lognormvariate(-0.7, 0.4) if correct else 0.0, draw.choice(["H", "A", "A, H"]) if correct else ""])


def timed(*command):
    start = time.perf_counter()
    subprocess.run(command, check=True, stdout=subprocess.DEVNULL)
    return time.perf_counter() - start


def ready_ms(page):
    from selenium import webdriver
    options = webdriver.ChromeOptions()
    options.binary_location = "/usr/bin/chromium"
    for flag in ("--headless=new", "--no-sandbox", "--disable-gpu", "--window-size=1440,1000"):
        options.add_argument(flag)
    driver = webdriver.Chrome(service=webdriver.ChromeService(executable_path="/usr/bin/chromedriver"), options=options)
    try:
        times = {}
        for view in ("overview", "turns"):
            driver.get("about:blank")
            driver.get(f"{page.as_uri()}#view={view}")
            times[view] = driver.execute_async_script(
                "const done = arguments[0]; (function wait() { const m = performance.getEntriesByName('usable');"
                "m.length ? done(m[0].startTime) : setTimeout(wait, 20); })();")
        return times
    finally:
        driver.quit()


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("program")
    parser.add_argument("--turns", type=int, default=100_000)
    arguments = parser.parse_args()
    published = Path(__file__).resolve().parents[2] / "examples/published/turns.csv.gz"
    print(f"published turns, import and all metrics: {min(timed(arguments.program, 'report', published) for _ in range(3)):.2f} s")
    with tempfile.TemporaryDirectory() as folder:
        source, page = Path(folder) / "turns.csv", Path(folder) / "report.html"
        synthetic(source, arguments.turns)
        seconds = timed(arguments.program, "report", source, "--html", page)
        print(f"{arguments.turns} synthetic turns: report written in {seconds:.2f} s, {page.stat().st_size / 1e6:.1f} MB")
        for view, ms in ready_ms(page).items():
            print(f"usable {ms / 1e3:.2f} s after opening ({view})")


if __name__ == "__main__":
    main()
