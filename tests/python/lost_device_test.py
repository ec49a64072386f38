"""A GPU that is lost: a kernel read a bad address. Each case in a process of its own, whose GPU stays lost."""

from __future__ import annotations

import pathlib
import subprocess
import sys
import tempfile
import unittest
import warnings

import xpuruntime as xrt

with warnings.catch_warnings():
    warnings.simplefilter("ignore")
    try:
        import torch
    except ImportError:
        torch = None

HAS_GPU = "cuda:0" in [str(device) for device in xrt.devices()] and torch is not None and torch.cuda.is_available()

# The planted kernel's work fails on the device, after it has returned.
PLANTED = """
import sys, numpy, torch
import xpuruntime as xrt

calls = 0

@xrt.register_kernel("planted", "relu", device="cuda", version="1")
def planted(problem, inputs, outputs):
    global calls
    calls += 1
    torch.zeros(8, device="cuda")[torch.full((1,), 1 << 20, device="cuda")]

def lost(call):
    try:
        call()
    except xrt.DeviceLostError as error:
        assert "device-side assert" in str(error) and "has lost the device" in str(error), error
        return
    raise AssertionError("no DeviceLostError")

x = torch.ones(64, 64, device="cuda")
on_cpu = numpy.ones((4, 4), numpy.float32)
xrt.ops.add(x, x)  # decided and run before
torch.cuda.synchronize()
"""

CALLED = PLANTED + """
try:
    xrt.ops.relu(x)
except xrt.DeviceLostError:
    pass
lost(xrt.cuda.synchronize)
for _ in range(3):
    lost(lambda: xrt.ops.add(x, x))
assert calls == 1, calls
"""

TUNED = PLANTED + """
xrt.use_store(sys.argv[1])
lost(lambda: xrt.tune("relu(f32[64,64]) @cuda:0"))
"""

AFTERWARDS = """
assert xrt.quarantined() == [], xrt.quarantined()
assert (xrt.ops.matmul(on_cpu, on_cpu) == 4).all()
"""


@unittest.skipUnless(HAS_GPU, "no PyTorch with a GPU here")
class LostDeviceTest(unittest.TestCase):
    def run_there(self, program: str, *arguments: str) -> None:
        done = subprocess.run([sys.executable, "-c", program + AFTERWARDS, *arguments], capture_output=True, text=True, timeout=300)
        self.assertEqual(done.returncode, 0, done.stdout + done.stderr)

    def test_calls_raise_one_error_and_the_cpu_goes_on(self) -> None:
        self.run_there(CALLED)

    def test_nothing_is_stored_when_it_is_lost_while_tuning(self) -> None:
        with tempfile.TemporaryDirectory() as folder:
            store = pathlib.Path(folder, "store.sqlite")
            self.run_there(TUNED, str(store))
            self.assertEqual(xrt.open_store(store).read()["environments"], [])


if __name__ == "__main__":
    unittest.main()
