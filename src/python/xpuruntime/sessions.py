"""Whole models: an ONNX file that runs, on our own kernels or another engine, chosen on record."""

from __future__ import annotations

import os
import sys

from . import _core
from .errors import ArgumentTypeError, InvalidArgumentError

TYPE_CHECKING = False  # type checkers take it for True; typing itself takes long to import
if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence
    from typing import Any

    from ._core import EngineTimes, ExecutionPolicy, KernelLock, ModelValue, QuantizationReport
    from ._core import SessionProfile, SessionRecord, SessionStep
    from .engines import Engine
    from .policies import KernelPolicy

    Path = str | os.PathLike[str]


_PARENT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))


class Session:
    """A model that runs; `load` makes one. Runs may go on in many threads at once."""

    def __init__(self, loaded: _core.LoadedModel) -> None:
        self._loaded = loaded

    @property
    def inputs(self) -> list[ModelValue]:
        """What a run takes, in the order of the model."""
        return self._loaded.inputs

    @property
    def outputs(self) -> list[ModelValue]:
        """What a run gives, in the order of the model."""
        return self._loaded.outputs

    @property
    def quantization(self) -> QuantizationReport | None:
        """What was quantized when the session was loaded, and the error; None where nothing was."""
        return self._loaded.quantization

    @property
    def path(self) -> str:
        return self._loaded.path

    @property
    def record(self) -> SessionRecord:
        """Which engine runs the model, where, and why; what was asked before and why it does not."""
        return self._loaded.record

    @property
    def engine(self) -> str:
        """The name of the engine that runs the model."""
        return self.record.engine

    @property
    def because(self) -> str:
        """Why this engine."""
        return self.record.because

    def __call__(self, *arrays: Any) -> Any:
        """The outputs for inputs in the order of the model: one array, or a tuple of them, of the inputs' package."""
        results = self._run(arrays)
        return results[0] if len(results) == 1 else tuple(results)

    def run(self, inputs: Mapping[str, Any], out: Mapping[str, Any] | None = None) -> dict[str, Any]:
        """The outputs by name, for inputs by name. Those that `out` has arrays for are written into these, which are then
        the results; what does not fit is one error, and nothing is written."""
        arrays = self._in_order(inputs, "run")
        given = dict(out) if hasattr(out, "keys") else {}
        if out is not None and not hasattr(out, "keys"):
            raise ArgumentTypeError(f"[Session.run] out is of type {type(out).__name__}; pass a dict of arrays by name")
        names = [value.name for value in self.outputs]
        if unknown := [name for name in given if name not in names]:
            raise InvalidArgumentError(f"[Session.run] the model has no output {', '.join(map(repr, unknown))}; it has "
                                       f"{', '.join(map(repr, names))}")
        results = self._run(arrays, [given.get(name) for name in names] if given else [])
        return {**dict(zip(names, results)), **given}

    def _in_order(self, inputs: Mapping[str, Any], function: str) -> list[Any]:
        if not hasattr(inputs, "keys"):
            raise ArgumentTypeError(f"[Session.{function}] inputs is of type {type(inputs).__name__}; pass a dict such as "
                                    "{\"" + (self.inputs[0].name if self.inputs else "x") + "\": array}, or call the "
                                    "session with the arrays in order")
        names = [value.name for value in self.inputs]
        if set(inputs) != set(names):
            takes = ", ".join(f"{value.name} {_spec_text(value)}" for value in self.inputs)
            more = "; inputs that have an initialiser are constants" if set(inputs) > set(names) else ""
            raise InvalidArgumentError(f"[Session.{function}] given are {', '.join(map(str, inputs)) or 'no inputs'}; pass "
                                       f"exactly {takes or 'none'}{more}")
        return [inputs[name] for name in names]

    def explain(self, shapes: Mapping[str, Any] | None = None) -> list[SessionStep]:
        """What each node is for inputs of these shapes: by which kernel it runs and why. Shapes that the model fixes may
        be left out. Where the values of inputs determine shapes or loops, pass arrays instead of shapes."""
        if self._are_arrays(shapes):
            return self._loaded.explain_inputs(self._in_order(shapes, "explain"))
        return self._loaded.explain(self._shapes(shapes))

    def record_lock(self, shapes: Mapping[str, Any] | None = None, seed: int = 1) -> KernelLock:
        """A lock of this session: which engine runs the model, and if that is `native` the kernels of all calls for inputs of
        these shapes; shapes or arrays, as `explain`. `load` with it gives the same or raises an error."""
        if isinstance(seed, bool) or not isinstance(seed, int) or not 0 <= seed < 1 << 64:
            raise InvalidArgumentError(f"[Session.record_lock] seed is {seed!r}; pass an integer from 0 on")
        if self._are_arrays(shapes):
            return self._loaded.record_inputs(self._in_order(shapes, "record_lock"), seed)
        return self._loaded.record_shapes(self._shapes(shapes) if self.engine == "native" else [], seed)

    def profile(self, inputs: Mapping[str, Any], runs: int = 20) -> SessionProfile:
        """Runs so many times with these inputs and measures each call; print it for a table."""
        return self._loaded.profile(self._in_order(inputs, "profile"), runs)

    def memory_bytes(self, shapes: Mapping[str, Any] | None = None) -> int:
        """How much memory one run needs between inputs and outputs, without kernels' workspace; of shapes or arrays, as
        `explain`."""
        if self._are_arrays(shapes):
            return self._loaded.memory_of_inputs(self._in_order(shapes, "memory_bytes"))
        return self._loaded.memory_bytes(self._shapes(shapes))

    def _asked(self, function: str, inputs: Mapping[str, Any]) -> tuple[_core.LoadedModel, list[Any]]:
        """For functions of other modules: the model, and arrays in its order."""
        return self._loaded, self._in_order(inputs, function)

    @staticmethod
    def _are_arrays(given: Mapping[str, Any] | None) -> bool:
        return bool(given) and all(hasattr(value, "shape") for value in given.values())

    def __repr__(self) -> str:
        return f"Session({self.path!r}, inputs={self.inputs}, outputs={self.outputs})"

    def _run(self, arrays: Sequence[Any], outputs: Sequence[Any] = ()) -> list[Any]:
        results = self._loaded.run(list(arrays), list(outputs))
        return [_like(result, arrays[0]) for result in results] if arrays else results

    def _shapes(self, shapes: Mapping[str, Sequence[int]] | None) -> list[Sequence[int]]:
        given = dict(shapes or {})
        names = [value.name for value in self.inputs]
        if unknown := [name for name in given if name not in names]:
            raise InvalidArgumentError(f"[Session] the model has no input {', '.join(map(repr, unknown))}; it has "
                                       f"{', '.join(map(repr, names)) or 'none'}")
        found: list[Sequence[int]] = []
        for value in self.inputs:
            shape = given.get(value.name, value.shape)
            if shape is None or not all(isinstance(extent, int) for extent in shape):
                raise InvalidArgumentError(f"[Session] the shape of input '{value.name}' is {value.shape} in the model; "
                                           "pass shapes={\"" + value.name + "\": (...)} with numbers")
            found.append(shape)
        return found


