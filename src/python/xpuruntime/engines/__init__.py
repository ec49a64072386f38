"""Engines that run whole models, written in Python: the contract, and how to add one."""

from __future__ import annotations

import functools
import importlib
import os

TYPE_CHECKING = False  # type checkers take it for True; typing itself takes long to import
if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from typing import Any


class EngineRequest:
    """What an engine is asked to run: the model's file, the execution policy as a dict, the device type, how many threads
    it may use, and what `CompiledModel.to_cache` gave for just this request, or b""."""

    def __init__(self, model: str, execution: dict[str, Any], target: str, threads: int, cached: bytes = b"") -> None:
        self.model = model
        self.execution = execution
        self.target = target
        self.threads = threads
        self.cached = cached


class CompiledModel:
    """A model that an engine made ready."""

    def run(self, inputs: list[Any], timeout_ms: int) -> Sequence[Any]:
        """NumPy arrays for the model's inputs to arrays for its outputs, both in the order of the model."""
        raise NotImplementedError

    def to_cache(self) -> bytes:
        """What was costly to make, for `EngineRequest.cached`; b"": nothing."""
        return b""


class Engine:
    """Runs whole models. Each model has a process of its own, so that what hangs or crashes in it is an error of one call.
    An exception is that error; raise NotImplementedError for what the engine cannot take."""

    in_process = False  # True: in Python without a process; then `run` is called by many threads, and ends in time itself
    caches = False  # whether its models' to_cache has something to keep

    def version(self) -> str:
        """Of the engine and its libraries: what was measured or compiled by another is not used."""
        return ""

    def why_absent(self) -> str:
        """Why it is not here and what to install; "": it is here."""
        return ""

    def devices(self) -> list[str]:
        """The types of device that it can run on, on this machine."""
        return ["cpu"]

    def precisions(self) -> list[str]:
        """Those of an execution policy that it takes, of some model at least, such as ["fp32", "fp16"]; []: it does not tell."""
        return []

    def check(self, request: EngineRequest) -> str:
        """Why it does not take a model; "": it does."""
        return ""

    def compile(self, request: EngineRequest) -> CompiledModel:
        raise NotImplementedError


_aside: list[Any] = []


def _wait_for_threads() -> None:
    import time
    until = time.monotonic() + 10
    for thread in _aside:
        thread.join(max(0.0, until - time.monotonic()))


def start_aside(work: Callable[..., None], *arguments: Any) -> Any:
    """A thread that nobody has to wait for. A process that ends gives it ten seconds: one that comes out of a library while
    Python shuts down would end the process by a signal."""
    import threading
    if not _aside:
        import atexit
        atexit.unregister(_wait_for_threads)
        atexit.register(_wait_for_threads)
    _aside[:] = [thread for thread in _aside if thread.is_alive()]
    thread = threading.Thread(target=work, args=arguments, daemon=True)
    thread.start()
    _aside.append(thread)
    return thread


class Aside:
    """Runs of libraries that look at the time between operators at best: nobody waits for one longer than it may take. Until a
    run of its shapes took much less, each is in a thread of its own, which is left behind when the time is over."""

    def __init__(self) -> None:
        self._quick: set[tuple[tuple[int, ...], ...]] = set()

    def run(self, work: Callable[[], list[Any]], inputs: list[Any], timeout_ms: int) -> list[Any]:
        shapes = tuple([array.shape for array in inputs])
        if shapes in self._quick:
            return work()
        import threading
        import time
        results: list[list[Any]] = []
        errors: list[BaseException] = []
        over = threading.Event()

        def run() -> None:
            try:
                results.append(work())
            except BaseException as error:
                errors.append(error)
            over.set()

        start = time.monotonic()
        start_aside(run)
        if not over.wait(min(timeout_ms / 1000, threading.TIMEOUT_MAX)):
            raise TimeoutError(f"a run took longer than {timeout_ms} ms")
        if errors:
            raise errors[0]
        if time.monotonic() - start < timeout_ms / 1000 / 8 and len(self._quick) < 1000:
            self._quick.add(shapes)
        return results[0]


@functools.cache
def made(code: str) -> Engine:
    """The engine of a class, named as "module:Class"; one in each process."""
    module, _, name = code.partition(":")
    return getattr(importlib.import_module(module), name)()


def usable_threads() -> int:
    """As many as the pool of the library has."""
    for name in ("XPURUNTIME_NUM_THREADS", "OMP_NUM_THREADS"):
        value = os.environ.get(name, "")
        if value.isascii() and value.isdigit() and int(value) > 0:
            return int(value)
    return len(os.sched_getaffinity(0))
