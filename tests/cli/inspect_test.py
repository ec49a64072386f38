"""xrt inspect: what an ONNX model is made of, and what would run it."""
import json
import unittest
from pathlib import Path

from xrt_case import CliTest, xrt

try:
    import onnx
    from onnx import TensorProto, helper, numpy_helper
    import numpy as np
except ImportError as missing:
    raise unittest.SkipTest(f"{missing.name} is not installed")


def save(path, *, op="Relu"):
    weight = numpy_helper.from_array(np.full((4, 8), 0.1, np.float32), "weight")
    nodes = [helper.make_node("Gemm", ["x", "weight"], ["hidden"], "layer", transB=1),
             helper.make_node(op, ["hidden"], ["y"], "activation")]
    values = [helper.make_tensor_value_info(name, TensorProto.FLOAT, ["batch", size]) for name, size in (("x", 8), ("y", 4))]
    graph = helper.make_graph(nodes, "small", values[:1], values[1:], [weight])
    onnx.save(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8), path)


class Inspect(CliTest):
    def setUp(self):
        super().setUp()
        self.model = str(Path(self.folder) / "model.onnx")
        save(self.model)

    def test_lists_operators_then_kernels_once_shapes_are_known(self):
        open_shapes = xrt("inspect", self.model)
        self.assertEqual(open_shapes.returncode, 0)
        self.assertIn("input   x f32[batch,8]", open_shapes.stdout)
        self.assertNotIn("runs as", open_shapes.stdout)
        known = xrt("inspect", self.model, "--shape", "x=5,8")
        self.assertRegex(known.stdout, r"layer +Gemm +small +f32\[5,4\]")
        document = self.document("inspect", self.model, "--shape", "x=5,8", "--json")
        self.assertEqual([step["kind"] for step in document["steps"]], ["kernel", "fused"])
        self.assertEqual(document["steps"][0]["decision"]["kernel"], "small")
        self.assertEqual(document["inputs"], [{"name": "x", "dtype": "f32", "shape": ["batch", 8]}])
        self.assertEqual(document["memory_bytes"], 0)  # the only call writes the output

    def test_constants_and_operators_of_branches_count(self):
        value = numpy_helper.from_array(np.ones(1000, np.float32))
        branches = {name: helper.make_graph([helper.make_node("Constant", [], ["c"], value=value)], name, [],
                                            [helper.make_tensor_value_info("c", TensorProto.FLOAT, [1000])])
                    for name in ("then_branch", "else_branch")}
        nodes = [helper.make_node("If", ["condition"], ["y"], "choice", **branches)]
        values = [helper.make_tensor_value_info("condition", TensorProto.BOOL, None),
                  helper.make_tensor_value_info("y", TensorProto.FLOAT, [1000])]
        graph = helper.make_graph(nodes, "branches", values[:1], values[1:])
        onnx.save(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8), self.model)
        document = self.document("inspect", self.model, "--json")
        self.assertEqual(document["constant_bytes"], 8000)
        self.assertEqual({one["name"]: one["nodes"] for one in document["operators"]}, {"If": 1, "Constant": 2})

    def test_a_missing_operator_is_the_answer_no(self):
        save(self.model, op="Det")
        answer = xrt("inspect", self.model)
        self.assertEqual(answer.returncode, 1)
        self.assertRegex(answer.stdout, r"Det +1 +no: there is no kernel")
        self.assertIsNone(json.loads(xrt("inspect", self.model, "--json").stdout)["steps"])

    def test_types_that_no_tensor_has_are_the_answer_no(self):
        value = {name: helper.make_tensor_value_info(name, TensorProto.UINT16, [4]) for name in "xy"}
        graph = helper.make_graph([helper.make_node("Concat", ["x", "x"], ["y"], axis=0)], "g", [value["x"]], [value["y"]])
        onnx.save(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8), self.model)
        answer = xrt("inspect", self.model, "--engines")
        self.assertEqual(answer.returncode, 1)
        self.assertIn("inputs of type uint16, 'x': no tensor here has this type", answer.stdout)
        self.assertIn("inputs of type uint16, 'x'", json.loads(xrt("inspect", self.model, "--json").stdout)["lacks"])
        self.assertNotIn("may: ", answer.stdout)  # no engine can be given such an input

    def test_engines_that_have_not_compiled_a_model_may_take_it(self):
        answer = xrt("inspect", self.model, "--engines")
        if "not installed" in answer.stdout and "may: " not in answer.stdout:
            self.skipTest("no engine is here")
        self.assertRegex(answer.stdout, r"(onnxruntime|openvino) +\S+ +may: known when it compiles it")

    def test_wrong_words_and_files_are_wrong_usage(self):
        for words, message in ((["--shape", "z=1"], "unknown input 'z'"), (["--shape", "x"], "write it as x=1,3,224,224"),
                               (["--shape", "x=1,a"], "write it as x=1,3,224,224"), (["--shape", "x=3,7"], "the model takes")):
            answer = xrt("inspect", self.model, *words)
            self.assertEqual((answer.returncode, answer.stdout), (2, ""), answer.stderr)
            self.assertIn(message, answer.stderr)
        Path(self.model).write_bytes(b"no model")
        self.assertEqual(xrt("inspect", self.model).returncode, 2)
        self.assertEqual(xrt("inspect", self.model + "x").returncode, 2)


if __name__ == "__main__":
    unittest.main()
