"""Scopes: a policy, autocast or a lock that is in force for a block, a function, or work on another thread."""

from __future__ import annotations

import os

from . import _core
from .errors import ArgumentTypeError
from .policies.kernel_policy import policy_from

TYPE_CHECKING = False  # type checkers take it for True; typing itself takes long to import
if TYPE_CHECKING:
    from collections.abc import Callable
    from types import TracebackType
    from typing import ParamSpec, TypeVar

    P = ParamSpec("P")
    R = TypeVar("R")


class Scope:
    """Something to be in force for a while: use it in a `with` statement, as a decorator, or with `run`.

    It may be entered many times, also on many threads at once. What is in force belongs to a thread or an asyncio task.
    """

    __slots__ = ("_layer",)

    def __init__(self, layer: _core.ScopeLayer) -> None:
        if not isinstance(layer, _core.ScopeLayer):
            raise ArgumentTypeError("[Scope] not made by hand; call current_scope, with_policy, autocast or use_lock")
        self._layer = layer

    def __enter__(self) -> Scope:
        self._layer.enter()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._layer.leave()

    def __call__(self, function: Callable[P, R]) -> Callable[P, R]:
        """The function with this in force whenever its code runs; of a generator, not while it waits for its user."""
        from ._scoped import scoped

        if not callable(function):
            raise ArgumentTypeError(f"[Scope] function is of type {type(function).__name__}; decorate a function")
        return scoped(self, function)

    def run(self, function: Callable[P, R], /, *args: P.args, **kwargs: P.kwargs) -> R:
        """Calls a function with this in force, on whichever thread this is."""
        return self(function)(*args, **kwargs)


def with_policy(policy: object = None, /, **fields: object) -> Scope:
    """Layers a policy over the one in force: `with with_policy(matmul="openblas"): ...`, or as a decorator.

    Takes what `set_kernel_policy` takes. Nested scopes layer; exceptions leave them as anything else does.
    """
    return Scope(_core.policy_layer(policy_from(policy, fields, "with_policy")))


def autocast(dtype: object = None, *, enabled: bool = True, registry: _core.AmpRegistry | None = None) -> Scope:
    """Ops run at the precision that the rules of the registry (default: the runtime's) give them.

    `dtype` is what "lower" means in those rules: bf16 or f16. `enabled=False` turns autocast off inside.
    """
    if not isinstance(enabled, bool):
        raise ArgumentTypeError(f"[autocast] enabled is of type {type(enabled).__name__}; pass True or False")
    if registry is not None and not isinstance(registry, _core.AmpRegistry):
        raise ArgumentTypeError(f"[autocast] registry is of type {type(registry).__name__}; pass an AmpRegistry")
    return Scope(_core.autocast_layer(dtype, enabled, registry))


def _lock_and_mode(lock: object, mode: object, function: str) -> tuple[_core.KernelLock | None, str]:
    loaded = _core.KernelLock.load(lock) if isinstance(lock, (str, os.PathLike)) else lock
    if loaded is not None and not isinstance(loaded, _core.KernelLock):
        raise ArgumentTypeError(
            f"[{function}] lock is of type {type(lock).__name__}; pass a KernelLock or the path of one"
        )
    name = getattr(mode, "name", mode)
    if not isinstance(name, str):
        raise ArgumentTypeError(f"[{function}] mode is of type {type(mode).__name__}; pass 'strict' or 'revalidate'")
    return loaded, name.lower()


def use_lock(lock: object, mode: str = "strict") -> Scope:
    """Replays a lock: what it does not hold is an error inside. Takes a `KernelLock`, a path, or None for no lock.

    `mode="revalidate"` checks entries that were made with other software on the same device, and uses those that hold.
    The scope is of its thread or task. While it is entered, calls outside of every lock are errors, in workers too:
    enter `current_scope()` there, or use `set_lock`.
    """
    return Scope(_core.lock_layer(*_lock_and_mode(lock, mode, "use_lock")))


def set_lock(lock: object, mode: str = "strict") -> None:
    """Replays a lock in the whole process, in every thread and task; None: no longer. Arguments as for `use_lock`.

    A `use_lock` goes before it in its block, `use_lock(None)` too. `XPURUNTIME_LOCK=file` does the same from outside.
    """
    _core.set_process_lock(*_lock_and_mode(lock, mode, "set_lock"))


def current_scope() -> Scope:
    """All that is in force here, to be entered elsewhere: `with scope:` on another thread, or `scope.run(function)`."""
    return Scope(_core.captured_layer())
