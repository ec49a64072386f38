"""xrt policy, the published schema, rules as a stranger reads them, and XPURUNTIME_POLICY."""
import json
import operator
import random
import unittest

from xrt_case import ROOT, CliTest, xrt

try:
    import jsonschema
except ImportError:
    jsonschema = None

SEED = """{
  "preferences": {
    "matmul": "cublasLt",
    "attention": "flash_v2",
    "conv": "cudnn"
  },
  "auto_strategy": 0,
  "default_precision": "fp16"
}
"""
EXECUTION_SEED = """{
  "target": "npu",
  "precision": "int8",
  "static_shape": true,
  "fixed_shapes": [[1, 3, 224, 224]],
  "allow_fallback": "cpu",
  "optimize_level": 2,
  "cache_compiled": true
}
"""


def rule(when, op="matmul", use="skinny"):
    return {"rules": [{"op": op, "use": use, "when": when}]}


ACCEPTED = [
    {}, {"version": 1}, {"$schema": "x"}, json.loads(SEED), {"strategy": "BestPerformance"}, {"auto_strategy": 2},
    {"preferences": {}}, {"preferences": {"matmul": ["skinny", "packed"]}},
    {"preferences": {"GEMM": {"kernel": "skinny", "mode": "force"}}}, {"preferences": {"matmul": {"kernel": "skinny"}}},
    {"precision": {"matmul": "bf16"}}, {"precision": {"relu": {"forward": "lower", "backward": "f32"}}},
    {"workspace_limit_bytes": 0}, {"workspace_limit_bytes": 2**64 - 1}, {"deterministic": False}, {"threads": 2**32 - 1},
    {"rules": []}, {"rules": [{"op": "matmul", "use": ["skinny", "cublasLt"], "name": "x"}]}, rule({}),
    rule({"m": 1}), rule({"m": [1, 2]}), rule({"m": {"<": 3, ">=": 1, "multiple_of": 2, "not_in": [2]}}),
    rule({"dtype": "bf16", "direction": "forward"}), rule({"dtype": {"in": ["bf16", "half"], "!=": "f32"}}),
    rule({"transpose_a": True, "deterministic": {"!=": True}}), rule({"device.compute_capability": {">=": 8.6}}),
    rule({"device.cpu_features": {"contains": ["avx2"]}, "device.extensions": {"contains": "x"}}),
    rule({"device.name": {"contains": "H200"}, "device.library_versions.cublasLt": "13"}),
    rule({"inputs.0.shape": [1, 2], "inputs.0.shape.-1": {"multiple_of": 8}, "inputs.1.contiguous": True}),
    rule({"inputs.0.shape": [[1, 2], 3]}), rule({"inputs.0.shape": {"in": [3, [1]], "contains": 3}}),
    rule({"inputs.0.strides": {"==": [1], "<": 4}, "inputs.0.rank": 2, "inputs.0.alignment": 16}),
    rule({"device.max_work_item_sizes": [1], "device.max_work_item_sizes.0": 1, "device.l2_bytes": {">": 1}}),
    rule({"stride": [1, 1], "kernel": 3, "groups": {">": 1}}, "conv2d", "direct"), rule({"dim": []}, "sum", "simd"),
    rule({"eps": {"<": 1e-3}}, "layer_norm", "simd"), rule({"approximate": ["tanh"]}, "gelu", "simd"),
    rule({"threads": {"<=": 2}, "workspace_limit_bytes": 5, "elements": 3, "inputs.count": 2}),
]
# Both refuse these.
REFUSED = [
    [], 3, {"preference": {}}, {"version": 2}, {"$schema": 1}, {"strategy": 3}, {"strategy": "fastest"},
    {"strategy": 0, "auto_strategy": 0}, {"strategy": None}, {"preferences": []}, {"preferences": {"matmul": []}},
    {"preferences": {"matmul": 3}}, {"preferences": {"matmul": {}}}, {"preferences": {"matmul": {"mode": "force"}}},
    {"preferences": {"matmul": {"kernel": "skinny", "mode": "must"}}},
    {"preferences": {"matmul": {"kernel": ["skinny"]}}}, {"preferences": {"matmul": {"kernel": "skinny", "x": 1}}},
    {"precision": {"matmul": 16}}, {"precision": {"matmul": {}}}, {"precision": {"matmul": {"sideways": "f32"}}},
    {"default_precision": 16}, {"workspace_limit_bytes": -1}, {"workspace_limit_bytes": 1.5}, {"deterministic": 1},
    {"workspace_limit_bytes": 2**64}, {"threads": 0}, {"threads": 2**32}, {"threads": "2"},
    {"rules": {}}, {"rules": ["x"]}, {"rules": [{"op": "matmul"}]}, {"rules": [{"use": "skinny"}]},
    {"rules": [{"op": "matmul", "use": "skinny", "whn": {}}]}, {"rules": [{"op": "matmul", "use": []}]},
    {"rules": [{"op": "matmul", "use": "skinny", "name": 3}]}, rule([]), rule({"m": None}), rule({"m": {}}),
    rule({"m": {"=<": 1}}), rule({"m": {"in": 3}}), rule({"m": {"in": []}}), rule({"m": {"multiple_of": 0}}),
    rule({"m": [[["a"]]]}), rule({"dtype": 16}), rule({"dtype": {"<=": "f32"}}), rule({"deterministic": 1}),
    rule({"deterministic": [True]}), rule({"device.cpu_features": "avx2"}), rule({"device.vendr": "x"}),
    rule({"device.cpu_features": {"contains": []}}), rule({"device.l2_bytes": "1"}), rule({"device.bf16": "yes"}),
    rule({"inputs.0.shape": [1.5]}), rule({"inputs.0.shape": {"<": [1]}}), rule({"inputs.0.rank": 1.5}),
    rule({"inputs.0.shape": [1, [2]]}), rule({"inputs.0.shape": [1] * 9}), rule({"device.compute_capability": "9"}),
    rule({"threads": True}), rule({"elements": "many"}), rule({"inputs.0.rank": 2**63}),
]
# What only the reader knows: names, the types of sizes and attributes, and whole numbers with a point.
BEYOND = [
    {"preferences": {"matmull": "skinny"}}, {"preferences": {"matmul": "skiny"}}, {"precision": {"matmul": "i8"}},
    {"default_precision": "fp17"}, {"preferences": {"matmul": "skinny", "gemm": "skinny"}}, {"threads": 2.0},
    rule({}, "matmull"), rule({}, use="skiny"), rule({"mm": 1}), rule({"m": "x"}), rule({"m": 1.5}), rule({"m": True}),
    rule({"m": 2**63}), rule({"dtype": "bf61"}), rule({"dtype": {"contains": "f"}}), rule({"direction": "forwards"}),
    rule({"inputs.7.dtype": "f32"}), rule({"device.type": "gpu"}), rule({"stride": [1, 1, 1]}, "conv2d", "direct"),
]


