#!/usr/bin/env python3
"""What goes wrong on the machine, provoked on a card: each case must end in one clear line and the right exit code.

    eval_trouble.py PTXBENCH PLANS TASKS OUT

No driver; a plan for another GPU; no free memory on the card; a worker that dies while the candidate is timed, in
which case what was known by then must be in the verdict.
"""
import ctypes
import json
import os
import subprocess
import sys
import time

program, plans, tasks, out = sys.argv[1:5]
GEMM = ["--task", "gemm_n4096_k4096", "--axes", "M=4096"]
SMOKE = ["--task", "gemm_n7168_k5120", "--workload", "smoke"]


def command(plan, arguments, name):
    return [program, "eval", "--device", "cuda", "--tasks", tasks, "--quiet", "--plan", f"{plans}/{plan}.plan",
            "--json", f"{out}/{name}.json", *arguments]


def workers(parent):
    found = []
    for pid in filter(str.isdigit, os.listdir("/proc")):
        try:
            stat = open(f"/proc/{pid}/stat").read()
        except OSError:
            continue
        if stat[stat.index("(") + 1:stat.rindex(")")] == "ptxbench-gpu" and int(stat.rsplit(")", 1)[1].split()[1]) == parent:
            found.append(int(pid))
    return sorted(found)


def check(name, good, text):
    print(f"{name:22} {'ok ' if good else 'BAD'} {text[:170]}")
    return good


def one_line(name, run, code, words):
    lines = run.stderr.strip().splitlines()
    good = run.returncode == code and len(lines) == 1 and all(w in lines[0] for w in words)
    return check(name, good, f"exit {run.returncode}: {lines[-1] if lines else '(nothing)'}")


def execute(plan, arguments, name, **environment):
    return subprocess.run(command(plan, arguments, name), env={**os.environ, **environment}, capture_output=True,
                          text=True, timeout=100)


def no_driver():
    run = execute("gemm_bf16.md.smoke", SMOKE, "no_driver", PTXBENCH_DRIVER="/nowhere/libcuda.so.1")
    return one_line("no driver", run, 2, ["no CUDA driver"])


def wrong_architecture():
    run = execute("other_gpu", [*SMOKE, "--arch", "sm_100a"], "wrong_architecture")
    return one_line("plan for sm_100a", run, 2, ["sm_100a", "9.0"])


def no_memory():
    cuda = ctypes.CDLL("libcuda.so.1")
    context, device, pointer = ctypes.c_void_p(), ctypes.c_int(), ctypes.c_uint64()
    free, total = ctypes.c_size_t(), ctypes.c_size_t()
    if cuda.cuInit(0) or cuda.cuDeviceGet(ctypes.byref(device), 0) or \
            cuda.cuDevicePrimaryCtxRetain(ctypes.byref(context), device) or cuda.cuCtxSetCurrent(context):
        return check("out of memory", False, "the card cannot be filled")
    cuda.cuMemGetInfo_v2(ctypes.byref(free), ctypes.byref(total))
    # A worker's context and its eviction buffer fit, the candidate's buffers do not.
    left = 1100 << 20
    while free.value > left:
        if cuda.cuMemAlloc_v2(ctypes.byref(pointer), ctypes.c_size_t(min(free.value - left, 8 << 30))):
            break
        cuda.cuMemGetInfo_v2(ctypes.byref(free), ctypes.byref(total))
    run = execute("mha_bwd_d128.S4096", ["--task", "mha_bwd_d128", "--axes", "S=4096"], "no_memory")
    good = one_line("out of memory", run, 2, ["too little free memory"])
    cuda.cuDevicePrimaryCtxReset_v2(device)
    return good


def lost_while_timed():
    """The candidate's and the library's workers are the ones that come after the reference's."""
    run = subprocess.Popen(command("gemm_bf16.md.M4096", [*GEMM, "--launches", "400"], "lost"), stdout=subprocess.DEVNULL,
                           stderr=subprocess.DEVNULL)
    killed, until = False, time.time() + 60
    while run.poll() is None and time.time() < until:
        found = workers(run.pid)
        if len(found) >= 3:
            time.sleep(1)
            os.kill(found[-2], 9)
            killed = True
            break
        time.sleep(0.01)
    run.wait(timeout=60)
    if not killed:
        return check("lost while timed", False, "no worker to kill was seen")
    verdict = json.load(open(f"{out}/lost.json"))
    good = verdict["level"] == 5 and verdict["performance"] is None and verdict["correctness"]["passed"] and \
        "not timed" in verdict["message"]
    return check("lost while timed", good, f"level {verdict['level']}: {verdict['message']}")


if __name__ == "__main__":
    results = [no_driver(), wrong_architecture(), lost_while_timed(), no_memory()]
    sys.exit(0 if all(results) else 1)
