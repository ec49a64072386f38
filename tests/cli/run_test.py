"""run and trace: what happens when a problem runs."""
import json
import os
import unittest

from xrt_case import BAD_KERNELS, SQUARE, CliTest, xrt

# A kernel of each family that every processor can run.
FAMILIES = [
    ("matmul(i8[33,70], i8[70,20])", "int8"),
    ("linear(f16[40,96], f16[48,96], f16[48]; activation=gelu)", "packed"),
    ("conv2d(f32[1,16,20,20], f32[8,16,3,3]; padding=1,1)", "winograd"),
    ("conv3d(f32[1,4,6,7,8], f32[5,4,3,3,3])", "direct"),
    ("attention(f32[1,4,33,32], f32[1,2,40,32], f32[1,2,40,32]; causal=true)", "tiled"),
    ("max_pool2d(f32[2,5,17,19]; kernel_size=3,3 stride=2,2)", "simd"),
    ("batch_norm2d(f32[2,7,5,5], f32[7], f32[7], f32[7], f32[7])", "simd"),
    ("softmax(bf16[9,1000])", "simd"),
    ("dropout(f32[1000]; p=0.3 seed=7)", "simd"),
    ("gelu(f16[1003])", "simd"),
    ("reduce_mean(f32[31,57]; dim=0)", "simd"),
    ("embedding(i64[20], f32[50,16])", "rows"),
    ("embedding(i64[20], bf16[50,19]) -> f32[20,19]", "rows"),
    ("cross_entropy(f32[16,100], i64[16])", "simd"),
    ("transpose(f32[33,65])", "blocked"),
    ("concat(f32[3,4], f32[2,4])", "rows"),
]


