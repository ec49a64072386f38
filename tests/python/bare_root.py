"""A root folder that holds a Python, the C and C++ libraries, and what a test puts there."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
import sysconfig
from pathlib import Path

# Of the standard library: what links other packages' libraries, or is large and not needed.
LEFT_OUT = ("test", "idlelib", "tkinter", "ensurepip", "lib2to3", "__pycache__", "config-*", "*-packages", "_sqlite3*")


def linked(path: Path) -> list[Path]:
    """The libraries that the loader finds here for this file, and itself."""
    done = subprocess.run(["ldd", path], capture_output=True, text=True)
    return [Path(found) for found in re.findall(r"^\t(?:\S+ => )?(/\S+) \(", done.stdout, re.MULTILINE)]


def entering(folder: Path) -> list[str]:
    """What makes a command run with this folder as its root."""
    path = f"{os.environ.get('PATH', '')}:/usr/sbin:/sbin"
    return ["unshare", "-r"] * (os.geteuid() != 0) + [shutil.which("chroot", path=path) or "chroot", str(folder)]


def why_not() -> str:
    """Empty if this process can run commands in another root."""
    try:
        done = subprocess.run([*entering(Path("/")), "true"], capture_output=True, text=True)
    except OSError as error:
        return str(error)
    return done.stderr.strip() if done.returncode != 0 else ""


class BareRoot:
    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.python = os.path.realpath(sys.executable)
        for name in ("tmp", "dev", "root"):
            (folder / name).mkdir(parents=True)
        (folder / "dev" / "null").touch()
        self.add_file(Path(self.python))
        for base in {sysconfig.get_path("stdlib"), sysconfig.get_path("platstdlib")}:
            shutil.copytree(base, self.inside(base), ignore=shutil.ignore_patterns(*LEFT_OUT), ignore_dangling_symlinks=True)
            for module in Path(base, "lib-dynload").glob("*.so"):
                if not module.name.startswith("_sqlite3"):
                    self.add_linked(module)

    def inside(self, path: str | Path) -> Path:
        return self.folder / str(path).lstrip("/")

    def add_file(self, path: Path) -> None:
        if not self.inside(path).exists():
            self.inside(path).parent.mkdir(parents=True, exist_ok=True)
            shutil.copy(path, self.inside(path))
            self.add_linked(path)

    def add_linked(self, path: Path) -> None:
        for library in linked(path):
            self.add_file(library)

    def run(self, *command: str, **variables: str) -> str:
        environment = {"PATH": "/env/bin:/usr/bin:/bin", "HOME": "/root", "PYTHONUTF8": "1", **variables}
        done = subprocess.run([*entering(self.folder), *command], capture_output=True, text=True, env=environment)
        if done.returncode != 0:
            raise AssertionError(f"{command} failed:\n{done.stdout[-4000:]}\n{done.stderr[-4000:]}")
        return done.stdout
