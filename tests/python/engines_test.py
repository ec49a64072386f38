"""Engines behind one contract: which runs a model and why, and what hanging, crashing and absent ones come to."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
import threading
import time
import unittest
import unittest.mock
from pathlib import Path

from packages import need, optional

need("numpy", "onnx")

SCRATCH = tempfile.TemporaryDirectory()
# What is kept and measured here is not for the user's own.
os.environ.update(XPURUNTIME_STORE=f"{SCRATCH.name}/store.sqlite", XPURUNTIME_MODEL_CACHE=f"{SCRATCH.name}/models")

import fake_engines  # noqa: E402
import numpy as np  # noqa: E402
import onnx  # noqa: E402
from onnx import TensorProto, helper, numpy_helper  # noqa: E402

import xpuruntime as xrt  # noqa: E402
from xpuruntime.engines.native import Native  # noqa: E402

FAKES = ("fine", "npu", "hanging", "crashing", "absent", "picky", "keeping")


def save_model(path: str, ops: list[str], dtype: int = TensorProto.FLOAT) -> str:
    """y = the ops one after the other of x[batch, 4]."""
    names = ["x", *(f"v{i}" for i in range(1, len(ops))), "y"]
    nodes = [helper.make_node(op, [names[i]], [names[i + 1]], f"{op}{i}") for i, op in enumerate(ops)]
    values = [helper.make_tensor_value_info(name, dtype, ["batch", 4]) for name in "xy"]
    graph = helper.make_graph(nodes, "test", values[:1], values[1:])
    onnx.save(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8), path)
    return path


def on(engine: str, target: str = "cpu", **fields: object) -> xrt.ExecutionPolicy:
    return xrt.ExecutionPolicy(target=target, engine=engine, **fields)


def product_model(folder: str) -> str:
    values = [helper.make_tensor_value_info(name, TensorProto.FLOAT, ["n", "n"]) for name in "xy"]
    path = str(Path(folder, "product.onnx"))
    onnx.save(helper.make_model(helper.make_graph([helper.make_node("MatMul", ["x", "x"], ["y"])], "test", values[:1], values[1:]),
                                opset_imports=[helper.make_opsetid("", 17)], ir_version=8), path)
    return path


class EngineCase(unittest.TestCase):
    def setUp(self) -> None:
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = folder.name
        self.model = save_model(str(Path(self.folder, "model.onnx")), ["Exp", "Relu"])
        for name in FAKES:
            self.addCleanup(xrt.unregister_engine, name)

    def register(self, *names: str) -> None:
        for name in names:
            xrt.register_engine(name, getattr(fake_engines, name.title()))


class EngineTest(EngineCase):
    def test_native_takes_a_model_that_it_can_run_and_says_so(self) -> None:
        for execution in (None, on("auto"), on("native")):
            session = xrt.load(self.model, execution=execution)
            self.assertEqual((session.engine, session.record.target), ("native", "cpu"))
            self.assertFalse(session.record.is_fallback)
        self.assertEqual(session.because, "the execution policy names it")

    def test_an_engine_in_python_runs_under_its_name(self) -> None:
        self.register("fine")
        session = xrt.load(self.model, execution=on("fine"))
        self.assertEqual((session.engine, session.record.version), ("fine", "1.5"))
        for shape in ((3, 4), (1, 4), (0, 4)):
            x = np.arange(np.prod(shape), dtype=np.float32).reshape(shape)
            np.testing.assert_array_equal(session(x), x * 2)
        x = np.arange(12, dtype=np.float32).reshape(4, 3).T  # not contiguous
        np.testing.assert_array_equal(session(x), x * 2)
        with self.assertRaisesRegex(xrt.InvalidArgumentError, "the model takes 'x' f32"):
            session(np.ones((3, 5), np.float32))
        with self.assertRaisesRegex(xrt.NotSupportedError, "does not tell what each node is"):
            session.explain({"x": (3, 4)})
        profile = session.profile({"x": x}, runs=2)
        self.assertGreater(profile.run_us, 0)
        self.assertRegex(repr(profile), r"^<a run takes [0-9.]+ us, .*medians of 2 runs\)>$")

    def test_names_that_are_no_engines_are_errors_that_list_them(self) -> None:
        with self.assertRaisesRegex(xrt.UnknownNameError, "native.*onnxruntime"):
            xrt.load(self.model, execution=on("ours"))
        for name in ("", "Native", "a b"):
            with self.assertRaisesRegex(xrt.InvalidArgumentError, "engine is"):
                on(name)
        for name, engine, kind in (("native", "a:B", xrt.InvalidArgumentError), ("mine", "ab", xrt.InvalidArgumentError),
                                   ("mine", 3, xrt.ArgumentTypeError), ("Mine!", "a:B", xrt.InvalidArgumentError)):
            with self.assertRaises(kind):
                xrt.register_engine(name, engine)  # type: ignore[arg-type]

    def test_an_absent_engine_says_what_to_install(self) -> None:
        self.register("absent")
        with self.assertRaisesRegex(xrt.NotSupportedError, "pip install nothing"):
            xrt.load(self.model, execution=on("absent"))
        xrt.register_engine("absent", "no_such_module:Engine")
        with self.assertRaisesRegex(xrt.NotSupportedError, "no_such_module"):
            xrt.load(self.model, execution=on("absent"))

    def test_auto_goes_on_where_only_a_run_finds_a_dtype_that_native_lacks(self) -> None:
        if optional("onnxruntime") is None:
            self.skipTest("onnxruntime is not installed")
        import onnxruntime
        cast = helper.make_node("Cast", ["x"], ["c"], "narrow", to=TensorProto.UINT16)
        values = [helper.make_tensor_value_info(name, TensorProto.FLOAT, ["batch", 4]) for name in "xy"]
        graph = helper.make_graph([cast, helper.make_node("Cast", ["c"], ["y"], to=TensorProto.FLOAT)], "test", values[:1], values[1:])
        model = str(Path(self.folder, "narrow.onnx"))
        onnx.save(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8), model)
        x = np.array([[1.5, 2.75, 65535, 0]], np.float32)
        with self.assertRaisesRegex(xrt.NotSupportedError, r"node 'narrow' \(Cast\)"):
            xrt.load(model, execution=on("native"))(x)
        session = xrt.load(model)
        self.assertEqual(session.engine, "native")
        want = onnxruntime.InferenceSession(model, providers=["CPUExecutionProvider"]).run(None, {"x": x})[0]
        np.testing.assert_array_equal(session(x), want)
        self.assertEqual(session.engine, "onnxruntime")
        self.assertIn("native on cpu: node 'narrow' (Cast)", session.because)
        with xrt.use_lock(xrt.KernelLock()), self.assertRaisesRegex(xrt.NotSupportedError, r"node 'narrow' \(Cast\)"):
            xrt.load(model)(x)


class TargetTest(EngineCase):
    def test_a_target_that_is_not_here_is_an_error_that_lists_what_is(self) -> None:
        with self.assertRaisesRegex(xrt.NotSupportedError, "target npu is not here.*cpu:0"):
            xrt.load(self.model, execution=on("auto", "npu"))

    def test_a_fallback_is_taken_and_recorded(self) -> None:
        session = xrt.load(self.model, execution=on("auto", "npu", allow_fallback="cpu"))
        self.assertEqual((session.engine, session.record.target, session.record.is_fallback), ("native", "cpu", True))
        self.assertIn("the fallback of npu", session.because)

    def test_an_npu_runs_what_its_engine_takes(self) -> None:
        self.register("npu")
        session = xrt.load(self.model, execution=on("auto", "npu"))
        self.assertEqual((session.engine, session.record.target, session.record.is_fallback), ("npu", "npu", False))
        np.testing.assert_array_equal(session(np.ones((1, 4), np.float32)), np.full((1, 4), 2, np.float32))
        with self.assertRaisesRegex(xrt.NotSupportedError, "engine npu does not run on cpu; it runs on npu"):
            xrt.load(self.model, execution=on("npu"))


class TimeoutTest(EngineCase):
    def test_a_compiler_that_hangs_is_stopped(self) -> None:
        self.register("hanging")
        start = time.monotonic()
        with self.assertRaisesRegex(TimeoutError, "compiling by engine hanging took too long"):
            xrt.load(self.model, execution=on("hanging", compile_timeout_ms=200))
        self.assertLess(time.monotonic() - start, 20)

    def test_after_a_compile_timeout_the_fallback_runs(self) -> None:
        xrt.register_engine("npu", fake_engines.HangingNpu)
        session = xrt.load(self.model, execution=on("auto", "npu", allow_fallback="cpu", compile_timeout_ms=2000))
        self.assertEqual((session.engine, session.record.is_fallback), ("native", True))

    def test_a_compiler_that_crashes_is_one_error(self) -> None:
        self.register("crashing")
        with self.assertRaisesRegex(xrt.DeviceError, "compiling by engine crashing crashed with signal 6"):
            xrt.load(self.model, execution=on("crashing"))

    def test_results_that_are_not_the_models_are_an_error_of_the_engine(self) -> None:
        x = np.ones((2, 4), np.float32)
        for engine, text in ((fake_engines.Few, r"engine fine gave 0 results for the model's 1: 'y' f32\[batch,4\]"),
                             (fake_engines.FewHere, "engine fine gave 0 results"),
                             (fake_engines.Wrong, r"engine fine gave f64\[2,4\] for output 'y', which is f32\[batch,4\]"),
                             (fake_engines.WrongHere, r"engine fine gave f64\[2,4\] for output 'y'")):
            xrt.register_engine("fine", engine)
            session = xrt.load(self.model, execution=on("fine"))
            for run in (lambda: session(x), lambda: session.run({"x": x}), lambda: session.profile({"x": x}),
                        lambda: session.run({"x": x}, out={"y": np.zeros((2, 4), np.float32)})):
                with self.assertRaisesRegex(xrt.DeviceError, text):
                    run()

    def test_an_engine_that_compiles_to_nothing_says_so(self) -> None:
        for engine in (fake_engines.Nothing, fake_engines.NothingHere):
            xrt.register_engine("fine", engine)
            with self.assertRaisesRegex(xrt.DeviceError, "compiled the model to nothing"):
                xrt.load(self.model, execution=on("fine"))

    def test_integers_have_the_dtype_that_numpy_calls_them_by(self) -> None:
        path = save_model(str(Path(self.folder, "integers.onnx")), ["Abs"], TensorProto.INT64)
        x = np.arange(8).reshape(2, 4)
        for engine in (fake_engines.Letters, fake_engines.LettersHere):
            xrt.register_engine("fine", engine)
            letter = xrt.load(path, execution=on("fine"))(x)
            self.assertEqual({chr(code) for code in letter.ravel()}, {np.dtype(np.int64).char})
        self.assertEqual(letter.dtype.char, np.dtype(np.int64).char)

    def test_after_a_run_that_hangs_crashes_or_fails_the_session_goes_on(self) -> None:
        self.register("fine")
        session = xrt.load(self.model, execution=on("fine", execution_timeout_ms=5000))
        x = np.ones((2, 4), np.float32)
        process = session(x * 104).max() / 104
        for number, kind, text in ((101, TimeoutError, "took too long"), (102, xrt.DeviceError, "crashed with signal 11"),
                                   (103, xrt.InvalidArgumentError, "103 is not a number")):
            with self.assertRaisesRegex(kind, text):
                session(x * number)
            np.testing.assert_array_equal(session(x), x * 2)
        self.assertNotEqual(session(x * 104).max() / 104, process)

    def test_native_in_a_process_is_ended_inside_of_a_call(self) -> None:
        xrt.register_engine("guarded", Native)
        self.addCleanup(xrt.unregister_engine, "guarded")
        values = [helper.make_tensor_value_info(name, TensorProto.FLOAT, ["n", "c", "h", "w"]) for name in "xy"]
        pool = helper.make_node("MaxPool", ["x"], ["y"], kernel_shape=[1500, 1500])
        model = str(Path(self.folder, "pool.onnx"))
        onnx.save(helper.make_model(helper.make_graph([pool], "test", values[:1], values[1:]),
                                    opset_imports=[helper.make_opsetid("", 17)], ir_version=8), model)
        session = xrt.load(model, execution=on("guarded", execution_timeout_ms=1000))
        self.assertEqual((session.engine, session.record.version), ("guarded", xrt.__version__))
        start = time.monotonic()
        with self.assertRaisesRegex(TimeoutError, "a run of engine guarded took too long"):
            session(np.ones((1, 1, 3000, 3000), np.float32))
        self.assertLess(time.monotonic() - start, 20)
        x = np.random.default_rng(4).uniform(-1, 1, (2, 1, 1500, 1500)).astype(np.float32)
        np.testing.assert_array_equal(session(x)[:, :, 0, 0], x.max((2, 3)))
        with self.assertRaisesRegex(xrt.NotSupportedError, r"Det \(1\)"):
            xrt.load(save_model(model, ["Exp", "Det"]), execution=on("guarded"))
        with self.assertRaisesRegex(xrt.InvalidArgumentError, "the model takes 'x' f32"):
            session(np.ones((3, 5), np.float32))

    def test_no_process_outlives_its_session(self) -> None:
        self.register("fine")
        session = xrt.load(self.model, execution=on("fine"))
        process = round(float(session(np.full((1, 4), 104, np.float32)).max()) / 104)
        os.kill(process, 0)
        del session
        with self.assertRaises(ProcessLookupError):
            os.kill(process, 0)


class PackageCase:
    """What every engine of a package has to do."""

    name = ""
    package = ""

    def setUp(self) -> None:
        super().setUp()
        if optional(self.package) is None:
            self.skipTest(f"{self.package} is not installed")

    def test_gives_the_results_of_numpy(self) -> None:
        random = np.random.default_rng(5)
        weight = random.uniform(-1, 1, (4, 8)).astype(np.float32)
        nodes = [helper.make_node("MatMul", ["x", "w"], ["h"]), helper.make_node("Tanh", ["h"], ["t"]),
                 helper.make_node("ReduceSum", ["t", "axis"], ["y"], keepdims=0),
                 helper.make_node("ArgMax", ["t"], ["best"], axis=1)]
        values = [helper.make_tensor_value_info("x", TensorProto.FLOAT, ["batch", 4]),
                  helper.make_tensor_value_info("y", TensorProto.FLOAT, ["batch"]),
                  helper.make_tensor_value_info("best", TensorProto.INT64, ["batch", 1])]
        constants = [numpy_helper.from_array(weight, "w"), numpy_helper.from_array(np.array([1], np.int64), "axis")]
        graph = helper.make_graph(nodes, "test", values[:1], values[1:], constants)
        path = str(Path(self.folder, "products.onnx"))
        onnx.save(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8), path)
        for level in (0, 2, 3):
            session = xrt.load(path, execution=on(self.name, optimize_level=level))
            for batch in (1, 7):
                x = random.uniform(-1, 1, (batch, 4)).astype(np.float32)
                want = np.tanh(x.astype(np.float64) @ weight.astype(np.float64))
                y, best = session(x)
                np.testing.assert_allclose(y, want.sum(1), rtol=1e-5, atol=1e-5)
                np.testing.assert_array_equal(best, want.argmax(1)[:, None])
        self.assertEqual(session.engine, self.name)
        self.assertRegex(session.record.version, r"^\d+\.\d+")

    def test_takes_integers(self) -> None:
        path = save_model(str(Path(self.folder, "integers.onnx")), ["Abs"], TensorProto.INT64)
        x = np.arange(-4, 4).reshape(2, 4)
        np.testing.assert_array_equal(xrt.load(path, execution=on(self.name))(x), np.abs(x))

    def test_takes_a_model_with_operators_that_native_lacks(self) -> None:
        shapes = {"x": [1, 2, 3, 3], "y": [1, 2, 1, 1]}
        values = [helper.make_tensor_value_info(name, TensorProto.FLOAT, shape) for name, shape in shapes.items()]
        graph = helper.make_graph([helper.make_node("GlobalLpPool", ["x"], ["y"], p=2)], "test", values[:1], values[1:])
        model = str(Path(self.folder, "unknown.onnx"))
        onnx.save(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8), model)
        with self.assertRaisesRegex(xrt.NotSupportedError, r"GlobalLpPool \(1\)"):
            xrt.load(model, execution=on("native"))
        session = xrt.load(model, execution=on(self.name))
        x = np.random.default_rng(3).uniform(1, 3, (1, 2, 3, 3)).astype(np.float32)
        np.testing.assert_allclose(session(x).ravel(), np.linalg.norm(x.reshape(2, 9).astype(np.float64), axis=1), rtol=1e-5)

    def test_what_it_cannot_do_is_refused(self) -> None:
        with self.assertRaisesRegex(xrt.InvalidArgumentError, "precision int8: the model is one of floats"):
            xrt.load(self.model, execution=on(self.name, precision="int8"))

    def test_what_it_compiled_is_taken_from_the_cache(self) -> None:
        cache = str(Path(self.folder, "cache"))
        x = np.linspace(-1, 1, 8, dtype=np.float32).reshape(2, 4)
        for _ in range(2):
            session = xrt.load(self.model, execution=on(self.name, cache_dir=cache))
            np.testing.assert_allclose(session(x), np.exp(x), rtol=1e-5)
        self.assertEqual(len(list(Path(cache).iterdir())), 1)


    def test_runs_in_this_process_or_another_alike(self) -> None:
        code = {"onnxruntime": "onnxruntime:OnnxRuntime", "openvino": "openvino:OpenVino"}[self.name]
        xrt.register_engine("fine", f"xpuruntime.engines.{code}")
        x = np.linspace(-1, 1, 12, dtype=np.float32).reshape(3, 4)
        here, there = (xrt.load(self.model, execution=on(engine)) for engine in (self.name, "fine"))
        np.testing.assert_array_equal(here(x), there(x))
        np.testing.assert_array_equal(here(x[:0]), there(x[:0]))
        threads = [threading.Thread(target=lambda: [here(x) for _ in range(20)]) for _ in range(4)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        np.testing.assert_allclose(here(x), np.exp(x), rtol=1e-5)

    def test_a_run_that_takes_too_long_is_ended_and_the_next_goes_on(self) -> None:
        slow = save_model(str(Path(self.folder, "slow.onnx")), ["Tanh", "Erf", "Sin", "Exp"] * 8)
        session = xrt.load(slow, execution=on(self.name, execution_timeout_ms=100))
        with self.assertRaisesRegex(TimeoutError, "100 ms"):
            session(np.ones((1 << 21, 4), np.float32))
        self.soon(session, np.ones((1, 4), np.float32))

    def test_a_program_ends_well_while_a_run_goes_on(self) -> None:
        script = f"""
