"""Every script under examples/ runs, and says what its comments promise."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import tempfile
import unittest
from pathlib import Path

import xpuruntime as xrt
from published_models import path_of

ROOT = Path(__file__).resolve().parents[2]
EXAMPLES = ROOT / "examples"

# What a reader should see of each, as proof that it came to the end and did what it is about.
EXPECTED = {
    "choose_and_explain.py": ["reference [prefer]", "refused  cublasLt", "matmul on (64, 64) ran packed"],
    "write_a_rule.py": ["1 rows: reference [rule]", "few_rows"],
    "python_kernel.py": ["-> numpy [prefer]", "it takes f32, not f64", "as numpy is forward only"],
    "tune_and_lock.py": ["matmul(f32[64,64], f32[64,64])", "\nlock\n", "[dispatch]"],
    "mixed_precision.py": ["'forward': 'bf16'", "bfloat16", "stepped: True"],
    "use_from_cpp.cpp": ["-> small [strategy]", "the policy forces reference", "few rows"],
    "voice_activity.py": ["ModelValue('sr', i64, ())", " 0.96 s  ########", "pieces of 32 ms, each in "],
    "text_direction.py": ["upright, or on its head: [[", "\n  -> ", "the same under the lock: True", "one line alone: NotSupportedError"],
    "run_a_model.cpp": [" f32[1,2] begins with ", " calls by ", " bytes between inputs and outputs"],
}
# Those that run a published model: its name, and what a program that gets its path gets after it.
MODELS = {"voice_activity.py": ["voice"], "text_direction.py": ["direction"],
          "run_a_model.cpp": ["direction", "1", "3", "48", "192"]}


def library() -> Path:
    """Where the library lies that this package runs on: beside a build, or inside an installed package."""
    package = Path(xrt.__file__).parent
    for folder in (package.parent.parent, package / "lib"):
        if list(folder.glob("libxpuruntime.so*")):
            return folder
    raise unittest.SkipTest("libxpuruntime.so is not beside the package")


class Examples(unittest.TestCase):
    def run_quietly(self, command: list[str]) -> str:
        """What a command prints; it must end well and write nothing to stderr."""
        with tempfile.TemporaryDirectory() as folder:
            here = str(Path(xrt.__file__).parent.parent)
            more = {"XPURUNTIME_STORE": f"{folder}/store.sqlite", "TMPDIR": folder, "PYTHONPATH": here}
            environment = {**os.environ, **more}
            environment.pop("XPURUNTIME_POLICY", None)
            environment.pop("XPURUNTIME_LOCK", None)
            done = subprocess.run(command, capture_output=True, text=True, timeout=300, cwd=folder, env=environment)
        self.assertEqual((done.returncode, done.stderr), (0, ""), done.stdout)
        return done.stdout

    def compiled(self, source: Path, folder: str) -> str:
        """The path of the built program."""
        compiler = os.environ.get("XRT_CXX") or shutil.which("g++") or shutil.which("c++")
        if compiler is None:
            self.skipTest("no C++ compiler")
        where, program = library(), f"{folder}/program"
        shared = sorted(where.glob("libxpuruntime.so*"))[0]
        include = ROOT / "include"
        command = [compiler, "-std=c++20", f"-I{include}", source, shared, f"-Wl,-rpath,{where}", "-o", program]
        subprocess.run(command, check=True, timeout=300)
        return program

    def test_every_example_runs_and_shows_what_it_is_about(self) -> None:
        found = {path.name for path in EXAMPLES.iterdir() if path.suffix in (".py", ".cpp")}
        self.assertEqual(found, set(EXPECTED))
        for name, texts in EXPECTED.items():
            with self.subTest(name), tempfile.TemporaryDirectory() as folder:
                path = EXAMPLES / name
                words: list[str] = []
                if name in MODELS:
                    model, *words = MODELS[name]
                    path_here = path_of(model)  # or a skip
                    words = words and [str(path_here), *words]
                program = [sys.executable, str(path)] if path.suffix == ".py" else [self.compiled(path, folder)]
                output = self.run_quietly([*program, *words])
                for text in texts:
                    self.assertIn(text, output)


if __name__ == "__main__":
    unittest.main()
