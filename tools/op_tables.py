#!/usr/bin/env python3
"""tools/op_tables.py [--check]: writes the tables of ops and kernels, between markers, from the built package.

Run it with the package on PYTHONPATH. With --check nothing is written; it exits with 1 if a page says something else than
the rows.
"""

import re
import sys
from pathlib import Path
from typing import Any, Callable

import xpuruntime._core

ROOT = Path(__file__).resolve().parent.parent
Rows = list[dict[str, Any]]


def code(words: list[str], between: str = ", ") -> str:
    return between.join(f"`{word}`" for word in words)


def default_text(attribute: dict[str, Any]) -> str:
    """As a problem text writes it; empty where the note says what stands for it."""
    value = attribute["default"]
    if attribute["choices"]:
        return "=" + "\\|".join(attribute["choices"])
    if attribute["note"] == "required" or value == 2**63 - 1:
        return ""
    if isinstance(value, bool):
        return f"={str(value).lower()}"
    return f"={value:g}" if isinstance(value, float) else f"={value}"


def attribute_text(attribute: dict[str, Any]) -> str:
    note = f" ({attribute['note']})" if attribute["note"] else ""
    return f"`{attribute['name']}{default_text(attribute)}`{note}"


def input_text(spec: dict[str, Any]) -> str:
    name = spec["name"] + (" ..." if spec["repeated"] else "")
    return f"[{name}]" if spec["optional"] else name


def op_table(rows: Rows) -> list[str]:
    """One line for ops of a category that take the same inputs and attributes."""
    groups: dict[tuple[str, str, str], Rows] = {}
    for row in sorted(rows, key=lambda row: [other["category"] for other in rows].index(row["category"])):
        inputs = code([input_text(spec) for spec in row["inputs"]], " ")
        attributes = " ".join(attribute_text(attribute) for attribute in row["attributes"])
        groups.setdefault((row["category"], inputs, attributes), []).append(row)
    lines = ["| category | op (aliases) | inputs | attributes | what it does |", "|---|---|---|---|---|"]
    shown = ""
    for (category, inputs, attributes), ops in groups.items():
        names = ", ".join(f"`{op['name']}`" + (f" ({code(op['aliases'])})" if op["aliases"] else "") for op in ops)
        summaries = " ".join(dict.fromkeys(op["summary"] for op in ops))
        lines.append(f"| {'' if category == shown else category} | {names} | {inputs} | {attributes} | {summaries} |")
        shown = category
    return [line.replace("|  |", "| |") for line in lines]


def size_table(rows: Rows) -> list[str]:
    """One line for ops whose sizes are the same in every word."""
    groups: dict[str, list[str]] = {}
    for row in rows:
        keys = ", ".join(f"`{size['name']}` ({size['summary']})" for size in row["sizes"])
        free = code([size["name"] for size in row["sizes"] if size["free"]])
        if keys:
            groups.setdefault(f"{keys} | {free}", []).append(row["name"])
    lines = ["| op | keys | those that usually vary |", "|---|---|---|"]
    return lines + [f"| {code(ops)} | {keys} |" for keys, ops in groups.items()]


def cast_table(rows: Rows) -> list[str]:
    """Inputs that stay in their dtype although the op is cast."""
    groups: dict[str, list[str]] = {}
    for row in rows:
        kept = [spec["name"] for spec in row["inputs"] if not spec["follows_precision"]]
        if kept and len(kept) < len(row["inputs"]):
            groups.setdefault(code(kept), []).append(row["name"])
    return ["| op | not cast |", "|---|---|"] + [f"| {code(ops)} | {kept} |" for kept, ops in groups.items()]


def kernel_text(kernel: dict[str, Any]) -> str:
    """With its dtypes, unless they are the usual ones."""
    usual = ("any dtype", "f32, f16 and bf16")
    return f"`{kernel['name']}`" + ("" if kernel["dtypes"] in usual else f" ({kernel['dtypes']})")


def kernel_table(rows: Rows) -> list[str]:
    """One line for ops that have the same kernels; those that are only names are left out."""
    groups: dict[str, list[str]] = {}
    for row in rows:
        cells = []
        for device in ("cpu", "cuda", "opencl"):
            built = [kernel for kernel in row["kernels"]
                     if kernel["device_type"] == device and not kernel["needs"].startswith("a later version")]
            cells.append(", ".join(kernel_text(kernel) for kernel in built))
        groups.setdefault(" | ".join(cells), []).append(row["name"])
    lines = ["| op | CPU | CUDA (compute capability 8.0 and up) | OpenCL |", "|---|---|---|---|"]
    lines += [f"| {code(ops)} | {cells} |" for cells, ops in groups.items()]
    return [line.replace("|  |", "| |").replace("|  |", "| |") for line in lines]


# File, name of the part, and what stands in it.
PARTS: list[tuple[str, str, Callable[[Rows], list[str]]]] = [
    ("docs/interfaces.md", "ops", op_table),
    ("docs/policies.md", "sizes", size_table),
    ("docs/precision.md", "casts", cast_table),
    ("README.md", "kernels", kernel_table),
]


def with_part(text: str, name: str, lines: list[str]) -> str:
    """The text with other lines between the markers of a part."""
    pattern = re.compile(rf"(<!-- {name}: tools/op_tables\.py[^\n]*\n)(.*?)(<!-- end of {name} -->)", re.DOTALL)
    if not pattern.search(text):
        raise SystemExit(f"op_tables: the markers of {name} are missing")
    body = "".join(f"{line}\n" for line in lines)
    return pattern.sub(lambda found: found.group(1) + body + found.group(3), text)


def main(arguments: list[str]) -> int:
    rows = xpuruntime._core.op_rows()
    texts = {path: (ROOT / path).read_text(encoding="utf-8") for path, _, _ in PARTS}
    made = dict(texts)
    for path, name, lines in PARTS:
        made[path] = with_part(made[path], name, lines(rows))
    made["README.md"] = re.sub(r"These are all \d+ ops", f"These are all {len(rows)} ops", made["README.md"])
    stale = [path for path in texts if made[path] != texts[path]]
    if "--check" not in arguments:
        for path in stale:
            (ROOT / path).write_text(made[path], encoding="utf-8")
        return 0
    for path in stale:
        print(f"{path} is not what the rows of the ops say; run tools/op_tables.py")
    return 1 if stale else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
