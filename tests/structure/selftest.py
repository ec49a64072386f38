#!/usr/bin/env python3
"""The structure checks themselves: each must fail on the fault it is there for, and on nothing else."""
import shutil
import subprocess
import tempfile
import unittest
from pathlib import Path

import check_docs
import check_exports
import check_layers
import check_links
import check_private
import check_quiet
import check_style


class Tree(unittest.TestCase):
    """A small project in a temporary folder."""

    def setUp(self):
        self.root = Path(self.enterContext(tempfile.TemporaryDirectory())).resolve()

    def write(self, name, text):
        path = self.root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")
        return path


class Layers(Tree):
    def test_takes_includes_that_point_left(self):
        self.write("include/xpuruntime/core/a.h", "#include <vector>\n")
        self.write("include/xpuruntime/select/b.h", '#include "xpuruntime/core/a.h"\n')
        self.write("src/select/b.cpp", '#include "xpuruntime/select/b.h"\n#include "nlohmann/json.hpp"\n')
        self.write("src/backends/cpu/k.cpp", '#include "xpuruntime/registry/kernel.h"\n')
        self.write("src/runtime/builtin.cpp", '#include "backends/cpu/k.h"\n')
        self.write("bench/b.cpp", '#include "xpuruntime/xpuruntime.h"\n')
        self.assertEqual(check_layers.check(self.root), [])

    def test_refuses_an_include_that_points_right(self):
        self.write("include/xpuruntime/core/a.h", "\n#include <xpuruntime/select/b.h>\n")
        (problem,) = check_layers.check(self.root)
        self.assertIn("include/xpuruntime/core/a.h:2", problem)

    def test_sees_through_private_and_relative_includes(self):
        self.write("src/select/b.h", "")
        self.write("src/core/a.cpp", '#include "select/b.h"\n')
        self.write("src/core/c.cpp", '#include "../select/b.h"\n')
        self.assertEqual(len(check_layers.check(self.root)), 2)

    def test_refuses_a_pair_that_includes_each_other(self):
        self.write("src/select/b.h", '#include "dispatch/c.h"\n')
        self.write("src/dispatch/c.h", '#include "select/b.h"\n')
        self.assertIn("a circle: dispatch <- select <- dispatch", check_layers.check(self.root))

    def test_refuses_a_pair_of_subfolders_of_one_layer(self):
        self.write("src/select/b.h", '#include "select/rules/c.h"\n')
        self.write("src/select/rules/d.h", '#include "select/b.h"\n')
        self.assertEqual(check_layers.check(self.root), ["a circle: select <- select/rules <- select"])

    def test_refuses_folders_that_lead_back_to_themselves_through_sources(self):
        self.write("src/select/p/a.cpp", '#include "select/q/b.h"\n')
        self.write("src/select/q/b.cpp", '#include "select/r/c.h"\n')
        self.assertEqual(check_layers.check(self.root), [])
        self.write("src/select/r/c.cpp", '#include "select/p/a.h"\n')
        self.assertEqual(check_layers.check(self.root),
                         ["a circle: select/p <- select/r <- select/q <- select/p"])

    def test_refuses_headers_that_lead_back_to_themselves(self):
        for suffix in ("h", "cuh"):
            self.write(f"src/select/b.{suffix}", f'#include "select/c.{suffix}"\n')
            self.write(f"src/select/c.{suffix}", f'#include "d.{suffix}"\n')
            self.write(f"src/select/d.{suffix}", "")
            self.assertEqual(check_layers.check(self.root), [])
            end = self.write(f"src/select/d.{suffix}", f'#include "select/b.{suffix}"\n')
            (problem,) = check_layers.check(self.root)
            self.assertIn(f"src/select/c.{suffix}", problem)
            end.write_text("", encoding="utf-8")

    def test_refuses_modules_that_lead_back_to_themselves(self):
        one, two = "src/python/xpuruntime/one.py", "src/python/xpuruntime/more/two.py"
        self.write("src/python/xpuruntime/__init__.py", "from . import _core\nfrom .one import f\n")
        self.write("src/python/xpuruntime/more/__init__.py", "")
        for there in ("from .more import two", "from .more.two import g", "def f():\n    from .more.two import (\n  g)",
                      "import os, xpuruntime.more.two", "from xpuruntime.more import two as g"):
            self.write(one, there + "\n")
            self.write(two, "from .. import _core\n")
            self.assertEqual(check_layers.check(self.root), [], there)
            for back in ("from .. import one", "if TYPE_CHECKING:\n    from ..one import f", "from .. import f"):
                self.write(two, back + "\n")
                (problem,) = check_layers.check(self.root)
                self.assertIn(one, problem)

    def test_keeps_backends_below_the_registry_and_apart(self):
        self.write("src/backends/cpu/k.cpp", '#include "xpuruntime/tune/t.h"\n')
        self.write("src/backends/opencl/k.cpp", '#include "backends/cpu/k.h"\n')
        self.assertEqual(len(check_layers.check(self.root)), 2)

    def test_lets_only_the_runtime_name_backends(self):
        for folder in ("src/registry", "src/dispatch", "src/cli", "bench"):
            self.write(f"{folder}/x.cpp", '#include "backends/cpu/k.h"\n')
        self.assertEqual(len(check_layers.check(self.root)), 4)

    def test_refuses_a_folder_it_does_not_know(self):
        self.write("src/misc/x.cpp", '#include "xpuruntime/core/a.h"\n')
        self.assertIn("not in the architecture", check_layers.check(self.root)[0])


