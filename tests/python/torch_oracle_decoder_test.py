"""What a decoder's layer does between its products, against PyTorch and NumPy in float64."""

from __future__ import annotations

import unittest
from typing import Any

# First: it skips the file where a package is missing.
from arrays_for_tests import FLOATS, INTEGERS, arrays, shapes, wide

import numpy as np
import torch.nn.functional as functional
from hypothesis import strategies as st

from oracle_case import OracleCase, against_oracle
from xpuruntime import ops

floats = st.sampled_from(FLOATS)
index_types = st.sampled_from([np.int64, np.int32])


def appended(cache: np.ndarray, added: np.ndarray, lengths: np.ndarray, pages: np.ndarray | None) -> np.ndarray:
    """The cache with the new tokens in it, sequence by sequence."""
    result = cache.copy()
    for sequence, length in enumerate(lengths):
        for token in range(added.shape[2]):
            slot = int(length) + token
            if pages is None:
                result[sequence, :, slot] = added[sequence, :, token]
            else:
                result[pages[sequence, slot // cache.shape[1]], slot % cache.shape[1]] = added[sequence, :, token]
    return result


class DecoderOps(OracleCase):
    @against_oracle("add_rms_norm", examples=40)
    def test_add_rms_norm_is_a_sum_and_then_rms_norm(self, draw: Any) -> None:
        dtype, shape = draw(floats), draw(shapes(1, 4))
        x, residual, eps = draw(arrays(shape, dtype)), draw(arrays(shape, dtype)), draw(st.sampled_from([1e-6, 1e-2]))
        weight = draw(arrays(shape[-1:], dtype)) if draw(st.booleans()) else None
        total = (x.astype(np.float64) + residual.astype(np.float64)).astype(dtype)
        double = total.astype(np.float64)
        want = double / np.sqrt((double**2).mean(-1, keepdims=True) + eps)
        want = want if weight is None else want * weight.astype(np.float64)
        self.check(draw, "add_rms_norm", x, residual, weight, want=[want, total], eps=eps)

    @against_oracle("silu_mul", examples=40)
    def test_silu_mul_agrees_with_pytorch(self, draw: Any) -> None:
        dtype, shape = draw(floats), draw(shapes(1, 4))
        if draw(st.booleans()):
            gate, factor = draw(arrays(shape, dtype)), draw(arrays(shape, dtype))
            self.check(draw, "silu_mul", gate, factor, want=functional.silu(wide(gate)) * wide(factor))
        else:
            both = draw(arrays((*shape[:-1], 2 * shape[-1]), dtype))
            gate, factor = wide(both).chunk(2, -1)
            self.check(draw, "silu_mul", both, want=functional.silu(gate) * factor)

    @against_oracle("rope", examples=60)
    def test_rope_is_a_product_of_complex_numbers(self, draw: Any) -> None:
        dtype, tokens = draw(floats), draw(shapes(0, 2))
        heads, size, rows = draw(st.integers(1, 3)), draw(st.integers(1, 40)), draw(st.integers(1, 9))
        pairs = draw(st.integers(0, size // 2))
        x = draw(arrays((*tokens, heads, size), dtype))
        cos, sin = draw(arrays((rows, pairs), dtype, -1, 1)), draw(arrays((rows, pairs), dtype, -1, 1))
        random = np.random.default_rng(draw(st.integers(0, 99)))
        some = tokens[draw(st.integers(0, len(tokens))) :]  # the others share them
        positions = np.asarray(random.integers(0, rows, some), draw(index_types))
        interleaved = draw(st.booleans())
        want = x.astype(np.float64)
        first = slice(0, 2 * pairs, 2) if interleaved else slice(0, pairs)
        second = slice(1, 2 * pairs, 2) if interleaved else slice(pairs, 2 * pairs)
        angles = (cos.astype(np.float64) + 1j * sin.astype(np.float64))[positions][..., None, :]
        turned = (want[..., first] + 1j * want[..., second]) * angles
        want[..., first], want[..., second] = turned.real, turned.imag
        self.check(draw, "rope", x, positions, cos, sin, want=want, interleaved=interleaved)

    @against_oracle("kv_append", examples=60)
    def test_kv_append_writes_behind_each_sequence(self, draw: Any) -> None:
        dtype = draw(st.sampled_from(FLOATS + INTEGERS))
        batch, heads, tokens, size, room = (draw(st.integers(1, 4)) for _ in range(5))
        random = np.random.default_rng(draw(st.integers(0, 99)))
        pages = None
        if draw(st.booleans()):
            slots, per_sequence = draw(st.integers(1, 4)), draw(st.integers(2, 5))
            tokens = min(tokens, slots * per_sequence)
            room = slots * per_sequence
            pages = random.permutation(batch * per_sequence + 2)[: batch * per_sequence].reshape(batch, per_sequence)
            shape: tuple[int, ...] = (batch * per_sequence + 2, slots, heads)
        else:
            room += tokens
            shape = (batch, heads, room)
        lengths = random.integers(0, room - tokens + 1, batch).astype(draw(index_types))
        caches = [draw(arrays((*shape, size + i), dtype)) for i in range(2)]
        added = [draw(arrays((batch, heads, tokens, size + i), dtype)) for i in range(2)]
        want = [appended(caches[i], added[i], lengths, pages) for i in range(2)]
        self.check(draw, "kv_append", *caches, *added, lengths, pages, want=want)
        places = [cache.copy() for cache in caches]
        result = ops.kv_append(*places, *added, lengths, pages, out=tuple(places))
        for given, place, expected in zip(result, places, want):
            self.assertIs(given, place)
            self.assertEqual(place.tobytes(), expected.tobytes())


if __name__ == "__main__":
    unittest.main()
