"""What is wrong gives a Python exception of the right type that says what to do, and never a crash."""

from __future__ import annotations

import ctypes
import os
import signal
import subprocess
import sys
import textwrap
import unittest
from typing import Any, Callable

from packages import need, optional

need("numpy")

import numpy as np

import xpuruntime as xrt
from xpuruntime import ops

torch = optional("torch")
needs_torch = unittest.skipUnless(torch, "PyTorch is not installed")
X = np.ones((2, 3), np.float32)


def misaligned(count: int) -> np.ndarray:
    """Zeros in f32 that start at an odd address."""
    return np.zeros(4 * count + 1, np.uint8)[1:].view(np.float32)


def on_device(array: np.ndarray, kind: int) -> Any:
    """A DLPack capsule that says that the array lies on another type of device."""
    capsule = array.__dlpack__()
    pointer = ctypes.pythonapi.PyCapsule_GetPointer
    pointer.restype, pointer.argtypes = ctypes.c_void_p, [ctypes.py_object, ctypes.c_char_p]
    # After the data's pointer stand the type and the index of the device.
    ctypes.cast(pointer(capsule, b"dltensor"), ctypes.POINTER(ctypes.c_int32))[2] = kind
    return capsule


class Speaks:
    """An object with the DLPack methods that a test gives it."""

    def __init__(self, export: Callable[[], Any], device: Any = (1, 0)) -> None:
        self.export, self.device = export, device

    def __dlpack__(self, **_: Any) -> Any:
        return self.export()

    def __dlpack_device__(self) -> Any:
        return self.device


class BadInput(unittest.TestCase):
    def refused(self, kind: type[Exception], words: str, call: Callable[[], Any]) -> None:
        """`call` raises `kind`, which is one of ours, and its text holds `words`."""
        with self.assertRaises(kind) as raised:
            call()
        self.assertIsInstance(raised.exception, xrt.XpuRuntimeError)
        self.assertRegex(str(raised.exception), words)
        self.assertNotIn("incompatible function arguments", str(raised.exception))


class WrongTypes(BadInput):
    def test_what_is_no_array_is_a_type_error(self) -> None:
        for thing in ("text", None, [1.0, 2.0], (1.0,), {}, object(), np.float32, len):
            with self.subTest(thing=thing):
                self.refused(TypeError, r"\[relu\] input is a .*; pass an array", lambda: ops.relu(thing))
                self.refused(TypeError, r"\[matmul\] other is a .*; pass an array", lambda: ops.matmul(X, thing))

    def test_too_few_too_many_and_unknown_arguments_are_type_errors(self) -> None:
        self.refused(TypeError, "'other' is missing", lambda: ops.matmul(X))
        self.refused(TypeError, "'input' is missing", lambda: ops.relu())
        self.refused(TypeError, "too many", lambda: ops.relu(X, X))
        self.refused(TypeError, "dmi", lambda: ops.softmax(X, dmi=1))
        self.refused(TypeError, "'input' was given twice", lambda: ops.relu(X, input=X))

    def test_attributes_of_a_wrong_type_are_type_errors(self) -> None:
        self.refused(TypeError, "dim", lambda: ops.softmax(X, dim="last"))
        self.refused(TypeError, "dim", lambda: ops.softmax(X, dim=1.5))
        self.refused(TypeError, "eps", lambda: ops.layer_norm(X, (3,), eps="small"))
        self.refused(TypeError, "tensors", lambda: ops.cat(5))
        self.refused(TypeError, "is a str; pass an array", lambda: ops.cat([X, "x"]))

    def test_none_is_refused_where_it_means_nothing(self) -> None:
        calls: list[Callable[[], Any]] = [
            lambda: ops.batch_norm(None),
            lambda: ops.transpose(X, None, 1),
            lambda: ops.transpose(X, 0, None),
            lambda: ops.layer_norm(X, None),
            lambda: ops.softmax(X, None),
            lambda: ops.nll_loss(X, X, reduction=None),
            lambda: ops.dropout(X, p=None),
            lambda: xrt.explain("layer_norm", X, None),
            lambda: xrt.backward("batch_norm", None, grad_output=X),
        ]
        for call in calls:
            self.refused(TypeError, "is a NoneType", call)
        np.testing.assert_array_equal(ops.sum(X, dim=None), 6)

    def test_arrays_where_a_number_is_meant_are_type_errors(self) -> None:
        self.refused(TypeError, "dim is a ndarray; pass an integer", lambda: ops.softmax(X, np.array([1, 1])))
        self.refused(TypeError, "eps is a ndarray; pass a number", lambda: ops.layer_norm(X, (3,), eps=X))
        self.refused(TypeError, "eps is a type; pass a number", lambda: ops.layer_norm(X, (3,), eps=int))
        self.refused(TypeError, "alpha is a ndarray; pass a number", lambda: ops.add(X, X, alpha=np.ones(3)))
        np.testing.assert_array_equal(ops.sum(X, dim=np.array([0, 1])), 6)

    def test_a_tensor_that_was_never_made_is_refused(self) -> None:
        never = xrt.Tensor.__new__(xrt.Tensor)
        self.refused(TypeError, "input is a Tensor", lambda: ops.relu(never))
        self.refused(ValueError, "was never made", lambda: np.asarray(never))
        self.refused(ValueError, "was never made", never.numpy)

    def test_an_unknown_op_is_an_attribute_error(self) -> None:
        with self.assertRaisesRegex(AttributeError, "matmull"):
            ops.matmull  # noqa: B018

    def test_an_unknown_dtype_lists_the_near_ones(self) -> None:
        self.refused(ValueError, "f33.*f32", lambda: ops.cast(X, "f33"))
        self.refused(TypeError, "dtype", lambda: ops.cast(X, 32.5))


