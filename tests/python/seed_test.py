"""Every Python block of seed 003 runs as it stands there, with a small model for `model`; and what the other seeds name."""

import dataclasses
import json
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
        self.assertEqual((ours.get("matmul"), ours.get("conv"), ours.default_precision), ("cublasLt", "cudnn", "fp16"))
        self.assertEqual(ours.auto_strategy.value, scope["AutoSelectStrategy"].FIRST_SUPPORTED.value)
        # Ours is everything that theirs is, name by name and number by number.
        self.assertEqual(repr(KernelPolicy(matmul="cublasLt")), repr(scope["KernelPolicy"](matmul="cublasLt")))
        for name in ("set", "get", "merge", "save", "load", "preferences", "auto_strategy", "default_precision"):
            self.assertTrue(hasattr(KernelPolicy, name), name)
        for strategy in scope["AutoSelectStrategy"]:
            self.assertEqual(AutoSelectStrategy[strategy.name].value, strategy.value)

    def test_2_4_a_file_of_ours_is_all_that_the_seeds_own_reader_expects(self) -> None:
        scope = self.run_block("2.4")
        theirs_type, strategies = scope["KernelPolicy"], scope["AutoSelectStrategy"]
        for strategy in strategies:
            for precision in ("fp32", "fp16", "bf16", "int8"):
                ours = KernelPolicy(matmul="cublas", conv="cudnn", auto_strategy=strategy.value,
                                    default_precision=precision)
                self.assertEqual(ours.default_precision, precision)
                ours.save("ours.json")
                theirs = theirs_type.load("ours.json")
                self.assertEqual(theirs.preferences, {"matmul": "cublas", "conv": "cudnn"})
                self.assertEqual((theirs.auto_strategy, theirs.default_precision), (strategy, precision))
                theirs.save("theirs.json")
                with open("ours.json") as a, open("theirs.json") as b:
                    self.assertEqual(json.load(a), json.load(b))
                self.assertEqual(KernelPolicy.load("theirs.json"), ours)

    def test_2_4_a_preference_is_found_under_the_name_it_was_given(self) -> None:
        policy = KernelPolicy(conv="cudnn", preferences={"MatMul": "cublas"})
        self.assertEqual(dict(policy.preferences), {"conv": "cudnn", "MatMul": "cublas"})
        for name in ("conv", "conv2d", "Conv2d"):
            self.assertEqual((policy.preferences[name], policy.preferences.get(name)), ("cudnn", "cudnn"))
            self.assertIn(name, policy.preferences)
        self.assertNotIn("relu", policy.preferences)
        for name in ("relu", "c_o_n_v2d_", ""):
            with self.assertRaises(KeyError):
                policy.preferences[name]
        self.assertEqual(repr(KernelPolicy(conv="cudnn")), "KernelPolicy(conv=cudnn)")
        self.assertEqual(policy, KernelPolicy(conv2d="cudnn", matmul="cublas"))
        self.assertEqual(dict(policy.set("conv2d", "cudnn_winograd").preferences)["conv2d"], "cudnn_winograd")
        with self.assertRaises(TypeError):
            policy.preferences["conv"] = "x"

    def test_2_4_int8_is_a_precision_that_nothing_is_cast_to(self) -> None:
        with xrt.with_policy(default_precision="int8"):
            precision = xrt.explain("relu(f32[8])").precision
            self.assertEqual(precision.forward, "f32")
            self.assertIn("asks for i8, but", precision.because)
        (finding,) = xrt.validate_policy(KernelPolicy(default_precision="int8"))
        self.assertRegex(finding, "^warning: default_precision: nothing is quantized")

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
        ours.save("ours.json")
        self.assertEqual(theirs_type.load("ours.json"), theirs)
        # What a dataclass can do, ours can.
        # The engine is the one field beyond the seed's.
        self.assertEqual(dataclasses.asdict(ours), {**dataclasses.asdict(theirs), "engine": "auto"})
        self.assertEqual([field.name for field in dataclasses.fields(ours)],
                         [*(field.name for field in dataclasses.fields(theirs)), "engine"])
        changed = dataclasses.replace(ours, target="cpu", optimize_level=3)
        self.assertEqual(changed, ExecutionPolicy(**{**fields, "target": "cpu", "optimize_level": 3}))
        self.assertEqual(ours.target, "npu")
        for field in dataclasses.fields(ExecutionPolicy):
            self.assertEqual(field.default, getattr(ExecutionPolicy(), field.name), field.name)
        with self.assertRaises(ValueError):
            dataclasses.replace(ours, optimize_level=4)

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
        (warning,) = validate(KernelPolicy(attention="flash_v2"))
        self.assertRegex(warning, r"^Unknown kernel 'flash_v2' for op 'attention'\. Available: \[.*'reference'.*\]$")
        self.assertEqual(len(xrt.validate_policy(KernelPolicy(attention="flash_v2"))), 1)
        self.assertRegex(validate(KernelPolicy(conv="cudnn"))[0], "^Unknown kernel 'cudnn' for op 'conv'")

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
            self.assertEqual((log.dtype, log.input_shape), ("float32", log.input_shape))
        self.assertEqual(scope["logs"][0].dtype, str(self.input.dtype))
        self.assertEqual(len(self.printed), 3)
        self.assertEqual(xrt.get_dispatch_logs(), [])

    def test_7_2_all_ops_and_their_kernels(self) -> None:
        scope = self.run_block("7.2")
        self.assertIn("reference", scope["available"])
        self.assertEqual(len(self.printed), 1 + len(scope["all_ops"]))
        self.assertTrue({"matmul", "conv2d", "attention", "softmax"} <= set(scope["all_ops"]))


