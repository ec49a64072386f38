"""devices, profile, kernels and explain: what is here and what would be chosen."""
import json
import os
import unittest

from xrt_case import BAD_KERNELS, PROFILES, SQUARE, TOY_DEVICE, CliTest, xrt

DECISION_KEYS = ["version", "problem", "device", "kernel", "kernel_version", "level", "because", "precision", "casts",
                 "copies", "plan", "workspace_bytes", "candidates"]
CANDIDATE_KEYS = ["kernel", "verdict", "reason", "time_us", "workspace_bytes", "copied_bytes"]


class Devices(CliTest):
    def test_the_table_has_the_processor_first_and_says_why_others_are_not_here(self):
        lines = self.fine("devices").splitlines()
        self.assertEqual(lines[0].split(), ["device", "name", "vendor", "units", "memory", "flags"])
        self.assertTrue(lines[1].startswith("cpu:0 "))
        self.assertIn("no npu: no backend for npu is loaded", lines)

    def test_json_lists_each_type_as_present_or_absent(self):
        document = self.document("devices", "--json")
        self.assertEqual(list(document), ["version", "devices", "absent"])
        self.assertEqual(document["version"], 1)
        present = {device["device"].split(":")[0] for device in document["devices"]}
        absent = {entry["type"] for entry in document["absent"]}
        self.assertEqual(present | absent, {"cpu", "cuda", "opencl", "npu", "kunlun", "hygon", "moore"})
        self.assertEqual(present & absent, set())
        self.assertTrue(all(entry["why"] for entry in document["absent"]))
        self.assertGreater(document["devices"][0]["profile"]["compute_units"], 0)

    def test_a_driver_that_is_there_and_does_not_load_says_why(self):
        self.write("libcuda.so.1", "not a library")
        folders = f"{self.folder}:{os.environ.get('LD_LIBRARY_PATH', '')}"
        absent = self.document("devices", "--json", env={"LD_LIBRARY_PATH": folders})["absent"]
        why = next(entry["why"] for entry in absent if entry["type"] == "cuda")
        if "NVIDIA driver" not in why:
            self.skipTest(why)
        self.assertRegex(why, "libcuda.so.1: (file too short|invalid ELF header)")

    def test_a_saved_profile_asks_the_same_device_and_gets_the_same_choice(self):
        saved = self.write("here.json", self.fine("profile", "cpu:0"))
        self.assertEqual(json.loads(saved.read_text()), self.document("devices", "--json")["devices"][0]["profile"])
        self.assertEqual(saved.read_text(), self.fine("profile", "--json"))
        described = self.document("explain", SQUARE, "--profile", saved, "--json")
        here = self.document("explain", SQUARE, "--json")
        self.assertEqual(described["device"], "cpu:0")
        self.assertEqual([described["kernel"], described["because"]], [here["kernel"], here["because"]])

    def test_profiles_of_absent_devices_are_refused(self):
        self.refused(1, "profile", "npu:0", says="npu")
        self.refused(1, "profile", "cpu:200", says="cpu:0")
        self.refused(2, "profile", "gpu!")


ONLY_REFERENCE = {"bitwise_not", "cumsum", "one_hot", "reduce_prod", "shift_left", "shift_right", "top_k", "trunc_div"}


