"""run, explain, bench, tune and lock on whole models: answers, files, and what is wrong with bad ones."""
import json
import re
import unittest
from pathlib import Path

from xrt_case import TOY_DEVICE, CliTest, xrt

try:
    import numpy as np
    import onnx
    from onnx import TensorProto, helper, numpy_helper
except ImportError as missing:
    raise unittest.SkipTest(f"{missing.name} is not installed")

WEIGHT = np.random.default_rng(2).uniform(-1, 1, (4, 8)).astype(np.float32)


def model(nodes, inputs, outputs, constants=()):
    values = [[helper.make_tensor_value_info(name, kind, shape) for name, kind, shape in group] for group in (inputs, outputs)]
    graph = helper.make_graph(nodes, "small", *values, [numpy_helper.from_array(array, name) for name, array in constants])
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)


def layers():
    """Two outputs, one with a name that is no file's."""
    node = helper.make_node
    nodes = [node("Gemm", ["x", "weight"], ["hidden"], "layer", transB=1), node("Relu", ["hidden"], ["y"], "activation"),
             node("Sigmoid", ["y"], ["out/2"], "gate")]
    return model(nodes, [("x", TensorProto.FLOAT, ["batch", 8])],
                 [(name, TensorProto.FLOAT, ["batch", 4]) for name in ("y", "out/2")], [("weight", WEIGHT)])


def reshaped():
    """The values of `size` determine a shape."""
    return model([helper.make_node("Reshape", ["x", "size"], ["z"]), helper.make_node("Relu", ["z"], ["y"])],
                 [("x", TensorProto.FLOAT, [6]), ("size", TensorProto.INT64, [2])], [("y", TensorProto.FLOAT, None)])


