#!/usr/bin/env python3
"""Whole models: our session against ONNX Runtime's on the CPU.

usage: session_bench.py [--models NAME,...] [--threads N] [--level N] [--rounds N] [--packages FOLDER] [--json FILE]
Needs the package xpuruntime on the path, NumPy, onnx and onnxruntime; rapidocr-onnxruntime and silero-vad for the published
models, from --packages or the path. Each engine runs alone in a process of its own, as threads that spin hold a core, with the
same number of threads; the engines take turns, and the best median counts. First: loading and the first run. Memory: the most that
the process held, with Python and the engine in it.
"""

import argparse
import json
import math
import os
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import numpy as np

ENGINES = ("xpuruntime", "onnxruntime")
LEAST_SECONDS, LEAST_RUNS = 1.0, 5


def session_of(engine, path, threads, level):
    """A function from inputs to outputs, in the order of the model."""
    if engine == "xpuruntime":
        import xpuruntime as xrt

        model = xrt.load(path, policy=xrt.KernelPolicy(threads=threads),
                         execution=xrt.ExecutionPolicy(target="cpu", engine="native", optimize_level=level))
        return lambda inputs: list(model.run(inputs).values())
    import onnxruntime

    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads, options.inter_op_num_threads = threads, 1
    model = onnxruntime.InferenceSession(path, options, providers=["CPUExecutionProvider"])
    return lambda inputs: model.run(None, inputs)


def measure(engine, path, threads, level):
    """In a process of its own: what a run takes, as JSON on stdout, and the outputs in a file."""
    inputs = dict(np.load(path + ".inputs.npz"))
    start = time.perf_counter()
    run = session_of(engine, path, threads, level)
    outputs = run(inputs)
    first = time.perf_counter() - start
    np.savez(f"{path}.{engine}.npz", *outputs)
    run(inputs)
    times, begin = [], time.perf_counter()
    while len(times) < LEAST_RUNS or time.perf_counter() - begin < LEAST_SECONDS:
        start = time.perf_counter()
        run(inputs)
        times.append(time.perf_counter() - start)
    print(json.dumps({"ms": statistics.median(times) * 1e3, "least_ms": min(times) * 1e3, "first_ms": first * 1e3,
                      "peak_mb": peak_mb()}))


def peak_mb():
    """Of this process alone: what getrusage says is also its parent's from before it began."""
    status = Path("/proc/self/status").read_text(encoding="ascii")
    return int(status.split("VmHWM:")[1].split()[0]) / 1024


def asked(engine, path, options):
    """The same from a new process; {"why": text} where it fails."""
    command = [sys.executable, "-B", __file__, "--measure", engine, path, "--threads", str(options.threads), "--level", str(options.level)]
    done = subprocess.run(command, capture_output=True, text=True)
    lines = done.stdout.strip().splitlines()
    return json.loads(lines[-1]) if done.returncode == 0 else {"why": done.stderr.strip().splitlines()[-1]}


def better(one, other):
    """The best figures of two rounds."""
    if "why" in one or "why" in other:
        return one if "why" in one else other
    return {key: min(one[key], other[key]) for key in one}


def difference(path):
    """The largest difference of outputs, over the largest value."""
    outputs = [np.load(f"{path}.{engine}.npz") for engine in ENGINES]
    most = 0.0
    for name in outputs[0].files:
        ours, theirs = (np.asarray(one[name], np.float64) for one in outputs)
        most = max(most, float(np.max(np.abs(ours - theirs), initial=0) / max(np.max(np.abs(theirs), initial=0), 1e-30)))
    return most


def written(name, make, folder):
    """The path of the model and its inputs beside it."""
    if isinstance(make, tuple):
        path, inputs = str(make[0]), make[1]()
        copy = str(Path(folder, name + ".onnx"))
        os.symlink(path, copy)
        path = copy
    else:
        import onnx

        model, inputs = make()
        path = str(Path(folder, name + ".onnx"))
        onnx.save(model, path)
    np.savez(path + ".inputs.npz", **inputs)
    return path


def compare(path, options):
    figures = {engine: asked(engine, path, options) for engine in ENGINES}
    for _ in range(options.rounds - 1):
        figures = {engine: better(one, asked(engine, path, options)) for engine, one in figures.items()}
    if not any("why" in one for one in figures.values()):
        figures["ratio"] = figures["onnxruntime"]["ms"] / figures["xpuruntime"]["ms"]
        figures["difference"] = difference(path)
    return figures


def row(name, figures):
    ours, theirs = (figures[engine] for engine in ENGINES)
    if "ratio" not in figures:
        return f"{name:10} " + "; ".join(f"{engine}: {figures[engine]['why']}" for engine in ENGINES if "why" in figures[engine])
    return (f"{name:10} {ours['ms']:9.2f} {theirs['ms']:9.2f} {figures['ratio']:7.2f}x {ours['first_ms']:9.0f} {theirs['first_ms']:9.0f} "
            f"{ours['peak_mb']:8.0f} {theirs['peak_mb']:8.0f}   {figures['difference']:.1e}")


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--models", default="")
    parser.add_argument("--threads", type=int, default=os.cpu_count())
    parser.add_argument("--level", type=int, default=2)
    parser.add_argument("--rounds", type=int, default=2)
    parser.add_argument("--packages", default="")
    parser.add_argument("--json", default="")
    parser.add_argument("--keep", default="", help="a folder for the models")
    parser.add_argument("--measure", nargs=2)
    options = parser.parse_args()
    if options.measure:
        return measure(*options.measure, options.threads, options.level)
    import session_models

    models = {**session_models.published([options.packages, *sys.path]), **session_models.made()}
    names = options.models.split(",") if options.models else list(models)
    if unknown := [name for name in names if name not in models]:
        sys.exit(f"session_bench: no model {', '.join(unknown)}; there are {', '.join(models)}")
    print(f"{options.threads} threads, level {options.level}; ratio: ONNX Runtime's time over ours, above 1 ours is faster")
    print(f"{'model':10} {'ours ms':>9} {'ORT ms':>9} {'ratio':>8} {'first ms':>9} {'ORT':>9} {'peak MB':>8} {'ORT':>8}   difference")
    found = {}
    with tempfile.TemporaryDirectory() as folder:
        if options.keep:
            folder = options.keep
            os.makedirs(folder, exist_ok=True)
        for name in names:
            found[name] = compare(written(name, models[name], folder), options)
            print(row(name, found[name]), flush=True)
    ratios = [figures["ratio"] for figures in found.values() if "ratio" in figures]
    mean = math.exp(statistics.fmean(map(math.log, ratios))) if ratios else None
    if ratios:
        print(f"geometric mean of {len(ratios)}: {mean:.2f}x, least {min(ratios):.2f}x")
    if options.json:
        Path(options.json).write_text(json.dumps({"version": 1, "threads": options.threads, "level": options.level,
                                                  "geometric_mean": mean, "models": found}, indent=1) + "\n", encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())
