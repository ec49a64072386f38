"""A page to look at: what was chosen, the alternatives with their times and memory, why, and what changed."""

from __future__ import annotations

from . import _core
from ._problems import problems_and_ranges_from
from .errors import ArgumentTypeError

TYPE_CHECKING = False  # type checkers take it for True; typing itself takes long to import
if TYPE_CHECKING:
    import os
    from collections.abc import Mapping, Sequence
    from typing import Any

    from ._core import KernelLock, MeasurementStore
    from .sessions import Session

    Path = str | os.PathLike[str]
    Models = Sequence[tuple[Session, Mapping[str, Any]]]


def report(out: Path = "report.html", *, problems: object = None, models: Models = (),
           lock: KernelLock | Path | None = None, against: KernelLock | Path | None = None,
           store: MeasurementStore | Path | None = None, title: str | None = None) -> str:
    """Writes one HTML page that needs nothing else, and returns its path.

    It shows the decisions of `lock`, then `problems` (texts, with ranges or without, `Problem` objects, decisions, entries of the log) as they
    would be decided here and now; with neither, what `store` holds, or the problems of `against`, or those of a model's
    blocks. Times come from `store`, else from the store in use or the user's own. `against`: what changed since then.
    `models`: pairs of a session and inputs by name. Those are run; the page shows the engine, each node and its time.
    """
    import os
    _core.save_report(out, _json(problems, models, lock, against, store, title))
    return os.fspath(out)


def report_data(*, problems: object = None, models: Models = (), lock: KernelLock | Path | None = None,
                against: KernelLock | Path | None = None, store: MeasurementStore | Path | None = None,
                title: str | None = None) -> dict[str, object]:
    """What the page of `report` shows, as data; docs/interfaces.md lists the keys."""
    import json
    data: dict[str, object] = json.loads(_json(problems, models, lock, against, store, title))
    return data


def _pairs(models: Models) -> list[tuple[Session, Mapping[str, Any]]]:
    from .sessions import Session

    pairs = list(models) if isinstance(models, (list, tuple)) else [models]
    for pair in pairs:
        if not isinstance(pair, tuple) or len(pair) != 2 or not isinstance(pair[0], Session):
            raise ArgumentTypeError("[report] models has no pairs of a session and its inputs; pass such as "
                                    "[(session, {\"x\": array})]")
    return pairs


def _json(problems: object, models: Models, lock: object, against: object, store: object, title: object) -> str:
    asked: list[_core.Problem] = []
    ranges: list[_core.ProblemRange] = []
    if problems is not None:
        asked, ranges = problems_and_ranges_from(problems, "report")
    given = [session._asked("report", inputs) for session, inputs in _pairs(models)]
    path = store.path if isinstance(store, _core.MeasurementStore) else store
    return _core.report_json(asked, ranges, given, lock, against, path, title)
