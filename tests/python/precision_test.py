"""AmpRegistry and its rules, the loss scaler and the gradient scaler."""

import copy
import pickle
import threading
import unittest

import numpy
from packages import optional

import xpuruntime as xrt


class AmpConfigTest(unittest.TestCase):
    def test_it_has_bf16_and_f32_where_nothing_is_said(self) -> None:
        config = xrt.AmpConfig()
        self.assertEqual((config.enabled, config.target_precision, config.higher_precision), (True, "bf16", "f32"))
        self.assertEqual(xrt.AmpConfig.create_fp16(), xrt.AmpConfig(target_precision="half"))
        self.assertEqual(xrt.AmpConfig.create_default(), xrt.AmpConfig.create_bf16())

    def test_dtypes_are_taken_in_any_spelling(self) -> None:
        self.assertEqual(xrt.AmpConfig(target_precision=numpy.float16).target_precision, "f16")
        self.assertEqual(xrt.AmpConfig(higher_precision=numpy.dtype("float64")).higher_precision, "f64")

    def test_copies_and_pickles_have_every_field(self) -> None:
        config = xrt.AmpConfig(False, "f16", "f64")
        for made in (copy.copy(config), copy.deepcopy(config), pickle.loads(pickle.dumps(config))):
            self.assertEqual((made.enabled, made.target_precision, made.higher_precision), (False, "f16", "f64"))

    def test_what_is_no_low_precision_is_refused(self) -> None:
        with self.assertRaises(xrt.InvalidArgumentError):
            xrt.AmpConfig(target_precision="f32")
        with self.assertRaises(xrt.UnknownNameError):
            xrt.AmpConfig(target_precision="f17")
        with self.assertRaises(xrt.ArgumentTypeError):
            xrt.AmpConfig(enabled=1)
        with self.assertRaises(xrt.ArgumentTypeError):
            xrt.AmpConfig(target_precision=None)


