"""Errors that reach Python advise what a Python program can write."""

import pathlib
import re
import unittest

import xpuruntime as xrt

ROOT = pathlib.Path(__file__).resolve().parents[2]
LITERAL = re.compile(r'"((?:[^"\\\n]|\\.)*)"')
CALL = re.compile(r"\b(?:\w*fail\w*|refuse\w*|raise_type_error)\s*\((.*?)\);", re.S)
# What only a C++ program can get wrong: no binding hands such a thing on.
ONLY_IN_CPP = {"register_device", "call_all", "Attributes", "make_kernel", "find_op", "min_inputs", "max_inputs",
               "layered_scope"}
# Words of other packages, of problem texts and of the system.
NOT_OURS = {"arch_prctl", "resolve_neg", "forward_ad", "unpack_dual", "no_grad", "ml_dtypes", "workspace_limit",
            "max_version", "head_size", "inline_local_functions", "convert_version"}


def advice(source: str) -> list[str]:
    """What follows the first semicolon of each error text."""
    source = re.sub(r"//[^\n]*", "", source)
    texts = [" ".join(LITERAL.findall(call)) for call in CALL.findall(source)]
    return [text.partition(";")[2] for text in texts if ";" in text]


class AdviceTest(unittest.TestCase):
    def test_the_search_finds_advice_in_calls_of_every_shape(self) -> None:
        source = 'fail(code, "f",\n  "no " + x + "; ask " "Runtime::x");  // fail("; y")\n refuse_it("a; b_c");'
        self.assertEqual(advice(source), [" ask  Runtime::x", " b_c"])

    def test_no_advice_names_what_python_has_not(self) -> None:
        here = {name for path in (ROOT / "docs").glob("api*.md") for name in re.findall(r"\w+", path.read_text("utf-8"))}
        files = [path for folder in ("src", "include") for path in (ROOT / folder).rglob("*")
                 if path.suffix in (".h", ".cpp") and "cli" not in path.parts]
        found = 0
        for path in files:
            for text in advice(path.read_text(encoding="utf-8")):
                found += 1
                self.assertNotIn("::", text, path)
                named = set(re.findall(r"\b[a-z]+_[a-z_]+\b|\b[A-Z]\w+(?=\()", text))
                self.assertEqual(named - here - ONLY_IN_CPP - NOT_OURS, set(), f"{path}: {text}")
        self.assertGreater(found, 200)

    def test_errors_name_functions_as_python_writes_them(self) -> None:
        selector = xrt.KernelSelector("cpu")
        for text, call in (
            (r"^\[KernelPolicy\.load\] ", lambda: xrt.KernelPolicy.load("/no/such/file")),
            (r"^\[KernelPolicy\.from_json\] ", lambda: xrt.KernelPolicy.from_json("{")),
            (r"^\[KernelSelector\.select\] .*; use that device's selector$",
             lambda: selector.select("relu(f32[8]) @cuda:0")),
        ):
            with self.assertRaisesRegex(xrt.XpuRuntimeError, text):
                call()


if __name__ == "__main__":
    unittest.main()
