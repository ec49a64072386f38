"""Arrays in many dtypes, layouts and frameworks for the tests, and how close to float64 a result must be."""

from __future__ import annotations

from typing import Any

from packages import need

need("numpy", "ml_dtypes", "torch", "hypothesis")

import ml_dtypes
import numpy as np
import torch
from hypothesis import strategies as st

BF16 = np.dtype(ml_dtypes.bfloat16)
FLOATS = [np.dtype(np.float64), np.dtype(np.float32), np.dtype(np.float16), BF16]
INTEGERS = [np.dtype(name) for name in ("int64", "int32", "int16", "int8", "uint8")]
LAYOUTS = ["contiguous", "transposed", "stepped", "offset", "broadcast", "reversed", "read_only"]

# A result is rounded once, from f32 for the 16-bit floats, so one step of its dtype and the noise of f32 are allowed.
RELATIVE = {"float64": 1e-11, "float32": 1e-5, "float16": 2.0**-10, "bfloat16": 2.0**-7}
ABSOLUTE = {"float64": 1e-11, "float32": 1e-5, "float16": 1e-5, "bfloat16": 1e-5}


def values(shape: tuple[int, ...], dtype: np.dtype, seed: int, low: float = -2.0, high: float = 2.0) -> np.ndarray:
    """Evenly spread numbers that the dtype can hold."""
    random = np.random.default_rng(seed)
    if dtype == np.bool_:
        return random.integers(0, 2, shape).astype(np.bool_)
    if dtype.kind in "iu":
        ends, within = np.iinfo(dtype), (low, high) if high > 8 else (-7, 7)  # small ones leave room for sums
        return random.integers(max(ends.min, int(within[0])), min(ends.max, int(within[1])) + 1, shape).astype(dtype)
    return random.uniform(low, high, shape).astype(dtype)


def laid_out(array: np.ndarray, layout: str) -> np.ndarray:
    """The same numbers in another layout."""
    if layout == "transposed":
        return np.array(array, order="F")
    if layout == "offset":  # aligned to its element and to no more
        flat = np.empty(array.size + 1, array.dtype)[1:]
        flat[...] = array.reshape(-1)
        return flat.reshape(array.shape)
    if array.ndim > 0 and layout == "stepped":
        room = np.zeros((*array.shape[:-1], array.shape[-1] * 2), array.dtype)
        room[..., ::2] = array
        return room[..., ::2]
    if array.ndim > 0 and layout == "reversed":
        return np.ascontiguousarray(array[::-1])[::-1]
    if array.ndim > 0 and array.shape[0] > 0 and layout == "broadcast":  # the rows are all the first one, in one place
        return np.broadcast_to(array[:1].copy(), array.shape)
    if layout == "read_only":
        array = array.copy()
        array.flags.writeable = False
    return array


def to_torch(array: np.ndarray) -> torch.Tensor:
    """The same memory as a tensor, bar what PyTorch cannot look at: read-only or turned round."""
    if not array.flags.writeable or any(stride < 0 for stride in array.strides):
        array = array.copy()
    if array.dtype == BF16:
        return torch.from_dlpack(array.view(np.int16)).view(torch.bfloat16)
    if array.dtype == np.bool_:
        return torch.from_dlpack(array.view(np.uint8)).view(torch.bool)
    return torch.from_dlpack(array)


def to_numpy(array: Any) -> np.ndarray:
    """A result as a NumPy array, whichever framework it came back in."""
    if not isinstance(array, torch.Tensor):
        return np.asarray(array)
    if array.dtype == torch.bfloat16:
        return np.from_dlpack(array.view(torch.int16)).view(BF16)
    if array.dtype == torch.bool:
        return np.from_dlpack(array.view(torch.uint8)).view(np.bool_)
    return np.from_dlpack(array)


def wide(array: Any) -> torch.Tensor:
    """For the oracle: floats in float64, integers as they are."""
    if not isinstance(array, np.ndarray):
        return array
    if array.dtype.kind in "iub":
        return to_torch(array.copy())
    return to_torch(array.astype(np.float64))


@st.composite
def arrays(draw: Any, shape: tuple[int, ...], dtype: np.dtype, low: float = -2.0, high: float = 2.0) -> np.ndarray:
    """An array of this shape in some layout."""
    array = values(shape, dtype, draw(st.integers(0, 2**20)), low, high)
    return laid_out(array, draw(st.sampled_from(LAYOUTS)))


@st.composite
def shapes(draw: Any, least: int = 0, most: int = 4, extent: int = 6, smallest: int = 1) -> tuple[int, ...]:
    """A shape of `least` to `most` dims, each number of them as often: Hypothesis's own lists are mostly empty."""
    random = np.random.default_rng(draw(st.integers(0, 2**20)))
    return tuple(random.integers(smallest, extent + 1, random.integers(least, most + 1)).tolist())


@st.composite
def broadcast_pairs(draw: Any, most: int = 4) -> tuple[tuple[int, ...], tuple[int, ...]]:
    """Two shapes that broadcast."""
    whole = draw(shapes(0, most))
    pair = []
    for _ in range(2):
        part = [draw(st.sampled_from([extent, 1])) for extent in whole]
        pair.append(tuple(part[draw(st.integers(0, len(part))):]))
    return pair[0], pair[1]