class WrongValues(BadInput):
    def test_attributes_out_of_range_are_value_errors(self) -> None:
        self.refused(ValueError, "dim 7", lambda: ops.softmax(X, dim=7))
        self.refused(ValueError, "p is not a probability", lambda: ops.dropout(X, p=1.5))
        self.refused(ValueError, "p is not finite", lambda: ops.dropout(X, p=float("nan")))
        self.refused(ValueError, "reduction 'most'; use one of: mean", lambda: ops.nll_loss(X, X, reduction="most"))
        self.refused(ValueError, "approximate contains an unpaired surrogate", lambda: ops.gelu(X, approximate="\ud800"))
        self.refused(ValueError, "dim does not fit 64 bits", lambda: ops.softmax(X, dim=2**70))
        self.refused(ValueError, "out of range; use -2 to 1", lambda: ops.softmax(X, dim=-(2**63)))

    def test_pools_without_a_step_are_value_errors(self) -> None:
        image = np.ones((1, 1, 4, 4), np.float32)
        self.refused(ValueError, "stride: 0 is too small", lambda: ops.max_pool2d(image, 2, stride=0))
        self.refused(ValueError, "stride: 0 is too small", lambda: ops.avg_pool2d(image, 2, stride=(0, 1)))
        self.refused(ValueError, "kernel_size: 0 is too small", lambda: ops.max_pool2d(image, 0))

    def test_statistics_of_one_value_are_a_value_error_and_nothing_is_written(self) -> None:
        mean, variance = np.zeros(3, np.float32), np.ones(3, np.float32)
        one = np.ones((1, 3), np.float32)
        self.refused(ValueError, "one value a channel", lambda: ops.batch_norm(one, mean, variance, training=True))
        self.assertEqual((mean.tolist(), variance.tolist()), ([0] * 3, [1] * 3))

    def test_a_batch_without_channels_has_no_statistics_to_refuse(self) -> None:
        mean, variance = np.zeros(0, np.float32), np.ones(0, np.float32)
        result = ops.batch_norm(np.ones((4, 0), np.float32), mean, variance, training=True)
        self.assertEqual(result.shape, (4, 0))

    def test_a_factor_that_would_change_integers_is_a_value_error(self) -> None:
        count = np.array([2**30 + 1])
        self.refused(ValueError, "a fraction beside integers", lambda: ops.add(count, count, alpha=1.0))
        self.refused(ValueError, "other is too large", lambda: ops.add(X, 10**400, alpha=1.5))
        np.testing.assert_array_equal(ops.add(count, count, alpha=np.int64(2)), 3 * count)
        self.assertEqual(ops.add(X, X, alpha=np.array(2.0)).dtype, np.float32)

    def test_gradients_of_integers_are_value_errors(self) -> None:
        self.refused(ValueError, "no input that can have a gradient is floating",
                     lambda: xrt.backward("cast", np.arange(3), "f16", grad_output=np.ones(3, np.float16)))

    def test_shapes_that_do_not_fit_are_value_errors(self) -> None:
        self.refused(ValueError, "inner extents 3 and 2", lambda: ops.matmul(X, X))
        self.refused(ValueError, "broadcast", lambda: ops.add(X, np.ones((4,), np.float32)))
        self.refused(ValueError, "dims", lambda: ops.conv2d(X, X))
        self.refused(ValueError, "not the end of the input's shape", lambda: ops.layer_norm(X, (4,)))
        self.refused(ValueError, "empty", lambda: ops.cat([]))
        self.refused(ValueError, "rank 9", lambda: ops.relu(np.ones((1,) * 9, np.float32)))

    def test_an_index_out_of_range_names_place_value_and_range(self) -> None:
        self.refused(ValueError, "index 9 at position 1 .* give 0 to 1", lambda: ops.embedding(np.array([0, 9]), X))
        self.refused(ValueError, r"target \[1\] is -1", lambda: ops.nll_loss(X, np.array([0, -1])))

    def test_dtypes_that_an_op_does_not_take_are_value_errors(self) -> None:
        self.refused(ValueError, "floating", lambda: ops.softmax(np.ones((2,), np.int32)))
        self.refused(ValueError, "integer", lambda: ops.div(np.ones((2,), np.int32), np.ones((2,), np.int32)))


