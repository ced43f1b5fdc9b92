# ===-----------------------------------------------------------------------===#
# Licensed under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
# ===-----------------------------------------------------------------------===#
"""attnfuse and its peers. A contestant is (name, make), and make() gives a function of nothing that
computes the work's output; it, or its first call, may raise where the work cannot be had.

What depends on the shape alone (block masks, layouts, rotary tables in the operands' type) is made
ahead and costs nobody anything. Rotations and all that depends on operands is part of the call."""

import contextlib
import functools
import importlib
import importlib.util
import os

import torch
import torch.nn.functional as F

from . import works
from .operands import block_table


class Unsupported(Exception):
    """This contestant cannot compute this work; the text says why."""


# ===-----------------------------------------------------------------------===#
# attnfuse
# ===-----------------------------------------------------------------------===#


@contextlib.contextmanager
def forced_chip(chip):
    """Compiles for another chip than the device's own. Not for several threads at once."""
    from attnfuse import native

    if not chip:
        yield
        return
    real = native.find_chip
    native.find_chip = lambda device: chip
    try:
        yield
    finally:
        native.find_chip = real


@functools.lru_cache(maxsize=None)
def _attention(structure, work):
    """The function of a structure; ``work`` is any that has it."""
    import attnfuse as af

    def attend(q, k, v):
        if work.rope and work.rotates_keys:
            q, k = af.rope(q, k, interleaved=work.rope == "interleaved")
        elif work.rope:
            q = af.rope(q, interleaved=work.rope == "interleaved")
        s = af.scaled_dot_product(q, k, scale=work.scale or None)
        for number in range(len(work.bias)):
            s = af.additive_bias(s, biases[number])
        if work.alibi:
            s = af.alibi(s)
        if work.mask == "causal":
            s = af.causal(s)
        elif work.mask == "window":
            s = af.sliding_window(s, left=work.left, right=work.right)
        elif work.mask == "blocks":
            s = af.block_sparse(s)
        weights = (
            af.softmax(s) if work.weights == "softmax" else af.relu_attention(s, norm="length")
        )
        return weights @ v

    # Operands that a call names are parameters, as many as there are biases.
    biases = []

    def with_one(q, k, v, bias0):
        biases[:] = [bias0]
        return attend(q, k, v)

    def with_two(q, k, v, bias0, bias1):
        biases[:] = [bias0, bias1]
        return attend(q, k, v)

    function = (attend, with_one, with_two)[len(work.bias)]
    # Loaded kernels are known by their text alone, of which the name is a part.
    function.__name__ = "attend" + ("_for_" + work.chip if work.chip else "")
    return af.attention(function)


def make_ours(work, operands):
    import attnfuse as af

    structure = work.structure
    function = _attention(structure, _canonical(structure, work))
    keywords = {f"bias{number}": bias for number, bias in enumerate(operands.biases)}
    if work.rope:
        keywords["cos"], keywords["sin"] = operands.tables(torch.float32)
    if work.alibi:
        keywords["slopes"] = operands.slopes
    if work.mask == "blocks":
        rows = works.block_rows(work.queries, work.keys, work.block)
        offsets = [0]
        for row in rows:
            offsets.append(offsets[-1] + len(row))
        lists = offsets, [column for row in rows for column in row]
        keywords["block_mask"] = af.BlockMask(
            *(torch.tensor(x, dtype=torch.int32, device=operands.device) for x in lists),
            work.block,
            work.block,
        )
    q, k, v = operands.q, operands.k, operands.v
    if not work.chip:
        return lambda: function(q, k, v, **keywords)

    def forced():
        with forced_chip(work.chip):
            return function(q, k, v, **keywords)

    return forced


_of_structure = {}


def _canonical(structure, work):
    return _of_structure.setdefault(structure, work)


# ===-----------------------------------------------------------------------===#
# PyTorch
# ===-----------------------------------------------------------------------===#