class AmpRegistryTest(unittest.TestCase):
    def setUp(self) -> None:
        self.registry = xrt.AmpRegistry()

    def test_the_defaults_lower_matrix_ops_and_raise_reductions(self) -> None:
        self.assertEqual(self.registry.get_forward_dtype("MatMul", "f32"), "bf16")
        self.assertEqual(self.registry.get_forward_dtype("softmax", "bf16"), "f32")
        self.assertTrue(self.registry.is_whitelisted("conv2d"))
        self.assertTrue(self.registry.is_blacklisted("reduce_sum"))
        self.assertIn("matrix_multiply", xrt.DefaultAmpRules.default_whitelist())
        self.assertIn("softmax", xrt.DefaultAmpRules.default_blacklist())

    def test_integers_and_doubles_keep_their_dtype(self) -> None:
        for dtype in ("i32", "bool", "f64"):
            self.assertEqual(self.registry.get_forward_dtype("matmul", dtype), dtype)

    def test_a_custom_rule_has_a_dtype_for_each_direction(self) -> None:
        self.registry.register_custom_op("softmax", numpy.float16, "f32")
        self.assertEqual(self.registry.get_forward_dtype("softmax", "f32"), "f16")
        self.assertEqual(self.registry.get_backward_dtype("softmax", "f32"), "f32")
        rule = self.registry.get_rule("softmax")
        self.assertEqual((rule.op, rule.custom_forward_dtype, rule.custom_backward_dtype), ("softmax", "f16", "f32"))
        self.assertIs(rule.forward_precision, xrt.OpPrecision.custom)

    def test_the_higher_priority_stays_and_the_latest_wins_at_equal_priority(self) -> None:
        self.registry.register_blacklist("matmul", priority=5)
        self.assertFalse(self.registry.register_rule(xrt.OpPrecisionRule("matmul", "lower", priority=4)))
        self.assertEqual(self.registry.get_forward_dtype("matmul", "bf16"), "f32")
        self.assertTrue(self.registry.register_rule(xrt.OpPrecisionRule("matmul", xrt.OpPrecision.lower, priority=5)))
        self.assertEqual(self.registry.get_forward_dtype("matmul", "f32"), "bf16")

    def test_unregister_brings_the_default_back_and_clear_leaves_the_category(self) -> None:
        self.registry.register_blacklist("matmul")
        self.assertEqual(self.registry.source("matmul"), "user")
        self.assertTrue(self.registry.unregister("matmul"))
        self.assertFalse(self.registry.unregister("matmul"))
        self.assertEqual(self.registry.source("matmul"), "default")
        self.registry.clear()
        self.assertEqual((self.registry.source("matmul"), self.registry.get_rule("matmul")), ("category", None))
        self.assertEqual(self.registry.get_all_rules(), {})
        self.assertIs(self.registry.rule_in_force("matmul").forward_precision, xrt.OpPrecision.lower)
        xrt.DefaultAmpRules.apply_default_rules(self.registry)
        self.assertEqual(self.registry.source("matmul"), "default")

    def test_a_rule_resolves_under_a_config(self) -> None:
        rule = xrt.OpPrecisionRule("matmul", "lower", "higher")
        fp16 = xrt.AmpConfig.create_fp16()
        self.assertEqual((rule.get_forward_dtype(fp16, "f32"), rule.get_backward_dtype(fp16, "f32")), ("f16", "f32"))
        self.assertEqual(len({rule, xrt.OpPrecisionRule("gemm", "lower", "higher")}), 1)
        self.assertEqual(len({fp16, xrt.AmpConfig.create_fp16(), xrt.AmpConfig.create_bf16()}), 2)

    def test_the_runtimes_own_registry_is_one_object_that_autocast_takes(self) -> None:
        x = numpy.ones((4, 4), numpy.float32)
        xrt.amp().register_blacklist("matmul")
        try:
            self.assertEqual(xrt.amp().source("matmul"), "user")
            with xrt.autocast("bf16"):
                self.assertEqual(xrt.explain("matmul", x, x).precision.forward, "f32")
        finally:
            xrt.amp().unregister("matmul")
        with xrt.autocast("bf16"):
            self.assertEqual(xrt.explain("matmul", x, x).precision.forward, "bf16")

    def test_autocast_takes_another_registry(self) -> None:
        x = numpy.ones((4, 4), numpy.float32)
        self.registry.register_custom_op("matmul", "f16", "f16")
        with xrt.autocast(registry=self.registry):
            self.assertEqual(xrt.explain("matmul", x, x).precision.forward, "f16")

    def test_wrong_arguments_say_what_to_pass(self) -> None:
        with self.assertRaisesRegex(xrt.UnknownNameError, "did you mean matmul"):
            self.registry.register_whitelist("matmull")
        for call in (lambda: self.registry.register_whitelist(3), lambda: self.registry.register_whitelist("add", "1"),
                     lambda: self.registry.register_rule("matmul"), lambda: xrt.AmpRegistry("bf16"),
                     lambda: xrt.OpPrecisionRule("matmul", 3), lambda: self.registry.get_forward_dtype("add", 32),
                     lambda: xrt.DefaultAmpRules.apply_default_rules(None)):
            with self.assertRaises(xrt.ArgumentTypeError):
                call()
        with self.assertRaises(xrt.InvalidArgumentError):
            xrt.OpPrecisionRule("matmul", "custom")
        with self.assertRaisesRegex(xrt.UnknownNameError, "lower"):
            xrt.OpPrecisionRule("matmul", "lowr")


class LossScalerTest(unittest.TestCase):
    def test_it_backs_off_on_overflow_and_grows_after_a_streak(self) -> None:
        scaler = xrt.LossScaler(initial_scale=1024, growth_interval=2)
        self.assertTrue(scaler.update(True))
        self.assertEqual((scaler.scale, scaler.inverse_scale), (512.0, 1 / 512))
        self.assertFalse(scaler.update(False))
        self.assertTrue(scaler.update(False))
        self.assertEqual(scaler.scale, 1024.0)
        with self.assertRaises(xrt.ArgumentTypeError):
            scaler.update(1)

    def test_its_state_goes_into_another_one(self) -> None:
        scaler = xrt.LossScaler(initial_scale=256)
        scaler.update(True)
        other = xrt.LossScaler()
        other.load_state_dict(scaler.state_dict())
        self.assertEqual(other.state_dict(), scaler.state_dict())
        self.assertEqual(other.scale, 128.0)