class WrongTexts(BadInput):
    def test_half_a_character_is_a_value_error(self) -> None:
        half = "\udc80"
        for number, use in enumerate(
            (
                lambda: xrt.KernelPolicy(matmul=half),
                lambda: xrt.KernelPolicy(matmul=[half]),
                lambda: xrt.KernelPolicy(matmul={"kernel": half}),
                lambda: xrt.KernelPolicy(**{half: "packed"}),
                lambda: xrt.KernelPolicy(strategy=half),
                lambda: xrt.KernelPolicy(precision={"softmax": half}),
                lambda: xrt.KernelPolicy(default_precision=half),
                lambda: xrt.KernelPolicy.from_json(half),
                lambda: xrt.ExecutionPolicy(precision=half),
                lambda: xrt.ExecutionPolicy(target=half),
                lambda: xrt.ExecutionPolicy(**{half: 1}),
                lambda: xrt.explain(half),
                lambda: xrt.Problem(half),
                lambda: xrt.autocast(half),
                lambda: xrt.use_lock(None, half),
                lambda: xrt.Device(half),
                lambda: xrt.get_available_kernels("matmul", half),
                lambda: xrt.device_profile(half),
                lambda: xrt.AmpConfig(target_precision=half),
                lambda: ops.cast(X, half),
            )
        ):
            with self.subTest(number), self.assertRaises(ValueError) as caught:
                use()
            self.assertIsInstance(caught.exception, xrt.XpuRuntimeError, number)

    def test_such_a_text_is_no_devices_name(self) -> None:
        self.assertNotEqual(xrt.Device("cpu"), "\udc80")
        self.assertEqual(xrt.Device("cpu"), "cpu:0")

    def test_what_is_no_devices_name_says_what_to_pass(self) -> None:
        for value in (None, 0, b"cpu"):
            with self.subTest(value), self.assertRaisesRegex(xrt.ArgumentTypeError, "is not a device; pass a name such as"):
                xrt.Device(value)


