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
    """Multiplies two matrices, or two batches of them that broadcast."""

def linear(
    input: Array,
    weight: Array,
    bias: Array | None = None,
    *,
    activation: str = 'none',
    dtype: DType | None = None,
    out: Any = None,
) -> Any:
    """Multiplies by a weight [out, in], adds the bias and applies the activation."""

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
    """Convolves images with filters, and adds the bias."""

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
    """Convolves volumes with filters, and adds the bias."""

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
    """Weights the values by the softmax of the scaled products of queries and keys."""

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
    """Weights the values by the softmax of the scaled products of queries and keys. The op `attention`."""

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
    """Takes the largest element of each window of an image."""

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
    """Takes the largest element of each window of a volume."""

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
    """Takes the mean of each window of an image."""

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
    """Takes the mean of each window of a volume."""

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
    """Normalizes each channel by its mean and variance, those of the batch in training."""

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
    """Normalizes each channel by its mean and variance, those of the batch in training."""

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
    """Normalizes each channel by its mean and variance, those of the batch in training. The op `batch_norm2d`."""

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
    """Normalizes each channel by its mean and variance, those of the batch in training."""

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
    """Normalizes each row by its own mean and variance, then scales by the weight and adds the bias."""

def rms_norm(
    input: Array,
    normalized_shape: int | Sequence[int],
    weight: Array | None = None,
    eps: float | None = None,
    *,
    dtype: DType | None = None,
    out: Any = None,
) -> Any:
    """Divides each row by the root of the mean of its squares, then scales by the weight."""

def normalize(
    input: Array,
    p: float = 2.0,
    dim: int = 1,
    eps: float = 1e-12,
    *,
    dtype: DType | None = None,
    out: Any = None,
) -> Any:
    """Divides by the p-norm along a dim, or by eps where that is larger."""

def softmax(input: Array, dim: int = -1, *, dtype: DType | None = None, out: Any = None) -> Any:
    """Exponentials along a dim, divided by their sum."""

def log_softmax(input: Array, dim: int = -1, *, dtype: DType | None = None, out: Any = None) -> Any:
    """The logarithm of the softmax along a dim."""

def dropout(
    input: Array,
    p: float = 0.5,
    training: bool = True,
    *,
    seed: int | None = None,
    dtype: DType | None = None,
    out: Any = None,
) -> Any:
    """Zeroes elements with probability p and divides the others by 1 - p; copies when not training."""

def relu(input: Array, *, dtype: DType | None = None, out: Any = None) -> Any:
    """The larger of each element and 0."""

def gelu(input: Array, approximate: str = 'none', *, dtype: DType | None = None, out: Any = None) -> Any:
    """The Gaussian error linear unit of each element, exact or by its approximation with tanh."""

def silu(input: Array, *, dtype: DType | None = None, out: Any = None) -> Any:
    """Each element times its sigmoid; also called swish."""

def sigmoid(input: Array, *, dtype: DType | None = None, out: Any = None) -> Any:
    """The logistic function of each element."""

def tanh(input: Array, *, dtype: DType | None = None, out: Any = None) -> Any:
    """The hyperbolic tangent of each element."""

def add(input: Array, other: Array | float, *, alpha: float = 1, dtype: DType | None = None, out: Any = None) -> Any:
    """Adds two arrays element by element, with broadcasting."""

def sub(input: Array, other: Array | float, *, alpha: float = 1, dtype: DType | None = None, out: Any = None) -> Any:
    """Subtracts the second array from the first element by element, with broadcasting."""

def mul(input: Array, other: Array | float, *, dtype: DType | None = None, out: Any = None) -> Any:
    """Multiplies two arrays element by element, with broadcasting."""

def div(input: Array, other: Array | float, *, dtype: DType | None = None, out: Any = None) -> Any:
    """Divides the first array by the second element by element, with broadcasting."""

def log(input: Array, *, dtype: DType | None = None, out: Any = None) -> Any:
    """The natural logarithm of each element."""

def exp(input: Array, *, dtype: DType | None = None, out: Any = None) -> Any:
    """The exponential of each element."""

def sqrt(input: Array, *, dtype: DType | None = None, out: Any = None) -> Any:
    """The square root of each element."""

