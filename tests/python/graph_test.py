"""CUDA graphs: calls that are recorded and replayed, by xpuruntime.cuda.graph and inside PyTorch's captures."""

from __future__ import annotations

import gc
import re
import threading
import unittest
import warnings
from pathlib import Path

import numpy as np

import xpuruntime as xrt
from xpuruntime import ops

with warnings.catch_warnings():
    warnings.simplefilter("ignore")
    try:
        import torch
    except ImportError:
        torch = None

PAGE = Path(__file__).resolve().parents[2] / "docs" / "cuda.md"
HAS_GPU = "cuda:0" in [str(device) for device in xrt.devices()]


class AnywhereTest(unittest.TestCase):
    def test_a_device_without_graphs_says_so(self):
        with self.assertRaisesRegex(xrt.NotSupportedError, "cpu record no graphs"):
            with xrt.cuda.graph("cpu"):
                self.fail("the block must not be entered")

    @unittest.skipIf(HAS_GPU, "there is a GPU")
    def test_without_a_gpu_the_reason_is_given(self):
        with self.assertRaisesRegex(xrt.NotSupportedError, "cuda:0 is not available"):
            xrt.cuda.graph().__enter__()

    def test_wrong_use_is_an_error(self):
        with self.assertRaisesRegex(ValueError, "nothing is recorded"):
            xrt.cuda.graph().replay()
        with self.assertRaisesRegex(ValueError, "not in its with block"):
            xrt.cuda.graph().__exit__(None, None, None)
        with self.assertRaises(xrt.UnknownNameError):
            xrt.cuda.graph("cuxa")


@unittest.skipUnless(HAS_GPU, "the CUDA backend has no device")
class OwnTensorsTest(unittest.TestCase):
    def setUp(self):
        self.a = np.random.default_rng(3).integers(-4, 5, (64, 64)).astype(np.float32)
        self.there = xrt.asarray(self.a).to("cuda:0")
        self.out = xrt.empty((64, 64), device="cuda:0")

    def expected(self):
        return np.maximum(self.a.astype(float) @ self.a, 0)

    def step(self):
        ops.relu(ops.matmul(self.there, self.there), out=self.out)

    def test_replays_what_was_recorded(self):
        self.step()
        ops.sub(self.out, self.out, out=self.out)
        with xrt.cuda.graph() as graph:
            self.step()
        self.assertEqual(str(graph.device), "cuda:0")
        np.testing.assert_array_equal(self.out.to("cpu").numpy(), 0 * self.a)
        for _ in range(3):
            graph.replay()
            np.testing.assert_array_equal(self.out.to("cpu").numpy(), self.expected())
            ops.sub(self.out, self.out, out=self.out)

    def test_what_was_not_run_before_is_refused_and_the_recording_goes_on(self):
        self.step()
        other = xrt.empty((777,), device="cuda:0")
        with xrt.cuda.graph() as graph:
            with self.assertRaisesRegex(xrt.NotSupportedError, "run the same calls once before the capture"):
                ops.relu(other)
            with self.assertRaisesRegex(xrt.NotSupportedError, "a graph is being recorded"):
                self.out.to("cpu")
            with self.assertRaisesRegex(ValueError, "recorded already"):
                xrt.cuda.graph().__enter__()
            with self.assertRaisesRegex(ValueError, "end the recording first"):
                graph.replay()
            self.step()
        graph.replay()
        np.testing.assert_array_equal(self.out.to("cpu").numpy(), self.expected())
        with self.assertRaisesRegex(ValueError, "recorded already"):
            graph.__enter__()

    def test_numbers_are_recorded_with_their_calls(self):
        ops.add(self.there, 2.0, out=self.out)
        ops.sub(self.out, self.out, out=self.out)
        with xrt.cuda.graph() as graph:
            ops.add(self.there, 2.0, out=self.out)
        graph.replay()
        np.testing.assert_array_equal(self.out.to("cpu").numpy(), self.a + 2)

    def test_a_block_that_raises_leaves_nothing(self):
        self.step()
        graph = xrt.cuda.graph()
        with self.assertRaises(ZeroDivisionError), graph:
            self.step()
            raise ZeroDivisionError
        with self.assertRaisesRegex(ValueError, "nothing is recorded"):
            graph.replay()
        self.step()  # runs again, and is not recorded
        np.testing.assert_array_equal(self.out.to("cpu").numpy(), self.expected())

    def test_other_threads_go_on_meanwhile(self):
        self.step()
        results = []

        def work():
            other = xrt.asarray(self.a).to("cuda:0")
            results.append(ops.matmul(other, other).to("cpu").numpy())

        with xrt.cuda.graph() as graph:
            self.step()
            thread = threading.Thread(target=work)
            thread.start()
            thread.join()
            self.step()
        np.testing.assert_array_equal(results[0], self.a.astype(float) @ self.a)
        graph.replay()
        np.testing.assert_array_equal(self.out.to("cpu").numpy(), self.expected())

    def test_tensors_of_the_recorded_calls_live_as_long_as_the_graph(self):
        self.step()
        with xrt.cuda.graph() as graph:
            self.step()
        del self.there
        gc.collect()
        others = [xrt.asarray(self.a * 0 + 9).to("cuda:0") for _ in range(8)]  # would get the memory
        graph.replay()
        np.testing.assert_array_equal(self.out.to("cpu").numpy(), self.expected())
        del others