def allow_many_compilations():
    """PyTorch gives up compiling a function after a few shapes."""
    import torch._dynamo

    for name, most in (
        ("cache_size_limit", 512),
        ("recompile_limit", 512),
        ("accumulated_cache_size_limit", 8192),
        ("accumulated_recompile_limit", 8192),
    ):
        if hasattr(torch._dynamo.config, name):
            setattr(torch._dynamo.config, name, most)


@functools.lru_cache(maxsize=None)
def _compiled(function, device_type):
    if device_type == "cpu":
        # The CPU is for tests, where compiling takes longer than it is worth.
        return function
    return torch.compile(function, dynamic=False, fullgraph=True)


@functools.lru_cache(maxsize=None)
def _flex_attention(device_type):
    from torch.nn.attention.flex_attention import flex_attention

    return _compiled(flex_attention, device_type)


def _causal(b, h, i, j):
    return i >= j


@functools.lru_cache(maxsize=None)
def _window(left, right):
    if right == 0:
        return lambda b, h, i, j: (i >= j) & (i - j <= left)
    return lambda b, h, i, j: (i - j <= left) & (j - i <= right)


def _alibi(slopes):
    return lambda score, b, h, i, j: score - slopes[h] * (i - j).abs()


def _add_biases(work, biases):
    """One addition per bias, in FlexAttention's way."""

    # Indexed by what varies only: a constant index among the others does not compile everywhere.
    def pairs(bias):
        table = bias[0]
        return lambda score, b, h, i, j: score + table[h, i, j]

    def keys(bias):
        table = bias[:, 0, 0]
        return lambda score, b, h, i, j: score + table[b, j]

    first, *others = [
        (pairs if kind == "pairs" else keys)(bias) for kind, bias in zip(work.bias, biases)
    ]
    if not others:
        return first
    (second,) = others
    return lambda score, b, h, i, j: second(first(score, b, h, i, j), b, h, i, j)


