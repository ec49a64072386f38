"""ExecutionPolicy: fields, checks, changes that keep the rest, and files."""

import copy
import json
import os
import pathlib
import pickle
import subprocess
import tempfile
import unittest

from packages import optional

import xpuruntime as xrt
from xpuruntime import ExecutionPolicy

try:
    import jsonschema
except ImportError:
    jsonschema = None

SCHEMA = pathlib.Path(__file__).resolve().parents[2] / "schemas" / "execution_policy.schema.json"
FULL = {
    "target": "npu",
    "precision": "int8",
    "static_shape": True,
    "fixed_shapes": [[1, 3, 224, 224], [1]],
    "allow_fallback": "cpu",
    "optimize_level": 3,
    "cache_compiled": False,
    "cache_dir": "compiled",
    "compile_timeout_ms": 1000,
    "execution_timeout_ms": 50,
    "engine": "openvino",
}


class ExecutionPolicyTest(unittest.TestCase):
    def fields(self, policy: ExecutionPolicy) -> dict[str, object]:
        return {name: getattr(policy, name) for name in FULL}

    def test_the_defaults_are_the_seeds(self) -> None:
        usual = ["cuda", "fp32", False, None, None, 2, True, "", 300000, 30000, "auto"]
        self.assertEqual(list(self.fields(ExecutionPolicy()).values()), usual)

    def test_fields_come_by_name_or_in_order(self) -> None:
        self.assertEqual(self.fields(ExecutionPolicy(**FULL)), FULL)
        self.assertEqual(ExecutionPolicy(*FULL.values()), ExecutionPolicy(**FULL))
        self.assertEqual(ExecutionPolicy("cpu", precision="half").precision, "fp16")

    def test_names_are_read_in_any_spelling(self) -> None:
        self.assertEqual(ExecutionPolicy(target="NVIDIA", precision="Float16"), ExecutionPolicy("cuda", "fp16"))
        self.assertEqual(ExecutionPolicy(target=xrt.devices()[0]).target, "cpu")

    def test_static_shapes_need_shapes(self) -> None:
        for shapes in ({}, {"fixed_shapes": None}, {"fixed_shapes": []}):
            with self.assertRaisesRegex(ValueError, "fixed_shapes required"):
                ExecutionPolicy(static_shape=True, **shapes)

    def test_a_change_keeps_every_other_field(self) -> None:
        policy = ExecutionPolicy(**FULL)
        self.assertEqual(self.fields(policy.with_precision("bf16")), {**FULL, "precision": "bf16"})
        self.assertEqual(self.fields(policy.with_fallback("cuda")), {**FULL, "allow_fallback": "cuda"})
        self.assertEqual(self.fields(policy.with_fallback(None)), {**FULL, "allow_fallback": None})
        self.assertEqual(self.fields(policy), FULL)

    def test_fields_can_be_set_and_what_is_refused_changes_nothing(self) -> None:
        policy = ExecutionPolicy()
        policy.fixed_shapes = ((2, 3),)
        policy.static_shape = True
        for name, value in (("fixed_shapes", None), ("optimize_level", 4), ("precision", "f64"), ("target", "toaster")):
            with self.assertRaises(ValueError, msg=name):
                setattr(policy, name, value)
        self.assertEqual(policy, ExecutionPolicy(static_shape=True, fixed_shapes=[[2, 3]]))

    def test_copies_and_pickles(self) -> None:
        policy = ExecutionPolicy(**FULL)
        for made in (copy.copy(policy), copy.deepcopy(policy), pickle.loads(pickle.dumps(policy))):
            self.assertEqual(made, policy)
            made.optimize_level = 0
            self.assertEqual(policy.optimize_level, 3)

    def test_it_prints_as_it_is_written(self) -> None:
        policy = ExecutionPolicy(**FULL)
        self.assertEqual(eval(repr(policy)), policy)
        self.assertEqual(repr(ExecutionPolicy()), "ExecutionPolicy()")

    def test_wrong_types_say_what_to_pass(self) -> None:
        for fields in (
            {"target": 3},
            {"precision": 16},
            {"static_shape": 1},
            {"fixed_shapes": "1,3"},
            {"fixed_shapes": [1, 3]},
            {"fixed_shapes": [["1"]]},
            {"fixed_shapes": [[1.5]]},
            {"allow_fallback": 3},
            {"optimize_level": True},
            {"optimize_level": "2"},
            {"cache_compiled": None},
            {"cache_dir": None},
            {"compile_timeout_ms": 1.5},
        ):
            with self.subTest(fields), self.assertRaises(xrt.ArgumentTypeError):
                ExecutionPolicy(**fields)
        with self.assertRaises(xrt.ArgumentTypeError):
            ExecutionPolicy("cpu", target="cpu")
        with self.assertRaises(xrt.ArgumentTypeError):
            ExecutionPolicy(*range(11))

    def test_wrong_values_are_value_errors(self) -> None:
        for fields, part in (
            ({"target": "gpu0"}, "unknown device"),
            ({"precision": "fp64"}, "fp32, fp16, bf16 or int8"),
            ({"precision": "fp31"}, "unknown"),
            ({"fixed_shapes": [[0]]}, "1 or more"),
            ({"fixed_shapes": [[-1]]}, "1 or more"),
            ({"fixed_shapes": [[1] * 9]}, "at most 8"),
            ({"fixed_shapes": [[1 << 40, 1 << 40]]}, "64 bits"),
            ({"optimize_level": 4}, "optimize_level is 4; give 0, 1, 2 or 3"),
            ({"optimize_level": -1}, "optimize_level is -1; give 0, 1, 2 or 3"),
            ({"optimize_level": 300}, "optimize_level is 300;"),
            ({"optimize_level": (1 << 32) + 2}, "optimize_level is 4294967298;"),
            ({"compile_timeout_ms": 0}, "1 millisecond"),
            ({"execution_timeout_ms": -5}, "1 millisecond"),
            ({"cache_dir": "a\0b"}, "NUL"),
            ({"optimise_level": 1}, "did you mean optimize_level"),
        ):
            with self.subTest(fields), self.assertRaisesRegex(ValueError, part) as caught:
                ExecutionPolicy(**fields)
            self.assertIsInstance(caught.exception, xrt.XpuRuntimeError)


