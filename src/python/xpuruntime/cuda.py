"""What only NVIDIA GPUs have."""

from __future__ import annotations

from . import _core
from ._core import Graph

TYPE_CHECKING = False  # type checkers take it for True; typing itself takes long to import
if TYPE_CHECKING:
    from typing import Any


def graph(device: Any = "cuda:0") -> Graph:
    """Records the ops that this thread calls on the device inside of `with cuda.graph() as g:`; `g.replay()` runs them.

    Every call must have run once before: nothing is chosen or prepared while a graph is recorded.
    """
    return Graph(device)


def synchronize(device: Any = "cuda:0") -> None:
    """Waits for all work on the device and raises what went wrong in it, such as an index outside the table."""
    _core.synchronize(device)
