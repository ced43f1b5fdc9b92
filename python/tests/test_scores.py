"""Computing on scores: every operator, and masks among them."""

import math

import numpy as np
import pytest

import attnfuse as af
from reference import attention, check, distance, qkv, rotate, slopes

NQ, NKV = 13, 21


def run(random, change_symbolic, change_reference, **sizes):
    @af.attention
    def changed(q, k, v):
        return af.softmax(af.score_mod(af.scaled_dot_product(q, k), change_symbolic)) @ v

    q, k, v = qkv(random, nq=NQ, nkv=NKV, **sizes)
    b, h, i, j = np.ogrid[:2, :4, :NQ, :NKV]
    expected = attention(q, k, v, change=lambda s: change_reference(s, b, h, i, j))[0]
    check(changed(q, k, v), expected)
    # What runs on the CPU compiles for a GPU.
    halves = [x.astype(np.float16) for x in (q, k, v)]
    assert ".entry changed" in changed.lower(*halves, level="ptx", target="sm_80")


CASES = {
    "add": (lambda s, b, h, i, j: s + 1 - 0.5, lambda s, *_: s + 0.5),
    "reverse": (lambda s, b, h, i, j: 2 - 3 * s, lambda s, *_: 2 - 3 * s),
    "divide": (lambda s, b, h, i, j: s / (i + 1), lambda s, b, h, i, j: s / (i + 1)),
    "reciprocal": (lambda s, b, h, i, j: 1 / (2 + s * s), lambda s, *_: 1 / (2 + s * s)),
    "power": (lambda s, b, h, i, j: -(s**3), lambda s, *_: -(s**3)),
    "tanh": (lambda s, b, h, i, j: af.tanh(s / 2) * 2, lambda s, *_: np.tanh(s / 2) * 2),
    "exp": (lambda s, b, h, i, j: af.exp(s) + af.exp2(-s), lambda s, *_: np.exp(s) + np.exp2(-s)),
    "log": (
        lambda s, b, h, i, j: af.log(abs(s) + 1) + af.log2(1 + s * s) + af.sqrt(af.abs(s)),
        lambda s, *_: np.log(abs(s) + 1) + np.log2(1 + s * s) + np.sqrt(abs(s)),
    ),
    "extrema": (
        lambda s, b, h, i, j: af.maximum(af.minimum(s, 0.5), -0.25) + af.minimum(i, j),
        lambda s, b, h, i, j: np.clip(s, -0.25, 0.5) + np.minimum(i, j),
    ),
    "where": (
        lambda s, b, h, i, j: af.where((i < j) ^ (h == 1), s, af.where(s > 0, s * 2, -0.0)),
        lambda s, b, h, i, j: np.where((i < j) ^ (h == 1), s, np.where(s > 0, s * 2, 0)),
    ),
    "integers": (
        lambda s, b, h, i, j: s + ((i - j) // 3) + ((i - j) % 5) + ((i - j) % -4) + 7 // (j + 1),
        lambda s, b, h, i, j: s + ((i - j) // 3) + ((i - j) % 5) + ((i - j) % -4) + 7 // (j + 1),
    ),
    "comparisons": (
        lambda s, b, h, i, j: s
        + af.where((i <= 3) & (j >= 2) | ~(i != j), 1.0, 0.0)
        + af.where((s >= 0.1) & (s <= 0.4) & (s != 0.2), 1.0, 0.0)
        + af.where(True & (b == 1), 1.0, 0.0),
        lambda s, b, h, i, j: s
        + ((i <= 3) & (j >= 2) | (i == j))
        + ((s >= 0.1) & (s <= 0.4) & (s != 0.2))
        + (b == 1),
    ),
    "indices": (
        lambda s, b, h, i, j: s + af.float32(b) - 0.25 * h + abs(i - j) * 0.125 - (-i) * 0.5,
        lambda s, b, h, i, j: s + b - 0.25 * h + abs(i - j) * 0.125 + i * 0.5,
    ),
    "hidden": (
        lambda s, b, h, i, j: af.where((i + j) % 3 == 0, -math.inf, s),
        lambda s, b, h, i, j: np.where((i + j) % 3 == 0, -np.inf, s),
    ),
    "unused": (lambda s, b, h, i, j: s + 0 * i, lambda s, *_: s),
}


@pytest.mark.parametrize("case", sorted(CASES))
def test_operator(random, case):
    run(random, *CASES[case])


def test_constants_are_exact():
    from attnfuse.text import float_literal

    values = [0.0, -0.0, 1.0, 1e-5, 3e30, -2.5, 1e-45, 3.4028234663852886e38, 0.1]
    for value in values:
        literal = float_literal(value)
        assert "." in literal and np.float32(float(literal)) == np.float32(value)
    assert float_literal(math.inf) == "0x7F800000" and float_literal(-math.inf) == "0xFF800000"
    assert float_literal(math.nan).startswith("0x7FC")


def test_operators_on_scores(random):
    @af.attention
    def capped(q, k, v):
        s = af.scaled_dot_product(q, k)
        return af.softmax(af.causal(20 * af.tanh(s / 20) + s * 0.5)) @ v

    q, k, v = qkv(random, nq=NQ, nkv=NKV)
    change = lambda s: 20 * np.tanh(s / 20) + s * 0.5
    check(capped(q, k, v), attention(q, k, v, change=change, visible=distance(NQ, NKV) <= 0)[0])


def test_loads(random):
    documents = np.sort(random.integers(0, 3, NKV)).astype(np.int64)
    queries = np.ascontiguousarray(documents[:NQ])

    @af.attention
    def loads(q, k, v, table, per_head):
        b, h, i, j = af.indices(af.scaled_dot_product(q, k))
        nq, nkv = af.lengths(af.scaled_dot_product(q, k))
        s = af.scaled_dot_product(q, k)
        s = s + table[b, i - j + nkv] * per_head[h]
        return (
            af.softmax(
                af.mask_mod(s, lambda b, h, i, j: af.load(queries, i) == af.load(documents, j))
            )
            @ v
        )

    q, k, v = qkv(random, nq=NQ, nkv=NKV)
    table = random.standard_normal((2, NQ + NKV)).astype(np.float16)
    per_head = random.standard_normal(4).astype(np.float32)
    b, h, i, j = np.ogrid[:2, :4, :NQ, :NKV]
    change = lambda s: s + table.astype(np.float64)[b, i - j + NKV] * per_head[h]
    visible = documents[i] == documents[j]
    check(loads(q, k, v, table, per_head), attention(q, k, v, change=change, visible=visible)[0])


def test_masks_among_computations(random):
    """Masking is sticky, wherever the mask stands."""

    @af.attention
    def mixed(q, k, v):
        s = af.causal(af.scaled_dot_product(q, k))
        s = af.sliding_window(s * 2, left=9, align="top_left")
        s = af.block_sparse(af.alibi(af.where(s > 0.5, s, s * 0.5)))
        s = af.additive_bias(s + 1)
        p, lse = af.softmax(af.full(s), return_lse=True)
        return p @ v, lse

    q, k, v = qkv(random, nq=NQ, nkv=NKV)
    bias = random.standard_normal((2, 1, NQ, 1)).astype(np.float32)
    i, j = np.arange(NQ)[:, None], np.arange(NKV)[None]
    blocks = af.create_block_mask(
        lambda b, h, i, j: (i // 4 + j // 4) % 2 == 0, Q_LEN=NQ, KV_LEN=NKV, BLOCK_SIZE=4
    )
    d = distance(NQ, NKV)
    visible = (d <= 0) & (j - i >= -9) & ((i // 4 + j // 4) % 2 == 0)

    def change(s):
        s = 2 * s
        s = np.where(s > 0.5, s, s * 0.5) - slopes(4)[:, None, None] * np.abs(d)
        return s + 1 + bias

    output, lse = mixed(q, k, v, bias=bias, block_mask=blocks)
    expected = attention(q, k, v, change=change, visible=visible)
    check(output, expected[0])
    check(lse, expected[1])


def test_rotations_beside_computations(random):
    @af.attention
    def rotated(q, k, v, offset):
        q = af.rope(q, offset=offset)
        k = af.rope(k)
        return af.softmax(af.scaled_dot_product(q, k, scale=0.3) * 0.5) @ v

    q, k, v = qkv(random, nq=NQ, nkv=NKV)
    cos, sin = af.build_rope_cache(64, 16)
    positions = random.integers(0, 64, NKV).astype(np.int32)

    @af.attention
    def positioned(q, k, v, offset, where):
        q = af.rope(q, offset=offset)
        k = af.rope(k, positions=where)
        return af.softmax(af.scaled_dot_product(q, k, scale=0.3) * 0.5) @ v

    qr = rotate(q, cos, sin, positions=np.arange(NQ) + 8)
    kr = rotate(k, cos, sin, positions=positions)
    output = positioned(q, k, v, 8, positions, cos=cos, sin=sin)
    check(output, attention(qr, kr, v, scale=0.15)[0])


def test_relu_of_computed_scores(random):
    @af.attention
    def squared(q, k, v):
        s = af.scaled_dot_product(q, k)
        return af.relu_attention(s * af.maximum(s, 0), norm="length") @ v

    q, k, v = qkv(random)
    change = lambda s: s * np.maximum(s, 0)
    check(squared(q, k, v), attention(q, k, v, change=change, norm="length")[0])


def test_ints_of_the_call_become_code(random):
    @af.attention
    def windowed(q, k, v, window):
        return (
            af.softmax(
                af.score_mod(
                    af.sliding_window(af.scaled_dot_product(q, k), window),
                    lambda s, b, h, i, j: s * window,
                )
            )
            @ v
        )

    q, k, v = qkv(random)
    for window in (3, 5, 3):
        visible = np.abs(distance(13, 21)) < window
        check(
            windowed(q, k, v, window),
            attention(q, k, v, change=lambda s: s * window, visible=visible)[0],
        )
    assert len(windowed._programs) == 2
