"""The wheel: what it carries, what it says of itself, what it links, and that it works in an empty environment."""

import os
import re
import shutil
import subprocess
import sys
import tempfile
import unittest
import venv
import zipfile
from email.parser import Parser
from pathlib import Path

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


@unittest.skipUnless(BUILD and shutil.which("readelf"), "runs in the build tree, with binutils")
class WheelTest(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        try:
            import scikit_build_core  # noqa: F401
        except ImportError:
            raise unittest.SkipTest("scikit-build-core is not installed") from None
        cls.folder = tempfile.TemporaryDirectory()
        cls.addClassCleanup(cls.folder.cleanup)
        cls.wheel = cls.make_wheel(Path(cls.folder.name))
        cls.unpacked = Path(cls.folder.name) / "unpacked"
        with zipfile.ZipFile(cls.wheel) as archive:
            archive.extractall(cls.unpacked)

    @classmethod
    def make_wheel(cls, folder):
        """From what is built already: the same CMake folder, with the settings that it has."""
        cache = Path(BUILD, "CMakeCache.txt").read_text(encoding="utf-8")
        kept = {name: value for name, value in re.findall(r"^([\w.]+):\w+=(.*)$", cache, re.M)}
        names = [name for name in kept if name.startswith("XRT_") and name != "XRT_CCACHE"] + ["CMAKE_CXX_FLAGS_DEBUG"]
        settings = [f"--config-settings=cmake.define.{name}={kept[name]}" for name in names]
        run(
            sys.executable, "-m", "pip", "wheel", "--no-build-isolation", "--no-deps", "--no-index", f"--wheel-dir={folder}",
            f"--config-settings=build-dir={BUILD}", f"--config-settings=cmake.build-type={kept['CMAKE_BUILD_TYPE']}",
            *settings, str(ROOT),
        )  # fmt: skip
        (wheel,) = folder.glob("*.whl")
        return wheel

    def test_it_carries_the_library_the_command_and_the_types(self):
        package = self.unpacked / "xpuruntime"
        expected = ["__init__.py", "py.typed", "_core.pyi", "ops.pyi", "bin/xrt", "include/xpuruntime/runtime/runtime.h"]
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
        environment = Path(self.folder.name) / "empty"
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
        kernel, version, *libraries = run(python, "-c", program, env=clean, cwd=self.folder.name).split()
        self.assertTrue(kernel)
        with_onednn = (self.unpacked / "xpuruntime" / "lib" / "xpuruntime" / "libxpuruntime_onednn.so").is_file()
        self.assertEqual(libraries, ["onednn", "openblas"] if with_onednn else ["openblas"])
        self.assertEqual(run(environment / "bin" / "xrt", "--version", env=clean).split()[-1], version)
        self.assertIn("cpu:0", run(environment / "bin" / "xrt", "devices", env=clean))
        failed = subprocess.run([environment / "bin" / "xrt", "explain", "nonsense"], capture_output=True, env=clean)
        self.assertEqual(failed.returncode, 2)


if __name__ == "__main__":
    unittest.main()
