"""xrt tune: what it measures, keeps and writes, and that it survives being killed."""
import json
import os
import pty
import random
import re
import resource
import signal
import subprocess
import time
import unittest

from store_test import contents, entry
from xrt_case import BAD_KERNELS, XRT, CliTest, xrt

SQUARE = "matmul(f32[64,64], f32[64,64])"
SOFTMAX = "softmax(f32[64,1000])"


class Tune(CliTest):
    def setUp(self):
        super().setUp()
        self.store = self.folder / "store.sqlite"

    def tune(self, *arguments, code=0):
        answer = xrt("tune", *arguments, "--store", self.store, "--json")
        self.assertEqual(answer.returncode, code, answer)
        return json.loads(answer.stdout)

    def explain(self, problem, policy):
        return json.loads(self.fine("explain", problem, "--policy", policy, "--store", self.store, "--json"))

    def best_performance(self):
        return self.write("best.json", '{"strategy": "best_performance"}')

    def test_the_choice_is_kept_and_used_by_another_process(self):
        [result] = self.tune(SQUARE)["results"]
        decision = self.explain(SQUARE, self.best_performance())
        self.assertEqual((decision["kernel"], decision["level"]), (result["chosen"], "strategy"))
        self.assertTrue(decision["because"].startswith("tuned: "), decision)
        times = {row["kernel"]: row["time_us"] for row in decision["candidates"]}
        for candidate in result["candidates"]:
            self.assertEqual(times[candidate["kernel"]], candidate["time_us"])

    def test_what_was_tuned_under_a_limit_is_not_used_without_it(self):
        limited = self.write("limited.json", '{"workspace_limit_bytes": 0, "strategy": "best_performance"}')
        [result] = self.tune(SQUARE, "--policy", limited)["results"]
        self.assertIn("workspace_limit=0", result["problem"])
        self.assertTrue(self.explain(SQUARE, limited)["because"].startswith("tuned: "))
        self.assertIn("no kernel was measured", self.explain(SQUARE, self.best_performance())["because"])

    def test_the_policy_that_it_writes_gives_the_same_choices_without_the_store(self):
        policy, lock = self.folder / "policy.json", self.folder / "kernels.lock"
        results = self.tune(SQUARE, SOFTMAX, "--out", policy, "--lock", lock)["results"]
        for result in results:
            decision = json.loads(self.fine("explain", result["problem"], "--policy", policy, "--json"))
            self.assertEqual((decision["kernel"], decision["level"]), (result["chosen"], "rule"))
        locked = {entry["problem"]: entry["kernel"] for entry in json.loads(lock.read_text())["decisions"]}
        self.assertEqual(locked, {result["problem"]: result["chosen"] for result in results})
        self.fine("lock", "verify", lock)
        other = json.loads(self.fine("explain", "matmul(f32[65,64], f32[64,64])", "--policy", policy, "--json"))
        self.assertEqual(other["level"], "strategy")  # the rules say nothing about other shapes

    def test_problems_that_differ_in_strides_or_limits_get_rules_of_their_own(self):
        policy = self.folder / "policy.json"
        problems = [SQUARE, "matmul(f32[64,64]{1,64}, f32[64,64])", SQUARE + " @cpu:0 threads=1", SQUARE + " @cpu:0 threads=2"]
        results = self.tune(*problems, "--out", policy)["results"]
        self.fine("policy", "validate", policy)
        for result in results:
            decision = json.loads(self.fine("explain", result["problem"], "--policy", policy, "--json"))
            self.assertEqual((decision["kernel"], decision["level"]), (result["chosen"], "rule"), decision)
        before = len(json.loads(policy.read_text())["rules"])
        self.tune(SQUARE, "--policy", policy, "--out", policy)
        self.assertEqual(len(json.loads(policy.read_text())["rules"]), before)

    def test_what_the_policy_names_runs_all_the_same_and_that_is_said(self):
        policy, out = self.write("p.json", '{"preferences": {"softmax": "reference"}}'), self.folder / "out.json"
        [result] = self.tune(SOFTMAX, "--policy", policy, "--out", out)["results"]
        self.assertEqual((result["chosen"], result["runs"]), ("reference", "reference") if result["chosen"] == "reference"
                         else ("simd", "reference"))
        self.assertIn("still runs: the policy prefers reference",
                      xrt("tune", SOFTMAX, "--policy", policy, "--store", self.store).stdout)
        self.assertNotIn("rules", json.loads(out.read_text()))

    def test_a_policy_that_asks_for_the_least_memory_gets_it(self):
        policy, lock = self.write("p.json", '{"strategy": "lowest_memory"}'), self.folder / "kernels.lock"
        [result] = self.tune(SQUARE, "--policy", policy, "--lock", lock)["results"]
        bytes_of = {c["kernel"]: c["workspace_bytes"] for c in result["candidates"] if c["workspace_bytes"] is not None}
        self.assertEqual(bytes_of[result["runs"]], min(bytes_of.values()))
        [entry] = json.loads(lock.read_text())["decisions"]
        self.assertEqual(entry["kernel"], result["runs"])

    def test_the_lock_holds_the_casts_that_the_policy_causes(self):
        policy, lock = self.write("p.json", '{"precision": {"matmul": "bf16"}}'), self.folder / "kernels.lock"
        self.tune(SQUARE, "--policy", policy, "--lock", lock)
        problems = [entry["problem"].split("(")[0] for entry in json.loads(lock.read_text())["decisions"]]
        self.assertEqual(problems, ["cast", "cast", "matmul"])

    def test_an_interrupted_run_leaves_the_old_policy_and_lock_alone(self):
        policy, lock = self.folder / "policy.json", self.folder / "kernels.lock"
        self.tune(SOFTMAX, "--out", policy, "--lock", lock)
        before = policy.read_bytes(), lock.read_bytes()
        problems = [f"matmul(f32[{n},{n}], f32[{n},{n}])" for n in range(300, 420)]
        with subprocess.Popen([XRT, "tune", *problems, "--store", str(self.store), "--out", str(policy), "--lock",
                               str(lock)], stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True) as process:
            process.stderr.readline()
            process.send_signal(signal.SIGINT)
            _, messages = process.communicate(timeout=60)
        self.assertEqual(process.returncode, 1, messages)
        self.assertIn("no policy and no lock were written", messages)
        self.assertEqual((policy.read_bytes(), lock.read_bytes()), before)

    def test_the_store_is_whole_in_its_file_after_each_command(self):
        self.tune(SOFTMAX)
        copy = self.folder / "copy.sqlite"
        copy.write_bytes(self.store.read_bytes())
        listed = self.fine("store", "list", "--store", copy, "--json")
        self.assertIn("softmax", listed)

    def test_every_candidate_is_accounted_for(self):
        [result] = self.tune(SQUARE)["results"]
        kernels = {row["kernel"] for row in self.document("explain", SQUARE, "--json")["candidates"]}
        self.assertEqual({candidate["kernel"] for candidate in result["candidates"]}, kernels)
        for candidate in result["candidates"]:
            if candidate["outcome"] in ("won", "lost"):
                self.assertLessEqual(candidate["error"], candidate["tolerance"])
            else:
                self.assertTrue(candidate["reason"])
        self.assertEqual([c["kernel"] for c in result["candidates"] if c["outcome"] == "won"], [result["chosen"]])

    def test_a_budget_that_runs_out_is_said(self):
        problems = [f"matmul(f32[{n},{n}], f32[{n},{n}])" for n in range(200, 240)]
        answer = xrt("tune", *problems, "--store", self.store, "--budget", "300ms", "--json")
        self.assertEqual(answer.returncode, 1, answer)
        self.assertIn("not every problem could be tuned", answer.stderr)
        document = json.loads(answer.stdout)
        self.assertEqual((document["problems"], len(document["results"])), (40, 40))
        last = document["results"][-1]
        self.assertEqual((last["chosen"], last["gain"], last["cut_by"]), (None, None, "total_budget_s"))
        self.assertEqual(last["because"], last["not_stored"])
        self.assertRegex(last["because"], "^(not tuned: total_budget_s is spent|not measured: .* left of the budget; give more)$")
        text = xrt("tune", *problems, "--store", self.store, "--budget", "300ms").stdout
        self.assertRegex(text, r"f32\[239,239\]\) @cpu:0 .* (not tuned: --budget is spent|cut short by --budget)\n")
        self.assertEqual(text.splitlines()[-1], 'in force under a policy with "auto_strategy": "best_performance"')

    def test_a_problem_that_takes_the_whole_budget_leaves_the_others_a_race(self):
        slow = "conv2d(f32[1,64,20,20], f32[64,64,3,3]; padding=1,1)"
        answer = xrt("tune", slow, "relu(f32[4])", "softmax(f32[8,8])", "--store", self.store, "--budget", "300ms", "--json")
        self.assertEqual(answer.returncode, 0, answer)
        for result in json.loads(answer.stdout)["results"]:
            self.assertIsNotNone(result["gain"], result["because"])

    def test_what_some_problems_leave_of_the_budget_goes_to_those_that_it_cut_short(self):
        problems = ["relu(f32[64])", "exp(f32[64])"] + [f"matmul(f32[{n},{n}], f32[{n},{n}])" for n in (256, 320)]
        document = json.loads(xrt("tune", *problems, "--store", self.store, "--budget", "4s", "--json").stdout)
        spent = sum(result["spent_s"] for result in document["results"])
        for result in document["results"]:
            self.assertTrue(result["cut_by"] != "total_budget_s" or spent > 2.8, (result["cut_by"], spent))

    def test_the_last_lines_say_how_to_use_what_was_written(self):
        policy, lock, store = (self.folder / name for name in ("policy.json", "kernels.lock", "store.sqlite"))
        text = xrt("tune", SQUARE, "--store", store, "--out", policy, "--lock", lock).stdout
        self.assertEqual(text.splitlines()[-2:], [f"policy: {policy}; in force with XPURUNTIME_POLICY={policy}",
                                                  f"lock: {lock}; in force with XPURUNTIME_LOCK={lock}"])
        self.assertIn('"auto_strategy": "best_performance"', xrt("tune", SQUARE, "--store", store).stdout.splitlines()[-1])

    def test_a_lock_tuned_under_limits_or_casts_is_in_force_with_its_policy(self):
        lock, store = self.folder / "kernels.lock", self.folder / "store.sqlite"
        for number, text in enumerate(('{"threads": 1}', '{"default_precision": "bf16"}')):
            policy = self.write(f"policy{number}.json", text)
            out = self.folder / f"out{number}.json"
            for options, file in (((), policy), (("--out", out), out)):
                said = xrt("tune", "relu(f32[8])", "--policy", policy, "--lock", lock, "--store", store, *options).stdout
                settings = f"XPURUNTIME_POLICY={file} XPURUNTIME_LOCK={lock}"
                self.assertEqual(said.splitlines()[-1], f"lock: {lock}; in force with {settings}")
                self.fine("run", "relu(f32[8])", env=dict(setting.split("=") for setting in settings.split()))
                if not options:  # the same by the environment
                    said = xrt("tune", "relu(f32[8])", "--lock", lock, "--store", store,
                               env={"XPURUNTIME_POLICY": str(policy)}).stdout
                    self.assertEqual(said.splitlines()[-1], f"lock: {lock}; in force with {settings}")
        limited = self.write("limited.json", '{"threads": 1}')
        xrt("tune", "relu(f32[8])", "--policy", limited, "--lock", lock, "--store", store)
        self.refused(1, "run", "relu(f32[8])", env={"XPURUNTIME_LOCK": str(lock)}, with_answer=True,
                     says=["differs in the limits (threads=1 there, none here); set the same limits in the policy",
                           "or record it too"])

    def test_limits_that_all_problems_have_are_set_by_the_policy_that_is_written(self):
        policy, lock = self.folder / "policy.json", self.folder / "kernels.lock"
        plain = "linear(f32[64,256], f32[256,256])"
        for limits in ("threads=1", "deterministic", "deterministic threads=1 workspace_limit=100000000"):
            text = xrt("tune", f"{plain} {limits}", f"relu(f32[8]) {limits}", "--store", self.store, "--out", policy,
                       "--lock", lock).stdout
            settings = f"XPURUNTIME_POLICY={policy} XPURUNTIME_LOCK={lock}"
            self.assertEqual(text.splitlines()[-2:], [f"policy: {policy}; in force with XPURUNTIME_POLICY={policy}",
                                                      f"lock: {lock}; in force with {settings}"])
            decision = self.document("explain", plain, "--policy", policy, "--json")
            self.assertEqual(decision["level"], "rule", decision)
            self.fine("run", plain, env=dict(setting.split("=", 1) for setting in settings.split()))

    def test_limits_that_the_policy_does_not_set_are_said_to_be_needed(self):
        policy, lock = self.folder / "policy.json", self.folder / "kernels.lock"
        four = self.write("four.json", '{"threads": 4}')
        rule = {"op": "relu", "range": "relu(f32[n]) where n=1..2", "use": "reference"}
        ruled = self.write("ruled.json", json.dumps({"rules": [rule]}))
        also = "; for problems with {} the program must also set these limits"
        for problems, options, limits, threads in (
                ([SQUARE, f"{SQUARE} threads=1", f"{SQUARE} deterministic"], [], "threads=1 or deterministic", None),
                ([f"{SQUARE} threads=1"], ["--policy", four], "threads=1", 4),
                ([f"{SQUARE} threads=1"], ["--policy", ruled], "threads=1", None)):
            text = xrt("tune", *problems, *options, "--store", self.store, "--out", policy, "--lock", lock).stdout
            for line in text.splitlines()[-2:]:
                self.assertTrue(line.endswith(also.format(limits)), line)
            self.assertEqual(json.loads(policy.read_text()).get("threads"), threads)
        for options in ([], ["--lock", lock]):
            text = xrt("tune", f"{SQUARE} threads=1", "--store", self.store, *options).stdout
            self.assertTrue(text.splitlines()[-1].endswith(also.format("threads=1")), text)

    def test_the_demos_files_are_in_force_as_it_says(self):
        answer = xrt("demo", "--tune", "--block", "transformer", "--store", self.store, "--out", self.folder)
        self.assertEqual(answer.returncode, 0, answer)
        policy, lock = self.folder / "policy.json", self.folder / "kernels.lock"
        self.assertIn(f"\nlock: {lock}; in force with XPURUNTIME_POLICY={policy} XPURUNTIME_LOCK={lock}\n", answer.stdout)
        problems = [entry["problem"] for entry in json.loads(lock.read_text())["decisions"]]
        linear = next(problem for problem in problems if problem.startswith("linear("))
        self.fine("run", linear.replace(" deterministic", ""),
                  env={"XPURUNTIME_POLICY": str(policy), "XPURUNTIME_LOCK": str(lock)})

    def test_what_puts_the_files_in_force_is_quoted_for_the_shell(self):
        for name in ("p q", "p$HOME", "p'q", "p;q", "~p", "p\\q", "p*"):
            policy, lock = self.write(f"{name}.json", '{"threads": 1}'), self.folder / f"{name}.lock"
            said = xrt("tune", "relu(f32[8])", "--policy", policy, "--lock", lock, "--store", self.store).stdout
            settings = said.splitlines()[-1].split("; in force with ")[-1]
            done = subprocess.run(["sh", "-c", settings + " env"], capture_output=True, text=True, check=True)
            self.assertIn(f"XPURUNTIME_POLICY={policy}\n", done.stdout)
            self.assertIn(f"XPURUNTIME_LOCK={lock}\n", done.stdout)

    def test_nothing_is_said_to_be_kept_where_the_disk_was_full(self):
        def full():  # room for the index of SQLite's log, and for a commit or two in the log
            resource.setrlimit(resource.RLIMIT_FSIZE, (33000, 33000))

        entries = contents(*(entry(f"relu(f32[{i}]) @cuda:0") for i in range(1, 300)))
        self.fine("store", "import", self.write("in.json", entries), "--store", self.store)
        for i in range(1, 20):
            answer = xrt("tune", f"relu(f32[{i}])", "--store", self.store, "--per-problem", "10ms", preexec_fn=full)
            if answer.returncode != 0:
                break
        self.assertEqual(answer.returncode, 1, answer)
        self.assertIn("what was found was not stored: ", answer.stderr)
        self.assertIn("; nothing was stored", answer.stdout.splitlines()[-1])
        self.assertNotIn("kept in", answer.stdout)

    def test_where_the_policy_does_not_fit_the_disk_it_is_said_that_the_measurements_are_stored(self):
        def full():  # room for the store and the lock, not for the policy with the rules of the base
            resource.setrlimit(resource.RLIMIT_FSIZE, (100_000, 100_000))

        rules = [{"op": "relu", "range": f"relu(f32[n,{i}]) @cpu:0 where n=1..2", "use": "reference"}
                 for i in range(1, 1501)]
        base, policy = self.write("base.json", json.dumps({"rules": rules})), self.write("policy.json", "old")
        lock = self.folder / "kernels.lock"
        answer = xrt("tune", SQUARE, "--policy", base, "--store", self.store, "--out", policy, "--lock", lock,
                     preexec_fn=full)
        self.assertEqual(answer.returncode, 1, answer)
        self.assertRegex(answer.stderr, f"no policy was written: .*{policy}': cannot be written: .*"
                                        f"What was measured is kept in {self.store}\n")
        self.assertIn(f"kept in {self.store}\nlock: {lock}; ", answer.stdout)
        self.assertEqual(policy.read_text(), "old")
        self.assertEqual(list(self.folder.glob("policy.json*")), [policy])
        self.assertIn("matmul", self.fine("store", "list", "--store", self.store))

    def test_what_was_cut_short_names_the_limit_that_cut_it(self):
        large = "matmul(f32[512,512], f32[512,512])"
        self.assertIn("cut short by --per-problem", xrt("tune", large, "--per-problem", "1ms").stdout)
        self.assertIn("cut short by --budget", xrt("tune", large, "--budget", "5ms").stdout)

    def test_a_problem_that_was_not_timed_is_not_tuned(self):
        policy = self.folder / "policy.json"
        answer = xrt("tune", "relu(f32[300000000])", "--budget", "1s", "--store", self.store, "--out", policy)
        self.assertEqual((answer.returncode, policy.exists()), (1, False), answer)
        self.assertIn("not measured: making its tensors would take longer", answer.stdout)
        self.assertRegex(answer.stdout.splitlines()[-1],
                         r"^0 of 1 problems tuned \(1 left untuned\) in \S+ s; nothing was stored$")
        [result] = self.tune("relu(f32[300000000])", "--budget", "1s", code=1)["results"]
        self.assertEqual((result["chosen"], result["gain"], result["cut_by"]), (None, None, "total_budget_s"))

    def test_times_have_three_digits_or_more(self):
        text = xrt("tune", "relu(f32[3])", "--store", self.store, "--per-problem", "20ms").stdout
        times = re.findall(r"(\d+\.\d+) us", text)
        self.assertEqual(len(times), 2, text)
        for time_us in times:
            self.assertGreaterEqual(len(time_us.replace(".", "").lstrip("0")), 3, text)

    def test_what_is_wrong_in_a_log_is_said_with_its_place(self):
        lines = self.write("log.txt", f"# two\n{SQUARE}\n\nrelu(f32[)\n")
        self.refused(2, "tune", "--from-log", lines, says=f"log '{lines}', line 4: ")
        events = [{"ph": "X", "args": {"problem": problem}} for problem in (SQUARE, "relu(f32[)")]
        trace = self.write("log.json", json.dumps({"traceEvents": events}))
        self.refused(2, "tune", "--from-log", trace, says=f"log '{trace}', event 2: ")

    def test_events_of_ops_that_only_the_traced_program_has_are_left_out(self):
        own = ["scaled2(f32[5]) @cpu:0", "scaled2(f32[5]) @cpu:0", "mine:backward(f32[5], f32[5]) @cpu:0"]
        events = [{"ph": "X", "args": {"problem": problem}} for problem in (*own, "relu(f32[5]) @cpu:0")]
        trace, lock = self.write("log.json", json.dumps({"traceEvents": events})), self.folder / "kernels.lock"
        left_out = f"log '{trace}': 3 events of ops that are unknown here left out (mine, scaled2); "
        answer = xrt("lock", "record", "--from-log", trace, "--out", lock)
        self.assertEqual(answer.returncode, 0, answer)
        self.assertIn(left_out, answer.stderr)
        self.assertIn("1 decision recorded", answer.stdout)
        answer = xrt("tune", "--from-log", trace, "--store", self.store, "--per-problem", "2ms", "--json")
        self.assertIn(left_out, answer.stderr)
        [result] = json.loads(answer.stdout)["results"]
        self.assertEqual(result["problem"], "relu(f32[5]) @cpu:0")
        none = self.write("own.json", json.dumps({"traceEvents": events[:3]}))
        self.refused(2, "tune", "--from-log", none,
                     says="holds only problems of ops that are unknown here (mine, scaled2)")
        lines = self.write("log.txt", "relu(f32[5])\nscaled2(f32[5])\n")  # by hand, so it may be a mistake
        self.refused(2, "tune", "--from-log", lines, says=[f"log '{lines}', line 2: ", "unknown op 'scaled2'"])

    def test_bad_kernels_never_win_and_stay_in_quarantine(self):
        problem = "tanh(f32[100])"
        first = xrt("--plugin", BAD_KERNELS, "tune", problem, "--store", self.store, "--json")
        self.assertEqual(first.returncode, 0, first)
        [result] = json.loads(first.stdout)["results"]
        bad = {c["kernel"]: c["reason"] for c in result["candidates"] if c["outcome"] == "quarantined"}
        self.assertTrue(bad)
        self.assertNotIn(result["chosen"], bad)
        again = json.loads(xrt("--plugin", BAD_KERNELS, "tune", problem, "--store", self.store, "--json").stdout)
        still = {c["kernel"] for c in again["results"][0]["candidates"] if c["outcome"] == "quarantined"}
        self.assertEqual(still, set(bad))
        decision = json.loads(xrt("--plugin", BAD_KERNELS, "explain", problem, "--policy", self.best_performance(),
                                  "--store", self.store, "--json").stdout)
        for row in decision["candidates"]:
            if row["kernel"] in bad:
                self.assertIn("quarantined", row["reason"])

    def test_wrong_usage(self):
        self.refused(2, "tune", "--store", self.store, says="no problem was given")
        self.refused(2, "tune", SQUARE, "--budget", "soon", "--store", self.store, says="soon")
        self.refused(2, "tune", SQUARE, "--store", "/dev/null/store.sqlite", says="store")
        self.refused(2, "tune", "matmul(f32[2,3])", "--store", self.store, says="matmul")
        self.refused(2, "tune", SQUARE, "--ranges", "--store", self.store, says="--ranges is for the problems of a log")

    def test_plain_lines_without_a_terminal_and_a_bar_on_one(self):
        answer = xrt("tune", SQUARE, "--store", self.store)
        self.assertIn("xrt: 1/1 matmul(f32[64,64], f32[64,64]) @cpu:0: ", answer.stderr)
        leader, follower = pty.openpty()
        with subprocess.Popen([XRT, "tune", SQUARE, "--store", str(self.store)], stderr=follower,
                              stdout=subprocess.DEVNULL) as process:
            os.close(follower)
            shown = b""
            while True:
                try:
                    block = os.read(leader, 4096)
                except OSError:
                    break
                if not block:
                    break
                shown += block
            self.assertEqual(process.wait(timeout=60), 0)
        os.close(leader)
        self.assertIn("1/1", shown.decode())
        self.assertIn("[....................]", shown.decode())

    def test_an_interrupt_keeps_what_was_finished(self):
        problems = [f"matmul(f32[{n},{n}], f32[{n},{n}])" for n in range(300, 420)]
        with subprocess.Popen([XRT, "tune", *problems, "--store", str(self.store), "--budget", "2m", "--json"],
                              stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as process:
            first = process.stderr.readline()
            self.assertIn("1/120", first)
            process.send_signal(signal.SIGINT)
            output, messages = process.communicate(timeout=60)
        self.assertEqual(process.returncode, 1, messages)
        self.assertIn("interrupted; what was finished is stored", messages)
        finished = json.loads(output)["results"]
        self.assertLess(len(finished), 120)
        listed = json.loads(self.fine("store", "list", "--store", self.store, "--json"))
        self.assertIn(finished[0]["problem"], json.dumps(listed))

    def test_an_interrupt_that_was_ignored_at_the_start_stays_ignored(self):
        problems = [f"relu(f32[{n}])" for n in range(1, 21)]
        with subprocess.Popen(["sh", "-c", 'trap "" INT; exec "$@"', "sh", XRT, "tune", *problems, "--store",
                               str(self.store), "--per-problem", "5ms", "--budget", "2m"],
                              stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True) as process:
            lines = [process.stderr.readline()]
            process.send_signal(signal.SIGINT)
            lines += process.stderr.readlines()
        self.assertEqual(process.returncode, 0, lines)
        self.assertIn("20/20", "".join(lines))


class Killed(CliTest):
    """kill -9 at random moments: every file opens, and what was reported as finished is there."""

    def test_two_hundred_times(self):
        store, policy, lock = (self.folder / name for name in ("store.sqlite", "policy.json", "kernels.lock"))
        chance = random.Random(20)
        problems = [f"relu(f32[{n}])" for n in range(1, 9)]
        command = [XRT, "tune", *problems, "--store", str(store), "--out", str(policy), "--lock", str(lock),
                   "--per-problem", "5ms"]
        whole = self.seconds_of(command)
        for path in self.folder.iterdir():
            path.unlink()
        reported = set()
        for _ in range(200):
            with subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True) as process:
                time.sleep(chance.random() * whole)
                process.kill()
                for line in process.stderr:
                    if line.startswith("xrt: ") and line.endswith("\n") and "relu(" in line:
                        reported.add(line.split(" ", 2)[2].rsplit(": ", 1)[0])
        for path, *words in ((policy, "policy", "show"), (lock, "lock", "verify")):
            if path.exists():
                self.fine(*words, path)
        self.fine("store", "check", "--store", store)
        listed = json.dumps(json.loads(self.fine("store", "list", "--store", store, "--json")))
        self.assertTrue(reported)
        for problem in reported:
            self.assertIn(problem, listed)

    @staticmethod
    def seconds_of(command):
        started = time.monotonic()
        subprocess.run(command, check=True, capture_output=True, timeout=60)
        return time.monotonic() - started


class ManyProcesses(CliTest):
    def test_eight_tune_the_same_problems_into_one_store(self):
        store = self.folder / "store.sqlite"
        problems = [f"softmax(f32[8,{n}])" for n in range(10, 16)]
        command = [XRT, "tune", *problems, "--store", str(store), "--per-problem", "5ms", "--json"]
        running = [subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
                   for _ in range(8)]
        for process in running:
            output, messages = process.communicate(timeout=120)
            self.assertEqual(process.returncode, 0, messages)
            self.assertEqual(len(json.loads(output)["results"]), 6)
        self.fine("store", "check", "--store", store)
        listed = json.dumps(json.loads(self.fine("store", "list", "--store", store, "--json")))
        for problem in problems:
            self.assertIn(problem, listed)


if __name__ == "__main__":
    unittest.main()
