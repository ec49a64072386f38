"""Models in 8 bits: what quantize_model makes of a model of floats, how far off it is, and that other engines agree."""

from __future__ import annotations

import logging
import tempfile
import unittest
from pathlib import Path

from packages import need, optional

need("numpy", "onnx", "torch")

import exported_models
import numpy as np
import onnx
import published_models
from onnx import TensorProto, helper, numpy_helper

import xpuruntime as xrt

RANDOM = np.random.default_rng(17)
INT8 = xrt.ExecutionPolicy("cpu", "int8")
# A step of 8 bits of the largest value. Each product adds half of one, and what follows carries it on.
STEP = 1 / 255


def dtypes(steps: list[xrt.SessionStep], ops: tuple[str, ...] = ("conv2d", "linear", "matmul")) -> list[list[str]]:
    return [[spec.dtype for spec in step.decision.problem.inputs] for step in steps
            if step.decision is not None and step.decision.problem.op in ops]


def text_lines(count: int) -> list[dict[str, np.ndarray]]:
    """Images as the direction model takes them: dark strokes on light paper, some upside down."""
    found = []
    for i in range(count):
        image = np.full((3, 48, 192), 0.9, np.float32)
        for left in range(8 + i, 184, 12 + i % 3):
            image[:, 14:34, left:left + 3] = -0.8
            image[:, 14 + (left % 5):18 + (left % 5), left:left + 9] = -0.8
        image = image[:, ::-1].copy() if i % 2 else image
        found.append({"x": (image + RANDOM.normal(0, 0.02, image.shape)).astype(np.float32)[None]})
    return found