class WrongArrays(BadInput):
    def test_arrays_that_cannot_be_described_say_what_to_do(self) -> None:
        self.refused(ValueError, "big-endian.*newbyteorder", lambda: ops.relu(X.astype(">f4")))
        self.refused(ValueError, "objects.*astype", lambda: ops.relu(X.astype(object)))
        for dtype in ("complex64", "uint32", "U3", "S3", "datetime64[s]", "f4,i4", "V4"):
            with self.subTest(dtype=dtype):
                self.refused(xrt.NotSupportedError, "astype", lambda: ops.relu(np.zeros((2,), dtype)))

    def test_a_read_only_output_is_refused(self) -> None:
        out = np.empty_like(X)
        out.flags.writeable = False
        self.refused(ValueError, "read-only", lambda: ops.relu(X, out=out))

    def test_an_output_of_another_shape_or_dtype_is_refused_and_left_alone(self) -> None:
        for out in (np.zeros((3, 2), np.float32), np.zeros((2, 3, 1), np.float32), np.zeros((2, 3), np.int32)):
            with self.subTest(shape=out.shape, dtype=out.dtype):
                self.refused(ValueError, "output", lambda: ops.relu(X, out=out))
                self.assertFalse(out.any())
        self.refused(TypeError, "out is a list", lambda: ops.relu(X, out=[1.0]))
        self.refused(TypeError, "out is a str", lambda: ops.relu(X, out="x"))

    def test_an_output_for_vectors_has_the_shape_that_the_caller_sees(self) -> None:
        vector, matrices = np.ones(3, np.float32), np.ones((5, 3, 4), np.float32)
        self.refused(ValueError, r"its shape is \[\]; give one of the result's shape \[5,4\]",
                     lambda: ops.matmul(vector, matrices, out=np.empty((), np.float32)))
        self.refused(ValueError, r"its shape is \[1\]; give one of the result's shape \[\]",
                     lambda: ops.matmul(vector, vector, out=np.empty(1, np.float32)))
        np.testing.assert_array_equal(ops.matmul(vector, matrices, out=np.empty((5, 4), np.float32)), np.full((5, 4), 3))

    def test_an_output_that_would_change_the_result_is_refused(self) -> None:
        self.refused(ValueError, "the dtype asked for f16", lambda: ops.cast(X, "f16", out=np.empty((2, 3))))
        count = np.arange(3)
        self.refused(ValueError, "this output bool", lambda: ops.add(count, count, out=np.empty(3, bool)))

    def test_a_memoryview_that_was_released_is_refused(self) -> None:
        released = memoryview(bytearray(8))
        released.release()
        self.refused(ValueError, "released memoryview", lambda: ops.relu(released))

    def test_odd_arguments_are_refused_in_our_words(self) -> None:
        square = memoryview(bytearray(4)).cast("B", (2, 2))
        self.refused(TypeError, "shape is a memoryview", lambda: xrt.empty(square))
        for name in ("inputs", "optional_inputs", "attributes", "aliases"):
            self.refused(TypeError, f"{name} is a memoryview", lambda name=name: xrt.register_op("odd", **{name: square}))
        for attributes, kind in (([("a", 1, 2)], "list"), ("ab", "str"), (5, "int"), ([], "list")):
            self.refused(TypeError, f"attributes is an? {kind}",
                         lambda attributes=attributes: xrt.register_op("odd", attributes=attributes))

    def test_names_in_messages_are_one_line(self) -> None:
        self.refused(ValueError, r"'a\\x0ab' is not a valid kernel name",
                     lambda: xrt.register_kernel("a\nb", "relu", lambda *_: None))
        self.refused(ValueError, r"'a\\x0ab' is not a name", lambda: xrt.register_op("a\nb"))
        self.refused(ValueError, r"'a\\x0ab' cannot name a parameter", lambda: xrt.register_op("odd", inputs="a\nb"))
        for arguments in ({"name": "a\0b"}, {"inputs": ["a\0b"]}, {"attributes": {"a\0b": 1}}, {"aliases": ["a\0b"]}):
            self.refused(ValueError, "contains a NUL",
                         lambda arguments=arguments: xrt.register_op(**({"name": "odd"} | arguments)))

    def test_an_op_without_outputs_is_refused(self) -> None:
        nothing = xrt.register_op("nothing_at_all", lambda inputs: [])
        xrt.register_kernel("none", "nothing_at_all", lambda *_: None)
        self.addCleanup(xrt.unregister_kernel, "none", "nothing_at_all")
        for _ in range(3):
            self.refused(ValueError, "nothing_at_all returned no outputs", lambda: nothing(np.ones(3, np.float32)))

    def test_a_result_that_has_no_room_is_a_memory_error(self) -> None:
        # More than addresses reach: a system that promises memory it does not have would else be taken at its word.
        huge = np.broadcast_to(np.float32(1), (1 << 24, 1 << 24))
        self.refused(MemoryError, r"f32\[16777216,16777216\]", lambda: ops.add(huge, huge))

    def test_an_output_that_overlaps_an_input_is_refused_where_it_matters(self) -> None:
        square = np.ones((4, 4), np.float32)
        self.refused(ValueError, "output 0 overlaps input 0", lambda: ops.matmul(square, square, out=square))
        self.refused(ValueError, "output 0 overlaps input 0", lambda: ops.relu(square[:3], out=square[1:]))
        self.assertIs(ops.relu(square, out=square), square)  # exactly on it is fine for an elementwise op

    def test_a_scale_of_zero_is_not_taken_for_the_default(self) -> None:
        x = np.ones((1, 1, 2, 4), np.float32)
        self.refused(
            xrt.NotSupportedError, "0 stands for one over", lambda: ops.scaled_dot_product_attention(x, x, x, scale=0.0)
        )

    def test_overlaps_are_found_whatever_the_width_and_the_order(self) -> None:
        for width in (6, 10, 64, 100, 768):
            rows = np.ones((5, width), np.float32)
            half = width // 2
            left, right = rows[:, :half], rows[:, half:]
            for source, target in ((left, right), (right, left), (rows[::2][:2], rows[1::2])):
                self.assertIs(ops.relu(source, out=target), target)  # they share nothing
            for source, target in ((rows[:, : half - 1], rows[:, 1:half]), (rows[:, 1:half], rows[:, : half - 1])):
                self.refused(ValueError, "output 0 overlaps input 0", lambda: ops.exp(source, out=target))

    def test_an_output_with_elements_in_one_place_is_refused(self) -> None:
        shared = np.lib.stride_tricks.as_strided(np.zeros(3, np.float32), (2, 3), (0, 4))
        self.refused(ValueError, "elements of the output .* overlap", lambda: ops.relu(X, out=shared))
        back = np.lib.stride_tricks.as_strided(np.zeros(10, np.float32)[5:], (2, 3), (-4, -4))
        self.refused(ValueError, "its elements overlap", lambda: ops.add(X, 0.0, out=back))

    def test_an_output_is_refused_exactly_where_elements_of_it_overlap(self) -> None:
        draw = np.random.default_rng(5)
        seen = {True: 0, False: 0}
        for _ in range(300):
            shape = tuple(int(n) for n in draw.integers(1, 5, draw.integers(1, 4)))
            strides = tuple(int(n) for n in draw.integers(0, 9, len(shape)))
            places = [sum(i * s for i, s in zip(index, strides)) for index in np.ndindex(shape)]
            overlaps = len(set(places)) < len(places)
            seen[overlaps] += 1
            memory = np.zeros(max(places) + 1, np.float32)
            out = np.lib.stride_tricks.as_strided(memory, shape, tuple(4 * s for s in strides))
            x = draw.standard_normal(shape).astype(np.float32)
            if overlaps:
                self.refused(ValueError, "overlap", lambda: ops.exp(x, out=out))
                self.assertFalse(memory.any())
            else:
                np.testing.assert_allclose(ops.exp(x, out=out), np.exp(x), rtol=1e-5)
        self.assertGreater(min(seen.values()), 50)

    def test_outputs_that_overlap_each_other_are_refused_in_any_layout(self) -> None:
        square, raw = np.zeros((3, 3), np.float32), np.zeros(40, np.uint8)
        ones = np.ones((2, 3), np.float32)
        odd = raw[1:37].view(np.float32).reshape(3, 3)
        for first, second in ((square[:2], square), (square[:2], square[::-1]), (odd[:2], odd)):
            self.refused(
                ValueError,
                "output 1 overlaps output 0",
                lambda: xrt.backward("matmul", ones, np.ones((3, 3), np.float32), grad_output=ones, out=(first, second)),
            )
        values = np.zeros(15, np.float32)
        self.refused(ValueError, "overlaps", lambda: ops.unscale(values[5:9], 0.5, out=(values[:4][::-1], values[1:2])))

    def test_misaligned_arrays_are_taken(self) -> None:
        place = misaligned(6).reshape(2, 3)
        place[...] = -1
        self.assertFalse(place.flags.aligned)
        np.testing.assert_array_equal(ops.relu(place), np.zeros((2, 3)))

    def test_an_output_that_would_be_filled_in_a_copy_is_refused(self) -> None:
        for output in (np.zeros(3, np.float32)[::-1], misaligned(3)):
            with self.subTest(strides=output.strides, aligned=output.flags.aligned):
                scaler, gradient = xrt.GradScaler(), np.ones(3, np.float32)
                self.refused(xrt.InvalidArgumentError, ".", lambda: scaler.unscale([gradient], [output]))
                self.assertFalse(output.any())

    def test_a_statistic_that_would_be_updated_in_a_copy_is_refused(self) -> None:
        x, usual = np.ones((2, 3, 2, 2), np.float32), np.ones(3, np.float32)
        for statistic in (usual.copy()[::-1], misaligned(3)):
            before = statistic.copy()
            for mean, var in ((statistic, usual), (usual, statistic)):
                self.refused(ValueError, "strides are negative or its elements misaligned",
                             lambda: ops.batch_norm2d(x, mean, var, training=True))
            np.testing.assert_array_equal(statistic, before)

    def test_a_tensor_on_memory_that_no_tensor_can_describe_is_refused(self) -> None:
        self.refused(xrt.InvalidArgumentError, ".", lambda: xrt.asarray(np.ones(3, np.float32)[::-1]))

    @needs_torch
    def test_tensors_that_are_negated_later_say_how_to_do_it_now(self) -> None:
        negated = torch.complex(torch.ones(3), torch.ones(3)).conj().imag
        self.assertTrue(negated.is_neg())
        contiguous = negated.as_strided((2,), (1,))
        self.assertTrue(contiguous.is_neg() and contiguous.is_contiguous())
        for array in (negated, contiguous):
            self.refused(xrt.InvalidArgumentError, "resolve_neg", lambda array=array: ops.relu(array))
            self.refused(xrt.InvalidArgumentError, "resolve_neg", lambda array=array: xrt.asarray(array))
            self.refused(xrt.InvalidArgumentError, "resolve_neg", lambda out=array: ops.relu(torch.ones(2), out=out))

    def test_numpys_booleans_are_booleans(self) -> None:
        self.assertEqual(ops.sum(np.ones((2, 3), np.float32), dim=1, keepdim=np.bool_(True)).shape, (2, 1))
        self.assertEqual(ops.sum(np.ones((2, 3), np.float32), dim=1, keepdim=np.bool_(False)).shape, (2,))
        self.refused(TypeError, "True or False", lambda: ops.sum(np.ones(3), keepdim=np.array(True)))
        self.refused(TypeError, "an integer", lambda: ops.sum(np.ones(3), dim=np.bool_(True)))

    def test_errors_of_an_arguments_own_properties_go_on(self) -> None:
        class Broken:
            def __index__(self) -> int:
                return 0

            @property
            def dtype(self) -> str:
                raise ZeroDivisionError("mine")

        with self.assertRaisesRegex(ZeroDivisionError, "mine"):
            ops.softmax(np.ones(3, np.float32), Broken())

    def test_the_mask_of_attention_is_named_as_in_python(self) -> None:
        q = np.ones((1, 1, 2, 8), np.float32)
        self.refused(ValueError, "is_causal", lambda: ops.attention(q, q, q, causal_align="bottom_right"))

    @needs_torch
    def test_tensors_without_memory_are_not_supported(self) -> None:
        self.refused(xrt.NotSupportedError, ".", lambda: ops.relu(torch.empty(3, device="meta")))

    def test_shapes_and_arrays_that_are_none_are_refused(self) -> None:
        for shape in ("a", 2**70, 1.5):
            with self.subTest(shape=shape):
                self.refused(xrt.XpuRuntimeError, ".", lambda: xrt.empty(shape))
        self.refused(xrt.XpuRuntimeError, ".", lambda: xrt.asarray(None))

    @needs_torch
    def test_booleans_are_no_dims_or_numbers_in_a_tensor_either(self) -> None:
        for yes in (True, np.True_, torch.tensor(True)):
            with self.subTest(value=yes):
                self.refused(TypeError, "dim is a .*; pass an integer", lambda: ops.softmax(X, yes))
                self.refused(TypeError, "dim is a .*; pass an integer", lambda: ops.sum(X, [0, yes]))
                self.refused(TypeError, "eps is a .*; pass a number", lambda: ops.normalize(X, 2.0, 0, yes))

    @needs_torch
    def test_tensors_that_need_gradients_say_so(self) -> None:
        with self.assertRaisesRegex(xrt.NotSupportedError, "requires a gradient.*detach"):
            ops.relu(torch.ones(3, requires_grad=True))

    @needs_torch
    def test_what_pytorch_does_not_hand_out_is_refused_in_its_words(self) -> None:
        with self.assertRaisesRegex(xrt.NotSupportedError, "layout|storage"):
            ops.relu(torch.eye(3).to_sparse())

    def test_numbers_that_an_array_cannot_take_are_refused(self) -> None:
        self.refused(TypeError, "other is a complex", lambda: ops.add(X, 1 + 2j))
        self.refused(ValueError, "does not fit u8", lambda: ops.add(np.ones(2, np.uint8), 300))
        self.refused(ValueError, "does not fit i32", lambda: ops.add(np.ones(2, np.int32), 2**40))
        self.refused(ValueError, "other", lambda: ops.add(X, 10**400))


