"""One function for each op, with the argument names of PyTorch's functional API.

They take arrays of NumPy, PyTorch, JAX and CuPy, and whatever else speaks DLPack or the buffer protocol, without copies;
results are arrays of the first one's package. `out=` takes the array to write to, and `dtype=` the precision to compute
in, whatever rules say.
"""

from ._core import ops as _ops

__all__ = list(_ops.__all__)
globals().update({name: getattr(_ops, name) for name in __all__})
