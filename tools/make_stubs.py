#!/usr/bin/env python3
"""tools/make_stubs.py [--check]: writes the stubs of the built package, _core.pyi and ops.pyi.

Run it with the package on PYTHONPATH and a Python that has nanobind. With --check nothing is written; it exits with 1 if
the stubs that are there are not those of the package.
"""

import re
import sys
from pathlib import Path

import nanobind.stubgen

import xpuruntime._core

PACKAGE = Path(__file__).resolve().parent.parent / "src" / "python" / "xpuruntime"

ABSTRACT = ["Callable", "Iterable", "Iterator", "Mapping", "Sequence"]

OPS_HEAD = '''\
from collections.abc import Sequence
from typing import Any

Array = Any
"""An array of NumPy, PyTorch, JAX or CuPy, or anything that speaks DLPack or the buffer protocol."""

DType = Any
"""A name such as "bf16", or a dtype of NumPy or PyTorch."""
'''


def core_stub() -> str:
    """As nanobind writes it from the signatures of the module, with what it leaves out."""
    generator = nanobind.stubgen.StubGen(xpuruntime._core)
    generator.put(xpuruntime._core)
    # The submodule has a stub of its own, beside this one.
    text = generator.get().replace("from xpuruntime._core import ops as ops", "from xpuruntime import ops as ops")
    text = text.replace("__hash__: None = None", "__hash__: None = None  # type: ignore[assignment]")
    # Methods that Python itself adds from 3.12 on to what has the buffer protocol.
    text = re.sub(r'    def __(?:release_)?buffer__\(.*\):\n        """\n(?:        .*\n)*?        """\n\n', "", text)
    # What makes a dataclass of it, in the words of a type checker.
    text = re.sub(r"__dataclass_fields__: .*", "__dataclass_fields__: ClassVar[dict[str, Field[Any]]]", text)
    text = text.replace("import xpuruntime.policies.execution_policy\n", "from dataclasses import Field\n")
    text = re.sub(r"from typing import (?!.*ClassVar)(.*)\n", r"from typing import \1, ClassVar\n", text)
    # Names that signatures use without nanobind knowing that they do.
    used = [name for name in ABSTRACT if re.search(rf"\b{name}\b", text)]
    text = re.sub(r"from collections\.abc import .*\n", "", text)
    head, _, rest = text.partition("\n\n")
    return f"{head}\n\nfrom collections.abc import {', '.join(used)}\n{rest}".rstrip("\n") + "\n\n__version__: str\n"


def split(parameters: str) -> list[str]:
    """At the commas between parameters: none of them has one inside."""
    return parameters.split(", ")


def ops_stub() -> str:
    """From the rows that the functions are made from."""
    functions = []
    results = {"unscale": "tuple[Any, Any]"}
    summaries = {row["name"]: row["summary"] for row in xpuruntime._core.op_rows()}
    for name, parameters, op in xpuruntime._core.op_signatures():
        text = f"def {name}({parameters}) -> {results.get(op, 'Any')}:\n"
        if len(text) > 120:
            lines = "".join(f"    {parameter},\n" for parameter in split(parameters))
            text = f"def {name}(\n{lines}) -> {results.get(op, 'Any')}:\n"
        said = summaries[op] if op == name else f"{summaries[op]} The op `{op}`."
        functions.append(text + f'    """{said}"""\n')
    return OPS_HEAD + "\n" + "\n".join(functions)


def main() -> int:
    stubs = {"_core.pyi": core_stub(), "ops.pyi": ops_stub()}
    if "--check" not in sys.argv[1:]:
        for name, text in stubs.items():
            (PACKAGE / name).write_text(text, encoding="utf-8")
        return 0
    stale = [name for name, text in stubs.items() if (PACKAGE / name).read_text(encoding="utf-8") != text]
    for name in stale:
        print(f"{name} is not the stub of this package; run tools/make_stubs.py")
    return 1 if stale else 0


if __name__ == "__main__":
    sys.exit(main())
