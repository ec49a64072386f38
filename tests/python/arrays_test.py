"""Arrays of every package go in and come out without copies."""

import array
import ctypes
import unittest

import ml_dtypes
import numpy as np
from exchange import Exchanged
from packages import optional

import xpuruntime as xrt
from xpuruntime import ops


def kernel_sees(array_like):
    """The address and strides that a kernel gets for an array, as one that we plug in reports them."""
    seen = {}

    def run(problem, inputs, outputs):
        view = inputs[0].numpy()
        seen.update(address=view.ctypes.data, strides=view.strides, spec=str(problem.inputs[0]))
        outputs[0].numpy()[...] = view

    xrt.register_kernel("address_of", "copy", run)
    try:
        with xrt.with_policy(xrt.KernelPolicy(copy={"kernel": "address_of", "mode": "force"})):
            result = ops.copy(array_like)
    finally:
        xrt.unregister_kernel("address_of", "copy")
    return seen, result


class NumpyTest(unittest.TestCase):
    def setUp(self):
        self.a = np.arange(24, dtype=np.float32).reshape(4, 6)

    def test_a_kernel_reads_the_callers_own_memory(self):
        for name, view in {"rows": self.a, "turned": self.a.T, "steps": self.a[::2, 1::3], "offset": self.a[1:]}.items():
            with self.subTest(name):
                seen, result = kernel_sees(view)
                self.assertEqual(seen["address"], view.ctypes.data)
                self.assertEqual(seen["strides"], view.strides)
                np.testing.assert_array_equal(result, view)

    def test_the_result_is_an_array_and_out_is_written_in_place(self):
        result = ops.add(self.a, self.a)
        self.assertIs(type(result), np.ndarray)
        np.testing.assert_array_equal(result, self.a * 2)
        out = np.zeros_like(self.a)
        address = out.ctypes.data
        self.assertIs(ops.add(self.a, self.a, out=out), out)
        self.assertEqual(out.ctypes.data, address)
        np.testing.assert_array_equal(out, self.a * 2)

    def test_every_dtype_goes_in_and_comes_out_as_it_is(self):
        types = [np.float64, np.float32, np.float16, np.int64, np.int32, np.int16, np.int8, np.uint8, np.bool_, np.longlong]
        types += [ml_dtypes.bfloat16, ml_dtypes.float8_e4m3fn, ml_dtypes.float8_e5m2]
        for dtype in types:
            with self.subTest(np.dtype(dtype).name):
                values = np.array([[0, 1], [2, 3]]).astype(dtype)
                result = ops.transpose(values, 0, 1)
                self.assertEqual(result.dtype, np.dtype(dtype))
                np.testing.assert_array_equal(result.astype(np.float64), values.T.astype(np.float64))

    def test_layouts_that_no_tensor_has_are_read_and_written_all_the_same(self):
        backwards = self.a[::-1, ::-1]
        np.testing.assert_array_equal(ops.add(backwards, self.a), backwards + self.a)
        out = np.zeros_like(self.a)
        ops.add(self.a, self.a, out=out[::-1])
        np.testing.assert_array_equal(out[::-1], self.a * 2)
        packed = np.zeros(5, dtype=[("tag", "u1"), ("value", "f4")])  # misaligned, with a stride of five bytes
        packed["value"] = range(5)
        np.testing.assert_array_equal(ops.add(packed["value"], packed["value"]), packed["value"] * 2)
        ops.add(packed["value"], 1.0, out=packed["value"])
        np.testing.assert_array_equal(packed["value"], [1, 2, 3, 4, 5])
        self.assertTrue((packed["tag"] == 0).all())

    def test_read_only_inputs_are_read(self):
        self.a.flags.writeable = False
        np.testing.assert_array_equal(ops.relu(self.a), self.a)
        broadcast = np.broadcast_to(np.float32(3), (4, 6))
        np.testing.assert_array_equal(ops.add(self.a, broadcast), self.a + 3)

    def test_subclasses_and_scalars_are_taken(self):
        class Own(np.ndarray):
            pass

        np.testing.assert_array_equal(ops.add(self.a.view(Own), self.a), self.a * 2)
        np.testing.assert_array_equal(ops.add(self.a, np.float32(2)), self.a + 2)
        self.assertEqual(ops.sum(self.a).shape, ())

    def test_numbers_stand_for_arrays_in_the_other_ones_dtype(self):
        for dtype in (np.float64, np.float32, np.float16, ml_dtypes.bfloat16, np.int32, np.uint8):
            with self.subTest(np.dtype(dtype).name):
                values = np.array([1, 2, 3]).astype(dtype)
                result = ops.mul(values, 3)
                self.assertEqual(result.dtype, values.dtype)
                np.testing.assert_array_equal(result.astype(int), [3, 6, 9])
        self.assertEqual(ops.mul(np.array([1, 2], np.int32), 0.5).dtype, np.float32)
        np.testing.assert_array_equal(ops.add(self.a, self.a, alpha=3), self.a * 4)
        np.testing.assert_array_equal(ops.sub(self.a, 2, alpha=0.5), self.a - 1)
        with self.assertRaisesRegex(ValueError, "does not fit u8"):
            ops.add(np.array([1], np.uint8), 300)

    def test_dtype_asks_for_a_precision(self):
        result = ops.matmul(self.a, self.a.T, dtype="bf16")
        self.assertEqual(result.dtype, ml_dtypes.bfloat16)
        self.assertEqual(ops.softmax(self.a, dtype=np.float64).dtype, np.float64)
        with self.assertRaisesRegex(xrt.NotSupportedError, "cast"):
            ops.sum(np.array([1, 2]), dtype="f32")

    def test_batch_norm_brings_running_statistics_up_to_date_in_place(self):
        x = np.random.default_rng(0).normal(2, 3, (8, 4, 5)).astype(np.float32)
        mean, var = np.zeros(4, np.float32), np.ones(4, np.float32)
        y = ops.batch_norm(x, mean, var, training=True, momentum=0.25)
        wide = x.astype(np.float64)
        np.testing.assert_allclose(y, (wide - wide.mean((0, 2), keepdims=True)) / np.sqrt(wide.var((0, 2), keepdims=True) + 1e-5), atol=1e-5)
        np.testing.assert_allclose(mean, 0.25 * wide.mean((0, 2)), rtol=1e-5)
        np.testing.assert_allclose(var, 0.75 + 0.25 * wide.var((0, 2), ddof=1), rtol=1e-5)
        bias = np.full(4, 7, np.float32)
        np.testing.assert_allclose(ops.batch_norm(x, bias=bias, training=True).mean((0, 2)), bias, atol=1e-5)
        for training in (False, True):
            with self.assertRaisesRegex(ValueError, "go together"):
                ops.batch_norm(x, mean, None, weight=np.ones(4, np.float32), training=training)
        half = ops.batch_norm(x.astype(np.float16), bias=bias.astype(np.float16), training=True)
        np.testing.assert_allclose(half.astype(float).mean((0, 2)), bias, atol=1e-2)
        mean.flags.writeable = False
        with self.assertRaisesRegex(ValueError, "running_mean: it is read-only"):
            ops.batch_norm(x, mean, var, training=True)

    def test_dropout_is_new_each_time_and_the_same_for_a_seed(self):
        x = np.ones(4096, np.float32)
        self.assertFalse(np.array_equal(ops.dropout(x), ops.dropout(x)))
        np.testing.assert_array_equal(ops.dropout(x, seed=5), ops.dropout(x, seed=5))
        self.assertAlmostEqual(float(np.mean(ops.dropout(x, 0.25, seed=1) == 0)), 0.25, delta=0.05)

    def test_two_results_come_as_a_tuple_and_go_into_one(self):
        product, found = ops.unscale(self.a, 0.5)
        np.testing.assert_array_equal(product, self.a / 2)
        self.assertEqual(found[0], 0)
        outs = (np.empty_like(self.a), np.empty(1, np.float32))
        result = ops.unscale(self.a, 0.25, out=outs)
        self.assertIs(result[0], outs[0])
        np.testing.assert_array_equal(outs[0], self.a / 4)
        with self.assertRaisesRegex(TypeError, "a tuple of 2 arrays"):
            ops.unscale(self.a, 0.5, out=outs[0])

    def test_a_number_that_scales_gradients_is_f32(self):
        product, _ = ops.unscale(np.ones(3, np.float16), 2.0**-30)  # f16 would not hold it
        np.testing.assert_array_equal(product, np.full(3, 2.0**-30, np.float32))

    def test_vectors_multiply_as_numpys_do(self):
        v, w = self.a[0], self.a[:, 0]
        batch = np.stack([self.a, self.a + 1])
        for left, right in [(v, v), (self.a, v), (w, self.a), (batch, v), (w, batch)]:
            with self.subTest(f"{left.shape} {right.shape}"):
                expected = np.matmul(left, right)
                result = ops.matmul(left, right)
                self.assertEqual(result.shape, expected.shape)
                np.testing.assert_allclose(result, expected, rtol=1e-6)
                out = np.empty(expected.shape, np.float32)
                ops.matmul(left, right, out=out)
                np.testing.assert_allclose(out, expected, rtol=1e-6)

    def test_backward_gives_the_gradients(self):
        grad = np.ones((4, 4), np.float32)
        left, right = xrt.backward("matmul", self.a, self.a.T.copy(), grad_output=grad)
        np.testing.assert_allclose(left, grad @ self.a, rtol=1e-6)
        np.testing.assert_allclose(right, self.a.T @ grad, rtol=1e-6)