class WrongDlpack(BadInput):
    def test_an_object_that_speaks_dlpack_is_taken(self) -> None:
        np.testing.assert_array_equal(np.asarray(ops.relu(Speaks(X.__dlpack__))), X)

    def test_a_device_without_a_backend_is_named(self) -> None:
        for kind in (8, 10, 14):  # Metal, ROCm, oneAPI
            with self.subTest(kind=kind):
                foreign = Speaks(lambda: on_device(X.copy(), kind), (kind, 0))
                self.refused(xrt.NotSupportedError, "device", lambda: ops.relu(foreign))

    def test_a_device_that_is_not_here_is_refused(self) -> None:
        foreign = Speaks(lambda: on_device(X.copy(), 2), (2, 999))
        with self.assertRaises(xrt.XpuRuntimeError):
            ops.relu(foreign)

    def test_what_an_export_raises_comes_through(self) -> None:
        def interrupted() -> None:
            raise KeyboardInterrupt

        with self.assertRaises(KeyboardInterrupt):
            ops.relu(Speaks(interrupted))

    def test_a_device_that_is_none_is_refused(self) -> None:
        for device in (None, ("a", 0), (2, 999), 7):
            self.refused(ValueError, "__dlpack_device__ gave", lambda: ops.relu(Speaks(X.__dlpack__, device)))

    def test_an_export_that_gives_no_capsule_is_refused(self) -> None:
        for thing in (None, 5, "capsule", X):
            with self.subTest(thing=thing):
                self.refused(ValueError, "no DLPack capsule", lambda: ops.relu(Speaks(lambda: thing)))

    def test_a_capsule_that_was_used_up_is_refused(self) -> None:
        capsule = X.copy().__dlpack__()
        first = Speaks(lambda: capsule)
        ops.relu(first)
        self.refused(ValueError, "no DLPack capsule", lambda: ops.relu(first))


