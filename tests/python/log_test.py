"""The dispatch log: what ran, how long it took, what was dropped, and the trace."""

import json
import pathlib
import tempfile
import threading
import unittest

import numpy as np

import xpuruntime as xrt


def add() -> None:
    ones = np.ones(8, np.float32)
    xrt.ops.add(ones, ones)


class LogTest(unittest.TestCase):
    def setUp(self) -> None:
        self.addCleanup(xrt.clear_dispatch_logs)
        self.addCleanup(xrt.disable_dispatch_logging)
        xrt.clear_dispatch_logs()

    def test_nothing_is_logged_until_it_is_asked_for(self) -> None:
        xrt.disable_dispatch_logging()
        add()
        self.assertFalse(xrt.dispatch_logging_enabled())
        self.assertEqual(xrt.get_dispatch_logs(), [])

    def test_an_entry_says_what_ran_on_what(self) -> None:
        xrt.enable_dispatch_logging()
        self.assertTrue(xrt.dispatch_logging_enabled())
        with xrt.with_policy(matmul="reference"):
            xrt.ops.matmul(np.ones((3, 4)), np.ones((4, 5)))
        (log,) = xrt.get_dispatch_logs()
        self.assertEqual((log.op_name, log.selected_kernel), ("matmul", "reference"))
        self.assertEqual((log.input_shape, log.dtype), ((3, 4), "float64"))
        self.assertGreater(log.elapsed_us, 0)
        self.assertGreater(log.start_us, 0)
        self.assertFalse(log.failed or log.device_time)
        self.assertEqual((log.decision.kernel, log.decision.level), ("reference", "prefer"))
        self.assertEqual(log.decision.problem, xrt.Problem("matmul(f64[3,4], f64[4,5])"))
        self.assertRegex(repr(log), r"^DispatchLog\(matmul: reference, \d+\.\d\d us\)$")

    def test_entries_are_in_the_order_of_the_calls(self) -> None:
        xrt.enable_dispatch_logging()
        ones = np.ones((2, 2), np.float32)
        for op in (xrt.ops.relu, xrt.ops.exp, xrt.ops.sqrt):
            op(ones)
        self.assertEqual([log.op_name for log in xrt.get_dispatch_logs()], ["relu", "exp", "sqrt"])
        starts = [log.start_us for log in xrt.get_dispatch_logs()]
        self.assertEqual(starts, sorted(starts))

    def test_an_entry_outlives_the_log(self) -> None:
        xrt.enable_dispatch_logging()
        add()
        (log,) = xrt.get_dispatch_logs()
        xrt.clear_dispatch_logs()
        self.assertEqual(log.decision.problem.op, "add")
        self.assertEqual(xrt.get_dispatch_logs(), [])

    def test_what_is_there_stays_when_logging_ends(self) -> None:
        xrt.enable_dispatch_logging()
        add()
        xrt.disable_dispatch_logging()
        add()
        self.assertEqual(len(xrt.get_dispatch_logs()), 1)

    def test_a_full_log_counts_what_it_drops(self) -> None:
        def work() -> None:  # on a thread of its own: a ring keeps the size that it was made with
            for _ in range(7):
                add()

        xrt.enable_dispatch_logging(4)
        thread = threading.Thread(target=work)
        thread.start()
        thread.join()
        self.assertEqual(len(xrt.get_dispatch_logs()), 4)
        self.assertEqual(xrt.dropped_logs(), 3)
        xrt.clear_dispatch_logs()
        self.assertEqual(xrt.dropped_logs(), 0)

    def test_threads_are_told_apart(self) -> None:
        xrt.enable_dispatch_logging()
        add()
        thread = threading.Thread(target=add)
        thread.start()
        thread.join()
        self.assertEqual(len({log.thread for log in xrt.get_dispatch_logs()}), 2)

    def test_bad_capacities(self) -> None:
        for capacity in (0, -1, 1 << 40):
            with self.assertRaises(ValueError):
                xrt.enable_dispatch_logging(capacity)
        for wrong in ("many", 1.5, None):
            with self.assertRaises(xrt.ArgumentTypeError):
                xrt.enable_dispatch_logging(wrong)  # type: ignore[arg-type]


class TraceTest(unittest.TestCase):
    def test_a_trace_has_a_slice_for_each_call(self) -> None:
        self.addCleanup(xrt.clear_dispatch_logs)
        self.addCleanup(xrt.disable_dispatch_logging)
        xrt.clear_dispatch_logs()
        xrt.enable_dispatch_logging()
        add()
        add()
        with tempfile.TemporaryDirectory() as folder:
            path = pathlib.Path(folder) / "trace.json"
            xrt.save_trace(path)
            slices = [event for event in json.loads(path.read_text())["traceEvents"] if event["ph"] == "X"]
            with self.assertRaises(xrt.FileError):
                xrt.save_trace(path / "below")
        self.assertEqual(len(slices), 2)
        for event, log in zip(slices, xrt.get_dispatch_logs()):
            # The two readings scale the same ticks, each to a part in a thousand.
            self.assertAlmostEqual(event["dur"], log.elapsed_us, delta=log.elapsed_us / 500)
            self.assertEqual(event["args"]["kernel"], log.selected_kernel)
        with self.assertRaises(TypeError):
            xrt.save_trace(3)  # type: ignore[arg-type]


if __name__ == "__main__":
    unittest.main()
