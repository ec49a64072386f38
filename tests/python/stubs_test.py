"""A typed program checks against the stubs that the build made."""

from __future__ import annotations

import importlib.util
import os
import subprocess
import sys
import tempfile
import unittest
from pathlib import Path

import xpuruntime as xrt

ROOT = Path(__file__).resolve().parents[2]
STRICT = ["--strict", "--allow-any-generics", "--cache-dir", os.devnull]
PACKAGE = Path(xrt.__file__).parent

# Wrong on purpose: each line must be reported. A stub that says Any everywhere would let them pass.
WRONG = """
import xpuruntime as xrt
xrt.get_available_kernels(5)
decision: int = xrt.explain("matmul(f32[1,1], f32[1,1])")
kernels: int = xrt.get_available_kernels("matmul")
xrt.no_such_name
"""


def needs(module: str) -> unittest.skipUnless:  # type: ignore[valid-type]
    return unittest.skipUnless(importlib.util.find_spec(module), f"{module} is not installed")


class Stubs(unittest.TestCase):
    def run_python(self, *arguments: str) -> subprocess.CompletedProcess[str]:
        """A program with the built package and its stubs."""
        environment = {**os.environ, "PYTHONPATH": str(PACKAGE.parent), "MYPYPATH": str(PACKAGE.parent)}
        with tempfile.TemporaryDirectory() as folder:
            command = [sys.executable, *arguments]
            return subprocess.run(command, capture_output=True, text=True, timeout=600, cwd=folder, env=environment)

    @needs("mypy")
    def test_the_examples_are_well_typed(self) -> None:
        examples = [str(path) for path in sorted((ROOT / "examples").glob("*.py"))]
        done = self.run_python("-m", "mypy", *STRICT, *examples)
        self.assertEqual(done.returncode, 0, done.stdout)

    @needs("mypy")
    def test_wrong_programs_are_reported(self) -> None:
        with tempfile.TemporaryDirectory() as folder:
            program = Path(folder) / "wrong.py"
            program.write_text(WRONG, encoding="utf-8")
            done = self.run_python("-m", "mypy", *STRICT, str(program))
        for line in range(3, 7):
            self.assertIn(f"wrong.py:{line}: error", done.stdout)

    def test_the_package_says_that_it_is_typed(self) -> None:
        self.assertTrue((PACKAGE / "py.typed").is_file())


if __name__ == "__main__":
    unittest.main()
