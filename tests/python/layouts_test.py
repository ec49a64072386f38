"""Layouts that fast kernels refuse: the values are NumPy's in float64, and the reference is not what runs."""
import unittest

import numpy as np

import xpuruntime as xrt


def random(*shape: int) -> np.ndarray:
    return np.random.default_rng(7).standard_normal(shape).astype(np.float32)


def softmax(x: np.ndarray) -> np.ndarray:
    e = np.exp(x.astype(np.float64) - x.max(-1, keepdims=True))
    return e / e.sum(-1, keepdims=True)


def layer_norm(x: np.ndarray) -> np.ndarray:
    wide = x.astype(np.float64)
    return (wide - wide.mean(-1, keepdims=True)) / np.sqrt(wide.var(-1, keepdims=True) + 1e-5)


def layouts(x: np.ndarray) -> dict[str, np.ndarray]:
    wider = np.zeros((x.shape[0], 2 * x.shape[1] + 3), np.float32)
    wider[:, : x.shape[1]] = x
    stepped = np.zeros((x.shape[0], 2 * x.shape[1]), np.float32)
    stepped[:, ::2] = x
    return {"transposed": np.ascontiguousarray(x.T).T, "sliced": wider[:, : x.shape[1]], "stepped": stepped[:, ::2],
            "broadcast": np.broadcast_to(x[:1], x.shape)}


class Layouts(unittest.TestCase):
    def test_rows_of_any_layout(self) -> None:
        for op, expected, rest in (("softmax", softmax, []), ("layer_norm", layer_norm, [33])):
            for name, x in layouts(random(17, 33)).items():
                with self.subTest(op=op, layout=name):
                    np.testing.assert_allclose(getattr(xrt.ops, op)(x, *rest), expected(x), rtol=2e-5, atol=2e-6)
                    decision = xrt.explain(op, x, *rest)
                    self.assertEqual(decision.kernel, "simd")
                    self.assertEqual([(step.is_output, step.index, step.kernel) for step in decision.copies],
                                     [(False, 0, "blocked")])

    def test_the_decision_tells_of_the_copies(self) -> None:
        decision = xrt.explain("softmax(f32[4,6]{1,4}) -> f32[4,6]{1,4}")
        self.assertEqual([repr(step) for step in decision.copies],
                         ["CopyStep(input 0: f32[4,6]{1,4} -> f32[4,6])", "CopyStep(output 0: f32[4,6] -> f32[4,6]{1,4})"])
        self.assertEqual((decision.copies[0].from_spec.strides, decision.copies[0].to_spec.contiguous), ((1, 4), True))
        self.assertEqual({c.kernel: c.copied_bytes for c in decision.candidates}, {"simd": 192, "reference": 0})
        self.assertEqual(len(decision.to_dict()["copies"]), 2)
        self.assertIn("copies: input 0 f32[4,6]{1,4} to f32[4,6]", decision._repr_html_())

    def test_a_described_device_is_asked_with_copies_too(self) -> None:
        decision = xrt.KernelSelector("cpu").select("softmax(f32[4,6]{1,4})", profile=xrt.device_profile())
        self.assertEqual((decision.kernel, [step.kernel for step in decision.copies]), ("simd", ["blocked"]))

    def test_a_convolution_with_channels_last(self) -> None:
        x, weight = random(2, 5, 9, 8), random(6, 5, 3, 3)
        expected = np.zeros((2, 6, 7, 6))
        for i in range(3):
            for j in range(3):
                window = x[:, :, i : i + 7, j : j + 6].astype(np.float64)
                expected += np.einsum("nchw,oc->nohw", window, weight[:, :, i, j].astype(np.float64))
        last = [np.ascontiguousarray(a.transpose(0, 2, 3, 1)).transpose(0, 3, 1, 2) for a in (x, weight)]
        for inputs in (last, [last[0], weight]):
            for out in (None, np.empty((2, 7, 6, 6), np.float32).transpose(0, 3, 1, 2)):
                np.testing.assert_allclose(xrt.ops.conv2d(*inputs, out=out), expected, rtol=1e-4, atol=1e-4)
                self.assertNotEqual(xrt.explain("conv2d", *inputs, out=out).kernel, "reference")

    def test_results_have_the_layout_that_pytorch_gives_them(self) -> None:
        try:
            import torch
        except ImportError:
            self.skipTest("needs PyTorch")
        of, ops = torch.nn.functional, xrt.ops
        last = torch.tensor(random(2, 8, 10, 9).tolist()).to(memory_format=torch.channels_last)
        weight = torch.tensor(random(6, 8, 3, 3).tolist()).to(memory_format=torch.channels_last)
        mean, variance = torch.tensor(random(8).tolist()), torch.tensor((1 + random(8) ** 2).tolist())
        calls = {
            "relu": (ops.relu, of.relu),
            "add": (lambda x: ops.add(x, 1.5), lambda x: x + 1.5),
            "mul": (lambda x: ops.mul(mean[: x.shape[1], None, None], x), lambda x: mean[: x.shape[1], None, None] * x),
            "batch_norm": (lambda x: ops.batch_norm(x, mean, variance), lambda x: of.batch_norm(x, mean, variance)),
            "max_pool2d": (lambda x: ops.max_pool2d(x, 3, 2, 1), lambda x: of.max_pool2d(x, 3, 2, 1)),
            "avg_pool2d": (lambda x: ops.avg_pool2d(x, 2), lambda x: of.avg_pool2d(x, 2)),
            "cast": (lambda x: ops.cast(x, "f64"), lambda x: x.double()),
            "cat": (lambda x: ops.cat([x, x], 1), lambda x: torch.cat([x, x], 1)),
            "normalize": (lambda x: ops.normalize(x, dim=1), lambda x: of.normalize(x, dim=1)),
            "conv2d": (lambda x: ops.conv2d(x, weight), lambda x: of.conv2d(x, weight)),
        }
        images = {"contiguous": last.contiguous(), "channels_last": last, "one": last[:1],
                  "channels": last[:, 1:6], "pixels": last[:, :, 1:9, ::2]}
        unlike = {"batch_norm": ("channels", "pixels"),  # slices are copied
                  "conv2d": ("contiguous", "channels", "pixels")}  # PyTorch follows the weight
        for name, (ours, theirs) in calls.items():
            for layout, x in images.items():
                if layout in unlike.get(name, ()):
                    continue
                with self.subTest(op=name, layout=layout):
                    found, expected = ours(x), theirs(x)
                    torch.testing.assert_close(found, expected, rtol=1e-4, atol=1e-4)
                    self.assertEqual(found.stride(), expected.stride())
                    if name in ("relu", "add", "max_pool2d", "avg_pool2d"):
                        in_numpy = ours(np.from_dlpack(x))
                        self.assertEqual(in_numpy.strides, tuple(4 * each for each in expected.stride()))
                        np.testing.assert_array_equal(in_numpy, np.from_dlpack(found))
        turned = random(5, 7).T
        self.assertTrue(ops.tanh(turned).flags.f_contiguous)
        self.assertEqual(xrt.backward("tanh", turned, grad_output=turned)[0].strides, turned.strides)


if __name__ == "__main__":
    unittest.main()
