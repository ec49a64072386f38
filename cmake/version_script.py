#!/usr/bin/env python3
"""cmake/version_script.py ROOT OBJECTS OUT NM [--all]: writes the linker's version script of libxpuruntime.so.

OBJECTS is a file with the paths of the library's objects, which NM reads. Of what they define, XPURUNTIME_0 gets what the
headers in include/ declare, and XPURUNTIME_PRIVATE_0 what our own programs and backends use beyond that: the names in the
internal headers that they include. Nothing else leaves the library. With --all the rest is in the private part too, for
tests of internals.
"""

import re
import subprocess
import sys
from pathlib import Path

PROGRAMS = ("src/cli", "src/python", "src/backends/cuda", "src/backends/opencl")
NOT_CODE = re.compile(r'//[^\n]*|/\*.*?\*/|"(?:\\.|[^"\\\n])*"|^[ \t]*#(?:\\\n|[^\n])*', re.DOTALL | re.MULTILINE)
TEMPLATE = re.compile(r"\btemplate\s*<(?:[^<>]|<[^<>]*>)*>")
INCLUDE = re.compile(r'^#include "([^"]+)"', re.MULTILINE)
TYPE = re.compile(r"\b(?:class|struct|enum)\s+(?:class\s+)?(?:alignas\(\w+\)\s*)?(\w+)[^()=]*$")
MADE_FOR = re.compile(r"^(?:typeinfo name|typeinfo|vtable|VTT|guard variable) for |^(?:non-)?virtual thunk to ")
NAME = re.compile(r"\bxpuruntime::((?:\w+::)*~?\w+)")


def end_of_block(code: str, start: int) -> int:
    """The place of the brace that closes the one at `start`."""
    depth = 0
    for place in range(start, len(code)):
        depth += {"{": 1, "}": -1}.get(code[place], 0)
        if depth == 0:
            return place
    return len(code)


def declared(code: str, scope: str = "") -> set[str]:
    """The types that code defines, and the functions and variables that it declares: "Tensor", "ops::call_out"."""
    names: set[str] = set()
    place = 0
    for found in iter(lambda: re.compile(r"[{;]").search(code, place), None):
        head = TEMPLATE.sub("", code[place : found.start()])
        place = found.end()
        end = found.start()
        if found[0] == "{":
            end = end_of_block(code, found.start())
            place = end + 1
        inside = code[found.end() : end]
        space, kind = re.search(r"\bnamespace\s+([\w:]+)\s*$", head), TYPE.search(head)
        if space:
            inner = f"{space[1]}::".removeprefix("xpuruntime::")
            names |= declared(inside, scope + inner)
        elif kind and found[0] == "{":
            names |= {scope + kind[1]} | declared(inside, f"{scope}{kind[1]}::")
        elif not kind:
            names |= {scope + name for name in re.findall(r"(operator|~?\w+)(?:\W*\(|\s*=|(?:\[\w*\])?\s*$)", head)}
    return names


def names_in(headers: list[Path]) -> set[str]:
    return set().union(*(declared(NOT_CODE.sub(" ", path.read_text(encoding="utf-8"))) for path in headers))


def internal_headers(root: Path) -> list[Path]:
    """Those that programs include, and those that these include."""
    found: set[Path] = set()
    new = [path for folder in PROGRAMS for path in (root / folder).rglob("*.*") if path.suffix in (".h", ".cpp", ".cu")]
    while new:
        names = {name for path in new for name in INCLUDE.findall(path.read_text(encoding="utf-8"))}
        paths = {root / "src" / name for name in names if not f"src/{name}".startswith(PROGRAMS)}
        new = [path for path in paths - found if path.is_file()]
        found |= set(new)
    return sorted(found)


def symbols(objects: Path, nm: str) -> dict[str, str]:
    """What the objects define for others, and how C++ writes it."""
    listed = subprocess.run([nm, "-gP", "--defined-only", f"@{objects}"], check=True, capture_output=True, text=True)
    mangled = sorted({line.split()[0] for line in listed.stdout.splitlines() if len(line.split()) > 1})
    plain = subprocess.run(["c++filt"], input="\n".join(mangled), check=True, capture_output=True, text=True)
    return dict(zip(mangled, plain.stdout.split("\n")))


def is_declared(plain: str, names: set[str]) -> bool:
    """Whether it is a name of these, or a member of one, and so is all that its parameters name."""
    entity = re.sub(r"\[abi:\w+\]", "", MADE_FOR.sub("", plain))
    own, *others = NAME.findall(entity) or [""]
    is_template = "<" in entity.split("(")[0].replace("operator<", "")
    if not entity.startswith("xpuruntime::") or is_template or "(anonymous namespace)" in entity:
        return False
    holder = own.rpartition("::")[0]
    known = own in names or (holder in names and entity == re.sub(r"\[abi:\w+\]", "", plain))
    return known and all(other in names or other.rpartition("::")[0] in names for other in others)


def main() -> None:
    root, objects, out = (Path(argument) for argument in sys.argv[1:4])
    public = names_in(sorted((root / "include").rglob("*.h")))
    private = public | names_in(internal_headers(root))
    parts: dict[str, list[str]] = {"XPURUNTIME_0": [], "XPURUNTIME_PRIVATE_0": []}
    for name, plain in symbols(objects, sys.argv[4]).items():
        if is_declared(plain, private):
            parts["XPURUNTIME_0" if is_declared(plain, public) else "XPURUNTIME_PRIVATE_0"].append(name)
    if "--all" in sys.argv:
        parts["XPURUNTIME_PRIVATE_0"] = ["*"]
    lines = [f"{part} {{ global:\n  " + ";\n  ".join(names) + ";\n};\n" for part, names in parts.items() if names]
    text = "".join(lines) if "--all" in sys.argv else "".join(lines).removesuffix("};\n") + "local:\n  *;\n};\n"
    out.write_text(text, encoding="utf-8")


if __name__ == "__main__":
    main()