class Calls(BadInput):
    def test_an_explained_call_is_decided_with_its_output(self) -> None:
        x = np.ones((16, 16), np.float32)
        for out in (np.empty((16, 16), np.float32).T, np.empty((16, 16))):
            xrt.enable_dispatch_logging()
            self.addCleanup(xrt.disable_dispatch_logging)
            xrt.clear_dispatch_logs()
            ops.softmax(x, out=out)
            self.assertEqual(xrt.explain("softmax", x, out=out).kernel, xrt.get_dispatch_logs()[-1].selected_kernel)
        self.refused(ValueError, "give the shape", lambda: xrt.explain("softmax", x, out=np.empty((16, 15), np.float32)))

    def test_an_explained_call_is_decided_in_its_dtype(self) -> None:
        a = np.ones((4, 4), np.float32)
        self.assertEqual(xrt.explain("matmul", a, a, dtype="bf16").precision.forward, "bf16")
        self.refused(ValueError, ".", lambda: xrt.explain("matmul", a, a, dtype="i8"))

    def test_gradients_of_a_bias_without_a_weight_are_those_with_ones(self) -> None:
        generator = np.random.default_rng(5)
        x, g = (generator.standard_normal((3, 4)).astype(np.float32) for _ in range(2))
        bias, ones = np.ones(4, np.float32), np.ones(4, np.float32)
        got = xrt.backward("layer_norm", x, 4, None, bias, grad_output=g)
        of_x, _, of_bias = xrt.backward("layer_norm", x, 4, ones, bias, grad_output=g)
        self.assertEqual(len(got), 2)
        for one, want in zip(got, (of_x, of_bias), strict=True):
            np.testing.assert_allclose(one, want, rtol=1e-6, atol=1e-6)


