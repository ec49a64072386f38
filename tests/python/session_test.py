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
        with self.assertRaisesRegex(xrt.InvalidArgumentError, "the model has no input 'y'; it has 'x'"):
            session.explain({"y": (2, 3, 12, 12)})

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
        with self.assertRaisesRegex(xrt.InvalidArgumentError, r"given are y; pass exactly x f32\[batch,3,12,12\]"):
            session.run({"y": x})
        with self.assertRaisesRegex(xrt.InvalidArgumentError, r"12\]; inputs that have an initialiser are constants"):
            session.run({"x": x, "w1": x})
        with self.assertRaisesRegex(TypeError, "pass a dict"):
            session.run(x)

    def test_a_declared_output_shape_that_is_not_the_computed_one_is_an_error(self) -> None:
        node, x = helper.make_node, np.zeros((2, 4), np.float32)
        body = helper.make_graph([node("Relu", ["s"], ["r"]), node("Identity", ["cond"], ["on"])], "body",
                                 [helper.make_tensor_value_info("i", TensorProto.INT64, []), helper.make_tensor_value_info("cond", TensorProto.BOOL, []),
                                  helper.make_tensor_value_info("s", 1, None)],
                                 [helper.make_tensor_value_info("on", TensorProto.BOOL, []), helper.make_tensor_value_info("r", 1, None)])
        for what in (node("Relu", ["x"], ["y"]), node("Loop", ["two", ""], ["y"], body=body)):
            if what.op_type == "Loop":
                what.input.append("x")
            two = [numpy_helper.from_array(np.array(2, np.int64), "two")]
            for given, declared, text in (([2, 4], [3, 5], r"\[3,5\]"), ([2, 4], [2, None], ""), (["n", 4], [3, 4], ""),
                                          (["n", 4], ["n"], r"\[\?\]"), ([2, 4], [2, 4, 1], r"\[2,4,1\]")):
                session = xrt.load(self.saved(model_of([what], {"x": given}, {"y": declared}, two)),
                                   execution=xrt.ExecutionPolicy("cpu", engine="native"))
                if not text or (what.op_type == "Loop" and declared == [3, 5]):  # only the run finds sizes of a loop's
                    self.assertEqual(session(x).shape, (2, 4))
                    continue
                with self.assertRaisesRegex(xrt.CorruptDataError, rf"'y' is declared with the shape {text}, and the model computes \[2,4\]"):
                    session(x)

    def test_values_of_nodes_that_do_not_fit_are_invalid_arguments(self) -> None:
        node, x = helper.make_node, np.zeros((1, 3, 4), np.float32)
        lists = {"ones": [1, 1], "zeros": [0, 0], "same": [1, -2], "three": [0, 0, 0]}
        constants = [numpy_helper.from_array(np.array(value, np.int64), name) for name, value in lists.items()]
        for wrong, text in ((node("Split", ["x", "ones"], ["y", "z"], axis=1), "do not add up to the extent 3"),
                            (node("Slice", ["x", "zeros", "ones", "same"], ["y"]), "axis -2 twice"),
                            (node("Slice", ["x", "zeros", "ones", "ones", "zeros"], ["y"]), "twice"),
                            (node("Slice", ["x", "zeros", "ones", "zeros", "three"], ["y"]), "different lengths"),
                            (node("MaxPool", ["x"], ["y"], kernel_shape=[2], strides=[0]), "stride or dilation that is not positive"),
                            (node("Pad", ["x", "three"], ["y"]), "pads of another length")):
            session = xrt.load(self.saved(model_of([wrong], {"x": ["n", 3, 4]}, {"y": [None, None, None]}, constants)),
                               execution=xrt.ExecutionPolicy("cpu", engine="native"))
            with self.assertRaisesRegex(xrt.InvalidArgumentError, text):
                session(x)

    def test_inputs_of_types_that_no_run_takes_are_said_at_once(self) -> None:
        node = helper.make_node
        for dtype, name in ((TensorProto.UINT16, "uint16"), (TensorProto.STRING, "string")):
            model = model_of([node("Concat", ["x", "x"], ["y"], axis=0)], {"x": [2]}, {"y": [4]})
            for value in (*model.graph.input, *model.graph.output):
                value.type.tensor_type.elem_type = dtype
            path = self.saved(model)
            for engine in ("native", "auto", *(name for name in ("onnxruntime",) if optional(name) is not None)):
                with self.assertRaisesRegex(xrt.NotSupportedError, f"inputs of type {name}, 'x'|input 'x' is of type {name}"):
                    xrt.load(path, execution=xrt.ExecutionPolicy("cpu", engine=engine))

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

    def test_functions_of_the_model_give_onnx_runtimes_results(self) -> None:
        if optional("onnxruntime") is None:
            self.skipTest("onnxruntime is not installed")
        import onnxruntime
        node, opsets = helper.make_node, [helper.make_opsetid("", 17), helper.make_opsetid("own", 1)]
        leaky = node("LeakyRelu", ["a"], ["leak"], "leak")
        leaky.attribute.append(onnx.AttributeProto(name="alpha", ref_attr_name="slope", type=onnx.AttributeProto.FLOAT))
        half = node("Constant", [], ["half"], value=numpy_helper.from_array(np.float32(0.5)))
        then = helper.make_graph([node("Mul", ["leak", "half"], ["scaled"])], "then", [], [helper.make_tensor_value_info("scaled", 1, None)])
        other = helper.make_graph([node("Add", ["leak", "b"], ["summed"])], "else", [], [helper.make_tensor_value_info("summed", 1, None)])
        branch = node("If", ["positive"], ["c"], then_branch=then, else_branch=other)
        is_positive = [node("ReduceSum", ["a"], ["sum"], keepdims=0), node("Greater", ["sum", "zero"], ["positive"]),
                       node("Constant", [], ["zero"], value=numpy_helper.from_array(np.float32(0)))]
        inner = helper.make_function("own", "inner", ["a", "b"], ["c"], [leaky, half, is_positive[2], *is_positive[:2], branch], opsets, ["slope"])
        outer = helper.make_function("own", "outer", ["a"], ["c", "twice"],
                                     [node("inner", ["a", "a"], ["t"], domain="own", slope=0.25),
                                      node("inner", ["t", "a"], ["c"], domain="own", slope=3.0), node("Add", ["c", "c"], ["twice"])], opsets)
        model = model_of([node("outer", ["x"], ["y", "z"], domain="own"), node("outer", ["z"], ["w", "unused"], domain="own")],
                         {"x": ["n", 4]}, {"y": ["n", 4], "w": ["n", 4]})
        model.opset_import.append(opsets[1])
        model.functions.extend([inner, outer])
        path = self.saved(model)
        peer = onnxruntime.InferenceSession(str(path), providers=["CPUExecutionProvider"])
        for level in (0, 2):
            session = xrt.load(path, execution=xrt.ExecutionPolicy("cpu", engine="native", optimize_level=level))
            for shift in (-1, 0, 1):
                x = (RANDOM.uniform(-1, 1, (3, 4)) + shift).astype(np.float32)
                for got, want in zip(session.run({"x": x}).values(), peer.run(None, {"x": x}), strict=True):
                    np.testing.assert_allclose(got, want, rtol=1e-6, atol=1e-6)

    def test_sequences_and_strings_are_refused_by_name_all_at_once(self) -> None:
        node = helper.make_node
        model = model_of([node("SequenceConstruct", ["x", "x"], ["s"]), node("SequenceLength", ["s"], ["n"]),
                          node("ConcatFromSequence", ["s"], ["y"], axis=0), node("StringNormalizer", ["t"], ["u"]),
                          node("Optional", ["x"], ["o"]), node("SequenceConstruct", ["x"], ["s2"]), node("Relu", ["x"], ["z"])],
                         {"x": [2], "t": [2]}, {"y": [4], "z": [2]})
        model.graph.input[1].type.tensor_type.elem_type = TensorProto.STRING
        with self.assertRaisesRegex(xrt.NotSupportedError, r"ConcatFromSequence \(1\), Optional \(1\), SequenceConstruct \(2\), "
                                                           r"SequenceLength \(1\), StringNormalizer \(1\), inputs of type string, "
                                                           r"'t' \(1\); run it with"):
            xrt.load(self.saved(model), execution=xrt.ExecutionPolicy("cpu", engine="native"))

    def test_outputs_are_written_into_the_callers_arrays(self) -> None:
        node = helper.make_node
        path = self.saved(model_of([node("MatMul", ["x", "w"], ["h"]), node("Relu", ["h"], ["y"]), node("Identity", ["x"], ["same"]),
                                    node("ReduceMax", ["h"], ["most"], keepdims=0), node("Identity", ["w"], ["weight"])],
                                   {"x": ["n", 4]}, {"y": ["n", 3], "same": ["n", 4], "most": [], "weight": [4, 3]}, [constant("w", 4, 3)]))
        names = ["native", *(name for name in ("onnxruntime", "openvino") if optional(name) is not None)]
        for engine in names:
            session = xrt.load(path, execution=xrt.ExecutionPolicy("cpu", engine=engine))
            for rows in (5, 1):
                x = RANDOM.uniform(-1, 1, (rows, 4)).astype(np.float32)
                want = session.run({"x": x})
                out = {name: np.full(array.shape, 7, np.float32) for name, array in want.items()}
                got = session.run({"x": x}, out=out)
                for name, array in out.items():
                    self.assertIs(got[name], array)
                    np.testing.assert_array_equal(array, want[name])
                some = {"y": np.full((rows, 3), 7, np.float32)}
                got = session.run({"x": x}, out=some)
                self.assertIs(got["y"], some["y"])
                np.testing.assert_array_equal(some["y"], want["y"])
                np.testing.assert_array_equal(got["same"], want["same"])
                odd = np.zeros(4 * (rows * 3) + 4, np.uint8)[4:].view(np.float32).reshape(rows, 3)  # less aligned
                np.testing.assert_array_equal(session.run({"x": x}, out={"y": odd})["y"], want["y"])
        self.assertEqual(session.run({"x": x}, out={}).keys(), want.keys())

    def test_arrays_that_are_no_outputs_are_errors_before_anything_is_written(self) -> None:
        node = helper.make_node
        path = self.saved(model_of([node("Exp", ["x"], ["y"]), node("Relu", ["x"], ["z"])], {"x": ["n", 4]}, {"y": ["n", 4], "z": ["n", 4]}))
        session, x = xrt.load(path), np.ones((2, 4), np.float32)
        good, wide = np.zeros((2, 4), np.float32), np.zeros((2, 8), np.float32)
        frozen = good.copy()
        frozen.flags.writeable = False
        both = np.zeros((3, 4), np.float32)
        for out, text in (({"z": good, "no": good}, "the model has no output 'no'; it has 'y', 'z'"),
                          ({"z": good, "y": np.zeros((2, 4))}, r"output 'y' is f64\[2,4\], and the model gives f32\[n,4\]"),
                          ({"z": good, "y": np.zeros((2, 5), np.float32)}, r"output 'y' is f32\[2,5\], and the model gives f32\[n,4\]"),
                          ({"z": good, "y": np.zeros((3, 4), np.float32)}, r"output 0 is f32\[3,4\], and the run gives f32\[2,4\]"),
                          ({"z": good, "y": wide[:, ::2]}, "output 'y' is not contiguous"),
                          ({"z": good, "y": frozen}, "output 'y'.*read-only"),
                          ({"z": good, "y": x}, "output 'y' is in the memory of input 'x'"),
                          ({"y": both[:2], "z": both[1:]}, "output 'z' is in the memory of 'y'"),
                          ({"y": np.zeros(3, np.float32), "z": np.zeros(3)}, "output 'y' is f32.*; output 'z' is f64")):
            with self.assertRaisesRegex(ValueError, text):
                session.run({"x": x}, out=out)
        with self.assertRaisesRegex(TypeError, "pass a dict of arrays by name"):
            session.run({"x": x}, out=[good])
        self.assertEqual((good.any(), wide.any(), both.any(), x.max()), (False, False, False, 1))

    @unittest.skipUnless(optional("torch"), "needs PyTorch")
    def test_outputs_may_be_tensors_of_pytorch(self) -> None:
        import torch
        session = xrt.load(self.saved(model_of([helper.make_node("Exp", ["x"], ["y"])], {"x": ["n", 4]}, {"y": ["n", 4]})))
        x, y = torch.ones(2, 4), torch.zeros(2, 4)
        self.assertIs(session.run({"x": x}, out={"y": y})["y"], y)
        self.assertTrue(torch.allclose(y, x.exp()))

    def test_constants_of_types_that_no_op_here_reads_are_for_other_engines(self) -> None:
        if optional("onnxruntime") is None:
            self.skipTest("onnxruntime is not installed")
        node = helper.make_node
        add, inner = numpy_helper.from_array(np.array([3, 4], np.uint32), "add"), numpy_helper.from_array(np.array([5], np.uint64))
        model = model_of([node("Cast", ["x"], ["u"], to=TensorProto.UINT32), node("Add", ["u", "add"], ["sum"]),
                          node("Cast", ["sum"], ["f"], to=TensorProto.FLOAT), node("Constant", [], ["c"], value=inner),
                          node("Cast", ["c"], ["g"], to=TensorProto.FLOAT), node("Add", ["f", "g"], ["y"])], {"x": [2]}, {"y": [2]}, [add])
        path = self.saved(model)
        with self.assertRaisesRegex(xrt.NotSupportedError, r"cannot run: constants of a type that no op here reads \(1\), "
                                                           r"constants of type uint32 \(1\); run it with another"):
            xrt.load(path, execution=xrt.ExecutionPolicy("cpu", engine="native"))
        session = xrt.load(path)
        np.testing.assert_array_equal(session(np.array([1, 2], np.float32)), [9, 11])
        self.assertIn(session.engine, ("onnxruntime", "openvino"))

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

    @unittest.skipUnless("opencl:0" in [str(device) for device in xrt.devices()], "needs an OpenCL device")
    def test_what_an_opencl_device_lacks_runs_on_the_cpu(self) -> None:
        lacking = {"erf": "Erf", "trilu": "Trilu", "cumsum": "CumSum", "hard_swish": "HardSwish"}
        lacked = next((op for op in lacking if not xrt.get_available_kernels(op, "opencl:0")), None)
        if lacked is None:
            self.skipTest(f"OpenCL has kernels for all of {', '.join(lacking)}")
        operator = lacking[lacked]
        more = ["axis"] if lacked == "cumsum" else []
        nodes = [helper.make_node("Add", ["x", "x"], ["a"], "twice"), helper.make_node(operator, ["a", *more], ["b"], "lacked"),
                 helper.make_node(operator, ["a", *more], ["c"], "again"), helper.make_node("Mul", ["b", "c"], ["y"], "product")]
        model = model_of(nodes, {"x": ["n", 4]}, {"y": ["n", 4]}, [numpy_helper.from_array(np.array(1), "axis")])
        path, x = self.saved(model), RANDOM.uniform(-1, 1, (3, 4)).astype(np.float32)
        with self.assertRaisesRegex(xrt.NotSupportedError, rf"opencl:0 has no kernels for {lacked}\(f32\[3,4\].*\) @opencl:0 \(2 calls\); with "
                                                           "allow_fallback cpu in the execution policy"):
            xrt.load(path, execution=xrt.ExecutionPolicy("opencl", engine="native"))(x)
        session = xrt.load(path, execution=xrt.ExecutionPolicy("opencl", engine="native", allow_fallback="cpu"))
        np.testing.assert_allclose(session(x), xrt.load(path)(x), rtol=1e-6)
        self.assertEqual((session.record.target, session.record.on_fallback), ("opencl", {operator: 2}))
        self.assertRegex(session.because, rf"2 nodes run on cpu, which opencl lacks: {operator} \(2\)")
        steps = session.explain({"x": x.shape})
        self.assertEqual([(step.node, step.device) for step in steps if step.kind == "transfer"],
                         [("lacked", "cpu:0"), ("product", "opencl:0"), ("product", "opencl:0")])
        self.assertEqual((steps[1].transfer.source, steps[1].transfer.bytes, steps[1].decision), ("opencl:0", x.nbytes, None))
        self.assertEqual([call.kernel for call in session.profile({"x": x}, runs=3).calls].count("copy to opencl:0"), 2)
        kept = session(xrt.asarray(x).to("opencl:0"))
        self.assertEqual(str(kept.device), "opencl:0")


if __name__ == "__main__":
    unittest.main()
