"""Questions: which kernel would run, and why."""

from __future__ import annotations

from . import _core
from .errors import ArgumentTypeError


def explain(what: str | _core.Problem, /, *tensors: object, **attributes: object) -> _core.Decision:
    """Which kernel would run a problem here, why, and why not the others. Nothing runs.

    Takes a problem (`"matmul(f32[64,64], f32[64,64])"`), or an op with the tensors and attributes of a call.
    """
    if tensors:
        return _core.explain_call(what, tensors, attributes)
    if attributes:
        raise ArgumentTypeError("[explain] attributes without tensors; pass tensors, or write all into the problem")
    return _core.explain_problem(what)
