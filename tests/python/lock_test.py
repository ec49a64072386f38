"""Locks: recorded, saved, compared and verified."""

import copy
import json
import pathlib
import pickle
import tempfile
import unittest

import numpy
import xpuruntime as xrt

MATMUL = "matmul(f32[24,24], f32[24,24]) @cpu:0"
ADD = "add(f32[16], f32[16]) @cpu:0"


class LockTest(unittest.TestCase):
    def setUp(self) -> None:
        self.path = pathlib.Path(self.enterContext(tempfile.TemporaryDirectory())) / "kernels.lock"

    def test_it_records_what_is_decided_under_the_policy_in_force(self) -> None:
        usual = xrt.record_lock([MATMUL, xrt.Problem(ADD)])
        self.assertEqual([entry.problem for entry in usual.entries], [ADD, MATMUL])
        self.assertEqual(usual.find(MATMUL).kernel, xrt.explain(MATMUL).kernel)
        with xrt.with_policy(matmul="reference"):
            forced = xrt.record_lock(MATMUL)
        self.assertEqual(forced.find(xrt.Problem(MATMUL)).kernel, "reference")
        self.assertIn(ADD, usual)
        self.assertNotIn(ADD, forced)
        self.assertEqual((len(usual), len(forced)), (2, 1))

    def test_find_gives_the_entry_of_the_range_that_holds_a_problem(self) -> None:
        lock = xrt.record_lock("add(f32[n], f32[n]) where n=1..16")
        (entry,) = lock.entries
        self.assertEqual(lock.find(entry.problem), entry)
        self.assertEqual(lock.find("add(f32[n], f32[n]) where n=1..16"), entry)
        self.assertEqual(lock.find(xrt.ProblemRange(entry.problem)), entry)
        for text in ("add(f32[rows], f32[rows]) where rows=1..16", xrt.ProblemRange("add(f32[m], f32[m]) where m=1..16")):
            self.assertEqual(lock.find(text), entry)
            self.assertIn(text, lock)
        self.assertEqual(lock.find(ADD), entry)
        self.assertIsNone(lock.find("add(f32[17], f32[17])"))
        self.assertIsNone(lock.find("add(f32[n], f32[n]) where n=1..8"))
        self.assertIn(xrt.Problem("add(f32[7], f32[7])"), lock)
        self.assertNotIn("add(f32[17], f32[17])", lock)

    def test_it_records_the_log_as_it_ran(self) -> None:
        xrt.enable_dispatch_logging()
        self.addCleanup(xrt.clear_dispatch_logs)
        self.addCleanup(xrt.disable_dispatch_logging)
        x = numpy.ones((24, 24), numpy.float32)
        with xrt.with_policy(matmul="reference"):
            xrt.ops.matmul(x, x)
        lock = xrt.record_lock(xrt.get_dispatch_logs())
        self.assertEqual([(entry.problem, entry.kernel) for entry in lock.entries], [(MATMUL, "reference")])
        self.assertEqual(xrt.record_lock(xrt.get_dispatch_logs()[0]), lock)

    def test_a_lock_of_the_log_replays_calls_in_another_precision(self) -> None:
        x = numpy.ones((8, 12), numpy.float32)
        calls = {
            "autocast": lambda: xrt.ops.linear(x, x),
            "dtype": lambda: xrt.ops.relu(x, dtype="f16"),
        }
        for name, call in calls.items():
            with self.subTest(name), xrt.autocast("bf16"):
                xrt.enable_dispatch_logging()
                wanted = call()
                lock = xrt.record_lock(xrt.get_dispatch_logs())
                xrt.disable_dispatch_logging()
                xrt.clear_dispatch_logs()
                with xrt.use_lock(lock):
                    got = call()
                self.assertEqual(got.dtype, wanted.dtype)
                self.assertEqual(got.tobytes(), wanted.tobytes())

    def test_a_lock_of_texts_recorded_in_autocast_replays_the_calls_there(self) -> None:
        x, table = numpy.ones((8, 12), numpy.float32), numpy.arange(80, dtype=numpy.float16).reshape(10, 8)
        rows = numpy.array([3, 0, 9, 9])
        with xrt.autocast("bf16"):
            texts = ["linear(f32[8,12], f32[8,12])", "softmax(f16[10,8])", "embedding(i64[4], f16[10,8])"]
            lock = xrt.record_lock(texts)
            self.assertIn("rows", [entry.kernel for entry in lock.entries])
            with xrt.use_lock(lock):
                xrt.ops.linear(x, x)
                xrt.ops.softmax(table)
                looked_up = xrt.ops.embedding(rows, table)
        self.assertEqual(looked_up.dtype, numpy.float16)
        numpy.testing.assert_array_equal(looked_up, table[rows])

    def test_what_a_lock_in_force_lacks_is_recorded_as_its_error_says(self) -> None:
        add = xrt.record_lock([ADD])
        xrt.set_lock(add)
        self.addCleanup(xrt.set_lock, None)
        x = numpy.ones((24, 24), numpy.float32)
        with self.assertRaisesRegex(xrt.NotSupportedError, r"record it too \(xrt lock record, record_lock\)"):
            xrt.ops.matmul(x, x)
        both = xrt.record_lock([MATMUL, *(entry.problem for entry in add.entries)])
        self.assertEqual([entry.problem for entry in both.entries], [ADD, MATMUL])
        xrt.set_lock(both)
        xrt.ops.matmul(x, x)

    def test_decisions_are_added_and_another_choice_is_refused(self) -> None:
        lock = xrt.KernelLock()
        entry = lock.add(xrt.explain(MATMUL))
        self.assertEqual(entry, lock.entries[0])
        lock.add(xrt.explain(MATMUL))
        self.assertEqual(len(lock), 1)
        with xrt.with_policy(matmul="reference"), self.assertRaises(xrt.InvalidArgumentError):
            lock.add(xrt.explain(MATMUL))

    def test_deterministic_problems_carry_a_hash_of_their_outputs(self) -> None:
        with xrt.with_policy(deterministic=True):
            lock = xrt.record_lock(ADD, seed=7)
        entry, = lock.entries
        self.assertRegex(entry.outputs, "^sha256:[0-9a-f]{64}$")
        self.assertEqual(entry.seed, 7)
        result, = xrt.verify_lock(lock).results
        self.assertTrue(result.outputs_compared)
        self.assertIsNone(xrt.record_lock(ADD).entries[0].outputs)

    def test_what_is_saved_is_loaded_again(self) -> None:
        lock = xrt.record_lock([MATMUL, ADD])
        lock.save(self.path)
        self.assertEqual(xrt.KernelLock.load(str(self.path)), lock)
        self.assertEqual(xrt.KernelLock.from_json(lock.to_json()), lock)
        self.assertEqual(json.loads(self.path.read_text()), json.loads(lock.to_json()))

    def test_a_copy_is_its_own(self) -> None:
        lock = xrt.record_lock(MATMUL)
        for made in (copy.copy(lock), copy.deepcopy(lock), pickle.loads(pickle.dumps(lock))):
            self.assertEqual(made, lock)
            made.add(xrt.explain(ADD))
            self.assertEqual((len(made), len(lock)), (2, 1))

    def test_a_changed_file_is_refused(self) -> None:
        xrt.record_lock([MATMUL]).save(self.path)
        self.path.write_text(self.path.read_text().replace("24", "25", 1))
        with self.assertRaises(xrt.CorruptDataError):
            xrt.KernelLock.load(self.path)
        with self.assertRaises(xrt.FileError):
            xrt.KernelLock.load(self.path.parent / "missing")

    def test_a_difference_says_what_was_and_what_is(self) -> None:
        before = xrt.record_lock([MATMUL, ADD])
        with xrt.with_policy(matmul="reference"):
            after = xrt.record_lock(MATMUL)
        self.assertEqual(before.diff(before), [])
        found = {(difference.problem, difference.field): difference for difference in before.diff(after)}
        kernel = found[MATMUL, "kernel"]
        self.assertEqual((kernel.before, kernel.after), (before.find(MATMUL).kernel, "reference"))
        self.assertIn((ADD, "entry"), found)

    def test_a_lock_of_here_holds_here(self) -> None:
        lock = xrt.record_lock([MATMUL, ADD])
        report = xrt.verify_lock(lock, mode=xrt.LockMode.revalidate)
        self.assertTrue(report.fine and report.ran)
        self.assertEqual([result.outcome for result in report.results], ["same", "same"])
        self.assertEqual(xrt.refreshed(lock, report), lock)

    def test_an_entry_that_cannot_be_had_fails_with_its_reason(self) -> None:
        def run(problem: xrt.Problem, inputs: list, outputs: list) -> None:
            numpy.add(inputs[0].numpy(), inputs[1].numpy(), out=outputs[0].numpy())

        xrt.register_kernel("fleeting", "add", run)
        try:
            lock = xrt.record_lock([ADD])
        finally:
            xrt.unregister_kernel("fleeting", "add")
        self.assertEqual(lock.entries[0].kernel, "fleeting")
        report = xrt.verify_lock(lock, "strict")
        result, = report.results
        self.assertEqual((report.fine, report.ran, result.outcome), (False, False, "failed"))
        self.assertIn("fleeting", result.reason)
        with self.assertRaises(xrt.InvalidArgumentError):
            xrt.refreshed(lock, report)

    def test_in_a_scope_a_lock_decides_and_what_it_lacks_is_an_error(self) -> None:
        with xrt.with_policy(matmul="reference"):
            lock = xrt.record_lock(MATMUL)
        x = numpy.ones((24, 24), numpy.float32)
        with xrt.use_lock(lock):
            decision = xrt.explain(MATMUL)
            self.assertEqual((decision.kernel, decision.level), ("reference", "lock"))
            with self.assertRaises(xrt.XpuRuntimeError):
                xrt.ops.add(x, x)

    def test_a_report_shows_how_its_entries_fared(self) -> None:
        lock = xrt.record_lock([ADD, MATMUL])
        report = xrt.verify_lock(lock)
        self.assertEqual(repr(report), "ReplayReport(2 same, fine=True)")
        lock.save(self.path)
        for path in (self.path, str(self.path)):
            self.assertEqual(repr(xrt.verify_lock(path)), "ReplayReport(2 same, fine=True)")
        with self.assertRaisesRegex(xrt.FileError, "cannot be read"):
            xrt.verify_lock(f"{self.path}.missing")
        self.assertEqual(repr(report.results[0]), f"ReplayResult('{ADD}': {lock.entries[0].kernel}, 'same')")

    def test_wrong_arguments_say_what_to_pass(self) -> None:
        lock = xrt.record_lock(ADD)
        for call in (lambda: xrt.record_lock(3), lambda: xrt.record_lock([3]), lambda: xrt.record_lock(ADD, seed="1"),
                     lambda: lock.add(ADD), lambda: lock.find(3), lambda: lock.diff("other"), lambda: lock.save(3),
                     lambda: xrt.verify_lock(3), lambda: xrt.verify_lock(b"lock"), lambda: xrt.verify_lock(lock, 3),
                     lambda: xrt.refreshed(lock, None), lambda: xrt.KernelLock.from_json(b"{}")):
            with self.assertRaises(xrt.ArgumentTypeError):
                call()
        with self.assertRaisesRegex(xrt.UnknownNameError, "revalidate"):
            xrt.verify_lock(lock, "lenient")
        with self.assertRaises(xrt.InvalidArgumentError):
            xrt.record_lock([])


if __name__ == "__main__":
    unittest.main()
