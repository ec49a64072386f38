"""Models by xrt.load: what a run takes and gives, in every package, and what is wrong with bad ones."""

from __future__ import annotations

import tempfile
import threading
import unittest
from pathlib import Path

from packages import need, optional

need("numpy", "onnx")

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper

import xpuruntime as xrt

RANDOM = np.random.default_rng(3)


def constant(name: str, *shape: int) -> onnx.TensorProto:
    return numpy_helper.from_array(RANDOM.uniform(-0.5, 0.5, shape).astype(np.float32), name)


def model_of(nodes: list[onnx.NodeProto], inputs: dict[str, list[object]], outputs: dict[str, list[object]],
             constants: list[onnx.TensorProto] = []) -> onnx.ModelProto:
    values = [[helper.make_tensor_value_info(name, TensorProto.FLOAT, shape) for name, shape in group.items()]
              for group in (inputs, outputs)]
    graph = helper.make_graph(nodes, "test", *values, initializer=constants)
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8, producer_name="a test")


def small_cnn() -> onnx.ModelProto:
    """An image through convolutions, norms, pools and a classifier."""
    node = helper.make_node
    nodes = [
        node("Conv", ["x", "w1", "b1"], ["c1"], "conv1", pads=[1, 1, 1, 1]),
        node("BatchNormalization", ["c1", "scale", "shift", "mean", "variance"], ["n1"], "norm1"),
        node("Relu", ["n1"], ["r1"], "relu1"),
        node("MaxPool", ["r1"], ["p1"], "pool1", kernel_shape=[2, 2], strides=[2, 2]),
        node("Conv", ["p1", "w2"], ["c2"], "conv2", pads=[0, 0, 1, 1], strides=[2, 2]),
        node("Add", ["c2", "c2"], ["a2"], "add2"),
        node("GlobalAveragePool", ["a2"], ["g"], "mean"),
        node("Flatten", ["g"], ["f"], "flat"),
        node("Gemm", ["f", "w3", "b3"], ["scores"], "classify", transB=1),
        node("Softmax", ["scores"], ["y"], "probabilities"),
    ]
    constants = [constant("w1", 8, 3, 3, 3), constant("b1", 8), constant("scale", 8), constant("shift", 8),
                 constant("mean", 8), numpy_helper.from_array(RANDOM.uniform(0.5, 1, 8).astype(np.float32), "variance"),
                 constant("w2", 16, 8, 3, 3), constant("w3", 10, 16), constant("b3", 10)]
    return model_of(nodes, {"x": ["batch", 3, 12, 12]}, {"y": ["batch", 10]}, constants)


def encoder_layer() -> onnx.ModelProto:
    """Attention of plain operators, as exporters write it, then a feed-forward network."""
    node, heads, size = helper.make_node, 4, 8
    width = heads * size
    nodes = [node("LayerNormalization", ["x", "n1", "m1"], ["h"], "norm1", axis=-1), node("Shape", ["x"], ["dims"]),
             node("Slice", ["dims", "zero", "two"], ["rows"]), node("Concat", ["rows", "split"], ["by_heads"], axis=0),
             node("Concat", ["rows", "joined"], ["flat"], axis=0)]
    for name in "qkv":
        nodes += [node("MatMul", ["h", "w" + name], [name + "1"], name), node("Reshape", [name + "1", "by_heads"], [name + "2"]),
                  node("Transpose", [name + "2"], [name + "3"], perm=[0, 2, 3, 1] if name == "k" else [0, 2, 1, 3])]
    nodes += [node("MatMul", ["q3", "k3"], ["s1"], "scores"), node("Div", ["s1", "root"], ["s2"]),
              node("Softmax", ["s2"], ["s3"], axis=-1), node("MatMul", ["s3", "v3"], ["o1"], "values"),
              node("Transpose", ["o1"], ["o2"], perm=[0, 2, 1, 3]), node("Reshape", ["o2", "flat"], ["o3"]),
              node("MatMul", ["o3", "wo"], ["o4"]), node("Add", ["x", "o4"], ["r"]),
              node("MatMul", ["r", "up"], ["u"]), node("Sigmoid", ["u"], ["g"]), node("Mul", ["u", "g"], ["a"]),
              node("MatMul", ["a", "down"], ["d"]), node("Add", ["r", "d"], ["y"])]
    lists = {"zero": [0], "two": [2], "split": [heads, size], "joined": [width]}
    constants = [numpy_helper.from_array(np.array(value, np.int64), name) for name, value in lists.items()]
    constants += [numpy_helper.from_array(np.array(size**0.5, np.float32), "root"), constant("n1", width),
                  constant("m1", width), constant("up", width, 64), constant("down", 64, width)]
    constants += [constant("w" + name, width, width) for name in "qkvo"]
    return model_of(nodes, {"x": ["batch", "length", width]}, {"y": ["batch", "length", width]}, constants)