class ExecutionPolicyFileTest(unittest.TestCase):
    def setUp(self) -> None:
        self.path = pathlib.Path(self.enterContext(tempfile.TemporaryDirectory())) / "policy.json"

    def test_what_was_saved_is_loaded(self) -> None:
        for policy in (ExecutionPolicy(), ExecutionPolicy(**FULL)):
            policy.save(self.path)
            self.assertEqual(ExecutionPolicy.load(str(self.path)), policy)
            self.assertEqual(ExecutionPolicy.from_json(policy.to_json()), policy)
            self.assertEqual(json.loads(self.path.read_text()), policy.to_dict())

    def test_the_seeds_file_is_read(self) -> None:
        self.path.write_text(
            '{"target": "npu", "precision": "int8", "static_shape": true, "fixed_shapes": [[1, 3, 224, 224]],'
            ' "allow_fallback": "cpu", "optimize_level": 2, "cache_compiled": true}'
        )
        expected = ExecutionPolicy("npu", "int8", True, [[1, 3, 224, 224]], "cpu")
        self.assertEqual(ExecutionPolicy.load(self.path), expected)

    @unittest.skipIf(jsonschema is None, "jsonschema is not installed")
    def test_the_schema_takes_and_refuses_what_the_reader_does(self) -> None:
        schema = json.loads(SCHEMA.read_text())
        jsonschema.Draft202012Validator.check_schema(schema)
        for document in (
            {},
            FULL,
            {"version": 1, "$schema": "x", "allow_fallback": None, "fixed_shapes": None},
            {"static_shape": True},
            {"static_shape": True, "fixed_shapes": []},
            {"static_shape": False, "fixed_shapes": []},
            {"fixed_shapes": [[0]]},
            {"fixed_shapes": [[1] * 9]},
            {"optimize_level": 4},
            {"compile_timeout_ms": 0},
            {"precision": "fp64"},
            {"target": "a toaster"},
            {"cache_dir": None},
            {"version": 2},
            {"other": 1},
        ):
            try:
                ExecutionPolicy.from_json(json.dumps(document))
                taken = True
            except ValueError:
                taken = False
            self.assertEqual(jsonschema.Draft202012Validator(schema).is_valid(document), taken, document)

    def test_errors_in_a_file_name_line_and_column(self) -> None:
        self.path.write_text('{\n  "optimize_level": 7\n}')
        with self.assertRaisesRegex(ValueError, "line 2, column 3: field 'optimize_level' must be 0, 1, 2 or 3"):
            ExecutionPolicy.load(self.path)
        self.path.write_text('{"static_shape": true}')
        with self.assertRaisesRegex(ValueError, "fixed_shapes is required"):
            ExecutionPolicy.load(self.path)
        with self.assertRaises(xrt.FileError):
            ExecutionPolicy.load(self.path.with_name("absent"))


