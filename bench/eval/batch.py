#!/usr/bin/env python3
"""How fast a folder of smoke candidates is judged when their builds are cached, and what the harness costs.

Writes CANDIDATES FlashInfer solutions of the expert GEMM, which share BUILDS different sources (a compilation
takes seconds, and this is not about compilers), compiles each source once, then times `eval FOLDER --jobs N`.
Prints the wall time, the median of every stage, and the overhead: what is neither compiler nor device. Fails
only where a candidate is not judged; speed is printed, not demanded.
"""
import argparse
import json
import pathlib
import re
import statistics
import subprocess
import sys
import tempfile
import time

ROOT = pathlib.Path(__file__).resolve().parents[2]
TASK = "gemm_n7168_k5120"
# Compiler and device; host passes and device passes run side by side, so their sum is no wall time.
NOT_HARNESS = ("compile", "assemble", "replay", "ghost", "held")


def solution(number: int, build: int, source: str) -> dict:
    return {"name": f"sibling-{number}", "definition": TASK,
            "spec": {"language": "cuda", "binding": "tvm-ffi", "entry_point": "kernel.cu::run",
                     "destination_passing_style": True},
            "sources": [{"path": "kernel.cu", "content": f"{source}\n// sibling {build}\n"}]}


def evaluate(program: str, folder: pathlib.Path, jobs: int) -> tuple[float, list[dict]]:
    lines = folder.parent / "verdicts.jsonl"
    begin = time.monotonic()
    run = subprocess.run([program, "eval", str(folder), "--task", TASK, "--workload", "smoke", "--jobs", str(jobs),
                          "--quiet", "--json", str(lines)], stdout=subprocess.PIPE, text=True, check=False)
    seconds = time.monotonic() - begin
    results = [json.loads(line) for line in lines.read_text().splitlines()]
    broken = [r for r in results if "verdict" not in r]
    if run.returncode == 2 or broken or not results:
        sys.exit(f"batch.py: not judged: {broken[:1] or run.stdout[-500:]}")
    return seconds, [r["verdict"] for r in results]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--candidates", type=int, default=200)
    parser.add_argument("--builds", type=int, default=4)
    parser.add_argument("--jobs", type=int, default=2)
    parser.add_argument("--program", default=str(ROOT / "build/bin/ptxbench"))
    options = parser.parse_args()
    answer = (ROOT / "examples/candidates/gemm_bf16.md").read_text()
    source = re.findall(r"```(?:cuda|cpp|c\+\+)\n(.*?)```", answer, re.S)[-1]
    with tempfile.TemporaryDirectory() as temporary:
        root = pathlib.Path(temporary)
        for name, count in (("warm", options.builds), ("all", options.candidates)):
            (root / name).mkdir()
            for i in range(count):
                text = json.dumps(solution(i, i % options.builds, source))
                (root / name / f"sibling_{i:04}.json").write_text(text)
        cold, _ = evaluate(options.program, root / "warm", options.jobs)
        seconds, verdicts = evaluate(options.program, root / "all", options.jobs)
    stages: dict[str, list[float]] = {}
    overhead = []
    for verdict in verdicts:
        for stage in verdict["stages"]:
            stages.setdefault(stage["name"], []).append(stage["ms"])
        overhead.append(sum(s["ms"] for s in verdict["stages"] if not s["name"].startswith(NOT_HARNESS)))
    levels = sorted({verdict["level"] for verdict in verdicts})
    print(f"{options.builds} builds, cold: {cold:.1f} s")
    print(f"{len(verdicts)} candidates, builds cached, --jobs {options.jobs}: {seconds:.1f} s; levels {levels}")
    for name, values in stages.items():
        print(f"  {name:<16} median {statistics.median(values):8.1f} ms   most {max(values):8.1f} ms")
    print(f"harness without compilers and device: median {statistics.median(overhead):.1f} ms, most {max(overhead):.1f} ms")


if __name__ == "__main__":
    main()
