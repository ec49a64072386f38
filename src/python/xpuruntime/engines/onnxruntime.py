"""ONNX Runtime as an engine."""

from __future__ import annotations

import importlib.metadata
import importlib.util
import os
import threading
import time
from typing import Any

from . import Aside, CompiledModel, Engine, EngineRequest

PROVIDERS = {"cpu": "CPUExecutionProvider", "cuda": "CUDAExecutionProvider"}
# What is larger is not kept: a model of 2 GB cannot be written as one file.
MOST_CACHED = 1 << 30


class OnnxRuntime(Engine):
    in_process = True
    caches = True

    def version(self) -> str:
        return importlib.metadata.version("onnxruntime") if importlib.util.find_spec("onnxruntime") else ""

    def why_absent(self) -> str:
        if importlib.util.find_spec("onnxruntime"):
            return ""
        return "the Python package onnxruntime is not installed; pip install 'xpuruntime[onnxruntime]'"

    def devices(self) -> list[str]:
        import onnxruntime
        available = onnxruntime.get_available_providers()
        return [device for device, provider in PROVIDERS.items() if provider in available]

    def precisions(self) -> list[str]:
        return ["fp32"]

    def check(self, request: EngineRequest) -> str:
        precision = request.execution["precision"]
        return "" if precision == "fp32" else f"it runs a model in the dtypes of its file; precision {precision} is not done"

    def compile(self, request: EngineRequest) -> CompiledModel:
        import onnxruntime
        options = onnxruntime.SessionOptions()
        options.intra_op_num_threads = request.threads
        options.inter_op_num_threads = 1
        options.log_severity_level = 3
        levels = onnxruntime.GraphOptimizationLevel
        options.graph_optimization_level = [levels.ORT_DISABLE_ALL, levels.ORT_ENABLE_BASIC, levels.ORT_ENABLE_EXTENDED,
                                            levels.ORT_ENABLE_ALL][request.execution["optimize_level"]]
        providers = [PROVIDERS[request.target]]
        if request.cached:
            options.graph_optimization_level = levels.ORT_DISABLE_ALL  # it is done
            # Constants that the model has in files beside it are still there.
            options.add_session_config_entry("session.model_external_initializers_file_folder_path",
                                             os.path.dirname(os.path.abspath(request.model)))
            return Compiled(onnxruntime.InferenceSession(request.cached, options, providers=providers))
        keep = request.execution["cache_compiled"] and os.path.getsize(request.model) < MOST_CACHED
        if not keep:
            return Compiled(onnxruntime.InferenceSession(request.model, options, providers=providers))
        # A file in memory: nothing is left of it when the process is killed, as it is for compiling too long.
        with open(os.memfd_create("optimized.onnx"), "rb") as file:
            options.optimized_model_filepath = f"/proc/self/fd/{file.fileno()}"
            session = onnxruntime.InferenceSession(request.model, options, providers=providers)
            return Compiled(session, file.read())


class Run:
    """A run that has to end in time: the watchdog asks it to."""

    def __init__(self, watchdog: Watchdog, options: Any, end: float) -> None:
        self.watchdog, self.options, self.end, self.is_late = watchdog, options, end, False

    def __enter__(self) -> Run:
        self.watchdog.add(self)
        return self

    def __exit__(self, *_: object) -> None:
        self.watchdog.runs.discard(self)


class Watchdog:
    """A thread that ends runs that are late. It sleeps until the end of the run that would be late first, whether that is
    still there or not: a run that starts wakes it only if its own end comes before."""

    def __init__(self) -> None:
        self.runs: set[Run] = set()
        self.wakes = threading.Condition()
        self.sleeps_until = 0.0
        self.thread: threading.Thread | None = None

    def watching(self, options: Any, seconds: float) -> Run:
        return Run(self, options, time.monotonic() + seconds)

    def add(self, run: Run) -> None:
        self.runs.add(run)
        if self.thread is not None and run.end >= self.sleeps_until > time.monotonic():
            return
        with self.wakes:
            if self.thread is None:
                self.thread = threading.Thread(target=self.watch, daemon=True)
                self.thread.start()
            self.wakes.notify()

    def watch(self) -> None:
        with self.wakes:
            while True:
                self.sleeps_until = 0.0  # who comes from now on waits for the lock, and wakes it
                now = time.monotonic()
                runs = self.runs.copy()
                for run in runs:
                    if run.end <= now:
                        run.is_late = run.options.terminate = True
                ends = [run.end for run in runs if run.end > now]
                self.sleeps_until = min(ends, default=0.0)
                self.wakes.wait(self.sleeps_until - now if ends else None)


WATCHDOG = Watchdog()
os.register_at_fork(after_in_child=WATCHDOG.__init__)  # type: ignore[misc]


class Compiled(CompiledModel):
    def __init__(self, session: Any, optimized: bytes = b"") -> None:
        self._session, self._optimized, self._aside = session, optimized, Aside()
        self._inputs = [value.name for value in session.get_inputs()]
        self._outputs = [value.name for value in session.get_outputs()]

    def run(self, inputs: list[Any], timeout_ms: int) -> list[Any]:
        return self._aside.run(lambda: self._run(inputs, timeout_ms), inputs, timeout_ms)

    def _run(self, inputs: list[Any], timeout_ms: int) -> list[Any]:
        import onnxruntime
        options = onnxruntime.RunOptions()
        with WATCHDOG.watching(options, timeout_ms / 1000) as run:
            try:
                return list(self._session.run(self._outputs, dict(zip(self._inputs, inputs)), options))
            except Exception:
                if run.is_late:
                    raise TimeoutError(f"a run took longer than {timeout_ms} ms") from None
                raise

    def to_cache(self) -> bytes:
        return self._optimized
