"""The `xrt` command of the wheel: starts the program that lies in the package. Imports nothing of the package itself."""

import importlib.util
import os
import sys
from pathlib import Path


def main() -> None:
    """Becomes the program; comes back only where it cannot be started."""
    spec = importlib.util.find_spec("xpuruntime")
    folders = list(spec.submodule_search_locations or []) if spec else []
    for folder in folders:
        program = Path(folder) / "bin" / "xrt"
        if program.is_file():
            os.environ.setdefault("XRT_PYTHON", sys.executable)  # engines that are Python packages run in this one
            os.execv(program, ["xrt", *sys.argv[1:]])
    sys.exit(f"xrt: the program is in none of {folders}; install the package again")
