"""A page to look at: what was chosen, the alternatives with their times and memory, why, and what changed."""

from __future__ import annotations

from . import _core
from ._problems import problems_and_ranges_from

TYPE_CHECKING = False  # type checkers take it for True; typing itself takes long to import
if TYPE_CHECKING:
    import os

    from ._core import KernelLock, MeasurementStore

    Path = str | os.PathLike[str]


def report(out: Path = "report.html", *, problems: object = None, lock: KernelLock | Path | None = None,
           against: KernelLock | Path | None = None, store: MeasurementStore | Path | None = None,
           title: str | None = None) -> str:
    """Writes one HTML page that needs nothing else, and returns its path.

    It shows the decisions of `lock`, then `problems` (texts, with ranges or without, `Problem` objects, decisions, entries of the log) as they
    would be decided here and now; with neither, what `store` holds, or the problems of `against`, or those of a model's
    blocks. Times come from `store`, else from the store in use or the user's own. `against`: what changed since then.
    """
    import os
    _core.save_report(out, _json(problems, lock, against, store, title))
    return os.fspath(out)


def report_data(*, problems: object = None, lock: KernelLock | Path | None = None,
                against: KernelLock | Path | None = None, store: MeasurementStore | Path | None = None,
                title: str | None = None) -> dict[str, object]:
    """What the page of `report` shows, as data; docs/interfaces.md lists the keys."""
    import json
    data: dict[str, object] = json.loads(_json(problems, lock, against, store, title))
    return data


def _json(problems: object, lock: object, against: object, store: object, title: object) -> str:
    asked: list[_core.Problem] = []
    ranges: list[_core.ProblemRange] = []
    if problems is not None:
        asked, ranges = problems_and_ranges_from(problems, "report")
    path = store.path if isinstance(store, _core.MeasurementStore) else store
    return _core.report_json(asked, ranges, lock, against, path, title)
