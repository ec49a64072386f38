from collections.abc import Sequence
from typing import Any

Array = Any
"""An array of NumPy, PyTorch, JAX or CuPy, or anything that speaks DLPack or the buffer protocol."""

DType = Any
"""A name such as "bf16", or a dtype of NumPy or PyTorch."""

def matmul(
    input: Array,
    other: Array,
    *,
    transpose_a: bool = False,
    transpose_b: bool = False,
    dtype: DType | None = None,
    out: Any = None,
) -> Any:
    """The op `matmul`."""

def linear(
    input: Array,
    weight: Array,
    bias: Array | None = None,
    *,
    activation: str = 'none',
    dtype: DType | None = None,
    out: Any = None,
) -> Any:
    """The op `linear`."""

def conv2d(
    input: Array,
    weight: Array,
    bias: Array | None = None,
    stride: int | Sequence[int] = 1,
    padding: int | Sequence[int] | str = 0,
    dilation: int | Sequence[int] = 1,
    groups: int = 1,
    *,
    dtype: DType | None = None,
    out: Any = None,
) -> Any:
    """The op `conv2d`."""

def conv3d(
    input: Array,
    weight: Array,
    bias: Array | None = None,
    stride: int | Sequence[int] = 1,
    padding: int | Sequence[int] | str = 0,
    dilation: int | Sequence[int] = 1,
    groups: int = 1,
    *,
    dtype: DType | None = None,
    out: Any = None,
) -> Any:
    """The op `conv3d`."""

def attention(
    query: Array,
    key: Array,
    value: Array,
    attn_mask: Array | None = None,
    dropout_p: float = 0.0,
    is_causal: bool = False,
    scale: float | None = None,
    *,
    dtype: DType | None = None,
    out: Any = None,
) -> Any:
    """The op `attention`."""

def scaled_dot_product_attention(
    query: Array,
    key: Array,
    value: Array,
    attn_mask: Array | None = None,
    dropout_p: float = 0.0,
    is_causal: bool = False,
    scale: float | None = None,
    *,
    dtype: DType | None = None,
    out: Any = None,
) -> Any:
    """The op `attention`."""

def max_pool2d(
    input: Array,
    kernel_size: int | Sequence[int],
    stride: int | Sequence[int] | None = None,
    padding: int | Sequence[int] = 0,
    dilation: int | Sequence[int] = 1,
    ceil_mode: bool = False,
    *,
    dtype: DType | None = None,
    out: Any = None,
) -> Any:
    """The op `max_pool2d`."""

def max_pool3d(
    input: Array,
    kernel_size: int | Sequence[int],
    stride: int | Sequence[int] | None = None,
    padding: int | Sequence[int] = 0,
    dilation: int | Sequence[int] = 1,
    ceil_mode: bool = False,
    *,
    dtype: DType | None = None,
    out: Any = None,
) -> Any:
    """The op `max_pool3d`."""

def avg_pool2d(
    input: Array,
    kernel_size: int | Sequence[int],
    stride: int | Sequence[int] | None = None,
    padding: int | Sequence[int] = 0,
    ceil_mode: bool = False,
    count_include_pad: bool = True,
    *,
    dtype: DType | None = None,
    out: Any = None,
) -> Any:
    """The op `avg_pool2d`."""

def avg_pool3d(
    input: Array,
    kernel_size: int | Sequence[int],
    stride: int | Sequence[int] | None = None,
    padding: int | Sequence[int] = 0,
    ceil_mode: bool = False,
    count_include_pad: bool = True,
    *,
    dtype: DType | None = None,
    out: Any = None,
) -> Any:
    """The op `avg_pool3d`."""

def batch_norm1d(
    input: Array,
    running_mean: Array | None = None,
    running_var: Array | None = None,
    weight: Array | None = None,
    bias: Array | None = None,
    training: bool = False,
    momentum: float = 0.1,
    eps: float = 1e-05,
    *,
    dtype: DType | None = None,
    out: Any = None,
) -> Any:
    """The op `batch_norm1d`."""

