"""ONNX's own test models through xrt.load: node tests, those that PyTorch made, and graphs of its model zoo with constant weights
("real"). As a script it prints figures, of the type of device that it is given."""

from __future__ import annotations

import collections
import sys
import tempfile
import unittest
import warnings
from pathlib import Path
from typing import Any, Iterator

from onnx_node import OutOfScope  # first: skips all where a package is missing

import numpy as np
import onnx
import onnx_adapter
from onnx import numpy_helper

import xpuruntime as xrt

STEPS = {"bfloat16": 2.0**-6, "float16": 2.0**-9}  # their results were rounded after each step
# NumPy's transform in 32 bits, which made what these cases expect, leaves 2e-7 where the exact result is 0.
INEXACT = {"test_dft_inverse": 1e-6, "test_dft_inverse_opset19": 1e-6}
# So that a case cannot leave the scope unseen.
LEAST_PASSED = {"node": 1523, "simple": 7, "pytorch-operator": 35, "pytorch-converted": 82, "real": 9}


def cases(kind: str) -> list[Any]:
    import onnx.backend.test.loader

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # NumPy about the overflows that the cases want
        return onnx.backend.test.loader.load_model_tests(kind=kind)


def tensors(folder: Path, what: str) -> list[np.ndarray]:
    found = []
    for path in sorted(folder.glob(f"{what}_*.pb"), key=lambda path: int(path.stem.split("_")[1])):
        proto = onnx.TensorProto()
        proto.ParseFromString(path.read_bytes())
        found.append(numpy_helper.to_array(proto))
    return found


def data_of(case: Any) -> Iterator[tuple[list[Any], list[Any]]]:
    """Inputs and expected outputs, from memory, from the case's folder, or beside a graph of the zoo."""
    if case.model is not None:
        for inputs, outputs in case.data_sets:
            yield [onnx_adapter.array_from(value) for value in inputs], [onnx_adapter.array_from(value) for value in outputs]
        return
    if case.model_dir is None:
        path = file_of(case, "")
        graph = onnx.load(path).graph
        constants = {tensor.name for tensor in graph.initializer}
        shapes = [[dim.dim_value for dim in value.type.tensor_type.shape.dim] for value in graph.input
                  if value.name not in constants]
        # As ONNX's runner makes them for the outputs that it has.
        inputs = [np.arange(np.prod(shape), dtype=np.float32).reshape(shape) / np.prod(shape, dtype=np.float32) for shape in shapes]
        output = onnx.TensorProto()
        output.ParseFromString(path.with_name(f"{path.stem}_output_0.pb").read_bytes())
        yield inputs, [numpy_helper.to_array(output)]
        return
    for folder in sorted(Path(case.model_dir).glob("test_data_set_*")):
        yield tensors(folder, "input"), tensors(folder, "output")


def file_of(case: Any, folder: str) -> Path:
    if case.model is None and case.model_dir is None:
        return Path(onnx.__file__).parent.parent / case.url
    if case.model is None:
        return Path(case.model_dir) / "model.onnx"
    path = Path(folder) / "model.onnx"
    path.write_bytes(case.model.SerializeToString())
    return path


def check(case: Any, folder: str, target: str) -> None:
    """Loads and runs one case and compares as the package does. What another device lacks runs on the CPU."""
    execution = xrt.ExecutionPolicy(target=target, engine="native", allow_fallback=None if target == "cpu" else "cpu")
    try:
        session = xrt.load(file_of(case, folder), execution=execution)
    except xrt.NotSupportedError as error:
        raise OutOfScope(str(error)) from error
    for inputs, outputs in data_of(case):
        onnx_adapter.check_dtypes([*inputs, *outputs])
        if len(inputs) != len(session.inputs):
            raise OutOfScope("an input that is left out")
        try:
            results = session.run({value.name: array for value, array in zip(session.inputs, inputs)})
        except xrt.NotSupportedError as error:
            raise OutOfScope(str(error)) from error
        for result, want in zip(results.values(), outputs, strict=True):
            result = result if isinstance(result, np.ndarray) else result.to("cpu").numpy()  # a model without inputs
            if result.dtype != want.dtype or result.shape != want.shape:
                raise AssertionError(f"{result.dtype}{result.shape} instead of {want.dtype}{want.shape}")
            numbers = [array.astype(np.float64) for array in (result, want)]
            relative = max(case.rtol, STEPS.get(want.dtype.name, 0))
            np.testing.assert_allclose(*numbers, rtol=relative, atol=INEXACT.get(case.name, case.atol))


class OnnxModels(unittest.TestCase):
    target = "cpu"
    others: tuple[str, ...] = ()  # that do not pass there

    def setUp(self) -> None:
        if not any(str(device) == f"{self.target}:0" for device in xrt.devices()):
            self.skipTest(f"needs a device of type {self.target}")

    def test_every_case_passes_or_says_what_is_missing(self) -> None:
        for kind, least in LEAST_PASSED.items():
            passed = 0
            for case in cases(kind):
                if case.name in self.others:
                    least -= 1
                    continue
                with self.subTest(case.name), tempfile.TemporaryDirectory() as folder:
                    try:
                        check(case, folder, self.target)
                        passed += 1
                    except OutOfScope:
                        pass
            self.assertGreaterEqual(passed, least, kind)


class OnnxModelsOnOpenCl(OnnxModels):
    target = "opencl"
    others = ("test_gather_negative_indices",)  # rows of a table are counted from its front there


def report(target: str) -> None:
    """How many of how many pass, by kind; what is out of scope, by reason."""
    reasons: dict[str, list[str]] = collections.defaultdict(list)
    for kind in LEAST_PASSED:
        outcomes: collections.Counter[str] = collections.Counter()
        for case in cases(kind):
            with tempfile.TemporaryDirectory() as folder:
                try:
                    check(case, folder, target)
                    outcomes["passed"] += 1
                except OutOfScope as reason:
                    outcomes["out of scope"] += 1
                    reasons[str(reason).replace(folder, "").split("; ")[0][:200]].append(case.name)
                except Exception as error:  # the table names all of them
                    outcomes["failed"] += 1
                    print(f"FAILED {case.name}: {str(error).strip()[:300]}")
        print(f"{kind}: {outcomes['passed']} passed of {sum(outcomes.values())}, {outcomes['failed']} failed, "
              f"{outcomes['out of scope']} out of scope")
    for reason, names in sorted(reasons.items(), key=lambda item: -len(item[1])):
        print(f"out of scope, {reason} ({len(names)}): {' '.join(names[:8])}")


if __name__ == "__main__":
    report(sys.argv[1] if len(sys.argv) > 1 else "cpu")