class Kernels(CliTest):
    def test_the_reference_stands_last_of_the_processors(self):
        rows = self.document("kernels", "--json")["kernels"]
        by_op = {}
        for row in rows:
            if row["device_type"] == "cpu" and row["registered"]:
                by_op.setdefault(row["op"], []).append(row["kernel"])
        self.assertEqual(by_op["matmul"],
                         ["small", "skinny", "amx", "int8", "packed", "onednn", "openblas", "reference"])
        self.assertEqual(by_op["attention"], ["single_query", "tiled_amx", "tiled", "composed", "reference"])
        self.assertEqual(by_op["relu"], ["simd", "reference"])
        self.assertEqual(set(by_op), {row["op"] for row in rows})
        for op, names in by_op.items():
            self.assertEqual(names.index("reference"), len(names) - 1, op)
        # So that an op cannot stay without a fast kernel unseen.
        self.assertEqual({op for op, names in by_op.items() if len(names) == 1}, ONLY_REFERENCE)

    def test_each_row_is_usable_or_says_why_not(self):
        document = self.document("kernels", "--json")
        self.assertEqual(list(document), ["version", "kernels"])
        present = {device["device"].split(":")[0] for device in self.document("devices", "--json")["devices"]}
        for row in document["kernels"]:
            self.assertEqual(list(row), ["op", "device_type", "kernel", "usable", "why_not", "registered", "summary",
                                         "dtypes", "directions"])
            if row["usable"]:
                self.assertTrue(row["registered"] and row["device_type"] in present, row)
            self.assertEqual(row["why_not"] is None, row["usable"])
            if row["kernel"] in ["simd", "packed", "reference"] and row["device_type"] == "cpu":
                self.assertTrue(row["usable"], row)
        self.assertIn(("flash_v2", "needs a later version of xpuruntime"),
                      [(row["kernel"], row["why_not"]) for row in document["kernels"]])

    def test_a_kernel_that_this_processor_has_no_instructions_for_is_not_usable(self):
        features = self.document("profile", "cpu:0")["cpu_features"]
        tiles = all(feature in features for feature in ["amx_tile", "amx_bf16", "avx512f", "avx512bw"])
        rows = {row["kernel"]: row for row in self.document("kernels", "--json")["kernels"] if "amx" in row["kernel"]}
        for kernel in ["amx", "tiled_amx"]:
            self.assertEqual(rows[kernel]["usable"], tiles, rows[kernel])
            if not tiles:
                self.assertRegex(rows[kernel]["why_not"], "has no amx_bf16")

    def test_text_and_json_agree(self):
        rows = self.document("kernels", "--json")["kernels"]
        lines = self.fine("kernels").splitlines()
        usable = sum(row["usable"] for row in rows)
        ops = len({row["op"] for row in rows})
        self.assertEqual(lines[-1], f"{len(rows)} kernels for {ops} ops; {usable} can be used here")
        self.assertEqual([line.split()[:3] for line in lines if line.startswith("  ")],
                         [[row["device_type"], row["kernel"], "yes" if row["usable"] else "no"] for row in rows])

    def test_an_alias_names_its_op(self):
        self.assertEqual(self.fine("kernels", "MatMul"), self.fine("kernels", "matmul"))
        self.assertEqual(self.fine("kernels", "nll"), self.fine("kernels", "nll_loss"))
        self.assertTrue(self.fine("kernels", "nll").startswith("nll_loss\n"))

    def test_plugins_bring_their_kernels(self):
        text = self.fine("--plugin", BAD_KERNELS, "kernels", "exp")
        self.assertRegex(text, r"lone_exp +yes")
        self.assertNotIn("lone_exp", self.fine("kernels", "exp"))
        self.assertIn("lone_exp", self.fine("kernels", "exp", env={"XPURUNTIME_PLUGINS": BAD_KERNELS}))

    def test_plugins_are_there_before_anything_speaks_of_them(self):
        problem, lock = "relu(f32[8]) @toy:0", self.folder / "toy.lock"
        policy = self.write("policy.json", json.dumps({"preferences": {"exp": {"kernel": "lone_exp", "mode": "force"}}}))
        for given, variables in (["--plugin", TOY_DEVICE], {}), ([], {"XPURUNTIME_PLUGINS": TOY_DEVICE}):
            self.fine(*given, "lock", "record", problem, "--out", lock, env=variables)
            self.assertIn("toy_relu", self.fine(*given, "lock", "verify", lock, env=variables))
            self.assertIn("toy_relu", self.fine(*given, "explain", problem, env={**variables, "XPURUNTIME_LOCK": str(lock)}))
            self.assertIn("toy", self.fine(*given, "profile", "--device", "toy:0", env=variables))
        for given, variables in (["--plugin", BAD_KERNELS], {}), ([], {"XPURUNTIME_PLUGINS": BAD_KERNELS}):
            text = self.fine(*given, "explain", "exp(f32[8])", env={**variables, "XPURUNTIME_POLICY": str(policy)})
            self.assertIn("the policy forces lone_exp", text)
            tuned = xrt(*given, "tune", "exp(f32[8])", "--policy", policy, env=variables)
            self.assertIn("lone_exp", tuned.stdout, tuned)

    def test_plugins_that_are_none_are_wrong_usage(self):
        self.refused(2, "--plugin", self.folder / "missing.so", "devices", says="does not exist")
        self.refused(2, "--plugin", self.write("text.so", "no library"), "devices", says="text.so")
        self.refused(2, "--plugin", BAD_KERNELS, "--plugin", BAD_KERNELS, "devices", says="already")


