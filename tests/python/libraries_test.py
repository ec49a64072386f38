"""OpenBLAS and oneDNN are the package's own, whatever else a process imports, and in whatever order."""

from __future__ import annotations

import functools
import importlib.util
import json
import os
import subprocess
import sys
import tempfile
import unittest
from typing import Any

from packages import need

need("numpy")

PROBLEMS = [
    "matmul(f64[96,96], f64[96,96]) @cpu:0",
    "linear(f32[32,256], f32[128,256]; activation=gelu) @cpu:0",
    "conv2d(f32[1,16,20,20], f32[16,16,3,3]; padding=1,1) @cpu:0",
]

# Imports what it is told, in that order, has each package do something, and says what it sees.
PROGRAM = """
import hashlib, importlib, json, sys, time, warnings
warnings.simplefilter("ignore")  # Debian's PyTorch warns about a newer NumPy
for name in sys.argv[3:]:
    importlib.import_module(name)
import numpy, xpuruntime as xrt

x = numpy.random.default_rng(0).standard_normal((256, 256))
x @ x
if "torch" in sys.modules:
    torch = sys.modules["torch"]
    torch.ones(256, 256) @ torch.ones(256, 256)
    torch.nn.functional.conv2d(torch.ones(1, 8, 9, 9), torch.ones(8, 8, 3, 3))
if "scipy.linalg" in sys.modules:
    sys.modules["scipy.linalg"].lu(x)

def settings():
    try:
        from threadpoolctl import threadpool_info
    except ImportError:
        return None
    return sorted((library["filepath"], library["version"], library["num_threads"]) for library in threadpool_info())

def helped():
    "Processor time of all threads but this one."
    return time.process_time() - time.thread_time()

def helpers_share(call):
    while True:  # until idle threads, which spin for a while, sleep
        before = helped()
        time.sleep(0.1)
        if helped() - before < 0.001:
            break
    others, own = helped(), time.thread_time()
    for _ in range(10):
        call()
    return (helped() - others) / (time.thread_time() - own)

theirs = settings()
answer = {"versions": xrt.device_profile().library_versions, "bits": {}, "helped": {}}
answer["decisions"] = [xrt.explain(problem).to_dict() for problem in json.loads(sys.argv[1])]
f32 = x.astype(numpy.float32)
for kernel in ("openblas", "onednn"):
    if kernel not in answer["versions"]:
        continue
    with xrt.with_policy(matmul={"kernel": kernel, "mode": "force"}, threads=1):
        answer["helped"][kernel] = helpers_share(lambda: xrt.ops.matmul(f32, f32)) > 0.2
        answer["bits"][kernel] = hashlib.sha256(xrt.ops.matmul(f32, f32).tobytes()).hexdigest()
result = xrt.verify_lock(xrt.KernelLock.load(sys.argv[2]))
answer["lock"] = [[entry.kernel, entry.outcome, entry.reason] for entry in result.results]
answer["theirs changed"] = [] if settings() == theirs else [theirs, settings()]
print(json.dumps(answer))
"""


def run(*command: str) -> str:
    done = subprocess.run(command, capture_output=True, text=True)
    if done.returncode != 0:
        raise AssertionError(f"{command[-1]}: {done.stdout[-2000:]}{done.stderr[-4000:]}")
    return done.stdout


@functools.cache
def seen(lock: str, *names: str) -> Any:
    """What the program says in a process of its own, after these imports."""
    return json.loads(run(sys.executable, "-c", PROGRAM, json.dumps(PROBLEMS), lock, *names))


@unittest.skipIf(os.environ.get("LD_PRELOAD"), "the runtime of a sanitizer comes before every library")
@unittest.skipUnless(os.environ.get("XRT"), "runs in the build tree")
class LibrariesTest(unittest.TestCase):
    maxDiff = None

    @classmethod
    def setUpClass(cls) -> None:
        folder = tempfile.TemporaryDirectory()
        cls.addClassCleanup(folder.cleanup)
        cls.lock = f"{folder.name}/kernels.lock"
        run(os.environ["XRT"], "lock", "record", *PROBLEMS, "--deterministic", "--out", cls.lock)

    def check(self, *names: str) -> None:
        for name in names:
            if importlib.util.find_spec(name.split(".")[0]) is None:
                self.skipTest(f"{name} is not installed")
        self.assertEqual(seen(self.lock, *names), seen(self.lock, "xpuruntime"))

    def test_alone_they_use_one_thread_and_take_the_commands_lock(self) -> None:
        alone = seen(self.lock, "xpuruntime")
        self.assertIn("openblas", alone["versions"])
        self.assertEqual(set(alone["helped"].values()), {False})
        self.assertEqual(alone["theirs changed"], [], "the thread counts of other packages' libraries")
        self.assertEqual([outcome for _, outcome, _ in alone["lock"]], ["same"] * len(PROBLEMS))

    def test_after_torch(self) -> None:
        self.check("torch", "xpuruntime")

    def test_before_torch(self) -> None:
        self.check("xpuruntime", "torch")

    def test_after_scipy(self) -> None:
        self.check("numpy", "scipy.linalg", "xpuruntime")

    def test_before_onnxruntime(self) -> None:
        self.check("xpuruntime", "onnxruntime")

    def test_after_all(self) -> None:
        self.check("onnxruntime", "numpy", "scipy.linalg", "torch", "xpuruntime")

    def test_before_all(self) -> None:
        self.check("xpuruntime", "torch", "scipy.linalg", "numpy", "onnxruntime")

    def test_between_all(self) -> None:
        self.check("scipy.linalg", "onnxruntime", "xpuruntime", "torch")


if __name__ == "__main__":
    unittest.main()
