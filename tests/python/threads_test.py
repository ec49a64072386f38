"""The GIL is free while a kernel runs, many threads may call at once, and a forked child goes on working."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
import time
import unittest
from typing import Any

from packages import need

need("numpy")

import numpy as np

from xpuruntime import ops

LARGE = np.ones((700, 700), np.float64)


class Gil(unittest.TestCase):
    def test_another_thread_runs_python_while_a_kernel_runs(self) -> None:
        # Nobody is made to give up the GIL in this time, so the main thread can only get in where the call lets go.
        usual = sys.getswitchinterval()
        sys.setswitchinterval(1000)
        self.addCleanup(sys.setswitchinterval, usual)
        state = {"running": False}
        out = np.empty_like(LARGE)

        def work() -> None:
            # A thread's first call decides, and a result without `out` may have to be described: both let go of the GIL
            # for reasons of their own.
            ops.matmul(LARGE, LARGE, out=out)
            for _ in range(20):
                state["running"] = True
                ops.matmul(LARGE, LARGE, out=out)
                state["running"] = False

        worker = threading.Thread(target=work)
        worker.start()
        seen = False
        while worker.is_alive() and not seen:
            seen = state["running"]
            time.sleep(0)  # lets go of the GIL
        worker.join()
        self.assertTrue(seen)


class Threads(unittest.TestCase):
    def test_many_threads_get_their_own_results(self) -> None:
        wrong: list[Any] = []

        def work(number: int) -> None:
            for size in range(1, 40):
                x = np.full((size, 3), number, np.float32)
                if not (ops.add(x, x) == 2 * number).all() or not (ops.sum(x, dim=0) == size * number).all():
                    wrong.append((number, size))

        threads = [threading.Thread(target=work, args=(number,)) for number in range(8)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        self.assertEqual(wrong, [])


@unittest.skipIf("tsan" in os.environ.get("LD_PRELOAD", ""), "the thread sanitizer does not follow forks")
class Fork(unittest.TestCase):
    def in_child(self, body: Any) -> int:
        """How a forked child ends that runs `body`; it is stopped where it hangs."""
        child = os.fork()
        if child == 0:
            signal.alarm(60)
            status = 1
            try:
                body()
                status = 0
            finally:
                os._exit(status)
        return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])

    def test_a_child_works_after_the_parent_used_all_threads(self) -> None:
        expected = ops.matmul(LARGE, LARGE)

        def body() -> None:
            np.testing.assert_array_equal(ops.matmul(LARGE, LARGE), expected)
            np.testing.assert_array_equal(ops.add(LARGE, 1.0), LARGE + 1)

        self.assertEqual(self.in_child(body), 0)
        np.testing.assert_array_equal(ops.matmul(LARGE, LARGE), expected)  # and the parent as well

    def test_a_child_works_while_a_thread_of_the_parent_is_in_a_kernel(self) -> None:
        stop = threading.Event()

        def work() -> None:
            while not stop.is_set():
                ops.matmul(LARGE, LARGE)

        worker = threading.Thread(target=work)
        worker.start()
        try:
            for _ in range(5):
                self.assertEqual(self.in_child(lambda: ops.matmul(LARGE[:64, :64], LARGE[:64, :64])), 0)
        finally:
            stop.set()
            worker.join()


class DaemonThreads(unittest.TestCase):
    def test_one_that_is_inside_an_op_at_the_end_does_not_crash_the_process(self) -> None:
        program = (
            "import threading, time, numpy as np, xpuruntime as xrt\n"
            "a = np.ones((200, 200))\n"
            "def work():\n"
            "    while True: xrt.ops.matmul(a, a)\n"
            "for _ in range(3): threading.Thread(target=work, daemon=True).start()\n"
            "time.sleep(0.2)\n"
        )
        done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, timeout=60)
        self.assertEqual((done.returncode, done.stderr), (0, ""))


if __name__ == "__main__":
    unittest.main()
