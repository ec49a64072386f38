"""The node tests of the onnx package for every operator that our ops implement. Run as a script, it prints figures."""

from __future__ import annotations

import collections
import unittest
import warnings
from typing import Any

from onnx_node import OutOfScope  # first: skips all where a package is missing

import numpy as np
import onnx_adapter

# The cases' bf16 results were rounded after each step, ours once: two steps of the dtype may lie between them.
BF16_STEPS = 2.0**-6
LEAST_PASSED = 639  # so that a case cannot leave the scope unseen


def node_cases() -> list[Any]:
    """All cases of models whose every operator the adapter has."""
    import onnx.backend.test.loader

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # NumPy about the overflows that the cases want
        cases = onnx.backend.test.loader.load_model_tests(kind="node")
    return [case for case in cases if all(node.op_type in onnx_adapter.OPERATORS for node in case.model.graph.node)]


def operator_of(case: Any) -> str:
    """The one operator of a case, or that it is a graph of several."""
    kinds = {node.op_type for node in case.model.graph.node}
    return kinds.pop() if len(kinds) == 1 else "several"


def check(case: Any) -> None:
    """Runs one case and compares as the package does."""
    for inputs, outputs in case.data_sets:
        expected = [onnx_adapter.array_from(output) for output in outputs]
        onnx_adapter.check_dtypes(expected)
        results = onnx_adapter.run(case.model, inputs)
        for result, want in zip(results, expected, strict=True):
            if result.dtype != want.dtype or result.shape != want.shape:
                raise AssertionError(f"{result.dtype}{result.shape} instead of {want.dtype}{want.shape}")
            numbers = [array.astype(np.float64) for array in (result, want)]
            relative = max(case.rtol, BF16_STEPS) if want.dtype.name == "bfloat16" else case.rtol
            np.testing.assert_allclose(*numbers, rtol=relative, atol=case.atol)


class OnnxNodes(unittest.TestCase):
    def test_every_case_in_scope_passes(self) -> None:
        passed = 0
        for case in node_cases():
            with self.subTest(case.name):
                try:
                    check(case)
                    passed += 1
                except OutOfScope:
                    pass
        self.assertGreaterEqual(passed, LEAST_PASSED)


def report() -> None:
    """How many of how many pass, by operator; what is out of scope, by reason."""
    outcomes: dict[str, collections.Counter[str]] = collections.defaultdict(collections.Counter)
    reasons: dict[str, list[str]] = collections.defaultdict(list)
    for case in node_cases():
        try:
            check(case)
            outcome = "passed"
        except OutOfScope as reason:
            reasons[str(reason)].append(case.name)
            outcome = "out of scope"
        except Exception as error:  # the table names all of them
            print(f"FAILED {case.name}: {str(error).strip()[:300]}")
            outcome = "failed"
        outcomes[operator_of(case)][outcome] += 1
    total: collections.Counter[str] = collections.Counter()
    for operator, counts in sorted(outcomes.items()):
        print(f"{operator}: " + ", ".join(f"{count} {outcome}" for outcome, count in sorted(counts.items())))
        total.update(counts)
    print(f"all: {dict(total)} of {sum(total.values())}")
    for reason, names in sorted(reasons.items()):
        print(f"out of scope, {reason} ({len(names)}): {' '.join(names)}")


if __name__ == "__main__":
    report()
