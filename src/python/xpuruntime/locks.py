"""Locks: decisions on record, to be made again exactly."""

from __future__ import annotations

from . import _core
from ._core import KernelLock
from ._problems import problems_and_ranges_from


def record_lock(problems: object, seed: int = 1) -> KernelLock:
    """Decides each problem under the policy in force and records the decisions, those of its casts too.

    A lock in force has no say: what it lacks can be recorded. `problems`: texts or `Problem` objects; entries of the log
    are recorded as they ran. Problems that ask for deterministic kernels also run once, on inputs that the seed gives,
    for the hash of their outputs. Texts with ranges give an entry for each part that has one kernel, without a hash.
    """
    if isinstance(problems, _core.DispatchLog):
        problems = [problems]
    if not isinstance(problems, (str, _core.Problem)) and hasattr(problems, "__iter__"):
        problems = list(problems)
        if problems and all(isinstance(entry, _core.DispatchLog) for entry in problems):
            return _core.record_log(problems, seed)
    asked, ranges = problems_and_ranges_from(problems, "record_lock")
    lock = _core.record_problems(asked, seed)
    _core.record_ranges(lock, ranges)
    return lock
