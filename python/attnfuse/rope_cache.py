# ===-----------------------------------------------------------------------===#
# Licensed under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
# ===-----------------------------------------------------------------------===#
"""Rotary tables."""

import numbers

import numpy as np

from . import arrays
from .errors import OperandError
from .operands import FLOATS


def build_rope_cache(length, dim, base=10000.0, dtype="float32", device=None, like=None):
    """(cos, sin), each ``[length, dim / 2]``: the angles ``n * base ** (-2 d / dim)`` of position n and pair
    d, for the ``dim`` features that rotate. NumPy arrays; or torch tensors, on ``device`` or on that of the
    tensor ``like``. In ``dtype`` ("f16", "bf16" or "f32", or a dtype of NumPy's or PyTorch's), f32 by default
    whatever q is: tables in 16 bits are less exact.
    """
    if not isinstance(length, (int, np.integer)) or length < 1:
        raise OperandError(f"length: expected an int of at least 1, got {length!r}")
    if not isinstance(dim, (int, np.integer)) or dim < 2 or dim % 2:
        raise OperandError(f"dim: expected an even int of at least 2, got {dim!r}")
    if not isinstance(base, numbers.Real) or not base > 0:
        raise OperandError(f"base: expected a number above 0, got {base!r}")
    element = arrays.element_named(dtype, FLOATS)  # what calls take
    frequencies = float(base) ** (-np.arange(0, dim, 2, dtype=np.float64) / dim)
    angles = np.arange(length, dtype=np.float64)[:, None] * frequencies
    tables = np.cos(angles), np.sin(angles)
    if like is not None and not arrays.is_torch(like):
        raise OperandError(
            f"like: expected a torch tensor, got {arrays.describe(like)}; leave it out for NumPy arrays"
        )
    if device is None and like is None:
        return tuple(table.astype(_numpy_dtype(element)) for table in tables)
    try:
        import torch
    except ImportError:
        raise OperandError(
            "device: expected PyTorch to be installed for tensors; leave it out for NumPy arrays"
        ) from None
    dtype = getattr(torch, arrays.dtype_name(element))
    try:
        device = like.device if device is None else torch.device(device)
    except (RuntimeError, TypeError) as error:
        raise OperandError(f"device: expected one of PyTorch's, got {device!r}; {error}") from None
    return tuple(torch.from_numpy(table).to(device=device, dtype=dtype) for table in tables)


def _numpy_dtype(element):
    try:
        return np.dtype(arrays.dtype_name(element))
    except TypeError:
        # The package ml_dtypes registers the name.
        raise OperandError(
            f"dtype: NumPy has no {element} of its own; give device=... or like=... for torch tensors, or "
            "take f16 or f32"
        ) from None
