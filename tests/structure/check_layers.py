#!/usr/bin/env python3
"""Fails on an include that points the wrong way, and on circles: usage check_layers.py ROOT.

The order below is the architecture (docs/architecture.md). A folder may include itself and what stands to its left;
backends see the registry and what is left of it; only the runtime names backends.
"""
import ast
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
# The module of the Python package that is compiled; it imports none of the others.
COMPILED = "_core"


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


def target_of(root, source, quote, name):
    """The included file, relative to the root; None for the system's and other projects' headers."""
    beside = (source.parent / name).resolve()
    if quote == '"' and beside.is_relative_to(root) and beside.is_file():
        return beside.relative_to(root)
    if name.startswith("xpuruntime/"):
        return Path("include", name)
    if (root / "src" / name).is_file() or name.split("/")[0] in {*LAYERS, *PROGRAMS, "backends"}:
        return Path("src", name)
    return None


def includes(root):
    """Yields (file, number of the line, included file, its name) for each include of ours."""
    for top in ("include/xpuruntime", "src", "bench"):
        for source in sorted((root / top).rglob("*")):
            if source.suffix not in SUFFIXES:
                continue
            for number, line in enumerate(source.read_text(encoding="utf-8").splitlines(), 1):
                match = INCLUDE.match(line)
                target = match and target_of(root, source, *match.groups())
                if target and folder_of(target):
                    yield source.relative_to(root), number, target, match.group(2)


def imports(root):
    """Yields (file, imported file) for each import inside the Python package, in functions too."""
    package = root / "src/python/xpuruntime"
    for module in sorted(package.rglob("*.py")):
        for node in ast.walk(ast.parse(module.read_text(encoding="utf-8"))):
            if not isinstance(node, (ast.Import, ast.ImportFrom)):
                continue
            folder = module.parents[node.level - 1] if getattr(node, "level", 0) else package.parent
            for name in (alias.name for alias in node.names if alias.name != COMPILED):
                # What is imported from a module is a module itself, or stands in it.
                ways = [name] if isinstance(node, ast.Import) else [f"{node.module or ''}.{name}", node.module or ""]
                paths = [folder.joinpath(*way.split(".")) for way in ways]
                files = [file for path in paths for file in (path.with_suffix(".py"), path / "__init__.py")]
                target = next((file for file in files if file.is_file()), None)
                if target:
                    yield module.relative_to(root), target.relative_to(root)


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


def circle(edges):
    """Of pairs (user, used), one way from something back to itself; empty where there is none."""
    graph = {}
    for user, used in edges:
        graph.setdefault(str(user), set()).add(str(used))
    try:
        graphlib.TopologicalSorter(graph).prepare()
    except graphlib.CycleError as error:
        return " <- ".join(error.args[1])
    return ""


def check(root):
    root = Path(root).resolve()
    problems, files, folders = [], set(imports(root)), set()
    for source, number, target, name in includes(root):
        one, other = folder_of(source), folder_of(target)
        reason = wrong_way(one, other)
        if reason:
            problems.append(f"{source}:{number}: includes {name}: {reason}")
        files.add((source, target))
        if one != other:
            folders.add((one, other))
    return problems + [f"a circle: {way}" for way in (circle(sorted(files)), circle(sorted(folders))) if way]


if __name__ == "__main__":
    found = check(sys.argv[1])
    print("\n".join(found) or "every include points left")
    sys.exit(1 if found else 0)
