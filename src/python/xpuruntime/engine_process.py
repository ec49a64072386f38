"""python -m xpuruntime.engine_process SOCKET MEMORY: runs the models of one engine for another process.

The library starts it, sends requests over the socket and waits for each answer; arrays lie in memory of both;
docs/engines.md. Standard input is a pipe
into which nothing is written: when its other end is closed, the process is killed, even inside a call that hangs.
"""

from __future__ import annotations

import fcntl
import json
import mmap
import os
import signal
import socket
import struct
import sys
import traceback
from typing import Any

from .engines import CompiledModel, EngineRequest, made, usable_threads
from .errors import NotSupportedError

SIZE = struct.Struct("=Q")


def die_with_owner() -> None:
    fcntl.fcntl(0, fcntl.F_SETOWN, os.getpid())
    fcntl.fcntl(0, getattr(fcntl, "F_SETSIG", 10), int(signal.SIGKILL))
    fcntl.fcntl(0, fcntl.F_SETFL, os.O_ASYNC | os.O_NONBLOCK)
    try:
        if os.read(0, 1) == b"":  # it is gone already
            os._exit(0)
    except BlockingIOError:
        pass


def receive(connection: socket.socket, size: int) -> bytearray:
    data = bytearray(size)
    view, got = memoryview(data), 0
    while got < size:
        count = connection.recv_into(view[got:])
        if count == 0:
            os._exit(0)
        got += count
    return data


class Memory:
    """What both processes have: requests put bytes at its beginning, answers behind them."""

    def __init__(self, file: int) -> None:
        self.file = file
        self.map = mmap.mmap(-1, 1)

    def up_to(self, size: int) -> mmap.mmap:
        have = os.fstat(self.file).st_size
        if size > have:
            os.ftruncate(self.file, size)
        if max(size, have) > len(self.map):
            self.map = mmap.mmap(self.file, max(size, have))  # arrays may still lie in the one before
        return self.map


class Server:
    def __init__(self, memory: Memory) -> None:
        self.memory = memory
        self.model: CompiledModel | None = None

    def answer(self, request: dict[str, Any]) -> dict[str, Any]:
        action = request["do"]
        if action == "run":
            return self.run(request)
        engine = made(request["engine"])
        if action == "describe":
            absent = engine.why_absent()
            return {"absent": absent, "version": "" if absent else engine.version(), "caches": engine.caches,
                    "devices": [] if absent else engine.devices(), "precisions": [] if absent else engine.precisions()}
        size = request.get("bytes", 0)
        asked = EngineRequest(request["model"], request["execution"], request["target"],
                              request["threads"] or usable_threads(), self.memory.up_to(size)[:size])
        if action == "check":
            return {"reason": engine.check(asked)}
        self.model = engine.compile(asked)
        if self.model is None:
            raise RuntimeError("it compiled the model to nothing; its compile must return a model or raise")
        kept = b"" if asked.cached else self.model.to_cache()
        if kept:
            self.memory.up_to(len(kept))[:len(kept)] = kept
        return {"offset": 0, "bytes": len(kept)}

    def run(self, request: dict[str, Any]) -> dict[str, Any]:
        import numpy as np
        if self.model is None:
            raise RuntimeError("no model was compiled")
        begin = request["bytes"]
        memory = self.memory.up_to(begin)
        inputs = [np.ndarray(spec["shape"], numpy_dtype(spec["dtype"]), memory, spec["offset"]) if begin else
                  np.empty(spec["shape"], numpy_dtype(spec["dtype"])) for spec in request["inputs"]]
        results = [np.asarray(result) for result in self.model.run(inputs, request["timeout_ms"])]
        specs, size = [], 0
        for result in results:
            specs.append({"dtype": short_name(result.dtype), "shape": result.shape, "offset": size})
            size += -(-result.nbytes // 64) * 64
        memory = self.memory.up_to(begin + size)
        for spec, result in zip(specs, results):
            if result.size:
                np.ndarray(result.shape, result.dtype, memory, begin + spec["offset"])[...] = result
        return {"outputs": specs, "offset": begin, "bytes": size}


NAMES = {"f16": "float16", "f32": "float32", "f64": "float64", "i8": "int8", "u8": "uint8", "i16": "int16", "i32": "int32",
         "i64": "int64", "bool": "bool"}


def numpy_dtype(name: str) -> str:
    if name not in NAMES:
        raise NotImplementedError(f"this engine takes no {name} from another process; cast the model's inputs")
    return NAMES[name]


def short_name(dtype: Any) -> str:
    for name, numpy_name in NAMES.items():
        if dtype == numpy_name:
            return name
    raise NotImplementedError(f"a result of the model is of the dtype {dtype}, which is none of ours")


def code_of(error: BaseException) -> str:
    kinds: tuple[tuple[type[BaseException], str], ...] = (
        (NotImplementedError, "not_supported"), (NotSupportedError, "not_supported"), (ImportError, "not_supported"),
        (TimeoutError, "timeout"), (MemoryError, "out_of_memory"), (ValueError, "invalid_argument"))
    return next((code for kind, code in kinds if isinstance(error, kind)), "device_error")


def main() -> None:
    die_with_owner()
    connection = socket.socket(fileno=int(sys.argv[1]))
    connection.set_inheritable(False)
    server = Server(Memory(int(sys.argv[2])))
    while True:
        request = json.loads(receive(connection, *SIZE.unpack(receive(connection, SIZE.size))))
        try:
            answer = server.answer(request)
        except Exception as error:  # noqa: BLE001: all of it is the caller's to hear
            traceback.print_exc()
            text = " ".join(str(error).split()) or type(error).__name__
            answer = {"error": f"{request.get('engine', 'the engine').rpartition(':')[2]}: {text[:2000]}",
                      "code": code_of(error)}
        encoded = json.dumps(answer).encode()
        connection.sendall(SIZE.pack(len(encoded)) + encoded)


if __name__ == "__main__":
    main()
