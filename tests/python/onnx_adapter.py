"""Runs ONNX nodes with our ops: one small function an operator, which only renames, reshapes and splits up.

`OutOfScope` is raised where an operator has a feature that no op of ours has, with the reason.
"""

from __future__ import annotations

from typing import Any, Callable, Sequence

from onnx_node import Node, OutOfScope  # first: skips all where a package is missing

import numpy as np
import onnx
import onnx_attention
import onnx_windows
from onnx import helper, numpy_helper

from xpuruntime import _core, ops

OURS = {"float64", "float32", "float16", "bfloat16", "float8_e4m3fn", "float8_e5m2", "int64", "int32", "int16", "int8",
        "uint8", "bool"}


def op_of(kind: str) -> Callable[..., Any]:
    """Our op that has an operator's name, or an alias with it."""
    return getattr(ops, _core.op_name(kind))


def elementwise(kind: str) -> Callable[[Node], Any]:
    return lambda node: op_of(kind)(*node.inputs)


def binary(kind: str) -> Callable[[Node], Any]:
    """Arithmetic: the quotient of integers is an op of its own."""

    def run(node: Node) -> Any:
        if kind == "Div" and node.inputs[0].dtype.kind in "iu":
            return ops.trunc_div(*node.inputs)
        return op_of(kind)(*node.inputs)

    return run


def reduction(name: str) -> Callable[[Node], Any]:
    """Axes come as an input or as an attribute."""

    def run(node: Node) -> Any:
        data, axes = node.inputs[0], node.input(1, node.get("axes", []))
        if data.dtype == np.bool_:
            raise OutOfScope("reduction of booleans")
        dims = tuple(int(axis) for axis in axes)
        if not dims and node.get("noop_with_empty_axes", 0):
            return ops.copy(data)
        if name in ("amax", "amin") and data.size == 0:
            raise OutOfScope("the largest of no elements")
        return getattr(ops, name)(data, dim=dims, keepdim=bool(node.get("keepdims", 1)))

    return run


def folded(name: str) -> Callable[[Node], Any]:
    """Sum and Mean: any number of inputs, two at a time."""

    def run(node: Node) -> Any:
        total = ops.copy(node.inputs[0])
        for term in node.inputs[1:]:
            total = ops.add(total, term)
        return ops.div(total, len(node.inputs)) if name == "mean" else total

    return run


def softmax(name: str) -> Callable[[Node], Any]:
    """Along one axis, as since opset 13."""
    return lambda node: getattr(ops, name)(node.inputs[0], dim=node.get("axis", -1))


def gemm(node: Node) -> Any:
    """alpha * A * B + beta * C."""
    a, b, c = node.inputs[0], node.inputs[1], node.input(2)
    more = {} if c is None else {"beta": node.get("beta", 1.0)}
    flags = {"transpose_a": bool(node.get("transA", 0)), "transpose_b": bool(node.get("transB", 0))}
    return ops.matmul(a, b, c, alpha=node.get("alpha", 1.0), **flags, **more)


def matmul_integer(node: Node) -> Any:
    """Zero points are taken off in 32 bits."""
    a, b = (onnx_windows.centred(node.inputs[i], node.input(2 + i)) for i in range(2))
    return ops.matmul(a, b)


def moments(x: np.ndarray, dims: tuple[int, ...], keepdim: bool) -> tuple[Any, Any]:
    """Mean and biased variance."""
    mean = ops.mean(x, dim=dims, keepdim=True)
    off = ops.sub(x, mean)
    variance = ops.mean(ops.mul(off, off), dim=dims, keepdim=keepdim)
    return (mean if keepdim else mean.reshape(variance.shape)), variance


def batch_norm(node: Node) -> Any:
    """ONNX weighs the old statistics where PyTorch weighs the new ones."""
    x, weight, bias, mean, variance = node.inputs
    eps, old = node.get("epsilon", 1e-5), node.get("momentum", 0.9)
    if not node.get("training_mode", 0):
        return ops.batch_norm(x, mean, variance, weight, bias, eps=eps)
    y = ops.batch_norm(x, None, None, weight, bias, training=True, eps=eps)
    batch = moments(x, (0, *range(2, x.ndim)), False)
    return [y, *(ops.add(ops.mul(a, old), ops.mul(b, 1 - old)) for a, b in zip((mean, variance), batch))]