class Run(CliTest):
    def test_numbers_near_the_end_of_their_range_do_not_wrap_into_wrong_answers(self):
        # 7 times the second stride is 1 modulo 2^64.
        for problem in ["conv2d(f32[1,8,64,64], f32[8,8,1,1]; stride=7,7905747460161236407)",
                        "conv2d(f32[1,4,16,8], f32[4,4,3,3]; stride=7,7905747460161236407)",
                        "conv2d(f32[1,4,8,8], f32[4,4,3,3]; stride=9223372036854775807)"]:
            with self.subTest(problem):
                document = self.document("run", problem, "--repeat", "1", "--json")
                self.assertIs(document["check"]["within"], True)

    def test_a_thread_count_of_the_environment_that_is_none_is_an_error(self):
        for count in ["0", "-1", "abc", "1025"]:
            with self.subTest(count):
                self.refused(2, "run", "relu(f32[8])", says=["XPURUNTIME_NUM_THREADS", "set 1 to 1024"],
                             env={**os.environ, "XPURUNTIME_NUM_THREADS": count})

    def devices(self):
        return [device["device"] for device in self.document("devices", "--json")["devices"]]

    def test_every_device_and_layout_agrees_with_the_reference(self):
        for device in self.devices():
            for problem in [SQUARE, "matmul(f32[1,4096], f32[4096,1])", "matmul(f32[8,16]{1,8}, f32[16,4]/4)",
                            "matmul(f32[3,5,7], f32[3,7,2])", "add(f32[33,7], f32[7]) -> f32[33,7]{1,33}",
                            "add(f16[64], f16[64])", "cast(f32[100]; dtype=bf16)", "add(f32[0,4], f32[4])"]:
                with self.subTest(problem, device=device):
                    document = self.document("run", problem, "--device", device, "--json")
                    self.assertIs(document["check"]["within"], True)
                    self.assertEqual(document["decision"]["device"], device)

    def test_dtypes_of_the_processor_agree_with_the_reference(self):
        for dtype in ["f64", "f32", "tf32", "f16", "bf16", "f8e4m3", "f8e5m2", "i64", "i32", "i16", "i8", "u8", "bool"]:
            problems = [f"cast({dtype}[65]; dtype=i32)", f"cast({dtype}[65]; dtype=f32)"]
            if dtype != "bool":  # there is no arithmetic on bools
                problems.append(f"add({dtype}[65], {dtype}[65])")
            for problem in problems:
                with self.subTest(problem):
                    self.assertIs(self.document("run", problem, "--json")["check"]["within"], True)

    def test_the_record_is_that_of_explain_with_time_and_check(self):
        document = self.document("run", SQUARE, "--repeat", "3", "--json")
        self.assertEqual(list(document), ["version", "decision", "time", "check"])
        explained = self.document("explain", SQUARE, "--json")
        for candidate in explained["candidates"]:  # a run asks only the kernel it takes
            if candidate["verdict"] == "passed":
                candidate["workspace_bytes"] = None
        self.assertEqual(document["decision"], explained)
        self.assertEqual(list(document["time"]), ["runs", "median_us", "min_us", "clock"])
        self.assertEqual([document["time"]["runs"], document["time"]["clock"]], [3, "host"])
        self.assertLessEqual(document["time"]["min_us"], document["time"]["median_us"])
        self.assertEqual(list(document["check"]),
                         ["within", "max_abs_error", "max_rel_error", "tolerance", "skipped"])

    def test_the_error_is_that_of_rounding_and_follows_the_seed(self):
        first, again, other = (self.document("run", SQUARE, "--seed", seed, "--json")["check"] for seed in (1, 1, 2))
        self.assertEqual(first, again)
        self.assertNotEqual(first["max_abs_error"], other["max_abs_error"])
        # 64 products summed in f32: some steps of 2^-24 of sums near 3, never none.
        self.assertTrue(1e-8 < first["max_abs_error"] < 1e-5, first)
        # Over a largest value near 3: half a step of f32 for the result, and for the sum 14 times sqrt(64) steps of its
        # Q, which is near sqrt(64) / 3. Some values are larger than others, and so is what they are allowed.
        self.assertTrue(30 < first["tolerance"] / 2**-24 < 600, first)
        self.assertLess(first["max_rel_error"], first["tolerance"])

    def test_the_text_says_which_error_the_tolerance_bounds(self):
        self.assertRegex(self.fine("run", SQUARE), r"error  max abs \S+; max rel \S+, within the tolerance \S+\n")

    def test_integers_must_be_equal(self):
        check = self.document("run", "matmul(i32[8,8], i32[8,8])", "--json")["check"]
        self.assertEqual([check["tolerance"], check["max_abs_error"], check["within"]], [0, 0, True])

    def test_a_wrong_kernel_is_found_out(self):
        for kernel in ["wrong_relu", "lazy_relu"]:
            arguments = ("--plugin", BAD_KERNELS, "run", "relu(f32[1000])", "--force", kernel)
            with self.subTest(kernel):
                document = self.document(*arguments, "--json", code=1)
                self.assertEqual(document["decision"]["kernel"], kernel)
                self.assertIs(document["check"]["within"], False)
                answer = xrt(*arguments)
                self.assertEqual(answer.returncode, 1)
                self.assertRegex(answer.stdout, r"max abs \S+; max rel \S+, above the tolerance \S+\n")

    def test_a_kernel_that_writes_to_its_inputs_is_found_out(self):
        arguments = ("--plugin", BAD_KERNELS, "run", "silu(f32[1000])", "--force", "scribbling_silu", "--json")
        answer = self.refused(1, *arguments, says="scribbling_silu is wrong: it wrote to its inputs", with_answer=True)
        self.assertEqual(json.loads(answer.stdout)["check"], {"within": False, "skipped": "it wrote to its inputs"})

    def test_the_error_it_prints_is_the_one_that_was_made(self):
        arguments = ("--plugin", BAD_KERNELS, "run", "relu(f32[1000])", "--force", "wrong_relu", "--json")
        self.assertAlmostEqual(self.document(*arguments, code=1)["check"]["max_abs_error"], 1e-4, delta=1e-6)

    def test_a_kernel_that_fails_is_told_and_another_takes_over_where_that_is_allowed(self):
        run = ("--plugin", BAD_KERNELS, "run", "relu(f32[8])")
        self.refused(1, *run, "--force", "failing_relu", says="it always fails")
        policy = self.write("policy.json", '{"preferences": {"relu": ["failing_relu", "reference"]}}')
        answer = self.refused(0, *run, "--policy", policy, "--json", says=["failing_relu", "it always fails"],
                              with_answer=True)
        self.assertEqual(json.loads(answer.stdout)["decision"]["kernel"], "reference")

    def test_what_has_no_reference_says_that_it_was_not_checked(self):
        arguments = ("--plugin", BAD_KERNELS, "run", "exp:backward(f32[8], f32[8])", "--force", "lone_exp")
        check = self.document(*arguments, "--json")["check"]
        self.assertEqual(list(check), ["within", "skipped"])
        self.assertIsNone(check["within"])
        self.assertIn("the reference cannot run it", check["skipped"])
        self.assertIn("not checked: the reference cannot run it", self.fine(*arguments))
        self.assertIn("not checked: --no-check was given", self.fine("run", SQUARE, "--no-check"))

    def test_a_refusal_is_a_no_with_its_record(self):
        arguments = ("run", SQUARE, "--force", "MATMUL_DIRECT")
        answer = self.refused(1, *arguments, says="needs an OpenCL device", with_answer=True)
        self.assertIn("nothing can run this", answer.stdout)
        document = self.document(*arguments, "--json", code=1)
        self.assertEqual([document["decision"]["kernel"], document["time"], document["check"]], [None, None, None])

    def test_limits_in_the_text_are_kept(self):
        problem = SQUARE + " @cpu:0 deterministic workspace_limit=0"
        self.assertEqual(self.document("run", problem, "--json")["decision"]["problem"], problem)

    def test_one_thread_and_two_give_the_same_bits(self):
        problem = "layer_norm(f32[257,769], f32[769], f32[769])"
        one, two = (self.document("run", f"{problem} threads={count}", "--json") for count in (1, 2))
        self.assertTrue(one["decision"]["problem"].endswith(" threads=1"))
        self.assertEqual(one["check"], two["check"])

    def test_one_problem_of_each_family_agrees_with_the_reference(self):
        for problem, kernel in FAMILIES:
            with self.subTest(problem):
                document = self.document("run", problem, "--repeat", "1", "--force", kernel, "--json")
                self.assertEqual(document["decision"]["kernel"], kernel)
                self.assertIs(document["check"]["within"], True, document["check"])


