"""A published model as it is: does a line of text stand on its head? What runs each of its nodes, and a lock to ship.

The model comes with a package of the registry: pip install --no-deps rapidocr-onnxruntime==1.4.4
"""

import collections
import importlib.util
import pathlib
import sys
import tempfile

import numpy as np

import xpuruntime as xrt

package = importlib.util.find_spec("rapidocr_onnxruntime")
if package is None or not package.submodule_search_locations:
    sys.exit("the model is missing: pip install --no-deps rapidocr-onnxruntime==1.4.4")
path = pathlib.Path(package.submodule_search_locations[0]) / "models" / "ch_ppocr_mobile_v2.0_cls_infer.onnx"

# Two lines: the sizes are chosen in the run, and each set of them is made ready once.
model = xrt.load(path)
lines = np.random.default_rng(0).uniform(-1, 1, (2, 3, 48, 192)).astype(np.float32)
upright = model(lines)
print(f"upright, or on its head: {upright.round(3).tolist()}")

# What runs it: kernels by how often they were chosen, and why the first convolution got its one.
shapes = {"x": lines.shape}
calls = [(step.op, step.decision) for step in model.explain(shapes) if step.decision]
print(f"{len(calls)} calls: {collections.Counter(decision.kernel for _, decision in calls).most_common()}")
first = next(decision for op, decision in calls if op == "Conv")
print(f"{first.problem}\n  -> {first.kernel}: {first.because}")

# A lock to ship: the same choices, or an error; other sizes are other problems, which it does not have.
with tempfile.TemporaryDirectory() as folder:
    file = pathlib.Path(folder) / "kernels.lock"
    xrt.record_lock([decision.problem for _, decision in calls]).save(file)
    locked = xrt.load(path, lock=file)
    print(f"the same under the lock: {np.array_equal(locked(lines), upright)}")
    try:
        locked(lines[:1])
    except xrt.XpuRuntimeError as error:
        print(f"one line alone: {type(error).__name__}")
