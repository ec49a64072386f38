"""Which engine `auto` takes where only engines of the program's own are there; apart, as ours do not come back."""

from __future__ import annotations

import unittest
from pathlib import Path

from packages import need

need("numpy", "onnx")

import engines_test  # noqa: E402

import xpuruntime as xrt  # noqa: E402


class EngineOrderTest(engines_test.EngineCase):
    def test_auto_goes_on_to_the_engine_that_has_what_native_lacks(self) -> None:
        unknown = engines_test.save_model(str(Path(self.folder, "unknown.onnx")), ["Exp", "Det"])
        self.register("picky", "fine")
        for name in ("onnxruntime", "openvino"):
            self.assertTrue(xrt.unregister_engine(name))
        session = xrt.load(unknown)
        self.assertEqual(session.engine, "fine")
        self.assertEqual([one.engine for one in session.record.rejections], ["native", "picky"])
        self.assertEqual(repr(session.record.rejections[1]), "<picky on cpu: no model is good enough>")
        self.assertIn("Det (1)", session.because)
        with self.assertRaisesRegex(xrt.NotSupportedError, r"^\[Session\] the model has operators .*: Det \(1\)"):
            xrt.load(unknown, execution=engines_test.on("native"))
        xrt.unregister_engine("fine")
        with self.assertRaisesRegex(xrt.NotSupportedError, r"native: .*Det \(1\).*picky: no model is good enough"):
            xrt.load(unknown)


if __name__ == "__main__":
    unittest.main()
