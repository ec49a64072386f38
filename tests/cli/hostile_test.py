"""Files and arguments of people who mean no good: what they hold is only ever shown, and no command waits or fills the
memory for them."""
import hashlib
import json
import os
import re
import resource
import stat
import unittest

from xrt_case import CliTest, PROFILES, SQUARE, on_terminal, xrt

RELU = "relu(f32[64])"
# A screen cleared, a title set, the one-character form of ESC [, text that runs backwards, a line of its own.
EVIL = "k\x1b[2J\x1b]0;x\x07\u009b31m\u202e\nxrt: all is well\x7f"
# What may be on a terminal: our own colours and the line ends that it makes, but nothing else that it obeys.
COLOURS = re.compile("\x1b\\[(?:0|1|2|31|32)m")
UNSAFE = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f\u200b\u200e\u200f\u2028-\u202e\u2060-\u206f]")


def no_large_files():
    resource.setrlimit(resource.RLIMIT_FSIZE, (4096, 4096))


class HostileTexts(CliTest):
    def harmless(self, *arguments):
        """Neither of what a command writes can do anything to a terminal, and nothing in it poses as a line of ours: a
        line of HTML does not."""
        answer = xrt(*arguments)
        shown = on_terminal(*map(str, arguments))
        for text in (answer.stdout, answer.stderr, COLOURS.sub("", shown).replace("\r\n", "\n")):
            found = UNSAFE.search(text)
            self.assertIsNone(found, found and text[max(0, found.start() - 100):found.end() + 100])
            if not text.startswith("<!doctype html>"):
                self.assertNotIn("\nxrt: all is well", text)
        return answer

    def policy(self, **fields):
        return self.write("policy.json", json.dumps(fields))

    def test_policies(self):
        rule = {"name": EVIL, "op": "relu", "use": "reference"}
        named = self.policy(rules=[rule, rule])
        for action in (["validate"], ["show"], ["show", "--json"]):
            self.harmless("policy", *action, named)
        self.assertIn("\\x1b[2J", self.harmless("explain", RELU, "--policy", named).stdout)
        self.harmless("explain", RELU, "--policy", named, "--json")
        self.harmless("run", RELU, "--policy", named, "--no-check")
        other = self.write("other.json", "{}")
        self.harmless("policy", "diff", named, other)
        self.harmless("policy", "merge", named, other)
        for fields in ({EVIL: 1}, {"preferences": {EVIL: "simd"}}, {"preferences": {"relu": EVIL}}, {"strategy": EVIL},
                       {"rules": [{"op": "relu", "use": "simd", "when": {EVIL: 1}}]},
                       {"rules": [{"op": "relu", "use": "simd", "when": {"dtype": EVIL}}]},
                       {"precision": {"relu": EVIL}}, {"preferences": {"relu": {EVIL: 1}}}):
            answer = self.harmless("policy", "show", self.policy(**fields))
            self.assertEqual(answer.returncode, 2, answer)
        library = {"device.library_versions." + EVIL: EVIL}
        self.harmless("policy", "validate", self.policy(rules=[{"op": "relu", "use": "simd", "when": library}]))

    def test_profiles(self):
        profile = json.loads((PROFILES / "xeon_amx.json").read_text())
        for field, value in (("name", EVIL), ("vendor", EVIL), ("cpu_features", [EVIL]), ("type", EVIL), (EVIL, 1),
                             ("library_versions", {EVIL: EVIL})):
            path = self.write("profile.json", json.dumps({**profile, field: value}))
            self.harmless("explain", RELU, "--profile", path)

    def test_locks(self):
        lock = json.loads(self.fine("lock", "record", RELU))
        lock["decisions"][0].update(kernel=EVIL, plan=EVIL)
        del lock["decisions"][0]["check"]
        canonical = re.sub("[\x7f-\x9f\u202e]", lambda c: f"\\u{ord(c[0]):04x}",
                           json.dumps(lock["decisions"][0], separators=(",", ":"), ensure_ascii=False))
        lock["decisions"][0]["check"] = hashlib.sha256(canonical.encode()).hexdigest()[:16]
        path = self.write("evil.lock", json.dumps(lock))
        good = self.folder / "good.lock"
        self.fine("lock", "record", RELU, "--out", good)
        self.assertEqual(self.harmless("lock", "diff", path, good).returncode, 1)
        self.assertEqual(self.harmless("lock", "verify", path).returncode, 1)
        self.harmless("lock", "diff", path)
        self.harmless("report", "--lock", path)
        lock["decisions"][0]["problem"] = EVIL
        self.harmless("lock", "diff", self.write("evil.lock", json.dumps(lock)), good)
        self.harmless("lock", "verify", self.write("evil.lock", json.dumps({**lock, EVIL: EVIL})))

    def test_stores(self):
        store = self.folder / "store.sqlite"
        measured = {"kernel": "k\x9b\u202e\x7f", "plan": "", "time_us": 1, "noise_us": 0, "runs": 1,
                    "workspace_bytes": 0, "error": 0, "measured_at": 0}
        entry = {"problem": RELU + " \u202e", "choice": None, "measurements": [measured],
                 "quarantine": [{"kernel": "k", "reason": EVIL, "found_at": 0}]}
        environment = {"device": EVIL, "traits": {EVIL: EVIL}, "versions": {EVIL: EVIL}}
        contents = {"version": 1, "environments": [{"environment": environment, "entries": [entry]}]}
        file = self.write("contents.json", json.dumps(contents))
        self.assertEqual(self.harmless("store", "import", file, "--store", store).returncode, 0)
        for action in (["list"], ["list", "--json"], ["export"]):
            self.harmless("store", *action, "--store", store)
        self.harmless("report", "--store", store)
        measured["kernel"] = EVIL
        self.harmless("store", "import", self.write("contents.json", json.dumps(contents)), "--store", store)

    def test_logs_names_and_arguments(self):
        self.harmless("lock", "record", "--from-log", self.write("log.txt", EVIL + "\n"))
        event = {"args": {"problem": EVIL}}
        self.harmless("lock", "record", "--from-log", self.write("log.json", json.dumps({"traceEvents": [event]})))
        name = self.folder / "a\x1b[2J\u202e.json"
        self.harmless("policy", "show", name)
        name.write_text("{}")
        self.harmless("policy", "validate", name)
        for arguments in ([EVIL], ["explain", EVIL], ["explain", RELU, "--force", EVIL], ["kernels", EVIL],
                          ["explain", RELU, "--device", EVIL], ["explain", RELU, "--autocast", EVIL],
                          ["--" + EVIL], ["lock", EVIL], ["run", RELU, "--seed", EVIL], ["tune", RELU, "--budget", EVIL],
                          ["--plugin", "./" + EVIL, "devices"], ["trace", RELU, "--out", self.folder / EVIL],
                          ["store", "prune", "--older-than", EVIL], ["report", RELU, "--title", EVIL]):
            self.harmless(*arguments)