class Models(CliTest):
    def setUp(self):
        super().setUp()
        self.model = self.save("model.onnx", layers())
        self.x = np.random.default_rng(1).standard_normal((3, 8)).astype(np.float32)
        self.given = f"x={self.array('x.npy', self.x)}"

    def save(self, name, content):
        onnx.save(content, self.folder / name)
        return str(self.folder / name)

    def array(self, name, array):
        np.save(self.folder / name, array)
        return self.folder / name

    def expected(self):
        y = np.maximum(self.x @ WEIGHT.T, 0)
        return y, 1 / (1 + np.exp(-y))

    def close(self, found, wanted):
        np.testing.assert_allclose(found, wanted, rtol=1e-5, atol=1e-6)

    def test_run_writes_the_outputs_that_numpy_computes(self):
        folder, archive = self.folder / "out", self.folder / "out.npz"
        text = self.fine("run", self.model, "--input", self.given, "--output-dir", folder, "--out", archive, "--repeat", 3)
        self.assertRegex(text, r"first run .*, then median .* of 3\n")
        self.assertRegex(text, r"out/2 +f32\[3,4\]")
        y, gate = self.expected()
        self.assertEqual({path.name for path in folder.iterdir()}, {"y.npy", "out_2.npy"})
        self.close(np.load(folder / "y.npy"), y)
        self.close(np.load(folder / "out_2.npy"), gate)
        both = np.load(archive)
        self.assertEqual(both.files, ["y", "out/2"])
        self.close(both["out/2"], gate)

    def test_run_takes_random_inputs_of_a_given_shape_and_seed(self):
        words = ["run", self.model, "--shape", "x=5,8", "--json", "--repeat", 2]
        first, again, other = (self.document(*words, "--seed", seed) for seed in (1, 1, 2))
        self.assertEqual(first["outputs"], again["outputs"])
        self.assertNotEqual(first["outputs"], other["outputs"])
        self.assertEqual(first["inputs"], [{"name": "x", "is": "f32[5,8]"}])
        self.assertEqual((first["version"], first["device"], first["time"]["runs"]), (1, "cpu:0", 2))
        self.assertLessEqual(first["time"]["min_us"], first["time"]["median_us"])

    def test_arrays_of_all_dtypes_go_in_and_come_out(self):
        for dtype in ("float64", "float32", "float16", "int64", "int32", "int16", "int8", "uint8", "bool"):
            kind = helper.np_dtype_to_tensor_dtype(np.dtype(dtype))
            nodes = [helper.make_node("Reshape", ["x", "shape"], ["y"])]
            path = self.save("same.onnx", model(nodes, [("x", kind, [2, 3])], [("y", kind, [3, 2])],
                                                [("shape", np.array([3, 2]))]))
            x = np.array([[0, 1, 1], [1, 0, 1]]).astype(dtype)
            out = self.folder / "same.npy"
            self.fine("run", path, "--input", f"x={self.array('in.npy', x)}", "--out", out)
            np.testing.assert_array_equal(np.load(out), x.reshape(3, 2))
            self.assertEqual(np.load(out).dtype, x.dtype)

    def test_values_that_determine_shapes_are_given_or_asked_for(self):
        path = self.save("reshaped.onnx", reshaped())
        for command in ("run", "explain", "bench", "tune", "inspect"):
            answer = self.refused(1, command, path, says="give --input for size")
            self.assertEqual(answer.stderr.count("\n"), 1, answer.stderr)
        size = self.array("size.npy", np.array([2, 3]))
        for command in ("run", "explain", "inspect"):
            self.assertIn("f32[2,3]", self.fine(command, path, "--input", f"size={size}"))
        number = model([helper.make_node("Add", ["x", "n"], ["y"])], [(name, TensorProto.FLOAT, []) for name in "xn"],
                       [("y", TensorProto.FLOAT, [])])
        out = self.folder / "sum.npy"
        self.fine("run", self.save("sum.onnx", number), "--input", "x=1.5", "--input", "n=-4e-1", "--out", out)
        self.close(np.load(out), np.float32(1.1))

    def test_explain_says_what_each_node_is_and_why(self):
        text = self.fine("explain", self.model, "--shape", "x=5,8")
        self.assertIn("layer (Gemm) f32[5,4]\n  linear(f32[5,8], f32[4,8]; activation=relu) @cpu:0\n  -> small in f32 [strategy] ", text)
        self.assertRegex(text, r"2 kernels \(.*small 1.*\), 1 fused on cpu:0; memory between inputs and outputs: ")
        forced = self.write("policy.json", '{"preferences": {"relu": {"kernel": "reference", "mode": "force"}}}')
        document = self.document("explain", self.model, "--shape", "x=5,8", "--policy", forced, "--json")
        kernels = {step["node"]: (step["decision"]["kernel"], step["decision"]["level"]) for step in document["steps"]}
        self.assertEqual(kernels["activation"], ("reference", "force"))
        self.assertEqual(kernels["layer"][1], "strategy")

    def test_bench_times_the_model_and_its_nodes(self):
        document = self.document("bench", self.model, "--shape", "x=5,8", "--budget", "200ms", "--json")
        (native,) = [engine for engine in document["engines"] if engine["engine"] == "native"]
        self.assertGreaterEqual(native["runs"], 3)
        self.assertEqual({node["node"] for node in document["nodes"]}, {"layer", "gate"})
        self.assertTrue(all(node["time_us"] > 0 for node in document["nodes"]))
        text = self.fine("bench", self.model, "--input", self.given, "--budget", "100ms")
        self.assertRegex(text, r"engine +version +first run")
        self.assertRegex(text, r"layer +Gemm +linear\(f32\[3,8\], f32\[4,8\]; activation=relu\) @cpu:0 +small")

    def test_bench_ends_with_the_fastest_engine_and_the_median_of_its_table(self):
        text = self.fine("bench", self.model, "--shape", "x=5,8", "--budget", "100ms")
        (engine, median), = re.findall(r"(?m)^(\w+) +\S+ +\S+ \S+ +(\S+ \S+) .* fastest$", text)
        self.assertTrue(text.splitlines()[-1].startswith(f"-> {engine}: the fastest engine, {median} by median; "), text)

    def test_trace_names_the_model_its_engine_and_its_nodes(self):
        def events(*words):
            document = json.loads(self.fine("trace", self.model, "--shape", "x=5,8", "--repeat", 2, *words))
            return [event for event in document["traceEvents"] if event["ph"] == "X"]

        native = events()
        runs = [event for event in native if event["cat"] == "run"]
        self.assertEqual([(run["name"], run["args"]["engine"]) for run in runs], [(self.model, "native")] * 2)
        nodes = [event for event in native if event["cat"] == "node"]
        self.assertEqual([node["name"] for node in nodes], ["layer", "gate"] * 2)
        calls = [event for event in native if event["cat"] == "op"]
        self.assertEqual([call["args"]["problem"].split("(")[0] for call in calls], ["linear", "sigmoid"] * 2)
        for node, call in zip(nodes, calls):  # a call lies in its node
            self.assertEqual(node["tid"], call["tid"])
            self.assertLessEqual(node["ts"], call["ts"])
            self.assertGreaterEqual(node["ts"] + node["dur"], call["ts"] + call["dur"])
        out = self.folder / "trace.json"
        self.assertIn("3 calls and 1 runs of models written", self.fine(
            "trace", self.model, "relu(f32[8])", "--shape", "x=5,8", "--repeat", 1, "--out", out))
        tuned = self.document("tune", "--from-log", out, "--store", self.folder / "s.sqlite", "--per-problem", "20ms", "--json")
        self.assertEqual([result["problem"].split("(")[0] for result in tuned["results"]], ["linear", "sigmoid", "relu"])
        self.refused(2, "trace", "relu(f32[8])", "--shape", "x=5,8", says="--shape is for a model")

    def test_report_shows_the_model_its_engines_and_its_nodes(self):
        document = self.document("report", self.model, "--shape", "x=5,8", "--json")
        (shown,) = document["models"]
        self.assertEqual((shown["model"], shown["engine"], shown["target"]), (self.model, "native", "cpu"))
        times = {one["engine"]: one for one in shown["engines"]}
        self.assertTrue(times["native"]["runs_model"] and times["native"]["median_us"] > 0)
        self.assertTrue(all(one["median_us"] or one["reason"] for one in shown["engines"]))
        nodes = {node["node"]: node for node in shown["nodes"]}
        self.assertEqual((nodes["activation"]["kind"], nodes["activation"]["fused_into"]), ("fused", "layer"))
        self.assertEqual((nodes["layer"]["operator"], nodes["layer"]["kernel"], nodes["layer"]["count"]), ("Gemm", "small", 1))
        self.assertTrue(nodes["layer"]["because"] and nodes["layer"]["time_us"] > 0)
        self.assertEqual([row["problem"] for row in document["decisions"]], [nodes[name]["problem"] for name in ("layer", "gate")])
        page = self.folder / "report.html"
        self.fine("report", self.model, "--shape", "x=5,8", "--out", page)
        plain = page.read_text(encoding="utf-8").split("<noscript>")[1].split("</noscript>")[0]
        self.assertIn("engine native", plain)
        self.assertIn("<td>gate</td><td>Sigmoid</td>", plain)
        self.refused(2, "report", "--shape", "x=5,8", says="--shape is for a model")

    def test_bench_shows_a_page_of_the_slowest_nodes(self):
        names = ["x", *(f"a{i}" for i in range(30))]
        nodes = [helper.make_node("Sigmoid" if i % 2 else "Tanh", [names[i]], [names[i + 1]]) for i in range(30)]
        chain = self.save("chain.onnx", model(nodes, [("x", TensorProto.FLOAT, [8])], [("a29", TensorProto.FLOAT, [8])]))
        text = self.fine("bench", chain, "--budget", "50ms")
        self.assertRegex(text, r"\.\.\. 10 more +--json lists all")
        self.assertIn("30 calls of native", text)
        self.assertEqual(len(self.document("bench", chain, "--budget", "50ms", "--json")["nodes"]), 30)

    def test_tune_stores_every_calls_choice(self):
        store, policy, lock = (self.folder / name for name in ("store.sqlite", "policy.json", "kernels.lock"))
        document = self.document("tune", self.model, "--shape", "x=5,8", "--store", store, "--out", policy, "--lock", lock,
                                 "--per-problem", "20ms", "--json")
        self.assertEqual([result["problem"].split("(")[0] for result in document["results"]], ["linear", "sigmoid"])
        listed = self.fine("store", "list", "--store", store)
        self.assertIn("linear(f32[5,8], f32[4,8]; activation=relu) @cpu:0", listed)
        tuned = self.document("explain", self.model, "--shape", "x=5,8", "--policy", policy, "--json")
        chosen = {result["problem"]: result["chosen"] for result in document["results"]}
        for step in filter(lambda step: step["decision"], tuned["steps"]):
            self.assertEqual(step["decision"]["kernel"], chosen[step["decision"]["problem"]])

    def test_a_lock_covers_the_sizes_that_it_was_recorded_for(self):
        lock = self.folder / "kernels.lock"
        self.assertIn("2 decisions recorded", self.fine("lock", "record", self.model, "--shape", "x=5,8", "--out", lock))
        self.assertIn("all 3 decisions hold here", self.fine("lock", "verify", self.model, "--lock", lock, "--shape", "x=5,8"))
        explained = self.document("explain", self.model, "--lock", lock, "--shape", "x=5,8", "--json")
        self.assertEqual({step["decision"]["level"] for step in explained["steps"] if step["decision"]}, {"lock"})
        self.fine("run", self.model, "--lock", lock, "--shape", "x=5,8")
        document = self.document("lock", "verify", self.model, "--lock", lock, "--shape", "x=6,8", "--json", code=1)
        self.assertEqual([result["verdict"] for result in document["results"]], ["failed"] * 2)
        self.refused(1, "run", self.model, "--lock", lock, "--shape", "x=6,8", "--out", self.folder / "y.npz", says="lock")
        self.assertFalse((self.folder / "y.npz").exists())
        self.refused(2, "lock", "verify", self.model, says="--lock")
        self.refused(2, "lock", "verify", lock, "--lock", lock, says="--lock goes with a model")
        self.refused(2, "lock", "record", "relu(f32[4])", "--shape", "x=5,8", says="--shape is for a model")

    def test_an_execution_policy_is_obeyed(self):
        policy = self.write("execution.json", '{"target": "cpu", "static_shape": true, "fixed_shapes": [[5, 8]]}')
        self.fine("run", self.model, "--shape", "x=5,8", "--execution", policy)
        self.refused(2, "run", self.model, "--shape", "x=6,8", "--execution", policy, says="fixes its shape to [5,8]")
        self.refused(2, "run", self.model, "--execution", self.write("bad.json", "{"), "--shape", "x=5,8", says="bad.json")

    def test_a_device_is_the_target_of_a_models_run(self):
        for words in (["run"], ["explain"], ["inspect"], ["bench", "--budget", "50ms"], ["tune", "--per-problem", "20ms"],
                      ["lock", "record"]):
            given = [*words, self.model, "--shape", "x=5,8"]
            self.refused(2, *given, "--device", "cpu:1", says="--device cpu:1: a model runs on the first device of a type")
            self.refused(1, *given, "--device", "npu", says="target npu is not here")
            policy = self.write("execution.json", '{"target": "npu"}')
            self.refused(2, *given, "--device", "cpu", "--execution", policy, says="is not the target of the execution policy, which is npu")
        policy = self.write("execution.json", '{"target": "cpu"}')
        self.fine("run", self.model, "--shape", "x=5,8", "--device", "cpu:0", "--execution", policy)

    def test_a_device_of_opencl_runs_the_model(self):
        if "opencl:0" not in [device["device"] for device in self.document("devices", "--json")["devices"]]:
            self.skipTest("no OpenCL device is here")
        out = self.folder / "y.npz"
        document = self.document("run", self.model, "--input", self.given, "--device", "opencl:0", "--out", out, "--json")
        self.assertEqual((document["device"], document["engine"]["target"]), ("opencl:0", "opencl"))
        self.close(np.load(out)["y"], self.expected()[0])
        steps = self.document("explain", self.model, "--shape", "x=5,8", "--device", "opencl:0", "--json")["steps"]
        self.assertEqual({step["decision"]["device"] for step in steps if step["decision"]}, {"opencl:0"})

    def test_what_a_device_lacks_runs_on_the_cpu_or_is_listed(self):
        nodes = [helper.make_node(op, [x], [y], name) for op, x, y, name in
                 (("Relu", "x", "a", "first"), ("Exp", "a", "b", "second"), ("Relu", "b", "y", "third"))]
        values = [(name, TensorProto.FLOAT, ["n", 8]) for name in "xy"]
        path = self.save("three.onnx", model(nodes, values[:1], values[1:]))
        words = [path, "--input", self.given, "--execution"]
        policy = self.write("falls_back.json", '{"target": "toy", "allow_fallback": "cpu", "engine": "native"}')
        alone = self.write("alone.json", '{"target": "toy", "engine": "native"}')
        toy = ["--plugin", TOY_DEVICE]
        out = self.folder / "y.npy"
        document = self.document(*toy, "run", *words, policy, "--out", out, "--json")
        self.assertEqual((document["device"], document["engine"]["target"]), ("toy:0", "toy"))
        (lacked,) = document["engine"]["on_fallback"]
        self.assertEqual((lacked["operator"], lacked["nodes"]), ("Exp", 1))
        self.close(np.load(out), np.exp(np.maximum(self.x, 0)))

        steps = self.document(*toy, "explain", *words, policy, "--json")["steps"]
        self.assertEqual([(step["node"], step["kind"]) for step in steps],
                         [("first", "kernel"), ("second", "transfer"), ("second", "kernel"), ("third", "transfer"), ("third", "kernel")])
        copied = {"source": "toy:0", "destination": "cpu:0", "bytes": self.x.nbytes}
        self.assertEqual([step["transfer"] for step in steps[:2]], [None, copied])
        self.assertRegex(self.fine(*toy, "explain", *words, policy), r"second \(Exp\) .*\n  copy to cpu:0 from toy:0, \d+ bytes\n")
        self.assertRegex(self.fine(*toy, "inspect", *words, policy), r"second +Exp +copy to cpu:0")
        lock, trace, page = (self.folder / name for name in ("kernels.lock", "trace.json", "page.html"))
        self.fine(*toy, "lock", "record", *words, policy, "--out", lock)
        self.fine(*toy, "lock", "verify", *words, policy, "--lock", lock)
        self.fine(*toy, "run", *words, policy, "--lock", lock)
        self.fine(*toy, "bench", *words, policy, "--budget", "20ms")
        self.fine(*toy, "report", *words, policy, "--out", page)
        self.fine(*toy, "trace", *words, policy, "--out", trace)
        events = json.loads(trace.read_text())["traceEvents"]
        self.assertIn("copy to cpu:0", {event.get("name") for event in events})

        lacks = "toy:0 has no kernels for exp(f32[3,8]) @toy:0 (1 call); with allow_fallback cpu"
        for command in ("run", "explain"):
            self.refused(1, *toy, command, *words, alone, says=lacks)
        answer = xrt(*toy, "inspect", *words, alone)
        self.assertEqual((answer.returncode, answer.stderr), (1, ""))
        self.assertIn(lacks, answer.stdout)
        self.assertIn(lacks, self.document(*toy, "inspect", *words, alone, "--json", code=1)["lacks"])

    def test_wrong_words_are_one_error_that_says_what_to_do(self):
        short, wide = self.array("short.npy", self.x[:, :5]), self.array("wide.npy", self.x.astype(np.float64))
        fortran = self.array("fortran.npy", np.asfortranarray(self.x))
        for words, says in (([], "input x f32[batch,8] leaves its shape open"), (["--shape", "z=1"], "unknown input 'z'"),
                            (["--shape", "x=1,a"], "write it as x=1,3,224,224"), (["--shape", "x=3,7"], "the model takes 'x' f32"),
                            (["--input", "x"], "write it as x=FILE.npy"), (["--input", "x=none.npy"], "cannot be read"),
                            (["--input", f"x={short}"], "the model takes 'x' f32[batch,8]"),
                            (["--input", f"x={wide}"], "the model takes 'x' f32[batch,8]"),
                            (["--input", f"x={fortran}"], "ascontiguousarray"), (["--input", f"x={self.model}"], "no array file"),
                            (["--input", self.given, "--input", self.given], "given twice"),
                            (["--input", self.given, "--shape", "x=4,8"], "is f32[3,8], and --shape says 4,8"),
                            (["--input", self.given, "--force", "simd"], "--force means nothing to a model"),
                            (["--input", self.given, "--out", "y.npy"], "has 2 outputs"),
                            (["--input", self.given, "--out", "y.txt"], "must end in .npy"),
                            (["--input", self.given, "--output-dir", self.model], "no folder"),
                            (["--shape", "x=99999999999,8"], "")):
            code = 1 if "99999999999" in str(words) else 2
            answer = self.refused(code, "run", self.model, *words, says=says, cwd=self.folder)
            self.assertEqual(answer.stderr.count("xrt: "), 1, answer.stderr)
            self.assertEqual(sorted(path.suffix for path in self.folder.iterdir()), [".npy"] * 4 + [".onnx"])
        self.fine("run", self.model, "--input", self.given, "--shape", "x=3,8")
        for command in ("run", "explain", "bench"):
            for option in (["--shape", "x=1"], ["--engine", "native"]):
                self.refused(2, command, "relu(f32[4])", *option, says=f"{option[0]} means nothing to a problem")

    def test_inspect_says_which_shape_is_open_where_others_are_given(self):
        two = model([helper.make_node("Add", ["x", "z"], ["y"])], [(name, TensorProto.FLOAT, ["n"]) for name in "xz"],
                    [("y", TensorProto.FLOAT, ["n"])])
        path = self.save("two.onnx", two)
        self.assertNotIn("runs as", self.fine("inspect", path))
        self.refused(2, "inspect", path, "--shape", "x=3", says="input z f32[n] leaves its shape open")
        self.assertIn("runs as", self.fine("inspect", path, "--shape", "x=3", "--shape", "z=3"))


