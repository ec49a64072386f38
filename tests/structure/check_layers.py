#!/usr/bin/env python3
"""Fails on an include that points the wrong way: usage check_layers.py ROOT.

The order below is the architecture (docs/architecture.md). A folder may include itself and what stands to its left;
backends see the registry and what is left of it; only the runtime names backends.
"""
import graphlib
import re
import sys
from pathlib import Path

LAYERS = ["core", "device", "cache", "registry", "tune", "precision", "select", "dispatch", "graph", "runtime"]
PROGRAMS = ["cli", "python"]
BACKENDS_SEE = LAYERS[: LAYERS.index("registry") + 1]
SUFFIXES = {".h", ".hpp", ".cpp", ".cc", ".c", ".cu", ".cuh", ".cl"}
INCLUDE = re.compile(r'^\s*#\s*include\s*([<"])([^">]+)[">]')
# The header at the top of include/xpuruntime that includes the rest stands for the whole library.
UMBRELLA = "xpuruntime.h"


def folder_of(path):
    """The folder of a path relative to the root, as the architecture names it; None for what is not ours."""
    parts = Path(path).parts
    if parts[:2] == ("include", "xpuruntime"):
        parts = parts[2:]
    elif parts[:1] == ("src",):
        parts = parts[1:]
    elif parts[:1] != ("bench",):
        return None
    return "/".join(parts[:-1]) or UMBRELLA


def layer_of(folder):
    """A subfolder belongs to its layer; each backend stands for itself."""
    parts = folder.split("/")
    return "/".join(parts[:2]) if parts[0] == "backends" else parts[0]


def may_use(layer):
    """The layers that `layer` may include besides itself; None if the architecture does not know it."""
    if layer in LAYERS:
        left = LAYERS[: LAYERS.index(layer)]
        return set(left)
    if layer.startswith("backends/"):
        return set(BACKENDS_SEE)
    if layer == UMBRELLA:
        return set(LAYERS)
    if layer in PROGRAMS or layer == "bench":
        return {*LAYERS, UMBRELLA}
    return None


def target_folder(root, source, quote, name):
    """Where an include leads; None for the system's and other projects' headers."""
    beside = (source.parent / name).resolve()
    if quote == '"' and beside.is_relative_to(root) and beside.is_file():
        return folder_of(beside.relative_to(root))
    if name.startswith("xpuruntime/"):
        return folder_of("include/" + name)
    if (root / "src" / name).is_file() or name.split("/")[0] in {*LAYERS, *PROGRAMS, "backends"}:
        return folder_of("src/" + name)
    return None


def includes(root):
    """Yields (where, folder, folder of the included file, its name) for each include of ours."""
    for top in ("include/xpuruntime", "src", "bench"):
        for source in sorted((root / top).rglob("*")):
            if source.suffix not in SUFFIXES:
                continue
            relative = source.relative_to(root)
            for number, line in enumerate(source.read_text(encoding="utf-8").splitlines(), 1):
                match = INCLUDE.match(line)
                target = match and target_folder(root, source, *match.groups())
                if target:
                    yield f"{relative}:{number}", folder_of(relative), target, match.group(2)


def wrong_way(folder, target):
    """Why `folder` may not include `target`; None if it may."""
    layer, other = layer_of(folder), layer_of(target)
    allowed = may_use(layer)
    if allowed is None:
        return f"the folder {folder} is not in the architecture; add it to LAYERS in check_layers.py"
    if layer == other or other in allowed:
        return None
    if other.startswith("backends/"):
        if layer == "runtime":
            return None
        return "only src/runtime may name a backend"
    return f"{layer} stands to the left of {other} and may not use it"


def circle(root):
    """Headers, or modules of the Python package, that lead back to themselves: one such way, empty where there is none."""
    graph = {}
    for top in ("include", "src"):
        for header in (root / top).rglob("*.h"):
            found = map(INCLUDE.match, header.read_text(encoding="utf-8").splitlines())
            graph[str(header.relative_to(root / top))] = {match.group(2) for match in found if match}
    package = root / "src/python/xpuruntime"
    for module in package.rglob("*.py"):
        for dots, name in re.findall(r"^ *from (\.+)(\w[\w.]*) import", module.read_text(encoding="utf-8"), re.MULTILINE):
            target = module.parents[len(dots) - 1] / (name.replace(".", "/") + ".py")
            graph.setdefault(str(module), set()).add(str(target))
    try:
        graphlib.TopologicalSorter(graph).prepare()
    except graphlib.CycleError as error:
        return " <- ".join(error.args[1])
    return ""


def check(root):
    root = Path(root).resolve()
    problems, pairs = [], set()
    if way := circle(root):
        problems.append(f"a circle: {way}")
    for where, folder, target, name in includes(root):
        reason = wrong_way(folder, target)
        if reason:
            problems.append(f"{where}: includes {name}: {reason}")
        if folder != target:
            pairs.add((folder, target))
    for one, other in sorted(pairs):
        if one < other and (other, one) in pairs:
            problems.append(f"{one} and {other} include each other")
    return problems


if __name__ == "__main__":
    found = check(sys.argv[1])
    print("\n".join(found) or "every include points left")
    sys.exit(1 if found else 0)
