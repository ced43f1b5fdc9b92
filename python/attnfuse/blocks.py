# ===-----------------------------------------------------------------------===#
# Licensed under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
# ===-----------------------------------------------------------------------===#
"""The building blocks, and what computes on scores.

Each block is called inside of a function that is decorated with ``@af.attention``. What the blocks
mean is in docs/spec.md.
"""

import math
import operator

from . import arrays, elements
from .elements import Element
from .errors import CompileError, OperandError
from .operands import caller, describe_parameters, fail
from .symbol import describe
from .symbols import LogSumExp, Mask, Product, Rotation, Scalar, Tensor, Weights
from .symbols import weighted_sum as _weighted_sum
from .trace import active_trace

_ALIGNMENTS = ("bottom_right", "top_left")


def _scores(value, block):
    active_trace(block)
    if isinstance(value, Element) and value.kind == "f32" and value.product:
        return value
    got = describe(value)
    fail(f"{block}: expected scores, which come from af.scaled_dot_product(q, k), got {got}")


def _align(align, block):
    if align not in _ALIGNMENTS:
        message = f"expected 'bottom_right' or 'top_left', got {align!r}"
        active_trace(block).refuse(align, f"{block}: align", message)
    return align


#: Options that are ints, and where arrays belong.
_OF_ARRAYS = {"offset": "positions=... for a position of each element", "num_heads": "slopes=... for slopes"}


def _bound(value, name, block):
    if value is None:
        return None
    number = value if isinstance(value, Scalar) else arrays.plain_number(value)
    if not isinstance(number, (int, Scalar)):
        also = f", or {_OF_ARRAYS[name]}" if name in _OF_ARRAYS else ""
        active_trace(block).refuse(
            value,
            f"{block}: {name}",
            f"expected an int as {name} of {block}, got {{0}}; pass int(...){also}",
        )
    return operator.index(number)


# ===-----------------------------------------------------------------------===#
# The chain
# ===-----------------------------------------------------------------------===#


def rope(*inputs, cos=None, sin=None, interleaved=False, offset=None, positions=None):
    """Rotates q or k by position: ``rope(x, cos, sin)``, or ``q, k = rope(q, k)`` for both, with the
    call's operands ``cos`` and ``sin`` (``[positions, R / 2]``, af.build_rope_cache).

    Element n stands at position n, at n + ``offset`` (an int, of the trace or of the call), or at
    ``positions[n]`` (``[N]`` or ``[B, N]``); the call's operands of these names serve where they are not
    given. Rotated together are features d and d + R / 2, or, if ``interleaved``, 2 d and 2 d + 1.
    """
    trace = active_trace("rope")
    tensors, tables = inputs[: 2 - len(inputs) % 2], inputs[2 - len(inputs) % 2 :]
    if len(inputs) == 2 and not tables and not _may_be_rotated(inputs[1]):
        fail("rope: sin is missing; write af.rope(x, cos, sin), or af.rope(q, k) to rotate both")
    if len(tables) not in (0, 2) or any(isinstance(t, Tensor) and t.ndim == 4 for t in tables):
        fail("rope: expected rope(q, k), rope(x, cos, sin) or rope(q, k, cos, sin)")
    tensors = [trace.tensor(tensor, "rotated", "rope") for tensor in tensors]
    if tables:
        cos, sin = tables
    how = "af.rope(x, cos, sin)"
    cos = trace.tensor(trace.given(cos, "cos", "rope", how), "cos", "rope")
    sin = trace.tensor(trace.given(sin, "sin", "rope", how), "sin", "rope")
    if offset is None and positions is None:
        offset, positions = trace.ambient("offset"), trace.ambient("positions")
        if offset is not None and positions is not None:
            raise OperandError(
                "argument 'offset': expected it or 'positions', got both; add the offset to the "
                "positions"
            )
    static_offset = 0
    if offset is not None and not isinstance(offset, Scalar):
        static_offset, offset = _bound(offset, "offset", "rope"), None
    if positions is not None:
        positions = trace.tensor(positions, "positions", "rope")
    place = caller()
    rotated = []
    for tensor in tensors:
        pairing = "interleaved" if interleaved else "half"
        rotation = Rotation(tensor, cos, sin, pairing, static_offset, offset, positions, place)
        rotated.append(Tensor(trace, tensor.operand, rotation))
    return rotated[0] if len(rotated) == 1 else tuple(rotated)


def _may_be_rotated(value):
    return value.ndim == 4 if isinstance(value, Tensor) or arrays.is_array(value) else True


