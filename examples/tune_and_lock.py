"""Measure the choices, keep them in a store, write them down as a lock, and replay the lock."""

import tempfile
from pathlib import Path

import numpy as np

import xpuruntime as xrt

problems = ["matmul(f32[64,64], f32[64,64])", "softmax(f32[64,64])"]
folder = Path(tempfile.mkdtemp())
xrt.use_store(folder / "store.sqlite")

# Every kernel that can run a problem is timed in turns against the others, after it agreed with the reference.
for result in xrt.tune(problems, budget_s=0.2, progress=False):
    print(f"{result.problem}: {result.chosen}, {result.because}")

# From now on measured times decide: the same store and policy give the same choice.
xrt.set_kernel_policy(strategy="best_performance")
x = np.ones((64, 64), np.float32)
print(xrt.explain("matmul", x, x).because)

# A lock is the list of decisions, for version control. Whoever replays it gets these kernels, or an error.
lock = xrt.record_lock(problems)
lock.save(folder / "kernels.lock")
print((folder / "kernels.lock").read_text())

with xrt.use_lock(folder / "kernels.lock"):
    xrt.ops.matmul(x, x)
    print(xrt.explain("matmul", x, x).level)
    try:
        xrt.ops.matmul(x[:32], x)
    except xrt.XpuRuntimeError as error:
        print(error)  # it is not in the lock: fail closed