def batch_norm2d(
    input: Array,
    running_mean: Array | None = None,
    running_var: Array | None = None,
    weight: Array | None = None,
    bias: Array | None = None,
    training: bool = False,
    momentum: float = 0.1,
    eps: float = 1e-05,
    *,
    dtype: DType | None = None,
    out: Any = None,
) -> Any:
    """The op `batch_norm2d`."""

def batch_norm3d(
    input: Array,
    running_mean: Array | None = None,
    running_var: Array | None = None,
    weight: Array | None = None,
    bias: Array | None = None,
    training: bool = False,
    momentum: float = 0.1,
    eps: float = 1e-05,
    *,
    dtype: DType | None = None,
    out: Any = None,
) -> Any:
    """The op `batch_norm3d`."""

def batch_norm(
    input: Array,
    running_mean: Array | None = None,
    running_var: Array | None = None,
    weight: Array | None = None,
    bias: Array | None = None,
    training: bool = False,
    momentum: float = 0.1,
    eps: float = 1e-05,
    *,
    dtype: DType | None = None,
    out: Any = None,
) -> Any:
    """The op `batch_norm2d`."""

def layer_norm(
    input: Array,
    normalized_shape: int | Sequence[int],
    weight: Array | None = None,
    bias: Array | None = None,
    eps: float = 1e-05,
    *,
    dtype: DType | None = None,
    out: Any = None,
) -> Any:
    """The op `layer_norm`."""

def rms_norm(
    input: Array,
    normalized_shape: int | Sequence[int],
    weight: Array | None = None,
    eps: float | None = None,
    *,
    dtype: DType | None = None,
    out: Any = None,
) -> Any:
    """The op `rms_norm`."""

def normalize(
    input: Array,
    p: float = 2.0,
    dim: int = 1,
    eps: float = 1e-12,
    *,
    dtype: DType | None = None,
    out: Any = None,
) -> Any:
    """The op `normalize`."""

def softmax(input: Array, dim: int = -1, *, dtype: DType | None = None, out: Any = None) -> Any:
    """The op `softmax`."""

def log_softmax(input: Array, dim: int = -1, *, dtype: DType | None = None, out: Any = None) -> Any:
    """The op `log_softmax`."""

def dropout(
    input: Array,
    p: float = 0.5,
    training: bool = True,
    *,
    seed: int | None = None,
    dtype: DType | None = None,
    out: Any = None,
) -> Any:
    """The op `dropout`."""

def relu(input: Array, *, dtype: DType | None = None, out: Any = None) -> Any:
    """The op `relu`."""

def gelu(input: Array, approximate: str = 'none', *, dtype: DType | None = None, out: Any = None) -> Any:
    """The op `gelu`."""

def silu(input: Array, *, dtype: DType | None = None, out: Any = None) -> Any:
    """The op `silu`."""

def sigmoid(input: Array, *, dtype: DType | None = None, out: Any = None) -> Any:
    """The op `sigmoid`."""

def tanh(input: Array, *, dtype: DType | None = None, out: Any = None) -> Any:
    """The op `tanh`."""

def add(input: Array, other: Array | float, *, alpha: float = 1, dtype: DType | None = None, out: Any = None) -> Any:
    """The op `add`."""

def sub(input: Array, other: Array | float, *, alpha: float = 1, dtype: DType | None = None, out: Any = None) -> Any:
    """The op `sub`."""

def mul(input: Array, other: Array | float, *, dtype: DType | None = None, out: Any = None) -> Any:
    """The op `mul`."""

def div(input: Array, other: Array | float, *, dtype: DType | None = None, out: Any = None) -> Any:
    """The op `div`."""

def log(input: Array, *, dtype: DType | None = None, out: Any = None) -> Any:
    """The op `log`."""

def exp(input: Array, *, dtype: DType | None = None, out: Any = None) -> Any:
    """The op `exp`."""

def sqrt(input: Array, *, dtype: DType | None = None, out: Any = None) -> Any:
    """The op `sqrt`."""

def reduce_sum(
    input: Array,
    dim: int | Sequence[int] | None = None,
    keepdim: bool = False,
    *,
    dtype: DType | None = None,
    out: Any = None,
) -> Any:
    """The op `reduce_sum`."""

