"""Rules in Python: when they are asked, in which order, and what becomes of what they raise."""

import gc
import subprocess
import sys
import threading
import unittest
import warnings
import weakref

import numpy
import xpuruntime as xrt

PROBLEM = "matmul(f32[64,64], f32[64,64])"


def kernel() -> object:
    return xrt.explain(PROBLEM).kernel


class RuleTest(unittest.TestCase):
    def setUp(self) -> None:
        self.usual = kernel()
        self.assertNotEqual(self.usual, "reference")

    def tearDown(self) -> None:
        self.assertEqual(kernel(), self.usual)  # no test leaves a rule behind

    def rule(self, condition: object, use: str = "reference", **options: object) -> int:
        number = xrt.register_rule("matmul", condition, use, **options)
        self.addCleanup(xrt.unregister_rule, number)
        return number

    def with_rule(self, condition: object, **options: object) -> xrt.Decision:
        number = xrt.register_rule("matmul", condition, "reference", **options)
        try:
            return xrt.explain(PROBLEM)
        finally:
            self.assertTrue(xrt.unregister_rule(number))

    def test_a_condition_that_holds_decides_and_one_that_does_not_changes_nothing(self) -> None:
        decision = self.with_rule(lambda problem, profile: True, name="always")
        self.assertEqual((decision.kernel, decision.level), ("reference", "rule"))
        self.assertIn("always", decision.because)
        self.assertEqual(self.with_rule(lambda problem, profile: False).kernel, self.usual)

    def test_a_condition_reads_the_whole_problem_and_the_profile(self) -> None:
        seen = []

        def condition(problem: xrt.Problem, profile: xrt.DeviceProfile) -> bool:
            seen.append((problem, profile))
            return problem.inputs[0].shape[0] > 10**6

        self.with_rule(condition)
        gc.collect()
        problem, profile = seen[0]  # kept after the call
        self.assertEqual(problem, xrt.Problem(PROBLEM))
        self.assertEqual(profile, xrt.device_profile("cpu"))

    def test_what_a_condition_raises_is_a_rejection_with_its_text(self) -> None:
        def condition(problem: xrt.Problem, profile: xrt.DeviceProfile) -> bool:
            raise ValueError("no idea about this one")

        decision = self.with_rule(condition, name="unsure")
        self.assertEqual(decision.kernel, self.usual)
        self.assertIn("unsure threw: ValueError: no idea about this one", decision.because)

    def test_a_condition_with_the_wrong_parameters_is_a_rejection_too(self) -> None:
        decision = self.with_rule(lambda problem: True)
        self.assertEqual(decision.kernel, self.usual)
        self.assertIn("TypeError", decision.because)

    def test_an_exception_whose_text_fails_is_named_by_its_type(self) -> None:
        class Odd(Exception):
            def __str__(self) -> str:
                raise RuntimeError("no text")

        def condition(problem: xrt.Problem, profile: xrt.DeviceProfile) -> bool:
            raise Odd

        self.assertIn("threw: Odd", self.with_rule(condition).because)

    def test_true_and_false_may_be_numpys_and_none_is_no(self) -> None:
        for answer, expected in ((numpy.bool_(True), "reference"), (numpy.bool_(False), self.usual),
                                 (numpy.ones(2).all(), "reference"), (None, self.usual)):
            decision = self.with_rule(lambda problem, profile: answer)
            self.assertEqual(decision.kernel, expected, repr(answer))
            self.assertNotIn("returned", decision.because)

    def test_any_other_answer_is_a_rejection_that_says_what_to_return(self) -> None:
        class Unsure:
            def __bool__(self) -> bool:
                raise TypeError("neither")

        for answer in ("too small", "", 1, 0, [], numpy.ones(2), numpy.int32(1), Unsure()):
            decision = self.with_rule(lambda problem, profile: answer, name="unsure")
            self.assertEqual(decision.kernel, self.usual, repr(answer))
            self.assertRegex(decision.because, f"it returned an? {type(answer).__name__}; return True or False")

    def test_a_coroutine_is_no_answer_and_leaves_no_warning(self) -> None:
        async def condition(problem: xrt.Problem, profile: xrt.DeviceProfile) -> bool:
            return True

        with warnings.catch_warnings(record=True) as warned:
            warnings.simplefilter("always")
            decision = self.with_rule(condition)
            gc.collect()
        self.assertEqual((decision.kernel, [str(warning.message) for warning in warned]), (self.usual, []))
        self.assertIn("it returned a coroutine; return True or False", decision.because)

    def test_a_keyboard_interrupt_reaches_the_user_and_the_choice_is_made_again(self) -> None:
        def condition(problem: xrt.Problem, profile: xrt.DeviceProfile) -> bool:
            raise KeyboardInterrupt

        number = xrt.register_rule("matmul", condition, "reference")
        try:
            with self.assertRaises(KeyboardInterrupt):
                xrt.explain(PROBLEM)
                for _ in range(100):  # raised as soon as the interpreter looks
                    pass
        finally:
            xrt.unregister_rule(number)

    def test_what_is_no_exception_reaches_the_user_as_it_was_raised(self) -> None:
        class Leave(BaseException):
            pass

        for raised in (Leave("now", 3), SystemExit(5), GeneratorExit(), KeyboardInterrupt("own text")):
            def condition(problem: xrt.Problem, profile: xrt.DeviceProfile) -> bool:
                raise raised

            number = xrt.register_rule("matmul", condition, "reference")
            try:
                with self.assertRaises(type(raised)) as caught:
                    xrt.explain(PROBLEM)
                    for _ in range(100):
                        pass
            finally:
                xrt.unregister_rule(number)
            self.assertIs(caught.exception, raised)

    def test_a_choice_that_was_broken_off_is_made_again(self) -> None:
        calls = []

        def condition(problem: xrt.Problem, profile: xrt.DeviceProfile) -> bool:
            calls.append(1)
            if len(calls) == 1:
                sys.exit(5)
            return True

        number = xrt.register_rule("matmul", condition, "reference")
        try:
            with self.assertRaises(SystemExit):
                kernel()
                for _ in range(100):
                    pass
            self.assertEqual(kernel(), "reference")
        finally:
            xrt.unregister_rule(number)

    def test_exit_in_a_condition_ends_the_program_with_its_status(self) -> None:
        program = f"""
import sys, xpuruntime as xrt
xrt.register_rule("matmul", lambda problem, profile: sys.exit(5), "reference")
xrt.explain({PROBLEM!r})
for _ in range(100): pass
print("still here")
"""
        done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, timeout=60)
        self.assertEqual((done.returncode, done.stdout, done.stderr), (5, "", ""))

    def test_exit_on_another_thread_is_a_rejection_and_the_program_goes_on(self) -> None:
        program = f"""
import sys, threading, xpuruntime as xrt
xrt.register_rule("matmul", lambda problem, profile: sys.exit(5), "reference")
thread = threading.Thread(target=lambda: print(xrt.explain({PROBLEM!r}).because))
thread.start()
thread.join()
print("still here")
"""
        done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, timeout=60)
        self.assertEqual((done.returncode, done.stderr), (0, ""))
        self.assertIn("SystemExit: 5", done.stdout)
        self.assertIn("still here", done.stdout)

    def test_the_higher_priority_comes_first_then_the_order_of_registration(self) -> None:
        numbers = [xrt.register_rule("matmul", lambda problem, profile: True, use, priority=priority)
                   for use, priority in (("openblas", 0), ("onednn", 0), ("reference", 7))]
        try:
            self.assertEqual(kernel(), "reference")
            self.assertTrue(xrt.unregister_rule(numbers.pop()))
            self.assertEqual(kernel(), "openblas")
            self.assertEqual([rule["kernel"] for rule in xrt.KernelSelector().rules("matmul")], ["openblas", "onednn"])
        finally:
            for number in numbers:
                xrt.unregister_rule(number)

    def test_as_a_decorator_it_gives_the_function_back_which_takes_the_rule_away(self) -> None:
        @xrt.register_rule("matmul", kernel="reference")
        def tall(problem: xrt.Problem, profile: xrt.DeviceProfile) -> bool:
            return True

        self.assertIn("tall", xrt.explain(PROBLEM).because)
        self.assertIs(tall(xrt.Problem(PROBLEM), xrt.DeviceProfile()), True)
        self.assertTrue(xrt.unregister_rule(tall))
        self.assertFalse(xrt.unregister_rule(tall))

    def test_a_rule_that_is_gone_lets_go_of_its_function(self) -> None:
        class Condition:
            def __call__(self, problem: xrt.Problem, profile: xrt.DeviceProfile) -> bool:
                return True

        condition = Condition()
        watch = weakref.ref(condition)
        self.with_rule(condition)
        del condition
        kernel()  # the decision that was made with it is dropped
        gc.collect()
        self.assertIsNone(watch())

    def test_conditions_are_asked_on_other_threads_too(self) -> None:
        threads_seen = set()

        def condition(problem: xrt.Problem, profile: xrt.DeviceProfile) -> bool:
            threads_seen.add(threading.get_ident())
            return False

        self.rule(condition)
        threads = [threading.Thread(target=kernel) for _ in range(4)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        self.assertNotIn(threading.get_ident(), threads_seen)
        self.assertTrue(threads_seen)

    def test_a_condition_may_ask_for_decisions_itself(self) -> None:
        answers = []

        def condition(problem: xrt.Problem, profile: xrt.DeviceProfile) -> bool:
            answers.append(xrt.explain("relu(f32[8])").kernel)
            return False

        self.with_rule(condition)
        self.assertTrue(answers[0])

    def test_wrong_arguments_say_what_to_pass(self) -> None:
        with self.assertRaisesRegex(xrt.UnknownNameError, "openblas"):
            xrt.register_rule("matmul", lambda problem, profile: True, "openblass")
        with self.assertRaises(xrt.UnknownNameError):
            xrt.register_rule("matmulll", lambda problem, profile: True, "reference")
        for arguments in (("matmul", 3, "reference"), ("matmul", len, 3), (3, len, "reference"),
                          ("matmul", len, "reference", "high"), ("matmul", len, "reference", 0, None)):
            with self.assertRaises(xrt.ArgumentTypeError):
                xrt.register_rule(*arguments)
        with self.assertRaisesRegex(xrt.ArgumentTypeError, "kernel"):
            xrt.register_rule("matmul", len)
        with self.assertRaises(xrt.InvalidArgumentError):
            xrt.register_rule("matmul", len, "reference", 2**40)
        with self.assertRaises(xrt.XpuRuntimeError):
            xrt.register_rule("matmul", len, "reference", device="npu:0")
        with self.assertRaises(xrt.ArgumentTypeError):
            xrt.unregister_rule("first")
        self.assertFalse(xrt.unregister_rule(10**9))


if __name__ == "__main__":
    unittest.main()
