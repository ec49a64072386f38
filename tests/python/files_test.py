"""Files that are no files, files of people who mean no good, and what is left of a file that could not be written."""

from __future__ import annotations

import json
import os
import stat
import tempfile
import unittest
from pathlib import Path
from typing import Any, Callable

import xpuruntime as xrt

EVIL = "k\x1b[2J\u009b31m\u202e\x7f"
RELU = "relu(f32[64])"


def savers(store: xrt.MeasurementStore) -> list[Callable[[Any], Any]]:
    return [xrt.KernelPolicy(relu="reference").save, xrt.record_lock([RELU]).save, xrt.DeviceProfile(name="x").save,
            xrt.ExecutionPolicy().save, store.export_json, xrt.save_trace, lambda path: xrt.report(path, problems=[RELU])]


class Files(unittest.TestCase):
    def setUp(self) -> None:
        self.folder = Path(self.enterContext(tempfile.TemporaryDirectory()))

    def test_pipes_devices_and_folders_are_refused_at_once(self) -> None:
        pipe = self.folder / "pipe"
        os.mkfifo(pipe)
        store = xrt.open_store(self.folder / "store.sqlite")
        loaders = [xrt.KernelPolicy.load, xrt.KernelLock.load, xrt.DeviceProfile.load, xrt.ExecutionPolicy.load,
                   store.import_json, lambda path: xrt.report(self.folder / "page.html", lock=path)]
        for path in (pipe, "/dev/zero", self.folder):
            for load in loaders:
                with self.assertRaisesRegex(xrt.errors.FileError, "cannot be read: it is a (pipe|device|folder)"):
                    load(path)
            for save in savers(store):
                with self.assertRaisesRegex(xrt.errors.FileError, "cannot be written: it is a (pipe|device|folder)"):
                    save(path)

    def test_an_empty_name_is_refused(self) -> None:
        store = xrt.open_store(self.folder / "store.sqlite")
        for use in [*savers(store), store.import_json, xrt.KernelPolicy.load, xrt.KernelLock.load]:
            with self.assertRaisesRegex(xrt.errors.FileError, "the name is empty; name a file"):
                use("")
        for use in [xrt.open_store, xrt.use_store]:
            with self.assertRaisesRegex(ValueError, "no file was named; name one"):
                use("")
        self.assertEqual(json.loads(store.export_json()), store.read())

    def test_saving_keeps_permissions_and_links(self) -> None:
        file, link = self.folder / "file", self.folder / "link"
        link.symlink_to("file")
        other = tempfile.TemporaryDirectory()
        self.addCleanup(other.cleanup)
        for save in savers(xrt.open_store(Path(other.name) / "store.sqlite")):
            file.write_text("old")
            file.chmod(0o640)
            save(link)
            self.assertNotEqual(file.read_text(), "old")
            self.assertEqual(stat.S_IMODE(file.stat().st_mode), 0o640)
            self.assertTrue(link.is_symlink())
            self.assertEqual(sorted(os.listdir(self.folder)), ["file", "link"])

    def test_what_files_hold_is_only_shown(self) -> None:
        path = self.folder / "policy.json"
        texts = []
        for fields in ({EVIL: 1}, {"preferences": {EVIL: "simd"}}, {"preferences": {"relu": EVIL}}, {"strategy": EVIL}):
            path.write_text(json.dumps(fields))
            with self.assertRaises(xrt.errors.XpuRuntimeError) as caught:
                xrt.KernelPolicy.load(path)
            texts.append(str(caught.exception))
        for path in (self.folder / EVIL, self.folder / os.fsdecode(b"\xff\x9b")):  # the second is no UTF-8
            with self.assertRaises(xrt.errors.FileError) as caught:
                xrt.KernelPolicy.load(path)
            texts.append(str(caught.exception))
        texts.append(repr(xrt.DeviceProfile(name=EVIL)))
        named = {"name": EVIL, "op": "relu", "use": "reference"}
        with xrt.with_policy(rules=[named]):
            decision = xrt.explain(RELU)
        texts += [str(decision), repr(decision), decision._repr_html_(), *map(repr, decision.candidates)]
        for text in texts:
            self.assertTrue(text.replace("\n", "").isprintable(), text)


if __name__ == "__main__":
    unittest.main()
