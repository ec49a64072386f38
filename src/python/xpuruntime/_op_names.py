"""Ops in Python's own containers, found by any of their names."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from . import _core


class OpMapping(Mapping[str, object]):
    """A read-only mapping from ops, under the names that they were given by."""

    def __init__(self, values: dict[str, object]) -> None:
        self._values = values
        self._given = {_core.op_name(name): name for name in values}

    def __getitem__(self, op: str) -> object:
        return self._values[op if op in self._values else self._given.get(_core.op_name(op), op)]

    def __iter__(self) -> Iterator[str]:
        return iter(self._values)

    def __len__(self) -> int:
        return len(self._values)

    def __repr__(self) -> str:
        return repr(self._values)


class OpList(list[str]):
    """A list of ops that knows aliases."""

    def __contains__(self, op: object) -> bool:
        return super().__contains__(op) or (name := _core.op_name(op)) is not None and super().__contains__(name)
