"""The engine `openvino` in a process of its own also while it runs; not registered by itself:
`xpuruntime.register_engine("guarded", OpenVino)`."""

from __future__ import annotations

import importlib.metadata
import importlib.util

from .native import Native


class OpenVino(Native):
    engine = "openvino"

    def version(self) -> str:
        return importlib.metadata.version("openvino")

    def why_absent(self) -> str:
        return "" if importlib.util.find_spec("openvino") else "the Python package openvino is not installed; pip install 'xpuruntime[openvino]'"

    def devices(self) -> list[str]:
        return ["cpu"]

    def precisions(self) -> list[str]:
        return ["fp32", "fp16", "bf16"]
