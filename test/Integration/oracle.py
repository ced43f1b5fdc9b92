"""What attention variants mean, in NumPy and fp64.

Written from the definitions of the building blocks alone; it shares no code with
the compiler, so that the two can only agree by both being right.

A variant is a dictionary (matrix.py makes them, and the tests write their own):

  scale   number, or None for 1/sqrt(D)
  rope    None, or {pairing, q_offset, k_offset, sides: "qk" | "q" | "k"}; the tables
          are the inputs cos and sin; the inputs offset, q_positions and k_positions
          are used where they are given
  chain   the score ops in order: {op: "causal" | "sliding_window" | "block_sparse" |
          "alibi" | "additive_bias", ...attributes}; their operands are the inputs
          row_offsets, col_indices, slopes and bias (or
          what "name" says, where there are several)
  norm    "softmax", "sum", "length" or "none"
"""

import numpy as np

# Unit roundoff of the types.
ROUNDOFF = {"f16": 2.0**-11, "bf16": 2.0**-8, "f32": 2.0**-24}
# Half of the smallest step, which bounds rounding where a type has no full precision.
TINY = {"f16": 2.0**-25, "bf16": 2.0**-134, "f32": 2.0**-150}


def round_bf16(values):
    """Float32 values rounded to nearest even bf16 ones, still float32."""
    bits = np.asarray(values, np.float32).view(np.uint32)
    rounded = bits + 0x7FFF + ((bits >> 16) & 1)
    rounded = np.where(np.isnan(values), bits | 0x400000, rounded) & 0xFFFF0000
    return rounded.astype(np.uint32).view(np.float32)


def round_to(values, element_type):
    """Values rounded to a float type, as float64."""
    if element_type == "bf16":
        return round_bf16(np.asarray(values, np.float32)).astype(np.float64)
    dtype = {"f16": np.float16, "f32": np.float32}[element_type]
    with np.errstate(over="ignore"):
        return np.asarray(values).astype(dtype).astype(np.float64)


def rope(x, cos, sin, pairing, positions):
    """x [B, H, N, D] rotated; tables [P, R/2]; positions [N] or [B, N]."""
    rows, columns = cos.shape
    rows_of = np.clip(positions, 0, rows - 1)
    c, s = cos[rows_of], sin[rows_of]
    if c.ndim == 3:  # [B, N, R/2]: the same for every head
        c, s = c[:, None], s[:, None]
    if pairing == "half":
        first, second = np.arange(columns), np.arange(columns) + columns
    else:
        first, second = 2 * np.arange(columns), 2 * np.arange(columns) + 1
    result = x.copy()
    result[..., first] = x[..., first] * c - x[..., second] * s
    result[..., second] = x[..., second] * c + x[..., first] * s
    return result


def positions_of(n, static_offset, inputs, side):
    given = inputs.get(f"{side}_positions")
    if given is not None:
        return given.astype(np.int64) + static_offset
    return np.arange(n) + static_offset + int(inputs.get("offset", 0))


def standard_slopes(heads):
    """The geometric slopes of Press et al.; interleaved for what exceeds a power of 2."""
    power = 1
    while 2 * power <= heads:
        power *= 2
    slopes = [2.0 ** (-8.0 * (h + 1) / power) for h in range(power)]
    slopes += [2.0 ** (-4.0 * (2 * h + 1) / power) for h in range(heads - power)]
    return np.array(slopes)


def diagonal(align, nq, nkv):
    """j - i - off for every pair: 0 on the diagonal that `align` names."""
    off = nkv - nq if align == "bottom_right" else 0
    return np.arange(nkv)[None, :] - np.arange(nq)[:, None] - off


