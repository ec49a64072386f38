"""Arrays on other devices than the CPU: moved there, computed there, brought back."""

import os
import pathlib
import subprocess
import sys
import tempfile
import unittest
import warnings

import numpy as np

import xpuruntime as xrt
from xpuruntime import ops

with warnings.catch_warnings():
    warnings.simplefilter("ignore")
    try:
        import torch
    except ImportError:
        torch = None


class EveryDeviceTest(unittest.TestCase):
    def test_what_is_computed_there_comes_back(self):
        rng = np.random.default_rng(1)
        a, b = rng.normal(size=(17, 33)).astype(np.float32), rng.normal(size=(33, 9)).astype(np.float32)
        for device in xrt.devices():
            with self.subTest(str(device)):
                there = [xrt.asarray(x).to(device) for x in (a, b)]
                self.assertEqual(there[0].device, device)
                product = ops.matmul(*there)
                self.assertIsInstance(product, xrt.Tensor)
                self.assertEqual(product.device, device)
                np.testing.assert_allclose(product.to("cpu").numpy(), a.astype(float) @ b, rtol=1e-4, atol=1e-4)
                self.assertEqual(str(xrt.explain("matmul", *there).problem.device), str(device))
                out = xrt.empty((17, 33), "f32", device=device)
                self.assertIs(ops.add(there[0], there[0], out=out), out)
                np.testing.assert_array_equal(out.to("cpu").numpy(), a + a)
                np.testing.assert_array_equal(ops.add(there[0], 2.0).to("cpu").numpy(), a + np.float32(2))

    def test_every_device_fills_its_tensors(self):
        for device in xrt.devices():
            for dtype, value in (("f32", 1.5), ("f16", -2), ("f64", np.pi), ("i64", 2**53 + 1), ("u8", 255), ("bool", 1)):
                with self.subTest(f"{device} {dtype}"):
                    tensor = xrt.empty((3, 5), dtype, device=device)
                    self.assertIs(tensor.fill(value), tensor)
                    array = tensor.to("cpu").numpy()
                    np.testing.assert_array_equal(array, np.full((3, 5), value, array.dtype))
            with self.subTest(f"{device}, more than a part at a time"):
                many = xrt.empty(600_001, device=device).fill(3)
                self.assertEqual(ops.reduce_min(many).to("cpu").numpy(), 3)
                self.assertEqual(ops.reduce_max(many.fill(np.float32(-1))).to("cpu").numpy(), -1)
            self.assertEqual(xrt.empty((0, 4), device=device).fill(1).size, 0)
        with self.assertRaisesRegex(ValueError, "does not fit u8"):
            xrt.empty(3, "u8").fill(256)
        with self.assertRaisesRegex(TypeError, "a number"):
            xrt.empty(3).fill("1")
        fixed = np.ones(3)
        fixed.flags.writeable = False
        with self.assertRaisesRegex(ValueError, "read-only"):
            xrt.asarray(fixed).fill(2)
        with self.assertRaisesRegex(xrt.NotSupportedError, "contiguous"):
            xrt.asarray(np.ones((4, 4))[:, ::2]).fill(2)

    def test_arrays_of_two_devices_are_refused(self):
        others = [device for device in xrt.devices() if str(device) != "cpu:0"]
        if not others:
            self.skipTest("there is no device but the CPU")
        here = xrt.asarray(np.ones(4, np.float32))
        with self.assertRaisesRegex(ValueError, "copy them to one device"):
            ops.add(here, here.to(others[0]))
        with self.assertRaisesRegex(BufferError, "CPU"):
            memoryview(here.to(others[0]))
        with self.assertRaisesRegex(xrt.NotSupportedError, "cpu"):
            here.to(others[0]).numpy()

    def test_a_device_that_is_not_here_says_why(self):
        with self.assertRaisesRegex(xrt.XpuRuntimeError, "opencl:77|OpenCL"):
            xrt.asarray(np.ones(4, np.float32)).to("opencl:77")
        with self.assertRaises(xrt.UnknownNameError):
            xrt.empty(4, device="cuxa")


# A process that only computes and tunes on the CPU has not started CUDA and OpenCL: its children can.
FORKS = """
import os, sys
import numpy as np
import xpuruntime as xrt

x = np.ones((8, 8), np.float32)
xrt.ops.matmul(x, x)
print(xrt.explain("matmul", x, x), xrt.explain("relu(f32[8])"))
xrt.tune("relu(f32[9])", store=sys.argv[2])
xrt.use_store(sys.argv[2])
xrt.ops.relu(np.ones(9, np.float32))
xrt.report()
if len(sys.argv) > 3:  # now it has
    used, out = xrt.asarray(x).to(sys.argv[1]), xrt.asarray(x).to(sys.argv[1])
    xrt.ops.add(used, used, out=out)
child = os.fork()
if child == 0:
    if sys.argv[1] == "cuda:0":
        import torch
        torch.ones(3, device="cuda").sum().item()
    if len(sys.argv) > 3:
        told = []
        for call in (lambda: xrt.ops.add(used, used, out=out), lambda: xrt.ops.matmul(used, used, out=out),
                     lambda: xrt.ops.add(used, used), lambda: used.to("cpu"), lambda: xrt.asarray(x).to(sys.argv[1]),
                     lambda: xrt.explain("matmul", used, used)):
            try:
                call()
            except xrt.XpuRuntimeError as error:
                told.append(type(error).__name__)
                print(error, flush=True)
        os._exit(2 if told == 6 * ["DeviceLostError"] else 1)
    there = xrt.asarray(x).to(sys.argv[1])
    os._exit(0 if xrt.ops.matmul(there, there).to("cpu").numpy()[0, 0] == 8 else 1)
sys.exit(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]))
"""


