#!/usr/bin/env python3
"""Whole models: our sessions, by each engine, against ONNX Runtime's on the CPU.

usage: session_bench.py [--models NAME,...] [--threads N] [--level N] [--rounds N] [--only native] [--packages FOLDER] [--json FILE]
Needs the package xpuruntime on the path, NumPy, onnx and onnxruntime; openvino for that engine; rapidocr-onnxruntime and silero-vad
for the published models, from --packages or the path. Each engine runs alone in a process of its own, as threads that spin hold a
core, with the same number of threads; the engines take turns, and the best median counts.

runs     native: our own kernels. ORT: the package onnxruntime alone, with its default options. ratio: ORT's time over native's.
peak     the most that the process held, with Python and the engine in it.
engines  sessions of ours by each engine; auto: by the one that `tune_engines` found in a process before, and took. behind: how far auto is
         behind the best of the others. over ORT: ORT's time over auto's.
starts   from loading to the first result, in a new process: with an empty cache, and with what the first one kept.
a node   what each node of a chain of Neg on one element takes with its kernel: alike, and of ranks that change from node to node.
"""

import argparse
import json
import math
import os
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import numpy as np

PEERS = ("native", "ORT")
ENGINES = ("native", "onnxruntime", "openvino")
LEAST_SECONDS, LEAST_RUNS = 1.0, 5


def session_of(engine, path, threads, level):
    """A function from inputs to outputs, in the order of the model, and one to the engine that runs it."""
    if engine != "ORT":
        import xpuruntime as xrt

        model = xrt.load(path, policy=xrt.KernelPolicy(threads=threads),
                         execution=xrt.ExecutionPolicy(target="cpu", engine=engine, optimize_level=level))
        return lambda inputs: list(model.run(inputs).values()), lambda: model.engine
    import onnxruntime

    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads, options.inter_op_num_threads = threads, 1
    model = onnxruntime.InferenceSession(path, options, providers=["CPUExecutionProvider"])
    return lambda inputs: model.run(None, inputs), lambda: engine


def start(engine, path, threads, level):
    """In a process of its own: from loading to the first result."""
    inputs = dict(np.load(path + ".inputs.npz"))
    begin = time.perf_counter()
    run, taken = session_of(engine, path, threads, level)
    outputs = run(inputs)
    return inputs, run, outputs, {"first_ms": (time.perf_counter() - begin) * 1e3, "engine": taken()}


def measure(engine, path, threads, level):
    """In a process of its own: what a run takes, and the outputs in a file."""
    inputs, run, outputs, figures = start(engine, path, threads, level)
    np.savez(f"{path}.{engine}.npz", *outputs)
    run(inputs)
    times, begin = [], time.perf_counter()
    while len(times) < LEAST_RUNS or time.perf_counter() - begin < LEAST_SECONDS:
        now = time.perf_counter()
        run(inputs)
        times.append(time.perf_counter() - now)
    return {**figures, "ms": statistics.median(times) * 1e3, "least_ms": min(times) * 1e3, "peak_mb": peak_mb()}


def peak_mb():
    """Of this process alone: what getrusage says is also its parent's from before it began."""
    status = Path("/proc/self/status").read_text(encoding="ascii")
    return int(status.split("VmHWM:")[1].split()[0]) / 1024


def tune(path, threads, level):
    """Puts the fastest engine into the store."""
    import xpuruntime as xrt

    times = xrt.tune_engines(path, dict(np.load(path + ".inputs.npz")), policy=xrt.KernelPolicy(threads=threads),
                     execution=xrt.ExecutionPolicy(target="cpu", optimize_level=level), seconds=6)
    return {"text": str(times)}


def chain(folder, nodes, shapes):
    """A model of so many nodes in a row, on one element; each of the shapes comes up in an irregular order."""
    import onnx
    from onnx import TensorProto, helper

    random = np.random.default_rng(3)
    steps, value, rank = [], "x", 1
    for i in range(nodes):
        if len(shapes) > 1 and (wanted := int(random.choice(shapes))) != rank:
            steps.append(helper.make_node("Reshape", [value, f"shape{wanted}"], [f"r{i}"]))  # a view: no call
            value, rank = f"r{i}", wanted
        steps.append(helper.make_node("Neg", [value], [f"v{i}"]))
        value = f"v{i}"
    constants = [helper.make_tensor(f"shape{n}", TensorProto.INT64, [n], [1] * n) for n in shapes]
    ends = [helper.make_tensor_value_info("x", TensorProto.FLOAT, [1]), helper.make_tensor_value_info(value, TensorProto.FLOAT, None)]
    graph = helper.make_graph(steps, "chain", ends[:1], ends[1:], constants if len(shapes) > 1 else [])
    path = str(Path(folder, f"chain{nodes}x{len(shapes)}.onnx"))
    onnx.save(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8), path)
    return path


