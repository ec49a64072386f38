#!/usr/bin/env python3
"""tools/op_functions.py [--check]: writes the C++ functions of the ops, runtime/op_options.h and runtime/ops.h, from the
built package.

Run it with the package on PYTHONPATH and clang-format on PATH. With --check nothing is written; it exits with 1 if a header
says something else than the rows, whatever its layout.
"""

import math
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import xpuruntime as xrt

FOLDER = Path(__file__).resolve().parent.parent / "include" / "xpuruntime" / "runtime"
Row = dict[str, Any]

OPTIONS_HEAD = """#pragma once

#include <cstdint>
#include <limits>
#include <string_view>

#include "xpuruntime/runtime/call_op.h"

// Made by tools/op_functions.py from the rows of the ops. What the functions of ops.h may be given beyond what they must be:
// inputs that may be left out, and attributes.

namespace xpuruntime::ops {
"""

OPS_HEAD = """#pragma once

#include <array>
#include <vector>

#include "xpuruntime/runtime/op_options.h"

// Made by tools/op_functions.py from the rows of the ops. Each op is a function that returns new tensors, and one that
// writes to those it is given first:
//   Tensor y = ops::conv2d(x, w, {.bias = &b, .stride = 2, .padding = 1});
//   ops::matmul_out(c, a, b);
// What is required is an argument, all else a field of the options, in the order of the struct. Calls go through
// Runtime::global(), with its policy, and run on the tensors' device and its current stream; call_op.h says more.

namespace xpuruntime::ops {
"""

TYPES = {"boolean": "bool", "integer": "std::int64_t", "real": "double", "integers": "Ints",
         "choice": "std::string_view", "dtype": "DataType"}


def required(row: Row, signatures: dict[str, str]) -> list[Row]:
    """Attributes that the op's function in Python wants: they have no default there."""
    parameters = signatures[row["name"]].split(", ")
    wanted = {text.split(":")[0] for text in parameters if " = " not in text}
    return [attribute for attribute in row["attributes"] if attribute["python_name"] in wanted]


def default_text(attribute: Row) -> str:
    value = attribute["default"]
    if attribute["kind"] == "boolean":
        return str(value).lower()
    if attribute["kind"] == "choice":
        return f'"{value}"'
    if attribute["kind"] == "dtype":
        kind, bits = re.match(r"([a-z]+)(\d*)", value).groups()
        return "DataType::" + {"f": "float", "bf": "bfloat", "i": "int", "u": "uint", "bool": "boolean"}[kind] + bits
    if value == ():
        return "{}"
    if value in (math.inf, -math.inf):
        return ("-" if value < 0 else "") + "std::numeric_limits<double>::infinity()"
    return "INT64_MAX" if value == 2**63 - 1 else repr(value)


def option_fields(row: Row, others: list[Row]) -> str:
    """Of the optional inputs, and the attributes but for those that are no options."""
    fields = [f"const Tensor* {spec['name']} = nullptr;" for spec in row["inputs"] if spec["optional"]]
    for attribute in row["attributes"]:
        if attribute in others:
            continue
        notes = "|".join(attribute["choices"]) or attribute["note"]
        comment = f"  // {notes}" if notes else ""
        fields.append(f"{TYPES[attribute['kind']]} {attribute['name']} = {default_text(attribute)};{comment}")
    return "".join(f"  {field}\n" for field in fields)


def struct_name(row: Row) -> str:
    return "".join(word.capitalize() for word in row["name"].split("_")) + "Options"


def result_count(row: Row, switch: Row | None = None) -> int:
    needed = sum(not spec["optional"] for spec in row["inputs"])
    text = (row["sample"] or ", ".join(["T[64,64]"] * needed)).replace("T[", "f32[")
    if switch:
        text += f"{'' if ';' in text else ';'} {switch['name']}=true"
    return len(xrt.Problem(f"{row['name']}({text})").outputs)


