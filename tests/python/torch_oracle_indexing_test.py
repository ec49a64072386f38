"""Ops that take, write, arrange and order elements, and quantized integers, against NumPy and PyTorch."""

from __future__ import annotations

import unittest
from typing import Any

# First: it skips the file where a package is missing.
from arrays_for_tests import BF16, FLOATS, INTEGERS, arrays, shapes, values, wide

import numpy as np
import torch
from hypothesis import strategies as st

import xpuruntime as xrt
from oracle_case import OracleCase, against_oracle

BOOL = np.dtype(bool)
F32, I64 = np.dtype(np.float32), np.dtype(np.int64)
numbers = st.sampled_from(FLOATS + INTEGERS)
anything = st.sampled_from([*FLOATS, *INTEGERS, BOOL])
seeds = st.integers(0, 2**20)
REDUCE = {"none": lambda there, update: update, "add": np.add, "mul": np.multiply, "max": np.maximum, "min": np.minimum}


def draw_indices(draw: Any, shape: tuple[int, ...], extents: Any, room: bool = True) -> np.ndarray:
    """Places in dims of these extents, from the front or, in signed dtypes, from the back."""
    dtype = draw(st.sampled_from([np.dtype(np.int64), np.dtype(np.int32), *INTEGERS[2:]]))
    random, extents = np.random.default_rng(draw(seeds)), np.asarray(extents)
    lowest = -extents if dtype.kind == "i" and draw(st.booleans()) else 0 * extents
    return np.asarray(random.integers(lowest, extents, shape) if room else np.zeros(shape), dtype)


def draw_dim(draw: Any, rank: int) -> int:
    return draw(st.integers(-rank, rank - 1))


def with_ties(draw: Any, shape: tuple[int, ...], dtype: np.dtype) -> np.ndarray:
    """Few different numbers; of floats some NaN and infinities."""
    array = np.array(np.rint(draw(arrays(shape, dtype)).astype(np.float64)), dtype)
    if dtype.kind not in "iu" and array.size and draw(st.booleans()):
        random = np.random.default_rng(draw(seeds))
        odd = random.choice(np.array([np.nan, np.inf, -np.inf, -0.0]), array.shape).astype(dtype)
        array = np.where(random.random(array.shape) < 0.4, odd, array)
    return array


def written(data: np.ndarray, places: Any, updates: Any, reduction: str) -> np.ndarray:
    """One update after the other: of several for one place the last stays."""
    result = data.copy()
    for place, update in zip(places, updates):
        result[place] = REDUCE[reduction](result[place], update)
    return result


class TakingOps(OracleCase):
    @against_oracle("gather", examples=80)
    def test_gather_agrees_with_numpys_take(self, draw: Any) -> None:
        x = draw(arrays(draw(shapes(1, 4, smallest=0)), draw(anything)))
        dim = draw_dim(draw, x.ndim)
        taken = draw(shapes(0, 3, 4, smallest=0)) if x.shape[dim] else (0, 2)
        index = draw_indices(draw, taken, x.shape[dim], x.shape[dim] > 0)
        self.check(draw, "gather", x, index, dim, want=np.take(x, index, dim))

    @against_oracle("gather_elements", examples=80)
    def test_gather_elements_agrees_with_numpys_take_along_axis(self, draw: Any) -> None:
        x = draw(arrays(draw(shapes(1, 4)), draw(anything)))
        dim = draw_dim(draw, x.ndim)
        shape = [draw(st.integers(0, extent)) for extent in x.shape]
        shape[dim] = draw(st.integers(0, 7))
        index = draw_indices(draw, tuple(shape), x.shape[dim])
        inside = [slice(extent) for extent in shape]
        inside[dim] = slice(None)
        want = np.take_along_axis(x[tuple(inside)], index.astype(np.int64), dim)
        self.check(draw, "gather_elements", x, index, dim, want=want)

    @against_oracle("gather_nd", examples=80)
    def test_gather_nd_agrees_with_numpys_indexing(self, draw: Any) -> None:
        x = draw(arrays(draw(shapes(1, 4)), draw(anything)))
        batch = draw(st.integers(0, x.ndim - 1))
        depth = draw(st.integers(1, x.ndim - batch))
        among = draw(shapes(0, 2, 3, smallest=0))
        index = draw_indices(draw, (*x.shape[:batch], *among, depth), x.shape[batch : batch + depth])
        want = np.empty((*x.shape[:batch], *among, *x.shape[batch + depth :]), x.dtype)
        for at in np.ndindex(*x.shape[:batch], *among):
            want[at] = x[(*at[:batch], *index[at])]
        self.check(draw, "gather_nd", x, index, batch, want=want)

    @against_oracle("one_hot", examples=60)
    def test_one_hot_is_a_comparison_with_each_class(self, draw: Any) -> None:
        shape, depth = draw(shapes(0, 3, smallest=0)), draw(st.integers(0, 6))
        index = draw_indices(draw, shape, depth + 2)  # some are outside
        dim = draw_dim(draw, index.ndim + 1)
        classes = np.arange(depth).reshape([-1 if i == dim % (index.ndim + 1) else 1 for i in range(index.ndim + 1)])
        place = np.expand_dims(index.astype(np.int64), dim)
        hot = (place == classes) | (place + depth == classes)
        if draw(st.booleans()):
            self.check(draw, "one_hot", index, depth=depth, dim=dim, want=hot.astype(np.int64), dtype=I64)
        else:
            pair = values((2,), draw(anything), draw(seeds))
            want = np.where(hot, pair[1], pair[0])
            self.check(draw, "one_hot", index, pair, depth, dim, want=want, dtype=pair.dtype)