def node_cost(folder):
    """Nanoseconds: what a longer chain takes more than a shorter one, for each node that it has more."""
    import xpuruntime as xrt

    def seconds(path):
        model = xrt.load(path, execution=xrt.ExecutionPolicy(target="cpu", engine="native"))
        x, best = np.ones(1, np.float32), math.inf
        for _ in range(300):
            begin = time.perf_counter()
            model(x)
            best = min(best, time.perf_counter() - begin)
        return best

    few, many = 1000, 3000
    return {name: (seconds(chain(folder, many, shapes)) - seconds(chain(folder, few, shapes))) / (many - few) * 1e9
            for name, shapes in (("alike", (1,)), ("varied", (1, 2, 3, 4, 5, 6)))}


def asked(folder, *arguments):
    """What --measure prints in a new process; {"why": text} where it fails."""
    command = [sys.executable, "-B", __file__, "--measure", *map(str, arguments)]
    environment = {**os.environ, "XPURUNTIME_STORE": str(Path(folder, "store")), "XPURUNTIME_MODEL_CACHE": str(Path(folder, "cache"))}
    done = subprocess.run(command, capture_output=True, text=True, env=environment)
    lines = done.stdout.strip().splitlines()
    return json.loads(lines[-1]) if done.returncode == 0 else {"why": (done.stderr.strip().splitlines() or ["it ended"])[-1]}


def better(one, other):
    """The best figures of two rounds."""
    if "why" in one or "why" in other:
        return one if "why" in one else other
    return {key: min(one[key], other[key]) for key in one}


def difference(path):
    """The largest difference of outputs, over the largest value."""
    outputs = [np.load(f"{path}.{engine}.npz") for engine in PEERS]
    most = 0.0
    for name in outputs[0].files:
        ours, theirs = (np.asarray(one[name], np.float64) for one in outputs)
        most = max(most, float(np.max(np.abs(ours - theirs), initial=0) / max(np.max(np.abs(theirs), initial=0), 1e-30)))
    return most


def written(name, make, folder):
    """The path of the model and its inputs beside it."""
    path = str(Path(folder, name + ".onnx"))
    if isinstance(make, tuple):
        Path(path).unlink(missing_ok=True)
        os.symlink(os.path.abspath(make[0]), path)
        inputs = make[1]()
    else:
        import onnx

        model, inputs = make()
        onnx.save(model, path)
    np.savez(path + ".inputs.npz", **inputs)
    return path


def starts(engine, path, folder, options):
    """Milliseconds of the first start and of the second."""
    shutil.rmtree(Path(folder, "cache"), ignore_errors=True)
    return [asked(folder, "start", engine, path, options.threads, options.level).get("first_ms") for _ in range(2)]


def compare(path, folder, options):
    """All figures of one model, by engine."""
    engines = [*PEERS]
    if not options.only:
        engines += [*(engine for engine in ENGINES if engine not in PEERS), "auto"]
        asked(folder, "tune", "", path, options.threads, options.level)
    figures = {engine: asked(folder, "measure", engine, path, options.threads, options.level) for engine in engines}
    for _ in range(options.rounds - 1):
        figures = {engine: better(one, asked(folder, "measure", engine, path, options.threads, options.level))
                   for engine, one in figures.items()}
    for engine in engines:
        if engine not in ("ORT", "auto") and "why" not in figures[engine]:
            figures[engine]["starts_ms"] = starts(engine, path, folder, options)
    if not any("why" in figures[peer] for peer in PEERS):
        figures["ratio"] = figures["ORT"]["ms"] / figures["native"]["ms"]
        figures["difference"] = difference(path)
    ours = [figures[engine]["ms"] for engine in ENGINES if "ms" in figures.get(engine, {})]
    if ours and "ms" in figures.get("auto", {}):
        figures["behind"] = figures["auto"]["ms"] / min(ours) - 1
        figures["over_ort"] = figures["ORT"]["ms"] / figures["auto"]["ms"] if "ms" in figures["ORT"] else None
    return figures


def row(name, figures):
    ours, theirs = (figures[peer] for peer in PEERS)
    if "ratio" not in figures:
        return f"{name:10} " + "; ".join(f"{peer}: {figures[peer]['why']}" for peer in PEERS if "why" in figures[peer])
    return (f"{name:10} {ours['ms']:9.2f} {theirs['ms']:9.2f} {figures['ratio']:7.2f}x {ours['first_ms']:9.0f} {theirs['first_ms']:9.0f} "
            f"{ours['peak_mb']:8.0f} {theirs['peak_mb']:8.0f}   {figures['difference']:.1e}")