class Schema(CliTest):
    def reads(self, document):
        answer = xrt("policy", "show", self.write("policy.json", json.dumps(document)))
        self.assertIn(answer.returncode, (0, 2), answer)
        return answer.returncode == 0

    def test_the_reader_takes_and_refuses_what_the_list_says(self):
        for document in ACCEPTED:
            self.assertTrue(self.reads(document), document)
        for document in REFUSED + BEYOND:
            self.assertFalse(self.reads(document), document)

    @unittest.skipIf(jsonschema is None, "python3-jsonschema is not installed")
    def test_the_schema_agrees_with_the_reader(self):
        schema = json.loads((ROOT / "schemas" / "kernel_policy.schema.json").read_text(encoding="utf-8"))
        jsonschema.Draft202012Validator.check_schema(schema)
        validator = jsonschema.Draft202012Validator(schema)
        for document in ACCEPTED + BEYOND:
            self.assertEqual([error.message for error in validator.iter_errors(document)], [], document)
        for document in REFUSED:
            self.assertFalse(validator.is_valid(document), document)
        self.assertGreater(len(ACCEPTED) + len(REFUSED), 80)

    @unittest.skipIf(jsonschema is None, "python3-jsonschema is not installed")
    def test_what_is_written_is_valid(self):
        schema = json.loads((ROOT / "schemas" / "kernel_policy.schema.json").read_text(encoding="utf-8"))
        validator = jsonschema.Draft202012Validator(schema)
        for document in ACCEPTED:
            policy = self.write("policy.json", json.dumps(document))
            written = self.document("policy", "show", policy, "--json")["policy"]
            self.assertTrue(validator.is_valid(written), written)


