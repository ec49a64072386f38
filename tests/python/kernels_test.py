"""Kernels in Python: asked, run, set aside and removed like any other."""

import functools
import os
import pathlib
import subprocess
import sys
import threading
import traceback
import unittest
import warnings

import numpy
import xpuruntime as xrt


def add(problem: xrt.Problem, inputs: list, outputs: list) -> None:
    numpy.add(inputs[0].numpy(), inputs[1].numpy(), out=outputs[0].numpy())


class KernelTest(unittest.TestCase):
    def setUp(self) -> None:
        self.x = numpy.arange(24, dtype=numpy.float32).reshape(4, 6)
        self.addCleanup(xrt.clear_quarantine)

    def kernel(self, run: object = add, op: str = "add", **options: object) -> None:
        xrt.register_kernel("mine", op, run, **options)
        self.addCleanup(xrt.unregister_kernel, "mine", op)

    def kernel_of_add(self) -> object:
        return xrt.explain("add", self.x, self.x).kernel

    def test_it_runs_first_and_computes_the_result(self) -> None:
        calls = []

        def run(problem: xrt.Problem, inputs: list, outputs: list) -> None:
            calls.append(problem)
            self.assertEqual([tensor.shape for tensor in inputs], [(4, 6), (4, 6)])
            numpy.multiply(inputs[0].numpy(), 3, out=outputs[0].numpy())  # no other kernel would

        self.kernel(run)
        numpy.testing.assert_array_equal(xrt.ops.add(self.x, self.x), 3 * self.x)
        self.assertEqual(calls, [xrt.Problem("add(f32[4,6], f32[4,6])")])
        self.assertEqual(self.kernel_of_add(), "mine")
        self.assertIn("mine", xrt.get_available_kernels("add"))

    def test_it_works_on_the_callers_own_memory(self) -> None:
        places = []

        def run(problem: xrt.Problem, inputs: list, outputs: list) -> None:
            places.extend(array.numpy().__array_interface__["data"][0] for array in (inputs[0], outputs[0]))
            add(problem, inputs, outputs)

        self.kernel(run)
        out = numpy.empty_like(self.x)
        xrt.ops.add(self.x, self.x, out=out)
        self.assertEqual(places, [array.__array_interface__["data"][0] for array in (self.x, out)])

    def test_it_may_write_an_output_before_it_reads_the_input_in_the_same_memory(self) -> None:
        def copy_then_add(problem: xrt.Problem, inputs: list, outputs: list) -> None:
            out = outputs[0].numpy()
            out[...] = inputs[0].numpy()
            out += inputs[1].numpy()

        def zero_then_add(problem: xrt.Problem, inputs: list, outputs: list) -> None:
            out = outputs[0].numpy()
            out[...] = 0
            for array in inputs:
                out += array.numpy()

        for run in (copy_then_add, zero_then_add):
            self.kernel(run)
            for place in (0, 1):
                for layout in (lambda a: a.copy(), lambda a: a.copy().T, lambda a: numpy.repeat(a, 2, 1)[:, ::2]):
                    arrays = [layout(self.x), layout(self.x + 10)]
                    wanted = arrays[0] + arrays[1]
                    other = arrays[1 - place].copy()
                    self.assertIs(xrt.ops.add(*arrays, out=arrays[place]), arrays[place])
                    numpy.testing.assert_array_equal(arrays[place], wanted)
                    numpy.testing.assert_array_equal(arrays[1 - place], other)
            both = self.x.copy()
            xrt.ops.add(both, both, out=both)
            numpy.testing.assert_array_equal(both, 2 * self.x)
            self.assertEqual(xrt.quarantined(), [])
            xrt.unregister_kernel("mine", "add")

    def test_what_lies_between_the_elements_of_an_in_place_call_stays(self) -> None:
        def run(problem: xrt.Problem, inputs: list, outputs: list) -> None:
            self.assertEqual(inputs[0].strides, outputs[0].strides)
            outputs[0].numpy()[...] = 0
            numpy.add(inputs[0].numpy(), inputs[1].numpy(), out=outputs[0].numpy())

        self.kernel(run)
        wide = numpy.arange(48, dtype=numpy.float32).reshape(4, 12)
        wanted = wide.copy()
        wanted[:, ::2] += self.x
        xrt.ops.add(wide[:, ::2], self.x, out=wide[:, ::2])
        numpy.testing.assert_array_equal(wide, wanted)
        self.assertEqual(xrt.quarantined(), [])

    def test_a_rotation_in_two_steps_works_in_place(self) -> None:
        def rotate(problem: xrt.Problem, inputs: list, outputs: list) -> None:
            x, places, cos, sin = (tensor.numpy() for tensor in inputs)
            out = outputs[0].numpy()
            cos, sin = cos[places][..., None, :], sin[places][..., None, :]
            half = x.shape[-1] // 2
            out[..., :half] = x[..., :half] * cos - x[..., half:] * sin
            out[..., half:] = x[..., half:] * cos + x[..., :half] * sin

        x = numpy.random.default_rng(5).standard_normal((1, 3, 2, 8)).astype(numpy.float32)
        places = numpy.arange(3, dtype=numpy.int64).reshape(1, 3)
        angles = numpy.arange(12, dtype=numpy.float32).reshape(3, 4)
        tables = numpy.cos(angles), numpy.sin(angles)
        wanted = xrt.ops.rope(x, places, *tables)
        self.kernel(rotate, "rope")
        self.assertEqual(xrt.explain("rope", x, places, *tables).kernel, "mine")
        xrt.ops.rope(x, places, *tables, out=x)
        numpy.testing.assert_allclose(x, wanted, rtol=1e-5, atol=1e-5)
        self.assertEqual(xrt.quarantined(), [])

    def test_an_op_of_ones_own_works_in_place(self) -> None:
        def run(problem: xrt.Problem, inputs: list, outputs: list) -> None:
            out = outputs[0].numpy()
            out[...] = 0
            for array in inputs:
                out += array.numpy()

        total = xrt.register_op("total_of_two", inputs=["input", "other"])
        self.kernel(run, "total_of_two")
        for place in (0, 1):
            arrays = [self.x.copy(), self.x + 10]
            total(*arrays, out=arrays[place])
            numpy.testing.assert_array_equal(arrays[place], 2 * self.x + 10)

    def test_a_generator_is_no_kernel(self) -> None:
        def run(problem: xrt.Problem, inputs: list, outputs: list):
            outputs[0].numpy()[...] = 7
            yield

        self.kernel(run, "relu")
        numpy.testing.assert_array_equal(xrt.ops.relu(self.x), numpy.maximum(self.x, 0))

    def test_backward_works_in_place(self) -> None:
        def run(problem: xrt.Problem, inputs: list, outputs: list) -> None:
            x, gradient = (tensor.numpy() for tensor in inputs)
            out = outputs[0].numpy()
            out[...] = 0
            out += gradient * (x > 5)  # no other kernel would

        self.kernel(run, "relu", directions="backward")
        for place in (0, 1):
            x, gradient = arrays = [self.x.copy(), self.x + 10]
            wanted = gradient * (x > 5)
            xrt.backward("relu", x, grad_output=gradient, out=arrays[place])
            numpy.testing.assert_array_equal(arrays[place], wanted)

    def test_one_that_declares_in_place_gets_input_and_output_on_the_same_memory(self) -> None:
        shared = []

        def run(problem: xrt.Problem, inputs: list, outputs: list) -> None:
            shared.append([numpy.shares_memory(array.numpy(), outputs[0].numpy()) for array in inputs])
            add(problem, inputs, outputs)

        y = self.x.copy()
        for in_place in (False, True):
            self.kernel(run, in_place=in_place)
            xrt.ops.add(self.x, y, out=y)
            xrt.unregister_kernel("mine", "add")
        self.assertEqual(shared, [[False, False], [False, True]])
        numpy.testing.assert_array_equal(y, 3 * self.x)

    def test_no_other_kernel_runs_after_one_that_failed_in_place(self) -> None:
        def run(problem: xrt.Problem, inputs: list, outputs: list) -> None:
            raise RuntimeError("out of ideas")

        self.kernel(run)
        with self.assertRaisesRegex(xrt.DeviceError, "out of ideas.*the output overwrites an input"):
            xrt.ops.add(self.x, self.x.copy(), out=self.x)

    def test_backward_is_not_asked_of_a_kernel_that_does_not_declare_it(self) -> None:
        gradient = numpy.full_like(self.x, 2)
        wanted, = xrt.backward("relu", self.x, grad_output=gradient)

        def run(problem: xrt.Problem, inputs: list, outputs: list) -> None:
            outputs[0].numpy()[:] = 77

        backward = "relu:backward(f32[4,6], f32[4,6])"
        for options in ({}, {"supports": lambda problem, profile: True}, {"directions": "forward"}):
            self.kernel(run, "relu", **options)
            self.assertEqual(xrt.explain("relu", self.x).kernel, "mine")
            got, = xrt.backward("relu", self.x, grad_output=gradient)
            numpy.testing.assert_array_equal(got, wanted)
            reasons = {candidate.kernel: candidate.reason for candidate in xrt.explain(backward).candidates}
            self.assertEqual(reasons["mine"], "forward only")
            xrt.unregister_kernel("mine", "relu")

    def test_backward_goes_to_a_kernel_that_declares_it(self) -> None:
        gradient = numpy.full_like(self.x, 2)
        seen = []

        def run(problem: xrt.Problem, inputs: list, outputs: list) -> None:
            seen.append((problem.direction, len(inputs)))
            outputs[0].numpy()[:] = 77

        self.kernel(run, "relu", directions=("forward", "backward"))
        got, = xrt.backward("relu", self.x, grad_output=gradient)
        self.assertEqual(float(got[0, 0]), 77)
        xrt.ops.relu(self.x)
        self.assertEqual(seen, [("backward", 2), ("forward", 1)])
        xrt.unregister_kernel("mine", "relu")
        self.kernel(run, "relu", directions="backward")
        self.assertNotEqual(xrt.explain("relu", self.x).kernel, "mine")
        self.assertEqual(xrt.explain("relu:backward(f32[4,6], f32[4,6])").kernel, "mine")

    def test_a_lock_does_not_replay_other_code_under_the_same_name(self) -> None:
        problem = "add(f32[4,6], f32[4,6]) @cpu:0"
        self.kernel(version="1")
        self.assertEqual(xrt.explain(problem).kernel_version, "1")
        lock = xrt.KernelLock.from_json(xrt.record_lock([problem]).to_json())
        self.assertEqual(lock.entries[0].kernel_version, "1")
        with xrt.use_lock(lock):
            numpy.testing.assert_array_equal(xrt.ops.add(self.x, self.x), 2 * self.x)
        for version, reason in (("2", "mine is version 1 in the lock, version 2 here"), (None, "give it a version")):
            xrt.unregister_kernel("mine", "add")
            self.kernel(lambda problem, inputs, outputs: self.fail("it ran"), version=version)
            with xrt.use_lock(lock), self.assertRaisesRegex(xrt.XpuRuntimeError, reason):
                xrt.ops.add(self.x, self.x)
        self.assertEqual(xrt.explain(problem).kernel_version, "unversioned")
        unversioned = xrt.record_lock([problem])
        with xrt.use_lock(unversioned), self.assertRaisesRegex(xrt.XpuRuntimeError, "give it a version"):
            xrt.ops.add(self.x, self.x)

    def test_strided_inputs_come_with_their_strides(self) -> None:
        self.kernel()
        wide = numpy.arange(48, dtype=numpy.float32).reshape(4, 12)[:, ::2]
        numpy.testing.assert_array_equal(xrt.ops.add(wide, self.x), wide + self.x)

    def test_inputs_cannot_be_written(self) -> None:
        def run(problem: xrt.Problem, inputs: list, outputs: list) -> None:
            inputs[0].numpy()[...] = 0

        self.kernel(run)
        before = self.x.copy()
        numpy.testing.assert_array_equal(xrt.ops.add(self.x, self.x), 2 * before)
        self.assertIn("read-only", xrt.quarantined()[0].reason)

    def test_supports_answers_with_true_false_or_a_reason(self) -> None:
        def reason_of(answer: object) -> str:
            xrt.register_kernel("mine", "add", add, supports=lambda problem, profile: answer)
            try:
                candidate, = (c for c in xrt.explain("add", self.x, self.x).candidates if c.kernel == "mine")
                return candidate.reason if candidate.outcome == "refused" else candidate.outcome
            finally:
                xrt.unregister_kernel("mine", "add")

        self.assertEqual(reason_of(True), "chosen")
        self.assertEqual(reason_of("only on Sundays"), "only on Sundays")
        self.assertIn("said no", reason_of(False))
        self.assertEqual(reason_of(numpy.bool_(True)), "chosen")
        self.assertIn("returned a NoneType", reason_of(None))
        self.assertIn("returned an int", reason_of(1))

    def test_async_functions_are_refused(self) -> None:
        async def supports(problem: xrt.Problem, profile: xrt.DeviceProfile) -> bool:
            return True

        async def run(problem: xrt.Problem, inputs: list, outputs: list) -> None:
            outputs[0].numpy()[:] = 7

        with warnings.catch_warnings():
            warnings.simplefilter("error")
            xrt.register_kernel("mine", "add", add, supports=supports)
            self.assertIn("returned a coroutine", xrt.explain("add", self.x, self.x).candidates[0].reason)
            xrt.unregister_kernel("mine", "add")
        self.kernel(run)
        with self.assertWarnsRegex(RuntimeWarning, "async function"):
            numpy.testing.assert_array_equal(xrt.ops.add(self.x, self.x), 2 * self.x)
        self.assertIn("async function", xrt.quarantined()[-1].reason)
        xrt.clear_quarantine()

    def test_what_it_was_lent_cannot_be_used_afterwards(self) -> None:
        kept: list[xrt.Tensor] = []

        def run(problem: xrt.Problem, inputs: list, outputs: list) -> None:
            outputs[0].numpy()[:] = 7
            kept.extend((inputs.pop(), outputs[0]))

        self.kernel(run)
        self.assertTrue((xrt.ops.add(self.x, self.x) == 7).all())
        for tensor in kept:
            for use in (tensor.numpy, lambda: xrt.ops.relu(tensor), lambda: tensor.to("cpu"), tensor.__dlpack__):
                with self.assertRaisesRegex(xrt.InvalidArgumentError, "lent to a kernel whose run has returned"):
                    use()
            with self.assertRaisesRegex(BufferError, "lent"):
                memoryview(tensor)
            self.assertEqual(tensor.shape, self.x.shape)

    def test_what_supports_raises_is_a_refusal_with_its_text(self) -> None:
        def supports(problem: xrt.Problem, profile: xrt.DeviceProfile) -> bool:
            raise LookupError("no table for it")

        self.kernel(supports=supports)
        candidate = xrt.explain("add", self.x, self.x).candidates[0]
        self.assertEqual((candidate.kernel, candidate.outcome), ("mine", "refused"))
        self.assertIn("LookupError: no table for it", candidate.reason)

    def test_what_run_raises_sets_it_aside_and_the_next_kernel_runs(self) -> None:
        calls = []

        def run(problem: xrt.Problem, inputs: list, outputs: list) -> None:
            calls.append(1)
            raise RuntimeError("out of ideas")

        self.kernel(run)
        for _ in range(3):
            numpy.testing.assert_array_equal(xrt.ops.add(self.x, self.x), 2 * self.x)
        self.assertEqual(len(calls), 1)
        self.assertIn("RuntimeError: out of ideas", xrt.quarantined()[0].reason)

    def test_forced_it_fails_with_what_it_raised(self) -> None:
        def run(problem: xrt.Problem, inputs: list, outputs: list) -> None:
            raise RuntimeError("out of ideas")

        self.kernel(run)
        with xrt.with_policy(add={"kernel": "mine", "mode": "force"}):
            with self.assertRaisesRegex(xrt.DeviceError, "RuntimeError: out of ideas") as caught:
                xrt.ops.add(self.x, self.x)
        cause = caught.exception.__cause__
        self.assertIsInstance(cause, RuntimeError)
        self.assertEqual(traceback.extract_tb(cause.__traceback__)[-1].name, "run")
        with self.assertRaises(ValueError) as caught:  # nothing is left of it for the next error
            xrt.ops.add(self.x, self.x[:3])
        self.assertIsNone(caught.exception.__cause__)

    def test_errors_of_this_package_in_it_are_like_any_other(self) -> None:
        def negative(problem: xrt.Problem, inputs: list, outputs: list) -> None:
            raise xrt.InvalidArgumentError("negative")

        def wrong_call(problem: xrt.Problem, inputs: list, outputs: list) -> None:
            xrt.ops.matmul(inputs[0], inputs[1])

        for run, reason in ((negative, "InvalidArgumentError: negative"), (wrong_call, "inner extents 6 and 4 differ")):
            xrt.register_kernel("mine", "add", run)
            try:
                with self.assertWarnsRegex(RuntimeWarning, f"(?s)kernel 'mine' raised.*in {run.__name__}.*{reason}"):
                    numpy.testing.assert_array_equal(xrt.ops.add(self.x, self.x), 2 * self.x)
                self.assertIn(reason, xrt.quarantined()[-1].reason)
            finally:
                xrt.unregister_kernel("mine", "add")

    def test_one_that_takes_other_arguments_is_refused(self) -> None:
        for run, options, said in (
            (lambda problem: None, {}, r"called as run\(problem, inputs, outputs\), and is defined with \(problem\)"),
            (lambda a, b, c, d: None, {}, r"defined with \(a, b, c, d\); .* pass workspace_bytes"),
            (lambda a, b, c: None, {"workspace_bytes": 8}, r"outputs, workspace\), and is defined with \(a, b, c\)"),
            (lambda a, b, c, *, d: None, {}, r"defined with \(a, b, c, \*, d\)"),
        ):
            with self.assertRaisesRegex(xrt.ArgumentTypeError, said):
                xrt.register_kernel("mine", "add", run, **options)
            self.assertFalse(xrt.unregister_kernel("mine", "add"))

    def test_one_that_passes_on_other_arguments_than_it_gets_is_taken(self) -> None:
        def copy(destination: numpy.ndarray, source: numpy.ndarray) -> None:
            destination[...] = source

        @functools.wraps(copy)
        def run(problem: xrt.Problem, inputs: list, outputs: list) -> None:
            copy(outputs[0].numpy(), inputs[0].numpy())

        self.kernel(run)
        numpy.testing.assert_array_equal(xrt.ops.add(self.x, self.x), self.x)

    def test_one_that_does_not_tell_its_parameters_is_taken_until_it_is_called(self) -> None:
        class Silent:
            __signature__ = 3  # which inspect refuses

            def __call__(self, problem: xrt.Problem) -> None: ...

        self.kernel(Silent())
        with self.assertWarnsRegex(RuntimeWarning, "(?s)kernel 'mine' raised.*TypeError: .* takes 2 positional argument"):
            numpy.testing.assert_array_equal(xrt.ops.add(self.x, self.x), 2 * self.x)

    def test_a_keyboard_interrupt_in_it_reaches_the_user_and_sets_nothing_aside(self) -> None:
        def run(problem: xrt.Problem, inputs: list, outputs: list) -> None:
            raise KeyboardInterrupt

        self.kernel(run)
        with self.assertRaises(KeyboardInterrupt):
            xrt.ops.add(self.x, self.x)
        self.assertEqual(xrt.quarantined(), [])

    def test_exit_in_it_reaches_the_user_and_sets_nothing_aside(self) -> None:
        def leave(*arguments: object) -> None:
            sys.exit(5)

        for options in ({"run": leave}, {"run": add, "supports": leave}):
            xrt.register_kernel("mine", "add", **options)
            try:
                with self.assertRaises(SystemExit) as caught:
                    xrt.ops.add(self.x, self.x)
                    for _ in range(100):  # raised as soon as the interpreter looks
                        pass
            finally:
                xrt.unregister_kernel("mine", "add")
            self.assertEqual((caught.exception.code, xrt.quarantined()), (5, []))

    def test_exit_in_it_ends_the_program_with_its_status(self) -> None:
        program = """
import sys, numpy, xpuruntime as xrt
xrt.register_kernel("last", "relu", lambda problem, inputs, outputs: sys.exit(5))
xrt.ops.relu(numpy.zeros(3, numpy.float32))
"""
        done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, timeout=60)
        self.assertEqual((done.returncode, done.stderr), (5, ""))

    def test_workspace_is_one_more_argument_of_that_size(self) -> None:
        sizes = []

        def run(problem: xrt.Problem, inputs: list, outputs: list, workspace: xrt.Tensor) -> None:
            workspace.numpy()[...] = 255
            sizes.append(workspace.shape)
            add(problem, inputs, outputs)

        self.kernel(run, workspace_bytes=1000)
        numpy.testing.assert_array_equal(xrt.ops.add(self.x, self.x), 2 * self.x)
        self.assertEqual(sizes, [(1000,)])
        self.assertEqual(xrt.explain("add", self.x, self.x).workspace_bytes, 1000)
        with xrt.with_policy(workspace_limit_bytes=999):
            self.assertNotEqual(self.kernel_of_add(), "mine")

    def test_one_that_is_not_deterministic_does_not_run_where_that_is_asked(self) -> None:
        self.kernel(deterministic=False)
        with xrt.with_policy(deterministic=True):
            self.assertNotEqual(self.kernel_of_add(), "mine")
        self.assertEqual(self.kernel_of_add(), "mine")

    def test_as_a_decorator_it_gives_the_function_back(self) -> None:
        @xrt.register_kernel("decorated", "add")
        def run(problem: xrt.Problem, inputs: list, outputs: list) -> None:
            add(problem, inputs, outputs)

        self.assertTrue(callable(run))
        self.assertEqual(self.kernel_of_add(), "decorated")
        self.assertTrue(xrt.unregister_kernel("decorated", "add"))
        self.assertFalse(xrt.unregister_kernel("decorated", "add"))
        self.assertNotEqual(self.kernel_of_add(), "decorated")

    def test_it_runs_on_many_threads_at_once(self) -> None:
        self.kernel()
        wrong = []

        def work() -> None:
            for _ in range(50):
                if not numpy.array_equal(xrt.ops.add(self.x, self.x), 2 * self.x):
                    wrong.append(1)

        threads = [threading.Thread(target=work) for _ in range(4)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        self.assertEqual(wrong, [])

    def test_it_may_call_ops_itself(self) -> None:
        def run(problem: xrt.Problem, inputs: list, outputs: list) -> None:
            xrt.ops.sub(inputs[0], xrt.ops.mul(inputs[1].numpy(), numpy.float32(-1)), out=outputs[0])

        self.kernel(run)
        numpy.testing.assert_array_equal(xrt.ops.add(self.x, self.x), 2 * self.x)
        self.assertEqual(xrt.quarantined(), [])

    def test_one_that_calls_its_own_op_without_end_is_named(self) -> None:
        self.kernel(lambda problem, inputs, outputs: xrt.ops.add(inputs[0], inputs[1], out=outputs[0]))
        with self.assertWarnsRegex(RuntimeWarning, r"kernel 'mine' calls add again without end.*with_policy\(add="):
            numpy.testing.assert_array_equal(xrt.ops.add(self.x, self.x), 2 * self.x)
        self.assertIn("RecursionError", xrt.quarantined()[0].reason)

    def test_one_that_is_forced_and_calls_itself_says_so_once(self) -> None:
        self.kernel(lambda problem, inputs, outputs: xrt.ops.add(inputs[0], inputs[1], out=outputs[0]))
        with warnings.catch_warnings(), xrt.with_policy(add={"kernel": "mine", "mode": "force"}):
            warnings.simplefilter("ignore")
            with self.assertRaisesRegex(xrt.DeviceError, "it raised RecursionError: .* inside each other; ") as caught:
                xrt.ops.add(self.x, self.x)
        self.assertEqual(str(caught.exception).count("mine failed"), 1)

    def test_it_may_call_its_own_op_if_it_names_another_kernel(self) -> None:
        calls = []

        def run(problem: xrt.Problem, inputs: list, outputs: list) -> None:
            calls.append(problem)
            with xrt.with_policy(add="reference"):
                xrt.ops.add(inputs[0], inputs[1], out=outputs[0])

        self.kernel(run)
        for _ in range(2):
            numpy.testing.assert_array_equal(xrt.ops.add(self.x, self.x), 2 * self.x)
        self.assertEqual((len(calls), xrt.quarantined()), (2, []))

    def test_one_that_failed_in_an_inner_call_is_not_called_again_by_the_outer_ones(self) -> None:
        calls = []

        def run(problem: xrt.Problem, inputs: list, outputs: list) -> None:
            calls.append(problem)
            if len(calls) == 2:
                raise ValueError("not inside myself")
            xrt.ops.add(inputs[0], inputs[1], out=outputs[0])

        self.kernel(run)
        with self.assertWarns(RuntimeWarning):
            xrt.ops.add(self.x, self.x)
        numpy.testing.assert_array_equal(xrt.ops.add(self.x, self.x), 2 * self.x)
        self.assertEqual(len(calls), 2)

    def test_no_thread_calls_one_that_failed_in_another(self) -> None:
        calls = []

        def run(problem: xrt.Problem, inputs: list, outputs: list) -> None:
            calls.append(threading.current_thread())
            if threading.current_thread() is not threading.main_thread():
                raise ValueError("not here")
            add(problem, inputs, outputs)

        self.kernel(run)
        xrt.ops.add(self.x, self.x)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            other = threading.Thread(target=lambda: xrt.ops.add(self.x, self.x))
            other.start()
            other.join()
        xrt.ops.add(self.x, self.x)
        self.assertEqual(calls, [threading.main_thread(), other])

    def test_a_program_may_end_with_kernels_and_rules_in_place(self) -> None:
        program = """
import numpy, xpuruntime as xrt
class Run:
    def __call__(self, problem, inputs, outputs): outputs[0].numpy()[...] = xrt.Problem("relu(f32[2])").dtype == "f32"
    def __del__(self): print("gone", flush=True)
keep = [xrt.Problem("relu(f32[2])")]
xrt.register_kernel("last", "relu", Run())
xrt.register_rule("relu", lambda problem, profile: bool(keep), "last")
print(xrt.ops.relu(numpy.zeros(3, numpy.float32)))
"""
        done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, timeout=60)
        self.assertEqual((done.returncode, done.stdout, done.stderr), (0, "[1. 1. 1.]\ngone\n", ""))

    def test_wrong_arguments_say_what_to_pass(self) -> None:
        self.kernel()
        with self.assertRaisesRegex(xrt.InvalidArgumentError, "already has a kernel"):
            xrt.register_kernel("mine", "add", add)
        with self.assertRaises(xrt.UnknownNameError):
            xrt.register_kernel("other", "addd", add)
        for arguments, options in ((("other", "add", 3), {}), ((3, "add", add), {}), (("other", 3, add), {}),
                                   (("other", "add", add, 3), {}), (("other", "add", add), {"workspace_bytes": "1"}),
                                   (("other", "add", add), {"deterministic": 1}),
                                   (("other", "add", add), {"in_place": 1}),
                                   (("other", "add", add), {"directions": 3}),
                                   (("other", "add", add), {"directions": ["forward", None]}),
                                   (("other", "add", add), {"version": 3}),
                                   (("other", "add", add), {"device": 3})):
            with self.assertRaises(xrt.ArgumentTypeError):
                xrt.register_kernel(*arguments, **options)
        with self.assertRaises(xrt.InvalidArgumentError):
            xrt.register_kernel("other", "add", add, workspace_bytes=-1)
        with self.assertRaisesRegex(xrt.UnknownNameError, "did you mean forward"):
            xrt.register_kernel("other", "add", add, directions="forwards")
        with self.assertRaisesRegex(xrt.InvalidArgumentError, "directions is empty"):
            xrt.register_kernel("other", "add", add, directions=[])
        for version in ("", "two\nlines", "x" * 129, "\u00e9"):
            with self.assertRaisesRegex(xrt.InvalidArgumentError, "version"):
                xrt.register_kernel("other", "add", add, version=version)
        with self.assertRaises(xrt.FileError):
            xrt.load_plugin("/nowhere/plugin.so")
        with self.assertRaises(xrt.ArgumentTypeError):
            xrt.load_plugin(3)


PLUGINS = pathlib.Path(os.environ.get("XRT_BUILD", "/nowhere")) / "tests" / "plugins"


@unittest.skipUnless((PLUGINS / "good.so").exists(), "the C++ tests' plugins are not built; set XRT_BUILD")
class PluginTest(unittest.TestCase):
    def said(self, program: str) -> str:
        """In a process of its own: a plugin stays for good."""
        program = "import pathlib, xpuruntime as xrt\n" + program
        return subprocess.check_output([sys.executable, "-c", program, str(PLUGINS)], text=True, timeout=60)

    def test_a_plugin_brings_its_kernels(self) -> None:
        said = self.said("import sys\n"
                         "print(xrt.load_plugin(pathlib.Path(sys.argv[1]) / 'good.so'))\n"
                         "print(xrt.explain('relu(f32[8])').kernel)")
        self.assertEqual(said, "good\nplugin_relu\n")

    def test_a_library_that_is_no_plugin_is_refused(self) -> None:
        with self.assertRaisesRegex(xrt.XpuRuntimeError, "no_symbol.so"):
            xrt.load_plugin(PLUGINS / "no_symbol.so")


if __name__ == "__main__":
    unittest.main()
