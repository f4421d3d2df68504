#!/usr/bin/env python3
"""What PyTorch, eager and compiled, takes for the work of te_bench's operations.

    compare_torch.py [--rows N] [--cols N] [--rounds N]

Same bytes, same method (rotating buffers, CUDA events, medians), delayed scaling (the scale is given).
Prints one line an operation; "failed" with the reason where PyTorch cannot.
"""
import argparse
import statistics
import sys

import torch
import torch.nn.functional as F

FP8 = torch.float8_e4m3fn


def cast(x, scale):
    f = x.float()
    return (f * scale).clamp(-448, 448).to(FP8), f.abs().amax()


def cast_transpose(x, scale):
    q, amax = cast(x, scale)
    return q, q.t().contiguous(), amax


def cast_transpose_dbias(x, scale):
    return (*cast_transpose(x, scale), x.float().sum(0))


def cast_transpose_dbias_dgelu(dy, x, scale):
    u = 0.7978845608 * (x.float() + 0.044715 * x.float() ** 3)
    t = torch.tanh(u)
    du = 0.7978845608 * (1 + 3 * 0.044715 * x.float() ** 2)
    d = dy.float() * (0.5 * (1 + t) + 0.5 * x.float() * (1 - t * t) * du)
    q = (d * scale).clamp(-448, 448).to(FP8)
    return q, q.t().contiguous(), d.abs().amax(), d.sum(0)


def gelu_cast_transpose(x, scale):
    return cast_transpose(F.gelu(x.float(), approximate="tanh"), scale)


def layernorm_cast_transpose(x, gamma, beta, scale):
    return cast_transpose(F.layer_norm(x, (x.shape[1],), gamma, beta), scale)


def rmsnorm_cast_transpose(x, gamma, scale):
    return cast_transpose(F.rms_norm(x, (x.shape[1],), gamma), scale)


def median_us(run, sets, rounds):
    run(0)
    torch.cuda.synchronize()
    times = []
    for _ in range(rounds):
        start, stop = torch.cuda.Event(enable_timing=True), torch.cuda.Event(enable_timing=True)
        start.record()
        for i in range(10):
            run(i % sets)
        stop.record()
        stop.synchronize()
        times.append(start.elapsed_time(stop) * 100)
    return statistics.median(times)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--rows", type=int, default=8192)
    parser.add_argument("--cols", type=int, default=4096)
    parser.add_argument("--rounds", type=int, default=15)
    args = parser.parse_args()
    if not torch.cuda.is_available():
        print("compare_torch: no GPU", file=sys.stderr)
        return 2
    rows, cols, sets = args.rows, args.cols, 4
    print(f"PyTorch {torch.__version__}, {torch.cuda.get_device_name()}")
    xs = [torch.randn(rows, cols, device="cuda", dtype=torch.bfloat16) for _ in range(sets)]
    ys = [torch.randn(rows, cols, device="cuda", dtype=torch.bfloat16) for _ in range(sets)]
    gamma = torch.randn(cols, device="cuda", dtype=torch.bfloat16)
    scale = torch.tensor(16.0, device="cuda")
    n = rows * cols
    work = [
        ("cast+transpose", 4 * n, cast_transpose, lambda i: (xs[i], scale)),
        ("cast+transpose+dbias", 4 * n, cast_transpose_dbias, lambda i: (xs[i], scale)),
        ("cast+transpose+dbias+dgelu", 6 * n, cast_transpose_dbias_dgelu, lambda i: (ys[i], xs[i], scale)),
        ("gelu+cast+transpose", 4 * n, gelu_cast_transpose, lambda i: (xs[i], scale)),
        ("layernorm to FP8+transpose", 4 * n, layernorm_cast_transpose, lambda i: (xs[i], gamma, gamma, scale)),
        ("rmsnorm to FP8+transpose", 4 * n, rmsnorm_cast_transpose, lambda i: (xs[i], gamma, scale)),
    ]
    for name, size, function, arguments in work:
        for how in ("eager", "compiled"):
            try:
                f = torch.compile(function, dynamic=False) if how == "compiled" else function
                us = median_us(lambda i: f(*arguments(i)), sets, args.rounds)
                print(f"{name:<28} {how:<9} {us:9.2f} us {size / us / 1e3:8.0f} GB/s", flush=True)
            except Exception as error:  # what PyTorch cannot compile is a result too
                print(f"{name:<28} {how:<9} failed: {str(error).splitlines()[0][:120]}", flush=True)
    for bf16_copy in (False, True):
        p = torch.nn.Parameter(torch.randn(n, device="cuda"))
        p.grad = torch.randn(n, device="cuda")
        low = torch.empty(n, device="cuda", dtype=torch.bfloat16)
        adamw = torch.optim.AdamW([p], fused=True)

        def step(_):
            adamw.step()
            if bf16_copy:
                low.copy_(p)

        us = median_us(step, 1, args.rounds)
        size = n * (28 + (6 if bf16_copy else 0))
        name = "AdamW fp32" + (" + bf16 copy" if bf16_copy else "")
        print(f"{name:<28} {'fused':<9} {us:9.2f} us {size / us / 1e3:8.0f} GB/s", flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())
