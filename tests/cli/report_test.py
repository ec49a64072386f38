"""xrt report: what its data says, and what it refuses."""
import html.parser
import json
import os
import re
import stat
import unittest

from report_case import A100, EVIL, RELU, SOFTMAX, MIXED, ReportCase
from xrt_case import xrt


class Report(ReportCase):
    def data(self, *arguments):
        return self.document("report", "--json", *arguments)

    def by_problem(self, *arguments):
        return {row["problem"]: row for row in self.data(*arguments)["decisions"]}

    def candidates(self, row):
        return {candidate["kernel"]: candidate for candidate in row["candidates"]}

    def test_without_input_it_shows_what_the_demo_runs(self):
        demo = self.document("demo", "--json", "--repeat", "1")
        ran = {step["decision"]["problem"] for block in demo["blocks"] for step in block["steps"]}
        rows = self.by_problem()
        self.assertEqual(set(rows), ran)
        for problem, row in rows.items():
            decision = self.document("explain", problem, "--json")
            self.assertEqual((row["kernel"], row["because"], row["source"], row["level"]),
                             (decision["kernel"], decision["because"], "here", decision["level"]))
            self.assertIsNone(row["time_us"])

    def test_refusals_come_with_their_reason(self):
        row = self.by_problem(MIXED)[MIXED]
        refused = self.candidates(row)["simd"]
        self.assertEqual((row["kernel"], refused["verdict"], refused["reason"]),
                         ("reference", "refused", "output 0 is f16, and this kernel takes the input's f32"))

    def test_a_lock_gives_the_choice_and_the_store_the_times(self):
        lock = self.record("kernels.lock", SOFTMAX, RELU)
        store = self.store((SOFTMAX, "simd", {"simd": 26.5, "reference": 57134.25}),
                           (MIXED, "reference", {"reference": 9}))
        rows = self.by_problem("--lock", lock, "--store", store)
        self.assertEqual(set(rows), {SOFTMAX, RELU})
        times = {name: candidate["time_us"] for name, candidate in self.candidates(rows[SOFTMAX]).items()}
        self.assertEqual(times, {"simd": 26.5, "reference": 57134.25})
        self.assertEqual((rows[SOFTMAX]["time_us"], rows[SOFTMAX]["because"], rows[SOFTMAX]["default"]),
                         (26.5, "simd won", "reference"))
        self.assertEqual((rows[RELU]["time_us"], rows[RELU]["source"]), (None, "lock"))

    def test_the_users_own_store_gives_times_without_being_listed(self):
        self.store((SOFTMAX, "simd", {"simd": 26.5}), (MIXED, "reference", {"reference": 9}), name="own.sqlite")
        answer = xrt("report", SOFTMAX, "--json", env={"XPURUNTIME_STORE": str(self.folder / "own.sqlite")})
        rows = json.loads(answer.stdout)["decisions"]
        self.assertEqual([(row["problem"], row["time_us"]) for row in rows], [(SOFTMAX, 26.5)])

    def test_a_store_alone_is_listed_whole_with_other_machines(self):
        store = self.store((SOFTMAX, "simd", {"simd": 26.5}))
        self.fine("store", "import", A100, "--store", store)
        document = self.data("--store", store)
        rows = {row["problem"]: row for row in document["decisions"]}
        matmul = rows["matmul(bf16[1,4096], bf16[4096,4096]) @cuda:0"]
        self.assertEqual((matmul["kernel"], matmul["time_us"], matmul["default"], matmul["source"]),
                         ("skinny", 21.5, "cublasLt", "store"))
        self.assertEqual(self.candidates(matmul)["cublasLt"]["workspace_bytes"], 33554432)
        verdicts = {e["device"]: e["verdict"] for e in document["environments"]}
        self.assertEqual(verdicts.pop("cuda nvidia NVIDIA A100-SXM4-80GB"), "refuse")
        self.assertEqual(list(verdicts.values()), ["same"])

    def test_what_changed_is_what_lock_diff_says(self):
        policy = self.write("policy.json", '{"preferences": {"softmax": "reference"}}')
        before = self.record("before.lock", SOFTMAX, MIXED, options=("--policy", policy))
        after = self.record("after.lock", SOFTMAX, RELU)
        expected = self.document("lock", "diff", before, after, "--json", code=1)["differences"]
        self.assertEqual(len(expected), 3)
        self.assertEqual(self.data("--lock", after, "--against", before)["changes"], expected)
        self.assertEqual(self.data("--lock", after, "--against", after)["changes"], [])

    def test_against_alone_compares_with_here_and_now(self):
        policy = self.write("policy.json", '{"preferences": {"softmax": "reference"}}')
        before = self.record("before.lock", SOFTMAX, RELU, options=("--policy", policy))
        changes = self.data("--against", before)["changes"]
        self.assertEqual(changes, [{"problem": SOFTMAX, "field": "kernel", "before": "reference", "after": "simd"}])
        self.assertEqual(self.data("--against", before, "--policy", policy)["changes"], [])

    def test_a_lock_that_differs_from_here_and_now_says_so(self):
        policy = self.write("policy.json", '{"preferences": {"softmax": "reference"}}')
        lock = self.record("kernels.lock", SOFTMAX, options=("--policy", policy))
        row = self.by_problem("--lock", lock)[SOFTMAX]
        self.assertEqual(row["kernel"], "reference")
        self.assertEqual(row["notes"], ["here and now simd would run: the first that can run it"])
        self.assertEqual(self.by_problem("--lock", lock, "--policy", policy)[SOFTMAX]["notes"], [])

    def test_hashes_of_outputs_are_shown(self):
        lock = self.record("kernels.lock", RELU, options=("--deterministic",))
        recorded = json.loads(lock.read_text())["decisions"][0]
        row = self.data("--lock", lock)["decisions"][0]
        self.assertEqual((row["outputs"], row["problem"]), (recorded["outputs"], recorded["problem"]))

    def test_the_page_holds_the_data_whatever_its_names_are(self):
        store = self.store((RELU, EVIL, {EVIL: 1.5, "simd": 2}))
        page = self.fine("report", "--store", store, "--title", EVIL)
        held = re.search(r'<script type="application/json" id="data">(.*?)</script>', page, re.DOTALL).group(1)
        self.assertNotIn("<", held)
        document = json.loads(held)
        self.assertEqual((document["title"], document["decisions"][0]["kernel"]), (EVIL, EVIL))
        self.assertNotIn("document.title=\"broken\"</script>", page.replace(held, ""))

    def test_the_page_loads_nothing(self):
        class Links(html.parser.HTMLParser):
            found = []

            def handle_starttag(self, tag, attributes):
                self.found += [value for name, value in attributes if name in ("src", "href", "action", "data")]

        page = self.fine("report", RELU)
        Links().feed(page)
        self.assertEqual([link for link in Links.found if not link.startswith(("#", "data:"))], [])
        self.assertNotRegex(page.replace("http://www.w3.org/2000/svg", ""), r"https?://|url\(|@import|fetch\(|XMLHttp")

    def test_without_javascript_there_is_a_table(self):
        page = self.fine("report", MIXED)
        plain = re.search(r"<noscript>(.*?)</noscript>", page, re.DOTALL).group(1)
        self.assertIn("<td>simd</td><td>refused</td><td></td><td></td><td>output 0 is f16, and this kernel takes", plain)

    def test_out_names_the_file_and_says_how_much_is_in_it(self):
        page = self.folder / "report.html"
        self.assertEqual(self.fine("report", RELU, SOFTMAX, "--out", page), f"2 decisions shown in {page}\n")
        self.assertTrue(page.read_text(encoding="utf-8").startswith("<!doctype html>"))
        self.assertEqual(self.document("report", RELU, "--out", page, "--json"),
                         {"version": 1, "file": str(page), "decisions": 1})
        self.assertEqual(os.listdir(self.folder), ["report.html"])

    def test_bad_files_are_wrong_usage_and_nothing_is_written(self):
        lock, out = self.record("kernels.lock", RELU), self.folder / "report.html"
        damaged = self.write("damaged.lock", lock.read_text().replace('"simd"', '"reference"'))
        no_store = self.write("no.sqlite", "this is no store, whatever its name says")
        for arguments, says in [(("--lock", self.folder / "none.lock"), "none.lock"), (("--lock", damaged), "checksum"),
                                (("--lock", lock, "--against", damaged), "checksum"), (("--lock", self.folder), "lock"),
                                (("--store", self.folder / "none.sqlite"), "none.sqlite"),
                                (("--store", no_store), "no.sqlite"),
                                (("relu(f31[8])",), "f31"),
                                (("--policy", self.folder / "none.json", RELU), "none.json"),
                                (("--lcok", lock), "--lock")]:
            with self.subTest(says):
                self.refused(2, "report", *arguments, "--out", out, says=says)
                self.assertFalse(out.exists())

    def test_an_option_without_its_value_is_wrong_usage(self):
        for option in ["--lock", "--against", "--store", "--out"]:
            self.refused(2, "report", option, says=option)

    def test_a_place_that_cannot_be_written_is_wrong_usage(self):
        self.refused(2, "report", RELU, "--out", self.folder / "no" / "report.html",
                     says=["report.html", "cannot be written"])
        self.refused(2, "report", RELU, "--out", self.folder, says="it is a folder")
        self.refused(2, "report", RELU, "--out", "/dev/full", says="a device")
        old = self.write("old.html", "old")
        self.folder.chmod(stat.S_IRUSR | stat.S_IXUSR)
        self.addCleanup(self.folder.chmod, stat.S_IRWXU)
        if os.access(self.folder, os.W_OK):
            self.skipTest("this user may write everywhere")
        self.refused(2, "report", RELU, "--out", old, says="What was there is unchanged")
        self.assertEqual(old.read_text(), "old")

    def test_a_device_that_is_not_here_is_a_no(self):
        present = [device["device"] for device in self.document("devices", "--json")["devices"]]
        if "npu:0" in present:
            self.skipTest("there is one")
        self.refused(1, "report", "relu(f32[8]) @npu:0", says="npu")


if __name__ == "__main__":
    unittest.main()
