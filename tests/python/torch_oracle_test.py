"""Matrix, pooling and normalization ops against PyTorch in float64, over drawn shapes, layouts and attributes."""

from __future__ import annotations

import unittest
from typing import Any

# First: it skips the file where a package is missing.
from arrays_for_tests import BF16, FLOATS, INTEGERS, arrays, broadcast_pairs, shapes, values, wide

import ml_dtypes
import numpy as np
import torch
import torch.nn.functional as functional
from hypothesis import strategies as st

from oracle_case import OracleCase, against_oracle
from xpuruntime import ops

EIGHT_BITS = [np.dtype(np.int8), np.dtype(np.uint8)]
small = st.integers(1, 5)
floats = st.sampled_from(FLOATS)


def product_dtype(dtype: np.dtype) -> np.dtype:
    """What a sum of products of a dtype comes back in."""
    return np.dtype(np.int32) if dtype in EIGHT_BITS else dtype


def exact(array: Any) -> Any:
    """For the oracle: integers in 64 bits, floats in float64."""
    number = wide(array)
    return number.long() if isinstance(array, np.ndarray) and array.dtype.kind in "iu" else number


def attend(inputs: list[np.ndarray], mask: np.ndarray | None, causal: bool, scale: float) -> np.ndarray:
    """Attention written out in float64; a row with no key left gives zeros."""
    q, k, v = (x.astype(np.float64) for x in inputs)
    repeats = q.shape[1] // k.shape[1]
    k, v = np.repeat(k, repeats, 1), np.repeat(v, repeats, 1)
    scores = np.einsum("bhqd,bhkd->bhqk", q, k) * scale
    if causal:
        scores = np.where(np.tri(*scores.shape[-2:], dtype=bool), scores, -np.inf)
    if mask is not None:
        scores = np.where(mask, scores, -np.inf) if mask.dtype == bool else scores + mask.astype(np.float64)
    top = scores.max(-1, keepdims=True)
    weights = np.exp(scores - np.where(np.isinf(top), 0, top))
    total = weights.sum(-1, keepdims=True)
    return np.einsum("bhqk,bhkd->bhqd", weights / np.where(total == 0, 1, total), v)


def visible(lengths: np.ndarray, queries: int, keys: int, causal: bool, align: str) -> np.ndarray:
    """Which keys each query of each sequence sees, as a mask [batch, 1, queries, keys]."""
    length, query, key = lengths[:, None, None], np.arange(queries)[None, :, None], np.arange(keys)[None, None]
    last = query + (length - queries if align == "bottom_right" else 0)
    return ((key < length) & ((key <= last) | (not causal)))[:, None]


