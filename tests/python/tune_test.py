"""Tuning: what is measured, kept and shown, how it stops, and kernels in Python that are tried in a child process."""

import contextlib
import io
import os
import pathlib
import pickle
import signal
import subprocess
import sys
import tempfile
import textwrap
import threading
import unittest

import numpy
import xpuruntime as xrt

SMALL = "matmul(f32[32,32], f32[32,32])"
ADD = "add(f32[64], f32[64])"


def add(problem: xrt.Problem, inputs: list, outputs: list) -> None:
    numpy.add(inputs[0].numpy(), inputs[1].numpy(), out=outputs[0].numpy())


class TuneCase(unittest.TestCase):
    def setUp(self) -> None:
        self.folder = pathlib.Path(self.enterContext(tempfile.TemporaryDirectory()))
        self.store = xrt.open_store(self.folder / "store.sqlite")
        self.addCleanup(xrt.use_store, None)
        self.addCleanup(xrt.clear_quarantine)

    def tune(self, problems: object = ADD, **options: object) -> list:
        return xrt.tune(problems, **{"budget_s": 0.02, "store": self.store, **options})

    def stored(self) -> list:
        """The problems that the store has choices for."""
        return [entry["problem"] for environment in self.store.read()["environments"]
                for entry in environment["entries"] if entry["choice"] is not None]


class TuneRangesTest(TuneCase):
    def test_no_points_at_all_is_an_error(self) -> None:
        with self.assertRaisesRegex(xrt.InvalidArgumentError, r"^\[tune\] range_points must be 1 or more"):
            self.tune("relu(f32[n]) where n=1..4", range_points=0)
        with self.assertRaisesRegex(xrt.InvalidArgumentError, r"^\[tune\] range_points must be 1 or more"):
            self.tune("relu(f32[n]) where n=1..4", range_points=-1)

    def test_a_range_gives_parts_and_a_policy_for_sizes_that_were_never_measured(self) -> None:
        result, = self.tune("matmul(f32[m,16], f32[16,16]) where m=1..40", budget_s=0.002, range_points=9)
        self.assertIsInstance(result, xrt.RangeResult)
        self.assertEqual((result.problems, result.covered + result.undecided, result.complete), (40, 40, True))
        self.assertLessEqual(len(result.measured), 9)
        self.assertEqual(sum(len(part.range) for part in result.parts), result.covered)
        self.assertGreaterEqual(result.covered, len({str(race.problem) for race in result.measured}))
        self.assertEqual(set(self.stored()), {str(race.problem) for race in result.measured})
        with xrt.with_policy(result.policy()):
            for size in range(1, 41):
                problem = result.range.at(m=size)
                parts = [part for part in result.parts if problem in part.range]
                decision = xrt.explain(problem)
                self.assertEqual((decision.level, len(parts)), ("rule", 1) if parts else ("strategy", 0))
                for part in parts:
                    self.assertEqual(decision.kernel, part.kernel)
                    self.assertIn(f"at m={size}", decision.because)
            self.assertEqual(xrt.explain("matmul(f32[41,16], f32[16,16])").level, "strategy")
        self.assertEqual(xrt.KernelPolicy(rules=result.rules()), result.policy())
        self.assertEqual(result.policy({"threads": 1}).threads, 1)

    def test_a_policy_keeps_the_rules_that_decided_sizes_while_it_was_tuned(self) -> None:
        base = xrt.KernelPolicy(rules=[{"op": "relu", "range": "relu(f32[n]) where n=1..9", "use": "reference"}])
        with xrt.with_policy(base):
            result, = self.tune("relu(f32[n]) where n=1..20", budget_s=0.002)
        self.assertEqual((result.named_by_policy, result.covered), (9, 11))
        with xrt.with_policy(result.policy(base)):
            self.assertEqual(xrt.explain("relu(f32[9])").kernel, "reference")
            self.assertEqual(xrt.explain("relu(f32[10])").kernel, result.parts[0].kernel)

    def test_problems_and_ranges_go_together(self) -> None:
        seen: list = []
        results = self.tune([ADD, "relu(f32[n]) where n=1..3", xrt.ProblemRange("relu(f32[n]) where n=1..3")],
                            budget_s=0.002, total_budget_s=5.0, progress=lambda now: seen.append(now.problem))
        self.assertEqual([type(result) for result in results], [xrt.TuneResult, xrt.RangeResult])
        self.assertIn("relu(f32[3]) @cpu:0", seen)

    def test_a_range_is_a_value_and_wrong_texts_name_the_column(self) -> None:
        spread = xrt.ProblemRange("softmax(f32[b,s,s]) where b=1..2, s=3..9")
        self.assertEqual((len(spread), spread.names), (14, {"b": (1, 2), "s": (3, 9)}))
        self.assertEqual(str(spread), "softmax(f32[b,s,s]) @cpu:0 where b=1..2, s=3..9")
        self.assertEqual({spread}, {xrt.ProblemRange(str(spread)), pickle.loads(pickle.dumps(spread))})
        self.assertIn(xrt.Problem("softmax(f32[2,5,5])"), spread)
        self.assertNotIn(xrt.Problem("softmax(f32[2,5,6])"), spread)
        for wrong, why in (({"b": 1}, "s is missing"), ({"b": 1, "s": 3, "t": 1}, "unknown name 't'"),
                           ({"b": 3, "s": 3}, "b=3 is outside of")):
            with self.assertRaisesRegex(xrt.XpuRuntimeError, why):
                spread.at(**wrong)
        with self.assertRaisesRegex(xrt.InvalidArgumentError, "column 22: the range runs backwards"):
            self.tune("relu(f32[n]) where n=9..1")
        with self.assertRaisesRegex(xrt.InvalidArgumentError, "column 14: this has ranges of sizes"):
            xrt.explain("relu(f32[n]) where n=1..9")

    def test_a_lock_of_ranges_replays_every_size_inside_and_names_the_range_outside(self) -> None:
        text = "relu(f32[n]) where n=3..20"
        lock = xrt.record_lock([text, ADD])
        self.assertTrue(xrt.verify_lock(lock).fine)
        with xrt.use_lock(lock):
            for size in (3, 7, 20):
                decision = xrt.explain(f"relu(f32[{size}])")
                self.assertEqual(decision.level, "lock")
                self.assertIn("for relu(f32[n]) @cpu:0 where n=3..20", decision.because)
                xrt.ops.relu(numpy.zeros(size, numpy.float32))
            with self.assertRaisesRegex(xrt.XpuRuntimeError, "nearest is relu.f32.n.. @cpu:0 where n=3..20"):
                xrt.ops.relu(numpy.zeros(21, numpy.float32))
        with xrt.with_policy(precision={"relu": "bf16"}), self.assertRaisesRegex(xrt.XpuRuntimeError, "cast first"):
            xrt.record_lock(text)

    def test_a_report_shows_the_ends_of_each_part(self) -> None:
        rule = {"op": "relu", "range": "relu(f32[n]) where n=5..9", "use": "reference"}
        with xrt.with_policy(rules=[rule]):
            data = xrt.report_data(problems="relu(f32[n]) where n=1..20")
        rows: list = data["decisions"]  # type: ignore[assignment]
        self.assertEqual([row["problem"] for row in rows], [f"relu(f32[{size}]) @cpu:0" for size in (1, 4, 5, 9, 10, 20)])


