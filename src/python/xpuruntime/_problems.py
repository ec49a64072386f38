"""Lists of problems, in every form that people have them in."""

from __future__ import annotations

from . import _core
from .errors import ArgumentTypeError, InvalidArgumentError


def problems_from(given: object, function: str) -> list[_core.Problem]:
    """One problem or several: texts, `Problem` objects, decisions or entries of the log; each once, in their order."""
    if isinstance(given, (str, _core.Problem, _core.Decision, _core.DispatchLog)):
        given = [given]
    if not hasattr(given, "__iter__"):
        raise ArgumentTypeError(f"[{function}] problems is of type {type(given).__name__}; pass texts such as "
                                "\"matmul(f32[64,64], f32[64,64])\" in a list")
    found = dict.fromkeys(_problem(item) for item in given)
    if not found:
        raise InvalidArgumentError(f"[{function}] there is no problem in the list; pass at least one, or log some "
                                   "calls first")
    return list(found)


def problems_and_ranges_from(given: object, function: str) -> tuple[list[_core.Problem], list[_core.ProblemRange]]:
    """As `problems_from`, with texts that have ranges, and `ProblemRange` objects, apart from the problems."""
    def is_range(item: object) -> bool:
        return isinstance(item, _core.ProblemRange) or (isinstance(item, str) and _core.has_ranges(item))

    if is_range(given):
        given = [given]
    if isinstance(given, str) or not hasattr(given, "__iter__"):
        return problems_from(given, function), []
    items = list(given)
    ranges = list(dict.fromkeys(_core.ProblemRange(item) for item in items if is_range(item)))
    rest = [item for item in items if not is_range(item)]
    return (problems_from(rest, function) if rest or not ranges else []), ranges


def _problem(item: object) -> _core.Problem:
    if isinstance(item, _core.DispatchLog):
        item = item.decision
    if isinstance(item, _core.Decision):
        item = item.problem
    return _core.Problem(item)  # type: ignore[arg-type]  # it says what to pass
