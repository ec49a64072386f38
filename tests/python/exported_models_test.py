"""Models that PyTorch's exporter wrote give what ONNX Runtime gives at every optimise level, in sizes that vary."""

from __future__ import annotations

import tempfile
import unittest
from pathlib import Path

from packages import need

need("numpy", "onnxruntime", "torch")

import exported_models
import numpy as np
import onnxruntime

import xpuruntime as xrt


class ExportedModels(unittest.TestCase):
    def test_all_give_what_onnx_runtime_gives_at_every_level(self) -> None:
        for name, model in exported_models.models().items():
            content = exported_models.onnx_bytes(model)
            peer = onnxruntime.InferenceSession(content, providers=["CPUExecutionProvider"])
            expected = [peer.run(None, inputs) for inputs in model.inputs]
            with tempfile.TemporaryDirectory() as folder:
                path = Path(folder) / f"{name}.onnx"
                path.write_bytes(content)
                for level in range(4):
                    with self.subTest(model=name, level=level):
                        self.check(path, level, model, expected)

    def check(self, path: Path, level: int, model: exported_models.Exported, expected: list[list[np.ndarray]]) -> None:
        session = xrt.load(path, execution=xrt.ExecutionPolicy(target="cpu", engine="native", optimize_level=level))
        for inputs, want in zip(model.inputs, expected, strict=True):
            for got, wanted in zip(session.run(inputs).values(), want, strict=True):
                # Of the largest: sums in another order differ by rounding, which layers carry on.
                np.testing.assert_allclose(got, wanted, rtol=0, atol=5e-5 * float(np.abs(wanted).max()))


if __name__ == "__main__":
    unittest.main()