def layer_norm(node: Node) -> Any:
    """The statistics are outputs here; ours keeps them to itself."""
    x, axis, eps = node.inputs[0], node.get("axis", -1), node.get("epsilon", 1e-5)
    last = x.shape[axis % x.ndim:]
    y = ops.layer_norm(x, last, node.inputs[1], node.input(2), eps=eps)
    mean, variance = moments(x, tuple(range(axis % x.ndim, x.ndim)), True)
    return [y, mean, ops.div(np.ones_like(mean), ops.sqrt(ops.add(variance, eps)))][: len(node.outputs)]


def root_norm(node: Node) -> Any:
    """Over the last dims: as one."""
    x, weight = node.inputs
    axis = node.get("axis", -1) % x.ndim
    flat = x.reshape(*x.shape[:axis], -1)
    y = op_of("RMSNormalization")(flat, flat.shape[-1:], weight.reshape(-1), eps=node.get("epsilon", 1e-5))
    return y.reshape(x.shape)


def lp_normalize(node: Node) -> Any:
    return ops.normalize(node.inputs[0], p=float(node.get("p", 2)), dim=node.get("axis", -1))


def dropout(node: Node) -> Any:
    """At inference, or with nothing dropped: the drawn numbers themselves are nobody's standard."""
    x, ratio = node.inputs[0], node.input(1, node.get("ratio", 0.5))
    training = bool(node.input(2, False))
    if training and float(ratio) > 0:
        raise OutOfScope("random numbers of NumPy")
    y = ops.dropout(x, float(ratio), training)
    return [y, np.ones(x.shape, np.bool_)][: len(node.outputs)]


def gelu(node: Node) -> Any:
    return ops.gelu(node.inputs[0], approximate=node.get("approximate", b"none").decode())


def swish(node: Node) -> Any:
    if node.get("alpha", 1.0) != 1.0:
        raise OutOfScope("swish with another alpha than 1")
    return ops.silu(node.inputs[0])


def gather(node: Node) -> Any:
    """Rows of a table; other axes are turned to the front and back, as a table has two dims."""
    data, index, axis = node.inputs[0], node.inputs[1], node.get("axis", 0)
    index = np.where(index < 0, index + data.shape[axis], index)
    turned = ops.permute(data, [axis, *[i for i in range(data.ndim) if i != axis]])
    rows = ops.embedding(index, turned.reshape(turned.shape[0], -1)).reshape(*index.shape, *turned.shape[1:])
    taken = list(range(index.ndim))
    return ops.permute(rows, [*range(index.ndim, index.ndim + axis), *taken, *range(index.ndim + axis, rows.ndim)])


def class_loss(name: str) -> Callable[[Node], Any]:
    """The second output of the softmax one is our log_softmax."""

    def run(node: Node) -> Any:
        scores, target, weight = node.inputs[0], node.inputs[1], node.input(2)
        more = {"reduction": node.get("reduction", b"mean").decode(), "ignore_index": node.get("ignore_index", -100)}
        loss = getattr(ops, name)(scores, target, weight=weight, **more)
        return [loss, ops.log_softmax(scores, dim=1)] if len(node.outputs) > 1 else loss

    return run


def cast(node: Node) -> Any:
    """To the dtype of an attribute or of a second input."""
    target = node.get("to")
    kind = helper.tensor_dtype_to_np_dtype(target) if target is not None else node.inputs[1].dtype
    if kind.name not in OURS:
        raise OutOfScope(f"dtype {kind.name}")
    if kind.name.startswith("float8") and node.get("saturate", 1):
        raise OutOfScope("f8 that stops at its ends: ours gives infinity or NaN")
    return ops.cast(node.inputs[0], kind.name)


def take(node: Node) -> Any:
    """Slice: one of ours for each axis."""
    x, starts, ends = node.inputs[:3]
    axes, steps = node.input(3, range(len(starts))), node.input(4, [1] * len(starts))
    if min(steps) < 1:
        raise OutOfScope("slice with a negative step")
    for start, end, axis, step in zip(starts, ends, axes, steps):
        x = ops.slice(x, int(axis), int(start), int(end), int(step))
    return x