import numpy as np, xpuruntime as xrt
session = xrt.load({product_model(self.folder)!r}, execution=xrt.ExecutionPolicy("cpu", engine={self.name!r}, execution_timeout_ms=20))
for _ in range(3):
    try:
        session(np.eye(2500, dtype=np.float32))
    except TimeoutError as error:
        print(error)
"""
        done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, timeout=300)
        self.assertEqual((done.returncode, done.stderr), (0, ""))
        self.assertIn("20 ms", done.stdout)

    def soon(self, session: xrt.Session, x: np.ndarray) -> None:
        """A run of a few numbers is done at once, or, while an operator of the run before still goes on, refused in time."""
        for _ in range(1200):
            begin = time.monotonic()
            try:
                return np.testing.assert_array_equal(session(x).shape, x.shape)
            except TimeoutError:
                self.assertLess(time.monotonic() - begin, 5)
        self.fail("it never came to an end")

    def test_nobody_waits_for_one_operator_that_takes_too_long(self) -> None:
        x = np.eye(2500, dtype=np.float32)
        session = xrt.load(product_model(self.folder), execution=on(self.name, execution_timeout_ms=20))
        with self.assertRaisesRegex(TimeoutError, "20 ms"):
            session(x)
        self.soon(session, x[:7, :7])
        patient = xrt.load(product_model(self.folder), execution=on(self.name, execution_timeout_ms=60000))
        np.testing.assert_array_equal(patient(x[:7, :7]), x[:7, :7])


class LockTest(EngineCase):
    def test_a_lock_replays_the_engine_or_says_what_differs(self) -> None:
        self.register("fine")
        x = np.ones((2, 4), np.float32)
        lock = xrt.load(self.model, execution=on("fine")).record_lock()
        self.assertEqual([(one.engine, one.version) for one in lock.engines], [("fine", "1.5")])
        path = str(Path(self.folder, "kernels.lock"))
        lock.save(path)
        session = xrt.load(self.model, lock=path)
        self.assertEqual((session.engine, session.because), ("fine", "the lock names it"))
        np.testing.assert_array_equal(session(x), x * 2)
        xrt.register_engine("fine", fake_engines.Finer)
        with self.assertRaisesRegex(xrt.NotSupportedError, "engine fine is 1.5 in the lock, 1.6 here; record it again"):
            xrt.load(self.model, lock=path)
        report = xrt.verify_lock(path)
        self.assertEqual([(one.kernel, one.outcome) for one in report.results], [("fine", "failed")])

    def test_a_lock_of_native_has_its_kernels_too_and_those_of_casts(self) -> None:
        policy = xrt.KernelPolicy(precision={"exp": "fp16"})
        x = np.linspace(-1, 1, 8, dtype=np.float32).reshape(2, 4)
        for model in (xrt.load(self.model), xrt.load(self.model, policy=policy)):
            for given in ({"x": (2, 4)}, {"x": x}):
                lock = model.record_lock(given)
                self.assertEqual([one.engine for one in lock.engines], ["native"])
                self.assertTrue(xrt.verify_lock(lock).fine)
        np.testing.assert_allclose(xrt.load(self.model, policy=policy, lock=lock)(x), np.exp(x), rtol=1e-3)
        with self.assertRaisesRegex(xrt.NotSupportedError, "the lock has no entry for it"):
            xrt.load(self.model, policy=policy, lock=lock)(x[:1])


class CacheTest(EngineCase):
    def test_a_model_is_compiled_once_and_again_after_damage(self) -> None:
        self.register("keeping")
        log, cache = Path(self.folder, "log"), Path(self.folder, "cache")
        self.enterContext(unittest.mock.patch.dict(os.environ, XRT_TEST_COMPILES=str(log)))

        def compiles(model: str = self.model, **fields: object) -> int:
            xrt.load(model, execution=on("keeping", cache_dir=str(cache), **fields))
            return len(log.read_text(encoding="ascii").splitlines())

        self.assertEqual([compiles(), compiles(), compiles(execution_timeout_ms=5)], [1, 1, 1])
        self.assertEqual(compiles(optimize_level=1), 2)
        other = save_model(str(Path(self.folder, "other.onnx")), ["Exp", "Exp"])
        self.assertEqual([compiles(other), compiles(other)], [3, 3])
        for entry in cache.iterdir():
            entry.write_bytes(entry.read_bytes()[:-1])
        self.assertEqual([compiles(), compiles()], [4, 4])
        self.assertEqual(compiles(cache_compiled=False), 5)

    def test_processes_that_are_killed_while_they_write_leave_no_half_entry(self) -> None:
        cache = Path(self.folder, "cache")
        program = ("import sys, xpuruntime as xrt; xrt.register_engine('keeping', 'fake_engines:Keeping')\n"
                   "policy = xrt.ExecutionPolicy('cpu', engine='keeping', cache_dir=sys.argv[2])\n"
                   "print('ready', flush=True); xrt.load(sys.argv[1], execution=policy)")
        here = str(Path(__file__).parent)
        environment = {**os.environ, "XRT_TEST_COMPILES": str(Path(self.folder, "log")),
                       "PYTHONPATH": os.pathsep.join([here, os.environ.get("PYTHONPATH", "")])}
        for number in range(100):
            with subprocess.Popen([sys.executable, "-c", program, self.model, str(cache)], env=environment,
                                  stdout=subprocess.PIPE) as process:
                process.stdout.read(6)  # type: ignore[union-attr]
                time.sleep(0.12 + number % 20 * 0.015)
                process.kill()
        self.register("keeping")
        with unittest.mock.patch.dict(os.environ, XRT_TEST_COMPILES=str(Path(self.folder, "log"))):
            session = xrt.load(self.model, execution=on("keeping", cache_dir=str(cache)))
        np.testing.assert_array_equal(session(np.ones((1, 4), np.float32)), np.full((1, 4), 2, np.float32))


class CommandTest(EngineCase):
    def command(self, *words: str, code: int = 0) -> str:
        environment = {**os.environ, "XRT_PYTHON": sys.executable, "XPURUNTIME_STORE": str(Path(self.folder, "store.sqlite")),
                       "XPURUNTIME_MODEL_CACHE": str(Path(self.folder, "cache"))}
        done = subprocess.run([os.environ["XRT"], *words], capture_output=True, text=True, timeout=120, env=environment)
        self.assertEqual(done.returncode, code, done.stderr)
        return done.stdout if code == 0 else done.stderr

    def setUp(self) -> None:
        super().setUp()
        if "XRT" not in os.environ:
            self.skipTest("XRT does not name the command")

    def test_a_run_goes_on_to_the_engine_that_has_what_native_lacks(self) -> None:
        if optional("onnxruntime") is None:
            self.skipTest("onnxruntime is not installed")
        model = str(Path(self.folder, "narrow.onnx"))
        nodes = [helper.make_node("Cast", ["x"], ["c"], "narrow", to=TensorProto.UINT16), helper.make_node("Cast", ["c"], ["y"], to=1)]
        values = [helper.make_tensor_value_info(name, 1, ["n"]) for name in "xy"]
        inputs = [values[0], helper.make_tensor_value_info("count", TensorProto.INT64, [])]
        graph = helper.make_graph(nodes, "test", inputs, values[1:])
        onnx.save(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8), model)
        run = json.loads(self.command("run", model, "--shape", "x=4", "--json"))["engine"]
        self.assertIn(run["name"], ("onnxruntime", "openvino"))
        self.assertEqual([one["engine"] for one in run["rejections"]][0], "native")
        self.assertIn("node 'narrow' (Cast)", self.command("run", model, "--shape", "x=4", "--engine", "native", code=1))

    def test_runs_asks_times_and_keeps_engines(self) -> None:
        if optional("onnxruntime") is None:
            self.skipTest("onnxruntime is not installed")
        shape = ("--shape", "x=3,4")
        run = json.loads(self.command("run", self.model, *shape, "--engine", "onnxruntime", "--json"))
        self.assertEqual((run["engine"]["name"], run["engine"]["because"]), ("onnxruntime", "the execution policy names it"))
        self.assertGreater(run["outputs"][0]["min"], 0)  # of exp
        self.assertIn("1 compiled model\n", self.command("cache", "list"))
        self.assertIn("removed 1 compiled model", self.command("cache", "clear"))
        self.assertEqual(json.loads(self.command("cache", "list", "--json"))["entries"], [])
        asked = json.loads(self.command("inspect", self.model, "--engines", "--json"))["engines"]
        self.assertIn(("onnxruntime", None), [(one["engine"], one["reason"]) for one in asked])
        times = json.loads(self.command("bench", self.model, *shape, "--budget", "100ms", "--json"))["engines"]
        self.assertTrue({"native", "onnxruntime"} <= {one["engine"] for one in times if one["reason"] is None})
        self.assertEqual(sum(one["fastest"] for one in times), 1)
        lock = str(Path(self.folder, "kernels.lock"))
        tuned = json.loads(self.command("tune", self.model, *shape, "--per-problem", "20ms", "--lock", lock, "--json"))
        fastest = [one["engine"] for one in tuned["models"][0]["engines"] if one["fastest"]]
        self.assertEqual([one.engine for one in xrt.KernelLock.load(lock).engines], fastest)
        again = json.loads(self.command("run", self.model, *shape, "--json"))["engine"]
        self.assertEqual([again["name"]], fastest)
        self.assertTrue(again["because"].startswith("measured: "), again["because"])
        recorded = json.loads(self.command("lock", "record", self.model, *shape, "--out", lock, "--json"))
        self.assertEqual([one["engine"] for one in recorded["engines"]], fastest)
        for engine in ("native", "onnxruntime"):
            self.command("lock", "record", self.model, *shape, "--engine", engine, "--out", lock)
            verified = json.loads(self.command("lock", "verify", self.model, *shape, "--lock", lock, "--json"))
            self.assertEqual((verified["fine"], verified["results"][0]["kernel"]), (True, engine))
            run = json.loads(self.command("run", self.model, *shape, "--lock", lock, "--json"))
            self.assertEqual((run["engine"]["name"], run["engine"]["because"]), (engine, "the lock names it"))
            self.command("lock", "verify", lock)
            self.command("lock", "verify", self.model, *shape, "--lock", lock, "--engine", "openvino", code=1)

    def test_a_model_that_only_others_run_is_tuned_and_inspected(self) -> None:
        if optional("onnxruntime") is None:
            self.skipTest("onnxruntime is not installed")
        model = str(Path(self.folder, "det.onnx"))
        values = [helper.make_tensor_value_info("x", 1, ["n", 3, 3]), helper.make_tensor_value_info("y", 1, ["n"])]
        graph = helper.make_graph([helper.make_node("Det", ["x"], ["y"])], "test", values[:1], values[1:])
        onnx.save(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8), model)
        words = ("tune", model, "--shape", "x=4,3,3", "--budget", "100ms")
        lock, policy = str(Path(self.folder, "kernels.lock")), Path(self.folder, "policy.json")
        tuned = json.loads(self.command(*words, "--lock", lock, "--json"))
        times = {one["engine"]: one for one in tuned["models"][0]["engines"]}
        self.assertEqual((tuned["results"], times["onnxruntime"]["reason"], times["onnxruntime"]["fastest"]), ([], None, True))
        self.assertIn("Det (1)", times["native"]["reason"])
        self.assertEqual([one.engine for one in xrt.KernelLock.load(lock).engines], ["onnxruntime"])
        again = json.loads(self.command("run", model, "--shape", "x=4,3,3", "--json"))["engine"]
        self.assertTrue(again["because"].startswith("measured: "), again["because"])
        self.assertIn("no call of ours to write a rule for", self.command(*words, "--out", str(policy), code=1))
        self.assertFalse(policy.exists())
        self.assertIn("Det (1)", self.command(*words, "--engine", "native", code=1))
        asked = json.loads(self.command("inspect", model, "--engine", "onnxruntime", "--json"))
        self.assertEqual([(one["engine"], one["reason"]) for one in asked["engines"]], [("onnxruntime", None)])

    def test_tune_times_the_engine_that_is_named_alone(self) -> None:
        if optional("onnxruntime") is None:
            self.skipTest("onnxruntime is not installed")
        named = json.loads(self.command("tune", self.model, "--shape", "x=3,4", "--engine", "onnxruntime", "--json",
                                        "--budget", "100ms"))
        self.assertEqual(([one["engine"] for one in named["models"][0]["engines"]], named["results"]), (["onnxruntime"], []))

    def test_what_is_wrong_is_an_error(self) -> None:
        self.assertIn("no engine", self.command("run", self.model, "--shape", "x=3,4", "--engine", "ours", code=2).lower()
                      .replace("unknown engine", "no engine"))
        self.assertIn("--engine is for a model", self.command("tune", "relu(f32[8])", "--engine", "native", code=2))
        self.command("cache", "drop", code=2)


class TuneTest(EngineCase):
    def test_the_fastest_is_kept_for_the_next_session(self) -> None:
        self.register("fine", "picky")
        self.addCleanup(xrt.use_store, None)
        xrt.use_store(xrt.open_store(str(Path(self.folder, "store.sqlite"))))
        inputs = {"x": np.zeros((64, 4), np.float32)}
        self.model = save_model(self.model, ["Tanh", "Relu"])  # of 0 what the fake ones give
        found = xrt.tune_engines(self.model, inputs, seconds=0.05)
        times = {time.engine: time for time in found.engines}
        self.assertEqual((times["picky"].reason, found.not_stored), ("no model is good enough", ""))
        self.assertTrue(times["native"].runs >= 5 and times["fine"].median_us > 0)
        self.assertRegex(repr(found), r"^<chosen: \w+; native: [0-9.]+ us; .*picky: no model is good enough.*>$")
        session = xrt.load(self.model)
        self.assertEqual((session.engine, session.because), (found.chosen, found.because))
        wrong = {time.engine: time for time in xrt.tune_engines(self.model, {"x": np.ones((1, 4), np.float32)}, seconds=0.05).engines}
        self.assertRegex(wrong["fine"].reason, "^its results differ from those of native by 163 %, more than 1 %$")
        self.assertGreater(wrong["fine"].difference, 1.6)
        with self.assertRaisesRegex(xrt.InvalidArgumentError, "exactly x"):
            xrt.tune_engines(self.model, {})
        with self.assertRaisesRegex(xrt.InvalidArgumentError, "above 0"):
            xrt.tune_engines(self.model, inputs, seconds=0)


class OnnxRuntimeTest(PackageCase, EngineCase):
    name = package = "onnxruntime"

    def test_a_process_that_is_ended_while_it_compiles_leaves_no_files(self) -> None:
        self.addCleanup(xrt.unregister_engine, "hanging")
        xrt.register_engine("hanging", fake_engines.HangingRuntime)
        scratch = Path(self.folder, "scratch")
        scratch.mkdir()
        self.enterContext(unittest.mock.patch.dict(os.environ, TMPDIR=str(scratch)))
        with self.assertRaises(TimeoutError):
            xrt.load(self.model, execution=on("hanging", compile_timeout_ms=4000, cache_dir=f"{self.folder}/cache"))
        self.assertEqual([path for path in scratch.iterdir() if not path.name.startswith(".")], [])  # ONNX Runtime has one of its own

    def test_constants_in_files_beside_the_model_are_found_from_the_cache_too(self) -> None:
        weight = np.random.default_rng(4).standard_normal((4, 4)).astype(np.float32)
        model = onnx.load(self.model)
        model.graph.initializer.append(numpy_helper.from_array(weight, "weight"))
        model.graph.node.append(helper.make_node("MatMul", ["x", "weight"], ["z"]))
        model.graph.output.append(helper.make_tensor_value_info("z", TensorProto.FLOAT, ["batch", 4]))
        onnx.save_model(model, self.model, save_as_external_data=True, location="weight.bin", size_threshold=0)
        x = np.ones((2, 4), np.float32)
        for _ in range(2):
            session = xrt.load(self.model, execution=on(self.name, cache_dir=f"{self.folder}/cache"))
            np.testing.assert_allclose(session(x)[1], x @ weight, rtol=1e-5)


class OpenVinoTest(PackageCase, EngineCase):
    name = package = "openvino"

    def test_it_computes_in_the_precision_of_the_policy_also_from_the_cache(self) -> None:
        x = np.random.default_rng(3).standard_normal((64, 4)).astype(np.float32)
        for precision, bound in (("fp32", 1e-6), ("bf16", 2**-7)):
            for _ in range(2):
                execution = on(self.name, precision=precision, cache_dir=str(Path(self.folder, "cache")))
                np.testing.assert_allclose(xrt.load(self.model, execution=execution)(x), np.exp(x.astype(np.float64)), rtol=bound)


if __name__ == "__main__":
    unittest.main()
