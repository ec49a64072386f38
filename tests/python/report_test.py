"""xrt.report and xrt.report_data: the same page as the command's, from objects and from files."""
import json
import os
import re
import tempfile
import unittest
from pathlib import Path

SCRATCH = tempfile.TemporaryDirectory()
os.environ["XPURUNTIME_STORE"] = f"{SCRATCH.name}/store.sqlite"  # nothing that the user has measured may show

import xpuruntime as xrt  # noqa: E402
from packages import need  # noqa: E402

RELU = "relu(f32[1024]) @cpu:0"
SOFTMAX = "softmax(f32[8,8]) -> f16[8,8] @cpu:0"


def data_in(page):
    return json.loads(re.search(r'id="data">(.*?)</script>', page, re.DOTALL).group(1))


class Report(unittest.TestCase):
    def setUp(self):
        self.folder = Path(self.enterContext(tempfile.TemporaryDirectory()))

    def without_time(self, data):
        return {key: value for key, value in data.items() if key != "made_at"}

    def test_shows_a_model_with_its_nodes_and_their_times(self):
        need("numpy", "onnx")
        import numpy as np
        from onnx import TensorProto, helper

        value = [helper.make_tensor_value_info(name, TensorProto.FLOAT, [4]) for name in "xy"]
        nodes = [helper.make_node("Exp", ["x"], ["e"], "first"), helper.make_node("Neg", ["e"], ["y"], "second")]
        model = helper.make_model(helper.make_graph(nodes, "g", value[:1], value[1:]), ir_version=8,
                                  opset_imports=[helper.make_opsetid("", 17)])
        path = self.folder / "model.onnx"
        path.write_bytes(model.SerializeToString())
        session = xrt.load(path, execution=xrt.ExecutionPolicy("cpu", engine="native"))
        shown = xrt.report_data(models=[(session, {"x": np.zeros(4, np.float32)})])
        page, = shown["models"]
        self.assertEqual((page["model"], page["engine"]), (str(path), "native"))
        self.assertEqual([node["node"] for node in page["nodes"]], ["first", "second"])
        for node in page["nodes"]:
            self.assertGreater(node["time_us"], 0)
            self.assertIn(node["problem"], [row["problem"] for row in shown["decisions"]])
        for models, error in [([session], "no pairs"), ([(session, {"z": 1})], "pass exactly x"), (3, "no pairs")]:
            with self.subTest(models=str(models)), self.assertRaisesRegex((TypeError, ValueError), error):
                xrt.report_data(models=models)

    def test_the_page_holds_what_report_data_gives(self):
        path = self.folder / "report.html"
        self.assertEqual(xrt.report(path, problems=[RELU, SOFTMAX]), str(path))
        data = xrt.report_data(problems=[RELU, SOFTMAX])
        self.assertEqual(self.without_time(data_in(path.read_text(encoding="utf-8"))), self.without_time(data))
        self.assertEqual([row["problem"] for row in data["decisions"]], [RELU, SOFTMAX])

    def test_agrees_with_explain(self):
        row = xrt.report_data(problems=SOFTMAX)["decisions"][0]
        decision = xrt.explain(SOFTMAX)
        self.assertEqual((row["kernel"], row["because"], row["level"]),
                         (decision.kernel, decision.because, decision.level))
        refused = {c["kernel"]: c["reason"] for c in row["candidates"] if c["verdict"] == "refused"}
        self.assertEqual(refused, {"simd": "output 0 is f16, and this kernel takes the input's f32"})

    def test_takes_locks_as_objects_and_as_files(self):
        lock = xrt.record_lock([RELU])
        lock.save(self.folder / "kernels.lock")
        with xrt.with_policy(xrt.KernelPolicy(relu="reference")):
            before = xrt.record_lock([RELU])
        from_object = xrt.report_data(lock=lock, against=before)
        from_file = xrt.report_data(lock=self.folder / "kernels.lock", against=before)
        self.assertEqual(from_object["decisions"], from_file["decisions"])
        self.assertEqual(from_file["lock"], str(self.folder / "kernels.lock"))
        change = {"problem": RELU, "field": "kernel", "before": "reference", "after": "simd"}
        self.assertEqual(from_object["changes"], [change])

    def test_is_decided_under_the_policy_in_force(self):
        with xrt.with_policy(xrt.KernelPolicy(relu="reference")):
            self.assertEqual(xrt.report_data(problems=RELU)["decisions"][0]["kernel"], "reference")
        self.assertEqual(xrt.report_data(problems=RELU)["decisions"][0]["kernel"], "simd")

    def test_sizes_of_a_locked_range_are_no_change(self):
        lock = xrt.record_lock(["relu(f32[n]) where n=1..512"])
        for problems in (None, "relu(f32[7])", "relu(f32[n]) where n=1..512"):
            self.assertEqual(xrt.report_data(problems=problems, against=lock)["changes"], [])
        with xrt.with_policy(relu="reference"):
            change, = xrt.report_data(problems="relu(f32[7])", against=lock)["changes"]
        self.assertEqual(change, {"problem": "relu(f32[7]) @cpu:0", "field": "kernel", "before": "simd",
                                  "after": "reference"})

    def test_times_come_from_the_store(self):
        store = xrt.open_store(self.folder / "s.sqlite")
        environment = next(iter(json.loads(xrt.record_lock([RELU]).to_json())["environments"].values()))
        measurement = {"kernel": "simd", "plan": "", "time_us": 2.5, "noise_us": 0.1, "runs": 9, "workspace_bytes": 0,
                       "error": 0,
                       "measured_at": 1794700800}
        entry = {"problem": RELU, "choice": None, "measurements": [measurement], "quarantine": []}
        store.merge({"version": 1, "environments": [{"environment": environment, "entries": [entry]}]})
        for given in (store, self.folder / "s.sqlite"):
            row = xrt.report_data(problems=RELU, store=given)["decisions"][0]
            self.assertEqual((row["kernel"], row["time_us"]), ("simd", 2.5))
            self.assertEqual([row["source"] for row in xrt.report_data(store=given)["decisions"]], ["store"])

    def test_bad_input_raises_what_fits_and_writes_nothing(self):
        (self.folder / "damaged.lock").write_text("{", encoding="utf-8")
        cases = [({"lock": 3}, TypeError), ({"against": 3.5}, TypeError), ({"store": 3}, TypeError),
                 ({"title": b"x"}, TypeError),
                 ({"problems": 3}, TypeError), ({"problems": []}, ValueError),
                 ({"problems": "relu(f31[2])"}, ValueError),
                 ({"lock": self.folder / "none.lock"}, OSError),
                 ({"lock": self.folder / "damaged.lock"}, xrt.CorruptDataError),
                 ({"store": self.folder / "none.sqlite"}, OSError)]
        for arguments, error in cases:
            with self.subTest(arguments=arguments), self.assertRaises(error) as raised:
                xrt.report(self.folder / "report.html", **arguments)
            self.assertIsInstance(raised.exception, xrt.XpuRuntimeError)
        for out, error in [(3, TypeError), (self.folder / "no" / "report.html", OSError), (self.folder, OSError)]:
            with self.subTest(out=out), self.assertRaises(error):
                xrt.report(out, problems=RELU)
        self.assertEqual(sorted(os.listdir(self.folder)), ["damaged.lock"])


if __name__ == "__main__":
    unittest.main()