class TuneTest(TuneCase):
    def test_it_says_what_won_and_what_became_of_the_others(self) -> None:
        result, = self.tune(SMALL)
        self.assertEqual(str(result.problem), SMALL + " @cpu:0")
        outcomes = {candidate.kernel: candidate.outcome for candidate in result.candidates}
        self.assertEqual(outcomes[result.chosen], "won")
        self.assertEqual(list(outcomes.values()).count("won"), 1)
        winner, = (candidate for candidate in result.candidates if candidate.outcome == "won")
        self.assertGreater(winner.time_us, 0)
        self.assertLessEqual(winner.error, winner.tolerance)
        self.assertIsNone(result.not_stored)
        self.assertIn(result.incumbent, outcomes)

    def test_what_was_found_is_stored_and_counts_afterwards(self) -> None:
        result, = self.tune(SMALL)
        self.assertEqual(self.stored(), [SMALL + " @cpu:0"])
        with xrt.with_policy(strategy="best_performance"):
            decision = xrt.explain(SMALL)
        self.assertEqual(decision.kernel, result.chosen)
        self.assertIsNotNone([c for c in decision.candidates if c.kernel == result.chosen][0].time_us)

    def test_problems_come_as_texts_objects_decisions_or_log_entries_each_once(self) -> None:
        xrt.enable_dispatch_logging()
        self.addCleanup(xrt.clear_dispatch_logs)
        self.addCleanup(xrt.disable_dispatch_logging)
        for _ in range(2):
            xrt.ops.relu(numpy.ones(16, numpy.float32))
        problems = [ADD, xrt.Problem(ADD), xrt.explain("tanh(f32[8])"), *xrt.get_dispatch_logs()]
        self.assertEqual([result.problem.op for result in self.tune(problems)], ["add", "tanh", "relu"])

    def test_a_function_hears_of_the_progress_and_false_from_it_stops(self) -> None:
        heard = []
        self.tune([ADD, SMALL], progress=heard.append)
        self.assertEqual({now.problem_count for now in heard}, {2})
        self.assertEqual({now.problem_index for now in heard}, {0, 1})
        self.assertTrue(all(now.remaining_s >= 0 for now in heard))
        results = self.tune([SMALL, ADD], progress=lambda now: now.problem_index == 0)
        self.assertEqual([result.problem.op for result in results], ["matmul"])
        self.assertEqual(self.tune(SMALL, progress=lambda now: False), [])

    def test_what_the_progress_function_raises_comes_out_and_what_was_finished_is_kept(self) -> None:
        def progress(now: xrt.TuneProgress) -> None:
            if now.problem_index == 1:
                raise LookupError("enough")

        with self.assertRaisesRegex(LookupError, "enough"):
            self.tune([ADD, SMALL], progress=progress)
        self.assertEqual(self.stored(), [ADD + " @cpu:0"])

    def test_a_bar_in_the_manner_of_tqdm_gets_a_step_for_each_problem(self) -> None:
        class Bar:
            made: list = []

            def __init__(self, total: int, desc: str, unit: str) -> None:
                self.total, self.steps, self.closed = total, 0, False
                self.made.append(self)

            def update(self, steps: int) -> None:
                self.steps += steps

            def close(self) -> None:
                self.closed = True

        self.tune([ADD, SMALL], progress=Bar)
        bar, = Bar.made
        self.assertEqual((bar.total, bar.steps, bar.closed), (2, 2, True))
        own = Bar(5, "mine", "x")
        self.tune(ADD, progress=own)
        self.assertEqual((own.steps, own.closed), (1, False))

    def test_true_says_on_stderr_what_each_problem_ended_with(self) -> None:
        text = io.StringIO()
        with contextlib.redirect_stderr(text):
            first, second = self.tune([ADD, SMALL], progress=True)
        self.assertEqual(text.getvalue(), f"1/2 {ADD} @cpu:0: {first.chosen}\n2/2 {SMALL} @cpu:0: {second.chosen}\n")

    def test_the_total_budget_ends_the_run(self) -> None:
        for result, text in zip(self.tune([ADD, SMALL], total_budget_s=0), (ADD, SMALL), strict=True):
            self.assertEqual(str(result.problem), f"{text} @cpu:0")
            self.assertEqual((result.chosen, result.gain, result.cut_short, result.cut_by), (None, None, True, "total_budget_s"))
            self.assertEqual(result.not_stored, "not tuned: total_budget_s is spent")
        self.assertEqual(self.stored(), [])

    def test_wrong_arguments_say_what_to_pass(self) -> None:
        for problems, options in ((3, {}), ([3], {}), (ADD, {"budget_s": "1"}), (ADD, {"isolate": 1}),
                                  (ADD, {"progress": 3}), (ADD, {"store": 3}), (ADD, {"seed": 1.5})):
            with self.assertRaises(xrt.ArgumentTypeError):
                self.tune(problems, **options)
        with self.assertRaises(xrt.UnknownNameError):
            self.tune("matmull(f32[2,2], f32[2,2])")
        with self.assertRaisesRegex(xrt.InvalidArgumentError, r"\[tune\] budget_s must be"):
            self.tune(budget_s=-1)
        for options, name in (({"budget_s": -1}, "budget_s"), ({"min_gain": 2}, "min_gain"),
                              ({"probe_timeout_s": -1}, "probe_timeout_s")):
            with self.assertRaisesRegex(xrt.InvalidArgumentError, rf"^\[enable_tuning\] {name} must be"):
                xrt.enable_tuning(**options)
        with self.assertRaisesRegex(xrt.InvalidArgumentError, "total_budget_s must be"):
            self.tune([ADD, "relu(f32[n]) where n=1..3"], total_budget_s=-1)
        for options in ({"budget_s": -1}, {"min_gain": 2}, {"budget_s": float("nan")}, {"seed": -1}):
            with self.assertRaises(xrt.InvalidArgumentError):
                self.tune(ADD, **options)
        with self.assertRaises(xrt.InvalidArgumentError):
            self.tune([])
        with self.assertRaises(TypeError):
            self.tune(ADD, budget=3)

    def test_tuning_from_a_callback_of_tuning_is_refused(self) -> None:
        with self.assertRaisesRegex(xrt.InvalidArgumentError, "while this thread tunes"):
            self.tune(progress=lambda now: self.tune(SMALL))

    def test_enabled_tuning_measures_what_best_performance_meets(self) -> None:
        xrt.use_store(self.store)
        xrt.enable_tuning(budget_s=0.02)
        self.addCleanup(xrt.disable_tuning)
        x = numpy.ones(48, numpy.float32)
        xrt.ops.relu(x)
        self.assertEqual(self.stored(), [])
        with xrt.with_policy(strategy="best_performance"):
            xrt.ops.relu(x)
        self.assertEqual(self.stored(), ["relu(f32[48]) @cpu:0"])
        xrt.disable_tuning()
        with xrt.with_policy(strategy="best_performance"):
            xrt.ops.tanh(x)
        self.assertEqual(self.stored(), ["relu(f32[48]) @cpu:0"])


