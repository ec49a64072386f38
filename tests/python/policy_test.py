"""KernelPolicy: what it says, how it is written, merged, saved and put in force."""

import copy
import json
import pathlib
import pickle
import tempfile
import unittest

import xpuruntime as xrt
from xpuruntime import AutoSelectStrategy, KernelPolicy


class KernelPolicyTest(unittest.TestCase):
    def test_ops_are_keywords_under_any_of_their_names(self) -> None:
        policy = KernelPolicy(MatMul="openblas", conv="cudnn")
        self.assertEqual(dict(policy.preferences), {"MatMul": "openblas", "conv": "cudnn"})
        self.assertEqual(policy.get("gemm"), "openblas")
        self.assertEqual(policy.get("conv2d"), "cudnn")
        self.assertIsNone(policy.get("softmax"))

    def test_a_list_is_an_order_and_a_dict_may_force(self) -> None:
        policy = KernelPolicy(matmul=["onednn", "openblas"], softmax={"kernel": "reference", "mode": "force"})
        self.assertEqual(policy.get("matmul"), ["onednn", "openblas"])
        self.assertEqual(policy.get("softmax"), {"kernel": "reference", "mode": "force"})
        self.assertEqual(KernelPolicy(matmul=("onednn", "openblas")), KernelPolicy(matmul=["onednn", "openblas"]))
        self.assertEqual(KernelPolicy(matmul={"kernel": "onednn", "mode": "prefer"}), KernelPolicy(matmul="onednn"))

    def test_set_and_force_chain_and_remove_says_whether_there_was_something(self) -> None:
        policy = KernelPolicy().set("matmul", "packed").force("softmax", "reference").set_order("conv", ["im2col"])
        self.assertEqual(policy.get("matmul"), "packed")
        self.assertEqual(policy.get("softmax"), {"kernel": "reference", "mode": "force"})
        self.assertTrue(policy.remove("matmul"))
        self.assertFalse(policy.remove("matmul"))
        self.assertEqual(set(policy.preferences), {"softmax", "conv"})

    def test_fields_that_are_not_set_are_none(self) -> None:
        policy = KernelPolicy()
        names = ("auto_strategy", "strategy", "default_precision", "workspace_limit_bytes", "deterministic", "threads")
        for name in names:
            self.assertIsNone(getattr(policy, name), name)
        self.assertEqual((dict(policy.preferences), policy.rules, dict(policy.precision)), ({}, (), {}))

    def test_fields_are_keywords_and_attributes(self) -> None:
        policy = KernelPolicy(strategy="best_performance", default_precision="fp16", workspace_limit_bytes=1 << 40)
        self.assertIs(policy.auto_strategy, AutoSelectStrategy.BEST_PERFORMANCE)
        self.assertEqual(policy.default_precision, "fp16")
        self.assertEqual(policy.workspace_limit_bytes, 1 << 40)
        policy.strategy = AutoSelectStrategy.LOWEST_MEMORY
        policy.deterministic = True
        policy.threads = 3
        policy.workspace_limit_bytes = None
        self.assertEqual(policy, KernelPolicy(auto_strategy=2, default_precision="half", deterministic=True, threads=3))

    def test_strategies_are_the_seeds_integers_or_names(self) -> None:
        self.assertEqual([strategy.value for strategy in AutoSelectStrategy], [0, 1, 2])
        for given in (1, "best_performance", "BestPerformance", AutoSelectStrategy.BEST_PERFORMANCE):
            self.assertIs(KernelPolicy(strategy=given).auto_strategy, AutoSelectStrategy.BEST_PERFORMANCE)

    def test_precision_of_ops_by_direction(self) -> None:
        policy = KernelPolicy(precision={"softmax": "f32", "matmul": {"forward": "lower", "backward": "f32"}})
        self.assertEqual(dict(policy.precision), {"matmul": {"forward": "lower", "backward": "f32"}, "softmax": "f32"})
        policy.set_precision("relu", backward="keep")
        self.assertEqual(policy.precision["relu"], {"backward": "keep"})
        self.assertTrue(policy.remove_precision("softmax"))
        self.assertFalse(policy.remove_precision("softmax"))

    def test_rules_are_as_files_have_them(self) -> None:
        rule = {"op": "matmul", "when": {"m": {"<": 16}}, "use": "reference", "name": "few rows"}
        policy = KernelPolicy(rules=[rule])
        self.assertEqual(policy.rules[0]["name"], "few rows")
        self.assertEqual(KernelPolicy(rules=policy.rules), policy)
        with xrt.with_policy(policy):
            self.assertEqual(xrt.explain("matmul(f32[8,8], f32[8,8])").kernel, "reference")
            self.assertNotEqual(xrt.explain("matmul(f32[16,8], f32[8,8])").kernel, "reference")

    def test_rules_are_changed_by_assigning_them_and_not_behind_the_policys_back(self) -> None:
        first, second = {"op": "matmul", "use": "reference"}, {"op": "relu", "use": "reference"}
        policy = KernelPolicy(rules=[first])
        self.assertIsInstance(policy.rules, tuple)
        with self.assertRaises(AttributeError):
            policy.rules.append(second)  # type: ignore[attr-defined]
        policy.rules = (*policy.rules, second)
        self.assertEqual(policy, KernelPolicy(rules=[first, second]))
        policy.rules = list(policy.rules)[1:]
        self.assertEqual(policy, KernelPolicy(rules=(second,)))
        policy.rules = []
        self.assertEqual(policy.rules, ())

    def test_merge_takes_the_others_fields_where_they_are_set(self) -> None:
        base = KernelPolicy(matmul="openblas", conv="im2col", threads=2, deterministic=True)
        merged = base.merge(KernelPolicy(matmul="packed", threads=4))
        self.assertEqual(merged, KernelPolicy(matmul="packed", conv="im2col", threads=4, deterministic=True))
        self.assertEqual(base.get("matmul"), "openblas")

    def test_preferences_cannot_be_changed_behind_the_policys_back(self) -> None:
        policy = KernelPolicy(matmul="packed", precision={"softmax": "bf16"})
        with self.assertRaisesRegex(TypeError, r"^\[KernelPolicy\] this is a read-only copy .*; use its set, force"):
            policy.preferences["matmul"] = "openblas"  # type: ignore[index]
        with self.assertRaisesRegex(xrt.errors.ArgumentTypeError, "remove_precision, or assign a whole dict"):
            del policy.precision["softmax"]  # type: ignore[attr-defined]
        for method, arguments in (("update", ({},)), ("setdefault", ("relu", "simd")), ("pop", ("matmul",)),
                                  ("popitem", ()), ("clear", ()), ("__ior__", ({},))):
            with self.assertRaisesRegex(xrt.errors.ArgumentTypeError, "use its set, force"):
                getattr(policy.preferences, method)(*arguments)
        self.assertEqual(dict(policy.preferences), {"matmul": "packed"})

    def test_a_copy_is_its_own(self) -> None:
        policy = KernelPolicy(matmul="packed", rules=[{"op": "relu", "use": "reference"}])
        for made in (copy.copy(policy), copy.deepcopy(policy), pickle.loads(pickle.dumps(policy))):
            self.assertEqual(made, policy)
            made.set("matmul", "openblas")
            self.assertEqual(policy.get("matmul"), "packed")

    def test_it_is_equal_by_content_and_not_hashable(self) -> None:
        self.assertEqual(KernelPolicy(matmul="packed"), KernelPolicy().set("matmul", "packed"))
        self.assertNotEqual(KernelPolicy(matmul="packed"), KernelPolicy())
        self.assertNotEqual(KernelPolicy(), None)
        with self.assertRaises(TypeError):
            hash(KernelPolicy())

    def test_it_prints_as_the_seed_shows_it(self) -> None:
        self.assertEqual(repr(KernelPolicy(matmul="cublasLt")), "KernelPolicy(matmul=cublasLt)")
        self.assertEqual(repr(KernelPolicy()), "KernelPolicy()")


