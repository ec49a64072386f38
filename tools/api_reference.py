#!/usr/bin/env python3
"""Writes docs/api*.md from the built Python package's stubs and annotated sources: api_reference.py [--check] PACKAGE.

Nothing is imported: what `__init__.py` exports is looked up in the files it comes from. --check only compares.
"""

from __future__ import annotations

import ast
import functools
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Iterator, Union

Definition = Union[ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef, ast.Assign, ast.AnnAssign]
Function = (ast.FunctionDef, ast.AsyncFunctionDef)

HEADS = {
    "api": """# Python API

Every public function of `import xpuruntime as xrt`, from the package's stubs; the classes are in
[api_objects.md](api_objects.md), those of whole models in [api_models.md](api_models.md). `tools/api_reference.py` writes the
pages, and the tests compare.
[python.md](python.md) is the way in.
""",
    "api_objects": """# Python API: objects

Every public class of `import xpuruntime as xrt` but those of [models](api_models.md), and the functions that have no section in [api.md](api.md), from the
package's stubs. `tools/api_reference.py` writes this page.
""",
    "api_models": """# Python API: models

The classes of [whole models](sessions.md), from the package's stubs. `tools/api_reference.py` writes this page.
""",
}

# What the library itself brings for whole models.
OF_MODELS = {"CallTime", "EngineRejection", "EngineTime", "EngineTimes", "ModelValue", "QuantizationError", "QuantizationReport",
             "QuantizedNode", "SessionProfile", "SessionRecord", "SessionStep", "Transfer"}

# Files in the order of the pages, each with its heading; others follow under their own names.
SECTIONS = {
    "ops": "Ops", "gradients": "Backward", "inquiry": "Explain", "policies.kernel_policy": "Policies",
    "policies.execution_policy": "Execution policies", "policies.validate": "Validation", "scopes": "Scopes",
    "rules": "Rules and kernels", "tuning": "Tuning", "locks": "Locks", "reports": "Reports",
    "cuda": "NVIDIA GPUs", "errors": "Errors",
    "_core": "The library",
}


@dataclass
class Entry:
    """One exported name: where it is defined, and its definitions (several where it is overloaded)."""

    name: str
    section: str
    definitions: list[Definition]


def module_file(package: Path, dotted: str) -> Path:
    """The stub of a module, else its source."""
    base = package.joinpath(*dotted.split(".")) if dotted else package
    for path in (base.with_suffix(".pyi"), base.with_suffix(".py"), base / "__init__.pyi", base / "__init__.py"):
        if path.is_file():
            return path
    raise SystemExit(f"api_reference: there is no module {dotted} under {package}")


@functools.cache
def parsed(path: Path) -> ast.Module:
    return ast.parse(path.read_text(encoding="utf-8"), str(path))


def name_of(node: ast.stmt) -> str | None:
    """What a statement defines."""
    if isinstance(node, (*Function, ast.ClassDef)):
        return node.name
    if not isinstance(node, (ast.Assign, ast.AnnAssign)):
        return None
    target = node.targets[0] if isinstance(node, ast.Assign) else node.target
    return target.id if isinstance(target, ast.Name) else None


def resolved(package: Path, dotted: str, name: str) -> tuple[str, list[Definition]]:
    """Where a name is defined, through modules that only pass it on."""
    tree = parsed(module_file(package, dotted))
    own = [node for node in tree.body if name_of(node) == name]
    if own:
        return dotted, own  # type: ignore[return-value]
    is_package = module_file(package, dotted).stem == "__init__"
    for node in tree.body:
        if not isinstance(node, ast.ImportFrom) or not node.level:
            continue
        parent = dotted if is_package and node.level == 1 else ".".join(dotted.split(".")[: -node.level + is_package])
        inner = ".".join(part for part in (parent, node.module) if part)
        for alias in node.names:
            if (alias.asname or alias.name) == name:
                return resolved(package, inner, alias.name)
    raise SystemExit(f"api_reference: {name} is not defined in {dotted or 'the package'}")


def public_names(tree: ast.Module) -> list[str]:
    """What a module has to offer, in its own order."""
    names = [name_of(node) for node in tree.body if isinstance(node, (*Function, ast.ClassDef))]
    return list(dict.fromkeys(name for name in names if name and not name.startswith("_")))


def exports(package: Path) -> Iterator[Entry]:
    """Every public name of the package."""
    for node in parsed(module_file(package, "")).body:
        if not isinstance(node, ast.ImportFrom) or node.level != 1:
            continue
        for alias in node.names:
            name = alias.asname or alias.name
            if alias.name == "*" or node.module is None:  # all of a module, or a module itself
                module = node.module or alias.name
                for inner in public_names(parsed(module_file(package, module))):
                    yield Entry(inner, module, resolved(package, module, inner)[1])
            elif not name.startswith("_"):
                section, definitions = resolved(package, node.module, alias.name)
                yield Entry(name, section, definitions)


def is_property(node: ast.FunctionDef | ast.AsyncFunctionDef) -> bool:
    return any(ast.unparse(decorator) == "property" for decorator in node.decorator_list)