def visible_blocks(op, shape, row_offsets, col_indices):
    batch, heads, nq, nkv = shape
    offsets = row_offsets if row_offsets.ndim == 3 else row_offsets[None, None]
    visible = np.zeros((offsets.shape[0], offsets.shape[1], nq, nkv), bool)
    qb, kb = op["query_block"], op["key_block"]
    for b in range(offsets.shape[0]):
        for h in range(offsets.shape[1]):
            for row in range(-(-nq // qb)):
                for entry in range(offsets[b, h, row], offsets[b, h, row + 1]):
                    column = col_indices[entry]
                    visible[b, h, row * qb : (row + 1) * qb, column * kb : (column + 1) * kb] = True
    return visible


def score_chain(scores, error, chain, inputs):
    """Scores after the chain, which keys are visible, and the error bound of f32."""
    batch, heads, nq, nkv = scores.shape
    visible = np.ones(scores.shape, bool)
    for op in chain:
        name = op["op"]
        if name == "causal":
            visible = visible & (diagonal(op["align"], nq, nkv) <= 0)
        elif name == "sliding_window":
            distance = diagonal(op["align"], nq, nkv)
            if op.get("left") is not None:
                visible = visible & (distance >= -op["left"])
            if op.get("right") is not None:
                visible = visible & (distance <= op["right"])
        elif name == "block_sparse":
            visible = visible & visible_blocks(
                op, scores.shape, inputs["row_offsets"], inputs["col_indices"]
            )
        elif name == "alibi":
            slopes = inputs.get("slopes")
            slopes = standard_slopes(heads) if slopes is None else slopes
            slopes = slopes.reshape((-1, heads, 1, 1))
            penalty = slopes * np.abs(diagonal(op["align"], nq, nkv))
            scores = scores - penalty
            error = error + 2.0**-22 * (np.abs(scores) + penalty)
        elif name == "additive_bias":
            bias = inputs[op.get("name", "bias")]
            masked = np.isneginf(bias)
            visible = visible & ~masked
            bias = np.where(masked, 0, bias)
            scores = scores + bias
            error = error + 2.0**-23 * (np.abs(scores) + np.abs(bias))
        else:
            raise ValueError(f"unknown score op {name}")
    return scores, visible, error


def attention(variant, inputs, element_type, rounds_weights=False):
    """(output, lse or None, bound of the output, bound of lse or None).

    Floats in `inputs` have the values that the compiled function reads. The bounds
    hold for a computation that rounds rotated q and k and the output to
    `element_type` and does all else in f32. With `rounds_weights` it also rounds the
    weights to `element_type`, and its exp2 and log2 are the approximate ones of a GPU
    (docs/numerics.md).
    """
    unit, f32 = ROUNDOFF[element_type], 2.0**-24
    inputs = {
        name: value.astype(np.float64) if np.issubdtype(np.asarray(value).dtype, np.floating) else value
        for name, value in inputs.items()
    }
    q, k, v = inputs["q"], inputs["k"], inputs["v"]
    batch, hq, nq, d = q.shape
    hkv, nkv = k.shape[1], k.shape[2]
    group = hq // hkv if hkv else 1
    scale = variant.get("scale")
    scale = 1.0 / np.sqrt(d) if scale is None else scale

    # Relative to |q| and |k|, what a rotation's rounding may move an element by.
    moved = 0.0
    q_size, k_size = np.abs(q), np.abs(k)
    rotation = variant.get("rope")
    if rotation:
        cos, sin = inputs["cos"], inputs["sin"]
        moved = unit + 4 * f32
        # A rotated element is as large as its pair, not as itself.
        norms = lambda x: np.sqrt((x * x).sum(-1, keepdims=True)) * np.ones(x.shape)
        if "q" in rotation["sides"]:
            at = positions_of(nq, rotation["q_offset"], inputs, "q")
            q = rope(q, cos, sin, rotation["pairing"], at)
            q_size = np.maximum(np.abs(q), unit * norms(q))
        if "k" in rotation["sides"]:
            at = positions_of(nkv, rotation["k_offset"], inputs, "k")
            k = rope(k, cos, sin, rotation["pairing"], at)
            k_size = np.maximum(np.abs(k), unit * norms(k))

    repeat = lambda x: np.repeat(x, group, axis=1)
    with np.errstate(invalid="ignore"):
        scores = scale * (q @ repeat(k).swapaxes(-1, -2))
        size = abs(scale) * (q_size @ repeat(k_size).swapaxes(-1, -2))
        error = (2 * moved + (d + 4) * f32) * size
        scores, visible, error = score_chain(scores, error, variant["chain"], inputs)
        error = np.where(visible, error, 0)
    # No arithmetic may see what is masked: garbage there is not the result's business.
    scores = np.where(visible, scores, -np.inf)

    v = repeat(v)
    lse = lse_bound = None
    if variant["norm"] == "softmax":
        weights, spread, lse, lse_bound = softmax(scores, visible, error, 12 if rounds_weights else 4)
    else:
        weights, spread = relu(scores, visible, error, variant["norm"])
    # A weight of 0 adds nothing, whatever v is.
    seen = (weights != 0) | (spread != 0)
    finite = np.isfinite(v).all(axis=(-1, -2), keepdims=True)
    safe = np.where(np.isfinite(v), v, 0)
    output = weights @ safe
    magnitude = np.abs(safe)
    bound = spread @ magnitude + (nkv + 4) * f32 * (np.abs(weights) @ magnitude)
    bound = bound + (unit + 2 * f32) * np.abs(output) + TINY[element_type]
    if rounds_weights:
        # Roundings of single weights add up as squares, four times of what is expected;
        # the sum's own weights are not rounded, which all of a row have in common.
        top = np.abs(weights).max(axis=-1, initial=0, keepdims=True)
        rounding = unit * np.abs(weights) + np.where(seen, TINY[element_type] * top, 0)
        bound = bound + 4 * np.sqrt(rounding**2 @ safe**2) + unit * np.abs(output)
    if not finite.all():
        bad = (seen.astype(float) @ (~np.isfinite(v)).astype(float)) > 0
        output = np.where(bad, np.nan, output)
    return output, lse, bound, lse_bound


def softmax(scores, visible, error, exp_roundings):
    """(probabilities, their error bounds, log-sum-exp, its bound). An exponential is off
    by so many roundings of f32."""
    nkv = scores.shape[-1]
    top = scores.max(axis=-1, initial=-np.inf, keepdims=True)
    shift = np.where(np.isneginf(top), 0, top)
    exponentials = np.where(visible, np.exp(scores - shift), 0)
    total = exponentials.sum(axis=-1, keepdims=True)
    empty = total == 0
    probs = exponentials / np.where(empty, 1, total)
    with np.errstate(divide="ignore"):
        lse = np.where(empty, -np.inf, np.log(total) + shift)[..., 0]
    f32 = 2.0**-24
    # exp turns an absolute error into a relative one; the shift adds its own rounding.
    with np.errstate(invalid="ignore"):
        distance = np.where(visible, np.abs(scores) + np.abs(shift), 0)
    each = error + 2 * f32 * distance + exp_roundings * f32
    worst = each.max(axis=-1, initial=0, keepdims=True)
    spread = np.expm1(np.minimum(2 * worst + (nkv + 4) * f32, 50)) * probs
    # Below f32's smallest numbers a weight is lost altogether.
    spread = spread + np.where(visible, 2.0**-126, 0)
    with np.errstate(invalid="ignore"):
        lse_bound = worst + (nkv + 8) * f32 + 4 * f32 * np.abs(np.where(empty, 0, shift))
        lse_bound = lse_bound[..., 0] + 4 * f32 * np.abs(np.where(empty[..., 0], 0, lse))
    return probs, spread, lse, lse_bound


def relu(scores, visible, error, norm):
    """(weights, their error bounds)."""
    nkv = scores.shape[-1]
    weights = np.where(visible, np.maximum(scores, 0), 0)
    spread = np.where(visible, error, 0)
    if norm == "none":
        return weights, spread
    if norm == "length":
        return weights / max(nkv, 1), spread / max(nkv, 1) + 2.0**-23 * weights
    total = weights.sum(axis=-1, keepdims=True)
    total_spread = spread.sum(axis=-1, keepdims=True) + (nkv + 2) * 2.0**-24 * total
    # Where the sum may be lost in its own error, any convex weights are within bounds.
    least = np.maximum(total - total_spread, 0)
    unsure = (least <= 0) & (total_spread > 0)
    safe = np.where(total == 0, 1, total)
    result = np.where(total == 0, 0, weights / safe)
    divisor = np.where(unsure | (least == 0), 1, least)
    spread = np.where(unsure, 1.0, (spread + result * total_spread) / divisor)
    return result, np.where(visible, spread + 2.0**-23 * result, 0)