class WritingOps(OracleCase):
    def check_in_place(self, op: str, x: np.ndarray, index: np.ndarray, updates: np.ndarray, want: np.ndarray,
                       **more: Any) -> None:
        place = x.copy()
        self.assertIs(getattr(xrt.ops, op)(place, index, updates, **more, out=place), place)
        self.close(place, want, x.dtype, f"{op} in place {more}")

    @against_oracle("scatter_elements", examples=100)
    def test_scatter_elements_writes_one_update_after_the_other(self, draw: Any) -> None:
        reduction = draw(st.sampled_from([*REDUCE]))
        x = draw(arrays(draw(shapes(1, 4)), draw(anything if reduction == "none" else numbers)))
        dim = draw_dim(draw, x.ndim)
        shape = [draw(st.integers(0, extent)) for extent in x.shape]
        shape[dim] = draw(st.integers(0, 4))
        index = draw_indices(draw, tuple(shape), x.shape[dim])
        updates = draw(arrays(index.shape, x.dtype))
        places = [list(at) for at in np.ndindex(index.shape)]
        for at in places:
            at[dim] = int(index[tuple(at)])
        want = written(x, map(tuple, places), updates.reshape(-1), reduction)
        self.check(draw, "scatter_elements", x, index, updates, dim, reduction, want=want)
        self.check_in_place("scatter_elements", x, index, updates, want, dim=dim, reduction=reduction)

    @against_oracle("scatter_elements")
    def test_scatter_elements_agrees_with_pytorch(self, draw: Any) -> None:
        x = draw(arrays(draw(shapes(1, 3)), draw(st.sampled_from(FLOATS))))
        dim = draw_dim(draw, x.ndim)
        index = np.random.default_rng(draw(seeds)).integers(0, x.shape[dim], x.shape)
        name, theirs = draw(st.sampled_from([("add", "sum"), ("mul", "prod"), ("max", "amax"), ("min", "amin")]))
        updates = draw(arrays(x.shape, x.dtype, 0.5, 1))
        want = wide(np.abs(x)).scatter_reduce(dim, wide(index), wide(updates), theirs)
        # Each update rounds what is there, to the dtype.
        loose = 6 * 2.0**-8 * 7 if x.dtype == BF16 else 6 * 2.0**-11 * 7 if x.dtype == np.float16 else 0
        self.check(draw, "scatter_elements", np.abs(x), index, updates, dim, name, want=want, absolute=loose)

    @against_oracle("scatter_nd", examples=100)
    def test_scatter_nd_writes_one_slice_after_the_other(self, draw: Any) -> None:
        reduction = draw(st.sampled_from([*REDUCE]))
        x = draw(arrays(draw(shapes(1, 4)), draw(anything if reduction == "none" else numbers)))
        depth, among = draw(st.integers(1, x.ndim)), draw(shapes(0, 2, 4, smallest=0))
        index = draw_indices(draw, (*among, depth), x.shape[:depth])
        updates = draw(arrays((*among, *x.shape[depth:]), x.dtype))
        at = list(np.ndindex(among))
        want = written(x, [tuple(index[i]) for i in at], [updates[i] for i in at], reduction)
        self.check(draw, "scatter_nd", x, index, updates, reduction, want=want)
        self.check_in_place("scatter_nd", x, index, updates, want, reduction=reduction)

    def test_an_index_outside_is_an_error_before_anything_is_written(self) -> None:
        x, index, updates = np.zeros((3, 2), np.float32), np.array([[0, 0], [3, 0]]), np.ones((2, 2), np.float32)
        calls = {"scatter_elements": (index, updates), "scatter_nd": (index, updates[0])}
        for op, arguments in calls.items():
            with self.subTest(op), self.assertRaisesRegex(ValueError, "index 3 at position 2 .* -3 to 2"):
                getattr(xrt.ops, op)(x, *arguments, out=x)
        self.assertFalse(x.any())
        for op in ("gather", "gather_elements", "gather_nd"):
            with self.subTest(op), self.assertRaisesRegex(ValueError, "index 3 at position 2"):
                getattr(xrt.ops, op)(x, index)