def doubled(problem: xrt.Problem, inputs: list, outputs: list) -> None:
    np.multiply(inputs[0].numpy(), problem.attributes["factor"], out=outputs[0].numpy())


class OtherSeedsTest(unittest.TestCase):
    """Names of seeds 000 and 002 in Python, and ops of one's own, which both speak of."""

    def test_000_a_registry_clears_and_lists_its_selectors_and_puts_defaults_back(self) -> None:
        registry = xrt.KernelRegistry.instance()
        registry.clear()
        self.assertEqual(registry.get_all_selectors(), {})
        selector = registry.get_or_create_selector("cpu")
        self.assertEqual(list(registry.get_all_selectors()), ["cpu:0"])
        self.assertEqual(list(registry.get_all_selectors()), [xrt.Device("cpu")])
        default = selector.find_kernel_capability("matmul", "f32")
        mine = xrt.KernelCapability("f32", is_available=False)
        selector.register_kernel_capability("matmul", mine)
        self.assertEqual(xrt.KernelSelector("cpu").find_kernel_capability("matmul", "f32"), mine)
        registry.register_default_capabilities("cpu", selector)
        self.assertEqual(selector.find_kernel_capability("matmul", "f32"), default)
        for wrong in (lambda: registry.register_default_capabilities("cpu", "cpu"), lambda: registry.clear(1)):
            with self.assertRaises(TypeError):
                wrong()

    def test_000_performance_stats_are_made_by_hand(self) -> None:
        stats = xrt.KernelPerformanceStats("conv2d", "fp16", 1.5, 1.0, 2.0, 3)
        self.assertEqual((stats.operation_name, stats.dtype), ("conv2d", xrt.KernelDtype.float16))
        self.assertEqual((stats.average_execution_time, stats.min_execution_time, stats.max_execution_time,
                          stats.execution_count), (1.5, 1.0, 2.0, 3))
        self.assertEqual(str(stats), "conv2d f16: 3 runs, 1.5 ms on average, from 1 to 2 ms")
        self.assertEqual(stats.to_string(), str(stats))
        self.assertEqual(xrt.KernelPerformanceStats("mine", "fp16", 1.5, 1.0, 2.0, 3).operation_name, "mine")
        selector = xrt.KernelSelector("cpu")
        for time in (1.0, 2.0):
            selector.update_performance_stats("normalize", "f32", time)
        self.assertEqual(selector.get_performance_stats("normalize", "f32", measured=False),
                         xrt.KernelPerformanceStats("normalize", "f32", 1.5, 1.0, 2.0, 2))
        for times in ((1, 2, 3), (float("nan"), 1, 2), (1, -1, 2), (1, 1, float("inf"))):
            with self.assertRaises(ValueError):
                xrt.KernelPerformanceStats("conv2d", "fp16", *times, 3)

    def test_002_builtin_rules_are_listed_in_the_order_they_are_tried(self) -> None:
        rows = [row for row in xrt.builtin_rules("conv") if row["device"] == "opencl"]
        # Those of the seed, in its order, among those that measurement added.
        reasons = [row["because"] for row in rows]
        of_the_seed = ["Apple GPU, 3x3 filter, stride 1", "a 1x1 filter is a matrix product",
                       "integrated Intel GPUs share their bandwidth", "fewer than 1024 elements: one launch and no tiles",
                       "the general case"]
        self.assertEqual([reason for reason in reasons if reason in of_the_seed], of_the_seed)
        kernels = [row["kernel"] for row in rows]
        self.assertEqual([kernels[0], kernels[-1]], ["CONV2D_WINOGRAD", "CONV2D_IMPLICIT_GEMM"])
        self.assertTrue({"matmul", "conv2d", "attention"} <= {row["op"] for row in xrt.builtin_rules()})
        with self.assertRaises(xrt.UnknownNameError):
            xrt.builtin_rules("convv")

    def test_002_a_selector_is_asked_about_a_device_that_is_not_here(self) -> None:
        selector = xrt.KernelSelector("cpu")
        apple = xrt.DeviceProfile(type="opencl", vendor="apple", integrated=True)
        decision = selector.select("conv2d(f32[1,64,56,56], f32[64,64,3,3]; padding=1,1)", profile=apple)
        self.assertIn("Apple GPU, 3x3 filter, stride 1", decision.because)
        self.assertIn("CONV2D_WINOGRAD", [candidate.kernel for candidate in decision.candidates])
        # The profile decides, not this machine's.
        here = xrt.device_profile("cpu")
        other = xrt.DeviceProfile.from_json(json.dumps({**json.loads(here.to_json()), "name": "other"}))
        rule = selector.register_rule("relu", lambda problem, profile: profile.name == "other", "reference")
        self.addCleanup(selector.unregister_rule, rule)
        self.assertNotEqual(selector.select("relu(f32[64])").kernel, "reference")
        self.assertEqual(selector.select("relu(f32[64])", profile=other).kernel, "reference")
        with self.assertRaisesRegex(ValueError, "leave the device out"):
            selector.select("relu(f32[64]) @cpu:0", profile=apple)
        with self.assertRaisesRegex(TypeError, "pass a DeviceProfile"):
            selector.select("relu(f32[64])", profile="apple")

    def test_an_op_of_ones_own_is_called_explained_and_named_in_problems(self) -> None:
        function = xrt.register_op("scaled_by", attributes={"factor": 2.0}, aliases=["ScaledBy"])
        xrt.register_kernel("mine", "scaled_by", doubled)
        x = np.arange(6, dtype=np.float32).reshape(2, 3)
        np.testing.assert_array_equal(function(x), 2 * x)
        np.testing.assert_array_equal(xrt.ops.scaled_by(x, factor=0.5), x / 2)
        self.assertEqual(xrt.explain("scaled_by(f32[2,3]; factor=0.5)").kernel, "mine")
        self.assertEqual(xrt.explain("ScaledBy", x, factor=3.0).problem.attributes, {"factor": 3.0})
        self.assertIn("scaled_by", xrt.get_registered_ops())
        self.assertIn("factor=2.0", function.__doc__ + str(function.__text_signature__))
        with self.assertRaisesRegex(TypeError, "no parameter 'facto'"):
            function(x, facto=1.0)
        with self.assertRaisesRegex(ValueError, "already means"):
            xrt.register_op("ScaledBy")

    def test_an_op_says_what_comes_out(self) -> None:
        def infer(inputs: list, axis: int) -> tuple:
            if len(inputs[0].shape) != 2:
                raise ValueError("two dimensions, please")
            return "f64", (inputs[0].shape[axis],)

        def run(problem: xrt.Problem, inputs: list, outputs: list) -> None:
            outputs[0].numpy()[...] = inputs[0].numpy().sum(1 - problem.attributes["axis"])

        function = xrt.register_op("sums_along", infer, attributes={"axis": 0}, category="reduction")
        xrt.register_kernel("mine", "sums_along", run)
        x = np.arange(6, dtype=np.float32).reshape(2, 3)
        for axis in (0, 1):
            got = function(x, axis=axis)
            self.assertEqual(got.dtype, np.float64)
            np.testing.assert_array_equal(got, x.sum(1 - axis))
        with self.assertRaisesRegex(ValueError, "sums_along.*two dimensions, please"):
            function(x[0])

    def test_what_cannot_be_an_op_is_refused(self) -> None:
        cases = (
            (ValueError, "is not a name", lambda: xrt.register_op("9x")),
            (ValueError, "choose another name", lambda: xrt.register_op("c_o_n_v2d")),
            (ValueError, "cannot name a parameter", lambda: xrt.register_op("refused_op", inputs=["a", "a"])),
            (ValueError, "cannot name a parameter", lambda: xrt.register_op("refused_op", attributes={"out": 1})),
            (ValueError, "inputs is empty", lambda: xrt.register_op("refused_op", inputs=[])),
            (ValueError, "unknown category", lambda: xrt.register_op("refused_op", category="matrx")),
            (TypeError, "as its default", lambda: xrt.register_op("refused_op", attributes={"a": None})),
            (TypeError, "as its default", lambda: xrt.register_op("refused_op", attributes={"a": [1, 2]})),
            (TypeError, "pass a function", lambda: xrt.register_op("refused_op", 3)),
        )
        for kind, text, call in cases:
            with self.assertRaisesRegex(kind, text):
                call()
        bad = xrt.register_op("says_nonsense", lambda inputs: "f32")
        with self.assertRaisesRegex(ValueError, "it returned a str"):
            bad(np.ones(2, np.float32))


if __name__ == "__main__":
    unittest.main()
