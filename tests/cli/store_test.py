"""xrt store: what it lists, moves, removes and refuses."""
import json
import os
import shutil
import subprocess
import unittest

from xrt_case import XRT, CliTest, xrt

ENVIRONMENT = {"device": "cuda nvidia H200", "traits": {"compute_capability": "9.0"}, "versions": {"driver": "580.1"}}


def entry(problem, kernel="simd", time_us=2.5, at=1000):
    choice = {"kernel": kernel, "plan": "", "incumbent": "reference", "because": "it is faster", "cut_short": False,
              "measured_at": at}
    measured = {"kernel": kernel, "plan": "", "time_us": time_us, "noise_us": 0.5, "runs": 9, "workspace_bytes": 0,
                "error": 0.0, "measured_at": at}
    return {"problem": problem, "choice": choice, "measurements": [measured],
            "quarantine": [{"kernel": "broken", "reason": "it hung", "found_at": at}]}


def contents(*entries, environment=None):
    return json.dumps({"version": 1, "environments": [{"environment": environment or ENVIRONMENT,
                                                       "entries": list(entries)}]})


class Store(CliTest):
    def setUp(self):
        super().setUp()
        self.store = self.folder / "store.sqlite"

    def filled(self, *entries, name="in.json", environment=None):
        path = self.write(name, contents(*entries, environment=environment))
        return self.fine("store", "import", path, "--store", self.store)

    def entries(self, *arguments):
        return self.document("store", "list", "--json", "--store", self.store, *arguments)["entries"]

    def test_an_import_comes_out_of_an_export_again(self):
        self.assertEqual(self.filled(entry("relu(f32[8]) @cuda:0"), entry("add(f32[8], f32[8]) @cuda:0")),
                         "6 entries changed\n")
        text = self.fine("store", "export", "--store", self.store)
        rows = json.loads(text)["environments"][0]
        self.assertEqual(rows["environment"], ENVIRONMENT)
        self.assertEqual([row["problem"] for row in rows["entries"]],
                         ["add(f32[8], f32[8]) @cuda:0", "relu(f32[8]) @cuda:0"])
        self.assertEqual(len(text.splitlines()), 6)
        out = self.folder / "out.json"
        self.assertEqual(self.fine("store", "export", "--store", self.store, "--out", out), f"6 entries written to {out}\n")
        self.assertEqual(out.read_text(), text)
        self.assertEqual(self.fine("store", "import", out, "--store", self.store), "0 entries changed\n")
        self.assertEqual(self.fine("store", "import", out, "--store", self.folder / "other"), "6 entries changed\n")
        only = json.loads(self.fine("store", "export", "--store", self.store, "--op", "ReLU", "--kernel", "broken"))
        self.assertEqual(only["environments"][0]["entries"][0]["measurements"], [])

    def test_no_command_writes_over_a_store_or_the_files_beside_it(self):
        self.filled(entry("relu(f32[8]) @cuda:0"))
        before = self.store.read_bytes()
        link = self.folder / "link"
        link.symlink_to("store.sqlite")
        paths = [self.store, link, *(f"{self.store}{beside}" for beside in ("-wal", "-shm", "-journal"))]
        for path in paths:
            for command in (["store", "export", "--store", self.store], ["trace", "relu(f32[8])"],
                            ["lock", "record", "relu(f32[8])"]):
                self.refused(2, *command, "--out", path, says="it is a store or belongs to one")
            self.refused(2, "explain", "relu(f32[8])", env={"XPURUNTIME_TRACE": str(path)}, says="it is a store")
            self.refused(2, "explain", "relu(f32[8])", env={"XPURUNTIME_VERBOSE": f"1:{path}"}, says="it is a store")
        self.assertEqual(self.store.read_bytes(), before)
        self.assertEqual(sorted(os.listdir(self.folder)), ["in.json", "link", "store.sqlite"])

    def test_no_command_takes_a_file_beside_a_store_for_a_store(self):
        for _ in range(2):  # without the store, and with it
            before = sorted(os.listdir(self.folder))
            for path in (f"{self.store}{beside}" for beside in ("-wal", "-shm", "-journal")):
                says = f"name the store instead: '{self.store}'"
                for command in (["tune", "relu(f32[8])"], ["store", "list"], ["report", "relu(f32[8])"]):
                    self.refused(2, *command, "--store", path, says=says)
                self.refused(2, "tune", "relu(f32[8])", env={"XPURUNTIME_STORE": path}, says=says)
            self.assertEqual(sorted(os.listdir(self.folder)), before)
            self.filled(entry("relu(f32[8]) @cuda:0"))

    def test_a_trace_does_not_replace_a_store_that_was_made_meanwhile(self):
        answer = xrt("tune", "relu(f32[8])", "--store", self.store, env={"XPURUNTIME_TRACE": str(self.store)})
        self.assertIn("it is a store", answer.stderr)
        self.assertEqual(len(self.entries("--op", "relu")) > 0, True)

    def test_a_store_that_was_left_blank_holds_nothing_yet(self):
        self.store.touch()
        self.assertEqual(self.fine("store", "list", "--store", self.store), "0 entries\n")
        self.assertEqual(self.fine("store", "check", "--store", self.store), "0 entries and no damage\n")
        self.fine("explain", "relu(f32[8])", "--store", self.store)
        self.assertEqual(self.store.stat().st_size, 0)
        self.assertEqual(self.filled(entry("relu(f32[8]) @cuda:0")), "3 entries changed\n")

    def test_files_of_the_kernel_are_refused_before_they_are_read(self):
        for action in ("list", "check"):
            self.refused(2, "store", action, "--store", "/proc/version", says="is a file of the system")

    def test_the_list_says_what_each_entry_is_worth_here(self):
        self.filled(entry("relu(f32[8]) @cuda:0"), environment={**ENVIRONMENT, "device": "cuda nvidia of another world"})
        self.assertEqual(xrt("tune", "relu(f32[64])", "--store", self.store, "--per-problem", "20ms").returncode, 0)
        here = next(row for row in self.document("store", "list", "--json", "--store", self.store)["environments"]
                    if row["verdict"] == "same")
        older = {key: here[key] for key in ("device", "traits")} | {"versions": {**here["versions"], "xpuruntime": "0"}}
        self.filled(entry("relu(f32[64]) @cpu:0"), environment=older)
        document = self.document("store", "list", "--json", "--store", self.store)
        self.assertEqual(list(document), ["version", "store", "environments", "entries"])
        reasons = {row["verdict"]: row["reason"] for row in document["environments"]}
        self.assertEqual(sorted(reasons), ["refuse", "revalidate", "same"])
        self.assertIn("xpuruntime 0 there", reasons["revalidate"])
        self.assertIn("another world", reasons["refuse"])
        self.assertEqual(reasons["same"], "")
        self.assertEqual(list(document["entries"][0]), ["problem", "kernel", "plan", "entry", "time_us", "because",
                                                        "measured_at", "environment"])
        self.assertEqual({row["entry"] for row in document["entries"]}, {"measured", "chosen", "quarantined"})
        same = [row for row in document["entries"] if row["environment"] == here["id"]]
        self.assertEqual(self.entries("--environment", here["id"]), same)
        text = self.fine("store", "list", "--store", self.store)
        self.assertIn(f"environment {here['id']}: same\n", text)
        self.assertIn("revalidate: xpuruntime 0 there", text)
        self.assertIn("2.5 us", text)
        self.assertIn("1970-01-01 00:16", text)
        self.assertTrue(text.endswith(f"{len(document['entries'])} entries\n"), text)

    def test_local_sizes_of_opencl_kernels_are_entries_of_their_own(self):
        tuned = entry("opencl_kernel(scale 4096) @opencl:0", kernel="scale")
        tuned["choice"]["plan"] = tuned["measurements"][0]["plan"] = "local=64"
        self.filled(tuned, entry("relu(f32[8]) @cuda:0"))
        rows = self.entries("--op", "opencl_kernel")
        self.assertEqual({row["problem"] for row in rows}, {"opencl_kernel(scale 4096) @opencl:0"})
        self.assertIn("scale local=64", self.fine("store", "list", "--op", "opencl_kernel", "--store", self.store))
        report = self.document("report", "--store", self.store, "--json")
        row = next(row for row in report["decisions"] if row["op"] == "opencl_kernel")
        self.assertEqual((row["kernel"], row["plan"], row["device"], row["notes"]), ("scale", "local=64", "opencl:0", []))
        self.fine("store", "prune", "--op", "opencl_kernel", "--store", self.store)
        self.assertEqual(self.entries("--op", "opencl_kernel"), [])

    def test_stores_are_merged_and_pruned(self):
        self.filled(entry("relu(f32[8]) @cuda:0", time_us=1, at=1000))
        other = self.folder / "other"
        path = self.write("in.json", contents(entry("relu(f32[8]) @cuda:0", time_us=2, at=2000),
                                              entry("gelu(f32[8]) @cuda:0", at=4_000_000_000)))
        self.fine("store", "import", path, "--store", other)
        self.assertEqual(self.fine("store", "merge", other, "--store", self.store), "6 entries changed\n")
        self.assertEqual(self.fine("store", "merge", other, "--store", self.store), "0 entries changed\n")
        self.assertEqual(self.entries("--op", "relu", "--kernel", "simd")[1]["time_us"], 2)
        dry = self.document("store", "prune", "--older-than", "1d", "--dry-run", "--json", "--store", self.store)
        self.assertEqual(dry, {"version": 1, "store": str(self.store), "would_remove": 3})
        self.assertEqual(len(self.entries()), 6)
        self.assertEqual(self.fine("store", "prune", "--older-than", "1d", "--store", self.store), "3 entries removed\n")
        self.assertEqual(self.fine("store", "prune", "--kernel", "broken", "--store", self.store), "1 entry removed\n")
        self.assertEqual({row["problem"] for row in self.entries()}, {"gelu(f32[8]) @cuda:0"})

    def test_a_broken_document_changes_nothing(self):
        self.filled(entry("relu(f32[8]) @cuda:0"))
        before = self.entries()
        good = contents(entry("gelu(f32[8]) @cuda:0"), entry("add(f32[8], f32[8]) @cuda:0", time_us=-1))
        for text, says in [(good, "environments[0].entries[1].measurements[0].time_us"), (good[:-9], "line 1"),
                           ('{"version": 3}', "must be 1 or 2"), ("", "not JSON")]:
            self.refused(2, "store", "import", self.write("bad.json", text), "--store", self.store, says=says)
        self.assertEqual(self.entries(), before)

    def test_check_tells_damage_with_exit_code_1(self):
        self.filled(*[entry(f"relu(f32[{n}]) @cuda:0") for n in range(1, 9)])
        self.assertEqual(self.fine("store", "check", "--store", self.store), "24 entries and no damage\n")
        data = self.store.read_bytes()
        self.store.write_bytes(data.replace(b'"time_us":2.5', b'"time_us":9.5', 1))
        answer = xrt("store", "check", "--store", self.store)
        self.assertEqual((answer.returncode, answer.stderr), (1, ""))
        self.assertIn("damaged", answer.stdout)
        document = self.document("store", "check", "--json", "--store", self.store, code=1)
        self.assertEqual(list(document), ["version", "store", "entries", "damage"])
        self.assertRegex(document["damage"], r"the entry of 'relu\(f32\[\d\]\) @cuda:0' is not what was written")
        self.refused(2, "store", "list", "--store", self.store, says="move it away")
        self.store.write_bytes(b"no store at all" * 10)
        self.assertIn("not a store", self.document("store", "check", "--json", "--store", self.store, code=1)["damage"])

    def test_wrong_usage_says_what_to_write(self):
        self.refused(2, "store", says="action")
        self.refused(2, "store", "show", says="show")
        self.refused(2, "store", "list", "--store", self.store, says="missing")
        self.refused(2, "store", "prune", "--op", "relu", "--store", self.store, says="missing")
        self.assertFalse(self.store.exists())
        self.filled(entry("relu(f32[8]) @cuda:0"))
        self.refused(2, "store", "prune", "--store", self.store, says="needs a filter")
        self.refused(2, "store", "prune", "--older-than", "soon", "--store", self.store, says="30d")
        self.refused(2, "store", "list", "--op", "relux", "--store", self.store, says="did you mean relu")
        self.refused(2, "store", "list", "file", "--store", self.store, says="xrt store list")
        self.refused(2, "store", "import", "--store", self.store, says="xrt store import FILE")
        self.refused(2, "store", "merge", self.folder / "none", "--store", self.store, says="missing")
        self.refused(2, "store", "list", "--dry-run", "--store", self.store, says="only prune")
        self.refused(2, "store", "list", "--out", "x", "--store", self.store, says="only export")

    def test_the_variable_names_the_store(self):
        path = self.write("in.json", contents(entry("relu(f32[8]) @cuda:0")))
        self.fine("store", "import", path, env={"XPURUNTIME_STORE": str(self.store)})
        self.assertEqual(len(self.entries()), 3)
        self.fine("store", "import", path, env={"XPURUNTIME_STORE": "", "XDG_CACHE_HOME": str(self.folder)})
        self.assertTrue((self.folder / "xpuruntime" / "store.sqlite").exists())

    def test_a_path_need_not_be_utf_8(self):
        self.store = self.folder / os.fsdecode(b"st\xffre.sqlite")
        for arguments, key, value in ((("import", self.write("in.json", contents(entry("relu(f32[8]) @cuda:0")))), "changed", 3),
                                      (("list",), "store", None), (("check",), "entries", 3),
                                      (("prune", "--op", "relu", "--dry-run"), "would_remove", 3),
                                      (("prune", "--op", "relu"), "removed", 3)):
            document = self.document("store", *arguments, "--json", "--store", self.store)
            self.assertTrue(document["store"].endswith("st\ufffdre.sqlite"), document["store"])
            if value is not None:
                self.assertEqual(document[key], value)
        self.store.write_bytes(b"no store at all" * 10)
        damaged = self.document("store", "check", "--json", "--store", self.store, code=1)
        self.assertIn("not a store", damaged["damage"])

    def test_eight_processes_import_into_one_store(self):
        files = [self.write(f"{p}.json", contents(entry("relu(f32[8]) @cuda:0", f"kernel_{p}"),
                                                  entry(f"relu(f32[{10 + p}]) @cuda:0"))) for p in range(8)]
        running = [subprocess.Popen([XRT, "store", "import", str(path), "--store", str(self.store)],
                                    stdout=subprocess.DEVNULL) for path in files]
        self.assertEqual([process.wait(timeout=120) for process in running], [0] * 8)
        rows = self.entries()
        self.assertEqual(len({row["problem"] for row in rows}), 9)
        self.assertEqual(len([row for row in rows if row["problem"] == "relu(f32[8]) @cuda:0"]), 8 + 1 + 1)

    def test_refuses_what_is_no_file_and_folders_of_others(self):
        pipe = self.folder / "pipe"
        os.mkfifo(pipe)
        self.refused(2, "store", "list", "--store", pipe, says="a pipe")
        self.refused(2, "tune", "relu(f32[8])", "--store", pipe, says="a pipe")
        self.refused(2, "report", "--store", "/dev/zero", says="device")
        self.filled(entry("relu(f32[8]) @cuda:0"))
        os.chmod(self.folder, 0o777)
        self.refused(2, "store", "list", "--store", self.store, says="may be written by others")
        self.refused(2, "store", "list", env={"XPURUNTIME_STORE": str(self.store)}, says="may be written by others")

    @unittest.skipUnless(os.geteuid() == 0, "only root makes programs that run as another user")
    def test_a_program_with_other_rights_than_its_callers_ignores_the_environment(self):
        program = self.folder / "xrt"
        shutil.copy(XRT, program)
        os.chown(program, 65534, 65534)
        os.chmod(program, 0o4755)
        os.chmod(self.folder, 0o755)
        if os.statvfs(self.folder).f_flag & os.ST_NOSUID:
            self.skipTest("programs in this folder never run as another user")
        if subprocess.run([program, "--version"], capture_output=True).returncode:
            self.skipTest("this build does not run as another user")
        variables = {**os.environ, "XPURUNTIME_STORE": str(self.store), "HOME": str(self.folder)}
        for command, said in ((XRT, "missing"), (program, "neither XPURUNTIME_STORE nor")):
            answer = subprocess.run([command, "store", "list"], capture_output=True, text=True, env=variables)
            self.assertNotEqual(answer.returncode, 0)
            self.assertIn(said, answer.stderr)


if __name__ == "__main__":
    unittest.main()