def engine_row(name, figures):
    """What our sessions take by each engine, and their starts."""
    one = [f"{figures[engine]['ms']:9.2f}" if "ms" in figures[engine] else f"{'-':>9}" for engine in (*ENGINES, "auto")]
    text = f"{name:10} " + " ".join(one)
    text += (f" {figures['auto']['engine']:>11} {figures['behind'] * 100:+7.1f}% {figures['over_ort']:8.2f}x" if figures.get("over_ort")
             else f" {'-':>11} {'-':>8} {'-':>9}")
    for engine in ENGINES:
        cold, warm = figures[engine].get("starts_ms", (None, None))
        text += f" {cold:7.0f} {warm:6.0f} {cold / warm:5.1f}x" if cold and warm else f" {'-':>7} {'-':>6} {'-':>6}"
    return text


def mean_of(numbers):
    return math.exp(statistics.fmean(map(math.log, numbers))) if numbers else None


def summary(found):
    """The figures of all models together."""
    def all_of(key):
        return [figures[key] for figures in found.values() if figures.get(key) is not None]

    ratios, over = all_of("ratio"), all_of("over_ort")
    pairs = [(figures["native"], figures["ORT"]) for figures in found.values() if "ratio" in figures]
    result = {"models": len(ratios), "geometric_mean": mean_of(ratios), "least": min(ratios, default=None),
              "auto_over_ort": mean_of(over), "auto_behind": max(all_of("behind"), default=None),
              "peak_over_ort": max((ours["peak_mb"] / theirs["peak_mb"] for ours, theirs in pairs), default=None)}
    for engine in ENGINES:
        pairs = [figures[engine]["starts_ms"] for figures in found.values() if "starts_ms" in figures.get(engine, {})]
        result[f"second_start_{engine}"] = mean_of([cold / warm for cold, warm in pairs if cold and warm])
    return result


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--models", default="")
    parser.add_argument("--threads", type=int, default=os.cpu_count())
    parser.add_argument("--level", type=int, default=3)
    parser.add_argument("--rounds", type=int, default=2)
    parser.add_argument("--only", choices=["native"], help="only native against ONNX Runtime")
    parser.add_argument("--packages", default="")
    parser.add_argument("--json", default="")
    parser.add_argument("--keep", default="", help="a folder for the models")
    parser.add_argument("--measure", nargs="+")
    options = parser.parse_args()
    if options.measure:
        return measured(*options.measure)
    import session_models

    models = {**session_models.published([options.packages, *sys.path]), **session_models.made()}
    names = options.models.split(",") if options.models else list(models)
    if unknown := [name for name in names if name not in models]:
        sys.exit(f"session_bench: no model {', '.join(unknown)}; there are {', '.join(models)}")
    print(f"{options.threads} threads, level {options.level}; ratio: ONNX Runtime's time over native's, above 1 native is faster")
    print(f"{'model':10} {'native ms':>9} {'ORT ms':>9} {'ratio':>8} {'first ms':>9} {'ORT':>9} {'peak MB':>8} {'ORT':>8}   difference")
    found = {}
    with tempfile.TemporaryDirectory() as folder:
        if options.keep:
            folder = options.keep
            os.makedirs(folder, exist_ok=True)
        for name in names:
            found[name] = compare(written(name, models[name], folder), folder, options)
            print(row(name, found[name]), flush=True)
        cost = asked(folder, "nodes", folder)
    if not options.only:
        print(f"\n{'ms':10} {'native':>9} {'onnxrt':>9} {'openvino':>9} {'auto':>9} {'took':>11} {'behind':>8} {'over ORT':>9}"
              f" {'first, second start: native':>24} {'onnxruntime':>21} {'openvino':>21}")
        for name in names:
            print(engine_row(name, found[name]))
    figures = summary(found)
    print()
    for key, value in {**figures, **{f"ns_a_node_{name}": value for name, value in cost.items()}}.items():
        print(f"{key.replace('_', ' '):28} " + (f"{value:.2f}" if isinstance(value, float) else str(value)))
    if options.json:
        Path(options.json).write_text(json.dumps({"version": 2, "threads": options.threads, "level": options.level, **figures,
                                                  "node": cost, "by_model": found}, indent=1) + "\n", encoding="utf-8")
    return 0


def measured(what, *arguments):
    """In a process of its own: one of the figures, as JSON on stdout."""
    if what == "nodes":
        figures = node_cost(arguments[0])
    else:
        engine, path, threads, level = arguments
        if what == "tune":
            figures = tune(path, int(threads), int(level))
        elif what == "start":
            figures = start(engine, path, int(threads), int(level))[-1]
        else:
            figures = measure(engine, path, int(threads), int(level))
    print(json.dumps(figures))
    return 0


if __name__ == "__main__":
    sys.exit(main())
