"""Functions of one and of two elements, comparisons, logic and choices, against PyTorch and NumPy in float64."""

from __future__ import annotations

import unittest
from typing import Any

# First: it skips the file where a package is missing.
from arrays_for_tests import FLOATS, INTEGERS, arrays, broadcast_pairs, shapes, wide

import numpy as np
import torch
import torch.nn.functional as functional
from hypothesis import strategies as st

from oracle_case import OracleCase, against_oracle

floats = st.sampled_from(FLOATS)
integers = st.sampled_from(INTEGERS)
BOOL = np.dtype(bool)
RANGES = {"reciprocal": (0.2, 4), "asin": (-0.9, 0.9), "acos": (-0.9, 0.9), "atanh": (-0.9, 0.9), "acosh": (1.1, 9),
          "tan": (-1.4, 1.4)}
FUNCTIONS = ["abs", "neg", "sign", "floor", "ceil", "round", "reciprocal", "erf", "sin", "cos", "tan", "asin", "acos",
             "atan", "sinh", "cosh", "asinh", "acosh", "atanh", "softplus"]
COMPARISONS = {"equal": "eq", "not_equal": "ne", "less": "lt", "less_equal": "le", "greater": "gt", "greater_equal": "ge"}
BITS = {"bitwise_and": np.bitwise_and, "bitwise_or": np.bitwise_or, "bitwise_xor": np.bitwise_xor}
LOGIC = {"logical_and": np.logical_and, "logical_or": np.logical_or, "logical_xor": np.logical_xor}


class FunctionOps(OracleCase):
    @against_oracle(*FUNCTIONS, examples=160)
    def test_functions_agree_with_pytorch(self, draw: Any) -> None:
        op, dtype = draw(st.sampled_from(FUNCTIONS)), draw(floats)
        x = draw(arrays(draw(shapes(0, 4, smallest=0)), dtype, *RANGES.get(op, (-6, 6))))
        want = getattr(torch, op, None) or getattr(functional, op)
        self.check(draw, op, x, want=want(wide(x)))

    @against_oracle("abs", "neg", "sign", "clip", examples=40)
    def test_functions_of_integers_agree_with_numpy(self, draw: Any) -> None:
        op, dtype = draw(st.sampled_from(["abs", "neg", "sign", "clip"])), draw(integers)
        x = draw(arrays(draw(shapes()), dtype))
        if op == "clip":
            self.check(draw, op, x, min=2, want=np.maximum(x, 2).astype(dtype))
        else:
            self.check(draw, op, x, want={"abs": np.abs, "neg": np.negative, "sign": np.sign}[op](x))

    @against_oracle("clip", "leaky_relu", "elu", "hard_sigmoid", "hard_swish", "prelu", examples=80)
    def test_activations_agree_with_pytorch(self, draw: Any) -> None:
        op = draw(st.sampled_from(["clip", "leaky_relu", "elu", "hard_sigmoid", "hard_swish", "prelu"]))
        x = draw(arrays(draw(shapes()), draw(floats), -5, 5))
        if op == "prelu":
            slope = draw(arrays(x.shape[-1:], x.dtype))
            y = wide(x)
            self.check(draw, op, x, slope, want=torch.where(y < 0, y * wide(slope), y))
            return
        more: dict[str, Any] = {}
        if op == "clip":
            more = draw(st.sampled_from([{"min": -1.0}, {"max": 0.5}, {"min": -1.0, "max": 0.5}]))
        elif op in ("leaky_relu", "elu"):
            more = {"negative_slope" if op == "leaky_relu" else "alpha": draw(st.sampled_from([0.01, 0.5]))}
        want = {"clip": torch.clip, "hard_sigmoid": functional.hardsigmoid, "hard_swish": functional.hardswish}.get(op)
        want = want or getattr(functional, op)
        self.check(draw, op, x, want=want(wide(x), **more), **more)

    @against_oracle("isnan", "isinf")
    def test_numbers_that_are_none_are_found(self, draw: Any) -> None:
        op = draw(st.sampled_from(["isnan", "isinf"]))
        x = draw(arrays(draw(shapes(1)), draw(floats))).copy()
        x.reshape(-1)[-1] = draw(st.sampled_from([np.inf, -np.inf, np.nan, 1.0]))
        want = np.isnan if op == "isnan" else np.isinf
        self.check(draw, op, x, want=want(x.astype(np.float64)), dtype=BOOL)


