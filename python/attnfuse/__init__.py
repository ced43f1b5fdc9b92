# ===-----------------------------------------------------------------------===#
# Licensed under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
# ===-----------------------------------------------------------------------===#
"""Attention variants, written as blocks and compiled to one fused kernel each.

    import attnfuse as af

    @af.attention
    def llama(q, k, v):
        q, k = af.rope(q, k)
        return af.softmax(af.causal(af.scaled_dot_product(q, k))) @ v

    cos, sin = af.build_rope_cache(8192, 128)
    output = llama(q, k, v, cos=cos, sin=sin)
"""

from . import cache
from .arrays import TensorSpec
from .attention import Attention, attention, explain, lower
from .block_mask import BlockMask, create_block_mask
from .blocks import (
    abs,
    additive_bias,
    alibi,
    block_sparse,
    causal,
    exp,
    exp2,
    float32,
    full,
    indices,
    lengths,
    load,
    log,
    log2,
    mask_mod,
    maximum,
    minimum,
    relu_attention,
    rope,
    scaled_dot_product,
    score_mod,
    sliding_window,
    softmax,
    sqrt,
    tanh,
    weighted_sum,
    where,
)
from .errors import CompileError, Error, GradientError, OperandError
from .native import version as _version
from .rope_cache import build_rope_cache

__version__ = _version()
