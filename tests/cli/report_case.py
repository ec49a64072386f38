"""Locks and stores for the tests of xrt report."""
import json

from xrt_case import ROOT, CliTest

SOFTMAX = "softmax(f32[64,1000]) @cpu:0"
RELU = "relu(f32[1024]) @cpu:0"
MIXED = "softmax(f32[8,8]) -> f16[8,8] @cpu:0"
A100 = ROOT / "tests" / "data" / "store" / "a100.json"
EVIL = '</script><script>document.title="broken"</script><!--<script>'


class ReportCase(CliTest):
    def record(self, name, *problems, options=()):
        path = self.folder / name
        self.fine("lock", "record", *problems, "--out", path, *options)
        return path

    def store(self, *entries, name="store.sqlite"):
        """A store of this machine with (problem, chosen, {kernel: microseconds}) in it."""
        lock = json.loads(self.fine("lock", "record", RELU))
        environment = next(iter(lock["environments"].values()))
        stored = []
        for problem, chosen, times in sorted(entries):
            measurements = [{"kernel": kernel, "plan": "", "time_us": time, "noise_us": 0.5, "runs": 7,
                             "workspace_bytes": 64, "error": 0, "measured_at": 1794700800}
                            for kernel, time in sorted(times.items())]
            choice = {"kernel": chosen, "plan": "", "incumbent": "reference", "because": f"{chosen} won",
                      "cut_short": False, "measured_at": 1794700800}
            stored.append({"problem": problem, "choice": choice, "measurements": measurements, "quarantine": []})
        document = {"version": 1, "environments": [{"environment": environment, "entries": stored}]}
        exported, path = self.write("export.json", json.dumps(document)), self.folder / name
        self.fine("store", "import", exported, "--store", path)
        return path
