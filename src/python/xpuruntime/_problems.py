"""Lists of problems, in every form that people have them in."""

from __future__ import annotations

from . import _core
from .errors import ArgumentTypeError, InvalidArgumentError


def problems_from(given: object, function: str) -> list[_core.Problem]:
    """One problem or several: texts, `Problem` objects, decisions or entries of the log; each once, in their order."""
    if isinstance(given, (str, _core.Problem, _core.Decision, _core.DispatchLog)):
        given = [given]
    if not hasattr(given, "__iter__"):
        raise ArgumentTypeError(f"[{function}] problems is a {type(given).__name__}; pass texts such as "
                                "\"matmul(f32[64,64], f32[64,64])\" in a list")
    found = dict.fromkeys(_problem(item) for item in given)
    if not found:
        raise InvalidArgumentError(f"[{function}] there is no problem in the list; pass at least one, or log some "
                                   "calls first")
    return list(found)


def _problem(item: object) -> _core.Problem:
    if isinstance(item, _core.DispatchLog):
        item = item.decision
    if isinstance(item, _core.Decision):
        item = item.problem
    return _core.Problem(item)  # type: ignore[arg-type]  # it says what to pass