class Demo(CliTest):
    def test_each_op_of_a_block_has_its_kernel_its_time_and_what_the_others_took(self):
        document = self.document("demo", "--block", "cnn", "--repeat", "1", "--json")
        self.assertEqual(list(document), ["version", "blocks"])
        (block,) = document["blocks"]
        self.assertEqual(list(block), ["block", "total_us", "steps", "worst", "worst_fast"])
        self.assertEqual(block["block"], "cnn")
        self.assertAlmostEqual(block["total_us"], sum(step["time_us"] for step in block["steps"]), delta=0.01)
        for step in block["steps"]:
            self.assertEqual(list(step), ["decision", "time_us", "others"])
            passed = [each["kernel"] for each in step["decision"]["candidates"] if each["verdict"] == "passed"]
            self.assertEqual([other["kernel"] for other in step["others"]], passed)
        worst = block["worst"]
        lost = [other["time_us"] - step["time_us"] for step in block["steps"] for other in step["others"]]
        self.assertAlmostEqual(worst["time_us"] - block["steps"][worst["step"]]["time_us"], max(lost), delta=0.01)

    def test_the_text_names_the_worst_choice_and_what_it_would_cost(self):
        policy = self.write("policy.json", '{"preferences": {"relu": "reference"}, "threads": 1}')
        text = self.fine("demo", "--block", "cnn", "--repeat", "1", "--policy", policy)
        self.assertTrue(text.startswith("cnn: "))
        self.assertRegex(text, r"\n    -> reference +\S+ .s +\[prefer\] ")
        self.assertRegex(text, r"\n  11 ops in \S+ .?s\n  the worst choice open to you: \w+ for \w+\(.* times as long\n")

    def test_both_blocks_are_shown_unless_one_is_named(self):
        names = [block["block"] for block in self.document("demo", "--repeat", "1", "--json")["blocks"]]
        self.assertEqual(names, ["transformer", "cnn"])
        self.refused(2, "demo", "--block", "rnn", says="transformer")
        self.refused(2, "demo", "--repeat", "0", says="--repeat")


class Trace(CliTest):
    def calls(self, document):
        self.assertEqual(document["traceEvents"][0]["ph"], "M")
        return [event for event in document["traceEvents"] if event["ph"] == "X"]

    def test_each_call_is_a_slice_in_order(self):
        calls = self.calls(self.document("trace", SQUARE, "relu(f32[64,64])", "--repeat", "2"))
        self.assertEqual([call["name"] for call in calls], ["matmul", "relu", "matmul", "relu"])
        self.assertEqual(calls[0]["args"]["kernel"], "small")
        self.assertEqual(sorted(call["ts"] for call in calls), [call["ts"] for call in calls])

    def test_json_is_the_trace_or_what_was_written_where(self):
        self.assertEqual(len(self.calls(self.document("trace", SQUARE, "--repeat", "1", "--json"))), 1)
        path = self.folder / "trace.json"
        self.assertEqual(self.fine("trace", SQUARE, "--out", path), f"3 calls written to {path}\n")
        self.assertEqual(len(self.calls(json.loads(path.read_text()))), 3)
        summary = self.document("trace", SQUARE, "--out", path, "--json")
        self.assertEqual(summary, {"version": 1, "file": str(path), "calls": 3, "model_runs": 0})

    def test_policies_decide(self):
        policy = self.write("policy.json", '{"preferences": {"matmul": "reference"}}')
        calls = self.calls(self.document("trace", SQUARE, "--policy", policy, "--repeat", "1"))
        self.assertEqual(calls[0]["args"]["kernel"], "reference")

    def test_what_cannot_run_or_be_written_is_refused(self):
        self.refused(1, "trace", SQUARE, "exp:backward(f32[8], f32[8])", says="forward only")
        self.refused(2, "trace", SQUARE, "--out", self.folder / "no" / "such" / "folder", says="cannot be written")


if __name__ == "__main__":
    unittest.main()
