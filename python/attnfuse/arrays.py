# ===-----------------------------------------------------------------------===#
# Licensed under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
# ===-----------------------------------------------------------------------===#
"""What the package wants to know of NumPy's and PyTorch's arrays, without importing PyTorch."""

import operator
import sys

import numpy as np

from .errors import OperandError

_NUMPY_ELEMENTS = {
    "float16": "f16",
    # The name of the type that ml_dtypes registers.
    "bfloat16": "bf16",
    "float32": "f32",
    "float64": "f64",
    "int32": "i32",
    "int64": "i64",
}
_torch_elements = {}


def loaded_torch():
    """The module torch, where the program has imported it."""
    return sys.modules.get("torch")


def is_torch(value):
    torch = loaded_torch()
    return torch is not None and isinstance(value, torch.Tensor)


def is_array(value):
    return isinstance(value, (np.ndarray, np.generic)) or is_torch(value)


def plain_number(value):
    """A number of NumPy's or PyTorch's, also an array without dimensions, as Python's; anything else as it
    is. A tensor that a gradient may be asked of is none: its value changes."""
    if isinstance(value, (np.ndarray, np.generic)) and not value.ndim:
        return value.item()
    if is_torch(value) and not value.ndim and not value.requires_grad:
        return value.item()
    return value


def describe(value):
    """For messages."""
    if is_torch(value):
        return f"a torch.Tensor on {value.device}"
    if value is None or isinstance(value, TensorSpec):
        return repr(value)
    kind = f"{type(value).__module__}.{type(value).__qualname__}".replace("builtins.", "")
    return f"{'an' if kind[0] in 'aeiou' else 'a'} {kind}"


def device(value):
    """Where an array is: a device of PyTorch's, or None for NumPy's."""
    if isinstance(value, TensorSpec):
        return value
    return value.device if is_torch(value) else None


def conversion(value, name, element):
    """The Python that converts the array that a user knows by ``name``."""
    dtype = dtype_name(element)
    return f"{name}.to(torch.{dtype})" if is_torch(value) else f"{name}.astype('{dtype}')"


def as_bias(mask, name):
    """The Python that makes a bias of a mask."""
    if is_torch(mask):
        return f"torch.where({name}, 0.0, -torch.inf)"
    return f"np.where({name}, 0, -np.inf).astype('float32')"


def torch_elements():
    if not _torch_elements:
        torch = loaded_torch()
        _torch_elements.update(
            {
                torch.float16: "f16",
                torch.bfloat16: "bf16",
                torch.float32: "f32",
                torch.float64: "f64",
                torch.int32: "i32",
                torch.int64: "i64",
            }
        )
    return _torch_elements


def element(value, name):
    """The element type of an array, as MLIR writes it; of other types, as their library does."""
    if is_torch(value):
        if value.layout is not loaded_torch().strided:
            raise OperandError(
                f"argument '{name}': expected a dense tensor, got {value.layout}; pass {name}.to_dense()"
            )
        return torch_elements().get(value.dtype, str(value.dtype).replace("torch.", ""))
    if not value.dtype.isnative:
        raise OperandError(
            f"argument '{name}': expected elements in this machine's byte order, got "
            f"{value.dtype.str}; convert it by {name}.astype({name}.dtype.newbyteorder('='))"
        )
    return _NUMPY_ELEMENTS.get(value.dtype.name, value.dtype.name)


def element_named(dtype, expected):
    """The element type that a dtype stands for, one of ``expected``: a name of MLIR's or NumPy's, or a
    dtype of NumPy's or PyTorch's."""
    try:
        name = dtype if isinstance(dtype, str) or "torch." in str(dtype) else np.dtype(dtype).name
    except TypeError:
        name = describe(dtype)
    name = str(name).replace("torch.", "")
    known = _NUMPY_ELEMENTS.get(name, name)
    if known not in expected:
        raise OperandError(
            f"dtype: expected one of {', '.join(expected)}, got '{name}'"
        )
    return known


def dtype_name(element):
    """NumPy's and PyTorch's name for an element type."""
    return next(name for name, known in _NUMPY_ELEMENTS.items() if known == element)


class TensorSpec:
    """A tensor's element type and sizes, to look at a function's code without data: ``None`` stands
    for a size that is left to run time. ``dtype`` is one of "f16", "bf16", "f32", "i32", "i64"."""

    def __init__(self, shape, dtype):
        self.element = element_named(dtype, _NUMPY_ELEMENTS.values())
        try:
            self.shape = tuple(None if size is None else operator.index(size) for size in shape)
        except TypeError:
            self.shape = None
        if self.shape is None or any(size is not None and size < 0 for size in self.shape):
            raise OperandError(
                f"shape: expected a tuple of ints of at least 0 and None, got {shape!r}"
            )

    def __repr__(self):
        return f"TensorSpec({self.shape}, '{self.element}')"
