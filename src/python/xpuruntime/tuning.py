"""Measuring: every kernel that can run a problem is timed, and what was found is kept in a store."""

from __future__ import annotations

import sys

from . import _core
from ._problems import problems_and_ranges_from

TYPE_CHECKING = False  # type checkers take it for True; typing itself takes long to import
if TYPE_CHECKING:
    import os
    from typing import Any

    from ._core import MeasurementStore, TuneProgress, TuneResult


def tune(problems: object, *, budget_s: float = 0.5, total_budget_s: float | None = None,
         store: MeasurementStore | str | os.PathLike[str] | None = None, progress: object = False,
         min_gain: float = 0.02, probe_timeout_s: float = 10.0, isolate: bool = True,
         seed: int = 1, range_points: int | None = None) -> list[Any]:
    """Times every kernel that can run each problem and keeps what was found in the store.

    `problems`: texts, `Problem` objects, or entries of the log; each gives a `TuneResult`. Then texts with ranges, such
    as "matmul(f32[m,768], f32[768,768]) where m=1..512", or `ProblemRange` objects: each gives a `RangeResult`, and at
    most `range_points` of its problems are measured (a tenth, from 32 to 256). All of them share `total_budget_s`; what some
    leave over goes to those that it cut short. `store`: a store or its path; without one that in use,
    or the user's own. `progress`: True for a line on stderr, a function of a `TuneProgress` (False from it stops), or a
    bar in the manner of tqdm. Ctrl-C stops, and what was finished is kept. What was found counts for policies that are
    set and scopes that are entered afterwards.
    """
    asked, ranges = problems_and_ranges_from(problems, "tune")

    options = _core.TuneOptions("tune", budget_s, total_budget_s, min_gain, probe_timeout_s, isolate, seed, range_points)
    if store is None:
        _core.use_writable_store()
    else:
        _core.use_store(store)
    show = _shown(progress, len(asked) + sum(len(each) for each in ranges))

    def finished(result: TuneResult) -> None:
        if not result.cancelled:
            show.finished(result)

    try:
        results, tuned_ranges = _core.tune(asked, ranges, options, show.moved, finished)
    finally:
        show.close()
        _core.refresh_measurements()
    return [*(result for result in results if not result.cancelled), *tuned_ranges]


def enable_tuning(*, budget_s: float = 0.5, min_gain: float = 0.02, probe_timeout_s: float = 10.0,
                  isolate: bool = True, seed: int = 1) -> None:
    """Measures problems that the strategy best_performance meets for the first time, before they run."""
    _core.enable_tuning(_core.TuneOptions("enable_tuning", budget_s, None, min_gain, probe_timeout_s, isolate, seed))


class _Show:
    """Shows nothing, or hands what happens to the caller's function."""

    def __init__(self, function: object = None) -> None:
        self.moved = function

    def finished(self, result: TuneResult) -> None:
        pass

    def close(self) -> None:
        pass


class _Line(_Show):
    """One line on stderr, drawn anew a few times a second; a line a problem where stderr is not a terminal."""

    def __init__(self, total: int) -> None:
        super().__init__(self._draw if sys.stderr is not None and sys.stderr.isatty() else None)
        self._total = total
        self._done = 0
        self._shown_at_s = -1.0

    def _draw(self, now: TuneProgress) -> None:
        if 0 <= now.spent_s - self._shown_at_s < 0.1:
            return
        self._shown_at_s = now.spent_s
        sys.stderr.write(f"\r\033[K{self._done + 1}/{self._total}, {now.candidates_left} kernels left in the race, "
                         f"at most {now.remaining_s:.0f} s more: {now.problem}"[:120])
        sys.stderr.flush()

    def finished(self, result: TuneResult) -> None:
        self._done += 1
        if self.moved is None and sys.stderr is not None:
            print(f"{self._done}/{self._total} {result.problem}: {result.chosen or result.because}", file=sys.stderr)

    def close(self) -> None:
        if self.moved is not None:
            sys.stderr.write("\r\033[K")


class _Bar(_Show):
    """A bar in the manner of tqdm: one step a problem. A class is made into a bar, which is closed at the end."""

    def __init__(self, bar: object, total: int) -> None:
        super().__init__()
        self._own = isinstance(bar, type)
        self._bar: Any = bar(total=total, desc="tune", unit="problem") if isinstance(bar, type) else bar

    def finished(self, result: TuneResult) -> None:
        self._bar.update(1)

    def close(self) -> None:
        if self._own:
            self._bar.close()


def _shown(progress: object, total: int) -> _Show:
    if progress is None or progress is False:
        return _Show()
    if progress is True:
        return _Line(total)
    if hasattr(progress, "update"):
        return _Bar(progress, total)
    if callable(progress):
        return _Show(progress)
    from .errors import ArgumentTypeError
    raise ArgumentTypeError(f"[tune] progress is of type {type(progress).__name__}; pass True, False, a function, or a bar "
                            "with an update method")
