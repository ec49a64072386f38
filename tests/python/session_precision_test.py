"""Sessions in fp16 and bf16: how far from fp32, what is computed in which dtype, and what is said of it."""

from __future__ import annotations

import tempfile
import unittest
from pathlib import Path

from packages import need

need("numpy", "onnx", "torch")

import exported_models
import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper

import xpuruntime as xrt

# What rounding a number to the dtype changes at most, of the number.
ROUNDING = {"fp16": 2.0**-11, "bf16": 2.0**-8}
SHORT = {"fp16": "f16", "bf16": "bf16"}


def load(path: Path, precision: str = "fp32", level: int = 2, **options: object) -> xrt.Session:
    return xrt.load(path, execution=xrt.ExecutionPolicy("cpu", precision, optimize_level=level), **options)


def kernels(steps: list[xrt.SessionStep]) -> list[xrt.SessionStep]:
    return [step for step in steps if step.decision is not None]


def inputs_of(step: xrt.SessionStep) -> list[str]:
    return [spec.dtype for spec in step.decision.problem.inputs]


class SessionPrecision(unittest.TestCase):
    def setUp(self) -> None:
        self.folder = Path(self.enterContext(tempfile.TemporaryDirectory()))

    def saved(self, nodes: list[onnx.NodeProto], constants: dict[str, np.ndarray], outputs: list[str]) -> Path:
        value = helper.make_tensor_value_info
        graph = helper.make_graph(nodes, "test", [value("x", TensorProto.FLOAT, ["batch", 16])],
                                  [value(name, TensorProto.FLOAT, None) for name in outputs],
                                  [numpy_helper.from_array(array, name) for name, array in constants.items()])
        path = self.folder / "model.onnx"
        onnx.save(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8), path)
        return path

    def test_exported_models_are_as_near_to_fp32_as_their_rounding_allows(self) -> None:
        for name, model in exported_models.models().items():
            path = self.folder / f"{name}.onnx"
            path.write_bytes(exported_models.onnx_bytes(model))
            wanted = [load(path).run(inputs) for inputs in model.inputs]
            for precision, rounding in ROUNDING.items():
                session = load(path, precision)
                for inputs, want in zip(model.inputs, wanted, strict=True):
                    steps = kernels(session.explain({key: array.shape for key, array in inputs.items()}))
                    rounded = sum(step.output.dtype == SHORT[precision] for step in steps)
                    self.assertGreater(rounded, 2)
                    # Independent roundings add up as the root of their number; each is of a value of the largest's size
                    # or less, and weights have one of their own.
                    bound = rounding * (1 + np.sqrt(2 * rounded))
                    for key, got in session.run(inputs).items():
                        with self.subTest(model=name, precision=precision, output=key, rounded=rounded):
                            self.assertEqual(got.dtype, want[key].dtype)
                            error = np.abs(got - want[key]).max() / np.abs(want[key]).max()
                            self.assertLess(error, bound)
                            if key in ("y", "hidden"):
                                self.assertGreater(error, 0)

    def test_ops_run_where_the_rules_put_them_and_casts_are_steps(self) -> None:
        model = exported_models.models()["bert"]
        path = self.folder / "bert.onnx"
        path.write_bytes(exported_models.onnx_bytes(model))
        shapes = {key: array.shape for key, array in model.inputs[0].items()}
        for level in range(3):
            steps = kernels(load(path, "fp16", level).explain(shapes))
            for step in steps:
                op, dtypes = step.decision.problem.op, inputs_of(step)
                if op in ("matmul", "linear", "attention"):
                    self.assertLessEqual(set(dtypes[:3]), {"f16"}, step)  # a mask is no factor
                    self.assertRegex(step.decision.precision.because, "fp16 of the execution policy: ")
                if op in ("softmax", "layer_norm"):
                    self.assertLessEqual(set(dtypes), {"f32"}, step)
                self.assertEqual(step.decision.casts, [], step)  # none is hidden in a call
            casts = [step for step in steps if step.decision.problem.op == "cast" and "f16" in (*inputs_of(step), step.output.dtype)]
            self.assertTrue(casts)
            weights = {(64, 64), (192, 64), (256, 64), (64, 256), (64, 192)}  # which are cast before the runs
            if level > 0:
                self.assertFalse(weights & {tuple(step.output.shape) for step in casts})

    def test_registered_rules_and_policies_say_what_is_computed_in_it(self) -> None:
        path = self.saved([helper.make_node("Gemm", ["x", "w"], ["y"], "product", transB=1)],
                          {"w": np.ones((8, 16), np.float32)}, ["y"])

        def dtypes(**options: object) -> list[str]:
            steps = kernels(load(path, "bf16", **options).explain({"x": (2, 16)}))
            return inputs_of(next(step for step in steps if step.decision.problem.op == "linear"))

        self.assertEqual(dtypes(), ["bf16", "bf16"])
        xrt.amp().register_blacklist("linear")
        try:
            self.assertEqual(dtypes(), ["f32", "f32"])
        finally:
            xrt.amp().unregister("linear")
        self.assertEqual(dtypes(policy=xrt.KernelPolicy().set_precision("linear", "f32")), ["f32", "f32"])

    def test_constants_that_f16_cannot_hold_keep_their_op_in_f32(self) -> None:
        path = self.saved([helper.make_node("Gemm", ["x", "w"], ["h"], "product", transB=1),
                           helper.make_node("Add", ["h", "large"], ["y"], "sum")],
                          {"w": np.full((16, 16), 0.25, np.float32), "large": np.full(16, 1e6, np.float32)}, ["y"])
        x = np.ones((2, 16), np.float32)
        np.testing.assert_array_equal(load(path, "fp16", 0)(x), np.full((2, 16), 1e6 + 4, np.float32))
        (total,) = [step for step in kernels(load(path, "fp16", 0).explain({"x": x.shape})) if step.decision.problem.op == "add"]
        self.assertEqual(inputs_of(total), ["f32", "f32"])
        self.assertIn("too large for f16", total.decision.precision.because)
        self.assertEqual(set(inputs_of(next(step for step in kernels(load(path, "bf16", 0).explain({"x": x.shape}))
                                            if step.decision.problem.op == "add"))), {"bf16"})

    def test_results_that_later_nodes_read_too_keep_their_dtype(self) -> None:
        path = self.saved([helper.make_node("MatMul", ["x", "w"], ["h"], "first"), helper.make_node("MatMul", ["h", "w"], ["y"], "second")],
                          {"w": (np.eye(16) * 0.5).astype(np.float32)}, ["h", "y"])
        x = np.arange(32, dtype=np.float32).reshape(2, 16)
        h, y = load(path, "fp16")(x)
        self.assertEqual((h.dtype, y.dtype), (np.float32, np.float32))
        np.testing.assert_array_equal(h, x / 2)
        np.testing.assert_array_equal(y, x / 4)

    def test_a_lock_replays_a_session_in_fp16(self) -> None:
        model = exported_models.models()["mlp"]
        path = self.folder / "mlp.onnx"
        path.write_bytes(exported_models.onnx_bytes(model))
        inputs = model.inputs[0]
        session = load(path, "fp16")
        lock = xrt.record_lock([step.decision.problem for step in kernels(session.explain({"x": inputs["x"].shape}))])
        np.testing.assert_array_equal(load(path, "fp16", lock=lock).run(inputs)["y"], session.run(inputs)["y"])
        with self.assertRaises(xrt.XpuRuntimeError):
            load(path, "bf16", lock=lock).run(inputs)


if __name__ == "__main__":
    unittest.main()