@unittest.skipUnless(HAS_GPU and torch is not None and torch.cuda.is_available(), "no PyTorch with a GPU here")
class TorchTest(unittest.TestCase):
    def setUp(self):
        torch.manual_seed(0)
        self.x = torch.randint(-4, 5, (128, 128), device="cuda").float()
        self.out = torch.empty_like(self.x)

    def expected(self):
        return torch.relu(self.x.double() @ self.x.double()).float()

    def step(self):
        ops.relu(ops.matmul(self.x, self.x), out=self.out)

    def test_the_examples_of_the_page_run(self):
        blocks = re.findall(r"^```python\n(.*?)^```$", PAGE.read_text(encoding="utf-8"), re.MULTILINE | re.DOTALL)
        names: dict[str, object] = {}
        for block in blocks:
            exec(compile(block, "docs/cuda.md", "exec"), names)
        a, b, c = (names[name].to("cpu").numpy().astype(float) for name in "abc")
        np.testing.assert_allclose(c, a @ b, rtol=1e-2)
        x, w, y = (names[name].double() for name in "xwy")
        self.assertTrue(torch.allclose(y, x @ w + 1, rtol=1e-2))

    def test_arrays_of_pytorch_are_recorded_and_kept(self):
        self.step()
        self.out.zero_()
        with xrt.cuda.graph() as graph:
            self.step()  # the product between the two is the graph's alone
        self.assertEqual(float(self.out.abs().sum()), 0)
        others = [torch.full_like(self.x, 9) for _ in range(8)]  # would get its memory
        graph.replay()
        self.assertTrue(torch.equal(self.out, self.expected()))
        self.assertTrue(all(bool((other == 9).all()) for other in others))
        self.x.mul_(-1)
        self.x[0] = 3
        graph.replay()
        self.assertTrue(torch.equal(self.out, self.expected()))

    def test_a_thousand_replays_beside_other_work_give_the_same_bits(self):
        x, weight = (torch.randn(n, 4096, device="cuda", dtype=torch.bfloat16) for n in (48, 1000))
        out, other = (torch.empty(48, 1000, device="cuda", dtype=torch.bfloat16) for _ in range(2))

        def step():
            ops.softmax(ops.linear(x, weight), -1, out=out)

        step()
        expected, different = out.clone(), torch.zeros((), device="cuda", dtype=torch.int64)
        with xrt.cuda.graph() as graph:
            step()
        for _ in range(1000):
            out.zero_()
            graph.replay()
            ops.linear(x, weight, out=other)
            different += (out != expected).sum()
        self.assertEqual(different.item(), 0)

    def test_a_replay_goes_onto_pytorchs_current_stream(self):
        self.step()
        with xrt.cuda.graph() as graph:
            self.step()
        expected = torch.relu((3 * self.x.double()) @ (3 * self.x.double())).float()
        torch.cuda.synchronize()
        side = torch.cuda.Stream()
        with torch.cuda.stream(side):
            torch.cuda._sleep(50_000_000)  # what comes next on this stream must wait
            self.x.mul_(3)
            graph.replay()
            copy = self.out.clone()
        side.synchronize()
        self.assertTrue(torch.equal(copy, expected))

    def test_calls_are_recorded_in_a_capture_of_pytorch(self):
        self.step()
        torch.cuda.synchronize()
        graph = torch.cuda.CUDAGraph()
        with torch.cuda.graph(graph):
            with self.assertRaisesRegex(xrt.NotSupportedError, "run the same calls once before the capture"):
                ops.relu(self.x[:7, :13])
            self.step()
            self.out += 1
        for factor in (1, 2):
            self.x.mul_(factor)
            graph.replay()
            self.assertTrue(torch.equal(self.out, self.expected() + 1))
            self.step()  # eager calls between, with workspace of their own
            self.assertTrue(torch.equal(self.out, self.expected()))


if __name__ == "__main__":
    unittest.main()
