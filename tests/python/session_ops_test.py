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
    counts = node.output if node.op_type in ("NonZero", "NonMaxSuppression") else ("places", "first", "which", "counts")
    outputs = [helper.make_tensor_value_info(name, TensorProto.INT64 if name in counts else TensorProto.FLOAT, None)
               for name in node.output if name]
    known = [numpy_helper.from_array(value, name) for name, value in constants.items()]
    graph = helper.make_graph([node], "test", inputs, outputs, initializer=known)
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 18)], ir_version=8)
    return model.SerializeToString()


def results_of(model: bytes, x: np.ndarray) -> list[np.ndarray]:
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "model.onnx"
        path.write_bytes(model)
        return list(xrt.load(path, execution=xrt.ExecutionPolicy(target="cpu", engine="native")).run({"x": x}).values())


def padded(x: np.ndarray, before: int, after: int, mode: str) -> np.ndarray | None:
    """Element i is that of the input `before` further back, as far as there is one; None: it is an error."""
    count = len(x) + before + after
    kept = range(max(-before, 0), len(x) + min(after, 0))
    if count < 0 or (mode == "edge" and count > 0 and not kept):
        return None
    places = [i - before for i in range(count)]
    if mode == "edge":
        return np.array([x[min(max(i, kept[0]), kept[-1])] for i in places], np.float32)
    return np.array([x[i] if i in kept else 0 for i in places], np.float32)


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

    def test_recurrent_layers_with_lengths_clips_and_functions(self) -> None:
        for op, gates, direction, options in function_cases():
            with self.subTest(op, direction=direction, **options):
                count, batch, hidden = 2 if direction == "bidirectional" else 1, 3, 4
                constants = {"w": uniform(count, gates * hidden, 5), "r": uniform(count, gates * hidden, hidden),
                             "b": uniform(count, 2 * gates * hidden), "lengths": np.array([6, 2, 4], np.int32)}
                outputs = ["y", "y_h", "y_c"] if op == "LSTM" else ["y", "y_h"]
                self.check(op, uniform(6, batch, 5), constants, outputs, hidden_size=hidden, direction=direction, **options)

    def test_resize_by_cubics_and_with_antialias(self) -> None:
        for mode, coordinates, scales, options in interpolation_cases():
            with self.subTest(mode, coordinates=coordinates, scales=scales, **options):
                constants = {"r": np.array([0, 0, 0.1, 0.2, 1, 1, 0.9, 1.3], np.float32),
                             "s": np.array([1, 1, *scales], np.float32)}
                self.check("Resize", uniform(2, 3, 6, 5), constants, mode=mode,
                           coordinate_transformation_mode=coordinates, **options)

    def test_pools_with_places_and_uneven_windows(self) -> None:
        for dims in (1, 2, 3):
            for options in ({}, {"strides": [2] * dims, "pads": [1] * dims + [0] * dims}, {"dilations": [2] * dims},
                            {"strides": [2] * dims, "ceil_mode": 1}):
                shape = (2, 3, *[9, 8, 7][:dims])
                with self.subTest(dims=dims, **options):
                    self.check("MaxPool", uniform(*shape), {}, ["y", "places"], kernel_shape=[3, 2, 2][:dims], **options)
                    for p in (1, 2, 3):
                        if "dilations" not in options and "ceil_mode" not in options:
                            self.check("LpPool", uniform(*shape), {}, kernel_shape=[3, 2, 2][:dims], p=p, **options)
        self.check("MaxPool", uniform(1, 2, 5, 6), {}, ["y", "places"], kernel_shape=[2, 2], storage_order=1)

    def test_pads_that_cut_off(self) -> None:
        for mode in ("constant", "edge"):
            for count in range(5):
                for before in range(-6, 7):
                    for after in range(-6, 7):
                        x = np.arange(1, count + 1, dtype=np.float32)
                        wanted = padded(x, before, after, mode)
                        node = helper.make_node("Pad", ["x", "pads"], ["y"], mode=mode)
                        with self.subTest(mode, count=count, before=before, after=after):
                            model = model_of(node, x, {"pads": np.array([before, after])})
                            if wanted is None:
                                with self.assertRaisesRegex(xrt.XpuRuntimeError, "cut more off dim 0|no elements to pad with"):
                                    results_of(model, x)
                            else:
                                np.testing.assert_array_equal(results_of(model, x)[0], wanted)

    def test_slices_with_ends_outside(self) -> None:
        for start in (-9, -5, -4, -1, 0, 3, 4, 9):
            for end in (-(1 << 62), -9, -5, -4, -1, 0, 3, 4, 9):
                for step in (-3, -2, -1, 1, 2):
                    with self.subTest(start=start, end=end, step=step):
                        lists = {"start": start, "end": end, "axes": 0, "step": step}
                        self.check("Slice", uniform(4, 2), {name: np.array([value]) for name, value in lists.items()})

    def test_shapes_that_are_none_are_errors_that_say_why(self) -> None:
        for shape, text in (([-1, -1], r"\[-1,-1\] with -1 more than once"), ([-2], "an extent of -2")):
            model = model_of(helper.make_node("Reshape", ["x", "shape"], ["y"]), uniform(2), {"shape": np.array(shape)})
            with self.assertRaisesRegex(xrt.NotSupportedError, text):
                results_of(model, uniform(2))

    def test_grids(self) -> None:
        for mode in ("nearest", "bilinear", "bicubic"):
            for padding in ("zeros", "border", "reflection"):
                for aligned in (0, 1):
                    with self.subTest(mode, padding=padding, aligned=aligned):
                        grid = RANDOM.uniform(-1.6, 1.6, (2, 7, 5, 2)).astype(np.float32)
                        self.check("GridSample", uniform(2, 3, 6, 4), {"grid": grid}, mode=mode, padding_mode=padding,
                                   align_corners=aligned)

    def test_boxes(self) -> None:
        corners = RANDOM.uniform(0, 6, (5, 2))
        boxes = np.concatenate([corners, corners + RANDOM.uniform(1, 6, (5, 2))], 1).astype(np.float32)
        for options in ({}, {"sampling_ratio": 2}, {"coordinate_transformation_mode": "output_half_pixel"}):
            constants = {"boxes": boxes, "images": np.array([0, 1, 1, 0, 1])}
            self.check("RoiAlign", uniform(2, 3, 9, 8), constants, output_height=3, output_width=2, spatial_scale=0.7, **options)
        x = uniform(1, 2, 40)
        corners = RANDOM.uniform(0, 1, (1, 40, 2))
        constants = {"boxes": np.concatenate([corners, corners + 0.3], 2).astype(np.float32), "most": np.array(9),
                     "overlap": np.array(0.4, np.float32), "score": np.array(-0.5, np.float32)}
        for by_centre in (0, 1):
            self.check("NonMaxSuppression", x, constants, ["y"], ["boxes", "x", "most", "overlap", "score"],
                       center_point_box=by_centre)

    def test_what_depends_on_values_follows_them(self) -> None:
        for op, constants, outputs in (("NonZero", {}, ["y"]), ("Unique", {}, ["y", "first", "which", "counts"])):
            node = helper.make_node(op, ["x", *constants], outputs)
            model = model_of(node, uniform(3, 4), constants)
            session = runtime.InferenceSession(model, providers=["CPUExecutionProvider"])
            with tempfile.TemporaryDirectory() as folder:
                path = Path(folder) / "model.onnx"
                path.write_bytes(model)
                for level in (0, 2):
                    ours = xrt.load(path, execution=xrt.ExecutionPolicy(target="cpu", optimize_level=level))
                    for _ in range(3):
                        x = RANDOM.integers(-1, 2, (3, 4)).astype(np.float32)
                        for result, want in zip(ours.run({"x": x}).values(), session.run(None, {"x": x}), strict=True):
                            np.testing.assert_array_equal(result, want)

    def test_what_values_on_the_way_determine_goes_on_by_its_shape(self) -> None:
        nodes = [helper.make_node("Relu", ["x"], ["a"]), helper.make_node("NonZero", ["a"], ["places"]),
                 helper.make_node("Transpose", ["places"], ["rows"]), helper.make_node("GatherND", ["a", "rows"], ["kept"]),
                 helper.make_node("Mul", ["kept", "kept"], ["y"])]
        values = [helper.make_tensor_value_info(name, TensorProto.FLOAT, None) for name in "xy"]
        graph = helper.make_graph(nodes, "test", values[:1], values[1:])
        model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 18)], ir_version=8)
        with tempfile.TemporaryDirectory() as folder:
            path = Path(folder) / "model.onnx"
            path.write_bytes(model.SerializeToString())
            session = xrt.load(path)
            for rows in (3, 300, 3):
                x = uniform(rows, 1000)
                np.testing.assert_array_equal(session(x), x[x > 0] ** 2)

    def test_scales_that_a_run_makes_are_read_without_the_image(self) -> None:
        nodes = [helper.make_node("Add", ["s", "s"], ["twice"]), helper.make_node("Resize", ["x", "", "twice"], ["y"])]
        values = [helper.make_tensor_value_info(name, TensorProto.FLOAT, None) for name in ("x", "s", "y")]
        graph = helper.make_graph(nodes, "test", values[:2], values[2:])
        model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 18)], ir_version=8)
        with tempfile.TemporaryDirectory() as folder:
            path = Path(folder) / "model.onnx"
            path.write_bytes(model.SerializeToString())
            x = uniform(1, 3, 1024, 1024)  # 12 MiB
            result = xrt.load(path).run({"x": x, "s": np.array([0.5, 0.5, 1, 0.5], np.float32)})["y"]
            np.testing.assert_array_equal(result, x.repeat(2, axis=2))

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