class PythonKernelTuneTest(TuneCase):
    def candidate(self, run: object, **options: object) -> xrt.TunedCandidate:
        xrt.register_kernel("mine", "add", run)
        try:
            result, = self.tune(ADD, **options)
        finally:
            xrt.unregister_kernel("mine", "add")
        found, = (candidate for candidate in result.candidates if candidate.kernel == "mine")
        return found

    def test_a_right_one_takes_part(self) -> None:
        self.assertIn(self.candidate(add).outcome, ("won", "lost"))

    def test_it_is_tried_in_another_process_first(self) -> None:
        here = os.getpid()
        places = self.folder / "places"

        def run(problem: xrt.Problem, inputs: list, outputs: list) -> None:
            with open(places, "a", encoding="ascii") as file:
                file.write("here\n" if os.getpid() == here else "elsewhere\n")
            add(problem, inputs, outputs)

        self.candidate(run)
        self.assertEqual(places.read_text().splitlines()[:2], ["elsewhere", "here"])
        places.unlink()
        self.candidate(run, isolate=False)
        self.assertNotIn("elsewhere", places.read_text())

    def test_one_that_raises_or_is_wrong_or_ends_the_process_is_quarantined(self) -> None:
        def wrong(problem: xrt.Problem, inputs: list, outputs: list) -> None:
            outputs[0].numpy()[...] = 7

        def raises(problem: xrt.Problem, inputs: list, outputs: list) -> None:
            raise RuntimeError("out of ideas")

        def ends(problem: xrt.Problem, inputs: list, outputs: list) -> None:
            os.kill(os.getpid(), signal.SIGSEGV)

        for run, reason in ((wrong, "wrong numbers"), (raises, "RuntimeError: out of ideas"), (ends, "SIGSEGV")):
            candidate = self.candidate(run)
            self.assertEqual(candidate.outcome, "quarantined")
            self.assertIn(reason, candidate.reason)
            self.store.prune(op="add")
            xrt.refresh_measurements()

    def test_one_that_was_found_wrong_runs_no_more_in_this_process_until_the_quarantine_is_cleared(self) -> None:
        def wrong(problem: xrt.Problem, inputs: list, outputs: list) -> None:
            outputs[0].numpy()[...] = 7

        ones = numpy.ones(64, numpy.float32)
        xrt.register_kernel("mine", "add", wrong, version="1")
        self.addCleanup(xrt.unregister_kernel, "mine", "add")
        self.assertEqual(xrt.ops.add(ones, ones)[0], 7)
        result, = self.tune(ADD)
        self.assertEqual(xrt.ops.add(ones, ones)[0], 2)
        for strategy in ("first_supported", "lowest_memory", "best_performance"):
            with xrt.with_policy(strategy=strategy):
                self.assertEqual(xrt.ops.add(ones, ones)[0], 2)
        (entry,) = xrt.quarantined()
        self.assertEqual((entry.kernel, entry.problem), ("mine", result.problem))
        self.assertRegex(entry.reason, "^quarantined: it gave wrong numbers: .*[(]found by tuning[)]$")
        self.assertNotIn("mine", [locked.kernel for locked in xrt.record_lock(ADD).entries])

        xrt.clear_quarantine()  # the store's stays, and counts where the store is read
        self.assertEqual((xrt.ops.add(ones, ones)[0], xrt.quarantined()), (7, []))
        with xrt.with_policy(strategy="best_performance"):
            self.assertEqual(xrt.ops.add(ones, ones)[0], 2)
        result, = self.tune(ADD)  # refused for what the store says, and so again by every strategy
        self.assertEqual(xrt.ops.add(ones, ones)[0], 2)

    def test_one_that_ends_the_process_in_the_trial_does_not_end_this_one(self) -> None:
        here = os.getpid()
        ran = []

        def ends(problem: xrt.Problem, inputs: list, outputs: list) -> None:
            if os.getpid() != here:
                os._exit(3)
            ran.append(problem)

        xrt.register_kernel("mine", "add", ends)
        self.addCleanup(xrt.unregister_kernel, "mine", "add")
        result = xrt.tune("add(f32[n], f32[n]) where n=5..6", budget_s=0.002, store=self.store)[0]
        sizes = {str(race.problem) for race in result.measured}
        self.assertTrue(sizes)
        self.assertEqual({str(entry.problem) for entry in xrt.quarantined()}, sizes)
        for race in result.measured:
            ones = numpy.ones(race.problem.inputs[0].shape, numpy.float32)
            self.assertEqual(xrt.ops.add(ones, ones)[0], 2)
        self.assertEqual(ran, [])

    def test_threads_that_are_busy_in_python_do_not_hang_the_trial(self) -> None:
        over = threading.Event()

        def busy() -> None:
            while not over.is_set():
                sum(range(100))

        threads = [threading.Thread(target=busy) for _ in range(3)]
        for thread in threads:
            thread.start()
        try:
            for _ in range(10):  # a child that waits for the GIL of a thread it has not got never ends
                self.assertIn(self.candidate(add, probe_timeout_s=20).outcome, ("won", "lost"))
                self.store.prune(op="add")
        finally:
            over.set()
            for thread in threads:
                thread.join()


