"""KernelSelector: capabilities, precisions, times and choices of one device."""

import unittest

import numpy
import xpuruntime as xrt
from xpuruntime import KernelCapability, KernelDtype, KernelSelector


class KernelSelectorTest(unittest.TestCase):
    def setUp(self) -> None:
        self.selector = KernelSelector("cpu")

    def test_there_is_one_for_each_device(self) -> None:
        self.selector.register_kernel_capability("only_here", KernelCapability("f16"))
        self.assertIsNotNone(KernelSelector("cpu:0").find_kernel_capability("only_here", "f16"))
        self.assertEqual(str(self.selector.device), "cpu:0")
        with self.assertRaises(xrt.XpuRuntimeError):
            KernelSelector("npu:0")
        with self.assertRaises(xrt.ArgumentTypeError):
            KernelSelector(3)

    def test_the_dtype_of_tensors_is_the_one_that_all_have_or_mixed(self) -> None:
        half, single = numpy.ones(2, numpy.float16), numpy.ones(2, numpy.float32)
        self.assertIs(self.selector.get_kernel_dtype(half), KernelDtype.float16)
        self.assertIs(self.selector.get_kernel_dtype([half, half]), KernelDtype.float16)
        self.assertIs(self.selector.get_kernel_dtype([half, single]), KernelDtype.mixed)
        self.assertIs(self.selector.get_kernel_dtype(numpy.ones(2, numpy.int32)), KernelDtype.float32)

    def test_the_dtype_of_an_op_is_what_its_inputs_resolve_to_without_loss(self) -> None:
        self.assertIs(self.selector.get_kernel_dtype("matmul", ["f16", "f16"]), KernelDtype.float16)
        self.assertIs(self.selector.get_kernel_dtype("matmul", ["f16", "bf16"]), KernelDtype.float32)
        self.assertIs(self.selector.get_kernel_dtype("matmul", [numpy.float32, "f16"]), KernelDtype.float32)

    def test_capabilities_are_kept_by_op_and_dtype(self) -> None:
        capability = KernelCapability(dtype="bf16", supports_tensor_cores=True, performance_factor=4.0)
        self.selector.register_kernel_capability("silu", capability)
        self.assertEqual(self.selector.find_kernel_capability("SiLU", KernelDtype.bfloat16), capability)
        self.assertIsNone(self.selector.find_kernel_capability("silu", "f16"))
        absent = KernelCapability("bf16", is_available=False)
        self.selector.register_kernel_capability("silu_bf16", absent)
        self.assertFalse(self.selector.is_kernel_available("silu", "bf16"))
        self.assertEqual(KernelCapability.create_float16().performance_factor, 2.0)
        self.assertEqual(eval(repr(capability)), capability)  # as it could be written

    def test_the_preferred_dtype_is_best_where_it_is_available(self) -> None:
        self.assertTrue(self.selector.is_kernel_available("matmul", "bf16"))
        self.assertIs(self.selector.select_best_kernel("matmul", ["f32"], "bf16"), KernelDtype.bfloat16)
        self.assertIs(self.selector.select_best_kernel("matmul", ["f16", "f32"]), KernelDtype.float16)
        self.assertIs(self.selector.select_best_kernel("matmul", []), KernelDtype.float32)

    def test_times_are_summed_up(self) -> None:
        for time in (1.0, 2.0, 3.0):
            self.selector.update_performance_stats("gelu", "f16", time)
        stats = self.selector.get_performance_stats("gelu", KernelDtype.float16, measured=False)
        self.assertEqual((stats.operation_name, stats.execution_count), ("gelu", 3))
        self.assertEqual((stats.min_execution_time, stats.average_execution_time, stats.max_execution_time), (1, 2, 3))
        self.assertIn("gelu f16: 3 runs", str(stats))
        self.assertIsNone(self.selector.get_performance_stats("gelu", "bf16", measured=False))

    def test_logged_calls_count_where_that_is_asked(self) -> None:
        xrt.enable_dispatch_logging()
        self.addCleanup(xrt.clear_dispatch_logs)
        self.addCleanup(xrt.disable_dispatch_logging)
        before = self.selector.get_performance_stats("tanh", "f32")
        xrt.ops.tanh(numpy.ones(8, numpy.float32))
        after = self.selector.get_performance_stats("tanh", "f32")
        self.assertEqual(after.execution_count, (before.execution_count if before else 0) + 1)
        self.assertIsNone(self.selector.get_performance_stats("tanh", "f32", measured=False))

    def test_it_chooses_under_a_policy_or_the_one_in_force(self) -> None:
        problem = "matmul(f32[64,64], f32[64,64])"
        self.assertEqual(self.selector.select(problem, xrt.KernelPolicy(matmul="reference")).kernel, "reference")
        with xrt.with_policy(matmul="openblas"):
            self.assertEqual(self.selector.select(xrt.Problem(problem)).kernel, "openblas")
        with self.assertRaises(xrt.InvalidArgumentError):
            self.selector.select(problem + " @cuda:0")

    def test_a_lock_in_force_is_obeyed(self) -> None:
        with xrt.with_policy(relu="reference"):
            lock = xrt.record_lock(["relu(f32[8])"])
        with xrt.use_lock(lock):
            decision = self.selector.select("relu(f32[8])")
            self.assertEqual((decision.kernel, decision.level), ("reference", "lock"))
            self.assertFalse(self.selector.select("relu(f32[9])").kernel)  # which the lock does not have
            own = self.selector.select("relu(f32[9])", xrt.KernelPolicy(relu="reference"))
            self.assertEqual((own.kernel, own.level), ("reference", "prefer"))

    def test_precision_and_casts_are_those_of_explain(self) -> None:
        def of(decision: xrt.Decision) -> tuple:
            document = decision.to_dict()
            return [document[key] for key in ("problem", "kernel", "precision", "casts")]

        casting = xrt.KernelPolicy(default_precision="bf16")
        for dtype in ("bf16", "f16", "f32", "f64", "i32", "i64"):
            for op in (f"matmul({dtype}[8,8], {dtype}[8,8])", f"relu({dtype}[64])", f"transpose({dtype}[8,8])"):
                for policy in (xrt.KernelPolicy(), casting, xrt.KernelPolicy(precision={"matmul": "f64"}, threads=1)):
                    with self.subTest(op=op, policy=policy), xrt.with_policy(policy):
                        self.assertEqual(of(self.selector.select(op, policy)), of(xrt.explain(op)))
        product = "matmul(bf16[8,8], bf16[8,8])"
        self.assertEqual(self.selector.select(product).to_dict()["precision"],
                         {"forward": "bf16", "backward": "bf16", "because": "the inputs are bf16"})
        cast = self.selector.select(product.replace("bf16", "f32"), casting)
        self.assertEqual((str(cast.problem), len(cast.casts)), (product + " @cpu:0", 3))
        described = self.selector.select(product.replace("bf16", "f32"), casting, xrt.device_profile())
        self.assertEqual(of(described), of(cast))
        with xrt.autocast("bf16"):
            self.assertEqual(of(self.selector.select("linear(f32[8,8], f32[8,8])")),
                             of(xrt.explain("linear(f32[8,8], f32[8,8])")))

    def test_wrong_arguments_say_what_to_pass(self) -> None:
        calls = (lambda: self.selector.is_kernel_available(3, "f16"),
                 lambda: self.selector.is_kernel_available("matmul", 3),
                 lambda: self.selector.select_best_kernel("matmul", "f16"),
                 lambda: self.selector.select_best_kernel("matmul", 3),
                 lambda: self.selector.register_kernel_capability("matmul", "f16"),
                 lambda: self.selector.update_performance_stats("matmul", "f16", "fast"),
                 lambda: self.selector.get_kernel_dtype(object()),
                 lambda: self.selector.select(3),
                 lambda: KernelCapability("f16", performance_factor="2"))
        for call in calls:
            with self.assertRaises(xrt.ArgumentTypeError):
                call()
        for call in (lambda: self.selector.update_performance_stats("matmul", "f16", float("nan")),
                     lambda: KernelCapability("auto"), lambda: KernelCapability("f16", performance_factor=0),
                     lambda: self.selector.get_kernel_dtype("matmul")):
            with self.assertRaises(xrt.InvalidArgumentError):
                call()


if __name__ == "__main__":
    unittest.main()
