"""xrt bench: every kernel side by side, and what must not run."""
import json
import unittest

from xrt_case import BAD_KERNELS, SQUARE, CliTest, xrt

KEYS = {"version", "problem", "default", "winner", "because", "cut_short", "measuring_s", "spent_s", "candidates"}
CANDIDATE_KEYS = {"kernel", "outcome", "reason", "default", "time_us", "noise_us", "to_best", "runs",
                  "workspace_bytes", "error", "tolerance", "plan"}


class BenchTest(CliTest):
    def bench(self, *arguments, code=0):
        document = self.document("bench", *arguments, "--json", code=code)
        self.assertEqual(set(document), KEYS)
        for candidate in document["candidates"]:
            self.assertEqual(set(candidate), CANDIDATE_KEYS)
        return document, {candidate["kernel"]: candidate for candidate in document["candidates"]}

    def test_puts_all_kernels_side_by_side(self):
        document, rows = self.bench(SQUARE, "--budget", "300ms")
        self.assertEqual(document["version"], 1)
        self.assertEqual(document["problem"], "matmul(f32[64,64], f32[64,64]) @cpu:0")
        winner = rows[document["winner"]]
        self.assertEqual(winner["outcome"], "won")
        self.assertGreater(winner["time_us"], 0)
        self.assertGreaterEqual(winner["to_best"], 1)
        self.assertLessEqual(winner["error"], winner["tolerance"])
        self.assertTrue(rows[document["default"]]["default"])
        self.assertEqual(sum(row["default"] for row in rows.values()), 1)
        self.assertEqual(rows["int8"]["outcome"], "refused")
        self.assertIn("takes i8", rows["int8"]["reason"])
        self.assertIsNone(rows["int8"]["time_us"])
        timed = [row["time_us"] for row in rows.values() if row["time_us"] is not None]
        self.assertGreater(len(timed), 2)
        self.assertGreater(rows["reference"]["time_us"], winner["time_us"])

    def test_prints_a_table(self):
        answer = self.fine("bench", "relu(f32[64])", "--budget", "100ms")
        lines = answer.splitlines()
        self.assertEqual(lines[0], "relu(f32[64]) @cpu:0")
        self.assertEqual(lines[1].split()[:3], ["kernel", "time", "noise"])
        self.assertTrue(any(line.startswith("-> simd: ") for line in lines), answer)
        self.assertIn("won, the default", answer)

    def test_obeys_the_limits_of_problem_and_policy(self):
        policy = self.write("policy.json", '{"workspace_limit_bytes": 0}')
        document, rows = self.bench(SQUARE, "--budget", "100ms", "--policy", policy)
        self.assertIn("the limit is 0", rows["packed"]["reason"])
        self.assertEqual(rows[document["winner"]]["workspace_bytes"], 0)

    def test_survives_kernels_that_end_the_process(self):
        answer = xrt("--plugin", BAD_KERNELS, "bench", "tanh(f32[100])", "--budget", "100ms", "--json")
        self.assertEqual(answer.returncode, 0, answer)
        document = json.loads(answer.stdout)
        rows = {row["kernel"]: row for row in document["candidates"]}
        reasons = {"crashing_tanh": "it crashed with signal 11 (SIGSEGV) in run",
                   "exiting_tanh": "it ended the process with exit code 3 in run",
                   "throwing_tanh": "it threw in run: it gave up"}
        for kernel, reason in reasons.items():
            self.assertEqual((rows[kernel]["outcome"], rows[kernel]["reason"]), ("quarantined", reason))
            self.assertIn(f"xrt: {kernel} must not run this: {reason}", answer.stderr)
        self.assertEqual(document["winner"], "simd")

    def test_never_lets_wrong_numbers_win(self):
        answer = xrt("--plugin", BAD_KERNELS, "bench", "relu(f32[1000])", "--budget", "100ms", "--json")
        document = json.loads(answer.stdout)
        rows = {row["kernel"]: row for row in document["candidates"]}
        for kernel in ("wrong_relu", "lazy_relu"):
            self.assertIn("it gave wrong numbers", rows[kernel]["reason"])
        self.assertEqual(rows["failing_relu"]["reason"], "it failed: it always fails")
        self.assertEqual(document["winner"], "simd")

    def test_says_no_where_nothing_can_run_it(self):
        document, _ = self.bench("exp:backward(f32[4], f32[4])", code=1)
        self.assertIsNone(document["winner"])
        self.assertIn("can run this", document["because"])

    def test_takes_a_budget_as_people_write_it(self):
        for budget in ("50ms", "0.05s", "0.001m"):
            self.fine("bench", "relu(f32[8])", "--budget", budget)

    def test_refuses_other_budgets(self):
        for budget in ("5", "0s", "-1s", "1e3s", "s", "5 s", "nan s", "inf h"):
            self.refused(2, "bench", "relu(f32[8])", f"--budget={budget}", says="is not a duration")
        self.refused(2, "bench", "relu(f32[8])", "--budget=721h", says="'721h' is too long; write at most 720h")

    def test_refuses_a_problem_it_cannot_read(self):
        self.refused(2, "bench", "relu(f32[8]", says="column")


if __name__ == "__main__":
    unittest.main()
