"""Elementwise, reduction, loss and movement ops against PyTorch in float64, and that no op was left out."""

from __future__ import annotations

import unittest
from typing import Any

# First: it skips the file where a package is missing.
from arrays_for_tests import BF16, FLOATS, INTEGERS, arrays, broadcast_pairs, shapes, wide

import ml_dtypes
import numpy as np
import torch
import torch.nn.functional as functional
from hypothesis import strategies as st

import torch_oracle_decoder_test
import torch_oracle_functions_test
import torch_oracle_indexing_test
import torch_oracle_test
import xpuruntime as xrt
from oracle_case import CHECKED, OracleCase, against_oracle

floats = st.sampled_from(FLOATS)
REDUCTIONS = ["mean", "sum", "none"]
F32 = np.dtype(np.float32)


def philox(seed: int, counter: np.ndarray) -> np.ndarray:
    """Philox4x32-10 from its publication: four words for each counter."""
    words = [counter & 0xFFFFFFFF, counter >> np.uint64(32), np.zeros_like(counter), np.zeros_like(counter)]
    key = [seed & 0xFFFFFFFF, seed >> 32]
    mask = np.uint64(0xFFFFFFFF)
    for _ in range(10):
        low, high = words[0] * np.uint64(0xD2511F53), words[2] * np.uint64(0xCD9E8D57)
        words = [
            (high >> np.uint64(32)) ^ words[1] ^ np.uint64(key[0]), high & mask,
            (low >> np.uint64(32)) ^ words[3] ^ np.uint64(key[1]), low & mask,
        ]
        key = [(key[0] + 0x9E3779B9) & 0xFFFFFFFF, (key[1] + 0xBB67AE85) & 0xFFFFFFFF]
    return np.stack(words, -1)