class InterruptTest(TuneCase):
    def interrupted(self, body: str) -> subprocess.CompletedProcess:
        """Runs a program that gets SIGINT a moment after it has said so."""
        program = textwrap.dedent("""
            import os, signal, sys, threading, numpy, xpuruntime as xrt
            signal.signal(signal.SIGINT, signal.default_int_handler)
            def press(): os.kill(os.getpid(), signal.SIGINT)
        """) + textwrap.dedent(body)
        environment = {**os.environ, "XPURUNTIME_STORE": str(self.folder / "store.sqlite")}
        return subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, timeout=100,
                              env=environment)

    def test_ctrl_c_stops_the_run_and_what_was_finished_is_kept(self) -> None:
        done = self.interrupted(f"""
            problems = ["{ADD}"] + [f"matmul(f32[{{n}},{{n}}], f32[{{n}},{{n}}])" for n in range(100, 160)]
            def progress(now):
                if now.problem_index == 1: press()
            try:
                xrt.tune(problems, budget_s=0.5, progress=progress)
            except KeyboardInterrupt:
                print("stopped")
        """)
        self.assertEqual((done.stdout, done.stderr), ("stopped\n", ""))
        self.assertEqual(self.stored(), [ADD + " @cpu:0"])

    def test_ctrl_c_in_a_python_kernel_stops_it_too_and_does_not_speak_against_the_kernel(self) -> None:
        done = self.interrupted(f"""
            def run(problem, inputs, outputs):
                if threading.main_thread().native_id == os.getpid() and calls: press()
                calls.append(1)
                numpy.add(inputs[0].numpy(), inputs[1].numpy(), out=outputs[0].numpy())
            calls = []
            xrt.register_kernel("mine", "add", run)
            try:
                xrt.tune("{ADD}", budget_s=5)
            except KeyboardInterrupt:
                print("stopped")
        """)
        self.assertEqual((done.stdout, done.stderr), ("stopped\n", ""))
        for environment in self.store.read()["environments"]:
            self.assertEqual([entry["quarantine"] for entry in environment["entries"] if entry["quarantine"]], [])


if __name__ == "__main__":
    unittest.main()