def load(path: Path, *, policy: KernelPolicy | None = None, execution: ExecutionPolicy | None = None,
         lock: KernelLock | Path | None = None, calibration: Iterable[Any] = ()) -> Session:
    """Reads an ONNX model and makes it ready to run on the CPU, or where `execution` says.

    `policy` is layered over the policy in force; `lock` replays recorded decisions or raises an error. A model that no
    engine takes is one error with the reason of each. `calibration` is for precision int8 and a model of floats: typical
    inputs, each a dict by name, one array, or a tuple in order.
    """
    # An engine's process is to find what this one does.
    _core.set_engine_python(sys.executable or "python3", os.pathsep.join(path for path in (_PARENT, *sys.path) if path))
    samples = list(calibration)
    like = _native(path) if samples else None
    arrays = [_arrays_of(Session(like), sample, "load") for sample in samples] if like else []
    return Session(_core.load_session(path, policy, execution, lock, like, arrays))


def quantize_model(path: Path, out: Path, *, calibration: Iterable[Any], percentile: float = 100.0,
                   keep: Iterable[str] = ()) -> QuantizationReport:
    """Writes a copy of an ONNX model in which Conv, Gemm and MatMul with constant weights multiply 8-bit integers.

    `calibration`: typical inputs, each a dict by name, one array, or a tuple in order; they give the ranges, and the
    report has the error on them. `percentile`: how much of each tensor's values the codes reach, the rest is cut off.
    `keep`: nodes that stay in floats, by name.
    """
    loaded = _native(path)
    arrays = [_arrays_of(Session(loaded), sample, "quantize_model") for sample in calibration]
    return _core.quantize_session(loaded, arrays, out, percentile, list(keep))


