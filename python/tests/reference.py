"""The definition of attention in fp64, for comparison."""

import numpy as np


def rotate(x, cos, sin, interleaved=False, positions=None):
    """`x` [B, H, N, D]; `positions` [N] or [B, N]."""
    x = x.astype(np.float64)
    if positions is None:
        positions = np.arange(x.shape[2])
    positions = np.asarray(positions)
    cos, sin = (np.asarray(t, np.float64)[positions] for t in (cos, sin))
    if positions.ndim == 2:
        cos, sin = cos[:, None], sin[:, None]
    half = cos.shape[-1]
    result = x.copy()
    if interleaved:
        a, b = x[..., 0 : 2 * half : 2], x[..., 1 : 2 * half : 2]
        result[..., 0 : 2 * half : 2] = a * cos - b * sin
        result[..., 1 : 2 * half : 2] = b * cos + a * sin
    else:
        a, b = x[..., :half], x[..., half : 2 * half]
        result[..., :half] = a * cos - b * sin
        result[..., half : 2 * half] = b * cos + a * sin
    return result


def slopes(heads):
    """The standard ALiBi slopes."""
    power = 1
    while 2 * power <= heads:
        power *= 2
    first = [2.0 ** (-8 * (h + 1) / power) for h in range(min(power, heads))]
    return np.array(first + [2.0 ** (-4 * (2 * h + 1) / power) for h in range(heads - power)])


def distance(nq, nkv, align="bottom_right"):
    """j minus the place of query i: [Nq, Nkv]."""
    offset = nkv - nq if align == "bottom_right" else 0
    return np.arange(nkv)[None, :] - np.arange(nq)[:, None] - offset


def attention(q, k, v, scale=None, change=None, visible=None, norm="softmax"):
    """(output, log-sum-exp). `change` makes new scores of scores; `visible` broadcasts to them."""
    q, k, v = (x.astype(np.float64) for x in (q, k, v))
    group = q.shape[1] // k.shape[1]
    k, v = (np.repeat(x, group, axis=1) for x in (k, v))
    s = q @ k.swapaxes(-1, -2) * (1 / np.sqrt(q.shape[-1]) if scale is None else scale)
    if change is not None:
        s = change(s)
    hidden = s == -np.inf
    if visible is not None:
        hidden = hidden | ~np.broadcast_to(visible, s.shape)
    s = np.where(hidden, -np.inf, s)
    if norm != "softmax":
        p = np.where(hidden, 0, np.maximum(s, 0))
        total = {"sum": p.sum(-1, keepdims=True), "length": k.shape[2], "none": 1}[norm]
        return p / np.where(total == 0, 1, total) @ v, None
    top = s.max(-1, keepdims=True, initial=-np.inf)
    top = np.where(np.isfinite(top), top, 0)
    p = np.exp(s - top)
    total = p.sum(-1, keepdims=True)
    with np.errstate(divide="ignore"):
        lse = np.log(total) + top
    return p / np.where(total == 0, 1, total) @ v, lse[..., 0]


def check(actual, expected, element="float32"):
    """Relative L2 error and largest error within what the element type allows."""
    actual = np.asarray(actual, np.float64)
    assert actual.shape == expected.shape
    assert np.array_equal(np.isfinite(actual), np.isfinite(expected))
    finite = np.isfinite(expected)
    actual, expected = np.where(finite, actual, 0), np.where(finite, expected, 0)
    unit = {"float32": 2.0**-20, "float16": 2.0**-10, "bfloat16": 2.0**-7}[element]
    norm = np.linalg.norm(expected)
    assert np.linalg.norm(actual - expected) <= unit * norm + 1e-12
    assert np.abs(actual - expected).max(initial=0) <= 4 * unit * max(
        1.0, np.abs(expected).max(initial=0)
    )


def qkv(random, b=2, hq=4, hkv=2, nq=13, nkv=21, d=16, dv=None, dtype=np.float32):
    shapes = (b, hq, nq, d), (b, hkv, nkv, d), (b, hkv, nkv, dv or d)
    return [random.standard_normal(shape).astype(dtype) for shape in shapes]