class KernelPolicyFileTest(unittest.TestCase):
    def setUp(self) -> None:
        self.path = pathlib.Path(self.enterContext(tempfile.TemporaryDirectory())) / "policy.json"

    def test_what_was_saved_is_loaded(self) -> None:
        policy = KernelPolicy(matmul=["packed", "openblas"], softmax={"kernel": "reference", "mode": "force"})
        policy.threads = 2
        policy.save(self.path)
        self.assertEqual(KernelPolicy.load(self.path), policy)
        self.assertEqual(KernelPolicy.load(str(self.path)), policy)
        self.assertEqual(KernelPolicy.from_json(self.path.read_text()), policy)
        self.assertEqual(json.loads(self.path.read_text()), policy.to_dict())

    def test_files_of_the_seeds_shape_are_read(self) -> None:
        self.path.write_text(
            '{"preferences": {"matmul": "cublasLt", "attention": "flash_v2", "conv": "cudnn"},'
            ' "auto_strategy": 0, "default_precision": "fp16"}'
        )
        policy = KernelPolicy.load(self.path)
        self.assertEqual(policy.get("conv"), "cudnn")
        self.assertIs(policy.auto_strategy, AutoSelectStrategy.FIRST_SUPPORTED)
        self.assertEqual(policy.default_precision, "fp16")

    def test_errors_in_a_file_name_line_and_column(self) -> None:
        self.path.write_text('{\n  "preferences": {"matmull": "packed"}\n}')
        with self.assertRaisesRegex(ValueError, r"line 2, column 19: .*matmull.*did you mean matmul"):
            KernelPolicy.load(self.path)

    def test_a_missing_file_is_an_os_error(self) -> None:
        with self.assertRaises(OSError) as caught:
            KernelPolicy.load(self.path)
        self.assertIsInstance(caught.exception, xrt.FileError)

    def test_saving_where_nothing_can_be_written_leaves_nothing(self) -> None:
        with self.assertRaises(xrt.FileError):
            KernelPolicy().save(self.path / "under" / "a" / "folder")
        self.assertEqual(list(self.path.parent.iterdir()), [])