class Policy(CliTest):
    def policy(self, name, document):
        return self.write(name, document if isinstance(document, str) else json.dumps(document, indent=2))

    def test_the_seeds_file_loads_as_it_stands_and_notes_what_is_not_here(self):
        path = self.policy("kernel_policy.json", SEED)
        answer = xrt("policy", "validate", path)
        self.assertEqual(answer.returncode, 0, answer)
        fields = self.document("policy", "show", path, "--json")["fields"]
        values = {field["field"]: field["value"] for field in fields}
        self.assertEqual(values["preferences.conv2d"], "cudnn")
        self.assertEqual((values["auto_strategy"], values["default_precision"]), ("first_supported", "fp16"))
        # The seed's other file is an execution policy, which is another format; and its labels are no JSON.
        self.refused(2, "policy", "show", self.policy("execution_policy.json", EXECUTION_SEED), says="'target' is not")
        self.refused(2, "policy", "show", self.policy("labelled.json", "// kernel_policy.json\n" + SEED), says="line 1")

    def test_validate_says_where_and_answers_no_only_to_warnings_and_errors(self):
        note = self.policy("note.json", {"preferences": {"matmul": "cublasLt"}})
        hidden = self.policy("hidden.json", '{\n  "rules": [\n    {"op": "matmul", "use": "packed"},\n'
                             '    {"op": "matmul", "use": "skinny", "when": {"m": 1}}\n  ]\n}\n')
        forced = self.policy("forced.json", {"preferences": {"relu": {"kernel": "simd", "mode": "force"}}})
        self.assertIn("note: preferences.matmul: cublasLt never runs on cpu:0", self.fine("policy", "validate", note))
        self.assertIn("forced.json: fine on cpu:0", self.fine("policy", "validate", forced))
        answer = xrt("policy", "validate", forced, hidden)
        self.assertEqual(answer.returncode, 1)
        self.assertIn(f"{hidden}:4:5: warning: rules[1]: every problem that matches it matches rules[0]", answer.stdout)
        document = self.document("policy", "validate", forced, hidden, "--json", code=1)
        self.assertEqual(list(document), ["version", "device", "fine", "files"])
        self.assertEqual((document["version"], document["fine"], document["device"]), (1, False, "cpu:0"))
        self.assertEqual(document["files"][0]["findings"], [])
        self.assertEqual(list(document["files"][1]["findings"][0]), ["severity", "field", "text", "line", "column"])
        error = self.policy("error.json", {"preferences": {"matmul": {"kernel": "cublasLt", "mode": "force"}}})
        self.assertEqual(self.document("policy", "validate", error, "--json", code=1)["files"][0]["findings"][0]["severity"],
                         "error")

    def test_show_has_every_field_and_where_it_is_set(self):
        second = ' "preferences": {"GEMM": "skinny"}, "threads": 2}'
        path = self.policy("p.json", '{"strategy": 1,\n' + second)
        document = self.document("policy", "show", path, "--json")
        self.assertEqual(list(document), ["version", "file", "policy", "fields"])
        fields = {field["field"]: (field["value"], field["line"], field["column"]) for field in document["fields"]}
        self.assertEqual(fields, {"preferences.matmul": ("skinny", 2, second.index('"GEMM') + 1),
                                  "auto_strategy": ("best_performance", 1, 2),
                                  "default_precision": (None, None, None), "workspace_limit_bytes": (None, None, None),
                                  "deterministic": (None, None, None), "threads": (2, 2, second.index('"threads') + 1)})
        self.assertIn("not set", self.fine("policy", "show", path))

    def test_merge_lets_later_files_win_and_writes_whole_files(self):
        base = self.policy("base.json", {"preferences": {"matmul": "skinny", "relu": "simd"}, "threads": 1,
                                         "rules": [{"op": "matmul", "use": "packed"}]})
        over = self.policy("over.json", {"preferences": {"gemm": "packed"}, "deterministic": True,
                                         "rules": [{"op": "relu", "use": "simd"}]})
        expected = {"preferences": {"gemm": "packed", "relu": "simd"},
                    "rules": [{"op": "relu", "use": "simd"}, {"op": "matmul", "use": "packed"}],
                    "deterministic": True, "threads": 1}
        self.assertEqual(json.loads(self.fine("policy", "merge", base, over)), expected)
        self.assertEqual(self.document("policy", "merge", base, over, "--json")["policy"], expected)
        out = self.folder / "out.json"
        self.assertIn("2 policies merged into", self.fine("policy", "merge", base, over, "--out", out))
        self.assertEqual(json.loads(out.read_text()), expected)
        self.fine("policy", "merge", base, out, "--out", base)  # over one of its own inputs
        self.refused(2, "policy", "merge", base, over, "--out", self.folder / "no" / "x.json", says="cannot be written")
        self.refused(2, "policy", "merge", base, self.policy("bad.json", "{"), "--out", out, says="bad.json")
        self.assertEqual(json.loads(out.read_text()), expected)

    def test_diff_names_fields_and_rules_and_answers_no_to_differences(self):
        first = {"op": "matmul", "use": "packed", "when": {"m": 3}}
        second = {"op": "relu", "use": "simd"}
        a = self.policy("a.json", {"threads": 1, "preferences": {"relu": "simd"}, "rules": [first, second]})
        b = self.policy("b.json", {"threads": 2, "deterministic": False,
                                   "rules": [{**first, "use": "skinny"}, first, second]})
        self.assertEqual(self.fine("policy", "diff", a, a), "the policies say the same\n")
        document = self.document("policy", "diff", a, b, "--json", code=1)
        self.assertEqual(document["equal"], False)
        self.assertEqual(document["changes"], [
            {"field": "deterministic", "before": None, "after": False},
            {"field": "preferences.relu", "before": "simd", "after": None},
            {"field": "threads", "before": 1, "after": 2},
            {"field": "rules[0]", "before": None,
             "after": {"op": "matmul", "when": {"m": 3}, "use": "skinny"}}])
        self.assertEqual(self.document("policy", "diff", a, a, "--json")["changes"], [])
        answer = xrt("policy", "diff", a, b)
        self.assertEqual(answer.returncode, 1)
        self.assertIn("- threads 1\n+ threads 2\n", answer.stdout)

    def test_wrong_usage_says_what_to_write(self):
        path = self.policy("a.json", {})
        self.refused(2, "policy", "merge", path, says="two policy files or more")
        self.refused(2, "policy", "diff", path, path, path, says="two policy files")
        self.refused(2, "policy", "show", path, path, says="one policy file")
        self.refused(2, "policy", "validate", says="files")
        self.refused(2, "policy", "valdate", path, says="valdate")
        self.refused(2, "policy", "show", path, "--out", "x", says="--out goes with merge")
        self.refused(2, "policy", "validate", self.folder / "none.json", says="none.json")
        self.refused(1, "policy", "validate", path, "--device", "npu:0", says="npu:0")
        line = '  "rules": [{"op": "matmul", "use": "skinny", "when": {"m": "1"}}]'
        column = line.index('"m"') + 1
        bad = self.policy("bad.json", "{\n" + line + "\n}")
        self.refused(2, "policy", "validate", bad, says=["bad.json", f"line 2, column {column}", "rules[0].when.m"])


