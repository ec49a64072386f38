"""ONNX Attention with ours: heads split and joined, a cache put in front, and every rule on who sees whom as a mask."""

from __future__ import annotations

from typing import Any, Callable

import numpy as np

from onnx_node import Node, OutOfScope
from xpuruntime import ops

ABSENT = {"softcap": "attention with a soft cap on the scores", "softmax_precision": "softmax at a named precision"}


def heads(x: np.ndarray, count: int) -> np.ndarray:
    """[batch, length, heads * size] as [batch, heads, length, size]."""
    return ops.permute(x.reshape(*x.shape[:2], count, -1), [0, 2, 1, 3])


def seen(node: Node, queries: int, keys: int, past: int) -> np.ndarray | None:
    """[batch or 1, 1, queries, keys]: who takes part by causality, window and real length; None: all."""
    valid, left, right = node.input(6), node.get("left_window_size", -1), node.get("right_window_size", -1)
    if valid is None and left < 0 and right < 0 and not (past and node.get("is_causal", 0)):
        return None
    lengths = np.array([keys]) if valid is None else np.asarray(valid)
    first = np.full(len(lengths), past) if valid is None else lengths - queries
    row = np.arange(queries)[None, :, None] + first[:, None, None]
    column = np.arange(keys)[None, None, :]
    allowed = np.broadcast_to(column < lengths[:, None, None], (len(lengths), queries, keys))
    if node.get("is_causal", 0):
        allowed = allowed & (column <= row)
    if left >= 0:
        allowed = allowed & (column >= row - left)
    if right >= 0:
        allowed = allowed & (column <= row + right)
    return allowed[:, None]


def joined(mask: np.ndarray | None, allowed: np.ndarray | None, keys: int) -> np.ndarray | None:
    """The caller's mask and ours in one. A mask that is too short hides the keys beyond it."""
    if mask is not None and mask.shape[-1] < keys:
        missing = [(0, 0)] * (mask.ndim - 1) + [(0, keys - mask.shape[-1])]
        mask = np.pad(mask, missing, constant_values=False if mask.dtype == np.bool_ else -np.inf)
    if mask is None or allowed is None:
        return allowed if mask is None else mask
    return mask & allowed if mask.dtype == np.bool_ else np.where(allowed, mask, np.array(-np.inf, mask.dtype))


def attention(node: Node) -> Any:
    """Keys and values that were handed over come back as present ones."""
    q, k, v, mask = *node.inputs[:3], node.input(3)
    for name, reason in ABSENT.items():
        if node.get(name):
            raise OutOfScope(reason)
    if len(node.outputs) > 3 and node.outputs[3]:
        raise OutOfScope("scores of an attention as an output")
    flat = q.ndim == 3
    if flat:
        q = heads(q, node.get("q_num_heads"))
        k, v = (heads(x, node.get("kv_num_heads")) for x in (k, v))
    past = node.input(4)
    if past is not None:
        k, v = ops.concat([past, k], dim=2), ops.concat([node.input(5), v], dim=2)
    allowed = seen(node, q.shape[2], k.shape[2], 0 if past is None else past.shape[2])
    causal = bool(node.get("is_causal", 0)) and allowed is None
    mask = joined(mask, allowed, k.shape[2])
    y = ops.scaled_dot_product_attention(q, k, v, attn_mask=mask, is_causal=causal, scale=node.get("scale"))
    if flat:
        y = ops.permute(y, [0, 2, 1, 3])
        y = y.reshape(*y.shape[:2], -1)
    return [y, k, v][: len(node.outputs)]


OPERATORS: dict[str, Callable[[Node], Any]] = {"Attention": attention}