def forks(*arguments: str) -> subprocess.CompletedProcess:
    with tempfile.TemporaryDirectory() as folder:
        device, *rest = arguments
        command = [sys.executable, "-c", FORKS, device, str(pathlib.Path(folder, "store.sqlite")), *rest]
        return subprocess.run(command, capture_output=True, text=True, timeout=300)


@unittest.skipIf("tsan" in os.environ.get("LD_PRELOAD", ""), "the thread sanitizer does not follow forks")
class ForksTest(unittest.TestCase):
    def setUp(self):
        if "opencl:0" not in [str(device) for device in xrt.devices()]:
            self.skipTest("no OpenCL device here")

    def test_a_child_of_a_process_that_used_the_cpu_can_use_opencl(self):
        done = forks("opencl:0")
        self.assertEqual(done.returncode, 0, done.stdout + done.stderr)

    def test_a_child_of_a_process_that_used_opencl_is_told_why_it_cannot(self):
        done = forks("opencl:0", "used before")
        self.assertEqual(done.returncode, 2, done.stdout + done.stderr)
        self.assertEqual(done.stdout.count("before this process was forked"), 6, done.stdout)


@unittest.skipUnless(torch is not None and torch.cuda.is_available(), "no PyTorch with a GPU here")
class CudaTest(unittest.TestCase):
    def setUp(self):
        if "cuda:0" not in [str(device) for device in xrt.devices()]:
            self.skipTest("the CUDA backend has no device")
        torch.manual_seed(0)

    def test_a_child_of_a_process_that_used_the_cpu_can_use_the_gpu(self):
        done = forks("cuda:0")
        self.assertEqual(done.returncode, 0, done.stderr)

    def test_tensors_of_pytorch_are_used_where_they_are(self):
        a, b = torch.randn(64, 128, device="cuda", dtype=torch.bfloat16), torch.randn(128, 32, device="cuda", dtype=torch.bfloat16)
        result = ops.matmul(a, b)
        self.assertEqual((result.device.type, result.dtype), ("cuda", torch.bfloat16))
        self.assertTrue(torch.allclose(result.double(), a.double() @ b.double(), rtol=2e-2, atol=2e-1))
        out = torch.empty(64, 128, device="cuda", dtype=torch.bfloat16)
        address = out.data_ptr()
        self.assertIs(ops.add(a, a, out=out), out)
        self.assertEqual(out.data_ptr(), address)
        self.assertTrue(torch.equal(out, a + a))

    def test_work_goes_onto_pytorchs_current_stream(self):
        side = torch.cuda.Stream()
        a = torch.ones(1 << 24, device="cuda")
        torch.cuda.synchronize()
        with torch.cuda.stream(side):
            torch.cuda._sleep(50_000_000)  # what comes next on this stream must wait
            a.mul_(3)
            result = ops.add(a, a)
            doubled = result * 2
        side.synchronize()
        self.assertTrue(torch.equal(doubled, torch.full_like(doubled, 12)))

    def test_pytorchs_stream_waits_for_ours_and_the_host_does_not(self):
        tensor = xrt.asarray(np.arange(1 << 20, dtype=np.float32)).to("cuda:0")
        out = xrt.empty(1 << 20, device="cuda:0")
        ops.add(tensor, tensor, out=out)
        ops.sub(tensor, tensor, out=out)
        torch.cuda.synchronize()
        side = torch.cuda.Stream()
        torch.cuda._sleep(300_000_000)  # on the default stream, where our work is queued
        ops.add(tensor, tensor, out=out)
        with torch.cuda.stream(side):
            copy = torch.from_dlpack(out).clone()
            self.assertFalse(torch.cuda.default_stream().query(), "the host has waited")
        side.synchronize()
        self.assertTrue(torch.equal(copy, 2 * torch.arange(1 << 20, device="cuda", dtype=torch.float32)))
        with self.assertRaisesRegex(ValueError, "means nothing"):
            out.__dlpack__(stream=0)
        out.__dlpack__(stream=-1)

    def test_a_tensor_of_ours_goes_to_pytorch_and_back(self):
        tensor = xrt.asarray(np.arange(6, dtype=np.float32)).to("cuda:0")
        view = torch.from_dlpack(tensor)
        self.assertEqual(view.device.type, "cuda")
        view.mul_(2)
        torch.cuda.synchronize()
        np.testing.assert_array_equal(tensor.to("cpu").numpy(), np.arange(6) * 2)


if __name__ == "__main__":
    unittest.main()
