"""OpenVINO as an engine."""

from __future__ import annotations

import contextlib
import importlib.util
import io
import threading
import time
from typing import Any

from . import CompiledModel, Engine, EngineRequest, start_aside

DEVICES = {"CPU": "cpu", "GPU": "opencl", "NPU": "npu"}
PRECISIONS = {"fp32": "f32", "fp16": "f16", "bf16": "bf16"}


class OpenVino(Engine):
    in_process = True
    caches = True

    def version(self) -> str:
        import openvino
        return str(openvino.__version__).partition("-")[0]

    def why_absent(self) -> str:
        if importlib.util.find_spec("openvino"):
            return ""
        return "the Python package openvino is not installed; pip install 'xpuruntime[openvino]'"

    def devices(self) -> list[str]:
        import openvino
        names = {name.partition(".")[0] for name in openvino.Core().available_devices}
        return [device for name, device in DEVICES.items() if name in names]

    def precisions(self) -> list[str]:
        return list(PRECISIONS)

    def check(self, request: EngineRequest) -> str:
        precision = request.execution["precision"]
        return "" if precision in PRECISIONS else f"precision {precision} is not done: give it a model that is quantized"

    def compile(self, request: EngineRequest) -> CompiledModel:
        import openvino
        core = openvino.Core()
        device = next(name for name, ours in DEVICES.items() if ours == request.target)
        # Without the hint a processor with bf16 computes models of f32 in that.
        options: dict[str, Any] = {"PERFORMANCE_HINT": "LATENCY",
                                   "INFERENCE_PRECISION_HINT": PRECISIONS[request.execution["precision"]]}
        if device == "CPU":
            options |= {"INFERENCE_NUM_THREADS": request.threads, "ENABLE_HYPER_THREADING": True}
        if request.cached:
            return Compiled(core.import_model(request.cached, device, options))
        try:
            model = core.read_model(request.model)
        except RuntimeError as error:
            if "OpConversionFailure" not in str(error):
                raise
            raise NotImplementedError(f"it cannot convert the model: {error}") from None
        if request.execution["static_shape"]:
            model.reshape(dict(enumerate(request.execution["fixed_shapes"])))
        return Compiled(core.compile_model(model, device, options), keep=bool(request.execution["cache_compiled"]))


def see_to_its_end(request: Any, _: list[Any]) -> None:
    """Holds on to a request and its inputs until the operator that runs has ended."""
    for stop in (request.cancel, request.wait):
        with contextlib.suppress(Exception):
            stop()


class Compiled(CompiledModel):
    def __init__(self, model: Any, keep: bool = False) -> None:
        self._outputs = len(model.outputs)
        self._model, self._keep = model, keep
        self._idle = [model.create_infer_request()]  # those that no thread uses
        self._lock = threading.Lock()
        self._maker = threading.Thread()  # of another; one at a time
        self._failure: Exception | None = None

    def _add_request(self) -> None:
        try:
            self._idle.append(self._model.create_infer_request())
        except Exception as error:
            self._failure = error

    def _request(self, until: float) -> Any:
        """One that no thread uses; None: there is none in time. To make one waits for runs that go on."""
        while time.monotonic() < until:
            with contextlib.suppress(IndexError):
                return self._idle.pop()
            with self._lock:
                if not self._maker.is_alive():
                    if self._failure is not None:
                        raise self._failure
                    self._maker = start_aside(self._add_request)
                maker = self._maker
            maker.join(min(until - time.monotonic(), threading.TIMEOUT_MAX))
        return None

    def run(self, inputs: list[Any], timeout_ms: int) -> list[Any]:
        until = time.monotonic() + timeout_ms / 1000
        request = self._request(until)
        if request is None:
            raise TimeoutError(f"a run took longer than {timeout_ms} ms, with the one before it, which still goes on")
        request.start_async(dict(enumerate(inputs)), share_inputs=True)
        if not request.wait_for(max(0, int((until - time.monotonic()) * 1000))):
            start_aside(see_to_its_end, request, inputs)
            raise TimeoutError(f"a run took longer than {timeout_ms} ms")
        request.wait()  # raises what went wrong
        results = [request.get_output_tensor(i).data.copy() for i in range(self._outputs)]
        self._idle.append(request)
        return results

    def to_cache(self) -> bytes:
        if not self._keep:
            return b""
        stream = io.BytesIO()
        self._model.export_model(stream)
        return stream.getvalue()
