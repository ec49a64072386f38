"""Each engine with the optimise levels at which models are compared with ONNX Runtime."""

from __future__ import annotations

import os
import tempfile
import unittest
from pathlib import Path
from typing import Iterator

from packages import optional

SCRATCH = tempfile.TemporaryDirectory()
os.environ["XPURUNTIME_MODEL_CACHE"] = SCRATCH.name  # what is kept here is not for the user's own

import xpuruntime as xrt  # noqa: E402

# Others than ours start a process for each, which takes a second or two; 0 and 3 are their ends.
LEVELS = {"native": (0, 1, 2, 3), "onnxruntime": (0, 3), "openvino": (0, 3)}


class OnEngine(unittest.TestCase):
    """Tests of one engine; each class of them has a subclass for each of the others."""

    engine = "native"
    target = "cpu"  # of another device: what it lacks runs on the CPU

    def setUp(self) -> None:
        if not any(str(device) == f"{self.target}:0" for device in xrt.devices()):
            self.skipTest(f"needs a device of type {self.target}")
        if self.engine != "native" and optional(self.engine) is None:
            self.skipTest(f"{self.engine} is not installed")

    def at_levels(self, path: Path) -> Iterator[tuple[int, xrt.Session]]:
        """A session for each. Errors are bounded as for fp32, so an engine must compute in it."""
        for level in LEVELS[self.engine]:
            execution = xrt.ExecutionPolicy(self.target, engine=self.engine, precision="fp32", optimize_level=level,
                                            allow_fallback=None if self.target == "cpu" else "cpu")
            session = xrt.load(path, execution=execution)
            self.assertEqual((session.engine, session.record.is_fallback), (self.engine, False))
            yield level, session
