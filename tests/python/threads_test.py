"""The GIL is free while a kernel runs, many threads may call at once, and a forked child goes on working."""

from __future__ import annotations

import itertools
import os
import pathlib
import signal
import subprocess
import sys
import tempfile
import threading
import time
import unittest
from typing import Any

from packages import need

need("numpy")

import numpy as np

import xpuruntime as xrt
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

    def children_work_beside(self, work: Any) -> None:
        stop = threading.Event()

        def repeat() -> None:
            while not stop.is_set():
                work()

        worker = threading.Thread(target=repeat)
        worker.start()
        try:
            for _ in range(10):
                self.assertEqual(self.in_child(lambda: ops.matmul(LARGE[:64, :64], LARGE[:64, :64])), 0)
        finally:
            stop.set()
            worker.join()

    def test_a_child_works_while_a_thread_of_the_parent_is_in_a_kernel(self) -> None:
        self.children_work_beside(lambda: ops.matmul(LARGE, LARGE))

    def test_a_child_works_while_a_thread_of_the_parent_decides(self) -> None:
        sizes = itertools.count(1)  # each a problem of its own

        def work() -> None:
            x = np.ones((next(sizes), 2), np.float32)
            ops.add(x, x)
            ops.matmul(x, x.T)

        self.children_work_beside(work)

    def test_a_child_decides_what_a_thread_of_the_parent_was_deciding(self) -> None:
        asked, go_on = threading.Event(), threading.Event()
        parent = os.getpid()

        def rule(problem: Any, profile: Any) -> bool:
            if os.getpid() == parent:
                asked.set()
                go_on.wait(60)
            return False

        number = xrt.register_rule("add", rule, "reference")
        self.addCleanup(xrt.unregister_rule, number)
        x = np.ones((3, 1000), np.float32)
        worker = threading.Thread(target=lambda: ops.add(x, x))
        worker.start()
        try:
            self.assertTrue(asked.wait(60))
            self.assertEqual(self.in_child(lambda: ops.add(x, x)), 0)
        finally:
            go_on.set()
            worker.join()


    def test_calls_import_nothing_that_the_package_could(self) -> None:
        program = ("import sys, xpuruntime as xrt\n"
                   "print(sorted({'json', 'threading', 'types'} - set(sys.modules)))\n")
        done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, timeout=60)
        self.assertEqual(done.stdout, "[]\n", done.stderr)

    def test_a_child_works_that_is_forked_during_the_first_use(self) -> None:
        program = (
            "import os, sys, threading, time, numpy as np, xpuruntime as xrt\n"
            "sys.setswitchinterval(1e-6)\n"
            "x, began = np.ones((8, 8), np.float32), []\n"
            "def first(): began.append(1); xrt.devices()\n"
            "threading.Thread(target=first).start()\n"
            "while not began: pass\n"
            "time.sleep(float(sys.argv[1]))\n"
            "child = os.fork()\n"
            "if child == 0: xrt.ops.add(x, x); xrt.ops.matmul(x, x); os._exit(0)\n"
            "os._exit(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]))\n"
        )
        for delay in (0, 0.0003, 0.0005, 0.001, 0.001, 0.002, 0.004, 0.008):
            command = [sys.executable, "-W", "ignore", "-c", program, str(delay)]
            done = subprocess.run(command, capture_output=True, text=True, timeout=60)
            self.assertEqual((done.returncode, done.stderr), (0, ""), delay)