def reduce_mean(
    input: Array,
    dim: int | Sequence[int] | None = None,
    keepdim: bool = False,
    *,
    dtype: DType | None = None,
    out: Any = None,
) -> Any:
    """The op `reduce_mean`."""

def reduce_max(
    input: Array,
    dim: int | Sequence[int] | None = None,
    keepdim: bool = False,
    *,
    dtype: DType | None = None,
    out: Any = None,
) -> Any:
    """The op `reduce_max`."""

def reduce_min(
    input: Array,
    dim: int | Sequence[int] | None = None,
    keepdim: bool = False,
    *,
    dtype: DType | None = None,
    out: Any = None,
) -> Any:
    """The op `reduce_min`."""

def sum(
    input: Array,
    dim: int | Sequence[int] | None = None,
    keepdim: bool = False,
    *,
    dtype: DType | None = None,
    out: Any = None,
) -> Any:
    """The op `reduce_sum`."""

def mean(
    input: Array,
    dim: int | Sequence[int] | None = None,
    keepdim: bool = False,
    *,
    dtype: DType | None = None,
    out: Any = None,
) -> Any:
    """The op `reduce_mean`."""

def amax(
    input: Array,
    dim: int | Sequence[int] | None = None,
    keepdim: bool = False,
    *,
    dtype: DType | None = None,
    out: Any = None,
) -> Any:
    """The op `reduce_max`."""

def amin(
    input: Array,
    dim: int | Sequence[int] | None = None,
    keepdim: bool = False,
    *,
    dtype: DType | None = None,
    out: Any = None,
) -> Any:
    """The op `reduce_min`."""

def embedding(input: Array, weight: Array, *, dtype: DType | None = None, out: Any = None) -> Any:
    """The op `embedding`."""

def cross_entropy(
    input: Array,
    target: Array,
    weight: Array | None = None,
    ignore_index: int = -100,
    reduction: str = 'mean',
    label_smoothing: float = 0.0,
    *,
    dtype: DType | None = None,
    out: Any = None,
) -> Any:
    """The op `cross_entropy`."""

def nll_loss(
    input: Array,
    target: Array,
    weight: Array | None = None,
    ignore_index: int = -100,
    reduction: str = 'mean',
    *,
    dtype: DType | None = None,
    out: Any = None,
) -> Any:
    """The op `nll_loss`."""

def kl_div(
    input: Array,
    target: Array,
    reduction: str = 'mean',
    log_target: bool = False,
    *,
    dtype: DType | None = None,
    out: Any = None,
) -> Any:
    """The op `kl_div`."""

def poisson_nll_loss(
    input: Array,
    target: Array,
    log_input: bool = True,
    full: bool = False,
    eps: float = 1e-08,
    reduction: str = 'mean',
    *,
    dtype: DType | None = None,
    out: Any = None,
) -> Any:
    """The op `poisson_nll_loss`."""

def cast(input: Array, dtype: DType, *, out: Any = None) -> Any:
    """The op `cast`."""

def copy(input: Array, *, dtype: DType | None = None, out: Any = None) -> Any:
    """The op `copy`."""

def clone(input: Array, *, dtype: DType | None = None, out: Any = None) -> Any:
    """The op `copy`."""

def transpose(input: Array, dim0: int, dim1: int, *, dtype: DType | None = None, out: Any = None) -> Any:
    """The op `transpose`."""

def permute(input: Array, dims: Sequence[int] = (), *, dtype: DType | None = None, out: Any = None) -> Any:
    """The op `transpose`."""

def concat(tensors: Sequence[Array], dim: int = 0, *, dtype: DType | None = None, out: Any = None) -> Any:
    """The op `concat`."""

def cat(tensors: Sequence[Array], dim: int = 0, *, dtype: DType | None = None, out: Any = None) -> Any:
    """The op `concat`."""

def slice(
    input: Array,
    dim: int = 0,
    start: int | None = None,
    end: int | None = None,
    step: int = 1,
    *,
    dtype: DType | None = None,
    out: Any = None,
) -> Any:
    """The op `slice`."""

def unscale(
    input: Array,
    inverse_scale: Array | float,
    *,
    dtype: DType | None = None,
    out: Any = None,
) -> tuple[Any, Any]:
    """The op `unscale`."""
