"""xrt tune with ranges of sizes: what it measures, the policy that it writes, and the ranges that it sees in a log."""
import json
import unittest

from xrt_case import CliTest, xrt

PRODUCTS = "matmul(f32[m,32], f32[32,32]) where m=1..128"


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

    def test_rules_that_decide_sizes_stay_in_the_policy_that_is_written(self):
        own = {"op": "matmul", "range": "matmul(f32[m,32], f32[32,32]) @cpu:0 where m=1..64", "use": "openblas"}
        self.policy.write_text(json.dumps({"preferences": {}, "rules": [own]}))
        for high, more in ((64, 0), (128, 64)):
            lock = self.folder / f"{high}.lock"
            [result] = self.tune(PRODUCTS.replace("128", str(high)), "--policy", self.policy, "--out", self.policy,
                                 "--lock", lock)["ranges"]
            self.assertEqual((result["named_by_policy"], result["covered"]), (64, more))
            self.assertIn(own, json.loads(self.policy.read_text())["rules"])
            self.assertEqual(self.explain("matmul(f32[64,32], f32[32,32])")["kernel"], "openblas")
            self.fine("lock", "diff", lock, "--policy", self.policy)

    def test_a_kernel_that_the_policy_prefers_runs_all_the_same(self):
        own = {"preferences": {"matmul": "openblas"}}
        self.policy.write_text(json.dumps(own))
        answer = xrt("tune", PRODUCTS, "--policy", self.policy, "--out", self.policy, "--store", self.store)
        self.assertEqual(answer.returncode, 0, answer)
        self.assertIn("128 are left alone: the policy prefers openblas", answer.stdout)
        self.assertIn("1 of 1 ranges tuned", answer.stdout)
        self.assertIn("in force with XPURUNTIME_POLICY", answer.stdout)
        self.assertNotIn("--budget", answer.stderr)
        self.assertEqual(json.loads(self.policy.read_text()), own)

    def test_single_problems_and_ranges_go_together(self):
        document = self.tune("relu(f32[64])", "relu(f32[n]) where n=1..16", "--out", self.policy)
        self.assertEqual((document["problems"], len(document["results"]), len(document["ranges"])), (1, 1, 1))
        self.assertEqual([("range" in rule) for rule in json.loads(self.policy.read_text())["rules"]][0], False)
        text = xrt("tune", "relu(f32[64])", "relu(f32[n]) where n=1..16", "--store", self.store).stdout
        self.assertIn("relu(f32[n]) @cpu:0 where n=1..16", text)
        self.assertIn("1 of 1 problems and 1 of 1 ranges tuned in", text)

    def test_what_a_range_leaves_of_the_budget_goes_to_the_problems_and_back(self):
        products = [f"matmul(f32[{size},{size}], f32[{size},{size}])" for size in (192, 256, 320, 384)]
        answer = xrt("tune", "relu(f32[n]) where n=1..64", *products, "--store", self.store, "--budget", "2s", "--json",
                     "--out", self.policy)
        document = json.loads(answer.stdout)
        self.assertEqual(answer.returncode, 0, answer)
        spent = sum(result["spent_s"] for result in document["results"] + document["ranges"])
        for result in document["results"]:
            self.assertIsNotNone(result["chosen"])
            self.assertTrue(result["cut_by"] != "total_budget_s" or spent > 1.4, (result["cut_by"], spent))

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
        for says, code, arguments in (("at most 4096 are decided one by one", 2, ["relu(f32[n]) where n=1..5000"]),
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
        says = "ranges of sizes stand here, and one problem is asked for"
        for command in ("explain", "run", "bench"):
            answer = xrt(command, PRODUCTS)
            self.assertEqual(answer.returncode, 2)
            self.assertIn(says, answer.stderr)
        answer = xrt("tune", "--from-log", self.write("log.txt", PRODUCTS + "\n"), "--store", self.store)
        self.assertEqual(answer.returncode, 2)
        self.assertIn("log.txt', line 1: ", answer.stderr)
        self.assertIn(says, answer.stderr)

    def test_a_report_shows_the_ends_of_each_part(self):
        self.write("policy.json", '{"rules": [{"op": "relu", "range": "relu(f32[n]) where n=5..9", "use": "reference"}]}')
        document = json.loads(self.fine("report", "relu(f32[n]) where n=1..20", "--policy", self.policy, "--json"))
        self.assertEqual([row["problem"].split("[")[1].split("]")[0] for row in document["decisions"]],
                         ["1", "4", "5", "9", "10", "20"])


if __name__ == "__main__":
    unittest.main()