class Quantization(unittest.TestCase):
    def setUp(self) -> None:
        self.folder = Path(self.enterContext(tempfile.TemporaryDirectory()))

    def exported(self, name: str) -> tuple[Path, exported_models.Exported]:
        model = exported_models.models()[name]
        path = self.folder / f"{name}.onnx"
        path.write_bytes(exported_models.onnx_bytes(model))
        return path, model

    def check(self, path: Path, calibration: list[dict[str, np.ndarray]], others: list[dict[str, np.ndarray]],
              bound: float) -> xrt.QuantizationReport:
        """The reported error is true, holds the bound on inputs that were not used, and ONNX Runtime agrees."""
        out = self.folder / "int8.onnx"
        report = xrt.quantize_model(path, out, calibration=calibration)
        onnx.checker.check_model(onnx.load(out))
        exact, short = xrt.load(path), xrt.load(out, execution=INT8)
        errors: dict[str, float] = {}
        for inputs in calibration:
            want, got = exact.run(inputs), short.run(inputs)
            for name in want:
                errors[name] = max(errors.get(name, 0), float(np.abs(got[name] - want[name]).max()))
        for error in report.errors:
            self.assertAlmostEqual(error.max_error, errors[error.output], delta=1e-6 + 1e-3 * error.max_error)
        self.assertGreater(report.relative_error, 0)
        ort = optional("onnxruntime")
        for inputs in others:
            want, got = exact.run(inputs), short.run(inputs)
            for name in want:
                self.assertLess(np.abs(got[name] - want[name]).max(), bound * np.abs(want[name]).max(), name)
            if ort is not None:
                options = ort.SessionOptions()  # whose passes make DQ nodes with an axis, which opset 11 has not
                options.graph_optimization_level = ort.GraphOptimizationLevel.ORT_DISABLE_ALL
                peer = ort.InferenceSession(str(out), options, providers=["CPUExecutionProvider"])
                for name, theirs in zip(got, peer.run(None, inputs), strict=True):
                    # Both compute the same file; ties of rounding may fall to either side.
                    np.testing.assert_allclose(got[name], theirs, rtol=0, atol=bound / 2 * np.abs(want[name]).max())
        self.assertEqual(report.inputs, len(calibration))
        return report

    def test_a_mobilenet(self) -> None:
        path, _ = self.exported("mobilenet")
        images = [{"x": RANDOM.standard_normal((1, 3, 64, 64)).astype(np.float32)} for _ in range(6)]
        report = self.check(path, images[:4], images[4:], 8 * STEP)
        self.assertEqual(len([node for node in report.nodes if not node.kept]), 27)
        self.assertEqual({node.kept.partition(",")[0] for node in report.nodes if node.kept},
                         {"its filters read fewer than 4 channels"})

    def test_an_mlp(self) -> None:
        path, _ = self.exported("mlp")
        rows = [{"x": RANDOM.standard_normal((16, 20)).astype(np.float32)} for _ in range(6)]
        report = self.check(path, rows[:5], rows[5:], 3 * STEP)
        self.assertEqual([node.kept for node in report.nodes], [""] * 4)
        self.assertIn("4 of 4 products in 8 bits; on 5 calibration inputs", str(report))

    def test_a_published_model(self) -> None:
        """Clear images keep their class; on doubtful ones it is nearer than what ONNX Runtime's quantizer makes."""
        path = published_models.path_of("direction")
        lines = text_lines(10)
        self.check(path, lines[:6], lines[6::2], 3 * STEP)  # upright ones
        ours = xrt.load(self.folder / "int8.onnx")
        theirs = self.by_onnx_runtime(path, lines[:6])
        errors = [[float(np.abs(run(line) - xrt.load(path).run(line)[name]).max()) for line in lines]
                  for name in ("save_infer_model/scale_0.tmp_1",)
                  for run in (lambda line: ours.run(line)[name], lambda line: theirs.run(None, line)[0])]
        self.assertLess(max(errors[0]), max(errors[1]))

    def by_onnx_runtime(self, path: Path, calibration: list[dict[str, np.ndarray]]) -> object:
        """Its static quantization, with scales for each tensor: it cannot run those for each channel in opset 11."""
        need("onnxruntime")
        from onnxruntime import InferenceSession
        from onnxruntime.quantization import CalibrationDataReader, QuantType, quantize_static

        class Reader(CalibrationDataReader):
            def __init__(self) -> None:
                self.left = iter(calibration)

            def get_next(self) -> dict[str, np.ndarray] | None:
                return next(self.left, None)

        out = self.folder / "theirs.onnx"
        logging.disable(logging.WARNING)
        self.addCleanup(logging.disable, logging.NOTSET)
        quantize_static(str(path), str(out), Reader(), activation_type=QuantType.QUInt8, weight_type=QuantType.QInt8)
        return InferenceSession(str(out), providers=["CPUExecutionProvider"])

    def test_weights_are_the_nearest_codes_for_each_channel(self) -> None:
        weight = (RANDOM.standard_normal((3, 16)) * [[1], [100], [0]]).astype(np.float32)
        path, out = self.product(weight), self.folder / "int8.onnx"
        xrt.quantize_model(path, out, calibration=[np.ones((1, 16), np.float32)])
        constants = {one.name: numpy_helper.to_array(one) for one in onnx.load(out).graph.initializer}
        (codes,) = [array for array in constants.values() if array.dtype == np.int8 and array.shape == (3, 16)]
        scales = np.abs(weight).max(1, keepdims=True) / 127
        np.testing.assert_array_equal(codes[:2], np.round(weight[:2] / scales[:2]))
        np.testing.assert_array_equal(codes[2], 0)

    def product(self, weight: np.ndarray) -> Path:
        value = helper.make_tensor_value_info
        graph = helper.make_graph([helper.make_node("Gemm", ["x", "w"], ["y"], "product", transB=1)], "test",
                                  [value("x", TensorProto.FLOAT, ["batch", weight.shape[1]])],
                                  [value("y", TensorProto.FLOAT, ["batch", weight.shape[0]])],
                                  [numpy_helper.from_array(weight, "w")])
        path = self.folder / "product.onnx"
        onnx.save(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8), path)
        return path

    def test_loads_with_calibration_and_runs_on_integers(self) -> None:
        path, model = self.exported("mobilenet")
        session = xrt.load(path, execution=INT8, calibration=[model.inputs[1]])
        steps = session.explain({"x": (1, 3, 64, 64)})
        found = dtypes(steps, ("conv2d",))
        self.assertEqual([one[:2] == ["u8", "i8"] for one in found].count(False), 6)  # depthwise ones
        self.assertGreater(len(found), 20)
        self.assertGreater(session.quantization.relative_error, 0)
        want = xrt.load(path).run(model.inputs[1])["y"]
        np.testing.assert_allclose(session.run(model.inputs[1])["y"], want, rtol=0,
                                   atol=1.01 * session.quantization.max_error)
        self.assertIsNone(xrt.load(path).quantization)

    def test_a_quantized_model_runs_as_it_is(self) -> None:
        path, model = self.exported("mlp")
        out = self.folder / "int8.onnx"
        xrt.quantize_model(path, out, calibration=model.inputs)
        session = xrt.load(out, execution=INT8)
        np.testing.assert_array_equal(session.run(model.inputs[1])["y"], xrt.load(out).run(model.inputs[1])["y"])
        self.assertIsNone(session.quantization)
        with self.assertRaisesRegex(xrt.InvalidArgumentError, "quantized already"):
            xrt.quantize_model(out, self.folder / "again.onnx", calibration=model.inputs)

    def test_other_engines_take_a_quantized_file_in_precision_int8(self) -> None:
        path, out = self.product(RANDOM.standard_normal((4, 16)).astype(np.float32)), self.folder / "int8.onnx"
        x = RANDOM.standard_normal((5, 16)).astype(np.float32)
        xrt.quantize_model(path, out, calibration=[x])
        want = xrt.load(out, execution=INT8)(x)
        for engine in ("onnxruntime", "openvino"):
            if optional(engine) is None:
                continue
            session = xrt.load(out, execution=xrt.ExecutionPolicy("cpu", "int8", engine=engine))
            self.assertEqual(session.engine, engine)
            np.testing.assert_allclose(session(x), want, rtol=0, atol=0.02 * np.abs(want).max())

    def test_percentiles_cut_outliers_off_and_nodes_can_be_kept(self) -> None:
        weight = RANDOM.standard_normal((4, 16)).astype(np.float32)
        path, out = self.product(weight), self.folder / "int8.onnx"
        x = RANDOM.standard_normal((500, 16)).astype(np.float32)
        x[0, 0] = 1000
        errors = []
        for percentile in (100, 99.9):
            xrt.quantize_model(path, out, calibration=[x], percentile=percentile)
            errors.append(np.abs(xrt.load(out)(x[1:]) - x[1:] @ weight.T).max())
        self.assertLess(errors[1], errors[0] / 10)
        with self.assertRaisesRegex(xrt.InvalidArgumentError, "'product': it is to be kept"):
            xrt.quantize_model(path, out, calibration=[x], keep=["product"])

    def test_bad_input_is_one_clear_error_and_writes_nothing(self) -> None:
        path, out = self.product(np.ones((2, 16), np.float32)), self.folder / "new.onnx"
        x = np.ones((1, 16), np.float32)
        for keywords, part in (({"calibration": []}, "no calibration inputs; give a few"),
                               ({"calibration": [x[:, :3]]}, "the model takes 'x'"),
                               ({"calibration": [{"z": x}]}, "exactly x"),
                               ({"calibration": [x * np.nan]}, "not finite"),
                               ({"calibration": [x * 0, x[:0]]}, "leave 'x' at 0 everywhere.*give inputs that are typical"),
                               ({"calibration": [x[:0]]}, "leave 'x' without elements"),
                               ({"calibration": [x], "percentile": 0}, "more than 0 and up to 100"),
                               ({"calibration": [x], "keep": ["nothing"]}, "no node 'nothing'")):
            with self.subTest(part), self.assertRaisesRegex(xrt.XpuRuntimeError, part):
                xrt.quantize_model(path, out, **keywords)
            self.assertFalse(out.exists())
        with self.assertRaisesRegex(xrt.InvalidArgumentError, "pass calibration"):
            xrt.load(path, execution=INT8)
        with self.assertRaisesRegex(xrt.InvalidArgumentError, "precision int8"):
            xrt.load(path, calibration=[x])
        with self.assertRaises(OSError):
            xrt.quantize_model(path, self.folder / "no folder" / "new.onnx", calibration=[x])


if __name__ == "__main__":
    unittest.main()