class Explain(CliTest):
    def check_decision(self, decision):
        self.assertEqual(list(decision), DECISION_KEYS)
        self.assertEqual(list(decision["precision"]), ["forward", "backward", "because"])
        for candidate in decision["candidates"]:
            self.assertEqual(list(candidate), CANDIDATE_KEYS)
            self.assertIn(candidate["verdict"], ["chosen", "refused", "passed"])

    def test_the_record_has_exactly_the_keys_of_the_contract(self):
        decision = self.document("explain", SQUARE, "--json")
        self.check_decision(decision)
        self.assertEqual(decision["problem"], SQUARE + " @cpu:0")
        self.assertEqual([decision["kernel"], decision["level"]], ["small", "strategy"])
        verdicts = {candidate["kernel"]: candidate["verdict"] for candidate in decision["candidates"]}
        self.assertEqual([verdicts["small"], verdicts["packed"], verdicts["int8"], verdicts["reference"]],
                         ["chosen", "passed", "refused", "passed"])

    def test_text_shows_the_choice_and_each_candidate(self):
        lines = self.fine("explain", SQUARE).splitlines()
        self.assertEqual(lines[0], SQUARE + " @cpu:0")
        self.assertTrue(lines[1].startswith("  -> small [strategy] built-in rule: "))
        self.assertTrue(any(line.split()[:2] == ["passed", "reference"] for line in lines))

    def test_force_runs_that_kernel(self):
        decision = self.document("explain", SQUARE, "--force", "reference", "--json")
        self.assertEqual([decision["kernel"], decision["level"]], ["reference", "force"])

    def test_a_refused_force_is_a_no_with_its_record(self):
        decision = self.document("explain", SQUARE, "--force", "MATMUL_DIRECT", "--json", code=1)
        self.check_decision(decision)
        self.assertIsNone(decision["kernel"])
        self.assertIn("needs an OpenCL device", decision["because"])
        self.assertEqual(decision["candidates"][-1]["verdict"], "refused")

    def test_what_nothing_can_run_is_a_no_with_its_record(self):
        answer = xrt("explain", "exp:backward(f32[8,8], f32[8,8])")
        self.assertEqual(answer.returncode, 1)
        self.assertIn("nothing can run this", answer.stdout)
        self.assertIn("forward only", answer.stdout)
        self.check_decision(self.document("explain", "exp:backward(f32[8], f32[8])", "--json", code=1))

    def test_an_absent_device_is_a_no_that_says_how_to_ask(self):
        self.refused(1, "explain", SQUARE + " @npu:0", says=["npu:0 is not here", "--profile"])
        for command in ["explain", "run", "trace"]:
            self.refused(1, command, SQUARE + " @cpu:1", says="cpu:0")

    def test_policies_decide(self):
        policy = self.write("policy.json", '{"preferences": {"matmul": "reference"}}')
        decision = self.document("explain", SQUARE, "--policy", policy, "--json")
        self.assertEqual([decision["kernel"], decision["level"]], ["reference", "prefer"])
        both = self.document("explain", SQUARE, "--policy", policy, "--force", "openblas", "--json")
        self.assertEqual([both["kernel"], both["level"]], ["openblas", "force"])

    def test_policy_files_that_are_wrong_say_where(self):
        self.refused(2, "explain", SQUARE, "--policy", self.folder / "missing.json", says="missing.json")
        self.refused(2, "explain", SQUARE, "--policy", self.folder, says=str(self.folder))
        for text, says in [("", "line 1"), ('{"preferences": {"matmul": }}', "line 1"), ("{}{}", "policy.json"),
                           ('{"preferences": {"matmull": "openblas"}}', "matmul"),
                           ('{"preferences": {"matmul": "openblass"}}', "openblas"),
                           ('{"preference": {}}', "preferences"), ('{"preferences": 7}', "preferences"),
                           ("\0\xff", "policy.json")]:
            with self.subTest(text):
                self.refused(2, "explain", SQUARE, "--policy", self.write("policy.json", text), says=says)

    def test_limits_of_text_and_policy_reach_the_record(self):
        policy = self.write("policy.json", '{"workspace_limit_bytes": 64, "threads": 2}')
        for profile in [(), ("--profile", PROFILES / "xeon_amx.json")]:
            decision = self.document("explain", SQUARE, "--policy", policy, "--json", *profile)
            self.assertTrue(decision["problem"].endswith(" threads=2 workspace_limit=64"))
            own = SQUARE + " threads=1 workspace_limit=8"
            decision = self.document("explain", own, "--policy", policy, "--json", *profile)
            self.assertTrue(decision["problem"].endswith(" threads=1 workspace_limit=8"))


