#!/usr/bin/env python3
"""tools/onnx_operators.py: writes src/graph/onnx/operators.inc, what ONNX's operators take, from its Python package."""

from pathlib import Path

from onnx import defs

FILE = Path(__file__).resolve().parent.parent / "src" / "graph" / "onnx" / "operators.inc"
OLDEST_OPSET = 6  # that load_onnx takes
HEAD = """// Made by tools/onnx_operators.py from ONNX's package: of each operator the fewest and most inputs (-1: any number),
// the most outputs, and its attributes, in all opsets from 6 on.
"""


def rows() -> str:
    versions: dict[str, list[defs.OpSchema]] = {}
    for schema in sorted(defs.get_all_schemas_with_history(), key=lambda one: one.since_version):
        if schema.domain == "":
            versions.setdefault(schema.name, []).append(schema)
    lines = []
    for name, schemas in sorted(versions.items()):
        old = [one for one in schemas if one.since_version <= OLDEST_OPSET]
        schemas = old[-1:] + schemas[len(old):]
        inputs, outputs = (max(counts) for counts in zip(*((one.max_input, one.max_output) for one in schemas)))
        inputs, outputs = (-1 if count >= 2**31 - 1 else count for count in (inputs, outputs))
        attributes = " ".join(sorted({name for one in schemas for name in one.attributes}))
        lines.append(f'{{"{name}", {min(one.min_input for one in schemas)}, {inputs}, {outputs}, "{attributes}"}},\n')
    return "".join(lines)


if __name__ == "__main__":
    FILE.write_text(HEAD + rows(), encoding="utf-8")
