"""The backward direction of ops."""

from __future__ import annotations

from . import _core

TYPE_CHECKING = False  # type checkers take it for True; typing itself takes long to import
if TYPE_CHECKING:
    from typing import Any


def backward(op: str, *arguments: Any, grad_output: Any, **keywords: Any) -> tuple[Any, ...]:
    """The gradients of the inputs that have one, in their order.

    Takes what the op's function takes, and the gradient of its result.
    """
    return _core.backward(op, arguments, grad_output, keywords)