class DaemonThreads(unittest.TestCase):
    def ends_well(self, work: str, before: str = "", runs: int = 3) -> None:
        """Threads that do `work` for ever do not crash a process that ends."""
        program = (
            "import itertools, threading, time, numpy as np, xpuruntime as xrt\n"
            "a, numbers = np.ones((200, 200)), itertools.count(1)\n" + before +
            "def forever():\n"
            f"    while True: {work}\n"
            "for _ in range(3): threading.Thread(target=forever, daemon=True).start()\n"
            "time.sleep(0.2)\n"
        )
        for _ in range(runs):
            done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, timeout=60)
            self.assertEqual((done.returncode, done.stderr), (0, ""))

    def test_inside_kernels(self) -> None:
        self.ends_well("xrt.ops.matmul(a, a)")

    def test_inside_decisions(self) -> None:
        self.ends_well("xrt.explain(f'add(f32[{next(numbers)}], f32[1])')")

    # It reports to Python between its measurements, also when the interpreter has ended and the end waits for it.
    def test_inside_tuning(self) -> None:
        with tempfile.TemporaryDirectory() as folder:
            text = "matmul(f32[1000,1000], f32[1000,1000])"
            for delay in (0.3, 0.5, 0.7):
                program = (
                    "import threading, time, xpuruntime as xrt\n"
                    "def forever():\n"
                    f"    while True: xrt.tune('{text}', budget_s=1.0, store='{folder}/{delay}.sqlite')\n"
                    "threading.Thread(target=forever, daemon=True).start()\n"
                    f"time.sleep({delay})\n"
                )
                done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, timeout=60)
                self.assertEqual((done.returncode, done.stderr), (0, ""))

    # Longer than the end waits: the thread then still runs while the process destroys what its libraries have.
    def test_inside_a_call_of_many_seconds(self) -> None:
        self.ends_well("xrt.record_lock(['matmul(f32[m,256], f32[256,256]) where m=1..100000'])", runs=1)

    def test_the_end_waits_for_a_call_that_runs(self) -> None:
        program = (
            "import threading, time, numpy as np, xpuruntime as xrt\n"
            "a, began = np.ones((600, 600)), threading.Event()\n"
            "xrt.set_kernel_policy(matmul={'kernel': 'reference', 'mode': 'force'})\n"
            "start = time.perf_counter()\n"
            "xrt.ops.matmul(a[:2], a)\n"
            # Long enough to run still when the program ends, and far from the limit, under a sanitizer too.
            "rows = max(3, min(600, int(1 / (time.perf_counter() - start))))\n"
            "def call(): began.set(); xrt.ops.matmul(a[:rows], a)\n"
            "threading.Thread(target=call, daemon=True).start()\n"
            "began.wait()\n"
            "time.sleep(0.01)\n"
        )
        with tempfile.TemporaryDirectory() as folder:
            lines = pathlib.Path(folder, "lines")
            environment = os.environ | {"XPURUNTIME_VERBOSE": f"2:{lines}"}
            done = subprocess.run(
                [sys.executable, "-c", program], capture_output=True, text=True, timeout=60, env=environment
            )
            self.assertEqual((done.returncode, done.stderr), (0, ""))
            called = [line for line in lines.read_text().splitlines() if "called matmul" in line]
            self.assertEqual(len(called), 2, called)

    # Where Python code that C++ called asks for the GIL in vain, C++ must not go on: in these about every second process
    # crashed that did.
    def test_inside_python_kernels(self) -> None:
        kernel = (
            "def run(problem, inputs, outputs): np.copyto(np.asarray(outputs[0]), np.asarray(inputs[0]))\n"
            "xrt.register_kernel('mine', 'relu', run)\n"
            "xrt.set_kernel_policy(relu={'kernel': 'mine', 'mode': 'force'})\n"
        )
        self.ends_well("xrt.ops.relu(a)", kernel, runs=10)

    def test_inside_what_runs_when_an_object_of_a_kernel_is_let_go(self) -> None:
        kernel = (
            "class Slow:\n"
            "    def __del__(self): time.sleep(0.002)\n"
            "def run(problem, inputs, outputs):\n"
            "    np.copyto(np.asarray(outputs[0]), np.asarray(inputs[0]))\n"
            "    inputs.append(Slow())\n"
            "xrt.register_kernel('mine', 'relu', run)\n"
            "xrt.set_kernel_policy(relu={'kernel': 'mine', 'mode': 'force'})\n"
        )
        self.ends_well("xrt.ops.relu(a)", kernel)

    def test_inside_arrays_that_are_python_objects(self) -> None:
        array = (
            "class Array:\n"
            "    def __dlpack__(self, **_): return sum(range(2000)) and a.__dlpack__()\n"
            "    def __dlpack_device__(self): return a.__dlpack_device__()\n"
            "    def __array_namespace__(self, **_): return np\n"
        )
        self.ends_well("xrt.ops.relu(Array())", array, runs=10)

    def test_inside_finalizers_that_an_allocation_of_ours_runs(self) -> None:
        cycles = (
            "import gc\n"
            "gc.set_threshold(1)\n"
            "class Cycle:\n"
            "    alive = 0\n"
            "    def __init__(self): self.own, Cycle.alive = self, Cycle.alive + 1\n"
            "    def __del__(self): Cycle.alive -= 1; time.sleep(0)\n"
        )
        # Few at a time: others are made while one is let go, and the main thread would collect them for ever.
        self.ends_well("Cycle.alive > 5 or Cycle(); xrt.explain('add(f32[3], f32[3])').to_dict()", cycles, runs=10)

    def test_inside_rules(self) -> None:
        self.ends_well(
            "xrt.unregister_rule(xrt.register_rule('relu', lambda *_: sum(range(2000)) < 0, 'reference')), "
            "xrt.ops.relu(np.ones(next(numbers)))"
        )


if __name__ == "__main__":
    unittest.main()