def reduce_sum(
    input: Array,
    dim: int | Sequence[int] | None = None,
    keepdim: bool = False,
    *,
    dtype: DType | None = None,
    out: Any = None,
) -> Any:
    """Adds up the elements along dims, or all."""

def sum(
    input: Array,
    dim: int | Sequence[int] | None = None,
    keepdim: bool = False,
    *,
    dtype: DType | None = None,
    out: Any = None,
) -> Any:
    """Adds up the elements along dims, or all. The op `reduce_sum`."""

def reduce_mean(
    input: Array,
    dim: int | Sequence[int] | None = None,
    keepdim: bool = False,
    *,
    dtype: DType | None = None,
    out: Any = None,
) -> Any:
    """Takes the mean of the elements along dims, or of all."""

def mean(
    input: Array,
    dim: int | Sequence[int] | None = None,
    keepdim: bool = False,
    *,
    dtype: DType | None = None,
    out: Any = None,
) -> Any:
    """Takes the mean of the elements along dims, or of all. The op `reduce_mean`."""

def reduce_max(
    input: Array,
    dim: int | Sequence[int] | None = None,
    keepdim: bool = False,
    *,
    dtype: DType | None = None,
    out: Any = None,
) -> Any:
    """Takes the largest element along dims, or of all."""

def amax(
    input: Array,
    dim: int | Sequence[int] | None = None,
    keepdim: bool = False,
    *,
    dtype: DType | None = None,
    out: Any = None,
) -> Any:
    """Takes the largest element along dims, or of all. The op `reduce_max`."""

def reduce_min(
    input: Array,
    dim: int | Sequence[int] | None = None,
    keepdim: bool = False,
    *,
    dtype: DType | None = None,
    out: Any = None,
) -> Any:
    """Takes the smallest element along dims, or of all."""

def amin(
    input: Array,
    dim: int | Sequence[int] | None = None,
    keepdim: bool = False,
    *,
    dtype: DType | None = None,
    out: Any = None,
) -> Any:
    """Takes the smallest element along dims, or of all. The op `reduce_min`."""

def embedding(input: Array, weight: Array, *, dtype: DType | None = None, out: Any = None) -> Any:
    """Looks up rows of the weight by their indices."""

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
    """The cross entropy of scores and targets, which are classes or probabilities."""

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
    """The negative log-likelihood of classes, given the logarithms of their probabilities."""

def kl_div(
    input: Array,
    target: Array,
    reduction: str = 'mean',
    log_target: bool = False,
    *,
    dtype: DType | None = None,
    out: Any = None,
) -> Any:
    """The Kullback-Leibler divergence of a target from a distribution that is given by logarithms."""

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
    """The negative log-likelihood of counts under a Poisson distribution with the given rates."""

def cast(input: Array, dtype: DType, *, out: Any = None) -> Any:
    """Converts the elements to another dtype."""

def copy(input: Array, *, dtype: DType | None = None, out: Any = None) -> Any:
    """Copies the elements, into a contiguous result unless `out` says otherwise."""

def clone(input: Array, *, dtype: DType | None = None, out: Any = None) -> Any:
    """Copies the elements, into a contiguous result unless `out` says otherwise. The op `copy`."""

def transpose(input: Array, dim0: int, dim1: int, *, dtype: DType | None = None, out: Any = None) -> Any:
    """Reorders the dims, and moves the elements accordingly."""

def permute(input: Array, dims: Sequence[int] = (), *, dtype: DType | None = None, out: Any = None) -> Any:
    """Reorders the dims, and moves the elements accordingly. The op `transpose`."""

def concat(tensors: Sequence[Array], dim: int = 0, *, dtype: DType | None = None, out: Any = None) -> Any:
    """Joins arrays along a dim."""

def cat(tensors: Sequence[Array], dim: int = 0, *, dtype: DType | None = None, out: Any = None) -> Any:
    """Joins arrays along a dim. The op `concat`."""

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
    """Takes every step-th element from start to end along a dim."""

def unscale(
    input: Array,
    inverse_scale: Array | float,
    *,
    dtype: DType | None = None,
    out: Any = None,
) -> tuple[Any, Any]:
    """Multiplies gradients by the inverse of a loss scale, and says whether any is infinite or NaN."""