class OtherPackagesTest(unittest.TestCase):
    def test_buffers_and_our_own_tensor(self):
        values = array.array("f", [1, 2, 3])
        result = ops.add(values, memoryview(values))
        self.assertIsInstance(result, xrt.Tensor)
        self.assertEqual(memoryview(result).tolist(), [2, 4, 6])
        ops.add(values, 1, out=values)
        self.assertEqual(values.tolist(), [2, 3, 4])
        self.assertEqual(memoryview(ops.relu(memoryview(values)[::-1])).tolist(), [4, 3, 2])
        self.assertEqual(memoryview(ops.copy(b"abc")).tolist(), [97, 98, 99])

    def test_strides_of_extents_of_one_address_nothing(self):
        last = np.arange(24, dtype=np.float32).reshape(3, 8)[::-1, ::2][:1]
        self.assertEqual(last.strides, (-32, 8))
        for taken in (last, memoryview(last)):
            tensor = xrt.asarray(taken)
            self.assertEqual((tensor.strides, tensor.numpy().ctypes.data), ((8, 2), last.ctypes.data))

    def test_the_tensor_class_views_and_is_viewed(self):
        values = np.arange(6, dtype=np.float32).reshape(2, 3)
        tensor = xrt.asarray(values.T)
        self.assertEqual((tensor.shape, tensor.strides, tensor.dtype, str(tensor.device)), ((3, 2), (1, 3), "f32", "cpu:0"))
        self.assertEqual(tensor.numpy().ctypes.data, values.ctypes.data)
        self.assertEqual(np.from_dlpack(tensor).ctypes.data, values.ctypes.data)
        tensor.numpy()[0, 0] = 9
        self.assertEqual(values[0, 0], 9)
        half = xrt.asarray(values.astype(ml_dtypes.bfloat16))
        self.assertEqual(half.numpy().dtype, ml_dtypes.bfloat16)
        values.flags.writeable = False
        self.assertTrue(xrt.asarray(values).read_only)
        self.assertFalse(xrt.asarray(values).numpy().flags.writeable)
        with self.assertRaisesRegex(ValueError, "read-only"):
            ops.add(values, values, out=xrt.asarray(values))

    def test_a_tensor_is_viewed_in_another_shape_and_order(self):
        x = np.arange(24, dtype=np.float32)
        cube = xrt.asarray(x).reshape(2, -1, 4)
        turned = cube.permute(2, 0, -2)
        x[5] = 100  # in the memory of all
        np.testing.assert_array_equal(cube.numpy(), x.reshape(2, 3, 4))
        np.testing.assert_array_equal(turned.numpy(), x.reshape(2, 3, 4).transpose(2, 0, 1))
        np.testing.assert_array_equal(xrt.ops.copy(turned).reshape((8, 3)).numpy(), x.reshape(2, 3, 4).transpose(2, 0, 1).reshape(8, 3))
        self.assertEqual((xrt.asarray(x[:1]).reshape(()).shape, xrt.empty((0, 3)).reshape(3, 0).shape), ((), (3, 0)))
        for wrong in ((5, 5), (-1, -1), (-1, 7), (0, -1), (-2, 12), (1 << 40, 1 << 40)):
            with self.subTest(wrong), self.assertRaises(xrt.InvalidArgumentError):
                cube.reshape(wrong)
        for wrong in ((0, 1), (0, 1, 1), (0, 1, 3), (0, 1, 2, -4)):
            with self.subTest(wrong), self.assertRaises(xrt.InvalidArgumentError):
                cube.permute(*wrong)
        with self.assertRaisesRegex(xrt.NotSupportedError, "not contiguous"):
            turned.reshape(24)

    def test_memory_lives_as_long_as_a_view_of_it(self):
        tensor = ops.add(array.array("f", [1.5] * 1000), array.array("f", [1.5] * 1000))
        view = np.asarray(tensor)
        del tensor
        np.testing.assert_array_equal(ops.add(view, view), np.full(1000, 6, np.float32))

    def test_the_table_of_c_functions_is_used_where_a_type_has_it(self):
        a = Exchanged(np.arange(6, dtype=np.float32).reshape(2, 3).T)
        b = Exchanged(np.ones((3, 2), np.float32))
        Exchanged.calls.clear()
        result = ops.add(a, b)
        self.assertEqual(Exchanged.calls, ["view", "view", "allocate", "to_object"])
        self.assertEqual(result.array.strides, a.array.strides)
        self.assertEqual(ops.add(b, a).array.strides, b.array.strides)
        self.assertIsInstance(result, Exchanged)
        np.testing.assert_array_equal(result.array, a.array + 1)
        self.assertIs(ops.add(a, b, out=b), b)
        np.testing.assert_array_equal(b.array, a.array + 1)

    def test_torch_tensors(self):
        torch = optional("torch")
        if torch is None:
            self.skipTest("PyTorch is not installed")
        a = torch.arange(12, dtype=torch.float32).reshape(3, 4)
        result = ops.matmul(a.t(), a)
        self.assertIsInstance(result, torch.Tensor)
        self.assertTrue(torch.equal(result, torch.matmul(a.t(), a)))
        out = torch.empty(3, 4)
        address = out.data_ptr()
        self.assertIs(ops.add(a, a, out=out), out)
        self.assertEqual(out.data_ptr(), address)
        self.assertTrue(torch.equal(out, a + a))
        half = a.to(torch.bfloat16)
        self.assertTrue(torch.equal(ops.relu(half), torch.relu(half)))
        self.assertEqual(ops.relu(half).dtype, torch.bfloat16)
        seen, _ = kernel_sees(a.t())
        self.assertEqual(seen["address"], a.data_ptr())
        self.assertEqual(seen["strides"], (4, 16))

    def test_a_torch_gradient_is_not_lost_in_silence(self):
        torch = optional("torch")
        if torch is None:
            self.skipTest("PyTorch is not installed")
        weight = torch.ones(3, requires_grad=True)
        with self.assertRaises((xrt.NotSupportedError, RuntimeError, BufferError)):
            ops.relu(weight)
        self.assertTrue(torch.equal(ops.relu(weight.detach()), torch.ones(3)))
        with torch.no_grad():
            self.assertTrue(torch.equal(ops.relu(weight), torch.ones(3)))

    def test_pytorch_tangents_are_not_lost_in_silence(self):
        torch = optional("torch")
        if torch is None:
            self.skipTest("PyTorch is not installed")
        forward = torch.autograd.forward_ad
        with forward.dual_level():
            plain = torch.ones(3)
            self.assertTrue(torch.equal(ops.relu(plain), plain))
            dual = forward.make_dual(plain, torch.ones(3))
            with self.assertRaisesRegex(xrt.NotSupportedError, "carries a tangent"):
                ops.relu(dual)
            self.assertTrue(torch.equal(ops.relu(forward.unpack_dual(dual).primal), plain))

    def test_pytorch_notices_that_an_out_was_written(self):
        torch = optional("torch")
        if torch is None or not hasattr(getattr(torch.autograd, "graph", None), "increment_version"):
            self.skipTest("PyTorch is not installed, or from before 2.1")
        weight = torch.ones(3, requires_grad=True)
        kept = torch.full((3,), 2.0)
        loss = (weight * kept).sum()
        ops.add(kept, 1.0, out=kept)
        with self.assertRaisesRegex(RuntimeError, "modified by an inplace operation"):
            loss.backward()

    def test_pytorch_notices_that_statistics_were_written(self):
        torch = optional("torch")
        if torch is None or not hasattr(getattr(torch.autograd, "graph", None), "increment_version"):
            self.skipTest("PyTorch is not installed, or from before 2.1")
        mean, var = torch.zeros(2), torch.ones(2)
        before = (mean._version, var._version)
        ops.batch_norm(torch.rand(4, 2, 3, 3), mean, var, training=False)
        self.assertEqual((mean._version, var._version), before)
        ops.batch_norm(torch.rand(4, 2, 3, 3), mean, var, training=True)
        self.assertEqual((mean._version, var._version), (before[0] + 1, before[1] + 1))

    def test_ctypes_arrays(self):
        rows = (ctypes.c_float * 3 * 2)((1, -2, 3), (-4, 5, -6))
        np.testing.assert_array_equal(ops.relu(rows).numpy(), [[1, 0, 3], [0, 5, 0]])
        out = (ctypes.c_float * 3 * 2)()
        ops.relu(rows, out=out)
        self.assertEqual([list(row) for row in out], [[1, 0, 3], [0, 5, 0]])
        np.testing.assert_array_equal(ops.relu((ctypes.c_int * 3)(1, -2, 3)).numpy(), [1, 0, 3])

    def test_numpy_takes_tensors_of_every_dtype(self):
        half = ops.cast(xrt.asarray(np.array([1.5, -2], np.float32)), "bf16")
        self.assertEqual(str(np.asarray(half).dtype), "bfloat16")
        self.assertEqual(np.asarray(half, dtype="f8").tolist(), [1.5, -2])
        with self.assertRaisesRegex(xrt.NotSupportedError, "NumPy has no tf32"):
            np.asarray(xrt.empty((2,), "tf32"))

    def test_numbers_that_half_precision_would_distort_are_refused(self):
        for value, number, op in ((1e-3, 1e5, ops.mul), (60000.0, 1e5, ops.div), (1e-5, 1e-8, ops.div)):
            with self.assertRaisesRegex(ValueError, "does not fit f16"):
                op(np.array([value], np.float16), number)
        np.testing.assert_array_equal(ops.mul(np.array([2], np.float16), 0.1), np.float16(2) * np.float16(0.1))
        self.assertEqual(ops.add(np.array([2], np.float16), float("inf")), np.inf)
        eighth = ops.cast(xrt.asarray(np.array([2], np.float32)), "f8e5m2")
        self.assertEqual(np.asarray(ops.cast(ops.mul(eighth, 1.5), "f32")), 3)
        with self.assertRaisesRegex(ValueError, "does not fit f8e5m2"):
            ops.mul(eighth, 1e-8)
        self.assertEqual(ops.mul(np.array([2], np.float32), 1e300), np.inf)

    def test_jax_arrays(self):
        jax = optional("jax")
        if jax is None:
            self.skipTest("JAX is not installed")
        with jax.default_device(jax.devices("cpu")[0]):
            a = jax.numpy.arange(6, dtype="float32").reshape(2, 3)
            result = ops.add(a, a)
            self.assertIsInstance(result, jax.Array)
            np.testing.assert_array_equal(np.asarray(result), np.asarray(a) * 2)
            half = a.astype(jax.numpy.bfloat16)
            self.assertEqual(ops.relu(half).dtype, jax.numpy.bfloat16)
            with self.assertRaisesRegex(ValueError, "read-only"):
                ops.add(a, a, out=a)

    def test_packages_mix_and_the_first_decides(self):
        torch = optional("torch")
        if torch is None:
            self.skipTest("PyTorch is not installed")
        a, b = np.ones(3, np.float32), torch.ones(3)
        self.assertIsInstance(ops.add(a, b), np.ndarray)
        self.assertIsInstance(ops.add(b, a), torch.Tensor)


if __name__ == "__main__":
    unittest.main()