class Built(Tree):
    """With a compiler."""

    def setUp(self):
        if not shutil.which("g++"):
            self.skipTest("g++ is not installed")
        super().setUp()

    def build(self, code, *options, name="libx.so"):
        source = self.write("x.cpp", code)
        subprocess.run(["g++", "-fPIC", source, "-o", self.root / name, *options], check=True)
        return str(self.root / name)

    def library(self, code, *options):
        return self.build(code, "-shared", *options)


class Quiet(Built):
    def test_finds_what_a_library_or_an_object_imports(self):
        self.assertEqual(check_quiet.check_binaries([self.library("int f() { return 1; }")]), [])
        for code in ("#include <cstdio>\nvoid f(int x) { std::printf(\"%d\", x); }",
                     "#include <cstdlib>\nvoid f() { std::abort(); }",
                     "#include <iostream>\nvoid f() { std::cerr << 1; }"):
            self.assertNotEqual(check_quiet.check_binaries([self.library(code)]), [], code)
            self.assertNotEqual(check_quiet.check_binaries([self.build(code, "-c", name="x.cpp.o")]), [], code)

    def test_takes_the_terminate_handler_of_a_static_runtime(self):
        library = self.library("#include <stdexcept>\nvoid f() { throw std::runtime_error(\"x\"); }", "-static-libstdc++")
        self.assertEqual(check_quiet.check_binaries([library]), [])

    def test_finds_what_a_source_says(self):
        loud = self.write("src/core/a.cpp", "// abort()\nvoid f() { std::abort(); }\n")
        self.assertEqual(check_quiet.check_source(loud), [f"{loud}:2: says std::abort("])
        asking = self.write("src/core/c.cpp", "auto v = std::getenv(name);\nauto w = secure_getenv(name);\n")
        self.assertEqual(check_quiet.check_source(asking), [f"{asking}:1: says std::getenv("])
        calm = self.write("src/core/b.cpp", 'static_assert(true);\nauto s = "exit(1)";\nvoid g() { snprintf(s); on_exit(); }\n')
        self.assertEqual(check_quiet.check_source(calm), [])

    def test_lets_the_command_print(self):
        self.write("src/cli/main.cpp", "#include <iostream>\n")
        self.assertEqual(check_quiet.check(self.root, []), [])