class BadPolicyTest(unittest.TestCase):
    def test_wrong_types_say_what_to_pass(self) -> None:
        cases = [
            (lambda: KernelPolicy("matmul"), "keywords"),
            (lambda: KernelPolicy(matmul=3), "kernel's name"),
            (lambda: KernelPolicy(matmul=None), "kernel's name"),
            (lambda: KernelPolicy(matmul=["packed", 3]), "a string"),
            (lambda: KernelPolicy(strategy=1.5), "AutoSelectStrategy"),
            (lambda: KernelPolicy(strategy=True), "AutoSelectStrategy"),
            (lambda: KernelPolicy(deterministic=1), "True or False"),
            (lambda: KernelPolicy(threads="2"), "an integer"),
            (lambda: KernelPolicy(threads=True), "an integer"),
            (lambda: KernelPolicy(default_precision=16), "dtype"),
            (lambda: KernelPolicy(default_precision=float), "dtype"),
            (lambda: KernelPolicy(precision="f32"), "dict"),
            (lambda: KernelPolicy(preferences=["matmul"]), "dict"),
            (lambda: KernelPolicy(rules=[{"op": object()}]), "strings, numbers"),
            (lambda: KernelPolicy().set(None, "packed"), "a string"),
            (lambda: KernelPolicy().get(3), "a string"),
            (lambda: KernelPolicy().merge(3), "KernelPolicy"),
            (lambda: KernelPolicy.load(3), "a path"),
            (lambda: KernelPolicy.from_json(b"{}"), "a string"),
            (lambda: xrt.set_kernel_policy(), "no policy"),
            (lambda: xrt.set_kernel_policy(None), r"an empty KernelPolicy\(\) removes the one that was set"),
            (lambda: xrt.set_kernel_policy(42), "KernelPolicy"),
            (lambda: xrt.with_policy(), "no policy was given; pass a KernelPolicy, the path"),
        ]
        for number, (use, part) in enumerate(cases):
            with self.subTest(number), self.assertRaisesRegex(TypeError, part) as caught:
                use()
            self.assertIsInstance(caught.exception, xrt.ArgumentTypeError, number)

    def test_wrong_values_are_value_errors_that_help(self) -> None:
        cases = [
            (lambda: KernelPolicy(matmull="packed"), "did you mean matmul"),
            (lambda: KernelPolicy(matmul="opnblas"), "did you mean openblas"),
            (lambda: KernelPolicy(matmul=[]), "name at least one"),
            (lambda: KernelPolicy(matmul={"mode": "force"}), "names no kernel"),
            (lambda: KernelPolicy(matmul={"kernel": "packed", "mode": "perhaps"}), '"force" or "prefer"'),
            (lambda: KernelPolicy(stratgy=1), "did you mean strategy"),
            (lambda: KernelPolicy(strategy=3), "unknown strategy"),
            (lambda: KernelPolicy(strategy=0, auto_strategy=0), "same field"),
            (lambda: KernelPolicy(conv="im2col", conv2d="direct"), "two of its names"),
            (lambda: KernelPolicy(preferences={"conv": "im2col", "conv2d": "direct"}), "two of its names"),
            (lambda: KernelPolicy(threads=0), "1 or more"),
            (lambda: KernelPolicy(threads=1 << 40), "1 or more"),
            (lambda: KernelPolicy(workspace_limit_bytes=-1), "0 or more"),
            (lambda: KernelPolicy(default_precision="int16"), "not a float type"),
            (lambda: KernelPolicy(default_precision="f17"), "unknown"),
            (lambda: KernelPolicy(precision={"softmax": {"sideways": "f32"}}), "direction"),
            (lambda: KernelPolicy(precision={"softmax": {}}), "no direction"),
            (lambda: KernelPolicy(rules=[{"op": "matmul", "use": "nope"}]), r"rules\[0\].use"),
            (lambda: KernelPolicy.from_json("{} x"), "not JSON"),
        ]
        for number, (use, part) in enumerate(cases):
            with self.subTest(number), self.assertRaisesRegex(ValueError, part) as caught:
                use()
            self.assertIsInstance(caught.exception, xrt.XpuRuntimeError, number)

    def test_what_is_wrong_in_a_keyword_has_no_line(self) -> None:
        for fields in ({"rules": [{"op": "matmul", "use": "nope"}]}, {"matmul": {"kernel": "packed", "mode": "x"}}):
            with self.assertRaisesRegex(ValueError, r"^\[KernelPolicy\] field '(rules\[0\].use|preferences.matmul.mode)'"):
                KernelPolicy(**fields)

    def test_a_field_that_is_refused_stays_as_it_was(self) -> None:
        policy = KernelPolicy(threads=2, default_precision="bf16", matmul="packed")
        for name, value in (("threads", 0), ("default_precision", "int16"), ("preferences", {"matmul": "nope"})):
            with self.assertRaises(ValueError):
                setattr(policy, name, value)
        self.assertEqual(policy, KernelPolicy(threads=2, default_precision="bf16", matmul="packed"))