class ValidateExecutionPolicyTest(unittest.TestCase):
    def test_what_does_not_work_here_is_a_finding(self) -> None:
        self.assertEqual(xrt.validate_policy(ExecutionPolicy("cpu")), [])
        (finding,) = xrt.validate_policy(ExecutionPolicy("npu"))
        self.assertRegex(finding, "^error: target: npu is not here: ")
        (finding,) = xrt.validate_policy(ExecutionPolicy("npu", allow_fallback="cpu"))
        self.assertRegex(finding, "^warning: target: .*falls back to cpu")
        (finding,) = xrt.validate_policy(ExecutionPolicy("cpu", fixed_shapes=[[1]]))
        self.assertRegex(finding, "^error: fixed_shapes: ")
        for precision in ("fp16", "bf16"):
            self.assertEqual(xrt.validate_policy(ExecutionPolicy("cpu", precision)), [])
        (finding,) = xrt.validate_policy(ExecutionPolicy("cpu", engine="onnxruntme"))
        self.assertRegex(finding, "^error: engine: no engine 'onnxruntme' is known here; did you mean onnxruntime")
        (finding,) = xrt.validate_policy(ExecutionPolicy("cpu", "fp16", engine="onnxruntime"))
        if optional("onnxruntime") is None:
            self.assertRegex(finding, r"^error: engine: onnxruntime is not here: .*pip install 'xpuruntime\[onnxruntime\]'")
        else:
            self.assertEqual(finding, "error: precision: no engine here takes fp16 on cpu; onnxruntime takes fp32")
        (finding,) = xrt.validate_policy(ExecutionPolicy("cpu", "int8"))
        self.assertRegex(finding, "^note: precision: a model of floats needs calibration inputs")

    def test_files_of_both_kinds_are_told_apart(self) -> None:
        with tempfile.TemporaryDirectory() as folder:
            path = pathlib.Path(folder, "policy.json")
            for text, finding in (('{"target": "cpu",\n  "engine": "nativ"}', "^line 2, column 3: error: engine: no engine 'nativ'"),
                                  ('{"precision": "fp16", "target": "npu"}', "^line 1, column 23: error: target: npu is not here"),
                                  ('{"engine": 3}', "field 'engine'"), ('{"optimize_level": 9, "target": "cpu"}', "must be 0, 1, 2 or 3"),
                                  ('{"preferences": {"matmul": "nothing"}}', "matmul"), ('{"precision": {"matmul": "fp17"}}', "matmul")):
                path.write_text(text)
                self.assertRegex(xrt.validate_policy(path)[0], finding)
            for text in ('{"target": "cpu"}', '{"target": "cpu", "precision": "bf16"}', "{}", '{"precision": {"matmul": "fp16"}}'):
                path.write_text(text)
                self.assertEqual(xrt.validate_policy(path), [])
                if "XRT" in os.environ:
                    done = subprocess.run([os.environ["XRT"], "policy", "validate", path], capture_output=True, text=True)
                    self.assertEqual(done.returncode, 0, done.stdout + done.stderr)


if __name__ == "__main__":
    unittest.main()
