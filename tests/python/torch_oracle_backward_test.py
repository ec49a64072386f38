"""Gradients against PyTorch's autograd in float64, for every op that has backward kernels."""

from __future__ import annotations

import unittest
from typing import Any, Callable

# First: it skips the file where a package is missing.
from arrays_for_tests import FLOATS, arrays, shapes, values, wide

import hypothesis
import numpy as np
import torch
import torch.nn.functional as functional
from hypothesis import strategies as st

import xpuruntime as xrt
from oracle_case import OracleCase, against_oracle

floats = st.sampled_from(FLOATS)
small = st.integers(1, 4)


class Gradients(OracleCase):
    def wanted(self, draw: Any, inputs: list[np.ndarray], forward: Callable[..., torch.Tensor]) -> tuple[Any, Any]:
        """What autograd gives, and the gradient of the output that it started from."""
        leaves = [wide(array).clone().requires_grad_(array.dtype.kind not in "iu") for array in inputs]
        result = forward(*leaves)
        gradient = draw(arrays(tuple(result.shape), inputs[0].dtype))
        result.backward(wide(gradient))
        return [leaf.grad for leaf in leaves if leaf.requires_grad], gradient

    def check_gradients(self, draw: Any, op: str, inputs: list[np.ndarray], forward: Callable[..., torch.Tensor],
                        **attributes: Any) -> None:
        """The gradients of the floating inputs, from one drawn gradient of the output."""
        dtype = inputs[0].dtype
        wanted, gradient = self.wanted(draw, inputs, forward)
        got = xrt.backward(op, *inputs, grad_output=gradient, **attributes)
        self.assertEqual(len(got), len(wanted), op)
        for number, (one, want) in enumerate(zip(got, wanted)):
            what = f"gradient {number} of {op} {[array.shape for array in inputs]} {dtype} {attributes}"
            self.close(one, want, dtype, what)

    @against_oracle(examples=30)
    def test_gradients_of_matmul(self, draw: Any) -> None:
        dtype, m, n, k = draw(floats), draw(small), draw(small), draw(small)
        batch = draw(shapes(0, 2, 3))
        inputs = [draw(arrays((*batch, m, k), dtype)), draw(arrays((*batch, k, n), dtype))]
        self.check_gradients(draw, "matmul", inputs, torch.matmul)

    @against_oracle(examples=40)
    def test_gradients_of_linear(self, draw: Any) -> None:
        dtype, features, out = draw(floats), draw(small), draw(small)
        inputs = [draw(arrays((*draw(shapes(1, 2, 4)), features), dtype)), draw(arrays((out, features), dtype))]
        if draw(st.booleans()):
            inputs.append(draw(arrays((out,), dtype)))
        name = draw(st.sampled_from(["none", "relu", "gelu", "silu"]))
        after = (lambda x: x) if name == "none" else getattr(functional, name)
        if name == "relu":  # at the kink the rounding of 16 bits decides which side it is
            hypothesis.assume(functional.linear(*map(wide, inputs)).abs().min() > 1e-2)
        self.check_gradients(draw, "linear", inputs, lambda *x: after(functional.linear(*x)), activation=name)

    def convolve(self, draw: Any, op: str, dims: int) -> None:
        dtype, groups = draw(floats), draw(st.integers(1, 2))
        channels, out = groups * draw(st.integers(1, 2)), groups * draw(st.integers(1, 2))
        more: dict[str, Any] = {name: [draw(st.integers(1, 2)) for _ in range(dims)] for name in ("stride", "dilation")}
        more |= {"padding": [draw(st.integers(0, 1)) for _ in range(dims)], "groups": groups}
        kernel = [draw(st.integers(1, 3)) for _ in range(dims)]
        extents = [more["dilation"][i] * (kernel[i] - 1) + 1 + draw(st.integers(0, 2)) for i in range(dims)]
        inputs = [draw(arrays((draw(st.integers(1, 2)), channels, *extents), dtype)),
                  draw(arrays((out, channels // groups, *kernel), dtype))]
        if draw(st.booleans()):
            inputs.append(draw(arrays((out,), dtype)))
        self.check_gradients(draw, op, inputs, lambda *x: getattr(functional, op)(*x, **more), **more)

    @against_oracle(examples=25)
    def test_gradients_of_conv2d(self, draw: Any) -> None:
        self.convolve(draw, "conv2d", 2)

    @against_oracle(examples=15)
    def test_gradients_of_conv3d(self, draw: Any) -> None:
        self.convolve(draw, "conv3d", 3)

    @against_oracle(examples=60)
    def test_gradients_of_activations(self, draw: Any) -> None:
        op = draw(st.sampled_from(["relu", "gelu", "silu", "sigmoid", "tanh"]))
        more = {"approximate": draw(st.sampled_from(["none", "tanh"]))} if op == "gelu" else {}
        x = draw(arrays(draw(shapes(0, 3)), draw(floats), -4, 4))
        forward = getattr(torch, op, None) or getattr(functional, op)
        self.check_gradients(draw, op, [x], lambda y: forward(y, **more), **more)

    @against_oracle(examples=40)
    def test_gradients_of_softmax_and_its_logarithm(self, draw: Any) -> None:
        op, shape = draw(st.sampled_from(["softmax", "log_softmax"])), draw(shapes(1, 3))
        x, dim = draw(arrays(shape, draw(floats), -4, 4)), draw(st.integers(-len(shape), len(shape) - 1))
        self.check_gradients(draw, op, [x], lambda y: getattr(functional, op)(y, dim), dim=dim)

    @against_oracle(examples=30)
    def test_gradients_of_layer_norm(self, draw: Any) -> None:
        dtype, shape = draw(floats), (*draw(shapes(1, 2, 4)), draw(st.integers(2, 6)))
        # Spread out, so that the division by the deviation does not blow up what was rounded.
        x = values(shape, dtype, draw(st.integers(0, 99))) + (5 * np.arange(shape[-1])).astype(dtype)
        last = shape[-1:]
        inputs = [x.astype(dtype), draw(arrays(last, dtype)), draw(arrays(last, dtype))]
        count = draw(st.integers(1, 3))
        forward = lambda y, *more: functional.layer_norm(y, last, *more)  # noqa: E731
        wanted, gradient = self.wanted(draw, inputs[:count], forward)
        got = xrt.backward("layer_norm", x, last, *inputs[1:count], grad_output=gradient)
        for one, want in zip(got, wanted, strict=True):
            self.close(one, want, dtype, f"a gradient of layer_norm {shape} {dtype}")

    @against_oracle(examples=50)
    def test_gradients_of_losses_over_classes(self, draw: Any) -> None:
        op, dtype, classes = draw(st.sampled_from(["cross_entropy", "nll_loss"])), draw(floats), draw(small)
        batch = draw(shapes(1, 2, 4))
        scores = draw(arrays((batch[0], classes, *batch[1:]), dtype))
        target = np.random.default_rng(draw(st.integers(0, 99))).integers(0, classes, batch)
        more: dict[str, Any] = {"reduction": draw(st.sampled_from(["mean", "sum", "none"]))}
        if op == "cross_entropy":
            more["label_smoothing"] = draw(st.sampled_from([0.0, 0.2]))
        forward = getattr(functional, op)
        self.check_gradients(draw, op, [scores, target], lambda x, y: forward(x, y, **more), **more)


if __name__ == "__main__":
    unittest.main()
