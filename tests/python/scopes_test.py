"""Scopes: in force for a block, a function, a task or another thread, and gone afterwards whatever happens."""

import asyncio
import contextvars
import gc
import pathlib
import tempfile
import threading
import unittest
from collections.abc import AsyncIterator, Iterator

from scope_case import PROBLEM, ScopeCase, kernel

import xpuruntime as xrt
from xpuruntime import KernelPolicy


class WithPolicyTest(ScopeCase):
    def test_it_is_in_force_inside_and_gone_outside(self) -> None:
        with xrt.with_policy(KernelPolicy(matmul="reference")):
            self.assertEqual(kernel(), "reference")
            self.assertEqual(xrt.get_kernel_policy().get("matmul"), "reference")
        self.assertIsNone(xrt.get_kernel_policy().get("matmul"))

    def test_it_is_left_on_exceptions(self) -> None:
        with self.assertRaises(ZeroDivisionError), xrt.with_policy(matmul="reference"):
            1 / 0
        self.assertEqual(kernel(), self.usual)

    def test_nested_ones_layer(self) -> None:
        with xrt.with_policy(matmul="reference", threads=1):
            with xrt.with_policy(matmul="packed"):
                self.assertEqual(xrt.get_kernel_policy(), KernelPolicy(matmul="packed", threads=1))
                self.assertEqual(kernel(), "packed")
            self.assertEqual(kernel(), "reference")

    def test_one_object_may_be_entered_inside_itself_and_again(self) -> None:
        scope = xrt.with_policy(matmul="reference")
        for _ in range(2):
            with scope, scope:
                self.assertEqual(kernel(), "reference")
            self.assertEqual(kernel(), self.usual)

    def test_scopes_that_are_left_in_another_order_take_away_their_own(self) -> None:
        outer, inner = xrt.with_policy(matmul="reference", threads=1), xrt.with_policy(matmul="packed")
        outer.__enter__()
        inner.__enter__()
        outer.__exit__(None, None, None)
        self.assertEqual(xrt.get_kernel_policy(), KernelPolicy(matmul="packed"))
        self.assertEqual(kernel(), "packed")
        inner.__exit__(None, None, None)
        self.assertEqual(kernel(), self.usual)

    def test_leaving_what_was_not_entered_is_an_error_and_changes_nothing(self) -> None:
        for stray in (xrt.with_policy(matmul="packed"), xrt.autocast(), xrt.use_lock(None), xrt.current_scope()):
            with xrt.with_policy(matmul="reference"):
                with self.assertRaisesRegex(xrt.InvalidArgumentError, "it was not entered here; use it in a with"):
                    stray.__exit__(None, None, None)
                self.assertEqual(kernel(), "reference")
            with self.assertRaises(xrt.InvalidArgumentError):
                stray.__exit__(None, None, None)

    def test_leaving_once_too_often_is_an_error(self) -> None:
        scope = xrt.with_policy(matmul="reference")
        with scope, scope:
            pass
        with self.assertRaises(xrt.InvalidArgumentError):
            scope.__exit__(None, None, None)
        with scope:
            self.assertEqual(kernel(), "reference")
        self.assertEqual(kernel(), self.usual)

    def test_a_policy_that_is_changed_later_does_not_change_the_scope(self) -> None:
        policy = KernelPolicy(matmul="reference")
        scope = xrt.with_policy(policy)
        policy.set("matmul", "packed")
        with scope:
            self.assertEqual(kernel(), "reference")

    def test_the_policy_of_all_threads_does_not_reach_into_a_scope(self) -> None:
        before = xrt.get_kernel_policy()
        self.addCleanup(xrt.set_kernel_policy, before)
        with xrt.with_policy(threads=1):
            xrt.set_kernel_policy(matmul="reference")
            self.assertEqual(kernel(), self.usual)
        self.assertEqual(kernel(), "reference")
        xrt.set_kernel_policy(before)

    def test_a_rule_may_use_scopes_of_its_own_while_a_choice_is_made(self) -> None:
        inside: list[object] = []

        def condition(problem: object, profile: object) -> bool:
            with xrt.with_policy(relu="reference"):
                inside.append((xrt.explain("relu(f32[8])").kernel, xrt.get_kernel_policy().threads))
            inside.append(xrt.get_kernel_policy().get("relu"))
            return True

        rule = xrt.register_rule("matmul", condition, "packed")
        try:
            with xrt.with_policy(threads=1):
                self.assertEqual(kernel(), "packed")
                self.assertEqual(xrt.get_kernel_policy(), KernelPolicy(threads=1))
        finally:
            xrt.unregister_rule(rule)
        self.assertEqual(inside[:2], [("reference", 1), None])

    def test_what_cannot_be_right_is_refused_before_it_is_entered(self) -> None:
        with self.assertRaises(ValueError):
            xrt.with_policy(matmul="nope")
        with self.assertRaises(TypeError):
            xrt.Scope("matmul")  # type: ignore[arg-type]