def signature(node: ast.FunctionDef | ast.AsyncFunctionDef, owner: str = "") -> str:
    """Its first line, without self."""
    arguments = node.args
    decorators = [ast.unparse(decorator) for decorator in node.decorator_list]
    for group in (arguments.posonlyargs, arguments.args):
        if owner and "staticmethod" not in decorators and group and group[0].arg in ("self", "cls"):
            del group[0]
    returns = f" -> {ast.unparse(node.returns)}" if node.returns else ""
    shown = owner if node.name == "__init__" else node.name
    if is_property(node):
        return shown + returns.replace(" -> ", ": ", 1)
    return f"{shown}({ast.unparse(arguments)})" + ("" if node.name == "__init__" else returns)


def sentence(node: ast.AST) -> str:
    """The docstring on one line."""
    return " ".join((ast.get_docstring(node) or "").split())  # type: ignore[arg-type]


def line(node: ast.FunctionDef | ast.AsyncFunctionDef, owner: str = "") -> str:
    said = sentence(node)
    return f"- `{signature(node, owner)}`" + (f": {said}" if said else "")


def shown_members(node: ast.ClassDef) -> Iterator[str]:
    """Its constructor, methods and fields; fields that need no words stand together on one line."""
    plain: list[str] = []
    for member in node.body:
        name = name_of(member)
        if name is None or (name.startswith("_") and name not in ("__init__", "__call__")):
            continue
        if isinstance(member, ast.AnnAssign):
            plain.append(f"`{ast.unparse(member)}`")
        elif not isinstance(member, Function):
            plain.append(f"`{name}`")
        elif any(ast.unparse(decorator).endswith(".setter") for decorator in member.decorator_list):
            continue
        elif is_property(member) and not sentence(member):
            plain.append(f"`{signature(member, node.name)}`")
        else:
            yield line(member, node.name)
    if plain:
        yield "- Fields: " + ", ".join(plain)


def shown_definitions(entry: Entry) -> list[Definition]:
    """Of an overloaded function the overloads, with the words of the one that does the work."""
    last = entry.definitions[-1]
    if len(entry.definitions) < 2 or not isinstance(last, Function) or last.decorator_list:
        return entry.definitions
    first = entry.definitions[0]
    if isinstance(first, Function):
        first.body = last.body
    return entry.definitions[:-1]


def rendered(entry: Entry) -> list[str]:
    """An entry as lines of the page."""
    lines: list[str] = []
    for node in shown_definitions(entry):
        if isinstance(node, Function):
            lines.append(line(node))
        elif isinstance(node, ast.ClassDef):
            bases = ", ".join(ast.unparse(base) for base in node.bases)
            members = list(shown_members(node))
            head = f"`{node.name}`" + (f" ({bases})" if bases else "")
            about = f"{head}: {sentence(node)}"
            lines += ["", f"### {node.name}", "", about, "", *members, ""] if members else [f"- {about}"]
        else:
            lines.append(f"- `{ast.unparse(node)}`")
    return lines


def page_of(entry: Entry) -> str:
    """Classes and what the library itself brings have a page of their own; errors are a list."""
    is_class = any(isinstance(node, ast.ClassDef) for node in entry.definitions)
    if entry.name in OF_MODELS or (is_class and entry.section in ("sessions", "policies.execution_policy")):
        return "api_models"
    return "api_objects" if entry.section == "_core" or (is_class and entry.section != "errors") else "api"


def page(package: Path, name: str) -> str:
    """A whole page."""
    groups: dict[str, list[Entry]] = {}
    for entry in exports(package):
        if page_of(entry) == name:
            groups.setdefault(entry.section, []).append(entry)
    lines = [HEADS[name]]
    ordered = [known for known in SECTIONS if known in groups]
    for section in [*ordered, *(other for other in groups if other not in SECTIONS)]:
        about = (ast.get_docstring(parsed(module_file(package, section))) or "").split("\n\n")[0]
        title = SECTIONS.get(section) or section.split(".")[-1].replace("_", " ").capitalize()
        lines += [f"## {title}", "", " ".join(about.split()), ""]
        for entry in groups[section]:
            lines += rendered(entry)
        lines.append("")
    text = "\n".join(text.rstrip() for text in "\n".join(lines).split("\n"))
    while "\n\n\n" in text:
        text = text.replace("\n\n\n", "\n\n")
    return text.rstrip() + "\n"


def main(arguments: list[str]) -> int:
    docs = Path(__file__).resolve().parents[1] / "docs"
    stale = []
    for name in HEADS:
        target, text = docs / f"{name}.md", page(Path(arguments[-1]), name)
        if "--check" not in arguments:
            target.write_text(text, encoding="utf-8")
        elif not target.is_file() or target.read_text(encoding="utf-8") != text:
            stale.append(target.name)
    if stale:
        print(f"{' and '.join(stale)}: not what the stubs say; run tools/api_reference.py PACKAGE", file=sys.stderr)
    return 1 if stale else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
