#!/usr/bin/env python3
"""Makes one table of the lines that bench/cuda_bench and tools/torch_linear_bench.py print: usage linear_table.py FILE...

The floor is what an H200 needs at least: the bytes at 4.3 TB/s or the arithmetic at 790 TFLOP/s.
"""
import sys

KERNELS = ("skinny", "cublasLt", "torch")


def read(paths):
    times = {}
    for path in paths:
        for line in open(path, encoding="utf-8"):
            fields = line.rstrip("\n").split("\t")
            if len(fields) >= 6:
                m, n, k, layout, kernel, time_us = fields[:6]
                times.setdefault((int(m), int(n), int(k), layout), {})[kernel] = float(time_us)
    return times


def floor_us(m, n, k):
    return max(2 * (m * k + n * k + m * n) / 4.3e6, 2 * m * n * k / 790e6)


def row(shape, times):
    m, n, k, layout = shape
    ours = [times[kernel] for kernel in KERNELS[:2] if kernel in times]
    ratio = f"{times['torch'] / min(ours):.2f}x" if ours and "torch" in times else "-"
    cells = [f"{times[kernel]:.1f}" if kernel in times else "-" for kernel in KERNELS]
    return [f"{m}x{n}x{k}", layout, *cells, f"{floor_us(m, n, k):.1f}", ratio]


def main(paths):
    rows = [["m x n x k", "b", *KERNELS, "floor", "torch/ours"]]
    rows += [row(shape, times) for shape, times in read(paths).items()]
    widths = [max(len(line[i]) for line in rows) for i in range(len(rows[0]))]
    print("bf16 linear, microseconds on the device, cold L2, median")
    for line in rows:
        print("  ".join(cell.ljust(width) if i < 2 else cell.rjust(width)
                        for i, (cell, width) in enumerate(zip(line, widths))))
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
