"""Two OpenCL devices in one process, and an OpenCL device where things run short: each in a process of its own."""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
import unittest

import xpuruntime as xrt

HAS_OPENCL = "opencl:0" in [str(device) for device in xrt.devices()]

# PoCL makes as many devices of the processor as it is told to.
TWO_DEVICES = """
import threading
import numpy as np
import xpuruntime as xrt

devices = [str(device) for device in xrt.devices() if str(device).startswith("opencl")]
if devices != ["opencl:0", "opencl:1"]:
    print("skip: this OpenCL driver gives no two devices:", devices)
    raise SystemExit
SCALE = "__kernel void scale(__global float* x, float by) { x[get_global_id(0)] *= by; }"
scale = xrt.OpenclKernel("scale", SCALE)
wrong = []

def work(number):
    try:
        random = np.random.default_rng(number)
        for round in range(12):
            device = devices[(number + round) % 2]
            a, b = random.random((19, 23), np.float32), random.random((23, 17), np.float32)
            on_a = xrt.asarray(a).to(device)
            product = xrt.ops.matmul(on_a, xrt.asarray(b).to(device))
            rows = xrt.ops.softmax(on_a, dim=-1)
            scale(on_a, 2, global_size=19 * 23)
            assert str(product.device) == device, product.device
            np.testing.assert_allclose(product.to("cpu").numpy(), a @ b, rtol=1e-4)
            np.testing.assert_allclose(rows.to("cpu").numpy().sum(1), 1, rtol=1e-4)
            np.testing.assert_array_equal(on_a.to("cpu").numpy(), 2 * a)
            np.testing.assert_array_equal(on_a.to(devices[(number + round + 1) % 2]).to("cpu").numpy(), 2 * a)
    except BaseException as error:
        wrong.append(error)

threads = [threading.Thread(target=work, args=(number,)) for number in range(4)]
for thread in threads:
    thread.start()
for thread in threads:
    thread.join()
assert wrong == [], wrong

first, second = (xrt.asarray(np.ones(8, np.float32)).to(device) for device in devices)
two = xrt.OpenclKernel("two", "__kernel void two(__global float* x, __global float* y) { x[0] = y[0] + 6.0f; }")

def fails(call):
    try:
        call()
    except (ValueError, xrt.XpuRuntimeError) as error:
        assert "opencl:0" in str(error) and "opencl:1" in str(error), error
        return
    raise AssertionError("it ran")

fails(lambda: xrt.ops.add(first, second))
fails(lambda: xrt.ops.add(second, second, out=first))
fails(lambda: two(first, second, global_size=1))
for tensor in (first, second):
    assert (tensor.to("cpu").numpy() == 1).all()
    assert (xrt.ops.add(tensor, tensor).to("cpu").numpy() == 2).all()
"""

# All of a process's files are in use when a program is to be compiled, then they are closed.
NO_FILES = """
import resource
import numpy as np
import xpuruntime as xrt

x = xrt.asarray(np.ones((8, 64), np.float32)).to("opencl:0")
resource.setrlimit(resource.RLIMIT_NOFILE, (64, 64))
files = []
try:
    while True:
        files.append(open("/dev/null"))
except OSError:
    pass
try:
    xrt.ops.softmax(x, dim=-1)
    raise AssertionError("it was compiled")
except xrt.XpuRuntimeError as error:
    assert "cannot be started now: Too many open files" in str(error), error
for file in files:
    file.close()
assert xrt.quarantined() == [], xrt.quarantined()
np.testing.assert_allclose(xrt.ops.softmax(x, dim=-1).to("cpu").numpy(), 1 / 64, rtol=1e-5)
"""


@unittest.skipUnless(HAS_OPENCL, "needs an OpenCL device")
class OpenclDevicesTest(unittest.TestCase):
    def run_there(self, program: str, **variables: str) -> None:
        done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, timeout=300,
                              env={**os.environ, **variables})
        self.assertEqual(done.returncode, 0, done.stdout + done.stderr)
        if done.stdout.startswith("skip: "):
            self.skipTest(done.stdout.removeprefix("skip: ").strip())

    def test_two_devices_work_at_once_and_are_not_mixed(self) -> None:
        self.run_there(TWO_DEVICES, POCL_DEVICES="pthread pthread")

    def test_without_files_a_call_fails_and_the_next_one_works(self) -> None:
        with tempfile.TemporaryDirectory() as cache:
            self.run_there(NO_FILES, XPURUNTIME_OPENCL_CACHE=cache)


if __name__ == "__main__":
    unittest.main()