def switches_of(row: Row) -> list[Row]:
    """Attributes that add a result, each a function of its own: the number of results is in its type. What is written over
    an optional input, as the running statistics of a batch norm, is no result."""
    if any(spec["optional"] and spec["in_place"] for spec in row["inputs"]):
        return []
    booleans = [one for one in row["attributes"] if one["kind"] == "boolean"]
    return [one for one in booleans if result_count(row, one) > result_count(row)]


def parameter(spec: Row) -> str:
    if spec["repeated"]:
        return f"const std::vector<Tensor>& {spec['name']}"
    return f"const {'Operand' if spec['or_number'] else 'Tensor'}& {spec['name']}"


def argument(attribute: Row) -> str:
    by_value = attribute["kind"] != "integers"
    return f"{TYPES[attribute['kind']]} {attribute['name']}" if by_value else f"const Ints& {attribute['name']}"


def functions(row: Row, must: list[Row], has_options: bool, switch: Row | None = None) -> str:
    """The op's two functions, with the result that a switch adds or without any."""
    name, summary = row["name"], row["summary"]
    if switch:
        name, summary = f"{name}_with_{switch['name']}", f"The same, and as the last result its {switch['name']}."
    parameters = [parameter(spec) for spec in row["inputs"] if not spec["optional"]] + [argument(one) for one in must]
    if has_options:
        parameters.append(f"const {struct_name(row)}& options = {{}}")
    inputs = ", ".join(("options." if spec["optional"] else "") + spec["name"] for spec in row["inputs"])
    places = {one["name"]: ("" if one in must else "options.") + one["name"] for one in row["attributes"]}
    places |= {one["name"]: str(one == switch).lower() for one in switches_of(row)}
    values = ", ".join(places.values())
    call = f"OpId::{row['name']}, {{{inputs}}}" + (f", {{{values}}}" if values else "")
    count = result_count(row, switch)
    result, out, outputs, caller = "Tensor", "const Tensor& out", "{&out, 1}", "call"
    if count > 1:
        result, outputs, caller = f"std::array<Tensor, {count}>", "out", f"call_all<{count}>"
        out = f"const {result}& out"
    joined = ", ".join(parameters)
    return (f"/// {summary}\ninline {result} {name}({joined}) {{ return {caller}({call}); }}\n"
            f"inline void {name}_out({out}, {joined}) {{ call_out({outputs}, {call}); }}\n\n")


def headers() -> dict[str, str]:
    signatures = {name: parameters for name, parameters, op in xrt._core.op_signatures() if name == op}
    options, ops, named = OPTIONS_HEAD, OPS_HEAD + "\n", {}
    for row in xrt._core.op_rows():
        must = required(row, signatures)
        switches = switches_of(row)
        fields = option_fields(row, must + switches)
        if fields and fields in named:  # ops that take the same have one struct under two names
            options += f"using {struct_name(row)} = {named[fields]};\n"
        elif fields:
            named[fields] = struct_name(row)
            options += f"\nstruct {struct_name(row)} {{\n{fields}}};\n"
        ops += "".join(functions(row, must, bool(fields), switch) for switch in [None, *switches])
    end = "}  // namespace xpuruntime::ops\n"
    return {"op_options.h": f"{options}\n{end}", "ops.h": ops + end}


def formatted(text: str) -> str:
    command = ["clang-format", f"--assume-filename={FOLDER / 'ops.h'}"]
    return subprocess.run(command, input=text, check=True, capture_output=True, text=True).stdout


def words(text: str) -> str:
    return re.sub(r"\s|^ *//+", "", text, flags=re.MULTILINE)


def main() -> int:
    stale = 0
    for name, text in headers().items():
        path = FOLDER / name
        if "--check" not in sys.argv[1:]:
            path.write_text(formatted(text), encoding="utf-8")
        elif words(path.read_text(encoding="utf-8")) != words(text):
            print(f"{name} is not what the rows of the ops say; run tools/op_functions.py")
            stale = 1
    return stale


if __name__ == "__main__":
    sys.exit(main())
