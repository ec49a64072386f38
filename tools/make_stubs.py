#!/usr/bin/env python3
"""tools/make_stubs.py FOLDER: writes the stubs of the built package, _core.pyi and ops.pyi, into the folder.

The build runs it, with the package on PYTHONPATH and a Python that has nanobind.
"""

import re
import sys
from pathlib import Path

import nanobind.stubgen

import xpuruntime._core

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
    rows = {row["name"]: row for row in xpuruntime._core.op_rows()}
    for name, parameters, op in xpuruntime._core.op_signatures():
        result = "Any" if rows[op]["outputs"] == 1 else f"tuple[{', '.join(['Any'] * rows[op]['outputs'])}]"
        summary = rows[op]["summary"]
        text = f"def {name}({parameters}) -> {result}:\n"
        if len(text) > 120:
            lines = "".join(f"    {parameter},\n" for parameter in split(parameters))
            text = f"def {name}(\n{lines}) -> {result}:\n"
        said = summary if op == name else f"{summary} The op `{op}`."
        functions.append(text + f'    """{said}"""\n')
    return OPS_HEAD + "\n" + "\n".join(functions)


if __name__ == "__main__":
    for name, text in {"_core.pyi": core_stub(), "ops.pyi": ops_stub()}.items():
        Path(sys.argv[1], name).write_text(text, encoding="utf-8")
