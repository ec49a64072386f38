"""Models that PyTorch's exporter wrote give what ONNX Runtime gives by every engine at every optimise level, in sizes that vary."""

from __future__ import annotations

import functools
import tempfile
import unittest
from pathlib import Path

from packages import need

need("numpy", "onnxruntime", "torch")

import exported_models
import numpy as np
import onnxruntime
from engine_levels import OnEngine

FOLDER = tempfile.TemporaryDirectory()


@functools.cache
def exported(name: str) -> tuple[Path, list[tuple[dict[str, np.ndarray], list[np.ndarray]]]]:
    """A model's file, and inputs with what ONNX Runtime gives for them."""
    model = exported_models.models()[name]
    content = exported_models.onnx_bytes(model)
    peer = onnxruntime.InferenceSession(content, providers=["CPUExecutionProvider"])
    path = Path(FOLDER.name) / f"{name}.onnx"
    path.write_bytes(content)
    return path, [(inputs, peer.run(None, inputs)) for inputs in model.inputs]


class ExportedModels(OnEngine):
    def test_all_give_what_onnx_runtime_gives_at_every_level(self) -> None:
        for name in exported_models.models():
            path, cases = exported(name)
            for level, session in self.at_levels(path):
                with self.subTest(model=name, level=level):
                    for inputs, expected in cases:
                        for got, want in zip(session.run(inputs).values(), expected, strict=True):
                            # Of the largest: sums in another order differ by rounding, which layers carry on.
                            np.testing.assert_allclose(got, want, rtol=0, atol=5e-5 * float(np.abs(want).max()))


class ExportedModelsOnOpenCl(ExportedModels):
    target = "opencl"


class ExportedModelsOnCuda(ExportedModels):
    target = "cuda"


class ExportedModelsByOnnxRuntime(ExportedModels):
    engine = "onnxruntime"


class ExportedModelsByOpenVino(ExportedModels):
    engine = "openvino"


if __name__ == "__main__":
    unittest.main()
