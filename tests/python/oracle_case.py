"""One call of an op against its oracle: value, shape, dtype, framework, out=, and inputs left alone."""

from __future__ import annotations

import os
import unittest
from typing import Any, Callable

from arrays_for_tests import ABSOLUTE, RELATIVE, to_numpy, to_torch  # first: skips all where a package is missing

import hypothesis
import numpy as np
import torch
from hypothesis import strategies as st

import xpuruntime as xrt

REDUCED = int(os.environ.get("XRT_TEST_REDUCED", "1"))  # builds with sanitizers run several times slower
CHECKED: set[str] = set()  # ops that have an oracle


def against_oracle(*ops: str, examples: int = 20) -> Callable[[Callable[..., None]], Callable[..., None]]:
    """A test that draws its own inputs: `test(self, draw)`. The same draws come every time."""

    def decorate(test: Callable[..., None]) -> Callable[..., None]:
        CHECKED.update(ops)

        def with_draw(self: OracleCase, data: Any) -> None:
            test(self, data.draw)

        with_draw.__name__ = test.__name__
        settings = hypothesis.settings(
            max_examples=max(examples // REDUCED, 3), deadline=None, derandomize=True, database=None,
            suppress_health_check=list(hypothesis.HealthCheck),
        )
        return settings(hypothesis.given(st.data())(with_draw))

    return decorate


def mapped(change: Callable[[np.ndarray], Any], value: Any) -> Any:
    """`value` with each array in it changed, also inside lists."""
    if isinstance(value, np.ndarray):
        return change(value)
    return [mapped(change, item) for item in value] if isinstance(value, list) else value


class OracleCase(unittest.TestCase):
    """Compares `xrt.ops` with values that PyTorch or NumPy computed in float64."""

    def close(self, got: Any, want: Any, dtype: np.dtype, what: str, absolute: float = 0) -> None:
        """One result: its dtype, its shape, and its numbers; `absolute` allows for more than rounding the result."""
        numbers = to_numpy(got)
        expected = to_numpy(want) if isinstance(want, torch.Tensor) else np.asarray(want)
        self.assertEqual(numbers.dtype, dtype, what)
        self.assertEqual(numbers.shape, expected.shape, what)
        if dtype.kind in "iub":
            np.testing.assert_array_equal(numbers, expected, what)
            return
        np.testing.assert_allclose(
            numbers.astype(np.float64), expected.astype(np.float64), RELATIVE.get(dtype.name, 0),
            max(ABSOLUTE.get(dtype.name, 0), absolute), err_msg=what,
        )

    def check(self, draw: Any, op: str, *arguments: Any, want: Any, dtype: Any = None, absolute: float = 0,
              **attributes: Any) -> None:
        """`xrt.ops.<op>(*arguments, **attributes)` is `want`, in NumPy or PyTorch, alone or into `out`."""
        wanted = want if isinstance(want, (tuple, list)) else [want]
        first = arguments[0][0] if isinstance(arguments[0], list) else arguments[0]
        dtypes = dtype if isinstance(dtype, list) else [dtype or first.dtype] * len(wanted)
        booleans = any(isinstance(x, np.ndarray) and x.dtype == np.bool_ for x in (*arguments, *attributes.values()))
        in_torch = draw(st.booleans()) and not booleans and np.bool_ not in dtypes  # old DLPacks have none
        framework, change = (torch.Tensor, to_torch) if in_torch else (np.ndarray, lambda array: array)
        inputs = [mapped(change, argument) for argument in arguments]
        named = {name: mapped(change, value) for name, value in attributes.items()}
        before = [to_numpy(x).copy() for x in inputs if isinstance(x, (np.ndarray, torch.Tensor))]
        what = f"{op}{[getattr(a, 'shape', a) for a in arguments]} {dtypes} {attributes} in {framework.__name__}"
        function = getattr(xrt.ops, op)

        results = function(*inputs, **named)
        results = results if isinstance(results, tuple) else (results,)
        self.assertEqual(len(results), len(wanted), what)
        for result, expected, kind in zip(results, wanted, dtypes):
            self.assertIsInstance(result, framework, what)
            self.close(result, expected, kind, what, absolute)

        outs = tuple(mapped(change, np.empty(to_numpy(result).shape, kind)) for result, kind in zip(results, dtypes))
        given = function(*inputs, **named, out=outs if len(outs) > 1 else outs[0])
        for result, place, expected in zip(given if isinstance(given, tuple) else (given,), outs, results):
            self.assertIs(result, place, what)
            self.assertEqual(to_numpy(place).tobytes(), to_numpy(expected).tobytes(), what)

        after = [to_numpy(x) for x in inputs if isinstance(x, (np.ndarray, torch.Tensor))]
        for old, new in zip(before, after):
            self.assertEqual(new.tobytes(), old.tobytes(), f"{what}: an input changed")
