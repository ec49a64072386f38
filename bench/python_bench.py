#!/usr/bin/env python3
"""What a call from Python costs, against NumPy and PyTorch in the same run, and what importing costs.

usage: python_bench.py [--json FILE]; needs the package on the path, NumPy, and PyTorch for its columns.
Each figure is the least of several batches, taken in turn so that a slow spell hits all alike.
"""

import argparse
import json
import platform
import statistics
import subprocess
import sys
import timeit

CALLS, ROUNDS = 20000, 15


def race(functions):
    """Nanoseconds of one call of each, less what an empty function costs."""
    best = dict.fromkeys(functions, float("inf"))
    timers = {name: timeit.Timer(function) for name, function in functions.items()}
    for _ in range(ROUNDS):
        for name, timer in timers.items():
            best[name] = min(best[name], timer.timeit(CALLS) / CALLS * 1e9)
    empty = best.pop("empty")
    return {name: time - empty for name, time in best.items()}


def import_ms():
    """Milliseconds of `import xpuruntime` in a fresh process, the median of several."""
    program = "import time; t = time.perf_counter(); import xpuruntime; print((time.perf_counter() - t) * 1e3)"
    run = [sys.executable, "-c", program]
    return statistics.median(float(subprocess.run(run, capture_output=True, text=True, check=True).stdout) for _ in range(9))


def functions_of(np, torch, add):
    a, b, out = np.arange(8, dtype=np.float32), np.ones(8, np.float32), np.empty(8, np.float32)
    functions = {
        "empty": lambda: None,
        "xrt.ops.add(numpy)": lambda: add(a, b),
        "xrt.ops.add(numpy, out=)": lambda: add(a, b, out=out),
        "numpy.add": lambda: np.add(a, b),
        "numpy.add(out=)": lambda: np.add(a, b, out=out),
    }
    if torch is not None:
        x, y, z = torch.arange(8.0), torch.ones(8), torch.empty(8)
        functions |= {
            "torch.add": lambda: torch.add(x, y),
            "torch.add(out=)": lambda: torch.add(x, y, out=z),
            "xrt.ops.add(torch)": lambda: add(x, y),
            "xrt.ops.add(torch, out=)": lambda: add(x, y, out=z),
        }
    return functions


def bounds(times, importing):
    """(what, measured, most) for each promise; most is None where there is only something to compare with."""
    yield "import, ms", importing, 150
    yield "numpy against numpy.add", times["xrt.ops.add(numpy)"] / times["numpy.add"], None
    yield "numpy with out= against numpy.add(out=)", times["xrt.ops.add(numpy, out=)"] / times["numpy.add(out=)"], None
    if "torch.add" in times:
        yield "numpy against torch.add", times["xrt.ops.add(numpy)"] / times["torch.add"], 1
        yield "numpy with out= against torch.add", times["xrt.ops.add(numpy, out=)"] / times["torch.add"], 0.5
        yield "torch against torch.add", times["xrt.ops.add(torch)"] / times["torch.add"], 1.5


def no_copies(np, xrt):
    """The address that a kernel sees is the caller's."""
    array, seen = np.zeros(8, np.float32), []

    def run(problem, inputs, outputs):
        seen.append((inputs[0].numpy().ctypes.data, outputs[0].numpy().ctypes.data))

    xrt.register_kernel("sees", "relu", run)
    out = np.empty_like(array)
    with xrt.with_policy(xrt.KernelPolicy(relu={"kernel": "sees", "mode": "force"})):
        xrt.ops.relu(array, out=out)
    xrt.unregister_kernel("sees", "relu")
    assert seen == [(array.ctypes.data, out.ctypes.data)], "an array was copied"


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--json", metavar="FILE", help="write the figures there too")
    arguments = parser.parse_args()
    importing = import_ms()
    import numpy as np

    try:
        import torch
    except ImportError:
        torch = None
    import xpuruntime as xrt

    no_copies(np, xrt)
    times = race(functions_of(np, torch, xrt.ops.add))
    print(f"Python {platform.python_version()}, NumPy {np.__version__}, PyTorch {getattr(torch, '__version__', 'not here')}")
    print("two arrays of 8 f32, ns a call")
    for name, time in times.items():
        print(f"  {name:28} {time:8.0f}")
    print(f"{'':41}{'measured':>9} {'at most':>8}")
    missed = 0
    for what, measured, most in bounds(times, importing):
        kept = most is None or measured <= most
        missed += not kept
        print(f"  {what:39}{measured:9.2f} {'' if most is None else most:8} {'' if kept else '  missed'}")
    print("contiguous arrays: no copies")
    if arguments.json:
        with open(arguments.json, "w", encoding="utf-8") as file:
            json.dump({"ns": times, "import_ms": importing}, file, indent=2)
    return 1 if missed else 0


if __name__ == "__main__":
    sys.exit(main())