class ThreadTest(ScopeCase):
    def on_a_thread(self, function) -> object:
        results: list[object] = []
        thread = threading.Thread(target=lambda: results.append(function()))
        thread.start()
        thread.join()
        return results[0]

    def test_another_thread_is_not_in_it(self) -> None:
        with xrt.with_policy(matmul="reference"):
            self.assertEqual(self.on_a_thread(kernel), self.usual)

    def test_a_captured_scope_is_in_force_where_it_is_entered(self) -> None:
        with xrt.with_policy(matmul="reference"), xrt.with_policy(threads=1):
            scope = xrt.current_scope()

        def work() -> object:
            with scope:
                return xrt.get_kernel_policy()

        self.assertEqual(self.on_a_thread(work), KernelPolicy(matmul="reference", threads=1))
        self.assertEqual(self.on_a_thread(lambda: scope.run(kernel)), "reference")

    def test_many_threads_may_be_in_one_scope_at_once(self) -> None:
        scope, barrier, seen = xrt.with_policy(matmul="reference"), threading.Barrier(4), []

        def work() -> None:
            for _ in range(50):
                barrier.wait()
                with scope:
                    barrier.wait()
                    seen.append(kernel())
                seen.append(kernel())

        threads = [threading.Thread(target=work) for _ in range(4)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        self.assertEqual(seen.count("reference"), 200)
        self.assertEqual(seen.count(self.usual), 200)

    def test_a_thread_that_was_given_the_context_is_in_it(self) -> None:
        with xrt.with_policy(matmul="reference"):
            context = contextvars.copy_context()
        self.assertEqual(self.on_a_thread(lambda: context.run(kernel)), "reference")
        self.assertEqual(self.on_a_thread(kernel), self.usual)

    def test_one_that_another_thread_is_in_may_be_left_here_without_harm(self) -> None:
        def work() -> object:
            scope.__exit__(None, None, None)
            with self.assertRaises(xrt.InvalidArgumentError):
                scope.__exit__(None, None, None)
            return kernel()

        scope = xrt.with_policy(matmul="reference")
        with scope:
            self.assertEqual(self.on_a_thread(work), self.usual)
            self.assertEqual(kernel(), "reference")
        self.assertEqual(kernel(), self.usual)

    def test_a_generator_may_end_or_be_closed_in_another_context_than_it_began_in(self) -> None:
        def produce() -> Iterator[int]:
            with xrt.with_policy(matmul="reference"):
                yield 1

        for end in (lambda made: made.close(), lambda made: list(made)):
            made = produce()
            contextvars.copy_context().run(next, made)
            self.on_a_thread(lambda: contextvars.Context().run(end, made))
            failing = produce()
            contextvars.copy_context().run(next, failing)
            with self.assertRaises(ZeroDivisionError):
                failing.throw(ZeroDivisionError())

    def test_a_thread_may_end_inside_a_scope(self) -> None:
        def work() -> object:
            xrt.with_policy(matmul="reference").__enter__()
            return kernel()

        self.assertEqual(self.on_a_thread(work), "reference")


class AsyncTest(ScopeCase):
    def test_each_task_has_its_own(self) -> None:
        async def work(name: str) -> list[object]:
            seen = []
            with xrt.with_policy(matmul=name):
                for _ in range(5):
                    await asyncio.sleep(0)
                    seen.append(kernel())
            return seen

        async def main() -> list[list[object]]:
            return await asyncio.gather(*(work(name) for name in ("reference", "packed", "small")))

        for name, seen in zip(("reference", "packed", "small"), asyncio.run(main())):
            self.assertEqual(seen, [name] * 5)

    def test_a_task_inherits_the_scope_it_was_made_in(self) -> None:
        async def main() -> object:
            with xrt.with_policy(matmul="reference"):
                task = asyncio.ensure_future(asyncio.to_thread(kernel))
            self.assertEqual(kernel(), self.usual)
            return await task

        self.assertEqual(asyncio.run(main()), "reference")

    def test_an_async_generator_may_be_finished_by_the_loop(self) -> None:
        problems: list[object] = []

        async def produce() -> AsyncIterator[object]:
            with xrt.with_policy(matmul="reference"):
                yield kernel()
                yield kernel()

        async def work(made: AsyncIterator[object]) -> object:
            return await made.__anext__()

        async def main() -> object:
            asyncio.get_running_loop().set_exception_handler(lambda loop, context: problems.append(context))
            made = produce()
            first = await asyncio.ensure_future(work(made))  # in a context of its own
            del made
            gc.collect()
            left = produce()
            await asyncio.ensure_future(work(left))
            return first  # the loop closes what is left

        self.assertEqual(asyncio.run(main()), "reference")
        self.assertEqual(problems, [])
        self.assertEqual(kernel(), self.usual)

    def test_a_cancelled_task_leaves_it(self) -> None:
        async def work() -> None:
            with xrt.with_policy(matmul="reference"):
                await asyncio.sleep(60)

        async def main() -> None:
            task = asyncio.ensure_future(work())
            await asyncio.sleep(0)
            task.cancel()
            with self.assertRaises(asyncio.CancelledError):
                await task
            self.assertEqual(kernel(), self.usual)

        asyncio.run(main())


class AutocastTest(ScopeCase):
    def precision(self) -> str:
        return xrt.explain(PROBLEM).precision.forward

    def test_ops_run_at_the_lower_precision_inside(self) -> None:
        with xrt.autocast("f16"):
            decision = xrt.explain(PROBLEM)
            self.assertEqual(decision.precision.forward, "f16")
            self.assertEqual(
                [(step.from_dtype, step.to_dtype) for step in decision.casts],
                [("f32", "f16"), ("f32", "f16"), ("f16", "f32")],
            )
        self.assertEqual(self.precision(), "f32")

    def test_the_innermost_counts_and_one_that_is_not_enabled_turns_it_off(self) -> None:
        with xrt.autocast():
            self.assertEqual(self.precision(), "bf16")
            with xrt.autocast(enabled=False):
                self.assertEqual(self.precision(), "f32")
            with xrt.autocast("float16"), xrt.with_policy(threads=1):
                self.assertEqual(self.precision(), "f16")
            self.assertEqual(self.precision(), "bf16")

    def test_its_own_registry_counts_as_it_is_when_the_scope_is_entered(self) -> None:
        registry = xrt.AmpRegistry()
        scope = xrt.autocast(registry=registry)
        with scope:
            before = self.precision()
        registry.register_rule(xrt.OpPrecisionRule("matmul", "higher", "higher"))
        with scope:
            self.assertEqual(self.precision(), "f32")
        del registry
        gc.collect()
        with scope:
            self.assertEqual(self.precision(), "f32")
        self.assertEqual(before, "bf16")

    def test_bad_arguments(self) -> None:
        for use in (lambda: xrt.autocast("f32"), lambda: xrt.autocast("f99")):
            with self.assertRaises(ValueError):
                use()
        for use in (lambda: xrt.autocast(3), lambda: xrt.autocast(enabled=1), lambda: xrt.autocast(registry=3)):
            with self.assertRaises(TypeError):
                use()


class LockScopeTest(ScopeCase):
    def test_what_a_lock_does_not_hold_is_refused_inside(self) -> None:
        with xrt.with_policy(matmul="reference"):
            lock = xrt.record_lock([PROBLEM])
        with xrt.use_lock(lock):
            decision = xrt.explain(PROBLEM)
            self.assertEqual((decision.kernel, decision.level), ("reference", "lock"))
            self.assertIsNone(xrt.explain("relu(f32[8])").kernel)
            with xrt.use_lock(None):
                self.assertEqual(kernel(), self.usual)

    def test_it_takes_a_path_and_a_mode(self) -> None:
        with tempfile.TemporaryDirectory() as folder:
            path = pathlib.Path(folder) / "kernels.lock"
            with xrt.with_policy(matmul="reference"):
                xrt.record_lock([PROBLEM]).save(path)
            for mode in ("strict", "revalidate", xrt.LockMode.revalidate):
                with xrt.use_lock(path, mode):
                    self.assertEqual(kernel(), "reference")

    def test_bad_arguments(self) -> None:
        for use in (lambda: xrt.use_lock(3), lambda: xrt.use_lock(None, 3), lambda: xrt.set_lock(3),
                    lambda: xrt.set_lock(None, 3)):
            with self.assertRaises(TypeError):
                use()
        with self.assertRaisesRegex(ValueError, r"\[set_lock\].*did you mean strict"):
            xrt.set_lock(None, "strikt")
        with self.assertRaisesRegex(ValueError, "did you mean strict"):
            xrt.use_lock(None, "strikt")
        with self.assertRaises(xrt.FileError):
            xrt.use_lock("/there/is/no/such.lock")


if __name__ == "__main__":
    unittest.main()
