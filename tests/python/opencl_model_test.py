"""Pieces of models, whole on an OpenCL device and on the CPU in one process, against PyTorch in float64."""

from __future__ import annotations

import threading
import unittest
from collections.abc import Callable
from typing import Any

# First: it skips the file where a package is missing.
from arrays_for_tests import wide

import numpy as np
import torch
import torch.nn.functional as functional

import xpuruntime as xrt
from xpuruntime import ops

HEADS, TOKENS, PAST, ROOM, SIZE, WIDTH = 4, 5, 11, 20, 16, 48
Arrays = dict[str, np.ndarray]


def random_arrays(**shapes: tuple[int, ...]) -> Arrays:
    random = np.random.default_rng(7)
    return {name: random.uniform(-0.5, 0.5, shape).astype(np.float32) for name, shape in shapes.items()}


DECODER = random_arrays(
    table=(30, WIDTH), norm1=(WIDTH,), norm2=(WIDTH,), q=(1, HEADS, WIDTH, SIZE), k=(1, HEADS, WIDTH, SIZE),
    v=(1, HEADS, WIDTH, SIZE), o=(1, HEADS, SIZE, WIDTH), both=(2 * 3 * WIDTH, WIDTH), down=(WIDTH, 3 * WIDTH),
    keys=(1, HEADS, ROOM, SIZE), values=(1, HEADS, ROOM, SIZE), cos=(ROOM, SIZE // 2), sin=(ROOM, SIZE // 2))
DECODER |= {"tokens": np.array([[[3, 1, 29, 0, 3]]]), "positions": np.arange(PAST, PAST + TOKENS),
            "past": np.array([PAST]), "lengths": np.array([PAST + TOKENS])}


def decoder(a: dict[str, Any]) -> list[Any]:
    """Tokens after those in a cache, through a layer of a decoder; its result and the caches."""
    x = ops.embedding(a["tokens"], a["table"])
    normed = ops.rms_norm(x, [WIDTH], a["norm1"], 1e-6)
    q, k, v = (ops.matmul(normed, a[name]) for name in "qkv")
    angles = a["positions"], a["cos"], a["sin"]
    q, k = (ops.transpose(ops.rope(ops.transpose(part, 1, 2), *angles), 1, 2) for part in (q, k))
    keys, values = ops.kv_append(a["keys"], a["values"], k, v, a["past"])
    attended = ops.attention(q, keys, values, is_causal=True, lengths=a["lengths"], causal_align="bottom_right")
    projected = ops.sum(ops.matmul(attended, a["o"]), 1, keepdim=True)
    normed, x = ops.add_rms_norm(projected, x, a["norm2"], 1e-6)
    return [ops.add(x, ops.linear(ops.silu_mul(ops.linear(normed, a["both"])), a["down"])), keys, values]


def attention(q: torch.Tensor, k: torch.Tensor, v: torch.Tensor, seen: torch.Tensor) -> torch.Tensor:
    """Older versions of PyTorch have no function for it."""
    scores = q @ k.transpose(-1, -2) / q.shape[-1] ** 0.5
    return scores.masked_fill(~seen, -torch.inf).softmax(-1) @ v


def decoder_in_double(a: Arrays) -> list[torch.Tensor]:
    d = {name: torch.from_dlpack(value) if value.dtype == np.int64 else wide(value) for name, value in a.items()}
    x = d["table"][d["tokens"]]
    norm = lambda rows, weight: rows / (rows.square().mean(-1, keepdim=True) + 1e-6).sqrt() * weight  # noqa: E731
    q, k, v = (norm(x, d["norm1"]) @ d[name] for name in "qkv")
    angles = torch.complex(d["cos"], d["sin"])[d["positions"]]

    def turned(part: torch.Tensor) -> torch.Tensor:
        both = torch.complex(part[..., : SIZE // 2], part[..., SIZE // 2 :]) * angles
        return torch.cat([both.real, both.imag], -1)

    keys, values = d["keys"].clone(), d["values"].clone()
    keys[:, :, PAST : PAST + TOKENS], values[:, :, PAST : PAST + TOKENS] = turned(k), v
    seen = torch.arange(ROOM) <= d["positions"][:, None]
    attended = attention(turned(q), keys, values, seen)
    x = x + (attended @ d["o"]).sum(1, keepdim=True)
    gate, factor = (norm(x, d["norm2"]) @ d["both"].T).chunk(2, -1)
    return [x + (functional.silu(gate) * factor) @ d["down"].T, keys, values]


ENCODER = random_arrays(
    x=(1, 1, TOKENS, WIDTH), n1=(WIDTH,), b1=(WIDTH,), n2=(WIDTH,), b2=(WIDTH,), q=(1, HEADS, WIDTH, SIZE),
    k=(1, HEADS, WIDTH, SIZE), v=(1, HEADS, WIDTH, SIZE), o=(1, HEADS, SIZE, WIDTH), up=(4 * WIDTH, WIDTH),
    up_b=(4 * WIDTH,), down=(WIDTH, 4 * WIDTH))


def encoder(a: dict[str, Any]) -> list[Any]:
    normed = ops.layer_norm(a["x"], [WIDTH], a["n1"], a["b1"])
    q, k, v = (ops.matmul(normed, a[name]) for name in "qkv")
    projected = ops.sum(ops.matmul(ops.attention(q, k, v, is_causal=True), a["o"]), 1, keepdim=True)
    x = ops.add(a["x"], projected)
    inner = ops.linear(ops.layer_norm(x, [WIDTH], a["n2"], a["b2"]), a["up"], a["up_b"], activation="gelu")
    return [ops.add(x, ops.linear(inner, a["down"]))]


def encoder_in_double(a: Arrays) -> list[torch.Tensor]:
    d = {name: wide(value) for name, value in a.items()}
    normed = functional.layer_norm(d["x"], [WIDTH], d["n1"], d["b1"])
    seen = torch.ones(TOKENS, TOKENS).tril() > 0
    attended = attention(*(normed @ d[name] for name in "qkv"), seen)
    x = d["x"] + (attended @ d["o"]).sum(1, keepdim=True)
    inner = functional.gelu(functional.layer_norm(x, [WIDTH], d["n2"], d["b2"]) @ d["up"].T + d["up_b"])
    return [x + inner @ d["down"].T]


CNN = random_arrays(x=(2, 32, 14, 14), reduce=(8, 32, 1, 1), conv=(8, 8, 3, 3), expand=(32, 8, 1, 1), mean=(8,),
                    bias=(8,), mean2=(32,), bias2=(32,))
CNN |= {"var": np.full(8, 0.7, np.float32), "var2": np.full(32, 1.3, np.float32)}


def cnn(a: dict[str, Any]) -> list[Any]:
    x = ops.relu(ops.batch_norm2d(ops.conv2d(a["x"], a["reduce"]), a["mean"], a["var"], None, a["bias"]))
    x = ops.relu(ops.batch_norm2d(ops.conv2d(x, a["conv"], padding=1), a["mean"], a["var"], None, a["bias"]))
    x = ops.batch_norm2d(ops.conv2d(x, a["expand"]), a["mean2"], a["var2"], None, a["bias2"])
    return [ops.max_pool2d(ops.relu(ops.add(x, a["x"])), 3, 2, 1)]


def cnn_in_double(a: Arrays) -> list[torch.Tensor]:
    d = {name: wide(value) for name, value in a.items()}
    norm = functional.batch_norm
    x = norm(functional.conv2d(d["x"], d["reduce"]), d["mean"], d["var"], None, d["bias"]).relu()
    x = norm(functional.conv2d(x, d["conv"], padding=1), d["mean"], d["var"], None, d["bias"]).relu()
    x = norm(functional.conv2d(x, d["expand"]), d["mean2"], d["var2"], None, d["bias2"])
    return [functional.max_pool2d((x + d["x"]).relu(), 3, 2, 1)]


MODELS: list[tuple[Callable[[Any], list[Any]], Callable[[Arrays], list[torch.Tensor]], Arrays]] = [
    (decoder, decoder_in_double, DECODER), (encoder, encoder_in_double, ENCODER), (cnn, cnn_in_double, CNN)]


@unittest.skipUnless("opencl:0" in [str(device) for device in xrt.devices()], "needs an OpenCL device")
class OpenclModelTest(unittest.TestCase):
    expected: list[list[torch.Tensor]]

    @classmethod
    def setUpClass(cls) -> None:
        # Once, and before there are threads: PyTorch 1.13 with NumPy 2 may hang in the first calls of two of them.
        cls.expected = [oracle(arrays) for _, oracle, arrays in MODELS]

    def check(self, device: str) -> None:
        for (model, _, arrays), expected in zip(MODELS, self.expected):
            with self.subTest(model=model.__name__, device=device):
                results = model({name: xrt.asarray(value).to(device) for name, value in arrays.items()})
                for got, want in zip(results, expected, strict=True):
                    self.assertEqual(str(got.device), device)
                    # Some hundred roundings of values near one.
                    np.testing.assert_allclose(got.to("cpu").numpy(), np.from_dlpack(want), rtol=1e-5, atol=2e-5)

    def test_norms_of_long_rows_keep_their_digits(self):
        x = np.random.default_rng(1).random((2, 1 << 20), np.float32)
        exact = x.astype(np.float64)
        expected = (exact - exact.mean(1, keepdims=True)) / np.sqrt(exact.var(1, keepdims=True) + 1e-5)
        found = xrt.ops.layer_norm(xrt.asarray(x).to("opencl:0"), [1 << 20]).to("cpu").numpy()
        self.assertLess(np.abs(found - expected).max(), 2e-6)

    def test_both_devices_give_what_pytorch_gives(self) -> None:
        self.check("opencl:0")
        self.check("cpu:0")

    def test_both_devices_at_once_from_several_threads(self) -> None:
        threads, failures = [], []

        def run(device: str) -> None:
            try:
                for _ in range(3):
                    self.check(device)
            except BaseException as error:  # noqa: BLE001: it is shown below
                failures.append(error)

        for device in ("opencl:0", "cpu:0", "opencl:0", "cpu:0"):
            threads.append(threading.Thread(target=run, args=(device,)))
            threads[-1].start()
        for thread in threads:
            thread.join()
        self.assertEqual(failures, [])

    def test_a_tensor_of_another_device_is_an_error(self) -> None:
        here, there = xrt.asarray(np.ones(4, np.float32)), xrt.asarray(np.ones(4, np.float32)).to("opencl:0")
        with self.assertRaisesRegex(ValueError, "opencl:0"):
            ops.add(here, there)


if __name__ == "__main__":
    unittest.main()
