"""Operators that are made of our ops, by xrt.load, against onnxruntime at random shapes and options."""

from __future__ import annotations

import tempfile
import unittest
from pathlib import Path
from typing import Any, Iterator

from packages import need, optional

need("numpy", "onnx", "onnxruntime")

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper

import xpuruntime as xrt

runtime = optional("onnxruntime")
RANDOM = np.random.default_rng(7)


def uniform(*shape: int) -> np.ndarray:
    return RANDOM.uniform(-1, 1, shape).astype(np.float32)


def model_of(node: onnx.NodeProto, x: np.ndarray, constants: dict[str, np.ndarray]) -> bytes:
    inputs = [helper.make_tensor_value_info("x", TensorProto.FLOAT, x.shape)]
    outputs = [helper.make_tensor_value_info(name, TensorProto.FLOAT, None) for name in node.output if name]
    known = [numpy_helper.from_array(value, name) for name, value in constants.items()]
    graph = helper.make_graph([node], "test", inputs, outputs, initializer=known)
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)
    return model.SerializeToString()


def results_of(model: bytes, x: np.ndarray) -> list[np.ndarray]:
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "model.onnx"
        path.write_bytes(model)
        return list(xrt.load(path).run({"x": x}).values())


class SessionOps(unittest.TestCase):
    def check(self, op: str, x: np.ndarray, constants: dict[str, np.ndarray], outputs: list[str] = ["y"],
              inputs: list[str] | None = None, **attributes: Any) -> None:
        node = helper.make_node(op, inputs or ["x", *constants], outputs, **attributes)
        model = model_of(node, x, constants)
        wanted = runtime.InferenceSession(model, providers=["CPUExecutionProvider"]).run(None, {"x": x})
        for result, want in zip(results_of(model, x), wanted, strict=True):
            np.testing.assert_allclose(result, want, rtol=1e-4, atol=1e-5)

    def test_recurrent_layers(self) -> None:
        for op, gates, direction, options in recurrent_cases():
            with self.subTest(op, direction=direction, **options):
                count, batch, width, hidden = 2 if direction == "bidirectional" else 1, 3, 5, 7
                constants = {"w": uniform(count, gates * hidden, width), "r": uniform(count, gates * hidden, hidden),
                             "b": uniform(count, 2 * gates * hidden), "h": uniform(count, batch, hidden)}
                inputs, outputs = ["x", "w", "r", "b", "", "h"], ["y", "y_h"]
                if op == "LSTM":
                    constants |= {"c": uniform(count, batch, hidden), "p": uniform(count, 3 * hidden)}
                    inputs += ["c", "p"]
                    outputs += ["y_c"]
                self.check(op, uniform(6, batch, width), constants, outputs, inputs, hidden_size=hidden,
                           direction=direction, **options)

    def test_sequences_of_more_steps_than_one_call_joins(self) -> None:
        constants = {"w": uniform(1, 12, 3), "r": uniform(1, 12, 4), "b": uniform(1, 24)}
        self.check("GRU", uniform(130, 2, 3), constants, hidden_size=4)

    def test_resize(self) -> None:
        for mode, coordinates, rounding, scales in resize_cases():
            with self.subTest(mode, coordinates=coordinates, rounding=rounding, scales=scales):
                self.check("Resize", uniform(2, 3, 6, 5), {"s": np.array([1, 1, *scales], np.float32)}, ["y"],
                           ["x", "", "s"], mode=mode, coordinate_transformation_mode=coordinates, nearest_mode=rounding)

    def test_resize_to_sizes(self) -> None:
        for mode, sizes in (("nearest", (12, 15)), ("nearest", (4, 13)), ("linear", (11, 7)), ("linear", (3, 4))):
            with self.subTest(mode, sizes=sizes):
                self.check("Resize", uniform(2, 3, 6, 5), {"s": np.array([2, 3, *sizes], np.int64)}, ["y"],
                           ["x", "", "", "s"], mode=mode, coordinate_transformation_mode="align_corners"
                           if mode == "linear" else "half_pixel")

    def test_transposed_convolutions(self) -> None:
        for dims in (1, 2, 3):
            for options in ({}, {"strides": [2] * dims}, {"strides": [3] * dims, "output_padding": [1] * dims},
                            {"dilations": [2] * dims, "pads": [1] * dims + [2] * dims}, {"group": 2},
                            {"strides": [2] * dims, "group": 2, "pads": [1] * 2 * dims},
                            {"strides": [2] * dims, "pads": [0] * dims + [2] * dims}, {"pads": [3] * 2 * dims}):
                with self.subTest(dims=dims, **options):
                    constants = {"w": uniform(4, 3, *[3] * dims), "b": uniform(3 * options.get("group", 1))}
                    self.check("ConvTranspose", uniform(2, 4, *[7, 6, 5][:dims]), constants, **options)


def recurrent_cases() -> Iterator[tuple[str, int, str, dict[str, Any]]]:
    for direction in ("forward", "reverse", "bidirectional"):
        count = 2 if direction == "bidirectional" else 1
        yield "LSTM", 4, direction, {}
        for linear_before_reset in (0, 1):
            yield "GRU", 3, direction, {"linear_before_reset": linear_before_reset}
        for activation in ("Tanh", "Relu", "Sigmoid"):
            yield "RNN", 1, direction, {"activations": [activation] * count}


def resize_cases() -> Iterator[tuple[str, str, str, tuple[float, float]]]:
    for scales in ((2, 3), (1.5, 2.5), (0.5, 0.4), (1, 2)):
        for rounding in ("round_prefer_floor", "round_prefer_ceil", "floor", "ceil"):
            for coordinates in ("half_pixel", "asymmetric", "pytorch_half_pixel"):
                yield "nearest", coordinates, rounding, scales
        for coordinates in ("half_pixel", "asymmetric", "pytorch_half_pixel"):
            yield "linear", coordinates, "floor", scales


if __name__ == "__main__":
    unittest.main()
