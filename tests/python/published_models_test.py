"""Published models give what ONNX Runtime gives by every engine at every optimise level: text detection, recognition,
direction, voice."""

from __future__ import annotations

import json
import tempfile
import unittest
from pathlib import Path

from packages import need

need("numpy", "onnxruntime")

import numpy as np
import onnxruntime
import published_models
from engine_levels import LEVELS, OnEngine

import xpuruntime as xrt

# Of results in [0, 1]: sums of hundreds of products in another order. The half model computes in f32 from f16 weights.
TOLERANCE = 2e-5
RANDOM = np.random.default_rng(11)


def page(height: int, width: int) -> np.ndarray:
    """An image as the text models take it: dark strokes on light paper, in [-1, 1]."""
    image = np.full((height, width), 0.9, np.float32)
    for left in range(8, width - 8, 12):
        top = height // 3
        image[top:height - top, left:left + 3] = -0.8
        image[top + (left % 5):top + 3 + (left % 5), left:left + 9] = -0.8
    return (image + RANDOM.normal(0, 0.02, (3, height, width))).astype(np.float32)[None]


def peer_of(path: Path) -> onnxruntime.InferenceSession:
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = 2
    return onnxruntime.InferenceSession(str(path), options, providers=["CPUExecutionProvider"])


class PublishedModels(OnEngine):
    def check(self, model: str, inputs: list[dict[str, np.ndarray]]) -> None:
        """All inputs at all levels."""
        path = published_models.path_of(model)
        peer = peer_of(path)
        expected = [peer.run(None, one) for one in inputs]
        for level, session in self.at_levels(path):
            for one, want in zip(inputs, expected, strict=True):
                with self.subTest(model=model, level=level, shapes=[array.shape for array in one.values()]):
                    for got, wanted in zip(session.run(one).values(), want, strict=True):
                        np.testing.assert_allclose(got, wanted, rtol=1e-4, atol=TOLERANCE)

    def test_text_detection(self) -> None:
        self.check("detection", [{"x": page(96, 160)}, {"x": page(64, 224)}])

    def test_text_recognition(self) -> None:
        self.check("recognition", [{"x": page(48, 160)}, {"x": np.concatenate([page(48, 96), page(48, 96)])}])

    def test_text_direction(self) -> None:
        self.check("direction", [{"x": page(48, 192)}, {"x": np.concatenate([page(48, 192), -page(48, 192)])}])

    def check_voice(self, model: str, rate: int | None) -> None:
        """A second of a tone in noise, piece by piece: each takes the state that the one before gave."""
        path = published_models.path_of(model)
        peer = peer_of(path)
        hertz, size, before = (rate or 16000), 512 if rate != 8000 else 256, 64 if rate != 8000 else 32
        time = np.arange(hertz) / hertz
        sound = (0.3 * np.sin(2 * np.pi * 180 * time) * (time > 0.3) + RANDOM.normal(0, 0.02, hertz)).astype(np.float32)
        for level, session in self.at_levels(path):
            state = expected = np.zeros((2, 1, 128), np.float32)
            for start in range(before, 12 * size, size):
                inputs = {"input": sound[None, start - before:start + size], "state": state}
                if rate is not None:
                    inputs["sr"] = np.array(rate, np.int64)
                want, expected = peer.run(None, {**inputs, "state": expected})
                got = session.run(inputs)
                state = got["stateN"]
                with self.subTest(model=model, level=level, rate=rate, start=start):
                    np.testing.assert_allclose(got["output"], want, rtol=1e-4, atol=TOLERANCE)
                    np.testing.assert_allclose(state, expected, rtol=1e-3, atol=5 * TOLERANCE)

    def test_voice_activity_at_both_rates(self) -> None:
        for rate in (16000, 8000):
            self.check_voice("voice", rate)

    def test_voice_activity_at_one_rate(self) -> None:
        self.check_voice("voice_16k", 16000)

    def test_voice_activity_with_half_weights(self) -> None:
        self.check_voice("voice_half", None)


class TunedTest(unittest.TestCase):
    def test_a_lock_that_was_recorded_under_rules_of_tuning_holds_without_them(self) -> None:
        path, shapes = published_models.path_of("direction"), {"x": (1, 3, 48, 192)}
        rules = [{"op": op, "when": {"dtype": "f32"}, "use": "simd"} for op in ("add", "mul")]
        execution = xrt.ExecutionPolicy("cpu", engine="native")
        tuned = xrt.load(path, policy=xrt.KernelPolicy.from_json(json.dumps({"rules": rules})), execution=execution)
        x = np.random.default_rng(5).standard_normal(shapes["x"], np.float32)
        with tempfile.TemporaryDirectory() as folder:
            lock = str(Path(folder, "kernels.lock"))
            tuned.record_lock(shapes).save(lock)
            np.testing.assert_array_equal(xrt.load(path, execution=execution, lock=lock)(x), tuned(x))


class PublishedModelsOnOpenCl(PublishedModels):
    target = "opencl"


class PublishedModelsOnCuda(PublishedModels):
    target = "cuda"


class PublishedModelsByOnnxRuntime(PublishedModels):
    engine = "onnxruntime"


class PublishedModelsByOpenVino(PublishedModels):
    """It converts none of the voice models, and says so: `auto` goes on to another engine then."""

    engine = "openvino"

    def check_voice(self, model: str, rate: int | None) -> None:
        for level in LEVELS[self.engine]:
            execution = xrt.ExecutionPolicy("cpu", engine=self.engine, optimize_level=level)
            with self.subTest(model=model, level=level), self.assertRaisesRegex(
                    xrt.NotSupportedError, "openvino: it cannot convert the model: .*The input data tensor's rank has to be known"):
                xrt.load(published_models.path_of(model), execution=execution)


if __name__ == "__main__":
    unittest.main()