class SessionTest(unittest.TestCase):
    def setUp(self) -> None:
        self.folder = tempfile.TemporaryDirectory()
        self.addCleanup(self.folder.cleanup)

    def saved(self, model: onnx.ModelProto) -> str:
        path = str(Path(self.folder.name) / "model.onnx")
        onnx.save(model, path)
        return path

    def test_models_give_what_onnx_runtime_gives_at_every_level(self) -> None:
        ort = optional("onnxruntime")
        if ort is None:
            self.skipTest("onnxruntime is not installed")
        for model, shapes in ((small_cnn(), [(1, 3, 12, 12), (5, 3, 12, 12)]), (encoder_layer(), [(1, 7, 32), (3, 20, 32)])):
            path = self.saved(model)
            peer = ort.InferenceSession(path, providers=["CPUExecutionProvider"])
            for level in range(4):
                session = xrt.load(path, execution=xrt.ExecutionPolicy(target="cpu", optimize_level=level))
                for shape in shapes:
                    x = RANDOM.uniform(-1, 1, shape).astype(np.float32)
                    np.testing.assert_allclose(session(x), peer.run(None, {"x": x})[0], rtol=1e-5, atol=1e-5)

    def test_says_what_it_takes_and_gives(self) -> None:
        session = xrt.load(self.saved(small_cnn()))
        self.assertEqual([(value.name, value.dtype, value.shape) for value in session.inputs],
                         [("x", "f32", ("batch", 3, 12, 12))])
        self.assertEqual(session.outputs[0].shape, ("batch", 10))
        self.assertIn("batch", repr(session))

    def test_explains_each_node(self) -> None:
        session = xrt.load(self.saved(small_cnn()), policy=xrt.KernelPolicy(relu={"kernel": "reference", "mode": "force"}))
        steps = {step.node: step for step in session.explain({"x": (2, 3, 12, 12)})}
        self.assertEqual(steps["relu1"].kernel, "reference")
        self.assertEqual(steps["relu1"].decision.level, "force")
        self.assertEqual((steps["flat"].kind, steps["flat"].kernel), ("view", None))
        self.assertEqual(str(steps["classify"].decision.problem),
                         "linear(f32[2,16], f32[10,16], f32[10]) @cpu:0")
        self.assertGreater(session.memory_bytes({"x": (2, 3, 12, 12)}), 0)
        with self.assertRaisesRegex(xrt.InvalidArgumentError, "the shape of input 'x'"):
            session.explain()
        with self.assertRaisesRegex(xrt.InvalidArgumentError, "no input 'z'"):
            session.explain({"x": (2, 3, 12, 12), "z": (1,)})

    def test_results_are_arrays_of_the_inputs_package(self) -> None:
        session = xrt.load(self.saved(small_cnn()))
        x = RANDOM.uniform(-1, 1, (2, 3, 12, 12)).astype(np.float32)
        y = session(x)
        self.assertIsInstance(y, np.ndarray)
        self.assertEqual(list(session.run({"x": x})), ["y"])
        np.testing.assert_array_equal(session(xrt.asarray(x)).numpy(), y)
        torch = optional("torch")
        if torch is not None:
            result = session(torch.from_dlpack(x))
            self.assertIsInstance(result, torch.Tensor)
            np.testing.assert_array_equal(np.from_dlpack(result), y)
        np.testing.assert_array_equal(session(np.asfortranarray(x)), y)

    def test_threads_share_a_session(self) -> None:
        session = xrt.load(self.saved(encoder_layer()))
        inputs = [RANDOM.uniform(-1, 1, (1 + i % 3, 5, 32)).astype(np.float32) for i in range(12)]
        expected = [session(x) for x in inputs]
        results: list[list[np.ndarray]] = [[] for _ in range(4)]
        threads = [threading.Thread(target=lambda into: into.extend(session(x) for x in inputs), args=(into,)) for into in results]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        for found in results:
            for got, want in zip(found, expected, strict=True):
                np.testing.assert_array_equal(got, want)

    def test_wrong_inputs_are_errors_that_say_what_the_model_takes(self) -> None:
        session = xrt.load(self.saved(small_cnn()))
        x = np.zeros((1, 3, 12, 12), np.float32)
        takes = r"the model takes 'x' f32\[batch,3,12,12\]"
        for arrays in ((), (x, x), (x.astype(np.float64),), (x[:, :2],), (x[0],)):
            with self.assertRaisesRegex(xrt.InvalidArgumentError, takes):
                session(*arrays)
        with self.assertRaisesRegex(xrt.InvalidArgumentError, "exactly x"):
            session.run({"y": x})
        with self.assertRaisesRegex(TypeError, "pass a dict"):
            session.run(x)

    def test_what_is_missing_is_listed_and_bad_files_are_errors(self) -> None:
        node = helper.make_node
        model = model_of([node("NoSuchOp", ["x"], ["a"]), node("Det", ["x"], ["y"])], {"x": [2]}, {"y": [2]})
        with self.assertRaisesRegex(xrt.NotSupportedError, r"Det \(1\), NoSuchOp \(1\)"):
            xrt.load(self.saved(model), execution=xrt.ExecutionPolicy(target="cpu", engine="native"))
        path = Path(self.folder.name) / "model.onnx"
        path.write_bytes(self.saved(small_cnn()) and path.read_bytes()[:1000])
        with self.assertRaises(xrt.CorruptDataError):
            xrt.load(path)
        with self.assertRaises(OSError):
            xrt.load(Path(self.folder.name) / "nothing.onnx")

    def test_a_lock_covers_all_nodes_or_the_run_is_an_error(self) -> None:
        path, shape = self.saved(small_cnn()), {"x": (2, 3, 12, 12)}
        x = RANDOM.uniform(-1, 1, shape["x"]).astype(np.float32)
        session = xrt.load(path)
        lock = xrt.record_lock([step.decision.problem for step in session.explain(shape) if step.decision])
        np.testing.assert_array_equal(xrt.load(path, lock=lock)(x), session(x))
        with self.assertRaises(xrt.XpuRuntimeError):
            xrt.load(path, lock=lock)(x[:1])

    @unittest.skipUnless("opencl:0" in [str(device) for device in xrt.devices()], "needs an OpenCL device")
    def test_runs_on_an_opencl_device(self) -> None:
        path = self.saved(small_cnn())
        x = RANDOM.uniform(-1, 1, (2, 3, 12, 12)).astype(np.float32)
        session = xrt.load(path, execution=xrt.ExecutionPolicy(target="opencl"))
        np.testing.assert_allclose(session(x), xrt.load(path)(x), rtol=1e-5, atol=1e-5)
        kept = session(xrt.asarray(x).to("opencl:0"))
        self.assertEqual(str(kept.device), "opencl:0")
        problems = [step.decision.problem for step in session.explain({"x": x.shape}) if step.decision]
        self.assertEqual({str(problem.device) for problem in problems}, {"opencl:0"})


if __name__ == "__main__":
    unittest.main()