class ExplainProfile(CliTest):
    def test_a_described_device_stands_where_the_text_names_none(self):
        decision = self.document("explain", SQUARE, "--profile", PROFILES / "xeon_amx.json", "--json")
        self.assertEqual([decision["device"], decision["kernel"]], ["cpu:0", "small"])

    def test_casts_are_shown_as_without_a_profile(self):
        saved = self.write("here.json", self.fine("profile", "cpu:0"))
        policy = self.write("policy.json", '{"precision": {"softmax": "bf16"}}')
        for options in [("--autocast", "bf16"), ("--policy", policy)]:
            for problem in ["softmax(bf16[64,1000])", "matmul(f32[64,64], f32[64,64])", "softmax(f32[64,1000])"]:
                here = self.document("explain", problem, *options, "--json")
                described = self.document("explain", problem, *options, "--profile", saved, "--json")
                with self.subTest(problem, options=options):
                    for field in ["problem", "kernel", "precision", "casts"]:
                        self.assertEqual(described[field], here[field])
        shown = self.document("explain", "softmax(bf16[64,1000])", "--autocast", "bf16", "--profile", saved, "--json")
        self.assertEqual([(cast["from"], cast["to"], cast["kernel"]) for cast in shown["casts"]],
                         [("bf16", "f32", "simd"), ("f32", "bf16", "simd")])

    def test_the_processor_that_is_described_counts_not_this_one(self):
        problem = "attention(bf16[1,2,64,64], bf16[1,2,64,64], bf16[1,2,64,64])"
        for name, kernel in [("xeon_amx", "tiled_amx"), ("neoverse_n1", "tiled")]:
            decision = self.document("explain", problem, "--profile", PROFILES / f"{name}.json", "--json")
            self.assertEqual(decision["kernel"], kernel, decision)

    def test_the_rule_that_held_is_named_where_its_kernel_is_not_built(self):
        problem = "conv2d(f32[1,64,56,56], f32[64,64,3,3]; padding=1,1)"
        for name, rule, kernel in [("apple_m2", "Apple GPU, 3x3 filter, stride 1", "CONV2D_WINOGRAD"),
                                   ("intel_iris_xe", "integrated Intel GPUs", "CONV2D_TILED_LOCAL")]:
            answer = xrt("explain", problem, "--profile", PROFILES / f"{name}.json", "--json")
            decision = json.loads(answer.stdout)
            if decision["kernel"] == kernel:
                self.skipTest(f"{kernel} is built here")
            self.assertEqual((answer.returncode, decision["kernel"]), (1, None))
            self.assertIn(rule, decision["because"])
            self.assertIn(f"asks for {kernel}, but it needs", decision["because"])
            self.assertEqual([(row["kernel"], row["verdict"]) for row in decision["candidates"]], [(kernel, "refused")])

    def test_nothing_is_prepared_for_a_processor_that_is_described(self):
        problem = "matmul(bf16[512,512], bf16[512,512])"
        decision = self.document("explain", problem, "--profile", PROFILES / "xeon_amx.json", "--json")
        self.assertEqual([decision["kernel"], decision["workspace_bytes"]], ["amx", None])
        rows = {row["kernel"]: row for row in decision["candidates"]}
        self.assertEqual([rows["onednn"]["verdict"], rows["onednn"]["workspace_bytes"]], ["passed", None])
        # Only where a choice depends on workspaces are they asked for, and oneDNN knows its own nowhere but there.
        limited = problem + " workspace_limit=100000000"
        decision = self.document("explain", limited, "--profile", PROFILES / "xeon_amx.json", "--json")
        rows = {row["kernel"]: row for row in decision["candidates"]}
        self.assertEqual(decision["kernel"], "amx")
        here = self.document("devices", "--json")["devices"][0]["profile"]
        if here["cpu_features"] != json.loads((PROFILES / "xeon_amx.json").read_text())["cpu_features"]:
            self.assertEqual([rows["onednn"]["verdict"], rows["onednn"]["workspace_bytes"]], ["passed", None])
            square = "matmul(f32[256,256], f32[256,256])"
            free = self.document("explain", square, "--profile", PROFILES / "xeon_amx.json", "--json")
            bound = self.document("explain", square + " workspace_limit=1000000000", "--profile",
                                  PROFILES / "xeon_amx.json", "--json")
            self.assertEqual([free["kernel"], bound["kernel"]], ["onednn", "onednn"])
            self.assertEqual(bound["because"], free["because"] + "; its workspace is known only on the machine itself")
        for threads in ["1", "3"]:
            again = self.document("explain", limited, "--profile", PROFILES / "xeon_amx.json", "--json",
                                  env={"XPURUNTIME_NUM_THREADS": threads})
            self.assertEqual(again, decision)

    def test_gpus_that_are_not_here_are_asked_where_their_backend_was_built(self):
        built = {row["device_type"] for row in self.document("kernels", "--json")["kernels"] if row["registered"]}
        for name, kind, kernel in [("h200", "cuda", "cublasLt"), ("intel_iris_xe", "opencl", "MATMUL_TILED_LOCAL")]:
            arguments = ["explain", "matmul(f32[512,512], f32[512,512])", "--profile", PROFILES / f"{name}.json"]
            with self.subTest(name):
                if kind in built:
                    decision = self.document(*arguments, "--json")
                    self.assertEqual([decision["device"], decision["kernel"]], [f"{kind}:0", kernel])
                else:
                    answer = self.refused(1, *arguments, says=f"this build has no {kind} kernels", with_answer=True)
                    self.assertIn("nothing can run this", answer.stdout)

    def test_a_type_without_any_backend_is_a_no_that_says_so(self):
        profile = self.write("npu.json", '{"version": 1, "type": "npu"}')
        answer = self.refused(1, "explain", SQUARE, "--profile", profile, says="this build has no npu kernels",
                              with_answer=True)
        self.assertIn("nothing can run this", answer.stdout)

    def test_another_type_than_the_problems_is_wrong_usage(self):
        self.refused(2, "explain", SQUARE + " @cpu:0", "--profile", PROFILES / "h200.json", says=["cpu:0", "cuda"])
        self.refused(2, "explain", SQUARE, "--device", "cpu", "--profile", PROFILES / "h200.json", says="cuda")

    def test_files_that_are_no_profiles_are_wrong_usage(self):
        self.refused(2, "explain", SQUARE, "--profile", self.folder / "missing.json", says="missing.json")
        for text in ["", "[]", "{", '{"type": "toaster"}', '{"version": 1, "type": "cpu", "wings": 2}',
                     '{"compute_units": "many"}', '{"version": 1}{}']:
            with self.subTest(text):
                self.refused(2, "explain", SQUARE, "--profile", self.write("bad.json", text), says="bad.json")


if __name__ == "__main__":
    unittest.main()
