#!/usr/bin/env python3
"""Times PyTorch's linear as bench/cuda_bench times our kernels: bf16, L2 overwritten before each run, median.

Prints the same lines: m n k layout kernel microseconds, tab-separated. The shapes are read from the lines of
cuda_bench, so that both tables have the same rows: usage torch_linear_bench.py CUDA_BENCH_OUTPUT.
"""
import sys

try:
    import torch
except ImportError:
    print("torch_linear_bench: PyTorch is not installed", file=sys.stderr)
    sys.exit(0)

REPEATS = 200


def shapes_in(path):
    rows = [line.split("\t")[:4] for line in open(path, encoding="utf-8") if "\t" in line and line[0] != "#"]
    return list(dict.fromkeys((int(m), int(n), int(k), layout) for m, n, k, layout in rows))


def median_us(call, flush):
    for _ in range(10):
        call()
    pairs = []
    for _ in range(REPEATS):
        begin, end = torch.cuda.Event(enable_timing=True), torch.cuda.Event(enable_timing=True)
        flush()
        begin.record()
        call()
        end.record()
        pairs.append((begin, end))
    torch.cuda.synchronize()
    times = sorted(begin.elapsed_time(end) * 1000 for begin, end in pairs)
    return times[len(times) // 2]


def main(path):
    if not torch.cuda.is_available():
        print("torch_linear_bench: PyTorch sees no GPU", file=sys.stderr)
        return 0
    source = torch.rand(64 << 20, device="cuda")
    target = torch.empty_like(source)
    for m, n, k, layout in shapes_in(path):
        x = torch.rand(m, k, device="cuda").mul_(2).sub_(1).bfloat16()
        weight = torch.rand(*((n, k) if layout == "nt" else (k, n)), device="cuda").mul_(2).sub_(1).bfloat16()
        if layout == "nt":
            call = lambda: torch.nn.functional.linear(x, weight)
        else:
            call = lambda: x @ weight
        with torch.no_grad():
            time_us = median_us(call, lambda: target.copy_(source))
        print(f"{m}\t{n}\t{k}\t{layout}\ttorch\t{time_us:.2f}\t{torch.__version__}")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1]))
