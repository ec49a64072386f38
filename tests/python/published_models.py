"""Models that packages of the registry carry. Only their files are used: the packages need not be importable."""

from __future__ import annotations

import importlib.util
import unittest
from pathlib import Path

PACKAGES = {
    "rapidocr_onnxruntime": {
        "detection": "models/ch_PP-OCRv4_det_infer.onnx",
        "recognition": "models/ch_PP-OCRv4_rec_infer.onnx",
        "direction": "models/ch_ppocr_mobile_v2.0_cls_infer.onnx",
    },
    "silero_vad": {
        "voice": "data/silero_vad.onnx",
        "voice_16k": "data/silero_vad_16k_op15.onnx",
        "voice_half": "data/silero_vad_half.onnx",
    },
}


def path_of(model: str) -> Path:
    """The model's file; a skip with its reason where the package is missing."""
    package, file = next((package, files[model]) for package, files in PACKAGES.items() if model in files)
    found = importlib.util.find_spec(package)
    folders = list(found.submodule_search_locations or []) if found else []
    for folder in folders:
        if (Path(folder) / file).is_file():
            return Path(folder) / file
    raise unittest.SkipTest(f"{package} is not installed: pip install --no-deps -r tools/models.txt")