class Processes(unittest.TestCase):
    def run_alone(self, script: str) -> str:
        """What the script prints in a Python of its own; it has to end well."""
        command = [sys.executable, "-c", textwrap.dedent(script)]
        done = subprocess.run(command, capture_output=True, text=True, timeout=120)
        self.assertEqual(done.returncode, 0, done.stderr)
        return done.stdout.strip()

    def test_a_rule_that_runs_its_own_op_without_end_is_rejected(self) -> None:
        printed = self.run_alone("""
            import numpy as np
            import xpuruntime as xrt

            x = np.ones((4, 4), np.float32)

            @xrt.register_rule("matmul", kernel="reference", name="endless")
            def endless(problem, profile):
                xrt.ops.matmul(x, x)
                return True

            assert (xrt.ops.matmul(x, x) == 4).all()
            print("done")
        """)
        self.assertEqual(printed, "done")

    def test_the_decision_of_an_endless_rule_tells_of_the_rejection(self) -> None:
        printed = self.run_alone("""
            import xpuruntime as xrt

            seen = []

            @xrt.register_rule("matmul", kernel="reference", name="endless")
            def endless(problem, profile):
                seen.append(xrt.explain(problem).because)
                return True

            xrt.explain("matmul(f32[4,4], f32[4,4])")
            print(seen[0])  # the innermost
        """)
        self.assertIn("endless threw", printed)

    def test_a_second_import_is_an_import_error(self) -> None:
        printed = self.run_alone("""
            import sys
            import xpuruntime

            for name in [name for name in sys.modules if name.partition(".")[0] == "xpuruntime"]:
                del sys.modules[name]
            try:
                import xpuruntime
            except ImportError:
                print("refused")
        """)
        self.assertEqual(printed, "refused")

    def mask_of_child(self) -> bytes:
        """Which elements dropout keeps in a forked child; it is stopped where it hangs."""
        reader, writer = os.pipe()
        child = os.fork()
        if child == 0:
            signal.alarm(60)
            try:
                os.write(writer, (ops.dropout(np.ones(256, np.float32)) != 0).tobytes())
            finally:
                os._exit(0)
        os.close(writer)
        with os.fdopen(reader, "rb") as pipe:
            mask = pipe.read()
        os.waitpid(child, 0)
        return mask

    @unittest.skipIf("tsan" in os.environ.get("LD_PRELOAD", ""), "the thread sanitizer does not follow forks")
    def test_forked_children_draw_masks_of_their_own(self) -> None:
        ops.dropout(np.ones(256, np.float32))  # the parent's generator has started
        masks = [self.mask_of_child(), self.mask_of_child(), (ops.dropout(np.ones(256, np.float32)) != 0).tobytes()]
        self.assertEqual([len(mask) for mask in masks], [256, 256, 256])
        self.assertEqual(len(set(masks)), 3)


if __name__ == "__main__":
    unittest.main()
