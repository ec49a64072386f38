"""Ops, kernels and rules of the user's own, as plain Python functions."""

from __future__ import annotations

from . import _core, ops
from .errors import ArgumentTypeError

TYPE_CHECKING = False  # typing itself takes longer to import than this module
if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence
    from typing import Any, TypeVar, overload

    Function = TypeVar("Function", bound=Callable[..., object])

# Which function each rule was made of, by device and rule, so that it can be taken away by it. The rule holds the
# function; its number is enough here.
_conditions: dict[tuple[str, int], int] = {}


def _register(op: str, condition: Callable[..., object], kernel: str, priority: int, name: str, device: object) -> int:
    where = str(_core.Device(device))
    rule = _core.KernelSelector(where).register_rule(op, condition, kernel, priority, name)
    _conditions[where, rule] = id(condition)
    return rule


if TYPE_CHECKING:
    @overload
    def register_rule(op: str, condition: Callable[..., object], kernel: str, priority: int = 0, name: str = "",
                      device: object = "cpu") -> int: ...

    @overload
    def register_rule(op: str, *, kernel: str, priority: int = 0, name: str = "",
                      device: object = "cpu") -> Callable[[Function], Function]: ...


def register_rule(op: str, condition: Callable[..., object] | None = None, kernel: str | None = None,
                  priority: int = 0, name: str = "", device: object = "cpu") -> int | Callable[[Function], Function]:
    """For this op, where `condition(problem, profile)` holds, use that kernel. Returns the rule's id.

    Rules of higher priority come first, then in the order of registration. A condition that raises is a rejection
    with its text. Without a condition this is a decorator: `@register_rule("matmul", kernel="openblas")`.
    """
    if kernel is None:
        raise ArgumentTypeError("[register_rule] kernel is missing; pass its name, such as kernel=\"openblas\"")
    if condition is not None:
        return _register(op, condition, kernel, priority, name, device)

    def decorate(function: Function) -> Function:
        _register(op, function, kernel, priority, name or getattr(function, "__name__", ""), device)
        return function

    return decorate


def unregister_rule(rule: int | Callable[..., object], device: object = "cpu") -> bool:
    """Removes a rule by its id, or every rule of a condition; False if there is none."""
    where = str(_core.Device(device))
    if not callable(rule):
        _conditions.pop((where, rule), None)
        return _core.KernelSelector(where).unregister_rule(rule)
    own = [key for key, function in _conditions.items() if key[0] == where and function == id(rule)]
    for key in own:
        del _conditions[key]
    return any([_core.KernelSelector(where).unregister_rule(key[1]) for key in own])


if TYPE_CHECKING:
    @overload
    def register_kernel(name: str, op: str, run: Callable[..., object],
                        supports: Callable[..., object] | None = None, device: object = "cpu", *,
                        workspace_bytes: int = 0, deterministic: bool = True, directions: str | Sequence[str] = "forward",
                        version: str | None = None, takes: str | Sequence[str] = (),
                        in_place: bool = False) -> None: ...

    @overload
    def register_kernel(name: str, op: str, *, supports: Callable[..., object] | None = None, device: object = "cpu",
                        workspace_bytes: int = 0, deterministic: bool = True, directions: str | Sequence[str] = "forward",
                        version: str | None = None, takes: str | Sequence[str] = (),
                        in_place: bool = False) -> Callable[[Function], Function]: ...


def register_kernel(name: str, op: str, run: Callable[..., object] | None = None,
                    supports: Callable[..., object] | None = None, device: object = "cpu", *,
                    workspace_bytes: int = 0, deterministic: bool = True, directions: str | Sequence[str] = "forward",
                    version: str | None = None, takes: str | Sequence[str] = (),
                    in_place: bool = False) -> Callable[[Function], Function] | None:
    """Adds a kernel that is a Python function: `run(problem, inputs, outputs)` writes the outputs.

    Inputs and outputs are `Tensor` objects, good until `run` returns; with `workspace_bytes` it gets one more, for
    scratch. `supports(problem, profile)` returns True, or False or a text that says why not. What `run` raises sets
    the kernel aside for that problem, and the next one runs, unless an output overwrites an input. Without `run` this
    is a decorator.

    In a call that writes over an input, such as `ops.add(x, y, out=x)`, `run` gets a copy of that input: it may write
    outputs before it has read all inputs. With `in_place=True` nothing is copied: `run` then gets input and output on
    the same memory, and must read each element before it writes it.

    It is asked about forward problems alone, unless `directions` names more: `["forward", "backward"]`, or
    `"backward"`. `version` says which code it is, and must change with it, and with what it calls: times of one
    version are not used for another, and a lock replays only the version it was recorded with. Without a version a
    lock does not replay it, and its times count as long as it is registered. `takes` names what it computes of the
    inputs and attributes that kernels opt in to, such as matmul's `alpha`; calls with others go to other kernels.
    """
    def register(function: Callable[..., object]) -> None:
        _core.register_kernel(name, op, function, supports, device, workspace_bytes, deterministic, directions,
                              version, takes, in_place)

    if run is not None:
        register(run)
        return None

    def decorate(function: Function) -> Function:
        register(function)
        return function

    return decorate


def register_op(name: str, infer: Callable[..., object] | None = None, *, inputs: str | Sequence[str] = "input",
                optional_inputs: str | Sequence[str] = (), attributes: Mapping[str, object] | None = None,
                category: str = "elementwise", aliases: str | Sequence[str] = ()) -> Callable[..., Any]:
    """Adds an op of your own and returns the function that calls it, which is then in `ops` too.

    `inputs` and `optional_inputs` name its arrays. `attributes` maps further parameters to their defaults, which say of
    what kind they are: a bool, an int, a float, a list of equal ints (empty: of any length), a tuple of names to choose
    from. `infer(inputs, **attributes)` says what comes out: one of the inputs (its dtype and shape), a tuple
    `(dtype, shape)`, or a list of these; without it, what the first input is. It runs where kernels of it are
    registered: see `register_kernel`. `category` is what policies and autocast know it as. An op stays for as long as
    the process.
    """
    defaults = {} if attributes is None else dict(attributes) if hasattr(attributes, "keys") else attributes
    function = _core.register_op(name, infer, inputs, optional_inputs, defaults, category, aliases)
    setattr(ops, name, function)
    return function  # type: ignore[return-value]


def unregister_kernel(name: str, op: str, device: object = "cpu") -> bool:
    """Removes a kernel that `register_kernel` added; False if there is none of that name."""
    return _core.unregister_kernel(name, op, device)
