"""Calls that are right but for an argument or two: each gives a result or an error of ours, and never a crash."""

from __future__ import annotations

import array
import ctypes
import random
import re
import unittest
from typing import Any, Callable

from packages import need

need("numpy", "ml_dtypes")

import ml_dtypes
import numpy as np

import xpuruntime as xrt
from xpuruntime import ops

CALLS = 40000
FLOATS = [np.float64, np.float16, ml_dtypes.bfloat16]


def normal(*shape: int) -> np.ndarray:
    return np.random.standard_normal(shape).astype(np.float32)


def indices(end: int, *shape: int) -> np.ndarray:
    return np.random.randint(0, end, shape)


def four() -> list[Any]:
    return [normal(2, 3, 4, 4), normal(3), abs(normal(3)), normal(3), normal(3), True, 0.1, 1e-5]


# Arguments in order, where they are not those that the op's row gives.
RIGHT: dict[str, Callable[[], list[Any]]] = {
    "matmul": lambda: [normal(4, 5), normal(5, 6)],
    "linear": lambda: [normal(4, 5), normal(6, 5), normal(6)],
    "conv2d": lambda: [normal(1, 4, 6, 6), normal(4, 4, 3, 3), normal(4), 1, 1, 1, 1],
    "conv3d": lambda: [normal(1, 2, 4, 4, 4), normal(2, 2, 3, 3, 3), normal(2), 1, 1, 1, 1],
    "attention": lambda: [normal(1, 2, 4, 8), normal(1, 2, 5, 8), normal(1, 2, 5, 8), normal(4, 5)],
    "max_pool2d": lambda: [normal(1, 2, 6, 6), 2, 2, 0, 1, False],
    "max_pool3d": lambda: [normal(1, 2, 6, 6, 6), 2, 2, 0, 1, False],
    "avg_pool2d": lambda: [normal(1, 2, 6, 6), 2, 2, 0, False, True],
    "avg_pool3d": lambda: [normal(1, 2, 4, 4, 4), 2],
    "batch_norm": four,
    "batch_norm1d": lambda: [normal(4, 3), *four()[1:]],
    "batch_norm2d": four,
    "batch_norm3d": lambda: [normal(2, 3, 2, 2, 2), *four()[1:3]],
    "dropout": lambda: [normal(4, 6), 0.5, True],
    "add": lambda: [normal(4, 6), normal(6)],
    "sub": lambda: [normal(4, 6), 2.0],
    "mul": lambda: [normal(4, 6), normal(4, 1)],
    "cross_entropy": lambda: [normal(4, 6), indices(6, 4), abs(normal(6)), -100, "mean", 0.0],
    "nll_loss": lambda: [normal(4, 6), indices(6, 4), abs(normal(6)), -100, "sum"],
    "cast": lambda: [normal(4, 6), "f16"],
    "permute": lambda: [normal(2, 3, 4), (2, 0, 1)],
    "transpose": lambda: [normal(2, 3, 4), 0, 2],
    "concat": lambda: [[normal(2, 3), normal(2, 3)], 0],
    "slice": lambda: [normal(6, 4), 0, 1, 5, 2],
    "unscale": lambda: [normal(4), 0.5],
}

ROWS = {row["name"]: row for row in xrt._core.op_rows()}
OP_OF = {name: op for name, _, op in xrt._core.op_signatures()}


def usual(name: str, parameters: list[str]) -> list[Any]:
    """An array for each input that is needed, as the row's sample has them, and the defaults."""
    row = ROWS[OP_OF[name]]
    arrays = [normal(4, 6) for spec in row["inputs"] if not spec["optional"]]
    if "i64" in row["sample"]:
        sample = re.findall(r"(\w+)\[([\d,]+)\]", row["sample"])
        shapes = [(dtype, [int(extent) for extent in extents.split(",")]) for dtype, extents in sample]
        arrays = [indices(2, *shape) if dtype == "i64" else normal(*shape) for dtype, shape in shapes]
    if "normalized_shape" in parameters:
        return [*arrays, (6,), *(normal(6) for spec in row["inputs"] if spec["optional"]), 1e-5]
    return arrays + [spec["default"] for spec in row["attributes"]]


