# ===-----------------------------------------------------------------------===#
# Licensed under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
# ===-----------------------------------------------------------------------===#
"""HuggingFace's transformers: importing this module makes `attn_implementation="attnfuse"` known.

Transformers builds a mask once per forward pass, by the function that is registered here beside the
attention, and hands it to every layer as it is. (It may ask for a mask of that mask too, which for four
dimensions is the mask itself.) What it gets tells by its type and shape what it is:

- None: the plain mask of the module, causal or none;
- int32 [B, 1, 1, Nkv]: which keys are no padding, beside the causal mask;
- int32 [B, 1, W, Nkv]: the same, beside the causal mask and a window of W > 1 keys;
- int32 [1, 1, W, 0]: the causal mask and a window of W > 1 keys, without padding;
- any other of four dimensions: the whole mask, as booleans or as a bias.

Bands and padding cost nothing to speak of; a whole mask is read by every head, as with SDPA.
"""

import functools
import inspect
import math
import types

import torch
from torch.utils.weak import WeakTensorKeyDictionary
from transformers import AttentionInterface
from transformers.masking_utils import (
    AttentionMaskInterface,
    causal_mask_function,
    prepare_padding_mask,
    sdpa_mask,
    sliding_window_overlay,
)

from . import blocks as af
from .attention import attention
from .errors import OperandError

NAME = "attnfuse"


# ===-----------------------------------------------------------------------===#
# Attentions
# ===-----------------------------------------------------------------------===#


@functools.lru_cache(maxsize=None)
def _make_attention(is_causal, window, num_biases, scale, softcap, rotations):
    """The attention of one kind of layer. `rotations` is how many of q and k are rotated."""

    def transformers_attention(
        q, k, v, cos=None, sin=None, positions=None, first=None, second=None
    ):
        if rotations > 0:
            q = af.rope(q, cos, sin, positions=positions)
        if rotations > 1:
            k = af.rope(k, cos, sin, positions=positions)
        s = af.scaled_dot_product(q, k, scale=scale)
        if softcap is not None:
            s = softcap * af.tanh(s / softcap)
        for bias in (first, second)[:num_biases]:
            s = af.additive_bias(s, bias)
        if is_causal:
            s = af.causal(s)
        if window is not None:
            s = af.sliding_window(s, left=window - 1, right=0)
        return af.softmax(s) @ v

    return attention(transformers_attention)


def attention_forward(
    module,
    query,
    key,
    value,
    attention_mask,
    dropout=0.0,
    scaling=None,
    is_causal=None,
    softcap=None,
    position_bias=None,
    **kwargs,
):
    """What transformers calls for `attn_implementation="attnfuse"`."""
    return _attend(
        module,
        query,
        key,
        value,
        attention_mask,
        dropout,
        scaling,
        is_causal,
        softcap,
        position_bias,
        None,
        kwargs,
    )


def _attend(
    module,
    query,
    key,
    value,
    mask,
    dropout,
    scaling,
    is_causal,
    softcap,
    position_bias,
    rotation,
    kwargs,
):
    if dropout:
        raise OperandError(
            f"dropout: expected 0, got {dropout}; set the model's attention_dropout to 0, or call "
            "model.eval()"
        )
    if kwargs.get("s_aux") is not None:
        raise OperandError(
            "s_aux: attention sinks are not supported; use attn_implementation='eager'"
        )
    if kwargs.get("output_attentions"):
        raise OperandError(
            "output_attentions: the weights are never stored; use attn_implementation='eager' to see them"
        )
    window, biases = None, []
    if mask is None:
        causal = getattr(module, "is_causal", True) if is_causal is None else is_causal
        causal = bool(causal) and query.shape[2] > 1
    else:
        causal = mask.dtype == torch.int32
        window = mask.shape[2] if causal and mask.shape[2] > 1 else None
        if not causal or mask.shape[3] > 0:
            biases.append(_as_bias(mask, query.dtype)[..., : key.shape[2]])
    if position_bias is not None:
        biases.append(position_bias)
    rotated, operands = rotation or (0, {})
    operands = dict(operands)
    operands.update(zip(("first", "second"), biases))
    function = _make_attention(causal, window, len(biases), scaling, softcap, rotated)
    output = function(query, key, value, **operands)
    return output.transpose(1, 2).contiguous(), None


#: The biases of masks, which the layers of a forward pass share.
_biases = WeakTensorKeyDictionary()


def _as_bias(mask, dtype):
    if mask.is_floating_point():
        return mask
    if torch.compiler.is_compiling():
        return _make_bias(mask, dtype)
    known = _biases.get(mask)
    if known is None or known[0] != (dtype, mask._version):
        known = _biases[mask] = ((dtype, mask._version), _make_bias(mask, dtype))
    return known[1]


def _make_bias(mask, dtype):
    visible = mask[:, :, :1] if mask.dtype == torch.int32 else mask
    bias = torch.zeros(visible.shape, dtype=dtype, device=mask.device)
    return bias.masked_fill_(visible == 0, -math.inf)


# ===-----------------------------------------------------------------------===#
# Masks
# ===-----------------------------------------------------------------------===#

_window_code = sliding_window_overlay(1).__code__


