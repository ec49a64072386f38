"""Runs every console block of docs/cli.md and compares what it shows.

A comment before a block says what may differ: `varies` (it must only run), `numbers vary`, `needs opencl` (a device),
`needs cuda kernels` (a backend that was built).
"""
import os
import re
import subprocess
import unittest
from pathlib import Path

from xrt_case import ROOT, XRT, CliTest

BLOCK = re.compile(r"(?:<!-- (?P<note>.*?) -->\n)?```console\n(?P<text>.*?)```", re.DOTALL)


def sessions(text):
    """Pairs of a command and what it prints."""
    parts = re.split(r"^\$ (.*)\n", text, flags=re.MULTILINE)
    return list(zip(parts[1::2], parts[2::2]))


def plain(output, note):
    """Without what may differ."""
    lines = [line.rstrip() for line in output.splitlines()]
    if note == "numbers vary":
        lines = [re.sub(r"\d[\d.]*(e[+-]\d+)?( us| ms)?", "#", line) for line in lines]
    return lines


class Docs(CliTest):
    def reason_to_skip(self, note):
        if note == "needs opencl":
            present = [device["device"] for device in self.document("devices", "--json")["devices"]]
            return "" if "opencl:0" in present and "cuda:0" not in present else "needs OpenCL and no GPU"
        if note == "needs cuda kernels":
            rows = self.document("kernels", "--json")["kernels"]
            return "" if any(row["registered"] and row["device_type"] == "cuda" for row in rows) else "needs CUDA"
        return ""

    def run_block(self, text, note):
        environment = {**os.environ, "PATH": f"{Path(XRT).parent}:{os.environ['PATH']}"}
        code = 0
        for command, shown in sessions(text):
            command = command.replace("$?", str(code))
            answer = subprocess.run(["bash", "-c", command], cwd=self.folder, env=environment, timeout=120, text=True,
                                    stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
            code = answer.returncode
            if note == "varies":
                self.assertEqual(code, 0, answer)
            else:
                self.assertEqual(plain(answer.stdout, note), plain(shown, note), command)

    def test_every_block_shows_what_the_command_prints(self):
        (self.folder / "tests").symlink_to(ROOT / "tests")
        blocks = list(BLOCK.finditer((ROOT / "docs" / "cli.md").read_text(encoding="utf-8")))
        self.assertGreaterEqual(len(blocks), 9)
        for block in blocks:
            with self.subTest(block["text"].split("\n")[0]):
                reason = self.reason_to_skip(block["note"])
                if reason:
                    self.skipTest(reason)
                self.run_block(block["text"], block["note"])

    def test_every_command_has_a_block(self):
        text = (ROOT / "docs" / "cli.md").read_text(encoding="utf-8")
        for command in ["devices", "profile", "kernels", "explain", "run", "trace"]:
            self.assertIn(f"\n$ xrt {command}", text)


if __name__ == "__main__":
    unittest.main()