def _arrays_of(session: Session, sample: Any, function: str) -> list[Any]:
    if hasattr(sample, "keys"):
        return session._in_order(sample, function)
    return list(sample) if isinstance(sample, (tuple, list)) else [sample]


def _native(path: Path) -> _core.LoadedModel:
    return _core.load_session(path, None, _core.ExecutionPolicy(target="cpu", engine="native"), None, None, [])


def tune_engines(path: Path, inputs: Mapping[str, Any], *, policy: KernelPolicy | None = None,
                 execution: ExecutionPolicy | None = None, seconds: float = 2.0) -> EngineTimes:
    """Runs a model with these inputs by every engine that takes it, in turns, for about so long, and puts the fastest into the
    store: sessions with engine "auto" take it from then on, for these shapes and those that the model leaves open."""
    if isinstance(seconds, bool) or not isinstance(seconds, (int, float)):
        raise ArgumentTypeError(f"[tune_engines] seconds is of type {type(seconds).__name__}; pass a number")
    if not 0 < seconds <= 86400:
        raise InvalidArgumentError(f"[tune_engines] seconds is {seconds}; give a number above 0, up to 86400")
    first = load(path, policy=policy, execution=execution)
    return _core.measure_engines(path, first._in_order(inputs, "tune_engines"), policy, execution, float(seconds))


def register_engine(name: str, engine: type[Engine] | str) -> None:
    """Adds an engine under a name, for `ExecutionPolicy(engine=name)` and "auto". It is a class of a module, or its place
    as "module:Class". Each model that it compiles has a process of its own, which imports the class; a class with
    `in_process` is only tried there. One of the same name is replaced."""
    in_process = bool(getattr(engine, "in_process", False))
    if isinstance(engine, type):
        if engine.__module__ == "__main__":
            raise InvalidArgumentError(f"[register_engine] {engine.__qualname__} is defined in the program itself, which "
                                       "another process cannot import; move it to a module")
        engine = f"{engine.__module__}:{engine.__qualname__}"
    if not isinstance(engine, str):
        raise ArgumentTypeError(f"[register_engine] engine is of type {type(engine).__name__}; pass a class, or "
                                "\"module:Class\"")
    module, _, qualified = engine.partition(":")
    if not module or not qualified:
        raise InvalidArgumentError(f"[register_engine] engine is {engine!r}; pass a class, or \"module:Class\"")
    _core.register_engine(name, engine, in_process)


def unregister_engine(name: str) -> bool:
    """Removes an engine; sessions that it runs keep it. False if there was none."""
    return _core.unregister_engine(name)


def _spec_text(value: ModelValue) -> str:
    if value.shape is None:
        return f"{value.dtype}[...]"
    return f"{value.dtype}[{','.join('?' if extent is None else str(extent) for extent in value.shape)}]"


def _like(result: _core.Tensor, array: Any) -> Any:
    """The result as an array of the same package."""
    if isinstance(array, _core.Tensor):
        return result
    package = type(array).__module__.partition(".")[0]
    if package == "torch":
        import torch
        return torch.from_dlpack(result)
    return result.to("cpu").numpy() if package == "numpy" else result