class GradScalerTest(unittest.TestCase):
    def setUp(self) -> None:
        self.scaler = xrt.GradScaler(initial_scale=1024.0)
        self.loss = numpy.array([0.5], numpy.float32)

    def test_scaling_makes_a_new_array_fills_a_given_one_or_a_number(self) -> None:
        scaled = self.scaler.scale(self.loss)
        self.assertIsInstance(scaled, numpy.ndarray)
        self.assertEqual((float(scaled[0]), float(self.loss[0])), (512.0, 0.5))
        out = numpy.zeros(1, numpy.float32)
        self.assertIs(self.scaler.scale(self.loss, out=out), out)
        self.assertEqual(float(out[0]), 512.0)
        self.assertEqual(self.scaler.scale(2), 2048.0)

    def test_a_loss_of_pytorch_keeps_its_graph(self) -> None:
        torch = optional("torch")
        if torch is None:
            self.skipTest("PyTorch is not installed")
        weight = torch.ones(3, requires_grad=True)
        self.scaler.scale((weight * 2).sum()).backward()
        self.assertEqual(weight.grad.tolist(), [2048.0] * 3)
        self.assertFalse(self.scaler.unscale([weight.grad]))
        self.assertEqual(weight.grad.tolist(), [2.0] * 3)

    def test_a_good_step_divides_applies_and_counts(self) -> None:
        gradient = numpy.array([1024.0, -2048.0], numpy.float32)
        applied = []
        self.assertFalse(self.scaler.unscale([gradient]))
        numpy.testing.assert_array_equal(gradient, [1, -2])
        self.assertTrue(self.scaler.step(lambda: applied.append(1)))
        self.scaler.update()
        self.assertEqual((applied, self.scaler.factor), ([1], 1024.0))
        self.assertEqual(self.scaler.state_dict()["steps"], 1)

    def test_half_gradients_go_to_outputs_in_f32(self) -> None:
        gradient = numpy.array([2048.0, 1.0], numpy.float16)
        output = numpy.empty(2, numpy.float32)
        self.assertFalse(self.scaler.unscale([gradient], [output]))
        numpy.testing.assert_array_equal(output, [2, 2.0**-10])
        self.scaler.abandon_step()
        with self.assertRaises(xrt.XpuRuntimeError):
            self.scaler.unscale([gradient])

    def test_an_overflow_skips_the_step_and_lowers_the_scale(self) -> None:
        for bad in (numpy.inf, numpy.nan):
            before = self.scaler.factor
            self.assertTrue(self.scaler.unscale([numpy.ones(3, numpy.float32), numpy.array([bad], numpy.float32)]))
            self.assertTrue(self.scaler.found_inf)
            self.assertFalse(self.scaler.step(lambda: self.fail("it was applied")))
            self.scaler.update()
            self.assertEqual(self.scaler.factor, before / 2)

    def test_what_apply_raises_comes_out_and_the_step_is_not_over(self) -> None:
        self.scaler.unscale([numpy.ones(1, numpy.float32)])
        with self.assertRaises(ZeroDivisionError):
            self.scaler.step(lambda: 1 // 0)
        self.assertTrue(self.scaler.step(lambda: None))
        self.scaler.update()
        self.assertEqual(self.scaler.state_dict()["steps"], 1)

    def test_a_wrong_order_says_what_to_call(self) -> None:
        with self.assertRaisesRegex(xrt.InvalidArgumentError, "unscale"):
            self.scaler.update()
        with self.assertRaises(xrt.InvalidArgumentError):
            self.scaler.step(lambda: None)

    def test_two_threads_in_one_scaler_get_an_error(self) -> None:
        self.scaler.unscale([numpy.ones(1, numpy.float32)])
        raised = []

        def meddle() -> None:
            try:
                self.scaler.update()
            except xrt.InvalidArgumentError as error:
                raised.append(str(error))

        def apply() -> None:
            thread = threading.Thread(target=meddle)
            thread.start()
            thread.join()

        self.assertTrue(self.scaler.step(apply))
        self.assertIn("another thread", raised[0])
        self.scaler.update()

    def test_wrong_arguments_say_what_to_pass(self) -> None:
        with self.assertRaisesRegex(xrt.UnknownNameError, "growth_factor"):
            xrt.GradScaler(growth=2)
        for call in (lambda: xrt.GradScaler(initial_scale="1"), lambda: self.scaler.unscale(numpy.ones(1)),
                     lambda: self.scaler.unscale([3]), lambda: self.scaler.scale("loss"),
                     lambda: self.scaler.load_state_dict([]), lambda: self.scaler.step(3)):
            with self.assertRaises(xrt.ArgumentTypeError):
                call()
        with self.assertRaises(xrt.XpuRuntimeError):
            self.scaler.load_state_dict({"scale": 1})
        frozen = numpy.ones(1, numpy.float32)
        frozen.flags.writeable = False
        with self.assertRaises(xrt.XpuRuntimeError):
            self.scaler.unscale([frozen])


if __name__ == "__main__":
    unittest.main()