def _cells(function):
    """The variables that a function has captured, by name."""
    cells = function.__closure__ or ()
    return {name: cell.cell_contents for name, cell in zip(function.__code__.co_freevars, cells)}


def _read_window(mask_function):
    """(True, window or None) of a causal mask function with or without a window; else (False, None)."""
    if mask_function is causal_mask_function:
        return True, None
    parts = (
        _cells(mask_function).get("mask_functions", ()) if inspect.isfunction(mask_function) else ()
    )
    if len(parts) == 2 and parts[1] is causal_mask_function:
        if getattr(parts[0], "__code__", None) is _window_code:
            return True, _cells(parts[0])["sliding_window"]
    return False, None


def attention_mask(*args, **kwargs):
    """What transformers calls for the mask of a forward pass."""
    structured = None if args else _structured_mask(**kwargs)
    if structured is not None:
        return structured[0]
    # SDPA's "no mask, causal" starts both sequences together; ours ends them together.
    kwargs["allow_is_causal_skip"] = False
    return sdpa_mask(*args, **kwargs)


def _structured_mask(
    batch_size=None,
    q_length=None,
    kv_length=None,
    q_offset=0,
    kv_offset=0,
    mask_function=causal_mask_function,
    attention_mask=None,
    allow_is_causal_skip=True,
    use_vmap=False,
    device="cpu",
    **kwargs,
):
    """(mask,) where bands and padding say it all; None for any other."""
    is_causal, window = _read_window(mask_function)
    sizes = (q_length, kv_length, q_offset, kv_offset)
    if (
        not is_causal
        or not allow_is_causal_skip
        or use_vmap
        or not all(type(n) is int for n in sizes)
    ):
        return None
    # Bands lie where the last query sees the last key.
    if q_offset + q_length != kv_offset + kv_length or q_length > kv_length or kv_offset < 0:
        return None
    padding = prepare_padding_mask(attention_mask, kv_length, kv_offset)
    if padding is not None:
        padding = padding[:, kv_offset : kv_offset + kv_length]
        if padding.all():
            padding = None
    if window is not None and kv_length <= window:
        window = None
    if padding is None and window is None:
        return (None,)
    if window == 1:
        return None
    if padding is None:
        return (torch.empty((1, 1, window, 0), dtype=torch.int32, device=device),)
    visible = padding.to(device=device, dtype=torch.int32)
    return (visible[:, None, None, :].expand(-1, -1, window or 1, -1),)


# ===-----------------------------------------------------------------------===#
# Rotations
# ===-----------------------------------------------------------------------===#

#: The attention modules whose rotation fuse_rope knows: of all features, in halves.
_ROTATED = ("LlamaAttention", "MistralAttention", "Qwen2Attention")


def fuse_rope(model):
    """Takes the rotation of q, and without a cache that of k too, into the kernel. (The function that
    transformers calls comes after the rotation, and its caches hold rotated keys.) Replaces the
    `forward` of the attention modules of Llama, Mistral and Qwen2 models; gives how many these are.
    An OperandError if there are none."""
    count = 0
    for module in model.modules():
        if type(module).__name__ in _ROTATED:
            module.forward = types.MethodType(_forward, module)
            count += 1
    if not count:
        raise OperandError(
            f"model: expected one with attention modules {', '.join(_ROTATED)}, got "
            f"{type(model).__name__}"
        )
    return count


def _forward(self, hidden_states, position_embeddings=None, attention_mask=None, **kwargs):
    if self.config._attn_implementation != NAME:
        raise OperandError(
            f"attn_implementation: expected '{NAME}' after fuse_rope, got "
            f"'{self.config._attn_implementation}'"
        )
    shape = hidden_states.shape[:-1]
    heads = (*shape, -1, self.head_dim)
    query, key, value = (
        projection(hidden_states).view(heads).transpose(1, 2)
        for projection in (self.q_proj, self.k_proj, self.v_proj)
    )
    cos, sin = position_embeddings
    past = kwargs.pop("cache", None)
    if past is None:
        past = kwargs.pop("past_key_values", None)
    if past is not None:
        half = self.head_dim // 2
        turned = torch.cat((-key[..., half:], key[..., :half]), dim=-1)
        key = key * cos.unsqueeze(1) + turned * sin.unsqueeze(1)
        key, value = past.update(key, value, self.layer_idx)
    half = cos.shape[-1] // 2
    operands = {"cos": cos[..., :half].reshape(-1, half), "sin": sin[..., :half].reshape(-1, half)}
    if cos.shape[0] > 1:
        rows = torch.arange(cos.shape[0] * cos.shape[1], dtype=torch.int32, device=cos.device)
        operands["positions"] = rows.view(cos.shape[:2])
    dropout = self.attention_dropout if self.training else 0.0
    output, weights = _attend(
        self,
        query,
        key,
        value,
        attention_mask,
        dropout,
        self.scaling,
        kwargs.pop("is_causal", None),
        None,
        None,
        (1 if past is not None else 2, operands),
        kwargs,
    )
    return self.o_proj(output.reshape(*shape, -1)), weights


AttentionInterface.register(NAME, attention_forward)
AttentionMaskInterface.register(NAME, attention_mask)