def _flex(work, operands, small=False):
    """(q, k, v) -> output."""
    from torch.nn.attention.flex_attention import create_block_mask

    if work.weights != "softmax":
        raise Unsupported("softmax only")
    mask_mod = None
    if work.mask == "causal":
        mask_mod = _causal
    elif work.mask == "window":
        mask_mod = _window(work.left, work.right)
    elif work.mask == "blocks":
        table, listed = block_table(work, operands.device), work.block

        def mask_mod(b, h, i, j):
            return table[i // listed, j // listed]

    block_mask = options = None
    if mask_mod:
        size = work.block if small else 128
        block_mask = create_block_mask(
            mask_mod, None, None, work.queries, work.keys, device=operands.device, BLOCK_SIZE=size
        )
        options = {"BLOCK_M": size, "BLOCK_N": size} if small else None
    score_mod = None
    if work.alibi:
        score_mod = _alibi(operands.slopes)
    elif work.bias:
        score_mod = _add_biases(work, operands.biases)
    flex = _flex_attention(torch.device(operands.device).type)
    settings = dict(
        score_mod=score_mod,
        block_mask=block_mask,
        scale=work.scale or None,
        enable_gqa=work.heads != work.key_heads,
        kernel_options=options,
    )
    return lambda q, k, v: flex(q, k, v, **settings)


def _sdpa(work, operands, backend):
    """(q, k, v) -> output."""
    from torch.nn.attention import SDPBackend, sdpa_kernel

    if work.mask not in ("dense", "causal") or work.alibi or work.weights != "softmax":
        raise Unsupported("dense and causal softmax only")
    if work.mask == "causal" and work.queries != work.keys:
        raise Unsupported("its causal mask starts both sequences together")
    groups = work.heads // work.key_heads
    settings = dict(
        is_causal=work.mask == "causal", scale=work.scale or None, enable_gqa=groups > 1
    )
    shape = (work.batch, work.heads, work.queries, work.keys)
    biases = operands.biases

    def attend(q, k, v):
        mask = None
        if biases:
            mask = biases[0] if len(biases) == 1 else biases[0] + biases[1]
            mask = mask.expand(shape)
        return F.scaled_dot_product_attention(q, k, v, attn_mask=mask, **settings)

    kind = getattr(SDPBackend, backend)

    def chosen(q, k, v):
        with sdpa_kernel(kind):
            return attend(q, k, v)

    return chosen


def rotate_half(q, k, cos, sin):
    """Rotations as models write them, with tables of all features."""

    def swapped(x):
        a, b = x.chunk(2, dim=-1)
        return torch.cat([-b, a], -1)

    return q * cos + swapped(q) * sin, k * cos + swapped(k) * sin


def rotate_query(q, k, cos, sin):
    a, b = q.chunk(2, dim=-1)
    return q * cos + torch.cat([-b, a], -1) * sin, k


def rotate_interleaved(q, k, cos, sin):
    """As GPT-J does, of the first features."""

    def turned(x):
        width = cos.shape[-1]
        part, rest = x[..., :width], x[..., width:]
        swapped = torch.stack([-part[..., 1::2], part[..., 0::2]], -1).flatten(-2)
        return torch.cat([part * cos + swapped * sin, rest], -1)

    return turned(q), turned(k)


def _rotation(work, operands, is_compiled):
    """(q, k) -> rotated ones."""
    tables = operands.tables(operands.q.dtype)
    if work.rope == "interleaved":
        function = rotate_interleaved
        cos, sin = (table.repeat_interleave(2, -1) for table in tables)
    else:
        if work.rotary_features != work.features:
            raise Unsupported("rotations of all features, or interleaved ones")
        function = rotate_half if work.rotates_keys else rotate_query
        cos, sin = (torch.cat([table, table], -1) for table in tables)
    if is_compiled:
        function = _compiled(function, torch.device(operands.device).type)
    return lambda q, k: function(q, k, cos, sin)


def relu_formula(q, k, v, scale):
    # The division comes last, where it is cheapest and costs f16 no precision.
    return torch.relu((q * scale) @ k.mT) @ v / k.shape[-2]


def _make_torch_peer(name, work, operands):
    q, k, v = operands.q, operands.k, operands.v
    if name == works.SDPA:
        # No function between, where the host is timed.
        sdpa, is_causal, is_grouped = (
            F.scaled_dot_product_attention,
            work.mask == "causal",
            work.heads != work.key_heads,
        )
        return lambda: sdpa(q, k, v, is_causal=is_causal, enable_gqa=is_grouped)
    if name == works.COMPILED:
        formula = _compiled(relu_formula, torch.device(operands.device).type)
        return lambda: formula(q, k, v, work.scale_value)
    base, _, rotation = name.partition(" + ")
    if base == works.FLEX:
        attend = _flex(work, operands)
    elif base == works.FLEX_SMALL:
        attend = _flex(work, operands, small=True)
    else:
        backends = {
            works.FLASH: "FLASH_ATTENTION",
            works.CUDNN: "CUDNN_ATTENTION",
            works.EFFICIENT: "EFFICIENT_ATTENTION",
        }
        attend = _sdpa(work, operands, backends[base])
    if bool(rotation) != bool(work.rope):
        raise Unsupported("a rotation before it" if work.rope else "no rotation")
    if not rotation:
        return lambda: attend(q, k, v)
    rotate = _rotation(work, operands, is_compiled=rotation.startswith("compiled"))
    return lambda: attend(*rotate(q, k), v)


# ===-----------------------------------------------------------------------===#
# Packages
# ===-----------------------------------------------------------------------===#


def _import_flash_2():
    return importlib.import_module("flash_attn").flash_attn_func


def _import_flash_3():
    return importlib.import_module("flash_attn_interface").flash_attn_func


def _import_flash_4():
    return importlib.import_module("flash_attn.cute").flash_attn_func


def _import_flashinfer():
    return importlib.import_module("flashinfer").BatchPrefillWithRaggedKVCacheWrapper


def _import_tutorial():
    """06-fused-attention.py of Triton's tutorials, which no package installs."""
    path = os.environ.get("TRITON_TUTORIAL")
    if not path:
        raise ImportError("TRITON_TUTORIAL is not set to the path of its 06-fused-attention.py")
    spec = importlib.util.spec_from_file_location("triton_tutorial", path)
    if spec is None:
        raise ImportError(f"{path} is no Python file")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module.attention


_IMPORTS = dict(
    zip(
        works.PACKAGES,
        (_import_flash_2, _import_flash_3, _import_flash_4, _import_flashinfer, _import_tutorial),
    )
)


@functools.lru_cache(maxsize=None)
def find_packages():
    """({name: entry point}, {name: why it is absent})."""
    present, absent = {}, {}
    for name, load in _IMPORTS.items():
        try:
            present[name] = load()
        except Exception as error:  # pylint: disable=broad-except
            # Of a package that is there, anything may fail.
            absent[name] = describe(error)
    return present, absent


def _can_package(name, work):
    """Whether the package's function has the work's blocks."""
    if work.rope or work.bias or work.weights != "softmax" or work.mask == "blocks":
        return False
    if work.clock == "host" or work.chip:
        return False
    if name == "Triton tutorial":
        return (
            work.mask in ("dense", "causal")
            and work.heads == work.key_heads
            and work.features in (64, 128)
            and not work.alibi
            and work.queries == work.keys
        )
    if name == "FlashInfer" and work.mask == "window" and work.right:
        return False
    return not work.alibi or name == "flash-attn 2"


def _make_package_peer(name, work, operands):
    function = find_packages()[0][name]
    scale, is_causal = work.scale_value, work.mask == "causal" or work.is_causal_window
    if name == "Triton tutorial":
        q, k, v = operands.q, operands.k, operands.v
        return lambda: function(q, k, v, is_causal, scale)
    # Its own layout, [B, N, H, D], is what a user of it would have.
    q, k, v = (x.transpose(1, 2).contiguous() for x in (operands.q, operands.k, operands.v))
    if name == "FlashInfer":
        q, k, v = (x.flatten(0, 1) for x in (q, k, v))
        starts = torch.arange(work.batch + 1, device=operands.device, dtype=torch.int32)
        workspace = torch.empty(256 << 20, dtype=torch.uint8, device=operands.device)
        wrapper = function(workspace, "NHD")
        wrapper.plan(
            starts * work.queries,
            starts * work.keys,
            work.heads,
            work.key_heads,
            work.features,
            causal=is_causal,
            window_left=work.left if work.mask == "window" else -1,
            sm_scale=scale,
            q_data_type=q.dtype,
        )
        shape = (work.batch, work.queries, work.heads, work.features)
        return lambda: wrapper.run(q, k, v).view(shape).transpose(1, 2)
    settings = dict(softmax_scale=scale, causal=is_causal)
    if work.mask == "window":
        settings["window_size"] = (work.left, work.right)
    if work.alibi:
        settings["alibi_slopes"] = operands.slopes

    def call():
        output = function(q, k, v, **settings)
        # Some versions also return the log-sum-exp.
        output = output[0] if isinstance(output, tuple) else output
        return output.transpose(1, 2)

    return call


# ===-----------------------------------------------------------------------===#
# All
# ===-----------------------------------------------------------------------===#


def get_contestants(work, operands):
    """[(name, make)], attnfuse first."""
    made = [(works.OURS, lambda: make_ours(work, operands))]
    if work.with_plain:
        made.append((works.PLAIN, lambda: make_ours(work.without_rope(), operands)))
    for name in work.peers:
        made.append((name, lambda name=name: _make_torch_peer(name, work, operands)))
    for name in find_packages()[0]:
        if _can_package(name, work):
            made.append((name, lambda name=name: _make_package_peer(name, work, operands)))
    return made


def describe(error, most=240):
    """One line."""
    text = " ".join(str(error).split()) or type(error).__name__
    return text if len(text) <= most else text[: most - 3] + "..."


def describe_failure(error, caught):
    """One line. SDPA says in warnings why it has no kernel."""
    if "No available kernel" in str(error):
        reasons = [str(entry.message).split("(Triggered")[0].strip() for entry in caught]
        reasons = [r for r in reasons if not r.endswith("because:") and "runtime disabled" not in r]
        if reasons:
            return describe(Unsupported("no kernel: " + " ".join(dict.fromkeys(reasons))))
    return describe(error)
