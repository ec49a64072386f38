"""OpenclKernel, WorkGroupTuner and Autotuner: kernels of the user's own in OpenCL C."""

import os
import subprocess
import sys
import tempfile
import unittest
from pathlib import Path

SCRATCH = tempfile.TemporaryDirectory()
os.environ["XPURUNTIME_STORE"] = f"{SCRATCH.name}/store.sqlite"  # what is tuned here is not for the user's own

import numpy as np  # noqa: E402
import xpuruntime as xrt  # noqa: E402

SCALE = """
__kernel void scale(__global float* x, float by, ulong count) {
  const ulong i = get_global_id(0);
  if (i < count) x[i] *= by;
}
"""
RELU = """
__kernel void python_relu(__global const float* in, __global float* out, ulong count) {
  const ulong i = get_global_id(0);
  if (i < count) out[i] = fmax(in[i], 0.0f) + 0.5f;
}
"""


@unittest.skipUnless("opencl:0" in [str(device) for device in xrt.devices()], "needs an OpenCL device")
class OpenclKernelTest(unittest.TestCase):
    def on_device(self, *values):
        return xrt.asarray(np.array(values, np.float32)).to("opencl:0")

    def read(self, tensor):
        return tensor.to("cpu").numpy().tolist()

    def test_runs_in_one_call(self):
        x = self.on_device(1, 2, 3)
        xrt.OpenclKernel("scale", SCALE)(x, 2, 3, global_size=3)
        self.assertEqual(self.read(x), [2, 4, 6])

    def test_tensors_of_another_type_are_refused(self):
        half = xrt.asarray(np.ones(1000, np.float16)).to("opencl:0")
        with self.assertRaisesRegex(ValueError, "argument 0 of 'scale' is a tensor of f16"):
            xrt.OpenclKernel("scale", SCALE)(half, 2.0, 1000, global_size=1000)

    def test_work_groups_have_no_more_dims_than_the_launch(self):
        double = "%s __kernel void twice(__global float* x) { x[get_global_id(0)] *= 2.0f; }"
        x = self.on_device(1, 2, 3, 4)
        for kernel in (xrt.OpenclKernel("twice", double % "", work_group_size=(2, 2)),
                       xrt.OpenclKernel("twice", double.replace("void", "__attribute__((reqd_work_group_size(2, 2, 1))) void") % "")):
            with self.assertRaisesRegex(ValueError, "more dims than the global size"):
                kernel(x, global_size=4)
        self.assertEqual(self.read(x), [1, 2, 3, 4])

    def test_parameters_that_nothing_can_be_given_for_are_named(self):
        x = self.on_device(1, 2)
        for type in ("read_only image2d_t", "sampler_t"):
            source = f"__kernel void k(__global float* y, {type} c) {{ y[0] = 1.0f; }}"
            with self.assertRaisesRegex(xrt.NotSupportedError, f"parameter 1 of 'k' is '{type}', which cannot be given"):
                xrt.OpenclKernel("k", source)(x, x, global_size=1)

    def test_types_behind_a_typedef_are_checked(self):
        source = "typedef float R; typedef __global R* P; __kernel void k(P y, P a, R b) { y[0] = a[0] + b; }"
        kernel, x = xrt.OpenclKernel("k", source), self.on_device(1, 2)
        kernel(x, x, np.float32(3), global_size=1)
        self.assertEqual(self.read(x), [4, 2])
        with self.assertRaisesRegex(ValueError, "argument 1 of 'k' is a number"):
            kernel(x, np.int64(12345), 1.0, global_size=1)
        with self.assertRaises(ValueError):
            kernel(x, x, np.int64(3), global_size=1)

    def test_memory_is_not_exported_to_libraries_that_cannot_take_it(self):
        with self.assertRaisesRegex(xrt.XpuRuntimeError, r'tensor.to\("cpu"\)'):
            self.on_device(1, 2).__dlpack__()

    def test_takes_numpy_scalars_by_their_own_size(self):
        x = self.on_device(1, 2, 3)
        scale = xrt.OpenclKernel("scale", SCALE)
        scale(x, np.float32(0.5), np.uint64(3), global_size=[3])
        self.assertEqual(self.read(x), [0.5, 1, 1.5])
        with self.assertRaisesRegex(ValueError, "argument 1 of 'scale', of 8 bytes"):
            scale(x, np.float64(0.5), np.uint64(3), global_size=3)

    def test_numbers_that_no_float_is_are_errors(self):
        x = self.on_device(1, 2)
        scale = xrt.OpenclKernel("scale", SCALE)
        with self.assertRaisesRegex(ValueError, r"argument 1 is 1e\+300, which no float is"):
            scale(x, 1e300, 2, global_size=2)
        scale(x, float("inf"), 2, global_size=2)
        self.assertEqual(self.read(x), [float("inf")] * 2)

    def test_vectors_and_structs_are_passed_as_their_bytes(self):
        source = "typedef struct { float a; int b; } S; __kernel void k(__global float* x, float4 v, S s) {" \
                 " x[0] = v.w; x[1] = s.b; }"
        kernel, x = xrt.OpenclKernel("k", source), self.on_device(0, 0)
        vector, struct = np.array((1, 2, 3, 4), "f4,f4,f4,f4")[()], np.array((1, 7), "f4,i4")[()]
        kernel(x, vector, struct, global_size=1)
        self.assertEqual(self.read(x), [4, 7])
        for arguments, what in (((2.0, struct), "'float4'; pass all of its bytes as one NumPy scalar"),
                                ((vector, 2.0), "pass all of its bytes as one NumPy scalar"),
                                ((np.float32(2), struct), "does not fit its parameter 'float4', of 16")):
            with self.assertRaisesRegex(ValueError, what):
                kernel(x, *arguments, global_size=1)

    def test_a_number_for_what_takes_none_says_what_to_pass(self):
        x = self.on_device(1, 2)
        for type, error, what in (("read_only image2d_t", xrt.NotSupportedError, "which cannot be given"),
                                  ("__global float*", ValueError, "pass a tensor"),
                                  ("__local float*", ValueError, "pass LocalMemory"),
                                  ("half", ValueError, "pass a numpy.float16")):
            with self.subTest(type), self.assertRaisesRegex(error, what):
                xrt.OpenclKernel("k", f"__kernel void k(__global float* y, {type} c) {{}}")(x, 2, global_size=1)

    def test_a_source_with_a_nul_is_refused(self):
        with self.assertRaisesRegex(ValueError, "the source of 'scale' has a NUL character"):
            xrt.OpenclKernel("scale", SCALE + "\0 more")

    def test_huge_launches_are_refused(self):
        x = self.on_device(1, 2)
        for size, more in ((2**62, {}), (2**45, {"work_group_size": 8})):
            with self.assertRaisesRegex(ValueError, r"more than 2\^31 work-groups"):
                xrt.OpenclKernel("scale", SCALE, **more)(x, 2, 2, global_size=size)

    def test_tuning_with_an_argument_missing_says_so(self):
        x = self.on_device(*range(64))
        scale = xrt.OpenclKernel("scale", SCALE)
        for tune in (lambda: scale.tune(x, 2.0, global_size=64),
                     lambda: xrt.WorkGroupTuner(runs=1).tune(scale, x, 2.0, global_size=64),
                     lambda: xrt.Autotuner(runs=1).tune(scale, x, 2.0, global_size=64)):
            with self.assertRaisesRegex(ValueError, "'scale' has 3 parameters, and 2 arguments were given"):
                tune()

    def test_reads_a_file(self):
        with tempfile.TemporaryDirectory() as folder:
            path = Path(folder, "scale.cl")
            path.write_text(SCALE, encoding="utf-8")
            scale = xrt.OpenclKernel("scale", file=path, work_group_size=2)
        x = self.on_device(1, 2, 3)
        scale(x, 3.0, 3, global_size=3)
        self.assertEqual(self.read(x), [3, 6, 9])

    def test_builds_and_tells_its_limits(self):
        limits = xrt.OpenclKernel("scale", SCALE).build()
        self.assertEqual(limits["parameters"], 3)
        self.assertGreaterEqual(limits["max_items"], 1)

    def test_errors_say_what_is_wrong(self):
        x = self.on_device(1, 2, 3)
        scale = xrt.OpenclKernel("scale", SCALE)
        with self.assertRaisesRegex(ValueError, "has 3 parameters, and 1 arguments"):
            scale(x, global_size=3)
        for extra in (1, np.float32(1), x, xrt.LocalMemory(4)):
            with self.assertRaisesRegex(ValueError, "'scale' has 3 parameters, and 4 arguments were given"):
                scale(x, 2, 3, extra, global_size=3)
        with self.assertRaisesRegex(ValueError, "argument 1 of 'scale' is a tensor, and its parameter is 'float'"):
            scale(x, x, 3, global_size=3)
        with self.assertRaisesRegex(ValueError, "argument 2 of 'scale' is a tensor, and its parameter is 'ulong'"):
            scale(x, 2, x, global_size=3)
        for wrong in (-1, np.int64(-1), np.float64(3)):
            with self.assertRaisesRegex(ValueError, "argument 2 is .*ulong"):
                scale(x, 2, wrong, global_size=3)
        with self.assertRaisesRegex(ValueError, "0 bytes"):
            scale(x, 2, xrt.LocalMemory(0), global_size=3)
        with self.assertRaisesRegex(ValueError, "'scale' has 3 parameters, and relu|parameter 1 of 'scale' is 'float'"):
            scale.register_for("relu")
        with self.assertRaisesRegex(ValueError, "global_size has 4 numbers"):
            scale(x, 2, 3, global_size=[1, 1, 1, 1])
        with self.assertRaisesRegex(xrt.XpuRuntimeError, "cpu:0"):
            scale(np.ones(3, np.float32), 2, 3, global_size=3)
        with self.assertRaisesRegex(xrt.XpuRuntimeError, "line 1: __kernel void k\\(void\\) { nowhere = 1; }"):
            xrt.OpenclKernel("k", "__kernel void k(void) { nowhere = 1; }").build()
        with self.assertRaisesRegex(ValueError, "give the source or the file"):
            xrt.OpenclKernel("scale")
        self.assertEqual(self.read(x), [1, 2, 3])

    def test_serves_an_op(self):
        kernel = xrt.OpenclKernel("python_relu", RELU)
        kernel.register_for("relu")
        self.addCleanup(xrt.unregister_kernel, "python_relu", "relu", "opencl")
        self.assertEqual(self.read(xrt.ops.relu(self.on_device(-1, 2))), [0.5, 2.5])

    def test_tunes_on_copies(self):
        x = self.on_device(*range(64))
        scale = xrt.OpenclKernel("scale", SCALE, tune=True)
        result = scale.tune(x, 2.0, 64, global_size=64)
        self.assertEqual((result.kernel, result.global_size), ("scale", (64,)))
        self.assertGreater(len(result.trials), 3)
        self.assertEqual(self.read(x)[63], 63)
        scale(x, 2.0, 64, global_size=64)
        self.assertEqual(self.read(x)[63], 126)

    def test_tuners_have_the_seeds_names(self):
        x = self.on_device(*range(64))
        scale = xrt.OpenclKernel("scale", SCALE)
        sizes = xrt.WorkGroupTuner().candidates(scale, 64)
        self.assertEqual(sizes[:3], [None, (1,), (2,)])
        self.assertIn(xrt.WorkGroupTuner(runs=1).tune(scale, x, 2.0, 64, global_size=64).work_group_size, sizes)
        with tempfile.TemporaryDirectory() as folder:
            before = xrt.store_in_use()
            xrt.use_store(xrt.open_store(os.path.join(folder, "store.sqlite")))
            self.addCleanup(xrt.use_store, before)
            found = xrt.Autotuner(runs=1).tune(scale, x, 2.0, 64, global_size=64)
            self.assertEqual(xrt.Autotuner().known(scale, 64), (True, found.work_group_size))
            self.assertEqual(xrt.Autotuner().known(scale, 65), (False, None))
            xrt.use_store(before)

    def test_tuned_sizes_are_kept_in_the_users_store(self):
        text = "\n".join((
            "import sys, numpy as np, xpuruntime as xrt",
            f"scale = xrt.OpenclKernel('scale', '''{SCALE}''', tune=True)",
            "if sys.argv[1] == 'known': sys.exit(not xrt.Autotuner().known(scale, 64)[0])",
            "x = xrt.asarray(np.ones(64, np.float32)).to('opencl:0')",
            "if sys.argv[1] == 'run': scale(x, 2.0, 64, global_size=64)",
            "else: xrt.Autotuner(runs=1).tune(scale, x, 2.0, 64, global_size=64)"))
        for way in ("run", "tune"):
            with self.subTest(way), tempfile.TemporaryDirectory() as folder:
                environment = {**os.environ, "XPURUNTIME_STORE": f"{folder}/made/store.sqlite"}
                ended = [subprocess.run([sys.executable, "-c", text, what], env=environment, check=False).returncode
                         for what in ("known", way, "known")]
                self.assertEqual(ended, [1, 0, 0])


if __name__ == "__main__":
    unittest.main()
