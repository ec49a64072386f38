"""Every Python block of seed 003 runs as it stands there, with a small model for `model`."""

import os
import pathlib
import re
import tempfile
import typing
import unittest

import numpy as np

import xpuruntime as xrt
from xpuruntime import AutoSelectStrategy, ExecutionPolicy, KernelPolicy

BLOCKS = pathlib.Path(__file__).resolve().parents[1] / "data" / "seed_003_blocks.md"


def blocks() -> dict[str, str]:
    text = BLOCKS.read_text(encoding="utf-8")
    return dict(re.findall(r"^## ([\d.]+)\n\n```python\n(.*?)^```$", text, re.M | re.S))


class Model:
    """Two layers; it notes the policy that it ran under."""

    def __init__(self) -> None:
        generator = np.random.default_rng(1)
        self.first = generator.standard_normal((8, 16), dtype=np.float32)
        self.second = generator.standard_normal((16, 4), dtype=np.float32)
        self.policies: list[KernelPolicy] = []

    def __call__(self, x: np.ndarray) -> np.ndarray:
        self.policies.append(xrt.get_kernel_policy())
        return xrt.ops.matmul(xrt.ops.relu(xrt.ops.matmul(x, self.first)), self.second)

    def expected(self, x: np.ndarray) -> np.ndarray:
        return np.maximum(x.astype(float) @ self.first.astype(float), 0) @ self.second.astype(float)