class HostileFiles(CliTest):
    def test_no_command_waits_for_a_pipe_or_reads_a_device(self):
        pipe = self.folder / "pipe"
        os.mkfifo(pipe)
        lock = self.folder / "good.lock"
        self.fine("lock", "record", RELU, "--out", lock)
        inputs = [["policy", "show"], ["policy", "validate"], ["policy", "diff", self.write("a.json", "{}")],
                  ["explain", RELU, "--policy"], ["explain", RELU, "--profile"], ["lock", "verify"],
                  ["lock", "diff", lock], ["lock", "record", "--from-log"], ["tune", "--from-log"],
                  ["report", "--lock"], ["report", "--against"], ["report", "--from-log"], ["store", "import"],
                  ["--plugin"]]
        for path in (pipe, "/dev/zero", self.folder):
            for command in inputs:
                self.refused(2, *command, path, *(["devices"] if command == ["--plugin"] else []))
            self.refused(2, "explain", RELU, env={"XPURUNTIME_POLICY": str(path)}, says="cannot be read: it is a")

    def test_what_cannot_be_written_is_refused_before_the_work_begins(self):
        pipe = self.folder / "pipe"
        os.mkfifo(pipe)
        store = ["--store", self.folder / "store.sqlite"]
        for path in (pipe, "/dev/full", self.folder):
            for command in (["trace", RELU], ["lock", "record", RELU], ["report", RELU], ["store", "export", *store],
                            ["policy", "merge", self.write("a.json", "{}"), self.write("b.json", "{}")],
                            ["tune", SQUARE, "--budget", "60s", *store]):
                self.refused(2, *command, "--out", path, says="cannot be written: it is a")
            self.refused(2, "tune", SQUARE, "--budget", "60s", *store, "--lock", path, says="cannot be written")
        self.assertTrue(stat.S_ISFIFO(pipe.stat().st_mode))
        self.assertFalse((self.folder / "store.sqlite").exists())
        for option in ("--out", "--lock"):  # a folder in which nobody can make a file
            self.refused(2, "tune", SQUARE, "--budget", "60s", *store, option, "/proc/new",
                         says="'/proc/new' cannot be written: no file can be made in its folder: ")
        self.refused(2, "demo", "--tune", *store, "--out", "/proc/new", says="'/proc/new/policy.json' cannot be written: ")
        self.refused(2, "demo", "--tune", *store, "--out", "/proc", says="no file can be made in its folder: ")
        self.assertFalse((self.folder / "store.sqlite").exists())

    def test_no_file_is_written_twice_or_over_what_is_read(self):
        lock, log, policy = self.folder / "a.lock", self.write("log.txt", RELU), self.write("policy.json", "{}")
        self.fine("lock", "record", RELU, "--out", lock)
        link = self.folder / "link"
        link.symlink_to("new.json")  # of a file that is still to be made
        before = {path: path.read_bytes() for path in (lock, log, policy)}
        store = ["--store", self.folder / "store.sqlite"]
        for options in (["--out", self.folder / "new.json", "--lock", link], ["--out", log, "--from-log", log],
                        ["--lock", policy, "--policy", policy], ["--out", self.folder / "store.sqlite"]):
            self.refused(2, "tune", SQUARE, "--budget", "60s", *store, *options, says="would overwrite it")
        for option in ("--out", "--lock"):  # a store that is still to be made, by name or by environment
            for beside in ("-wal", "-shm", "-journal"):
                self.refused(2, "tune", SQUARE, "--budget", "60s", *store, option, f"{store[1]}{beside}",
                             says="or belongs to it; name another file")
            self.refused(2, "tune", SQUARE, "--budget", "60s", option, store[1],
                         env={"XPURUNTIME_STORE": str(store[1])}, says="or belongs to it; name another file")
        self.assertFalse(store[1].exists())
        self.refused(2, "report", "--lock", lock, "--out", lock, says="--out names the file of --lock")
        self.refused(2, "lock", "record", RELU, "--policy", policy, "--out", policy, says="would overwrite it")
        self.refused(2, "lock", "record", "--from-log", log, "--out", log, says="would overwrite it")
        self.assertEqual({path: path.read_bytes() for path in before}, before)

    def test_a_file_is_whole_or_as_it_was_and_keeps_its_permissions(self):
        out = self.folder / "out.json"
        for command in (["trace", RELU, "--repeat", "500"], ["report", RELU]):
            out.write_text("old")
            out.chmod(0o600)
            answer = xrt(*command, "--out", out, preexec_fn=no_large_files)
            self.assertEqual(answer.returncode, 2, answer)
            self.assertIn("cannot be written", answer.stderr)
            self.assertEqual(out.read_text(), "old")
            self.assertEqual(os.listdir(self.folder), ["out.json"])
            self.fine(*command, "--out", out)
            self.assertNotEqual(out.read_text(), "old")
            self.assertEqual(stat.S_IMODE(out.stat().st_mode), 0o600)

    def test_a_log_is_bounded(self):
        self.refused(2, "lock", "record", "--from-log", self.write("long.txt", RELU + "\n" + "x" * 70000),
                     says="line 2 is longer")
        large = self.folder / "large.txt"
        with open(large, "wb") as file:
            file.truncate((256 << 20) + 1)  # zeros that are not on the disk
        self.refused(2, "lock", "record", "--from-log", large, says="larger than any log may be, which is 256 MiB")
        deep = '{"traceEvents": ' + "[" * 100000
        self.refused(2, "lock", "record", "--from-log", self.write("deep.json", deep), says="nested deeper")

    def test_a_log_may_begin_with_a_byte_order_mark(self):
        self.assertIn(RELU, self.fine("lock", "record", "--from-log", self.write("bom.txt", "\ufeff" + RELU)))
        trace = self.fine("trace", RELU)
        self.assertIn(RELU, self.fine("lock", "record", "--from-log", self.write("bom.json", "\ufeff" + trace)))

    def test_eight_thousand_rules_are_shown_and_validated(self):
        rules = [{"op": "relu", "use": "simd", "when": {"elements": i}} for i in range(8000)]
        rules.append({"op": "gelu", "use": "simd", "name": "y" * 100000})
        path = self.write("many.json", json.dumps({"rules": rules}, indent=1))
        shown = self.fine("policy", "show", path)
        self.assertIn("rules[7999]", shown)
        self.assertLess(len(shown), 8000 * 400)  # one long name does not make every line as long
        self.fine("policy", "validate", path)


if __name__ == "__main__":
    unittest.main()
