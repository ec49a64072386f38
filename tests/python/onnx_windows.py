"""ONNX convolutions and pooling: paddings of both sides, one dim as two."""

from __future__ import annotations

from typing import Any, Callable

import numpy as np

from onnx_node import Node, OutOfScope
from xpuruntime import ops


def centred(array: np.ndarray, zero_point: Any) -> np.ndarray:
    """Without its zero point, in 32 bits."""
    wide = ops.cast(array, "int32")
    if zero_point is None:
        return wide
    zero = ops.cast(zero_point, "int32")
    return ops.sub(wide, zero.reshape(-1, *[1] * (array.ndim - 1)) if zero.size > 1 else zero)


def pads(node: Node, extents: tuple[int, ...], kernel: list[int], stride: list[int]) -> tuple[list[int], list[int]]:
    """How much before and after each dim."""
    dims, mode = len(kernel), node.get("auto_pad", b"NOTSET")
    dilation = node.get("dilations", [1] * dims)
    if mode in (b"SAME_UPPER", b"SAME_LOWER"):
        reach = [dilation[i] * (kernel[i] - 1) + 1 for i in range(dims)]
        total = [max((-(-extents[i] // stride[i]) - 1) * stride[i] + reach[i] - extents[i], 0) for i in range(dims)]
        less, more = [size // 2 for size in total], [size - size // 2 for size in total]
        return (less, more) if mode == b"SAME_UPPER" else (more, less)
    given = node.get("pads", [0] * 2 * dims)
    return list(given[:dims]), list(given[dims:])


def padded(x: np.ndarray, before: list[int], after: list[int], value: Any) -> np.ndarray:
    """With both sides filled up."""
    return np.pad(x, [(0, 0), (0, 0), *zip(before, after)], constant_values=value)


def conv(node: Node) -> Any:
    """Paddings that differ are put on first; one dim is a plane of height 1."""
    x, weight, bias = node.inputs[0], node.inputs[1], node.input(2)
    dims = x.ndim - 2
    stride = node.get("strides", [1] * dims)
    before, after = pads(node, x.shape[2:], list(weight.shape[2:]), stride)
    if before != after:
        x, before = padded(x, before, after, 0), [0] * dims
    more = {"stride": stride, "padding": before, "dilation": node.get("dilations", [1] * dims),
            "groups": node.get("group", 1)}
    return getattr(ops, f"conv{dims}d")(x, weight, bias, **more)


def conv_integer(node: Node) -> Any:
    """Zero points are taken off in 32 bits first, so that padding is zero."""
    x, weight = (centred(node.inputs[i], node.input(2 + i)) for i in range(2))
    return conv(Node([x, weight], node.outputs, node.attributes))


def widened(value: Any) -> Any:
    """One number for a dim becomes two: a plane of height 1."""
    return [1, *value]


def pool(name: str) -> Callable[[Node], Any]:
    """max_pool or avg_pool of two or three dims; of one dim as a plane of height 1."""

    def run(node: Node) -> Any:
        x, kernel = node.inputs[0], list(node.get("kernel_shape"))
        if len(node.outputs) > 1:
            raise OutOfScope("indices of the largest")
        stride = list(node.get("strides", [1] * len(kernel)))
        before, after = pads(node, x.shape[2:], kernel, stride)
        dilation = list(node.get("dilations", [1] * len(kernel)))
        more: dict[str, Any] = {"ceil_mode": bool(node.get("ceil_mode", 0))}
        if name == "max_pool":
            more["dilation"] = dilation
        else:
            more["count_include_pad"] = bool(node.get("count_include_pad", 0))
            if max(dilation) > 1:
                raise OutOfScope("average over a dilated window")
        if before != after or any(2 * pad > size for pad, size in zip(before, kernel)):
            if name == "avg_pool" and not more["count_include_pad"]:
                raise OutOfScope("average without uneven padding, or without padding over half the window")
            x, before = padded(x, before, after, -np.inf if name == "max_pool" else 0), [0] * len(kernel)
        if len(kernel) == 1:
            more |= {"dilation": widened(dilation)} if name == "max_pool" else {}
            plane = x[:, :, None]
            flat = getattr(ops, f"{name}2d")(plane, widened(kernel), widened(stride), [0, *before], **more)
            return flat[:, :, 0]
        return getattr(ops, f"{name}{len(kernel)}d")(x, kernel, stride, before, **more)

    return run


def global_pool(name: str) -> Callable[[Node], Any]:
    """One window over everything."""

    def run(node: Node) -> Any:
        x = node.inputs[0]
        return getattr(ops, f"{name}{x.ndim - 2}d")(x, list(x.shape[2:]))

    return run


OPERATORS: dict[str, Callable[[Node], Any]] = {
    "Conv": conv, "ConvInteger": conv_integer, "MaxPool": pool("max_pool"), "AveragePool": pool("avg_pool"),
    "GlobalMaxPool": global_pool("max_pool"), "GlobalAveragePool": global_pool("avg_pool"),
}