class Private(Built):
    def test_takes_thread_local_storage_that_can_come_late(self):
        code = "thread_local int x; int f() { return x; }"
        self.assertEqual(check_private.check([self.library(code)]), [])

    def test_finds_static_thread_local_storage(self):
        code = '__attribute__((tls_model("initial-exec"))) thread_local int x; int f() { return x; }'
        self.assertRegex(check_private.check([self.library(code)])[0], "static thread-local storage")

    def test_finds_what_is_shared_with_others(self):
        code = 'extern "C" void cblas_sgemm() {}'
        (problem,) = check_private.check([self.library(code)])
        self.assertIn("shares cblas_sgemm", problem)
        (problem,) = check_private.check([self.library("int x;", "-Wl,-soname,libdnnl.so.2")])
        self.assertIn("is or needs libdnnl.so.2", problem)


class Exports(Built):
    VERSIONS = "XPURUNTIME_0 { global: *shown*; }; XPURUNTIME_PRIVATE_0 { global: *lent*; local: *; };"

    def check(self, code, versions=VERSIONS):
        self.write("include/a.h", "namespace xpuruntime {\nint shown(int x);\n}\n")
        self.write("src/b.h", "namespace xpuruntime {\nint lent();\n}\n")
        script = self.write("a.map", versions)
        return check_exports.check(self.root, self.library(code, f"-Wl,--version-script,{script}"))

    def test_takes_what_headers_declare(self):
        code = "namespace xpuruntime { int shown(int x) { return x; } int lent() { return 1; } int own() { return 2; } }"
        self.assertEqual(self.check(code), [])

    def test_finds_what_no_header_declares(self):
        code = "namespace xpuruntime { int shown(int x) { return x; } int shown_too() { return 1; } }"
        self.assertEqual(self.check(code), ["xpuruntime::shown_too() is no name of a header"])

    def test_finds_what_has_no_version(self):
        code = "namespace xpuruntime { int shown(int x) { return x; } }"
        problems = self.check(code, "{ global: *shown*; local: *; };")
        self.assertEqual(problems[0], "xpuruntime::shown(int) has the version ''")

    def test_finds_what_is_missing(self):
        (problem,) = self.check("namespace xpuruntime { int lent() { return 1; } }")
        self.assertIn("shown is not exported", problem)


class Style(Tree):
    def test_takes_a_plain_file(self):
        self.write("src/core/a.cpp", "int a;\n")
        self.assertEqual(check_style.check(self.root), [])

    def test_refuses_long_files_tabs_and_loose_ends(self):
        for text in ("int a;\n" * 601, "\tint a;\n", "int a; \n", "int a;"):
            self.write("src/core/a.cpp", text)
            self.assertEqual(len(check_style.check(self.root)), 1, text[:20])


class Links(Tree):
    def test_takes_links_that_lead_somewhere(self):
        self.write("docs/a.md", "# One two\n")
        self.write("README.md", "[a](docs/a.md#one-two) [b](https://example.org) `[c](no.md)`\n")
        self.assertEqual(check_links.check(self.root), [])

    def test_refuses_missing_files_and_headings(self):
        self.write("docs/a.md", "# One\n")
        self.write("README.md", "[a](docs/a.md#two)\n[b](docs/b.md)\n\n[c]: nowhere.md\n")
        self.assertEqual(len(check_links.check(self.root)), 3)


