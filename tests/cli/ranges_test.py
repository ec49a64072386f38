"""xrt tune with ranges of sizes: what it measures, the policy that it writes, and the ranges that it sees in a log."""
import json
import signal
import subprocess
import unittest

from xrt_case import XRT, CliTest, xrt

PRODUCTS = "matmul(f32[m,32], f32[32,32]) where m=1..128"
IN_FORCE = 'in force under a policy with "auto_strategy": "best_performance", for the sizes that were measured'


class Ranges(CliTest):
    def setUp(self):
        super().setUp()
        self.store = self.folder / "store.sqlite"
        self.policy = self.folder / "policy.json"

    def tune(self, *arguments, code=0):
        answer = xrt("tune", *arguments, "--store", self.store, "--per-problem", "2ms", "--json")
        self.assertEqual(answer.returncode, code, answer)
        return json.loads(answer.stdout)

    def explain(self, problem):
        return json.loads(self.fine("explain", problem, "--policy", self.policy, "--json"))

    def test_the_policy_of_128_sizes_is_short_and_decides_each_of_them(self):
        document = self.tune(PRODUCTS, "--out", self.policy)
        [result] = document["ranges"]
        self.assertEqual((document["problems"], document["results"]), (0, []))
        self.assertEqual((result["problems"], result["covered"], result["complete"]), (128, 128, True))
        self.assertLessEqual(len(result["measured"]), 32)
        text = self.policy.read_text()
        self.assertLessEqual(text.count("\n"), 6 * len(result["parts"]) + 6)
        self.fine("policy", "validate", self.policy)
        self.assertIn("where m=", self.fine("policy", "show", self.policy))
        kernels = {}
        for part in result["parts"]:
            low, high = part["range"].split("m=")[1].split("..")
            kernels.update(dict.fromkeys(range(int(low), int(high) + 1), part["kernel"]))
        self.assertEqual(sorted(kernels), list(range(1, 129)))
        for size in (1, 2, 17, 63, 100, 127, 128):
            decision = self.explain(f"matmul(f32[{size},32], f32[32,32])")
            self.assertEqual((decision["kernel"], decision["level"]), (kernels[size], "rule"))
            self.assertIn(f"of the policy matches at m={size}", decision["because"])
        self.assertEqual(self.explain("matmul(f32[129,32], f32[32,32])")["level"], "strategy")

    def test_what_was_measured_is_stored_by_its_own_problem(self):
        [result] = self.tune(PRODUCTS)["ranges"]
        listed = json.loads(self.fine("store", "export", "--store", self.store))
        self.assertNotIn("where", json.dumps(listed))
        for problem in result["measured"]:
            self.assertIn(problem, json.dumps(listed))

    def test_without_a_policy_only_the_measured_sizes_are_said_to_be_in_force(self):
        answer = xrt("tune", PRODUCTS, "--store", self.store, "--per-problem", "2ms")
        self.assertEqual(answer.returncode, 0, answer)
        self.assertEqual(answer.stdout.splitlines()[-1], IN_FORCE + "; --out FILE writes rules for all")

    def test_the_limits_of_a_range_are_set_by_its_policy(self):
        lock = self.folder / "kernels.lock"
        self.tune(PRODUCTS.replace(" where", " threads=1 where"), "--out", self.policy, "--lock", lock)
        self.assertEqual(self.explain("matmul(f32[77,32], f32[32,32])")["level"], "rule")
        self.fine("run", "matmul(f32[77,32], f32[32,32])",
                  env={"XPURUNTIME_POLICY": str(self.policy), "XPURUNTIME_LOCK": str(lock)})

    def test_rules_that_decide_sizes_stay_in_the_policy_that_is_written(self):
        own = {"op": "matmul", "range": "matmul(f32[m,32], f32[32,32]) @cpu:0 where m=1..64", "use": "openblas"}
        self.policy.write_text(json.dumps({"preferences": {}, "rules": [own]}))
        for high, more in ((64, 0), (128, 64)):
            lock = self.folder / f"{high}.lock"
            [result] = self.tune(PRODUCTS.replace("128", str(high)), "--policy", self.policy, "--out", self.policy,
                                 "--lock", lock)["ranges"]
            self.assertEqual((result["named_by_policy"], result["covered"]), (64, more))
            for size in (1, 64):
                self.assertEqual(self.explain(f"matmul(f32[{size},32], f32[32,32])")["kernel"], "openblas")
            self.fine("lock", "diff", lock, "--policy", self.policy)

    def test_a_kernel_that_the_policy_prefers_runs_all_the_same(self):
        own = {"preferences": {"matmul": "openblas"}}
        self.policy.write_text(json.dumps(own))
        answer = xrt("tune", PRODUCTS, "--policy", self.policy, "--out", self.policy, "--store", self.store)
        self.assertEqual(answer.returncode, 0, answer)
        self.assertIn("128 are left alone: the policy prefers openblas", answer.stdout)
        *_, summary, last = answer.stdout.splitlines()
        self.assertRegex(summary, r"^0 of 1 ranges tuned \(1 decided by the policy already\) in \S+ s; nothing was stored$")
        self.assertIn("in force with XPURUNTIME_POLICY", last)
        self.assertNotIn("--budget", answer.stderr)
        self.assertEqual(json.loads(self.policy.read_text()), own)

    def test_the_last_line_of_an_unfinished_run_says_what_was_not_done(self):
        wide = "matmul(f32[m,768], f32[768,768]) where m=1..512"
        answer = xrt("tune", wide, "--budget", "1ms", "--store", self.store, "--out", self.policy)
        self.assertEqual((answer.returncode, self.policy.exists()), (1, False), answer)
        self.assertRegex(answer.stdout.splitlines()[-1], r"^0 of 1 ranges tuned .*in \S+ s")
        with subprocess.Popen([XRT, "tune", wide, "relu(f32[n]) where n=1..512", "--store", self.store, "--out", self.policy],
                              stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as process:
            process.stderr.readline()
            process.send_signal(signal.SIGINT)
            text, messages = process.communicate(timeout=60)
        self.assertEqual((process.returncode, self.policy.exists()), (1, False), messages)
        self.assertIn("interrupted", messages)
        *_, summary, last = text.splitlines()
        self.assertRegex(summary, r"^0 of 2 ranges tuned \(1 in part\) in \S+ s, kept in " + str(self.store))
        self.assertEqual(last, IN_FORCE)

    def test_a_range_that_the_budget_cuts_gives_rules_only_for_what_is_known(self):
        for budget in ("60ms", "120ms", "240ms"):  # on a busy machine the first may end before any size is done
            answer = xrt("tune", "softmax(f32[n,n]) where n=1..512", "--budget", budget, "--store", self.store, "--out",
                         self.policy, "--json")
            if self.policy.exists():
                break
        self.assertEqual(answer.returncode, 1, answer)
        self.assertIn("some sizes stay with the default; give more with --budget", answer.stderr)
        [result] = json.loads(answer.stdout)["ranges"]
        self.assertGreater(result["undecided"], 0)
        self.assertEqual(result["covered"] + result["undecided"], 512)
        self.assertLessEqual(result["guessed"] + len(set(result["measured"])), result["covered"])
        covered = set()
        for part in result["parts"]:
            low, high = part["range"].split("n=")[1].split("..")
            covered.update(range(int(low), int(high) + 1))
        for size in (1, 5, 31, 100, 512):
            level = "rule" if size in covered else "strategy"
            self.assertEqual(self.explain(f"softmax(f32[{size},{size}])")["level"], level, size)

    def test_sizes_that_fit_neither_memory_nor_budget_are_counted_and_not_measured(self):
        answer = xrt("tune", "relu(f32[n,n,n,n]) where n=1..1000", "--budget", "300ms", "--store", self.store, "--json")
        self.assertEqual(answer.returncode, 1, answer)
        [result] = json.loads(answer.stdout)["ranges"]
        self.assertGreater(result["too_large"], 0)
        self.assertEqual(result["covered"] + result["undecided"] + result["too_large"], 1000)
        self.assertLess(result["spent_s"], 15)
        self.assertNotIn("relu(f32[1000,1000,1000,1000]) @cpu:0", result["measured"])

    def test_single_problems_and_ranges_go_together(self):
        document = self.tune("relu(f32[64])", "relu(f32[n]) where n=1..16", "--out", self.policy)
        self.assertEqual((document["problems"], len(document["results"]), len(document["ranges"])), (1, 1, 1))
        self.assertEqual([("range" in rule) for rule in json.loads(self.policy.read_text())["rules"]][0], False)
        text = xrt("tune", "relu(f32[64])", "relu(f32[n]) where n=1..16", "--store", self.store).stdout
        self.assertIn("relu(f32[n]) @cpu:0 where n=1..16", text)
        self.assertIn("1 of 1 problems and 1 of 1 ranges tuned in", text)

    def test_what_a_range_leaves_of_the_budget_goes_to_the_problems_and_back(self):
        products = [f"matmul(f32[{size},{size}], f32[{size},{size}])" for size in (72, 80, 96, 112)]
        answer = xrt("tune", "relu(f32[n]) where n=1..64", *products, "--store", self.store, "--budget", "4s", "--json",
                     "--out", self.policy)
        document = json.loads(answer.stdout)
        self.assertEqual(answer.returncode, 0, answer)
        spent = sum(result["spent_s"] for result in document["results"] + document["ranges"])
        for result in document["results"]:
            self.assertIsNotNone(result["chosen"])
            self.assertTrue(result["cut_by"] != "total_budget_s" or spent > 2.8, (result["cut_by"], spent))

    def test_tuning_again_under_a_policy_of_a_part_leaves_no_neighbours_with_one_kernel(self):
        parts = ((3, 3, "reference"), (7, 7, "openblas"), (8, 9, "openblas"), (30, 40, "reference"))
        rules = [{"op": "matmul", "range": f"matmul(f32[m,32], f32[32,32]) @cpu:0 where m={low}..{high}", "use": kernel}
                 for low, high, kernel in parts]
        self.policy.write_text(json.dumps({"rules": rules}))
        [result] = self.tune(PRODUCTS, "--policy", self.policy, "--out", self.policy)["ranges"]
        self.assertEqual(result["named_by_policy"], 15)
        found = []
        for rule in json.loads(self.policy.read_text())["rules"]:
            low, high = rule["range"].split("m=")[1].split("..")
            found.append((int(low), int(high), rule["use"]))
        found.sort()
        for (_, end, kernel), (begin, _, following) in zip(found, found[1:]):
            self.assertLess(end, begin)
            self.assertFalse(end + 1 == begin and kernel == following, found)
        self.assertEqual(self.explain("matmul(f32[8,32], f32[32,32])")["kernel"], "openblas")

    def test_a_range_without_any_measurement_is_not_complete(self):
        answer = xrt("tune", "matmul(f32[m,768], f32[768,768]) where m=1..64", "--budget", "3ms", "--store", self.store,
                     "--json")
        [result] = json.loads(answer.stdout)["ranges"]
        self.assertEqual((result["measured"], result["undecided"], result["complete"]), ([], 64, False))

    def test_a_line_of_a_log_may_be_a_range(self):
        log = self.write("log.txt", "relu(f32[n]) where n=1..16\nrelu(f32[64])\nrelu(f32[n]) @cpu:0 where n=1..16\n")
        document = self.tune("--from-log", log, "relu(f32[64])")
        self.assertEqual([result["problem"] for result in document["results"]], ["relu(f32[64]) @cpu:0"])
        self.assertEqual([result["range"] for result in document["ranges"]], ["relu(f32[n]) @cpu:0 where n=1..16"])
        lock = json.loads(self.fine("lock", "record", "--from-log", log))
        self.assertEqual(len(lock["decisions"]), 2)
        wrong = self.write("wrong.txt", "relu(f32[64])\nrelu(f32[n]) where n=9..1\n")
        self.refused(2, "tune", "--from-log", wrong, says=f"log '{wrong}', line 2: ")

    def test_a_log_says_which_ranges_it_seems_to_hold(self):
        log = self.write("log.txt", "".join(f"relu(f32[{size}])\n" for size in (3, 5, 9, 12)) + "exp(f32[8])\n")
        seen = "relu(f32[n]) @cpu:0 where n=3..12"
        answer = xrt("tune", "--from-log", log, "--store", self.store, "--per-problem", "2ms", "--json")
        self.assertIn("4 of 5 problems differ in one size alone; --ranges tunes them as ranges", answer.stderr)
        self.assertIn(seen, answer.stderr)
        self.assertEqual(len(json.loads(answer.stdout)["results"]), 5)
        document = self.tune("--from-log", log, "--ranges", "--out", self.policy)
        self.assertEqual([result["problem"] for result in document["results"]], ["exp(f32[8]) @cpu:0"])
        self.assertEqual([result["range"] for result in document["ranges"]], [seen])
        self.assertEqual(self.explain("relu(f32[7])")["level"], "rule")
        few = self.write("few.txt", "relu(f32[3])\nrelu(f32[5])\nrelu(f32[9])\n")
        answer = xrt("tune", "--from-log", few, "--ranges", "--store", self.store, "--per-problem", "2ms")
        self.assertEqual(answer.returncode, 0, answer)
        self.assertIn("no range was found: --ranges takes at least 4 problems that differ in one size alone", answer.stderr)

    def test_a_lock_has_an_entry_for_each_part_and_replays_sizes_that_were_never_run(self):
        lock = self.folder / "kernels.lock"
        [result] = self.tune(PRODUCTS, "--out", self.policy, "--lock", lock)["ranges"]
        entries = {entry["problem"]: entry["kernel"] for entry in json.loads(lock.read_text())["decisions"]}
        self.assertEqual(entries, {part["range"]: part["kernel"] for part in result["parts"]})
        self.fine("lock", "verify", lock)
        recorded = self.folder / "recorded.lock"
        self.fine("lock", "record", PRODUCTS, "--policy", self.policy, "--out", recorded)
        self.fine("lock", "diff", lock, recorded)
        self.fine("lock", "diff", lock, "--policy", self.policy)
        self.assertIn(" shown in ", self.fine("report", "--lock", lock, "--out", self.folder / "report.html"))
        self.assertEqual(len(json.loads(self.fine("report", "--lock", lock, "--json"))["decisions"]), len(entries))

    def test_a_range_that_no_lock_can_hold_is_refused_before_anything_is_measured(self):
        lock = self.folder / "kernels.lock"
        casts = self.write("casts.json", '{"precision": {"matmul": "bf16"}}')
        product = "matmul(f32[m,16], f32[16,16]) -> bf16[m,16] where m=1..4"
        for says, code, arguments in (("at most 131072 are decided one by one", 2, ["relu(f32[n]) where n=1..200000"]),
                                      ("its tensors are cast first", 1, [product, "--policy", casts])):
            answer = xrt("tune", *arguments, "--store", self.store, "--lock", lock)
            self.assertEqual(answer.returncode, code, answer)
            self.assertIn(says, answer.stderr)
            self.assertFalse(self.store.exists())

    def test_what_was_tuned_is_told_where_no_lock_can_be_written(self):
        force = self.write("force.json", '{"preferences": {"matmul": {"kernel": "skinny", "mode": "force"}}}')
        answer = xrt("tune", PRODUCTS, "--policy", force, "--store", self.store, "--per-problem", "2ms",
                     "--lock", self.folder / "kernels.lock")
        self.assertEqual(answer.returncode, 1, answer)
        self.assertIn("no lock was written: [record_lock] matmul(f32[m,32], f32[32,32]) @cpu:0 where m=", answer.stderr)
        self.assertRegex(answer.stdout, r"\d+ are left alone: the policy forces skinny; no kernel was found for \d+")

    def test_wrong_ranges_are_refused_with_the_column(self):
        for text, why in ((PRODUCTS.replace("1..128", "9..1"), "column 39: the range runs backwards"),
                          (PRODUCTS.replace("m=1", "k=1"), "column 12: m is not defined"),
                          ("relu(f32[n]) where n=1..99999999", "column 14: the ranges hold more than 1048576")):
            answer = xrt("tune", text, "--store", self.store)
            self.assertEqual(answer.returncode, 2, answer)
            self.assertIn("[parse_problem_range] " + why, answer.stderr)
        says = "this has ranges of sizes, and one problem is expected"
        for command in ("explain", "run", "bench"):
            answer = xrt(command, PRODUCTS)
            self.assertEqual(answer.returncode, 2)
            self.assertIn(says, answer.stderr)

    def test_diff_and_report_say_the_same_of_a_locked_range(self):
        lock = self.folder / "kernels.lock"
        self.fine("lock", "record", "relu(f32[n]) where n=1..20", "--out", lock)
        self.assertIn("no difference", self.fine("lock", "diff", lock))
        self.assertEqual(self.document("report", "--against", lock, "--json")["changes"], [])
        rules = [{"op": "relu", "range": f"relu(f32[n]) where n={sizes}", "use": "reference"} for sizes in ("5..9", "20..20")]
        self.policy.write_text(json.dumps({"rules": rules}))
        expected = [{"problem": f"relu(f32[n]) @cpu:0 where n={sizes}", "field": "kernel", "before": "simd",
                     "after": "reference"} for sizes in ("20..20", "5..9")]
        under = ("--policy", self.policy, "--json")
        self.assertEqual(self.document("lock", "diff", lock, *under, code=1)["differences"], expected)
        self.assertEqual(self.document("report", "--against", lock, *under)["changes"], expected)
        [row] = self.document("report", "--lock", lock, *under)["decisions"]
        self.assertRegex(row["notes"][0], "^here and now reference would run for n=5..9 and n=20: ")
        limits = self.write("limits.json", '{"threads": 1}')
        self.assertEqual(xrt("lock", "diff", lock, "--policy", limits).stdout, "limits: none -> threads=1 (1 decision)\n")

    def test_a_report_shows_the_ends_of_each_part(self):
        self.write("policy.json", '{"rules": [{"op": "relu", "range": "relu(f32[n]) where n=5..9", "use": "reference"}]}')
        document = json.loads(self.fine("report", "relu(f32[n]) where n=1..20", "--policy", self.policy, "--json"))
        self.assertEqual([row["problem"].split("[")[1].split("]")[0] for row in document["decisions"]],
                         ["1", "4", "5", "9", "10", "20"])


if __name__ == "__main__":
    unittest.main()
