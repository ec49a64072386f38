"""Runs every console block of docs/cli.md, docs/selection.md, docs/precision.md and docs/policies.md and compares what it shows.

A comment before a block says what may differ: `varies` (it must only run), `numbers vary`, `needs opencl` (a device),
`needs cuda kernels` (a backend that was built), `needs no amx` (a processor without tiles); several stand with commas
between them.
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


def blocks(page):
    """Triples of a block's title, its notes and its text."""
    text = (ROOT / "docs" / page).read_text(encoding="utf-8")
    for block in BLOCK.finditer(text):
        yield f"{page}: {block['text'].splitlines()[0]}", (block["note"] or "").split(", "), block["text"]


def plain(output, notes):
    """Without what may differ."""
    lines = [line.rstrip() for line in output.splitlines()]
    if "numbers vary" in notes:
        lines = [re.sub(r"\d[\d.]*(e[+-]\d+)?( us| ms)?", "#", line) for line in lines]
    return lines


class Docs(CliTest):
    def reason_to_skip(self, notes):
        if "needs opencl" in notes:
            present = [device["device"] for device in self.document("devices", "--json")["devices"]]
            if "opencl:0" not in present or "cuda:0" in present:
                return "needs OpenCL and no GPU"
        if "needs cuda kernels" in notes:
            rows = self.document("kernels", "--json")["kernels"]
            if not any(row["registered"] and row["device_type"] == "cuda" for row in rows):
                return "needs CUDA"
        if "needs no amx" in notes and "amx_bf16" in self.document("profile", "cpu:0")["cpu_features"]:
            return "needs a processor without AMX"
        return ""

    def run_block(self, text, notes):
        environment = {**os.environ, "PATH": f"{Path(XRT).parent}:{os.environ['PATH']}"}
        code = 0
        for command, shown in sessions(text):
            command = command.replace("$?", str(code))
            answer = subprocess.run(["bash", "-c", command], cwd=self.folder, env=environment, timeout=120, text=True,
                                    stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
            code = answer.returncode
            if "varies" in notes:
                self.assertEqual(code, 0, answer)
            else:
                self.assertEqual(plain(answer.stdout, notes), plain(shown, notes), command)

    def test_every_block_shows_what_the_command_prints(self):
        (self.folder / "tests").symlink_to(ROOT / "tests")
        found = [*blocks("cli.md"), *blocks("selection.md"), *blocks("precision.md"), *blocks("tuning.md"),
                 *blocks("policies.md"), *blocks("locks.md"), *blocks("report.md"),
                 *blocks("environment.md"), *blocks("opencl.md")]
        self.assertGreaterEqual(len(found), 11)
        for title, notes, text in found:
            with self.subTest(title):
                reason = self.reason_to_skip(notes)
                if reason:
                    self.skipTest(reason)
                self.run_block(text, notes)

    def test_every_command_has_a_block(self):
        text = (ROOT / "docs" / "cli.md").read_text(encoding="utf-8")
        for command in ["devices", "profile", "kernels", "explain", "run", "demo", "trace", "amp", "policy", "store", "report"]:
            self.assertIn(f"\n$ xrt {command}", text)


if __name__ == "__main__":
    unittest.main()