class Docs(Tree):
    @unittest.skipUnless(shutil.which("g++"), "g++ is not installed")
    def test_compiles_marked_examples_only(self):
        self.write("include/a.h", "int a();\n")
        self.write("README.md", '```cpp\n// compiles\n#include "a.h"\nint b() { return a(); }\n```\n')
        self.write("docs/a.md", "```cpp\nnot marked\n```\n")
        self.assertEqual(check_docs.check_examples(self.root, "g++"), [])
        self.write("docs/b.md", "# B\n\n```cpp\n// compiles\nint b() { return a(); }\n```\n")
        (problem,) = check_docs.check_examples(self.root, "g++")
        self.assertTrue(problem.startswith("docs/b.md:3:"), problem)

    def test_wants_the_strangers_program_in_the_readme(self):
        self.write(check_docs.STRANGER, "// Own comment.\nint main() {}\n")
        self.write("README.md", "```cpp\n// compiles\nint main() {}\n```\n")
        self.assertEqual(check_docs.check_stranger(self.root), [])
        self.write("README.md", "```cpp\n// compiles\nint main() { return 0; }\n```\n")
        self.assertEqual(len(check_docs.check_stranger(self.root)), 1)

    def test_wants_names_whole_as_code_and_under_their_seed(self):
        seeds = {"000": "Get", "001": "Set"}
        self.assertEqual(check_docs.check_seeds("## Seed 000\n`Get`\n## Seed 001\n`A.Set()`\n", seeds), [])
        for text in ("## Seed 000\n`Set`\n## Seed 001\n`Get`\n", "## Seed 000\n`GetAll`\n## Seed 001\nSet\n", ""):
            self.assertEqual(len(check_docs.check_seeds(text, seeds)), 2, text)

    def test_finds_a_key_that_the_page_does_not_list(self):
        for _, path, _ in check_docs.LISTED:
            self.write(path, "")
        self.write("src/select/decision.cpp", 'x = {{"kernel", k}, {"reason", r}};\n')
        self.write("docs/interfaces.md", "## Decision\n`kernel`\n## Trace\n`reason`\n")
        problems = check_docs.check_interfaces(self.root)
        self.assertIn("docs/interfaces.md: Decision: reason of src/select/decision.cpp is not there", problems)
        self.assertEqual([p for p in problems if "kernel of" in p], [])

    def test_wants_the_chapter_on_ops_to_show_what_is_there(self):
        self.write("src/a.cpp", "int twice(int x) {\n  return 2 * x;\n}\n")
        for name in ("bench/a.cpp", "docs/a.md", "src/cuda/a.cu", "src/graph/passes/a.cpp", "tests/a_test.py"):
            self.write(name, "twice(1);\n")
        self.write("include/a.h", "// Made by tools/a.py\nint twice(int x);\n")
        shown = "## Add an op\n\n`twice`, in `src/a.cpp`:\n\n```cpp\n  return 2 * x;\n```\n\n## Next\n`src/b.cpp`\n"
        self.write("CONTRIBUTING.md", shown)
        self.assertEqual(check_docs.check_op_chapter(self.root), [])
        for wrong in (shown.replace("2 * x", "3 * x"), shown.replace("a.cpp", "b.cpp"), shown.replace("`twice`", "`thrice`"),
                      shown.replace("## Next", "`src/b.cpp`\n\n## Next"), "# Nothing\n"):
            self.write("CONTRIBUTING.md", wrong)
            self.assertNotEqual(check_docs.check_op_chapter(self.root), [], wrong)
        self.write("CONTRIBUTING.md", shown)
        self.write("tests/a.h", "twice(2);\n")
        (problem,) = check_docs.check_op_chapter(self.root)
        self.assertIn("tests/a.h names twice too", problem)
        names = ["tests/a.h", *(f"src/{letter}.cpp" for letter in "bcdef")]
        for name in names:
            self.write(name, "twice(3);\n")
        self.write("CONTRIBUTING.md", shown.replace("## Next", "".join(f"`{name}`\n" for name in names) + "\n## Next"))
        (problem,) = check_docs.check_op_chapter(self.root)
        self.assertIn("it names 7 files", problem)

    def test_counts_the_files_of_each_op_of_the_decoder(self):
        self.write(check_docs.DECODER, "{OpId::twice, prepare_twice_simd},\n{OpId::once, prepare_once},\n")
        for name in ("src/a.cpp", "include/a.h", "src/b_plan.cpp", "tests/a_test.cpp", "tests/b_test.py"):
            self.write(name, "twice(1);\n")
        self.write("tests/a.h", "twiceness\n")
        self.assertEqual(check_docs.check_op_places(self.root), [])
        self.write("src/c.cpp", "prepare_twice_reference\n")
        (problem,) = check_docs.check_op_places(self.root)
        self.assertIn("twice is in more than four files: include/a.h, ", problem)


if __name__ == "__main__":
    unittest.main()