def split(node: Node) -> Any:
    """One slice for each output."""
    x, axis, count = node.inputs[0], node.get("axis", 0), len(node.outputs)
    even = -(-x.shape[axis] // count)
    sizes = node.input(1, [min(even, x.shape[axis] - i * even) for i in range(count)])
    ends = np.cumsum(sizes)
    return [ops.slice(x, axis, int(end - size), int(end)) for end, size in zip(ends, sizes)]


def constant(node: Node) -> Any:
    """A tensor, or a number."""
    ((name, value),) = node.attributes.items()
    if name == "value":
        return numpy_helper.to_array(value)
    return np.array(value, np.float32 if "float" in name else np.int64)


OPERATORS: dict[str, Callable[[Node], Any]] = {
    **{kind: binary(kind) for kind in ("Add", "Sub", "Mul", "Div")},
    **{kind: elementwise(kind) for kind in (
        "Exp", "Log", "Sqrt", "Relu", "Sigmoid", "Tanh", "MatMul", "Abs", "Neg", "Sign", "Floor", "Ceil", "Round", "Erf",
        "Reciprocal", "Sin", "Cos", "Tan", "Asin", "Acos", "Atan", "Sinh", "Cosh", "Asinh", "Acosh", "Atanh", "Softplus",
        "HardSwish", "PRelu", "IsNaN", "Equal", "Less", "Greater", "BitwiseAnd", "BitwiseOr", "BitwiseXor", "BitwiseNot",
        "Where")},
    **{kind: elementwise("logical_" + kind) for kind in ("And", "Or", "Xor", "Not")},
    "Identity": elementwise("copy"), "Gelu": gelu, "Swish": swish, "Sum": folded("sum"), "Mean": folded("mean"),
    "ReduceSum": reduction("sum"), "ReduceMean": reduction("mean"), "ReduceMax": reduction("amax"),
    "ReduceMin": reduction("amin"), "Softmax": softmax("softmax"), "LogSoftmax": softmax("log_softmax"),
    "Gemm": gemm, "MatMulInteger": matmul_integer, "BatchNormalization": batch_norm,
    "LayerNormalization": layer_norm, "RMSNormalization": root_norm, "LpNormalization": lp_normalize,
    "Dropout": dropout, "Gather": gather, "SoftmaxCrossEntropyLoss": class_loss("cross_entropy"),
    "NegativeLogLikelihoodLoss": class_loss("nll_loss"), "Cast": cast, "CastLike": cast, "Slice": take, "Split": split,
    "Transpose": lambda node: ops.permute(node.inputs[0], node.get("perm", range(node.inputs[0].ndim)[::-1])),
    "Concat": lambda node: ops.concat(node.inputs, dim=node.get("axis")), "Constant": constant,
    **onnx_windows.OPERATORS, **onnx_attention.OPERATORS,
}


def check_dtypes(arrays: Sequence[Any]) -> None:
    """Only arrays of dtypes that we have."""
    for array in arrays:
        if array is not None and not isinstance(array, np.ndarray):
            raise OutOfScope("a sequence or an optional instead of a tensor")
        if array is not None and array.dtype.name not in OURS:
            raise OutOfScope(f"dtype {array.dtype.name}")


def array_from(value: Any) -> Any:
    """What a case holds, as an array where it is one."""
    if isinstance(value, onnx.TensorProto):
        return numpy_helper.to_array(value)
    return np.asarray(value) if isinstance(value, np.generic) else value


def run(model: onnx.ModelProto, inputs: Sequence[Any]) -> list[Any]:
    """The model's outputs."""
    known = {item.name: array_from(value) for item, value in zip(model.graph.input, inputs)}
    for proto in model.graph.node:
        given = [known[name] if name else None for name in proto.input]
        check_dtypes(given)
        attributes = {attribute.name: helper.get_attribute_value(attribute) for attribute in proto.attribute}
        results = OPERATORS[proto.op_type](Node(given, list(proto.output), attributes))
        known.update(zip(proto.output, results if isinstance(results, list) else [results]))
    return [known[item.name] for item in model.graph.output]
