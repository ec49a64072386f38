"""Our own kernels in a process of their own, which can be ended inside of a call that takes too long; not registered by itself:
`xpuruntime.register_engine("guarded", Native)`."""

from __future__ import annotations

import json
from typing import Any

import xpuruntime as xrt

from . import CompiledModel, Engine, EngineRequest, usable_threads


class Native(Engine):
    engine = "native"

    def version(self) -> str:
        return xrt.__version__

    def devices(self) -> list[str]:
        return sorted({str(device).partition(":")[0] for device in xrt.devices()})

    def precisions(self) -> list[str]:
        return ["fp32", "fp16", "bf16", "int8"]

    def compile(self, request: EngineRequest) -> CompiledModel:
        fields = {**request.execution, "engine": self.engine, "target": request.target, "allow_fallback": None}
        policy = xrt.KernelPolicy(threads=request.threads) if request.threads < usable_threads() else None
        return Compiled(xrt.load(request.model, policy=policy, execution=xrt.ExecutionPolicy.from_json(json.dumps(fields))))


class Compiled(CompiledModel):
    def __init__(self, session: xrt.Session) -> None:
        self._session = session

    def run(self, inputs: list[Any], timeout_ms: int) -> list[Any]:
        results = self._session(*inputs)
        return list(results) if isinstance(results, tuple) else [results]
