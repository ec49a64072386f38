"""The backward direction of ops."""

from typing import Any

from . import _core


def backward(op: str, *arguments: Any, grad_output: Any, **keywords: Any) -> tuple[Any, ...]:
    """The gradients of the inputs that have one, in their order.

    Takes what the op's function takes, and the gradient of its result.
    """
    return _core.backward(op, arguments, grad_output, keywords)
