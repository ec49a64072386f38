"""What the tests of scopes share: a problem, and a check that no test leaves a scope behind."""

import unittest

import xpuruntime as xrt

PROBLEM = "matmul(f32[64,64], f32[64,64])"


def kernel() -> object:
    return xrt.explain(PROBLEM).kernel


class ScopeCase(unittest.TestCase):
    def setUp(self) -> None:
        self.usual = kernel()
        self.assertNotIn(self.usual, ("reference", "packed"))

    def tearDown(self) -> None:
        self.assertEqual(kernel(), self.usual)
