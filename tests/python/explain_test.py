"""explain and its Decision; what is here: kernels, ops, devices; plans in quarantine."""

import html.parser
import json
import re
import unittest

import numpy as np

import xpuruntime as xrt

PROBLEM = "matmul(f32[64,64], f32[64,64])"


class Cells(html.parser.HTMLParser):
    """The texts of a table's cells, row by row."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.rows: list[list[str]] = []
        self.inside = False
        self.feed(text)

    def handle_starttag(self, tag: str, attributes: object) -> None:
        if tag == "tr":
            self.rows.append([])
        if tag in ("td", "th"):
            self.rows[-1].append("")
        self.inside = tag in ("td", "th")

    def handle_endtag(self, tag: str) -> None:
        self.inside = False

    def handle_data(self, data: str) -> None:
        if self.inside:
            self.rows[-1][-1] += data


class ExplainTest(unittest.TestCase):
    def test_a_text_gives_the_choice_and_why(self) -> None:
        with xrt.with_policy(matmul=["cublasLt", "packed"]):
            decision = xrt.explain(PROBLEM)
        self.assertEqual((decision.kernel, decision.level), ("packed", "prefer"))
        self.assertEqual(str(decision.problem), PROBLEM + " @cpu:0")
        by_name = {candidate.kernel: candidate for candidate in decision.candidates}
        self.assertEqual(by_name["packed"].outcome, "chosen")
        self.assertEqual(by_name["skinny"].outcome, "refused")
        self.assertIn("both over 8", by_name["skinny"].reason)
        self.assertEqual(by_name["reference"].outcome, "passed")
        self.assertIsNone(by_name["reference"].time_us)
        self.assertEqual(decision.precision.forward, "f32")
        self.assertEqual(decision.casts, [])

    def test_the_dict_is_what_the_interface_says(self) -> None:
        decision = xrt.explain(PROBLEM)
        document = decision.to_dict()
        self.assertEqual(document, json.loads(decision.to_json()))
        self.assertEqual(decision.to_json(None), decision.to_json(-1))
        self.assertNotIn("\n", decision.to_json(None))
        names = "version problem device kernel kernel_version level because precision casts copies plan"
        names += " workspace_bytes candidates"
        self.assertEqual(list(document), names.split())
        for name in ("kernel", "kernel_version", "level", "because", "plan", "workspace_bytes"):
            self.assertEqual(document[name], getattr(decision, name), name)
        self.assertEqual(document["problem"], str(decision.problem))
        for row, candidate in zip(document["candidates"], decision.candidates, strict=True):
            self.assertEqual((row["kernel"], row["verdict"]), (candidate.kernel, candidate.outcome))

    def test_tensors_are_explained_as_their_call_would_be_decided(self) -> None:
        a, b = np.ones((64, 64), np.float32), np.ones((64, 32), np.float32)
        decision = xrt.explain("matmul", a, b)
        self.assertEqual(decision.problem.op, "matmul")
        self.assertEqual([spec.shape for spec in decision.problem.inputs], [(64, 64), (64, 32)])
        with xrt.with_policy(matmul={"kernel": "reference", "mode": "force"}):
            self.assertEqual(xrt.explain("matmul", a, b).level, "force")

    def test_casts_are_those_that_the_call_makes(self) -> None:
        x = np.ones((8, 12), np.float32)
        with xrt.autocast("bf16"):
            casts = [str(cast) for cast in xrt.explain("linear", x, x).casts]
            into_f32 = xrt.explain("linear", x, x, out=np.empty((8, 8), np.float32)).casts
        self.assertEqual(len(casts), 2, casts)  # of the inputs: the result stays as it is
        self.assertEqual(len(into_f32), 3)

    def test_a_problem_object_is_as_good_as_its_text(self) -> None:
        self.assertEqual(xrt.explain(xrt.Problem(PROBLEM)), xrt.explain(PROBLEM))
        self.assertNotEqual(xrt.explain(PROBLEM), xrt.explain("relu(f32[8])"))

    def test_a_force_that_cannot_be_had_is_no_kernel_and_says_why(self) -> None:
        with xrt.with_policy(matmul={"kernel": "skinny", "mode": "force"}):
            decision = xrt.explain(PROBLEM)
        self.assertIsNone(decision.kernel)
        self.assertIn("skinny", decision.because)
        self.assertIn("nothing can run this", str(decision))
        self.assertIsNone(decision.to_dict()["kernel"])

    def test_it_prints_readably(self) -> None:
        decision = xrt.explain(PROBLEM)
        first, second = str(decision).splitlines()[:2]
        self.assertEqual(first, PROBLEM + " @cpu:0")
        self.assertTrue(second.startswith(f"  -> {decision.kernel} [strategy] "), second)
        self.assertEqual(repr(decision), f"Decision({PROBLEM} @cpu:0 -> {decision.kernel} [strategy])")

    def test_notebooks_get_a_table_with_a_row_for_each_candidate(self) -> None:
        decision = xrt.explain(PROBLEM)
        head, *rows = Cells(decision._repr_html_()).rows
        self.assertEqual(head, ["kernel", "verdict", "time, us", "workspace, bytes", "reason"])
        self.assertEqual(
            [(row[0], row[1], row[4]) for row in rows],
            [(candidate.kernel, candidate.outcome, candidate.reason) for candidate in decision.candidates],
        )

    def test_the_table_escapes_what_others_wrote(self) -> None:
        name = '<b onclick="x">&'
        with xrt.with_policy(rules=[{"op": "matmul", "use": "reference", "name": name}]):
            text = xrt.explain(PROBLEM)._repr_html_()
        self.assertNotIn(name, text)
        self.assertIn("&lt;b onclick=&quot;x&quot;&gt;&amp;", text)

    def test_bad_questions(self) -> None:
        for use in (lambda: xrt.explain(3), lambda: xrt.explain("matmul", transpose_a=True), lambda: xrt.explain(None)):
            with self.assertRaises(xrt.ArgumentTypeError):
                use()
        for text in ("", "matmul(", "matmull(f32[2,2], f32[2,2])", "matmul(f32[2,3], f32[2,3])", "matmul"):
            with self.subTest(text), self.assertRaises(ValueError):
                xrt.explain(text)
        with self.assertRaisesRegex(xrt.NotSupportedError, "kunlun:0 is not here"):
            xrt.explain("relu(f32[8]) @kunlun:0")


class ListingTest(unittest.TestCase):
    def test_kernels_of_an_op_by_any_name_and_device(self) -> None:
        names = xrt.get_available_kernels("MatMul", device="cpu")
        self.assertEqual(names[-1], "reference")
        self.assertEqual(names, [candidate.kernel for candidate in xrt.explain(PROBLEM).candidates])
        self.assertEqual(xrt.get_available_kernels("matmul")[: len(names)], names)  # then those of other devices
        self.assertEqual(xrt.get_available_kernels("matmul", device="npu"), [])
        here = {device.type for device in xrt.devices()}
        self.assertEqual("cublasLt" in xrt.get_available_kernels("matmul"), "cuda" in here)

    def test_every_registered_op_has_a_kernel(self) -> None:
        ops = xrt.get_registered_ops()
        self.assertEqual(len(ops), len(set(ops)))
        for op in ops:
            self.assertTrue(xrt.get_available_kernels(op), op)

    def test_dtypes_that_the_rows_of_two_operand_kernels_list_are_taken(self) -> None:
        for row in xrt._core.op_rows():
            if row["name"] not in ("add", "sub", "mul", "div"):
                continue
            listed = next(kernel["dtypes"] for kernel in row["kernels"] if kernel["name"] == "simd")
            for dtype in re.split(", | and ", listed):
                with self.subTest(op=row["name"], dtype=dtype):
                    problem = f"{row['name']}({dtype}[8], {dtype}[8])"
                    self.assertEqual(xrt.explain(problem).kernel, "simd")

    def test_the_cpu_is_the_first_device_and_has_a_profile(self) -> None:
        self.assertEqual(str(xrt.devices()[0]), "cpu:0")
        self.assertEqual(xrt.device_profile().type, "cpu")
        self.assertEqual(xrt.device_profile("cpu:0"), xrt.device_profile(xrt.devices()[0]))

    def test_bad_questions(self) -> None:
        with self.assertRaisesRegex(ValueError, "did you mean matmul"):
            xrt.get_available_kernels("matmull")
        for use in (lambda: xrt.get_available_kernels(3), lambda: xrt.device_profile(3)):
            with self.assertRaises(TypeError):
                use()
        with self.assertRaises(xrt.XpuRuntimeError):
            xrt.device_profile("kunlun")


class QuarantineTest(unittest.TestCase):
    def test_a_plan_that_failed_is_listed_until_it_is_cleared(self) -> None:
        def fail(problem: object, *tensors: object, **more: object) -> None:
            raise RuntimeError("no")

        self.addCleanup(xrt.clear_quarantine)
        xrt.register_kernel("always_fails", "relu", fail)
        self.addCleanup(xrt.unregister_kernel, "always_fails", "relu")
        with xrt.with_policy(relu="always_fails"):
            result = xrt.ops.relu(np.array([-1, 2], np.float32))
        self.assertEqual(result.tolist(), [0, 2])  # the next kernel did it
        (plan,) = xrt.quarantined()
        self.assertEqual((plan.kernel, plan.problem.op), ("always_fails", "relu"))
        self.assertIn("no", plan.reason)
        xrt.clear_quarantine()
        self.assertEqual(xrt.quarantined(), [])


if __name__ == "__main__":
    unittest.main()
