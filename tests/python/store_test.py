"""The store of measurements: opened, read, merged, pruned, checked and put in use."""

import json
import os
import pathlib
import tempfile
import threading
import unittest

import xpuruntime as xrt

ADD = "add(f32[16], f32[16])"
MUL = "mul(f32[16], f32[16])"


class StoreTest(unittest.TestCase):
    def setUp(self) -> None:
        self.folder = pathlib.Path(self.enterContext(tempfile.TemporaryDirectory()))
        self.store = xrt.open_store(self.folder / "deep" / "store.sqlite")
        self.addCleanup(xrt.use_store, None)

    def fill(self, *problems: str) -> None:
        xrt.tune(problems, budget_s=0.01, store=self.store)
        xrt.use_store(None)

    def problems(self, store: xrt.MeasurementStore, **filters: object) -> list:
        return [entry["problem"] for row in store.read(**filters)["environments"] for entry in row["entries"]]

    def test_it_is_made_where_it_was_asked_for_and_holds_nothing_at_first(self) -> None:
        self.assertEqual(self.store.path, str(self.folder / "deep" / "store.sqlite"))
        self.assertFalse(self.store.read_only)
        self.assertEqual(self.store.read(), {"version": 1, "environments": []})
        self.store.check()

    def test_what_was_measured_is_read_again_all_or_by_filters(self) -> None:
        self.fill(ADD, MUL)
        self.assertEqual(self.problems(self.store), [ADD + " @cpu:0", MUL + " @cpu:0"])
        self.assertEqual(self.problems(self.store, op="Mul"), [MUL + " @cpu:0"])
        self.assertEqual(self.problems(self.store, kernel="no_such_kernel"), [])
        self.assertEqual(self.problems(self.store, older_than=0), [])
        entry = self.store.read(op="add")["environments"][0]["entries"][0]
        kernels = {measurement["kernel"] for measurement in entry["measurements"]}
        self.assertEqual(kernels, {"simd", "reference"})
        self.assertIn(entry["choice"]["kernel"], kernels)

    def test_merging_takes_in_another_store_a_file_or_what_was_read(self) -> None:
        self.fill(ADD, MUL)
        by_store, by_file, by_contents = (xrt.open_store(self.folder / name) for name in ("a", "b", "c"))
        changed = by_store.merge(self.store)
        self.assertGreater(changed, 0)
        text = self.store.export_json(self.folder / "export.json")
        self.assertEqual((self.folder / "export.json").read_text(), text)
        self.assertEqual(by_file.import_json(self.folder / "export.json"), changed)
        self.assertEqual(by_contents.merge(json.loads(text)), changed)
        for store in (by_store, by_file, by_contents):
            self.assertEqual(store.read(), self.store.read())
            self.assertEqual(store.merge(self.store), 0)

    def test_export_takes_filters_too(self) -> None:
        self.fill(ADD, MUL)
        self.assertEqual(json.loads(self.store.export_json(op="add")), self.store.read(op="add"))

    def test_pruning_removes_what_every_filter_means(self) -> None:
        self.fill(ADD, MUL)
        self.assertGreater(self.store.prune(op="add"), 0)
        self.assertEqual(self.problems(self.store), [MUL + " @cpu:0"])
        self.assertEqual(self.store.prune(op="mul", older_than=0), 0)
        with self.assertRaises(xrt.InvalidArgumentError):
            self.store.prune()

    def test_one_opened_to_read_is_not_written(self) -> None:
        self.fill(ADD)
        reader = xrt.open_store(self.store.path, read_only=True)
        self.assertTrue(reader.read_only)
        self.assertEqual(reader.read(), self.store.read())
        with self.assertRaises(xrt.XpuRuntimeError):
            reader.prune(op="add")
        with self.assertRaises(xrt.FileError):
            xrt.open_store(self.folder / "missing", read_only=True)
        self.assertFalse((self.folder / "missing").exists())

    def test_the_one_in_use_decides_for_best_performance(self) -> None:
        self.fill(ADD)
        xrt.use_store(self.store.path)
        self.assertEqual(xrt.store_in_use().path, self.store.path)
        with xrt.with_policy(strategy="best_performance"):
            measured = {candidate.kernel: candidate.time_us for candidate in xrt.explain(ADD).candidates}
        self.assertTrue(all(time > 0 for time in measured.values()))
        xrt.use_store(None)
        self.assertIsNone(xrt.store_in_use())

    def test_its_usual_place_is_named_by_the_environment(self) -> None:
        before = os.environ.get("XPURUNTIME_STORE")
        os.environ["XPURUNTIME_STORE"] = str(self.folder / "mine.sqlite")
        try:
            self.assertEqual(xrt.default_store_path(), str(self.folder / "mine.sqlite"))
            self.assertEqual(xrt.open_store().path, str(self.folder / "mine.sqlite"))
        finally:
            if before is None:
                del os.environ["XPURUNTIME_STORE"]
            else:
                os.environ["XPURUNTIME_STORE"] = before

    def test_many_threads_may_write_at_once(self) -> None:
        self.fill(ADD, MUL)
        target = xrt.open_store(self.folder / "shared")
        raised = []

        def work() -> None:
            try:
                for _ in range(10):
                    target.merge(self.store)
                    target.read()
            except xrt.XpuRuntimeError as error:
                raised.append(error)

        threads = [threading.Thread(target=work) for _ in range(4)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        self.assertEqual(raised, [])
        self.assertEqual(target.read(), self.store.read())

    def test_a_file_that_is_no_store_is_left_as_it_is(self) -> None:
        path = self.folder / "text.sqlite"
        path.write_text("not a store, but dear to somebody" * 50)
        with self.assertRaises(xrt.CorruptDataError):
            xrt.open_store(path).check()
        self.assertTrue(path.read_text().startswith("not a store"))

    def test_a_file_beside_a_store_is_not_opened_as_one(self) -> None:
        self.fill(ADD)
        for beside in ("-wal", "-shm", "-journal"):
            for opening in (xrt.open_store, lambda path: xrt.report_data(problems=ADD, store=path)):
                with self.assertRaisesRegex(xrt.FileError, f"name the store instead: '{self.store.path}'"):
                    opening(self.store.path + beside)

    def test_wrong_arguments_say_what_to_pass(self) -> None:
        for call in (lambda: xrt.open_store(3), lambda: xrt.open_store(self.folder, read_only="yes"),
                     lambda: self.store.merge("other.sqlite"), lambda: self.store.read(op=3),
                     lambda: self.store.prune(older_than="1d"), lambda: xrt.use_store(3),
                     lambda: self.store.import_json(None)):
            with self.assertRaises(xrt.ArgumentTypeError):
                call()
        with self.assertRaises(xrt.UnknownNameError):
            self.store.read(op="addd")
        with self.assertRaises(xrt.XpuRuntimeError):
            self.store.merge({"version": 1})
        with self.assertRaises(xrt.FileError):
            self.store.import_json(self.folder / "missing.json")
        with self.assertRaisesRegex(ValueError, "NUL"):
            xrt.open_store("a\0b")


if __name__ == "__main__":
    unittest.main()