class Environment(CliTest):
    def test_the_environment_names_a_policy_and_an_explicit_one_wins(self):
        reference = self.write("reference.json", '{"preferences": {"relu": "reference"}}')
        simd = self.write("simd.json", '{"threads": 3}')
        bad = self.write("bad.json", "{")
        explain = ["explain", "relu(f32[8])", "--json"]
        chosen = json.loads(self.fine(*explain, env={"XPURUNTIME_POLICY": str(reference)}))
        self.assertEqual((chosen["kernel"], chosen["level"]), ("reference", "prefer"))
        chosen = json.loads(self.fine(*explain, "--policy", simd, env={"XPURUNTIME_POLICY": str(reference)}))
        self.assertEqual((chosen["kernel"], chosen["problem"]), ("simd", "relu(f32[8]) @cpu:0 threads=3"))
        self.fine(*explain, "--policy", simd, env={"XPURUNTIME_POLICY": str(bad)})
        self.fine(*explain, env={"XPURUNTIME_POLICY": ""})
        missing = {"XPURUNTIME_POLICY": str(self.folder / "none.json")}
        self.refused(2, *explain, env=missing, says=["XPURUNTIME_POLICY", "none.json"])
        self.refused(2, *explain, env={"XPURUNTIME_POLICY": str(bad)}, says=["XPURUNTIME_POLICY", "line 1"])
        self.fine("policy", "show", simd, env={"XPURUNTIME_POLICY": str(bad)})
        amp = json.loads(self.fine("amp", "get", "relu", "--json", env={
            "XPURUNTIME_POLICY": str(self.write("amp.json", '{"precision": {"relu": "bf16"}}'))}))
        self.assertEqual(amp["ops"][0]["from"], "policy")