JUNK: list[Any] = [
    None, True, False, 0, 1, -1, 2, 3, -100, 10**20, -(10**30), 2**63, 2**31, 0.0, 0.5, -1.5, 1e300, float("nan"),
    float("inf"), "mean", "none", "tanh", "f16", "same", "", "\ud800", b"x", [], [1], [1, 2], (2, 2), (0, 0), (1, -1),
    [None], [1.5], {}, {1: 2}, object(), int, lambda: 0, np.float32(2), np.int64(1), np.array(1), np.array(2.0),
    np.array([1, 0]), range(3), np.float16, array.array("f", [1, 2, 3]), memoryview(bytearray(12)), (ctypes.c_float * 3)(),
    (ctypes.c_int * 2 * 2)(), bytearray(4), complex(1), slice(1), xrt.Tensor.__new__(xrt.Tensor),
]  # fmt: skip

SHAPES = [(), (1,), (3,), (2, 3), (2, 3, 4), (1, 2, 4, 4), (1, 2, 3, 4, 4), (0, 3), (2, 0), (1,) * 8]


def any_array() -> np.ndarray:
    dtype = random.choice([np.float32, *FLOATS, np.int64, np.int32, np.int8, np.uint8, bool])
    return np.asarray(normal(*random.choice(SHAPES)) * 3).astype(dtype)


def laid_out(value: Any) -> Any:
    """An array in another layout or dtype, now and then."""
    if not isinstance(value, np.ndarray) or value.ndim == 0:
        return value
    layouts: list[Callable[[np.ndarray], np.ndarray]] = [
        lambda a: a[::-1],
        np.asfortranarray,
        lambda a: np.repeat(a, 2, axis=-1)[..., ::2],
        lambda a: a.astype(random.choice(FLOATS)) if a.dtype.kind == "f" else a.astype(np.int32),
        lambda a: np.frombuffer(b"x" + a.tobytes(), np.uint8)[1:].view(a.dtype).reshape(a.shape),
    ]
    return random.choice(layouts)(value) if random.random() < 0.4 else value


class Junk(unittest.TestCase):
    def arguments(self, name: str, parameters: list[str]) -> tuple[list[Any], dict[str, Any]]:
        given = [laid_out(value) for value in (RIGHT[name]() if name in RIGHT else usual(name, parameters))]
        named: dict[str, Any] = {}
        for _ in range(random.choice([0, 1, 1, 2])):
            place, value = random.randrange(len(parameters)), random.choice(JUNK)
            if random.random() < 0.5:
                value = any_array()
            if place < len(given):
                given[place] = value
            else:
                named[parameters[place]] = value
        if random.random() < 0.1:
            named["out"] = random.choice([laid_out(normal(4, 6)), laid_out(normal(4, 6).astype(np.float64)), *given])
        return given, named

    def call(self, name: str, given: list[Any], named: dict[str, Any]) -> None:
        kind = random.random()
        if kind < 0.8:
            getattr(ops, name)(*given, **named)
        elif kind < 0.9:
            xrt.explain(name, *given, **named)
        else:
            gradient = random.choice([normal(4, 6), any_array(), random.choice(JUNK)])
            xrt.backward(name, *given, grad_output=gradient, **named)

    def test_calls_that_are_wrong_in_an_argument_or_two(self) -> None:
        random.seed(7)
        np.random.seed(7)
        names = {name: [part.split(":")[0] for part in text.split(", ") if part != "*"]
                 for name, text, _ in xrt._core.op_signatures()}
        worked = refused = 0
        for _ in range(CALLS):
            name = random.choice(ops.__all__)
            given, named = self.arguments(name, names[name])
            try:
                self.call(name, given, named)
                worked += 1
            except xrt.XpuRuntimeError:
                refused += 1
            except Exception as error:
                self.fail(f"{type(error).__name__}: {error} from {name}")
        # Else it is not right calls that are tried.
        self.assertGreater(worked, CALLS / 5)
        self.assertGreater(refused, CALLS / 5)


if __name__ == "__main__":
    unittest.main()