class ArrangingOps(OracleCase):
    @against_oracle("pad", examples=120)
    def test_pad_agrees_with_numpy(self, draw: Any) -> None:
        mode = draw(st.sampled_from(["constant", "reflect", "replicate", "wrap"]))
        x = draw(arrays(draw(shapes(0, 4, smallest=0 if mode == "constant" else 1)), draw(anything)))
        widths = [(0, 0)] * x.ndim
        for d in range(draw(st.integers(0, x.ndim)) if x.ndim else 0):
            least = -(x.shape[-1 - d] // 2) if mode == "constant" else 0
            widths[-1 - d] = (draw(st.integers(least, 9)), draw(st.integers(least, 9)))
        pads = [side for pair in reversed(widths) for side in pair]
        while pads[-2:] == [0, 0] and draw(st.booleans()):
            pads = pads[:-2]
        more, theirs = {}, {"mode": {"replicate": "edge"}.get(mode, mode)}
        if mode == "constant" and draw(st.booleans()):
            more = {"value": values(draw(st.sampled_from([(), (1,)])), x.dtype, draw(seeds))}
            theirs["constant_values"] = more["value"].item()
        want = np.pad(x, [(max(a, 0), max(b, 0)) for a, b in widths], **theirs) if x.ndim else x
        want = want[tuple(slice(max(-a, 0), want.shape[d] - max(-b, 0)) for d, (a, b) in enumerate(widths))]
        self.check(draw, "pad", x, pads, mode, **more, want=want)

    @against_oracle("tile", "flip", "trilu", examples=100)
    def test_tile_flip_and_trilu_agree_with_numpy(self, draw: Any) -> None:
        op = draw(st.sampled_from(["tile", "flip", "trilu"]))
        x = draw(arrays(draw(shapes(2 if op == "trilu" else 0, 4, smallest=0)), draw(anything)))
        if op == "tile":
            repeats = draw(st.lists(st.integers(0, 3), max_size=4))
            self.check(draw, op, x, repeats, want=np.tile(x, repeats))
        elif op == "flip":
            dims = draw(st.lists(st.integers(0, x.ndim - 1), unique=True)) if x.ndim else []
            dims = [d - x.ndim if draw(st.booleans()) else d for d in dims]
            self.check(draw, op, x, dims, want=np.flip(x, dims or None))
        else:
            diagonal, upper = draw(st.sampled_from([0, 1, -1, 3, -3, 2**40, -(2**40)])), draw(st.booleans())
            near = max(min(diagonal, 9), -9)
            want = np.triu(x, near) if upper else np.tril(x, near)
            self.check(draw, op, x, diagonal, upper, want=want)

    @against_oracle("reverse_sequence", examples=60)
    def test_reverse_sequence_turns_the_front_of_each_sequence(self, draw: Any) -> None:
        x = draw(arrays(draw(shapes(2, 4)), draw(anything)))
        batch, time = draw(st.permutations(range(x.ndim)))[:2]
        lengths = draw_indices(draw, (x.shape[batch],), x.shape[time] + 1)
        lengths = np.where(lengths < 0, 0, lengths).astype(lengths.dtype)
        want = x.copy()
        for sequence, length in enumerate(lengths):
            whole = np.moveaxis(want, (batch, time), (0, 1))  # a view
            whole[sequence, :length] = whole[sequence, :length][::-1].copy()
        dims = [d - x.ndim if draw(st.booleans()) else d for d in (batch, time)]
        self.check(draw, "reverse_sequence", x, lengths, *dims, want=want)


class OrderingOps(OracleCase):
    @against_oracle("cumsum", examples=80)
    def test_cumsum_agrees_with_numpy(self, draw: Any) -> None:
        dtype = draw(numbers)
        high = 100.0 if dtype.kind in "iu" else 2.0  # those of 8 bits wrap
        x = draw(arrays(draw(shapes(1, 4, smallest=0)), dtype, -high, high))
        dim, exclusive, reverse = draw_dim(draw, x.ndim), draw(st.booleans()), draw(st.booleans())
        lines = np.moveaxis(x, dim, 0)[:: -1 if reverse else 1]
        lines = lines if dtype.kind in "iu" else lines.astype(np.float64)
        sums = np.cumsum(lines, 0, lines.dtype)
        if exclusive:
            sums = np.concatenate([np.zeros_like(sums[:1]), sums[:-1]]) if len(sums) else sums
        want = np.moveaxis(sums[:: -1 if reverse else 1], 0, dim)
        self.check(draw, "cumsum", x, dim, exclusive, reverse, want=want)

    @against_oracle("reduce_prod", examples=60)
    def test_reduce_prod_agrees_with_numpy(self, draw: Any) -> None:
        dtype, shape = draw(numbers), draw(shapes(0, 4, 4, smallest=0))
        dim = draw(st.lists(st.integers(0, len(shape) - 1), unique=True)) if shape else []
        dim = [d - len(shape) if draw(st.booleans()) else d for d in dim]
        x, keepdim, integer = draw(arrays(shape, dtype, -1.2, 1.2)), draw(st.booleans()), dtype.kind in "iu"
        numbers_ = x.astype(np.int64 if integer else np.float64)
        want = np.prod(numbers_, axis=tuple(dim) or None, keepdims=keepdim)
        name = draw(st.sampled_from(["reduce_prod", "prod"]))
        self.check(draw, name, x, dim=dim or None, keepdim=keepdim, want=want, dtype=I64 if integer else dtype)

    @against_oracle("arg_max", "arg_min", examples=120)
    def test_places_of_extremes_agree_with_numpy_also_of_ties_and_nan(self, draw: Any) -> None:
        op = draw(st.sampled_from(["arg_max", "arg_min"]))
        x = with_ties(draw, (*draw(shapes(0, 2, smallest=0)), *draw(shapes(1, 2, 20))), draw(numbers))
        dim, keepdim, last = draw_dim(draw, x.ndim), draw(st.booleans()), draw(st.booleans())
        if x.shape[dim] == 0:
            return
        find = np.argmax if op == "arg_max" else np.argmin
        exact = x if x.dtype.kind in "iu" else x.astype(np.float64)
        want = find(np.flip(exact, dim) if last else exact, dim, keepdims=keepdim)
        want = x.shape[dim] - 1 - want if last else want
        self.check(draw, op, x, dim, keepdim, last, want=want, dtype=I64)

    @against_oracle("top_k", examples=120)
    def test_top_k_is_the_front_of_pytorchs_stable_sort_also_with_nan(self, draw: Any) -> None:
        x = with_ties(draw, draw(shapes(1, 3, 9, smallest=0)), draw(numbers))
        dim, largest = draw_dim(draw, x.ndim), draw(st.booleans())
        k = draw(st.integers(0, x.shape[dim]))
        order = torch.sort(wide(x), dim=dim, descending=largest, stable=True)
        want = [part.narrow(dim, 0, k) for part in order]
        self.check(draw, "top_k", x, k, dim, largest, want=want, dtype=[x.dtype, I64])


class QuantizedOps(OracleCase):
    def draw_scales(self, draw: Any, shape: tuple[int, ...], dtype: np.dtype, code: np.dtype) -> Any:
        """One for all, for each slice of a dim, or for blocks: scale, zero point, dim, block_size, and both per element."""
        dim, block, kind = draw_dim(draw, len(shape)), 0, draw(st.sampled_from(["one", "slices", "blocks"]))
        scales: tuple[int, ...] = draw(st.sampled_from([(), (1,)]))
        if kind == "slices":
            scales = (shape[dim],)
        elif kind == "blocks":
            block = draw(st.sampled_from([1, 2, 3, 4, 2**63 - 1]))
            scales = tuple(-(-n // block) if d == dim % len(shape) else n for d, n in enumerate(shape))
        random = np.random.default_rng(draw(seeds))
        scale = np.asarray(2.0 ** random.integers(-2, 2, scales) * random.choice([1, 0.7], scales), dtype)  # 1: ties
        zero = values(scales, code, draw(seeds)) if draw(st.booleans()) else None
        each = []
        for array in (scale, zero if zero is not None else np.zeros(scales, code)):
            if kind == "slices":
                array = array.reshape([-1 if d == dim % len(shape) else 1 for d in range(len(shape))])
            elif kind == "blocks":
                array = np.repeat(array, min(block, 9), dim)[tuple(map(slice, shape))]
            each.append(np.broadcast_to(array.reshape(()) if kind == "one" else array, shape))
        return scale, zero, dim, block, each

    @against_oracle("quantize", examples=100)
    def test_quantize_rounds_to_even_and_stays_in_range(self, draw: Any) -> None:
        code = draw(st.sampled_from([np.dtype(name) for name in ("uint8", "int8", "int16")]))
        dtype = draw(st.sampled_from([*FLOATS, np.dtype(np.int32)]))
        shape = draw(shapes(1, 4))
        x = np.asarray(draw(arrays(shape, dtype, -150, 150)))
        if draw(st.booleans()):
            x = (np.rint(x.astype(np.float64)) / (1 if dtype.kind == "i" else 2)).astype(dtype)  # halves: ties
        kind = draw(st.sampled_from([F32, dtype])) if dtype.kind != "i" else F32
        scale, zero, dim, block, (scales, zeros) = self.draw_scales(draw, shape, kind, code)
        number = np.float64 if dtype == np.float64 else np.float32  # which way a tie goes
        rounded = np.rint(x.astype(number) / scales.astype(number)).astype(np.float64)
        want = np.clip(rounded + zeros, np.iinfo(code).min, np.iinfo(code).max).astype(code)
        self.check(draw, "quantize", x, scale, zero, dim, block, code.name, want=want, dtype=code)

    @against_oracle("quantize")
    def test_quantize_holds_infinities_at_the_ends_and_takes_nan_as_zero(self, draw: Any) -> None:
        x = np.array([np.inf, -np.inf, np.nan, 0, 1e30, -1e30]).astype(draw(st.sampled_from([F32, BF16])))
        zero = np.array(draw(st.integers(0, 9)), np.uint8)
        want = np.array([255, 0, zero, zero, 255, 0], np.uint8)
        self.check(draw, "quantize", x, draw(st.sampled_from([0.5, np.float32(0.5).reshape(())])), zero, want=want,
                   dtype=np.dtype(np.uint8))

    @against_oracle("dequantize", examples=80)
    def test_dequantize_is_a_difference_times_the_scale(self, draw: Any) -> None:
        code = draw(st.sampled_from([np.dtype(name) for name in ("uint8", "int8", "int16", "int32")]))
        dtype, shape = draw(st.sampled_from(FLOATS)), draw(shapes(1, 4))
        x = draw(arrays(shape, code, -150, 150))
        kind = draw(st.sampled_from(FLOATS[:3]))
        scale, zero, dim, block, (scales, zeros) = self.draw_scales(draw, shape, kind, code)
        want = (x.astype(np.float64) - zeros) * scales.astype(np.float64)
        self.check(draw, "dequantize", x, scale, zero, dim, block, dtype.name, want=want, dtype=dtype)


if __name__ == "__main__":
    unittest.main()