COMPARE = {"==": operator.eq, "!=": operator.ne, "<": operator.lt, "<=": operator.le, ">": operator.gt,
           ">=": operator.ge, "in": lambda fact, list_: fact in list_, "not_in": lambda fact, list_: fact not in list_,
           "multiple_of": lambda fact, divisor: fact % divisor == 0}


class Rules(CliTest):
    """A second reading of the rules, in Python, from the manual alone."""

    def random_when(self, source):
        when = {}
        for key in source.sample(["m", "n", "k", "dtype", "transpose_b", "inputs.0.shape.-1"], source.randint(1, 3)):
            if key == "dtype":
                when[key] = source.choice(["f32", "bf16", ["f32", "f16"], {"!=": "f32"}])
            elif key == "transpose_b":
                when[key] = source.choice([True, False])
            else:
                name = source.choice(list(COMPARE))
                operand = [source.randint(1, 4) for _ in range(2)] if name in ("in", "not_in") else source.randint(1, 4)
                when[key] = source.choice([{name: operand}, source.randint(1, 4), [1, 2, 3]])
        return when

    def holds(self, fact, wanted):
        if isinstance(wanted, list):
            return fact in wanted
        if isinstance(wanted, dict):
            return all(COMPARE[name](fact, operand) for name, operand in wanted.items())
        return fact == wanted

    def test_match_what_python_says(self):
        source = random.Random(3)
        seen = set()
        for _ in range(60):
            m, n, k = (source.randint(1, 4) for _ in range(3))
            dtype = source.choice(["f32", "bf16"])
            transposed = source.choice([True, False])
            facts = {"m": m, "n": n, "k": k, "dtype": dtype, "transpose_b": transposed, "inputs.0.shape.-1": k}
            when = self.random_when(source)
            b = f"{dtype}[{n},{k}]" if transposed else f"{dtype}[{k},{n}]"
            problem = f"matmul({dtype}[{m},{k}], {b}{'; transpose_b=true' if transposed else ''})"
            policy = self.write("policy.json", json.dumps(rule(when, use="reference")))
            level = self.document("explain", problem, "--policy", policy, "--json")["level"]
            expected = all(self.holds(facts[key], wanted) for key, wanted in when.items())
            self.assertEqual(level == "rule", expected, (problem, when))
            seen.add(expected)
        self.assertEqual(seen, {True, False})


if __name__ == "__main__":
    unittest.main()