class BadModels(CliTest):
    """Each is one error on stderr, and nothing is written."""

    def check(self, code, content, says=""):
        path = self.folder / "model.onnx"
        path.write_bytes(content if isinstance(content, bytes) else content.SerializeToString())
        for words in (["run", "--out", self.folder / "y.npz"], ["inspect"], ["explain"], ["bench"],
                      ["tune", "--store", self.folder / "store.sqlite", "--out", self.folder / "policy.json"],
                      ["lock", "record", "--out", self.folder / "kernels.lock"]):
            after = 2 if words[0] == "lock" else 1
            answer = xrt(*words[:after], path, *words[after:])
            if words[0] == "inspect" and code == 1:  # lists what is missing
                self.assertEqual(answer.returncode, 1, answer)
                continue
            self.assertEqual((answer.returncode, answer.stdout), (code, ""), answer)
            self.assertTrue(answer.stderr.startswith("xrt: ") and answer.stderr.count("\n") == 1, answer)
            self.assertIn(says, answer.stderr)
            self.assertEqual([left.name for left in self.folder.iterdir()], ["model.onnx"])

    def unary(self, nodes, name="y"):
        return model(nodes, [("x", TensorProto.FLOAT, [2])], [(name, TensorProto.FLOAT, [2])])

    def test_truncated_and_foreign_files(self):
        whole = layers().SerializeToString()
        for content in (b"", b"no model at all", whole[:len(whole) // 2], whole + b"\xff" * 9, b"\x3a\xff\xff\xff\xff\x0f"):
            self.check(2, content)

    def test_cycles_duplicate_and_missing_names(self):
        node = helper.make_node
        self.check(2, self.unary([node("Relu", ["b"], ["y"], "one"), node("Relu", ["y"], ["b"], "two")]), "cycle")
        self.check(2, self.unary([node("Relu", ["x"], ["y"], "one"), node("Relu", ["x"], ["y"], "two")]), "'y'")
        self.check(2, self.unary([node("Relu", ["nobody"], ["y"], "one")]), "nobody")

    def test_operators_that_do_not_exist_are_listed(self):
        node = helper.make_node
        self.check(1, self.unary([node("NoSuchOp", ["x"], ["a"]), node("Nor", ["a"], ["y"])]), "NoSuchOp (1), Nor (1)")

    def test_external_data_outside_the_folder(self):
        outside = self.enterContext(__import__("tempfile").TemporaryDirectory())
        Path(outside, "secret.bin").write_bytes(WEIGHT.tobytes())
        for location in (f"{outside}/secret.bin", f"../{Path(outside).name}/secret.bin", "nothing.bin"):
            content = layers()
            tensor = content.graph.initializer[0]
            tensor.ClearField("raw_data")
            tensor.data_location = TensorProto.EXTERNAL
            entry = tensor.external_data.add()
            entry.key, entry.value = "location", location
            self.check(2, content, "nothing.bin" if location == "nothing.bin" else "folder")

    def test_constants_that_claim_more_than_the_file_has(self):
        content = layers()
        content.graph.initializer[0].dims[:] = [1 << 40, 1 << 20]
        self.check(2, content)
        content.graph.initializer[0].dims[:] = [-1, 8]
        self.check(2, content)


if __name__ == "__main__":
    unittest.main()
