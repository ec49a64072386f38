"""The Python blocks of docs/python.md run, in order, and the reference is what the stubs say."""

from __future__ import annotations

import contextlib
import io
import os
import re
import subprocess
import sys
import tempfile
import unittest
from pathlib import Path

SCRATCH = tempfile.TemporaryDirectory()
os.environ["XPURUNTIME_STORE"] = f"{SCRATCH.name}/store.sqlite"  # what is tuned here is not for the user's own

from packages import optional  # noqa: E402

import xpuruntime as xrt  # noqa: E402

ROOT = Path(__file__).resolve().parents[2]
BLOCK = re.compile(r"^```python\n(.*?)^```$", re.MULTILINE | re.DOTALL)


class Docs(unittest.TestCase):
    def test_the_blocks_of_the_python_page_run(self) -> None:
        self.addCleanup(xrt.set_kernel_policy, xrt.get_kernel_policy())
        self.addCleanup(xrt.disable_dispatch_logging)
        blocks = BLOCK.findall((ROOT / "docs" / "python.md").read_text(encoding="utf-8"))
        self.assertGreaterEqual(len(blocks), 3)
        names: dict[str, object] = {}
        output = io.StringIO()
        for number, block in enumerate(blocks):
            with self.subTest(block=number), contextlib.redirect_stdout(output):
                exec(compile(block, f"docs/python.md, block {number}", "exec"), names)
        self.addCleanup(xrt.unregister_rule, names["few_rows"])
        self.assertIn("softmax", output.getvalue())

    def test_the_blocks_of_the_page_on_sessions_run(self) -> None:
        if optional("onnx") is None:
            self.skipTest("onnx is not installed")
        blocks = BLOCK.findall((ROOT / "docs" / "sessions.md").read_text(encoding="utf-8"))
        self.assertGreaterEqual(len(blocks), 2)
        names: dict[str, object] = {}
        output, here = io.StringIO(), os.getcwd()
        self.addCleanup(os.chdir, here)
        with tempfile.TemporaryDirectory() as folder, contextlib.redirect_stdout(output):
            os.chdir(folder)
            for block in blocks:
                exec(compile(block, "docs/sessions.md", "exec"), names)
            os.chdir(here)
        self.assertIn("layer Gemm kernel small", output.getvalue())
        self.assertIn("ModelValue('x', f32, ('batch', 8))", output.getvalue())

    def test_the_blocks_of_the_page_on_engines_run(self) -> None:
        if optional("onnx") is None:
            self.skipTest("onnx is not installed")
        first, guarded, engine, last = BLOCK.findall((ROOT / "docs" / "engines.md").read_text(encoding="utf-8"))
        output, here = io.StringIO(), os.getcwd()
        self.addCleanup(os.chdir, here)
        for name in ("mine", "guarded"):
            self.addCleanup(xrt.unregister_engine, name)
        with tempfile.TemporaryDirectory() as folder, contextlib.redirect_stdout(output):
            os.chdir(folder)
            Path("my_engine.py").write_text(engine, encoding="utf-8")
            sys.path.insert(0, folder)
            self.addCleanup(sys.path.remove, folder)
            names: dict[str, object] = {}
            for block in (first, guarded, last):
                exec(compile(block, "docs/engines.md", "exec"), names)
            del names["session"]
            os.chdir(here)
        self.assertIn("native because the first that takes the model", output.getvalue())
        self.assertIn("[2. 2. 2.]", output.getvalue())

    def test_the_reference_is_up_to_date(self) -> None:
        command = [sys.executable, str(ROOT / "tools" / "api_reference.py"), "--check", str(Path(xrt.__file__).parent)]
        done = subprocess.run(command, capture_output=True, text=True, timeout=60)
        self.assertEqual((done.returncode, done.stderr), (0, ""))

    def test_the_tables_of_ops_are_those_of_the_rows(self) -> None:
        command = [sys.executable, str(ROOT / "tools" / "op_tables.py"), "--check"]
        done = subprocess.run(command, capture_output=True, text=True, timeout=60)
        self.assertEqual((done.returncode, done.stdout, done.stderr), (0, "", ""))

    def test_the_functions_of_cpp_are_those_of_the_rows(self) -> None:
        command = [sys.executable, str(ROOT / "tools" / "op_functions.py"), "--check"]
        done = subprocess.run(command, capture_output=True, text=True, timeout=60)
        self.assertEqual((done.returncode, done.stdout, done.stderr), (0, "", ""))

    def test_every_op_says_what_it_does(self) -> None:
        for row in xrt._core.op_rows():
            with self.subTest(op=row["name"]):
                self.assertTrue(row["summary"].endswith("."))
                self.assertIn(row["summary"], getattr(xrt.ops, row["name"]).__doc__)


if __name__ == "__main__":
    unittest.main()
