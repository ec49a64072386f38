"""Calls keep nothing, on success and on failure: no references, no memory, no arrays. The interpreter ends quietly."""

from __future__ import annotations

import gc
import subprocess
import sys
import unittest
import weakref
from typing import Any, Callable

from packages import need, optional

need("numpy")

import numpy as np

import xpuruntime as xrt
from xpuruntime import ops

torch = optional("torch")
X = np.ones((4, 8), np.float32)
Y = np.ones((8, 4), np.float32)
CALLS = 200


class Owner(np.ndarray):
    """An array that can be watched."""


def watched(shape: tuple[int, ...]) -> np.ndarray:
    return np.ones(shape, np.float32).view(Owner)


class Leaks(unittest.TestCase):
    def keeps_nothing(self, call: Callable[[], Any], *objects: Any) -> None:
        """Many calls leave the objects' counts and the number of allocated blocks as they were."""
        counts = [sys.getrefcount(thing) for thing in objects]
        for _ in range(5):  # a leak grows in every round; caches fill up in the first ones
            gc.collect()
            blocks = sys.getallocatedblocks()
            for _ in range(CALLS):
                call()
            gc.collect()
            grown = sys.getallocatedblocks() - blocks
            if grown < CALLS // 4:
                break
        self.assertLess(grown, CALLS // 4)
        self.assertEqual([sys.getrefcount(thing) for thing in objects], counts)

    def test_ops_on_numpy_arrays_keep_nothing(self) -> None:
        out, bias, table = np.empty((4, 4), np.float32), np.ones(4, np.float32), np.array([1, 2])
        self.keeps_nothing(lambda: ops.matmul(X, Y), X, Y)
        self.keeps_nothing(lambda: ops.matmul(X, Y, out=out), X, Y, out)
        self.keeps_nothing(lambda: ops.linear(X, X, bias, activation="gelu"), X, bias)
        self.keeps_nothing(lambda: ops.softmax(X, dim=0), X)
        self.keeps_nothing(lambda: ops.add(X, 2.0), X)
        self.keeps_nothing(lambda: ops.cat([X, X, X], dim=1), X)
        self.keeps_nothing(lambda: ops.embedding(table, Y), table, Y)
        self.keeps_nothing(lambda: ops.relu(X.T), X)
        self.keeps_nothing(lambda: ops.relu(X[::-1]), X)
        self.keeps_nothing(lambda: ops.unscale(X, np.ones(1, np.float32)), X)

    @unittest.skipUnless(torch, "PyTorch is not installed")
    def test_ops_on_pytorch_tensors_keep_nothing(self) -> None:
        a, out = torch.ones(4, 4), torch.empty(4, 4)
        self.keeps_nothing(lambda: ops.add(a, a), a)
        self.keeps_nothing(lambda: ops.add(a, a, out=out), a, out)
        self.keeps_nothing(lambda: ops.sum(a.t(), dim=1), a)

    def test_calls_that_fail_keep_nothing(self) -> None:
        def failing(call: Callable[[], Any]) -> Callable[[], None]:
            def run() -> None:
                with self.assertRaises((ValueError, TypeError)):
                    call()

            return run

        frozen, foreign = X.copy(), X.astype(">f4")
        frozen.flags.writeable = False
        self.keeps_nothing(failing(lambda: ops.matmul(X, X)), X)
        self.keeps_nothing(failing(lambda: ops.add(X, "x")), X)
        self.keeps_nothing(failing(lambda: ops.add(X, foreign)), X, foreign)
        self.keeps_nothing(failing(lambda: ops.relu(X, out=frozen)), X, frozen)
        self.keeps_nothing(failing(lambda: ops.softmax(X, dim=9)), X)
        self.keeps_nothing(failing(lambda: ops.softmax(X, nonsense=9)), X)

    def test_questions_keep_nothing(self) -> None:
        self.keeps_nothing(lambda: xrt.explain("matmul(f32[4,8], f32[8,4])").to_dict())
        self.keeps_nothing(lambda: xrt.explain("matmul", X, Y), X, Y)
        self.keeps_nothing(xrt.get_kernel_policy)

    def test_scopes_keep_nothing(self) -> None:
        policy = xrt.KernelPolicy(matmul="reference")

        def scoped() -> None:
            with xrt.with_policy(policy):
                ops.matmul(X, Y)

        self.keeps_nothing(scoped, policy)

    def test_inputs_die_when_their_owner_lets_go(self) -> None:
        array = watched((4, 4))
        dead = weakref.ref(array)
        result = ops.add(array, array)
        del array
        gc.collect()
        self.assertIsNone(dead())
        np.testing.assert_array_equal(result, np.full((4, 4), 2))

    def test_a_result_outlives_everything_it_came_from(self) -> None:
        result = ops.add(np.ones(1000, np.float32), np.ones(1000, np.float32))
        view = result[10:20]
        del result
        gc.collect()
        np.ones(1000, np.float32)  # would land in memory that was given back too early
        np.testing.assert_array_equal(view, np.full(10, 2))

    def test_the_interpreter_ends_without_a_word(self) -> None:
        script = """
import numpy, xpuruntime as xrt
x = numpy.ones((4, 4), numpy.float32)
kept = xrt.ops.matmul(x, x)
decision = xrt.explain("matmul", x, x)
policy = xrt.KernelPolicy(matmul="reference")
with xrt.with_policy(policy):
    kept = xrt.ops.add(kept, 1.0)
"""
        done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, timeout=120)
        self.assertEqual((done.returncode, done.stdout, done.stderr), (0, "", ""))


if __name__ == "__main__":
    unittest.main()
