"""xrt lock: record, verify, diff, and what breaks them."""
import hashlib
import json
import platform
import unittest

from xrt_case import CliTest, xrt

SOFTMAX = "softmax(f32[64,1000])"
RELU = "relu(f32[1024])"


class Lock(CliTest):
    def record(self, *problems, name="kernels.lock", options=("--deterministic",)):
        path = self.folder / name
        self.fine("lock", "record", *problems, "--out", path, *options)
        return path

    def test_records_what_explain_says(self):
        document = json.loads(self.fine("lock", "record", SOFTMAX, RELU))
        self.assertEqual([entry["problem"] for entry in document["decisions"]],
                         ["relu(f32[1024]) @cpu:0", "softmax(f32[64,1000]) @cpu:0"])
        for entry in document["decisions"]:
            decision = self.document("explain", entry["problem"], "--json")
            self.assertEqual((entry["kernel"], entry["plan"]), (decision["kernel"], decision["plan"]))
            self.assertNotIn("outputs", entry)

    def test_the_same_twice_is_the_same_file(self):
        first, second = self.record(SOFTMAX, RELU), self.record(RELU, SOFTMAX, name="again.lock")
        self.assertEqual(first.read_bytes(), second.read_bytes())
        self.assertEqual(self.document("lock", "diff", first, second, "--json")["differences"], [])

    def test_replays_equal_bits_in_another_process(self):
        path = self.record(SOFTMAX, RELU, "matmul(f32[65,33], f32[33,17])", "conv2d(f32[1,4,9,9], f32[4,4,3,3])")
        report = self.document("lock", "verify", path, "--json")
        self.assertTrue(report["fine"] and report["ran"])
        self.assertEqual([result["outputs_equal"] for result in report["results"]], [True] * 4)
        self.assertEqual({result["verdict"] for result in report["results"]}, {"same"})

    def test_the_bits_do_not_depend_on_the_number_of_threads(self):
        policy = self.write("packed.json", '{"preferences": {"matmul": "packed"}, "deterministic": true}')
        hashes = set()
        for threads in ("1", "2", "3"):
            lock = json.loads(xrt("lock", "record", "softmax(f32[512,1000])", "matmul(f32[256,256], f32[256,256])",
                                  "--policy", policy, env={"XPURUNTIME_NUM_THREADS": threads}).stdout)
            self.assertEqual([entry["kernel"] for entry in lock["decisions"]], ["packed", "simd"])
            hashes.add(tuple(entry["outputs"] for entry in lock["decisions"]))
        self.assertEqual(len(hashes), 1, hashes)

    def test_onednn_with_another_instruction_set_is_another_library(self):
        policy = self.write("onednn.json", '{"preferences": {"matmul": "onednn"}, "deterministic": true}')
        path = self.record("matmul(f32[64,64], f32[64,64])", options=("--policy", policy))
        [entry] = json.loads(path.read_text())["decisions"]
        if entry["kernel"] != "onednn":
            self.skipTest("there is no oneDNN")
        self.fine("lock", "verify", path)
        if platform.machine() != "x86_64":
            self.skipTest("oneDNN takes this setting on x86_64 alone")
        for variable in ("ONEDNN_MAX_CPU_ISA", "DNNL_MAX_CPU_ISA"):
            answer = xrt("lock", "verify", path, env={variable: "SSE41"})
            self.assertEqual(answer.returncode, 1, answer)
            self.assertRegex(answer.stdout, r"onednn \d+\.\d+\.\d+ (?!sse41)\w+ there, \d+\.\d+\.\d+ sse41 here")

    def test_hashes_of_other_inputs_are_not_compared(self):
        one = self.record(SOFTMAX)
        other = self.record(SOFTMAX, name="other.lock", options=("--deterministic", "--seed", "2"))
        answer = self.document("lock", "diff", one, other, "--json")
        self.assertEqual(answer["differences"], [])
        self.assertNotEqual(json.loads(one.read_text())["decisions"][0]["outputs"],
                            json.loads(other.read_text())["decisions"][0]["outputs"])

    def test_an_environment_that_was_edited_does_not_fit_its_id(self):
        path = self.record(SOFTMAX)
        path.write_text(path.read_text().replace('"xpuruntime":"', '"xpuruntime":"0.'))
        self.refused(2, "lock", "verify", path, says="does not fit its id")

    def test_settings_that_no_kernel_depends_on_change_nothing(self):
        path = self.record(SOFTMAX, RELU, "add(f32[64,64], f32[64,64])")
        for elsewhere in ({"XPURUNTIME_NUM_THREADS": "1"}, {"OMP_NUM_THREADS": "2"}):
            report = json.loads(self.fine("lock", "verify", path, "--json", env=elsewhere))
            self.assertEqual([result["verdict"] for result in report["results"]], ["same"] * 3)
            now = xrt("lock", "diff", path, env=elsewhere)
            self.assertEqual((now.returncode, now.stdout), (0, "no difference in 3 decisions\n"))

    def test_neither_do_they_for_a_range(self):
        path = self.record("add(f32[n,64], f32[n,64]) where n=1..512")
        for elsewhere in ({"XPURUNTIME_NUM_THREADS": "1"}, {"OMP_NUM_THREADS": "1"}):
            self.fine("lock", "verify", path, env=elsewhere)
        for policy in ({"deterministic": False}, {"deterministic": True}):
            given = self.write("limits.json", json.dumps(policy))
            decision = self.document("explain", "add(f32[17,64], f32[17,64])", "--policy", given, "--json",
                                     env={"XPURUNTIME_LOCK": str(path)})
            self.assertEqual((decision["kernel"], decision["level"]), ("simd", "lock"))

    def with_version(self, path, name, version):
        """The lock as if it had been recorded with another version of a library, hashed as src/tune/checksum.h does."""
        document = json.loads(path.read_text())
        [(_, environment)] = document["environments"].items()
        environment["versions"][name] = version
        text = json.dumps(environment, separators=(",", ":"), sort_keys=True).encode()
        state, mask = 0x9E3779B97F4A7C15, 2**64 - 1
        for word in (len(text), *(int.from_bytes(text[i:i + 8], "little") for i in range(0, len(text) // 8 * 8 + 1, 8))):
            state = (state ^ word) * 0xD6E8FEB86659FD93 & mask
            state ^= state >> 32
        identity = f"{state:016x}"
        for entry in document["decisions"]:
            entry["environment"] = identity
            del entry["check"]
            canonical = json.dumps(entry, separators=(",", ":"))
            entry["check"] = hashlib.sha256(canonical.encode()).hexdigest()[:16]
        document["environments"] = {identity: environment}
        return self.write(f"{name}-{version}.lock", json.dumps(document))

    def test_other_software_is_refused_and_can_be_revalidated(self):
        path = self.with_version(self.record(SOFTMAX, RELU), "xpuruntime", "0.0.1")
        answer = xrt("lock", "verify", path, "--json")
        self.assertEqual(answer.returncode, 1, answer)
        reason = json.loads(answer.stdout)["results"][0]["reason"]
        self.assertRegex(reason, "xpuruntime 0.0.1 there, .* here; check it with xrt lock verify --revalidate")
        new = self.folder / "new.lock"
        report = self.document("lock", "verify", path, "--revalidate", "--out", new, "--json")
        self.assertEqual([result["verdict"] for result in report["results"]], ["revalidated"] * 2)
        self.fine("lock", "verify", new)

    def test_another_version_of_a_library_concerns_the_kernels_that_call_it(self):
        policy = self.write("blas.json", '{"preferences": {"matmul": "openblas"}}')
        now = self.record("matmul(f32[64,64], f32[64,64])", "add(f32[64,64], f32[64,64])",
                          options=("--policy", policy))
        path = self.with_version(now, "openblas", "0.0.1")
        report = self.document("lock", "verify", path, "--json", code=1)
        reasons = {result["kernel"]: result["reason"] for result in report["results"]}
        self.assertEqual(reasons["simd"], "")
        self.assertIn("openblas 0.0.1 there", reasons["openblas"])
        answer = xrt("lock", "diff", path, now)
        self.assertEqual(answer.returncode, 1, answer)
        self.assertRegex(answer.stdout, r"^environment\.openblas: 0\.0\.1 -> \S+.* \(1 decision\)\n$")
        [row] = self.document("lock", "diff", path, now, "--json", code=1)["differences"]
        self.assertEqual((row["field"], row["before"]), ("environment.openblas", "0.0.1"))

    def test_a_difference_in_limits_alone_says_so(self):
        before = self.record(SOFTMAX, RELU, options=())
        after = self.record(SOFTMAX, RELU, name="after.lock")
        for second in ((after,), ("--deterministic",)):
            answer = xrt("lock", "diff", before, *second)
            self.assertEqual((answer.returncode, answer.stdout), (1, "limits: none -> deterministic (2 decisions)\n"))

    def test_limits_and_casts_that_a_policy_gave_are_said_to_be_needed(self):
        lock = self.folder / "kernels.lock"
        limited = self.write("limited.json", '{"threads": 1}')
        casting = self.write("casting.json", '{"default_precision": "bf16"}')
        for policy in (casting, limited):
            settings = {"XPURUNTIME_POLICY": str(policy), "XPURUNTIME_LOCK": str(lock)}
            line = "lock: {1}; in force with XPURUNTIME_POLICY={0} XPURUNTIME_LOCK={1}".format(*settings.values())
            for options, env in ((("--policy", policy), {}), ((), {"XPURUNTIME_POLICY": str(policy)})):
                text = self.fine("lock", "record", RELU, "--out", lock, *options, env=env)
                self.assertEqual(text.splitlines()[1:], [line])
            self.fine("run", RELU, env=settings)
        needed = "in force for calls with threads=1: set the same limits in the policy"
        for action in ("verify", "diff"):
            self.assertIn(f"\n{needed} (XPURUNTIME_POLICY, with_policy)\n", self.fine("lock", action, lock))
            self.assertNotIn("in force", self.fine("lock", action, lock, env={"XPURUNTIME_POLICY": str(limited)}))
        self.assertNotIn("in force", self.fine("lock", "diff", lock, "--policy", limited))

    def test_nothing_is_said_to_be_needed_where_no_policy_set_it(self):
        lock = self.folder / "kernels.lock"
        preferring = self.write("preferring.json", '{"preferences": {"relu": "reference"}}')
        for options in ((), ("--deterministic",), ("--policy", preferring, "--deterministic")):
            text = self.fine("lock", "record", RELU, "--out", lock, *options)
            self.assertEqual(len(text.splitlines()), 1, text)
            self.assertNotIn("in force", self.fine("lock", "verify", lock))

    def test_the_environments_lock_holds_for_what_decides_as_a_program_would(self):
        policy = self.write("policy.json", '{"preferences": {"relu": "reference"}}')
        locked = {"XPURUNTIME_LOCK": str(self.record(RELU, options=("--policy", policy)))}
        decision = self.document("explain", RELU, "--json", env=locked)
        self.assertEqual((decision["kernel"], decision["level"]), ("reference", "lock"))
        self.assertIn("reference", self.fine("run", RELU, env=locked))
        says = ["relu(f32[1023]) @cpu:0: the lock has no entry", "the nearest is relu(f32[1024]) @cpu:0", "f32[1023] here", "record it too"]
        self.refused(1, "run", "relu(f32[1023])", env=locked, says=says, with_answer=True)
        # What records or measures is under no lock, not even a bad one.
        bad = {"XPURUNTIME_LOCK": str(self.write("bad.lock", "{"))}
        for variables in (locked, bad):
            self.assertEqual(json.loads(self.fine("lock", "record", RELU, env=variables))["decisions"][0]["kernel"], "simd")
            self.fine("devices", env=variables)
        self.refused(2, "explain", RELU, env=bad, says=["XPURUNTIME_LOCK: ", "bad.lock", "not JSON at line 1"])
        missing = {"XPURUNTIME_LOCK": str(self.folder / "none.lock")}
        self.refused(2, "run", RELU, env=missing, says=["XPURUNTIME_LOCK: ", "none.lock", "cannot be read"])
        self.fine("explain", RELU, env={"XPURUNTIME_LOCK": ""})

    def test_help_says_what_each_action_takes_and_answers(self):
        text = self.fine("lock", "verify", "--help")
        for part in ("verify LOCK", "revalidated", "Takes --revalidate and --out", "Exit codes",
                     "xrt lock verify kernels.lock --revalidate --out kernels.lock", "verify: check the numbers"):
            self.assertIn(part, text)

    def with_softmax_by(self, kernel, path):
        """The lock with an entry that names another kernel, its checksum made as docs/interfaces.md describes it."""
        lines = []
        for line in path.read_text().splitlines():
            if line.startswith('{"problem":"softmax'):
                entry = json.loads(line.rstrip(","))
                entry["kernel"] = kernel
                del entry["check"]
                canonical = json.dumps(entry, separators=(",", ":"))
                entry["check"] = hashlib.sha256(canonical.encode()).hexdigest()[:16]
                line = json.dumps(entry, separators=(",", ":")) + ("," if line.endswith(",") else "")
            lines.append(line)
        return self.write("edited.lock", "\n".join(lines) + "\n")

    def test_an_impossible_entry_fails_closed_before_anything_runs(self):
        path = self.with_softmax_by("cudnn", self.record(SOFTMAX, RELU))
        report = self.document("lock", "verify", path, "--json", code=1)
        self.assertFalse(report["fine"])
        self.assertFalse(report["ran"])
        self.assertEqual([result["outputs_equal"] for result in report["results"]], [None, None])
        reasons = {result["problem"].split("(")[0]: result["reason"] for result in report["results"]}
        self.assertEqual(reasons["relu"], "")
        self.assertIn("the lock says cudnn, which cannot run", reasons["softmax"])

    def test_other_bits_fail_after_the_run(self):
        path = self.with_softmax_by("reference", self.record(SOFTMAX, RELU))
        report = self.document("lock", "verify", path, "--json", code=1)
        self.assertTrue(report["ran"])
        reasons = {result["problem"].split("(")[0]: result["reason"] for result in report["results"]}
        self.assertIn("its outputs are not those of the lock", reasons["softmax"])

    def test_one_decision_is_counted_as_one(self):
        path = self.folder / "one.lock"
        self.assertEqual(self.fine("lock", "record", RELU, "--out", path),
                         f"1 decision recorded in {path}, 0 with a hash of its outputs\n")
        self.assertEqual(self.fine("lock", "diff", path, path), "no difference in 1 decision\n")
        self.assertIn("\nthe decision holds here\n", self.fine("lock", "verify", path))

    def test_diff_shows_a_table_and_the_exit_code(self):
        before = self.record(SOFTMAX, RELU, options=())
        policy = self.write("policy.json", '{"preferences": {"softmax": "reference"}}')
        answer = xrt("lock", "diff", before, "--policy", policy)
        self.assertEqual(answer.returncode, 1, answer)
        self.assertIn("softmax(f32[64,1000]) @cpu:0  kernel  simd    reference", answer.stdout)
        self.assertIn("no difference in 2 decisions", self.fine("lock", "diff", before))

    def test_diff_compares_a_size_with_the_range_that_decides_it_in_the_other_lock(self):
        slow = self.write("slow.json", '{"preferences": {"relu": "reference"}}')
        single, same, ranges = (self.folder / name for name in ("single.lock", "same.lock", "ranges.lock"))
        self.fine("lock", "record", "relu(f32[15])", "--policy", slow, "--out", single)
        self.fine("lock", "record", "relu(f32[15])", "--out", same)
        self.fine("lock", "record", "relu(f32[n]) where n=1..50", "--out", ranges)
        around = [(f"relu(f32[n]) @cpu:0 where n={sizes}", "entry", "", "simd") for sizes in ("1..14", "16..50")]
        changed = ("relu(f32[15]) @cpu:0", "kernel", "reference", "simd")
        for before, expected in ((single, [changed, *around]), (same, around)):
            rows = self.document("lock", "diff", before, ranges, "--json", code=1)["differences"]
            self.assertEqual([tuple(row.values()) for row in rows], expected)
        changes = self.document("report", "--lock", ranges, "--against", single, "--json")["changes"]
        self.assertEqual([tuple(row.values()) for row in changes], [changed, *around])

    def test_diff_names_the_limits_where_a_range_holds_a_size_under_others(self):
        single, ranges = self.folder / "single.lock", self.folder / "ranges.lock"
        self.fine("lock", "record", "relu(f32[15])", "--deterministic", "--out", single)
        self.fine("lock", "record", "relu(f32[n]) where n=15..15", "--out", ranges)
        [row] = self.document("lock", "diff", single, ranges, "--json", code=1)["differences"]
        self.assertEqual(tuple(row.values()), ("relu(f32[15]) @cpu:0 deterministic", "limits", "deterministic", ""))

    def test_neighbouring_ranges_of_one_choice_are_recorded_as_one(self):
        lock = self.folder / "ranges.lock"
        texts = ("relu(f32[n]) where n=1..8", "relu(f32[m]) where m=17..20", "relu(f32[m]) where m=9..16",
                 "relu(f32[n]) where n=22..24")
        self.fine("lock", "record", *texts, "--out", lock)
        problems = [entry["problem"] for entry in json.loads(lock.read_text())["decisions"]]
        self.assertEqual(problems, ["relu(f32[m]) @cpu:0 where m=1..20", "relu(f32[n]) @cpu:0 where n=22..24"])
        self.fine("lock", "verify", lock)
        self.fine("lock", "diff", lock)

    def test_diff_to_now_uses_each_entrys_own_seed_and_goes_on_past_what_cannot_run(self):
        lock = self.record(SOFTMAX, RELU, options=("--deterministic", "--seed", "7"))
        self.fine("lock", "diff", lock, "--deterministic")
        policy = self.write("policy.json", '{"preferences": {"softmax": "reference", '
                                           '"relu": {"kernel": "reference", "mode": "force"}}, "deterministic": true}')
        fields = {(row["problem"].split("(")[0], row["field"])
                  for row in self.document("lock", "diff", lock, "--policy", policy, "--json", code=1)["differences"]}
        self.assertIn(("softmax", "outputs"), fields)
        forced = self.write("forced.json", '{"preferences": {"conv2d": {"kernel": "cudnn", "mode": "force"}}}')
        conv = self.record(RELU, "conv2d(f32[1,4,9,9], f32[4,4,3,3])", name="conv.lock", options=())
        [row] = self.document("lock", "diff", conv, "--policy", forced, "--json", code=1)["differences"]
        self.assertIn("none: ", row["after"])

    def test_an_empty_lock_proves_nothing(self):
        lock = self.write("empty.lock", '{"version": 1, "environments": {}, "decisions": []}')
        self.refused(1, "lock", "verify", lock, says="holds no decision")

    def test_records_from_a_trace_and_from_lines(self):
        trace = self.folder / "trace.json"
        self.fine("trace", SOFTMAX, RELU, "--out", trace)
        from_trace = json.loads(self.fine("lock", "record", "--from-log", trace))
        lines = self.write("problems.txt", f"# what we serve\n{SOFTMAX}\n\n  {RELU}  \n{RELU}\n")
        from_lines = json.loads(self.fine("lock", "record", "--from-log", lines))
        self.assertEqual(from_trace["decisions"], from_lines["decisions"])
        self.assertEqual(len(from_trace["decisions"]), 2)

    def test_wrong_usage(self):
        self.refused(2, "lock", "record", says="no problem was given")
        self.refused(2, "lock", "record", "--from-log", self.folder / "none.json", says="cannot be read")
        self.refused(2, "lock", "record", "--from-log", self.write("x.json", '{"a": 1}'), says="not a trace")
        self.refused(2, "lock", "record", "--from-log", self.write("empty.txt", "# nothing\n"), says="holds no problem")
        self.refused(2, "lock", "verify", says="takes one lock")
        self.refused(2, "lock", "verify", self.folder / "none.lock", says="cannot be read")
        self.refused(2, "lock", "diff", "a", "b", "c", says="one or two locks")
        self.refused(2, "lock", "verify", self.write("x.lock", "{"), says="not JSON at line 1")
        self.refused(2, "lock", "forget", says="lock")
        self.refused(2, "lock", "verify", "x.lock", "--policy", "none.json", says="--policy means nothing to lock verify")
        for option in (["--policy", "none.json"], ["--store", "none.db"], ["--deterministic"]):
            self.refused(2, "lock", "diff", "a", "b", *option, says=f"{option[0]} means nothing to lock diff of two locks")
        self.refused(2, "lock", "record", RELU, "--revalidate", says="--revalidate means nothing to lock record")
        self.refused(2, "lock", "verify", "x.lock", "--seed", "3", says="--seed means nothing to lock verify")

    def test_a_folder_that_is_not_there_leaves_nothing(self):
        self.refused(2, "lock", "record", RELU, "--out", self.folder / "no" / "such" / "kernels.lock", says="cannot be written")
        self.assertEqual(list(self.folder.iterdir()), [])


if __name__ == "__main__":
    unittest.main()