class PolicyInForceTest(unittest.TestCase):
    def setUp(self) -> None:
        self.addCleanup(xrt.set_kernel_policy, xrt.get_kernel_policy())

    def chosen(self) -> tuple[object, str]:
        decision = xrt.explain("matmul(f32[64,64], f32[64,64])")
        return decision.kernel, decision.level

    def test_it_takes_an_object_a_file_a_dict_or_keywords(self) -> None:
        with tempfile.TemporaryDirectory() as folder:
            path = pathlib.Path(folder) / "policy.json"
            KernelPolicy(matmul="packed").save(path)
            document = KernelPolicy.load(path).to_dict()
            for given in (KernelPolicy(matmul="packed"), path, str(path), {"matmul": "packed"}, document):
                xrt.set_kernel_policy(KernelPolicy())
                xrt.set_kernel_policy(given)
                self.assertEqual(self.chosen(), ("packed", "prefer"), given)
        xrt.set_kernel_policy(matmul={"kernel": "reference", "mode": "force"}, threads=1)
        self.assertEqual(self.chosen(), ("reference", "force"))
        self.assertEqual(xrt.get_kernel_policy().threads, 1)

    def test_keywords_are_layered_over_a_policy_that_is_given_too(self) -> None:
        xrt.set_kernel_policy({"matmul": "packed"}, threads=1)
        self.assertEqual(xrt.get_kernel_policy(), KernelPolicy(matmul="packed", threads=1))

    def test_changing_an_object_afterwards_changes_nothing(self) -> None:
        policy = KernelPolicy(matmul="reference")
        xrt.set_kernel_policy(policy)
        policy.set("matmul", "packed")
        self.assertEqual(self.chosen(), ("reference", "prefer"))

    def test_a_bad_policy_leaves_the_old_one_in_force(self) -> None:
        xrt.set_kernel_policy(matmul="reference")
        with self.assertRaises(ValueError):
            xrt.set_kernel_policy({"matmul": "nope"})
        self.assertEqual(self.chosen(), ("reference", "prefer"))


class ValidateTest(unittest.TestCase):
    def test_a_policy_that_works_has_no_findings(self) -> None:
        self.assertEqual(xrt.validate_policy(KernelPolicy(matmul="reference")), [])
        self.assertEqual(xrt.validate_policy({"matmul": "reference"}), [])

    def test_a_kernel_of_another_machine_is_known_and_absent(self) -> None:
        (finding,) = xrt.validate_policy(KernelPolicy(matmul="cublasLt"))
        self.assertRegex(finding, r"^note: preferences\.matmul: cublasLt never runs on cpu:0: .*NVIDIA")
        (finding,) = xrt.validate_policy(KernelPolicy(matmul={"kernel": "cublasLt", "mode": "force"}))
        self.assertTrue(finding.startswith("error: "), finding)

    def test_unknown_names_are_findings(self) -> None:
        (finding,) = xrt.validate_policy({"matmull": "packed"})
        self.assertIn("did you mean matmul", finding)

    def test_findings_of_a_file_have_a_place(self) -> None:
        with tempfile.TemporaryDirectory() as folder:
            path = pathlib.Path(folder) / "policy.json"
            path.write_text('{\n  "preferences": {"matmul": "cublasLt"}\n}')
            self.assertRegex(xrt.validate_policy(path)[0], r"^line 2, column 19: note: preferences\.matmul: ")
            path.write_text("{")
            self.assertRegex(xrt.validate_policy(path)[0], "not JSON at line 1")
            with self.assertRaises(xrt.FileError):
                xrt.validate_policy(path.with_name("absent.json"))

    def test_a_device_that_is_not_here_and_things_that_are_no_policy_are_errors(self) -> None:
        with self.assertRaises(TypeError):
            xrt.validate_policy(3)
        with self.assertRaises(xrt.XpuRuntimeError):
            xrt.validate_policy(KernelPolicy(), device="kunlun:0")


if __name__ == "__main__":
    unittest.main()
