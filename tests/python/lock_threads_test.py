"""Locks and threads: the process's lock is in force everywhere, and a scope lets nobody run unlocked."""

import asyncio
import contextvars
import gc
import os
import pathlib
import subprocess
import sys
import tempfile
import threading
import unittest
from concurrent.futures import ThreadPoolExecutor

import numpy
import xpuruntime as xrt

PROBLEM = "matmul(f32[24,24], f32[24,24])"
X = numpy.ones((24, 24), numpy.float32)
REFUSED = "a lock is in force in a scope of another thread or task"


def run() -> tuple[str, str]:
    xrt.ops.matmul(X, X)
    decision = xrt.explain(PROBLEM)
    return decision.kernel, decision.level


def answer_of(function) -> object:
    """What a function returns or raises on a thread of its own."""
    answers = []

    def work() -> None:
        try:
            answers.append(function())
        except xrt.XpuRuntimeError as error:
            answers.append(error)

    thread = threading.Thread(target=work)
    thread.start()
    thread.join()
    return answers[0]


class LockThreadsTest(unittest.TestCase):
    def setUp(self) -> None:
        with xrt.with_policy(matmul="reference"):
            self.lock = xrt.record_lock(PROBLEM)
        self.usual = run()
        self.assertNotEqual(self.usual, ("reference", "lock"))
        self.addCleanup(xrt.set_lock, None)
        self.pool = ThreadPoolExecutor(1)
        self.addCleanup(self.pool.shutdown)
        self.assertEqual(self.pool.submit(run).result(), self.usual)  # the thread is older than any lock

    def test_a_scope_that_nobody_keeps_lets_no_worker_pass(self) -> None:
        context = contextvars.copy_context()
        context.run(lambda: xrt.use_lock(self.lock).__enter__())
        self.assertIn(REFUSED, str(answer_of(run)))
        self.assertEqual(context.run(run), ("reference", "lock"))
        del context
        self.assertEqual(answer_of(run), self.usual)

    def test_a_scope_that_was_not_left_lets_no_worker_pass_though_its_context_is_gone(self) -> None:
        scope = xrt.use_lock(self.lock)
        for _ in range(2):
            contextvars.copy_context().run(scope.__enter__)
        gc.collect()
        for _ in range(2):
            self.assertIn(REFUSED, str(answer_of(run)))
            with self.assertRaisesRegex(xrt.XpuRuntimeError, REFUSED):
                run()
            scope.__exit__(None, None, None)
        self.assertEqual((run(), answer_of(run)), (self.usual, self.usual))

    def test_neither_does_a_generator_whose_steps_run_in_contexts_of_their_own(self) -> None:
        def stream():
            with xrt.use_lock(self.lock):
                while True:
                    yield answer_of(run)

        steps = stream()
        for _ in range(3):
            self.assertIn(REFUSED, str(contextvars.copy_context().run(next, steps)))
        steps.close()
        self.assertEqual(run(), self.usual)

    def test_a_task_that_outlives_its_scope_lets_no_worker_pass(self) -> None:
        answers = []

        async def late(left: asyncio.Event) -> None:
            await left.wait()
            answers.append(run())
            try:
                answers.append(await asyncio.get_running_loop().run_in_executor(self.pool, run))
            except xrt.XpuRuntimeError as error:
                answers.append(str(error))

        async def main() -> None:
            left = asyncio.Event()
            with xrt.use_lock(self.lock):
                task = asyncio.create_task(late(left))
                await asyncio.sleep(0)
            left.set()
            await task

        asyncio.run(main())
        self.assertEqual(answers[0], ("reference", "lock"))
        self.assertIn(REFUSED, answers[1])

    def test_what_a_kernels_own_calls_may_not_do_under_a_lock_is_no_fault_of_it(self) -> None:
        def nested(problem: xrt.Problem, inputs: list, outputs: list) -> None:
            xrt.ops.matmul(X[:3], X)
            numpy.copyto(outputs[0].numpy(), inputs[0].numpy())

        xrt.register_kernel("nested", "relu", nested, version="1")
        self.addCleanup(xrt.unregister_kernel, "nested", "relu")
        with xrt.with_policy(relu={"kernel": "nested", "mode": "force"}):
            lock = xrt.record_lock("relu(f32[24,24])")
        with xrt.use_lock(lock), self.assertRaises(xrt.XpuRuntimeError):
            xrt.ops.relu(X)
        self.assertEqual(xrt.quarantined(), [])

    def test_a_lock_holds_for_memory_of_other_alignment_where_the_plan_is_the_same(self) -> None:
        lock = xrt.record_lock("add(f32[64], f32[64])")
        memory = numpy.ones(80, numpy.float32)
        with xrt.use_lock(lock):
            for first in range(4):
                xrt.ops.add(memory[first : first + 64], memory[:64])

    def test_copies_are_made_by_kernels_of_the_library_alone(self) -> None:
        def zeros(problem: xrt.Problem, inputs: list, outputs: list) -> None:
            outputs[0].numpy()[...] = 0

        xrt.register_kernel("mycopy", "copy", zeros, version="2")
        self.addCleanup(xrt.unregister_kernel, "mycopy", "copy")
        self.assertNotIn("mycopy", xrt.explain("softmax(f32[64,100]{1,64})").plan)

    def test_the_processs_lock_reaches_every_thread(self) -> None:
        with tempfile.TemporaryDirectory() as folder:
            path = pathlib.Path(folder) / "kernels.lock"
            self.lock.save(path)
            xrt.set_lock(path)

        async def in_executor() -> object:
            return await asyncio.get_running_loop().run_in_executor(self.pool, run)

        with xrt.with_policy(matmul="packed"):
            found = [run(), self.pool.submit(run).result(), answer_of(run), asyncio.run(in_executor())]
        self.assertEqual(found, [("reference", "lock")] * 4)
        with self.assertRaisesRegex(xrt.XpuRuntimeError, "the lock has no entry for it"):
            self.pool.submit(xrt.ops.add, X, X).result()
        with xrt.use_lock(None):
            self.assertEqual(run(), self.usual)
        xrt.set_lock(None)
        self.assertEqual(self.pool.submit(run).result(), self.usual)

    def test_workers_do_not_run_unlocked_while_a_scope_has_a_lock(self) -> None:
        with xrt.use_lock(self.lock):
            self.assertEqual(run(), ("reference", "lock"))
            with self.assertRaisesRegex(xrt.XpuRuntimeError, REFUSED):
                self.pool.submit(run).result()
            self.assertRegex(str(answer_of(run)), REFUSED)
            scope = xrt.current_scope()
            self.assertEqual(self.pool.submit(scope.run, run).result(), ("reference", "lock"))
            self.assertEqual(answer_of(lambda: xrt.use_lock(None).run(run)), self.usual)
        self.assertEqual(self.pool.submit(run).result(), self.usual)

    def test_neither_do_those_of_a_task_that_waits_for_them(self) -> None:
        pool = self.pool

        async def locked(waiting: asyncio.Event, go_on: asyncio.Event) -> object:
            with xrt.use_lock(self.lock):
                waiting.set()
                await go_on.wait()
                return await asyncio.get_running_loop().run_in_executor(pool, run)

        async def main() -> None:
            waiting, go_on = asyncio.Event(), asyncio.Event()
            task = asyncio.create_task(locked(waiting, go_on))
            await waiting.wait()
            with self.assertRaisesRegex(xrt.XpuRuntimeError, REFUSED):  # a task that is outside of every lock
                run()
            with xrt.use_lock(None):
                self.assertEqual(run(), self.usual)
            go_on.set()
            with self.assertRaisesRegex(xrt.XpuRuntimeError, REFUSED):
                await task
            self.assertEqual(run(), self.usual)

        asyncio.run(main())

    def test_a_scope_that_was_captured_holds_its_lock_too(self) -> None:
        with xrt.use_lock(self.lock):
            scope = xrt.current_scope()
        with scope, self.assertRaisesRegex(xrt.XpuRuntimeError, REFUSED):
            self.pool.submit(run).result()
        self.assertEqual(self.pool.submit(run).result(), self.usual)

    def test_a_saved_context_or_an_event_loop_holds_its_lock_until_it_ends(self) -> None:
        for make, end in ((contextvars.copy_context, lambda context: None),
                          (asyncio.new_event_loop, lambda loop: loop.close())):
            with xrt.use_lock(self.lock):
                made = make()
            with self.assertRaisesRegex(xrt.XpuRuntimeError, "an event loop or a saved context .* still exists"):
                run()
            end(made)
            del made
            self.assertEqual(run(), self.usual)

    def test_a_scope_that_is_entered_often_is_held_until_it_was_left_as_often(self) -> None:
        scope = xrt.use_lock(self.lock)
        with scope:
            with scope:
                pass
            self.assertRegex(str(answer_of(run)), REFUSED)
        self.assertEqual(answer_of(run), self.usual)

    def test_the_environments_lock_is_in_force_from_the_first_use(self) -> None:
        program = (
            "import numpy, xpuruntime as xrt\n"
            "from concurrent.futures import ThreadPoolExecutor\n"
            f"with ThreadPoolExecutor(1) as pool: print(pool.submit(xrt.explain, '{PROBLEM}').result().level)\n"
        )

        def output(path: pathlib.Path) -> subprocess.CompletedProcess:
            variables = {**os.environ, "XPURUNTIME_LOCK": str(path)}
            return subprocess.run([sys.executable, "-c", program], env=variables, capture_output=True, text=True, timeout=120)

        with tempfile.TemporaryDirectory() as folder:
            path = pathlib.Path(folder) / "kernels.lock"
            self.lock.save(path)
            self.assertEqual(output(path).stdout, "lock\n")
            path.write_text("{")
            bad = output(path)
        self.assertNotEqual(bad.returncode, 0)
        self.assertRegex(bad.stderr, "XPURUNTIME_LOCK: lock file .*kernels.lock': .*not JSON")


if __name__ == "__main__":
    unittest.main()