class PairOps(OracleCase):
    @against_oracle("maximum", "minimum", "pow", "remainder", "fmod", "trunc_div", examples=120)
    def test_pairs_agree_with_pytorch(self, draw: Any) -> None:
        op = draw(st.sampled_from(["maximum", "minimum", "pow", "remainder", "fmod", "trunc_div"]))
        dtype = draw(integers if op == "trunc_div" else st.sampled_from(FLOATS + INTEGERS) if op != "pow" else floats)
        left, right = draw(broadcast_pairs())
        a, b = draw(arrays(left, dtype, *((0.3, 2) if op == "pow" else (-6, 6)))), draw(arrays(right, dtype, 0.5, 2))
        if dtype.kind in "iu" and op not in ("maximum", "minimum"):
            b = np.where(b == 0, 3, b).astype(dtype)
        torch_op = getattr(torch, op, None) or (lambda a, b: torch.div(a, b, rounding_mode="trunc"))
        want = torch_op(wide(a), wide(b))
        self.check(draw, op, a, b, want=want)

    @against_oracle("pow")
    def test_powers_of_integers_wrap(self, draw: Any) -> None:
        x = draw(arrays(draw(shapes()), np.dtype(np.int32)))
        self.check(draw, "pow", x, 3, want=x**3)

    @against_oracle("remainder", "fmod", "trunc_div")
    def test_what_is_divided_by_zero_is_zero(self, draw: Any) -> None:
        x = draw(arrays(draw(shapes()), draw(integers)))
        for op in ("remainder", "fmod", "trunc_div"):
            self.check(draw, op, x, 0, want=np.zeros_like(x))

    @against_oracle(*COMPARISONS, examples=100)
    def test_comparisons_agree_with_pytorch(self, draw: Any) -> None:
        op, dtype = draw(st.sampled_from([*COMPARISONS])), draw(st.sampled_from([*FLOATS, *INTEGERS, BOOL]))
        left, right = draw(broadcast_pairs())
        a, b = (np.array(np.rint(draw(arrays(shape, dtype)).astype(np.float64)), dtype) for shape in (left, right))
        want = getattr(torch, COMPARISONS[op])(wide(a), wide(b))
        self.check(draw, op, a, b, want=want, dtype=BOOL)

    @against_oracle("logical_and", "logical_or", "logical_xor", "logical_not")
    def test_logic_agrees_with_numpy(self, draw: Any) -> None:
        left, right = draw(broadcast_pairs())
        a, b = draw(arrays(left, BOOL)), draw(arrays(right, BOOL))
        op = draw(st.sampled_from([*LOGIC]))
        self.check(draw, op, a, b, want=LOGIC[op](a, b))
        self.check(draw, "logical_not", a, want=~a)

    @against_oracle("bitwise_and", "bitwise_or", "bitwise_xor", "bitwise_not", "shift_left", "shift_right", examples=60)
    def test_bits_agree_with_numpy(self, draw: Any) -> None:
        dtype = draw(integers)
        left, right = draw(broadcast_pairs())
        a, b = draw(arrays(left, dtype)), draw(arrays(right, dtype))
        op = draw(st.sampled_from([*BITS]))
        self.check(draw, op, a, b, want=BITS[op](a, b))
        self.check(draw, "bitwise_not", a, want=~a)
        places = np.abs(b) % 4
        self.check(draw, "shift_left", a, places, want=np.left_shift(a, places))
        self.check(draw, "shift_right", a, places, want=np.right_shift(a, places))

    @against_oracle("where", examples=40)
    def test_where_agrees_with_numpy(self, draw: Any) -> None:
        dtype = draw(st.sampled_from([*FLOATS, *INTEGERS, BOOL]))
        left, right = draw(broadcast_pairs())
        whole = np.broadcast_shapes(left, right)
        condition = draw(arrays(draw(st.sampled_from([left, right, whole])), BOOL))
        a, b = draw(arrays(left, dtype)), draw(arrays(right, dtype))
        self.check(draw, "where", condition, a, b, want=np.where(condition, a, b), dtype=dtype)


if __name__ == "__main__":
    unittest.main()