def scaled_dot_product(q, k, scale=None):
    """Scores ``scale * q @ k.T`` (``[B, Hq, Nq, Nkv]``); the scale is 1 / sqrt(D) if none is given. Hq
    may be a multiple of Hkv."""
    trace = active_trace("scaled_dot_product")
    q = trace.tensor(q, "q", "scaled_dot_product")
    k = trace.tensor(k, "k", "scaled_dot_product")
    if scale is not None:
        place, message = "scaled_dot_product: scale", "expected a finite number as scale, got {0}"
        try:
            number = float(scale)
        except (TypeError, ValueError, CompileError):
            trace.refuse(scale, place, f"{message}; pass float(...)")
        if not math.isfinite(number):
            trace.refuse(scale, place, message.replace("{0}", str(number)))
        scale = number
    product = Product(q, k, scale, caller())
    return Element(trace, "f32", "scores", product=product)


def _mask(scores, mask):
    return Element(scores.trace, "f32", "mask", (scores,), place=mask.place, mask=mask)


def full(s):
    """No mask: every key is visible."""
    return _mask(_scores(s, "full"), Mask("full", place=caller()))


def causal(s, align="bottom_right"):
    """Hides the keys after the query's own position: the queries are the last ones of the keys
    (``bottom_right``), or both sequences start together (``top_left``)."""
    s = _scores(s, "causal")
    return _mask(s, Mask("causal", _align(align, "causal"), place=caller()))


def sliding_window(s, window=None, *, left=None, right=None, align="bottom_right"):
    """Hides the keys outside of a window around the query: ``window`` W keeps ``abs(i - j) < W``;
    ``left`` and ``right`` count the keys before and after the query's own that are kept, and a bound
    that is left out is infinite."""
    s = _scores(s, "sliding_window")
    given = {"left": left, "right": right}
    size = _bound(window, "window", "sliding_window")
    left, right = (_bound(bound, name, "sliding_window") for name, bound in given.items())
    if size is not None:
        if left is not None or right is not None:
            fail("sliding_window: expected a window, or left and right, got both")
        if size < 1:
            message = f"expected at least 1, got {size}; a query's own key is one"
            s.trace.refuse(window, "sliding_window: window", message)
        left = right = size - 1
    for name, bound in (("left", left), ("right", right)):
        if bound is not None and not 0 <= bound < 2**31:
            message = f"expected '{name}' to be in [0, 2^31), got {bound}; leave it out for an unbounded side"
            culprit = given[name] if size is None else window
            s.trace.refuse(culprit, f"sliding_window: {name}", message)
    return _mask(s, Mask("window", _align(align, "sliding_window"), left, right, place=caller()))


def block_sparse(s, block_mask=None):
    """Hides all but the listed blocks of keys: ``block_mask``, which the call gives if it is left out,
    comes from af.create_block_mask. Work is proportional to the listed blocks."""
    s = _scores(s, "block_sparse")
    how = "af.block_sparse(s, block_mask)"
    mask = s.trace.given(block_mask, "block_mask", "block_sparse", how)
    if not hasattr(mask, "row_offsets"):
        remedy = (
            "make one by af.create_block_mask(predicate, ...), or, where blocks are not wholly visible "
            "or hidden, hide keys in the function by af.mask_mod(s, predicate) or a bias of 0 and -inf"
        )
        s.trace.refuse(
            mask,
            "block_sparse: block_mask",
            f"expected a block mask, got {{0}}; {remedy}",
            "block_mask",
        )
    rows = s.trace.tensor(mask.row_offsets, "row_offsets", "block_sparse")
    columns = s.trace.tensor(mask.col_indices, "col_indices", "block_sparse")
    blocks = (rows, columns, mask.query_block, mask.key_block, mask.key_blocks)
    return _mask(s, Mask("blocks", blocks=blocks, place=caller()))


def alibi(s, num_heads=None, slopes=None, align="bottom_right"):
    """``s - slopes[h] * abs(i - j)``: ``slopes`` (``[Hq]`` or ``[B, Hq]``, f32), the call's operand of that
    name, or, where neither is given, the standard slopes for the number of heads."""
    s = _scores(s, "alibi")
    heads = s.product.query.operand.guards[1]
    count = _bound(num_heads, "num_heads", "alibi")
    if count not in (None, heads):
        message = f"expected the {heads} heads of q, got {count}; leave it out"
        s.trace.refuse(num_heads, "alibi: num_heads", message)
    if slopes is None:
        slopes = s.trace.ambient("slopes")
    if slopes is not None:
        slopes = s.trace.tensor(slopes, "slopes", "alibi")
    align = _align(align, "alibi")
    return Element(s.trace, "f32", "alibi", (s,), slopes=slopes, align=align)