class SeedTest(unittest.TestCase):
    def setUp(self) -> None:
        self.addCleanup(xrt.set_kernel_policy, xrt.get_kernel_policy())
        self.addCleanup(xrt.disable_dispatch_logging)
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.addCleanup(os.chdir, os.getcwd())
        os.chdir(folder.name)
        self.model = Model()
        self.printed: list[str] = []
        self.input = np.linspace(-1, 1, 16, dtype=np.float32).reshape(2, 8)

    def run_block(self, section: str, **names: object) -> dict[str, typing.Any]:
        """Runs a block with the names that its surroundings in the seed give it."""
        scope: dict[str, typing.Any] = {
            "__name__": "xpuruntime.policies.seed",
            "__package__": "xpuruntime.policies",
            "KernelPolicy": KernelPolicy,
            "ExecutionPolicy": ExecutionPolicy,
            "List": list,
            "xrt": xrt,
            "model": self.model,
            "input": self.input,
            "print": lambda *values: self.printed.append(" ".join(map(str, values))),
            **names,
        }
        exec(compile(blocks()[section], f"seed 003, {section}", "exec"), scope)
        return scope

    def check_output(self, output: np.ndarray) -> None:
        np.testing.assert_allclose(output, self.model.expected(self.input), rtol=1e-5, atol=1e-5)

    def test_there_are_eleven_blocks_and_each_has_a_test(self) -> None:
        source = pathlib.Path(__file__).read_text(encoding="utf-8")
        self.assertEqual(len(blocks()), 11)
        self.assertEqual(BLOCKS.read_text(encoding="utf-8").count("```python"), 11)
        for section in blocks():
            self.assertIn(f'run_block("{section}"', source)

    def test_2_1_a_policy_names_kernels_for_ops(self) -> None:
        policy = self.run_block("2.1")["policy"]
        self.assertEqual(dict(policy.preferences), {"matmul": "cublasLt", "attention": "flash_v2"})

    def test_2_4_the_seeds_own_class_and_ours_read_each_others_files(self) -> None:
        scope = self.run_block("2.4")
        theirs = scope["KernelPolicy"](matmul="cublasLt", conv="cudnn")
        theirs.default_precision = "fp16"
        theirs.save("policy.json")
        ours = KernelPolicy.load("policy.json")
        self.assertEqual((ours.get("matmul"), ours.get("conv"), ours.default_precision), ("cublasLt", "cudnn", "f16"))
        self.assertEqual(ours.auto_strategy.value, scope["AutoSelectStrategy"].FIRST_SUPPORTED.value)
        # Ours is everything that theirs is, name by name and number by number.
        self.assertEqual(repr(KernelPolicy(matmul="cublasLt")), repr(scope["KernelPolicy"](matmul="cublasLt")))
        for name in ("set", "get", "merge", "save", "load", "preferences", "auto_strategy", "default_precision"):
            self.assertTrue(hasattr(KernelPolicy, name), name)
        for strategy in scope["AutoSelectStrategy"]:
            self.assertEqual(AutoSelectStrategy[strategy.name].value, strategy.value)
        KernelPolicy(matmul="cublas").save("ours.json")
        self.assertEqual(scope["KernelPolicy"].load("ours.json").get("matmul"), "cublas")

    def test_3_1_static_shapes_without_shapes_are_the_value_error_of_3_4(self) -> None:
        with self.assertRaisesRegex(ValueError, "fixed_shapes required"):
            self.run_block("3.1")
        policy = self.run_block(
            "3.1", ExecutionPolicy=lambda **fields: ExecutionPolicy(fixed_shapes=[[1, 3, 224, 224]], **fields)
        )["policy"]
        self.assertEqual((policy.target, policy.precision, policy.allow_fallback), ("npu", "int8", "cpu"))

    def test_3_4_the_seeds_own_class_and_ours_agree(self) -> None:
        theirs_type = self.run_block("3.4")["ExecutionPolicy"]
        fields = {"target": "npu", "precision": "int8", "static_shape": True, "fixed_shapes": [[1, 3, 224, 224]]}
        theirs, ours = theirs_type(**fields), ExecutionPolicy(**fields)
        for name in theirs.__dict__:
            self.assertEqual(getattr(ours, name), getattr(theirs, name), name)
            self.assertEqual(getattr(ExecutionPolicy(), name), getattr(theirs_type(), name), name)
        self.assertEqual(ours.with_precision("fp16").precision, theirs.with_precision("fp16").precision)
        self.assertEqual(ours.with_fallback("cpu").allow_fallback, theirs.with_fallback("cpu").allow_fallback)
        theirs.save("theirs.json")
        self.assertEqual(ExecutionPolicy.load("theirs.json"), ours)

    def test_5_2_the_policy_of_an_environment_is_loaded(self) -> None:
        os.mkdir("policies")
        KernelPolicy(matmul="cublas").save("policies/dev_kernel_policy.json")
        os.environ.pop("ENVIRONMENT", None)
        scope = self.run_block("5.2")
        self.assertEqual(scope["policy"], scope["dev_policy"])
        self.assertEqual(scope["prod_policy"].get("attention"), "flash_v2")

    def test_5_3_a_policy_is_validated_against_the_registry(self) -> None:
        validate = self.run_block("5.3")["validate_policy"]
        self.assertEqual(validate(KernelPolicy(matmul="reference")), [])
        (warning,) = validate(KernelPolicy(matmul="cutlass"))
        self.assertRegex(warning, r"^Unknown kernel 'cutlass' for op 'matmul'\. Available: \[.*'reference'.*\]$")
        self.assertEqual(len(xrt.validate_policy(KernelPolicy(matmul="cutlass"))), 1)

    def test_6_1_a_policy_for_a_block(self) -> None:
        scope = self.run_block("6.1")
        self.check_output(scope["output"])
        self.assertEqual(self.model.policies[0].get("matmul"), "cublasLt")
        self.assertEqual(xrt.get_kernel_policy().get("matmul"), "cublas")
        # The seed's own with_policy, on the same dispatcher.
        with scope["with_policy"](scope["fast_policy"]):
            self.assertEqual(xrt.get_kernel_policy().get("matmul"), "cublasLt")
        self.assertEqual(xrt.get_kernel_policy().get("matmul"), "cublas")

    def test_6_2_the_other_policy_wins_a_merge(self) -> None:
        merged = self.run_block("6.2")["merged"]
        self.assertEqual((merged.get("matmul"), merged.get("conv")), ("cublasLt", "cudnn"))

    def test_6_3_a_policy_for_each_kind_of_model(self) -> None:
        choose = self.run_block("6.3")["get_optimal_policy"]
        self.assertEqual(choose("transformer", 64), KernelPolicy(matmul="cublasLt", attention="flash_v2"))
        self.assertEqual(choose("transformer", 1), KernelPolicy(matmul="cublas", attention="torch"))
        self.assertEqual(choose("cnn", 1), KernelPolicy(conv="cudnn", matmul="cublas"))
        self.assertEqual(choose("other", 1), KernelPolicy())

    def test_7_1_the_log_of_a_model(self) -> None:
        xrt.clear_dispatch_logs()
        scope = self.run_block("7.1")
        self.check_output(scope["output"])
        self.assertEqual([log.op_name for log in scope["logs"]], ["matmul", "relu", "matmul"])
        for line, log in zip(self.printed, scope["logs"]):
            self.assertRegex(line, rf"^{log.op_name}: {log.selected_kernel} \(\d+\.\d\dus\)$")
        self.assertEqual(len(self.printed), 3)
        self.assertEqual(xrt.get_dispatch_logs(), [])

    def test_7_2_all_ops_and_their_kernels(self) -> None:
        scope = self.run_block("7.2")
        self.assertIn("reference", scope["available"])
        self.assertEqual(len(self.printed), 1 + len(scope["all_ops"]))
        self.assertTrue({"matmul", "conv2d", "attention", "softmax"} <= set(scope["all_ops"]))


if __name__ == "__main__":
    unittest.main()
