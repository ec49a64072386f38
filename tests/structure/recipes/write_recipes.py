#!/usr/bin/env python3
"""Writes the recipes of CONTRIBUTING.md and backend.h out as files that can be built: write_recipes.py ROOT FOLDER."""
import re
import sys
from pathlib import Path

BLOCK = re.compile(r"^```(cpp|cmake)\n(.*?)^```$", re.MULTILINE | re.DOTALL)


def blocks(text, heading):
    """(language, code) of each block under a heading."""
    section = re.search(rf"^## {heading}$.*?(?=^## |\Z)", text, re.MULTILINE | re.DOTALL)
    return BLOCK.findall(section.group()) if section else []


def recipes(text):
    """File name -> what stands in it. Another number of blocks than these is an error."""
    (_, kernel), (_, declarations), (_, row), (_, function) = blocks(text, "Add a kernel")
    ((_, rule),) = blocks(text, "Add a rule")
    (_, backend), (language, project) = blocks(text, "Add a backend")
    assert language == "cmake", language
    mine = kernel.replace("fast_relu", "my_relu").replace("FastRelu", "MyRelu").replace("::cpu", "::mine")
    return {"fast_relu.cpp": kernel, "declarations.inc": declarations, "row.inc": row, "function_kernel.inc": function, "rule.inc": rule,
            "mine.cpp": mine + "\n" + backend, "recipe.cmake": project}


def shortest(header):
    """The plugin in the comment at the head of backend.h."""
    lines = [line.removeprefix("//").removeprefix("   ") for line in header.splitlines() if line.startswith("//")]
    first = next(i for i, line in enumerate(lines) if line.startswith("#include"))
    last = next(i for i, line in enumerate(lines) if line.startswith("XRT_EXPORT_BACKEND"))
    return "\n".join(lines[first:last + 1]) + "\n"


def main(root, folder):
    here, out = Path(__file__).parent, Path(folder)
    out.mkdir(parents=True)
    found = recipes((Path(root) / "CONTRIBUTING.md").read_text(encoding="utf-8"))
    header = Path(root) / "include" / "xpuruntime" / "registry" / "backend.h"
    found["shortest.cpp"] = shortest(header.read_text(encoding="utf-8"))
    for name in ("CMakeLists.txt", "main.cpp"):
        found[name] = (here / name).read_text(encoding="utf-8")
    for name, text in found.items():
        (out / name).write_text(text, encoding="utf-8")


if __name__ == "__main__":
    main(*sys.argv[1:])
