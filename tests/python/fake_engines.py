"""Engines for tests: one that works, and others that hang, crash or fail. Each runs in a process of its own."""

from __future__ import annotations

import os
import signal
import time
from typing import Any

import numpy as np

from xpuruntime.engines import CompiledModel, Engine, EngineRequest
from xpuruntime.engines.onnxruntime import OnnxRuntime


class Doubles(CompiledModel):
    """Gives its first input twice over; a number above 100 in it makes it misbehave."""

    def __init__(self, kept: bytes = b"") -> None:
        self.kept = kept

    def run(self, inputs: list[Any], timeout_ms: int) -> list[Any]:
        highest = inputs[0].max() if inputs[0].size else 0
        if highest == 101:
            time.sleep(60)
        if highest == 102:
            os.kill(os.getpid(), signal.SIGSEGV)
        if highest == 103:
            raise ValueError("103 is not a number that this engine likes")
        if highest == 104:
            return [inputs[0] * os.getpid()]
        return [inputs[0] * 2]

    def to_cache(self) -> bytes:
        return self.kept


class Fine(Engine):
    def version(self) -> str:
        return "1.5"

    def compile(self, request: EngineRequest) -> CompiledModel:
        return Doubles()


class Finer(Fine):
    def version(self) -> str:
        return "1.6"


class Npu(Fine):
    def devices(self) -> list[str]:
        return ["npu"]


class Hanging(Fine):
    def compile(self, request: EngineRequest) -> CompiledModel:
        time.sleep(60)
        return Doubles()


class HangingRuntime(OnnxRuntime):
    """It hangs when it has compiled, and has not yet tidied up."""

    in_process = False

    def compile(self, request: EngineRequest) -> CompiledModel:
        import onnxruntime
        compile_by = onnxruntime.InferenceSession

        def hang(*given: Any, **named: Any) -> None:
            compile_by(*given, **named)
            time.sleep(60)

        onnxruntime.InferenceSession = hang
        return super().compile(request)


class HangingNpu(Hanging):
    def devices(self) -> list[str]:
        return ["npu"]


class Crashing(Fine):
    def compile(self, request: EngineRequest) -> CompiledModel:
        os.abort()


class Absent(Engine):
    def why_absent(self) -> str:
        return "its package is not installed; pip install nothing"


class Picky(Fine):
    def check(self, request: EngineRequest) -> str:
        return "no model is good enough"


class Keeping(Fine):
    """Leaves a line in a file for each time that it compiles without the cache."""

    caches = True

    def compile(self, request: EngineRequest) -> CompiledModel:
        if request.cached:
            return Doubles()
        with open(os.environ["XRT_TEST_COMPILES"], "a", encoding="ascii") as file:
            file.write("compiled\n")
        return Doubles(b"kept" * 1000)


class Giving(CompiledModel):
    """Gives what it was made with; the letter of the input's dtype where that is nothing."""

    def __init__(self, results: list[Any] | None) -> None:
        self.results = results

    def run(self, inputs: list[Any], timeout_ms: int) -> list[Any]:
        return [inputs[0] * 0 + ord(inputs[0].dtype.char)] if self.results is None else self.results


class Few(Fine):
    def compile(self, request: EngineRequest) -> CompiledModel:
        return Giving([])


class Wrong(Fine):
    def compile(self, request: EngineRequest) -> CompiledModel:
        return Giving([np.zeros((2, 4))])


class Nothing(Fine):
    def compile(self, request: EngineRequest) -> CompiledModel:
        return None  # type: ignore[return-value]


class Letters(Fine):
    def compile(self, request: EngineRequest) -> CompiledModel:
        return Giving(None)


class FewHere(Few):
    in_process = True


class WrongHere(Wrong):
    in_process = True


class NothingHere(Nothing):
    in_process = True


class LettersHere(Letters):
    in_process = True
