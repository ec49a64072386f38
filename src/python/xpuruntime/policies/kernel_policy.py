"""The policy that says which kernel runs each op, and which one is in force."""

from __future__ import annotations

from .. import _core
from .._core import AutoSelectStrategy as AutoSelectStrategy
from .._core import KernelPolicy as KernelPolicy
from ..errors import ArgumentTypeError


def policy_from(policy: object, fields: dict[str, object], function: str) -> KernelPolicy:
    """A policy from an object, the path of a file or a dict; keywords are layered over it."""
    if policy is None and not fields:
        empty = " (an empty KernelPolicy() removes the one that was set)" if function == "set_kernel_policy" else ""
        raise ArgumentTypeError(f"[{function}] no policy was given; pass a KernelPolicy{empty}, the path of a file, "
                                "a dict, or keywords")
    made = KernelPolicy() if policy is None else _core.as_policy(policy)
    return made.merge(KernelPolicy(**fields)) if fields else made  # type: ignore[arg-type]


def set_kernel_policy(policy: object = None, /, **fields: object) -> None:
    """Puts a policy in force for all threads and tasks that are in no scope of their own.

    Takes a `KernelPolicy`, the path of a file, a dict, or ops and fields as keywords. It replaces the one that was set
    before; an empty `KernelPolicy()` removes it.
    """
    _core.set_policy(policy_from(policy, fields, "set_kernel_policy"))


def get_kernel_policy() -> KernelPolicy:
    """The policy in force here: that of the scopes around, else the one that was set for all."""
    return _core.policy_in_force()
