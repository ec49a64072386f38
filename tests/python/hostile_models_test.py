"""Models that ask for more than there is: each is one error, soon, in a process whose memory is bounded."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
import unittest
from pathlib import Path
from typing import Any

from packages import need

need("numpy", "onnx")

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper

# Loads and runs each file named on the command line; prints what became of it.
CHILD = """
import json, os, resource, sys, time
import numpy as np
import xpuruntime as xrt
if "asan" not in os.environ.get("LD_PRELOAD", ""):
    resource.setrlimit(resource.RLIMIT_AS, (4 << 30, 4 << 30))
for path in sys.argv[1:]:
    start, answer = time.monotonic(), ["ran", ""]
    try:
        session = xrt.load(path)
        session.run({value.name: np.ones([4] * len(value.shape), np.float32) for value in session.inputs})
    except Exception as error:
        answer = [type(error).__name__, str(error)]
    print(json.dumps([*answer, time.monotonic() - start]), flush=True)
"""
HUGE = np.array([1 << 25, 1 << 25])
MEMORY, REFUSED, INVALID = "OutOfMemoryError", "NotSupportedError", "InvalidArgumentError"


def model_of(nodes: list[onnx.NodeProto], constants: dict[str, Any], rank: int = 1) -> bytes:
    values = [helper.make_tensor_value_info(name, TensorProto.FLOAT, [None] * dims) for name, dims in (("x", rank), ("y", 0))]
    values[1].type.tensor_type.ClearField("shape")
    known = [numpy_helper.from_array(np.asarray(value), name) for name, value in constants.items()]
    graph = helper.make_graph(nodes, "hostile", values[:1], values[1:], known)
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 20)], ir_version=9).SerializeToString()


def one(op: str, inputs: list[str], constants: dict[str, Any] = {}, rank: int = 1, **attributes: Any) -> bytes:
    return model_of([helper.make_node(op, inputs, ["y"], **attributes)], constants, rank)


def of_huge(op: str, more: list[str] = [], constants: dict[str, Any] = {}) -> bytes:
    """An operator on 2^50 zeros, which take no memory until something writes them."""
    nodes = [helper.make_node("ConstantOfShape", ["s"], ["huge"]), helper.make_node(op, ["huge", *more], ["y"])]
    return model_of(nodes, {"s": HUGE, **constants})


def doubled(times: int) -> bytes:
    nodes = [helper.make_node("Concat", [f"c{i}", f"c{i}"], [f"c{i + 1}"], axis=0) for i in range(times)]
    return model_of([*nodes, helper.make_node("Identity", [f"c{times}"], ["y"])], {"c0": np.ones(1 << 16, np.float32)})


def cases() -> dict[str, tuple[bytes, str]]:
    return {
        "Expand": (one("Expand", ["x", "s"], {"s": [1 << 25, 1 << 23, 4]}), MEMORY),
        "ConstantOfShape": (one("ConstantOfShape", ["s"], {"s": HUGE}), MEMORY),
        "ConstantOfShape past 63 bits": (one("ConstantOfShape", ["s"], {"s": HUGE << 20}), INVALID),
        "ConstantOfShape negative": (one("ConstantOfShape", ["s"], {"s": [-5, 2]}), INVALID),
        "Range": (one("Range", ["a", "b", "d"], {"a": 0, "b": 1 << 50, "d": 1}), REFUSED),
        "Range of floats": (one("Range", ["a", "b", "d"], {"a": 0.0, "b": 1e300, "d": 1e-300}), REFUSED),
        "Tile": (one("Tile", ["x", "r"], {"r": [1 << 48]}), MEMORY),
        "Pad": (one("Pad", ["x", "p"], {"p": [1 << 39, 1 << 39]}), MEMORY),
        "OneHot": (one("OneHot", ["i", "d", "v"], {"i": [1, 2], "d": 1 << 50, "v": np.float32([0, 1])}), MEMORY),
        "Resize": (one("Resize", ["x", "", "s"], {"s": np.float32([1, 1, 1e7, 1e7])}, 4, mode="linear"), REFUSED),
        "Abs": (of_huge("Abs"), MEMORY),
        "Transpose": (of_huge("Transpose"), MEMORY),
        "NonZero": (of_huge("NonZero"), REFUSED),
        "Unique": (of_huge("Unique"), REFUSED),
        "EyeLike": (of_huge("EyeLike"), REFUSED),
        "Reshape": (of_huge("Reshape", ["to"], {"to": [-1]}), MEMORY),
        "doublings": (doubled(60), MEMORY),
        "HannWindow": (one("HannWindow", ["n"], {"n": 1 << 50}), REFUSED),
        "DFT": (one("DFT", ["x", "n"], {"n": 1 << 40}, 3), REFUSED),
        "AffineGrid": (one("AffineGrid", ["x", "s"], {"s": [4, 1, 1 << 20, 1 << 20]}, 3), REFUSED),
        "Col2Im": (one("Col2Im", ["x", "i", "b"], {"i": [1 << 24] * 2, "b": [1 << 24] * 2}, 3), REFUSED),
        "MaxPool": (one("MaxPool", ["x"], {}, 4, kernel_shape=[1 << 29] * 2, pads=[1 << 29] * 4), MEMORY),
        "Conv": (one("Conv", ["x", "w"], {"w": np.ones((1, 4, 3, 3), np.float32)}, 4, pads=[1 << 25] * 4), MEMORY),
        "RoiAlign": (one("RoiAlign", ["x", "b", "i"], {"b": np.float32([[0, 0, 1e9, 1e9]]), "i": [0]}, 4,
                         output_height=4096, output_width=4096), REFUSED),
    }


class HostileModels(unittest.TestCase):
    def test_what_asks_for_too_much_is_an_error_and_soon(self) -> None:
        with tempfile.TemporaryDirectory() as folder:
            paths = []
            for name, (content, _) in cases().items():
                paths.append(Path(folder) / f"{name}.onnx")
                paths[-1].write_bytes(content)
            child = subprocess.run([sys.executable, "-c", CHILD, *map(str, paths)], capture_output=True, text=True, timeout=300)
            self.assertEqual(child.returncode, 0, child.stderr[-2000:])
            self.assertEqual(sorted(os.listdir(folder)), sorted(path.name for path in paths))
        for (name, (_, wanted)), line in zip(cases().items(), child.stdout.splitlines(), strict=True):
            kind, message, seconds = json.loads(line)
            with self.subTest(name):
                self.assertEqual(kind, wanted, message)
                self.assertNotIn("\n", message)
                self.assertLess(seconds, 60)


if __name__ == "__main__":
    unittest.main()
