"""Ops in Python's own containers, found by any of their names."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import NoReturn

from . import _core
from .errors import ArgumentTypeError


class OpMapping(Mapping[str, object]):
    """A read-only mapping from ops, under the names that they were given by."""

    def __init__(self, values: dict[str, object]) -> None:
        self._values = values
        self._given = {_core.op_name(name): name for name in values}

    def __getitem__(self, op: str) -> object:
        return self._values[op if op in self._values else self._given.get(_core.op_name(op), op)]

    def _refuse(self, *_: object, **__: object) -> NoReturn:
        raise ArgumentTypeError("[KernelPolicy] this is a read-only copy of a part of the policy; use its set, force, "
                                "set_precision, remove and remove_precision, or assign a whole dict")

    __setitem__ = __delitem__ = __ior__ = update = setdefault = pop = popitem = clear = _refuse

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
