# ===-----------------------------------------------------------------------===#
# Licensed under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
# ===-----------------------------------------------------------------------===#
"""Rotary tables."""

import numbers

import numpy as np

from .errors import OperandError


def build_rope_cache(length, dim, base=10000.0, dtype="float32", device=None, like=None):
    """(cos, sin), each ``[length, dim / 2]``: the angles ``n * base ** (-2 d / dim)`` of position n and pair
    d, for the ``dim`` features that rotate. NumPy arrays; or torch tensors, on ``device`` or on that of the
    tensor ``like``. In ``dtype``, f32 by default whatever q is: tables in 16 bits are less exact.
    """
    if not isinstance(length, (int, np.integer)) or length < 1:
        raise OperandError(f"length: expected an int of at least 1, got {length!r}")
    if not isinstance(dim, (int, np.integer)) or dim < 2 or dim % 2:
        raise OperandError(f"dim: expected an even int of at least 2, got {dim!r}")
    if not isinstance(base, numbers.Real) or not base > 0:
        raise OperandError(f"base: expected a number above 0, got {base!r}")
    frequencies = float(base) ** (-np.arange(0, dim, 2, dtype=np.float64) / dim)
    angles = np.arange(length, dtype=np.float64)[:, None] * frequencies
    tables = np.cos(angles), np.sin(angles)
    try:
        if device is None and like is None:
            return tuple(table.astype(dtype) for table in tables)
        import torch

        dtype = getattr(torch, dtype) if isinstance(dtype, str) else dtype
        device = like.device if device is None else device
        return tuple(torch.from_numpy(table).to(device=device, dtype=dtype) for table in tables)
    except (TypeError, AttributeError):
        raise OperandError(
            f"dtype: expected the name of a float type, such as 'float32', got {dtype!r}"
        ) from None