class PointwiseOps(OracleCase):
    @against_oracle("relu", "gelu", "silu", "sigmoid", "tanh", "exp", "log", "sqrt", examples=120)
    def test_functions_of_one_number_agree_with_pytorch(self, draw: Any) -> None:
        op = draw(st.sampled_from(["relu", "gelu", "silu", "sigmoid", "tanh", "exp", "log", "sqrt"]))
        dtype = draw(st.sampled_from(FLOATS + INTEGERS if op == "relu" else FLOATS))
        x = draw(arrays(draw(shapes(0, 4, smallest=0)), dtype, *((0.1, 9) if op in ("log", "sqrt") else (-9, 9))))
        more = {"approximate": draw(st.sampled_from(["none", "tanh"]))} if op == "gelu" else {}
        want = getattr(torch, op, None) or getattr(functional, op)
        self.check(draw, op, x, want=want(wide(x), **more), **more)

    @against_oracle("add", "sub", "mul", "div", examples=120)
    def test_arithmetic_agrees_with_pytorch(self, draw: Any) -> None:
        op = draw(st.sampled_from(["add", "sub", "mul", "div"]))
        dtype = draw(st.sampled_from(FLOATS if op == "div" else FLOATS + INTEGERS))
        left, right = draw(broadcast_pairs())
        a, b = draw(arrays(left, dtype)), draw(arrays(right, dtype, 0.5, 2))
        more = {"alpha": draw(st.sampled_from([1, 2]))} if op in ("add", "sub") else {}
        self.check(draw, op, a, b, want=getattr(torch, op)(wide(a), wide(b), **more), **more)

    @against_oracle("add", "mul")
    def test_a_scalar_stands_for_an_array(self, draw: Any) -> None:
        op, dtype, scalar = draw(st.sampled_from(["add", "mul"])), draw(floats), draw(st.sampled_from([2, -1.5]))
        x = draw(arrays(draw(shapes()), dtype))
        self.check(draw, op, x, scalar, want=getattr(torch, op)(wide(x), scalar))

    @against_oracle("add", "sub", "mul", examples=40)
    def test_mixed_dtypes_give_what_pytorch_promotes_to(self, draw: Any) -> None:
        op = draw(st.sampled_from(["add", "sub", "mul"]))
        kinds = [draw(st.sampled_from(FLOATS + INTEGERS)) for _ in range(2)]
        named = [getattr(torch, kind.name) for kind in kinds]
        promoted = str(torch.promote_types(*named)).removeprefix("torch.")
        shape = draw(shapes())
        a, b = (draw(arrays(shape, kind)) for kind in kinds)
        dtype = BF16 if promoted == "bfloat16" else np.dtype(promoted)
        self.check(draw, op, a, b, want=getattr(torch, op)(wide(a), wide(b)), dtype=dtype)

    @against_oracle("dropout", examples=40)
    def test_dropout_draws_its_mask_with_philox(self, draw: Any) -> None:
        dtype, seed, p = draw(floats), draw(st.integers(0, 2**40)), draw(st.sampled_from([0.0, 0.3, 0.5, 1.0]))
        x, training = draw(arrays(draw(shapes()), dtype)), draw(st.booleans())
        words = philox(seed, np.arange((x.size + 3) // 4, dtype=np.uint64)).reshape(-1)[: x.size].reshape(x.shape)
        kept = (words >= np.uint64(int(p * 2**32))) & (p < 1)
        want = np.where(kept, x.astype(np.float64) / (1 - p if p < 1 else 1), 0) if training else x
        self.check(draw, "dropout", x, p, training, want=want, seed=seed)

    @against_oracle("unscale")
    def test_unscale_multiplies_and_says_whether_all_is_finite(self, draw: Any) -> None:
        x, scale = draw(arrays(draw(shapes(1)), draw(floats))), np.array([0.25], np.float32)
        if draw(st.booleans()):
            x = x.copy()
            x.reshape(-1)[-1] = draw(st.sampled_from([np.inf, -np.inf, np.nan]))
        want = [wide(x) * 0.25, np.array([float(not np.isfinite(x.astype(np.float64)).all())])]
        kind = x.dtype if x.dtype == np.float64 else F32
        self.check(draw, "unscale", x, scale, want=want, dtype=[kind, F32])


class ReductionOps(OracleCase):
    @against_oracle("reduce_sum", "reduce_mean", "reduce_max", "reduce_min", examples=100)
    def test_reductions_agree_with_pytorch(self, draw: Any) -> None:
        name, op = draw(st.sampled_from(
            [("sum", "reduce_sum"), ("mean", "reduce_mean"), ("amax", "reduce_max"), ("amin", "reduce_min")]))
        dtype = draw(st.sampled_from(FLOATS if name == "mean" else FLOATS + INTEGERS))
        shape = draw(shapes(0, 4))
        dim = draw(st.lists(st.integers(0, len(shape) - 1), unique=True)) if shape else []
        dim = [d - len(shape) if draw(st.booleans()) else d for d in dim]
        keepdim = draw(st.booleans())
        x = draw(arrays(shape, dtype))
        dims = dim or list(range(len(shape)))  # none named: all
        want = getattr(torch, name)(wide(x), dims, keepdim) if shape else wide(x)
        widened = np.dtype(np.int64) if name == "sum" and dtype.kind in "iu" else dtype
        called = draw(st.sampled_from([name, op]))
        self.check(draw, called, x, want=want, dtype=widened, dim=tuple(dim), keepdim=keepdim)


class LossOps(OracleCase):
    @against_oracle("cross_entropy", "nll_loss", examples=80)
    def test_losses_over_classes_agree_with_pytorch(self, draw: Any) -> None:
        op = draw(st.sampled_from(["cross_entropy", "nll_loss"]))
        dtype, classes = draw(floats), draw(st.integers(1, 5))
        batch = draw(shapes(0, 3, 4))
        scores = draw(arrays((*batch[:1], classes, *batch[1:]), dtype))
        more: dict[str, Any] = {"reduction": draw(st.sampled_from(REDUCTIONS))}
        target: np.ndarray = np.random.default_rng(draw(st.integers(0, 99))).integers(0, classes, batch)
        if op == "cross_entropy" and draw(st.booleans()):
            target = draw(arrays(scores.shape, dtype, 0, 1))
        else:
            more["ignore_index"] = draw(st.sampled_from([-100, 0]))
        if op == "cross_entropy":
            more["label_smoothing"] = draw(st.sampled_from([0.0, 0.2]))
        weight = draw(arrays((classes,), dtype, 0.5, 2)) if draw(st.booleans()) else None
        want = getattr(functional, op)(wide(scores), wide(target), wide(weight), **more)
        self.check(draw, op, scores, target, weight=weight, want=want, **more)

    @against_oracle("kl_div", examples=40)
    def test_kl_div_agrees_with_pytorch(self, draw: Any) -> None:
        dtype, shape = draw(floats), draw(shapes(1, 4))
        more = {"reduction": draw(st.sampled_from([*REDUCTIONS, "batchmean"])), "log_target": draw(st.booleans())}
        x, target = draw(arrays(shape, dtype)), draw(arrays(shape, dtype, 0, 1))
        self.check(draw, "kl_div", x, target, want=functional.kl_div(wide(x), wide(target), **more), **more)

    @against_oracle("poisson_nll_loss", examples=40)
    def test_poisson_nll_loss_agrees_with_pytorch(self, draw: Any) -> None:
        dtype, shape = draw(floats), draw(shapes(0, 4))
        more = {"log_input": draw(st.booleans()), "full": draw(st.booleans()), "eps": 1e-3,
                "reduction": draw(st.sampled_from(REDUCTIONS))}
        x, target = draw(arrays(shape, dtype, 0.1, 2)), draw(arrays(shape, dtype, 0, 6))
        want = functional.poisson_nll_loss(wide(x), wide(target), **more)
        self.check(draw, "poisson_nll_loss", x, target, want=want, **more)


class MovementOps(OracleCase):
    @against_oracle("embedding", examples=40)
    def test_embedding_agrees_with_pytorch(self, draw: Any) -> None:
        dtype = draw(st.sampled_from(FLOATS + INTEGERS))
        rows, features = draw(st.integers(1, 9)), draw(st.integers(1, 5))
        kind = draw(st.sampled_from([np.int64, np.int32]))
        index = np.random.default_rng(draw(st.integers(0, 99))).integers(0, rows, draw(shapes(0, 3))).astype(kind)
        weight = draw(arrays((rows, features), dtype))
        want = wide(weight)[wide(index).long()]
        self.check(draw, "embedding", index, weight, want=want, dtype=dtype)

    @against_oracle("cast", examples=80)
    def test_cast_cuts_floats_off_at_the_ends_of_the_range_and_wraps_integers(self, draw: Any) -> None:
        eights = [np.dtype(ml_dtypes.float8_e4m3fn), np.dtype(ml_dtypes.float8_e5m2)]
        source = draw(st.sampled_from(FLOATS + INTEGERS + [np.dtype(bool)]))
        target = draw(st.sampled_from(FLOATS + INTEGERS + [np.dtype(bool), *eights]))
        x = draw(arrays(draw(shapes()), source, -300, 300))
        if target.kind in "iu":
            ends = np.iinfo(target)
            floating = source.kind not in "iub"
            want = np.clip(np.trunc(x.astype(np.float64)), ends.min, ends.max) if floating else x
        else:
            want = x.astype(np.float64).astype(target) if target.kind != "b" else x != 0
        with_numpy = lambda strategy: False if target in eights else draw(strategy)  # this PyTorch has no f8
        self.check(with_numpy, "cast", x, target.name, want=want.astype(target), dtype=target)

    @against_oracle("copy", "transpose", "slice", "concat", examples=100)
    def test_movements_agree_with_numpy(self, draw: Any) -> None:
        dtype, shape = draw(st.sampled_from(FLOATS + INTEGERS + [np.dtype(bool)])), draw(shapes(1, 4))
        x, dim = draw(arrays(shape, dtype)), draw(st.integers(-len(shape), len(shape) - 1))
        op = draw(st.sampled_from(["copy", "clone", "permute", "transpose", "slice", "cat"]))
        if op == "permute":
            dims = draw(st.permutations(range(len(shape))))
            self.check(draw, op, x, dims, want=x.transpose(dims))
        elif op == "transpose":
            other = draw(st.integers(0, len(shape) - 1))
            self.check(draw, op, x, dim, other, want=x.swapaxes(dim, other))
        elif op == "slice":
            start, end, step = draw(st.integers(-7, 7)), draw(st.integers(-7, 7)), draw(st.integers(1, 3))
            where = [slice(None)] * len(shape)
            where[dim] = slice(start, end, step)
            self.check(draw, op, x, dim, start, end, step, want=x[tuple(where)])
        elif op == "cat":
            self.check(draw, op, [x, x[::-1], x], dim, want=np.concatenate([x, x[::-1], x], dim))
        else:
            self.check(draw, op, x, want=x)


class AllOps(unittest.TestCase):
    def test_every_op_has_an_oracle(self) -> None:
        modules = (torch_oracle_test, torch_oracle_decoder_test, torch_oracle_functions_test)
        self.assertTrue(all((*modules, torch_oracle_indexing_test)))  # their decorators fill the set
        self.assertEqual(set(xrt.get_registered_ops()) - CHECKED, set())


if __name__ == "__main__":
    unittest.main()
