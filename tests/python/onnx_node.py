"""An ONNX node as the adapter's functions see it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from packages import need

need("numpy", "onnx")


class OutOfScope(Exception):
    """No op of ours does what this case asks for; the text says what."""


@dataclass
class Node:
    """Inputs in order (None where one was left out), names of outputs, attributes."""

    inputs: list[Any]
    outputs: list[str]
    attributes: dict[str, Any]

    def get(self, name: str, default: Any = None) -> Any:
        """An attribute."""
        return self.attributes.get(name, default)

    def input(self, index: int, default: Any = None) -> Any:
        """An optional input."""
        given = self.inputs[index] if index < len(self.inputs) else None
        return default if given is None else given