def additive_bias(s, bias=None):
    """``s + bias``: up to four dimensions, broadcast over those of size 1 and over leading ones as NumPy
    does, never copied to full size. An entry of -inf hides its key."""
    s = _scores(s, "additive_bias")
    value = s.trace.given(bias, "bias", "additive_bias", "af.additive_bias(s, bias)")
    bias = s.trace.tensor(value, "bias", "additive_bias")
    return Element(s.trace, "f32", "bias", (s,), bias=bias)


def softmax(s, return_lse=False):
    """Weights from scores: softmax over the visible keys. With ``return_lse`` also the log-sum-exp of
    each row, ``[B, Hq, Nq]`` in f32, which the function may return beside the output."""
    weights = Weights(_scores(s, "softmax"), "softmax", caller())
    return (weights, LogSumExp(weights)) if return_lse else weights


def relu_attention(s, norm="sum"):
    """Weights from scores: max(s, 0), divided by the row's sum (``sum``), by the number of keys
    (``length``), or by nothing (``none``)."""
    s = _scores(s, "relu_attention")
    if norm not in ("sum", "length", "none"):
        message = f"expected 'sum', 'length' or 'none', got {norm!r}"
        s.trace.refuse(norm, "relu_attention: norm", message)
    return Weights(s, f"relu_{norm}", caller())


def weighted_sum(p, v, dtype=None):
    """``p @ v``, which is short for this: the output, in v's element type or in f32 (``dtype="f32"``)."""
    return _weighted_sum(p, v, dtype)


# ===-----------------------------------------------------------------------===#
# Computing on scores
# ===-----------------------------------------------------------------------===#


def indices(s):
    """(b, h, i, j): the indices of batch entry, query head, query and key of each score."""
    s = _scores(s, "indices")
    return tuple(Element(s.trace, "index", name) for name in ("batch", "head", "query", "key"))


def lengths(s):
    """(Nq, Nkv): how many queries and keys there are."""
    s = _scores(s, "lengths")
    return tuple(Element(s.trace, "index", name) for name in ("queries", "keys"))


def _check_function(function, parameters, block):
    if isinstance(function, Tensor) or arrays.is_array(function):
        fail(
            f"{block}: expected a function of ({', '.join(parameters)}), got an array; write a function "
            "that reads it by af.load(array, ...)"
        )
    problem = describe_parameters(function, parameters)
    if problem:
        fail(f"{block}: {problem}")


def score_mod(s, function):
    """The scores that ``function(score, b, h, i, j)`` makes of each score and its indices. A result of
    -inf hides its key."""
    s = _scores(s, "score_mod")
    _check_function(function, ("score", "b", "h", "i", "j"), "score_mod")
    result = function(s, *indices(s))
    if not isinstance(result, Element) or result.kind != "f32" or result.product is not s.product:
        fail(
            "score_mod: expected the function to return a score computed from the one that it is given"
        )
    return result


def mask_mod(s, predicate):
    """Hides the keys for which ``predicate(b, h, i, j)`` does not hold. Every score is computed all the
    same: for a mask of whole blocks, and for a band, block_sparse, causal and sliding_window cost
    less."""
    s = _scores(s, "mask_mod")
    _check_function(predicate, ("b", "h", "i", "j"), "mask_mod")
    visible = predicate(*indices(s))
    if isinstance(visible, bool):
        return s if visible else where(elements.constant(s.trace, False, "i1"), s, -math.inf)
    if not isinstance(visible, Element) or visible.kind != "i1":
        fail("mask_mod: expected the predicate to return a condition, such as i >= j")
    return where(visible, s, -math.inf)


def load(table, *at):
    """An element of a tensor (an operand of the call, or a captured array) at indices; an integer one is
    an index in turn. Indices must lie inside of the tensor for every b, h, i and j, hidden or not:
    clamp them with af.minimum and af.maximum where they may not."""
    return elements.load(table, *at)


def where(condition, x, y):
    return elements.where(condition, x, y)


def maximum(x, y):
    return elements.extremum("max", x, y)


def minimum(x, y):
    return elements.extremum("min", x, y)


def abs(x):  # pylint: disable=redefined-builtin
    return elements.absolute(x)


def exp(x):
    return elements.unary("exp", x)


def exp2(x):
    return elements.unary("exp2", x)


def log(x):
    return elements.unary("log", x)


def log2(x):
    return elements.unary("log2", x)


def tanh(x):
    return elements.unary("tanh", x)


def sqrt(x):
    return elements.unary("sqrt", x)


def float32(x):
    """An index as a number."""
    return elements.to_float(x)