def log_sum_exp(q: np.ndarray, k: np.ndarray, mask: np.ndarray, scale: float) -> np.ndarray:
    """Of the scores of each row; minus infinity where no key is left."""
    k = np.repeat(k.astype(np.float64), q.shape[1] // k.shape[1], 1)
    scores = np.where(mask, np.einsum("bhqd,bhkd->bhqk", q.astype(np.float64), k) * scale, -np.inf)
    return np.logaddexp.reduce(scores, -1)


def paged(x: np.ndarray, table: np.ndarray, size: int) -> np.ndarray:
    """[batch, heads, keys, dim] as pages [pages, size, heads, dim], in the places that the table gives them."""
    pages = np.ones((table.max() + 1, size, x.shape[1], x.shape[3]), x.dtype)
    for b, row in enumerate(table):
        for i, page in enumerate(row):
            pages[page] = x[b, :, i * size : (i + 1) * size].transpose(1, 0, 2)
    return pages


class MatrixOps(OracleCase):
    @against_oracle("matmul", examples=60)
    def test_matmul_agrees_with_pytorch(self, draw: Any) -> None:
        dtype = draw(st.sampled_from(FLOATS + INTEGERS))
        m, n, k = draw(small), draw(small), draw(small)
        left, right = draw(broadcast_pairs(2))
        a_shape = draw(st.sampled_from([(*left, m, k), (k,)]))
        b_shape = draw(st.sampled_from([(*right, k, n), (k,)]))
        a, b = draw(arrays(a_shape, dtype)), draw(arrays(b_shape, dtype))
        self.check(draw, "matmul", a, b, want=torch.matmul(exact(a), exact(b)), dtype=product_dtype(dtype))

    @against_oracle("matmul", examples=50)
    def test_matmul_adds_as_addmm_and_baddbmm_do(self, draw: Any) -> None:
        dtype, m, n, k = draw(floats), draw(small), draw(small), draw(small)
        batch = draw(st.sampled_from([(), (2,)]))
        a, b = draw(arrays((*batch, m, k), dtype)), draw(arrays((*batch, k, n), dtype))
        c = draw(arrays(draw(st.sampled_from([(*batch, m, n), (n,), (m, 1), (1, 1)])), dtype))
        more = {"alpha": draw(st.sampled_from([1, 0.5, -2])), "beta": draw(st.sampled_from([1, 0, 0.25]))}
        if more["beta"] == 0 and batch:  # some PyTorch versions multiply unwritten memory by 0 here
            want = more["alpha"] * torch.matmul(wide(a), wide(b))
        else:
            want = (torch.baddbmm if batch else torch.addmm)(wide(c), wide(a), wide(b), **more)
        self.check(draw, "matmul", a, b, c, want=want, **more)

    @against_oracle("matmul", examples=40)
    def test_matmul_scales_rows_columns_or_whole_matrices(self, draw: Any) -> None:
        dtype, m, n, k = draw(st.sampled_from([*FLOATS, np.dtype(np.int8)])), draw(small), draw(small), draw(small)
        a, b = draw(arrays((m, k), dtype)), draw(arrays((k, n), dtype))
        scale_a, scale_b = (values(draw(st.sampled_from([(), (1,), (lines,)])), np.dtype(np.float32),
                                   draw(st.integers(0, 99))) for lines in (m, n))
        left, right = wide(a).double() * wide(scale_a).reshape(-1, 1), wide(b).double() * wide(scale_b)
        kind = np.dtype(np.float32) if dtype == np.int8 else dtype
        self.check(draw, "matmul", a, b, want=left @ right, dtype=kind, scale_a=scale_a, scale_b=scale_b)

    @against_oracle("linear", examples=40)
    def test_linear_agrees_with_pytorch(self, draw: Any) -> None:
        dtype, features, out = draw(floats), draw(small), draw(small)
        x = draw(arrays((*draw(shapes(0, 3)), features), dtype))
        weight = draw(arrays((out, features), dtype))
        bias = draw(arrays((out,), dtype)) if draw(st.booleans()) else None
        activation = draw(st.sampled_from(["none", "relu", "gelu", "silu"]))
        want = functional.linear(wide(x), wide(weight), wide(bias))
        want = want if activation == "none" else getattr(functional, activation)(want)
        self.check(draw, "linear", x, weight, bias, want=want, activation=activation)

    def convolve(self, draw: Any, op: str, dims: int) -> None:
        dtype, groups = draw(st.sampled_from(FLOATS + EIGHT_BITS)), draw(st.integers(1, 3))
        channels, out = groups * draw(st.integers(1, 2)), groups * draw(st.integers(1, 3))
        kernel = [draw(st.integers(1, 3)) for _ in range(dims)]
        stride, dilation = ([draw(st.integers(1, 2)) for _ in range(dims)] for _ in range(2))
        padding: Any = draw(st.sampled_from([0, "same", "valid", [draw(st.integers(0, 2)) for _ in range(dims)]]))
        if padding == "same":  # PyTorch's rule; an even reach would need more on one side
            kernel, stride = [size | 1 for size in kernel], [1] * dims
        extents = [dilation[i] * (kernel[i] - 1) + 1 + draw(st.integers(0, 3)) for i in range(dims)]
        x = draw(arrays((draw(st.integers(1, 2)), channels, *extents), dtype))
        weight = draw(arrays((out, channels // groups, *kernel), dtype))
        bias = draw(arrays((out,), dtype)) if dtype in FLOATS and draw(st.booleans()) else None
        more = {"stride": stride, "padding": padding, "dilation": dilation, "groups": groups}
        doubles = [None if array is None else wide(array).double() for array in (x, weight, bias)]
        want = getattr(functional, op)(*doubles, **more)
        self.check(draw, op, x, weight, bias, want=want, dtype=product_dtype(dtype), **more)

    @against_oracle("conv2d", examples=40)
    def test_conv2d_agrees_with_pytorch(self, draw: Any) -> None:
        self.convolve(draw, "conv2d", 2)

    @against_oracle("conv3d", examples=25)
    def test_conv3d_agrees_with_pytorch(self, draw: Any) -> None:
        self.convolve(draw, "conv3d", 3)

    @against_oracle("attention", examples=50)
    def test_attention_agrees_with_its_definition(self, draw: Any) -> None:
        dtype = draw(floats)
        batch, key_heads, repeats = draw(st.integers(1, 2)), draw(st.integers(1, 2)), draw(st.integers(1, 2))
        queries, keys, size, value_size = (draw(small) for _ in range(4))
        q = draw(arrays((batch, key_heads * repeats, queries, size), dtype))
        k = draw(arrays((batch, key_heads, keys, size), dtype))
        v = draw(arrays((batch, key_heads, keys, value_size), dtype))
        scores = (batch, key_heads * repeats, queries, keys)
        shape = draw(st.sampled_from([scores, scores[2:], (1, 1, queries, keys), (batch, 1, 1, keys)]))
        kind = draw(st.sampled_from([None, np.dtype(bool), dtype]))
        mask = None if kind is None else values(shape, kind, draw(st.integers(0, 99)))
        causal, scale = draw(st.booleans()), draw(st.sampled_from([None, 0.3]))
        want = attend([q, k, v], mask, causal, scale or size**-0.5)
        more = {"attn_mask": mask, "is_causal": causal, "scale": scale}
        # One kernel rounds the weights to bf16 before they meet the values, which are at most 2.
        absolute = 2.0**-7 if dtype == BF16 else 0
        self.check(draw, "scaled_dot_product_attention", q, k, v, want=want, absolute=absolute, **more)


    @against_oracle("attention", examples=50)
    def test_attention_of_sequences_agrees_with_its_definition(self, draw: Any) -> None:
        dtype, batch, key_heads, repeats = draw(floats), draw(small), draw(st.integers(1, 2)), draw(st.integers(1, 2))
        queries, page_size, pages, size = draw(small), draw(st.integers(1, 3)), draw(st.integers(1, 3)), draw(small)
        keys = page_size * pages
        q = draw(arrays((batch, key_heads * repeats, queries, size), dtype))
        k, v = (values((batch, key_heads, keys, size), dtype, draw(st.integers(0, 99))) for _ in range(2))
        lengths = np.array([draw(st.integers(0, keys)) for _ in range(batch)], draw(st.sampled_from(["i4", "i8"])))
        causal = draw(st.booleans())
        align = draw(st.sampled_from(["top_left", "bottom_right"])) if causal else "top_left"
        mask = visible(lengths, queries, keys, causal, align)
        want = [attend([q, k, v], mask, False, size**-0.5), log_sum_exp(q, k, mask, size**-0.5)]
        more = {"is_causal": causal, "lengths": lengths, "causal_align": align, "lse": True}
        if draw(st.booleans()):
            table = np.random.default_rng(7).permutation(batch * pages).reshape(batch, pages).astype(np.int32)
            k, v, more["page_table"] = paged(k, table, page_size), paged(v, table, page_size), table
        absolute = 2.0**-7 if dtype == BF16 else 0
        self.check(draw, "attention", q, k, v, want=want, dtype=[dtype, np.dtype(np.float32)], absolute=absolute, **more)


class PoolingOps(OracleCase):
    def pool(self, draw: Any, op: str, dims: int) -> None:
        largest = op.startswith("max")
        dtype = draw(st.sampled_from(FLOATS + INTEGERS if largest else FLOATS))
        kernel = [draw(st.integers(1, 3)) for _ in range(dims)]
        padding = [draw(st.integers(0, size // 2)) for size in kernel]
        stride = draw(st.sampled_from([None, 1, [draw(st.integers(1, 3)) for _ in range(dims)]]))
        more: dict[str, Any] = {"stride": stride, "padding": padding, "ceil_mode": draw(st.booleans())}
        dilation = [draw(st.integers(1, 2)) for _ in range(dims)] if largest else [1] * dims
        more |= {"dilation": dilation} if largest else {"count_include_pad": draw(st.booleans())}
        extents = [dilation[i] * (kernel[i] - 1) + 1 + draw(st.integers(0, 4)) for i in range(dims)]
        x = draw(arrays((draw(st.integers(1, 2)), draw(st.integers(1, 3)), *extents), dtype))
        want = getattr(functional, op)(wide(x).double(), kernel, **more)
        self.check(draw, op, x, kernel, want=want, **more)

    @against_oracle("max_pool2d", examples=40)
    def test_max_pool2d_agrees_with_pytorch(self, draw: Any) -> None:
        self.pool(draw, "max_pool2d", 2)

    @against_oracle("max_pool3d", examples=25)
    def test_max_pool3d_agrees_with_pytorch(self, draw: Any) -> None:
        self.pool(draw, "max_pool3d", 3)

    @against_oracle("avg_pool2d", examples=40)
    def test_avg_pool2d_agrees_with_pytorch(self, draw: Any) -> None:
        self.pool(draw, "avg_pool2d", 2)

    @against_oracle("avg_pool3d", examples=25)
    def test_avg_pool3d_agrees_with_pytorch(self, draw: Any) -> None:
        self.pool(draw, "avg_pool3d", 3)


class NormalizationOps(OracleCase):
    def normalize_batch(self, draw: Any, op: str, spatial: int) -> None:
        dtype, channels = draw(floats), draw(small)
        x = draw(arrays((draw(st.integers(2, 3)), channels, *(draw(small) for _ in range(spatial))), dtype))
        mean, variance = draw(arrays((channels,), dtype)), draw(arrays((channels,), dtype, 0.5, 2.0))
        weight, bias = (draw(arrays((channels,), dtype)) if draw(st.booleans()) else None for _ in range(2))
        more = {"eps": draw(st.sampled_from([1e-5, 1e-2])), "training": False}
        want = functional.batch_norm(*(wide(a) for a in (x, mean, variance, weight, bias)), **more)
        name = draw(st.sampled_from([op, "batch_norm"]))
        self.check(draw, name, x, mean, variance, weight, bias, want=want, **more)

    @against_oracle("batch_norm2d", examples=25)
    def test_training_brings_the_running_statistics_up_to_date_in_place(self, draw: Any) -> None:
        dtype, channels, momentum = draw(floats), draw(small), draw(st.sampled_from([0.1, 0.5]))
        x = draw(arrays((draw(st.integers(2, 3)), channels, 3, 2), dtype))
        x = values(x.shape, dtype, draw(st.integers(0, 99))) if len(np.unique(x)) < x.size else x
        old = [values((channels,), dtype, 1), values((channels,), dtype, 2, 0.5, 2.0)]
        wanted = [wide(array) for array in old]
        y = functional.batch_norm(wide(x), *wanted, training=True, momentum=momentum)
        result = ops.batch_norm(x, *old, training=True, momentum=momentum)
        self.close(result, y, dtype, f"batch_norm {x.shape} {dtype} in training")
        for array, want in zip(old, wanted):
            self.close(array, want, dtype, f"running statistics {dtype}")
        self.check(draw, "batch_norm", x, want=y, training=True)

    @against_oracle("batch_norm1d", examples=25)
    def test_batch_norm1d_agrees_with_pytorch(self, draw: Any) -> None:
        self.normalize_batch(draw, "batch_norm1d", draw(st.integers(0, 1)))

    @against_oracle("batch_norm2d", examples=25)
    def test_batch_norm2d_agrees_with_pytorch(self, draw: Any) -> None:
        self.normalize_batch(draw, "batch_norm2d", 2)

    @against_oracle("batch_norm3d", examples=25)
    def test_batch_norm3d_agrees_with_pytorch(self, draw: Any) -> None:
        self.normalize_batch(draw, "batch_norm3d", 3)

    @against_oracle("layer_norm", examples=40)
    def test_layer_norm_agrees_with_pytorch(self, draw: Any) -> None:
        dtype, shape = draw(floats), draw(shapes(1, 4))
        last = shape[-draw(st.integers(1, len(shape))):]
        x, eps = draw(arrays(shape, dtype)), draw(st.sampled_from([1e-5, 1e-2]))
        weight = draw(arrays(last, dtype)) if draw(st.booleans()) else None
        bias = draw(arrays(last, dtype)) if weight is not None and draw(st.booleans()) else None
        want = functional.layer_norm(wide(x), last, wide(weight), wide(bias), eps)
        # Equal numbers leave nothing but rounding under the root: there the oracle itself is noise.
        if wide(x).reshape(-1, int(np.prod(last))).var(1, unbiased=False).min() > 1e-3 or eps == 1e-2:
            self.check(draw, "layer_norm", x, last, weight, bias, want=want, eps=eps)

    @against_oracle("rms_norm", examples=40)
    def test_rms_norm_agrees_with_its_definition(self, draw: Any) -> None:
        dtype, shape = draw(floats), draw(shapes(1, 4))
        x, eps = draw(arrays(shape, dtype)), draw(st.sampled_from([None, 1e-6, 1e-2]))
        weight = draw(arrays(shape[-1:], dtype)) if draw(st.booleans()) else None
        double = x.astype(np.float64)
        least = ml_dtypes.finfo(dtype).eps if eps is None else eps
        want = double / np.sqrt((double**2).mean(-1, keepdims=True) + np.float64(least))
        want = want if weight is None else want * weight.astype(np.float64)
        self.check(draw, "rms_norm", x, shape[-1:], weight, want=want, eps=eps)

    @against_oracle("normalize", examples=40)
    def test_normalize_agrees_with_pytorch(self, draw: Any) -> None:
        dtype, shape = draw(floats), draw(shapes(1, 4))
        more = {"p": draw(st.sampled_from([2.0, 1.0, 3.0])), "dim": draw(st.integers(-len(shape), len(shape) - 1))}
        x = draw(arrays(shape, dtype))
        self.check(draw, "normalize", x, want=functional.normalize(wide(x), **more), **more)

    @against_oracle("softmax", "log_softmax", examples=50)
    def test_softmax_and_its_logarithm_agree_with_pytorch(self, draw: Any) -> None:
        op, dtype, shape = draw(st.sampled_from(["softmax", "log_softmax"])), draw(floats), draw(shapes(1, 4))
        x, dim = draw(arrays(shape, dtype, -30, 30)), draw(st.integers(-len(shape), len(shape) - 1))
        self.check(draw, op, x, want=getattr(functional, op)(wide(x), dim), dim=dim)


if __name__ == "__main__":
    unittest.main()
