"""xpuruntime.cuda.synchronize: it waits, and raises what kernels found in the meantime."""

from __future__ import annotations

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

HAS_GPU = "cuda:0" in [str(device) for device in xrt.devices()]


class AnywhereTest(unittest.TestCase):
    @unittest.skipIf(HAS_GPU, "there is a GPU")
    def test_without_a_gpu_the_reason_is_given(self):
        with self.assertRaisesRegex(xrt.NotSupportedError, "cuda:0 is not available"):
            xrt.cuda.synchronize()
        with self.assertRaisesRegex(xrt.NotSupportedError, "cuda:1 is not available"):
            xrt.cuda.synchronize(xrt.Device("cuda:1"))

    def test_another_device_is_an_error(self):
        with self.assertRaisesRegex(xrt.InvalidArgumentError, "cpu:0 is no NVIDIA GPU; pass a device such as"):
            xrt.cuda.synchronize("cpu")
        with self.assertRaises(xrt.UnknownNameError):
            xrt.cuda.synchronize("cuxa")
        with self.assertRaises(TypeError):
            xrt.cuda.synchronize(None)


@unittest.skipUnless(HAS_GPU, "the CUDA backend has no device")
class CudaTest(unittest.TestCase):
    def expect_one_error(self):
        with self.assertRaisesRegex(xrt.InvalidArgumentError, "embedding"):
            xrt.cuda.synchronize()
        xrt.cuda.synchronize()

    def test_a_wrong_index_is_raised_once(self):
        table = xrt.asarray(np.ones((4, 8), np.float32)).to("cuda:0")
        out = xrt.empty((2, 8), device="cuda:0")
        ops.embedding(xrt.asarray(np.array([1, 9])).to("cuda:0"), table, out=out)
        self.expect_one_error()

    @unittest.skipUnless(torch is not None and torch.cuda.is_available(), "no PyTorch with a GPU here")
    def test_a_wrong_index_in_arrays_of_pytorch_is_raised_whatever_their_stream(self):
        table, index = torch.ones(4, 8, device="cuda"), torch.tensor([1, 9], device="cuda")
        torch.cuda.synchronize()
        with torch.cuda.stream(torch.cuda.Stream()):
            ops.embedding(index, table)
        self.expect_one_error()


if __name__ == "__main__":
    unittest.main()