def function_cases() -> Iterator[tuple[str, int, str, dict[str, Any]]]:
    for direction in ("forward", "reverse", "bidirectional"):
        count = 2 if direction == "bidirectional" else 1
        for options in ({}, {"clip": 0.5}):
            yield "LSTM", 4, direction, options | {"input_forget": 1}
            yield "LSTM", 4, direction, options | {"activations": ["HardSigmoid", "Softsign", "Elu"] * count,
                                                   "activation_alpha": [0.3, 0.7] * count}
            yield "GRU", 3, direction, options | {"activations": ["HardSigmoid", "LeakyRelu"] * count}
            yield "GRU", 3, direction, options | {"activations": ["Sigmoid", "Softplus"] * count}
            yield "RNN", 1, direction, options | {"activations": ["ScaledTanh"] * count,
                                                  "activation_alpha": [0.8] * count, "activation_beta": [0.6] * count}
            yield "RNN", 1, direction, options | {"activations": ["ThresholdedRelu"] * count,
                                                  "activation_alpha": [0.1] * count}


def interpolation_cases() -> Iterator[tuple[str, str, tuple[float, float], dict[str, Any]]]:
    for scales in ((2, 3), (0.5, 0.4), (1.4, 0.8)):
        for coordinates in ("half_pixel", "asymmetric", "pytorch_half_pixel"):
            yield "cubic", coordinates, scales, {}
            yield "cubic", coordinates, scales, {"cubic_coeff_a": -0.5, "exclude_outside": 1}
        if scales != (1.4, 0.8):  # where onnxruntime rounds first
            yield "linear", "tf_crop_and_resize", scales, {"extrapolation_value": 7.0}
    for mode in ("linear", "cubic"):
        yield mode, "half_pixel", (0.5, 0.4), {"antialias": 1, "exclude_outside": 1}


def resize_cases() -> Iterator[tuple[str, str, str, tuple[float, float]]]:
    for scales in ((2, 3), (1.5, 2.5), (0.5, 0.4), (1, 2)):
        for rounding in ("round_prefer_floor", "round_prefer_ceil", "floor", "ceil"):
            for coordinates in ("half_pixel", "asymmetric", "pytorch_half_pixel"):
                yield "nearest", coordinates, rounding, scales
        for coordinates in ("half_pixel", "asymmetric", "pytorch_half_pixel"):
            yield "linear", coordinates, "floor", scales


if __name__ == "__main__":
    unittest.main()
