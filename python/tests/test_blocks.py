"""Each block, and blocks together, on NumPy arrays against the definition in fp64."""

import numpy as np
import pytest

import attnfuse as af
from reference import attention, check, distance, qkv, rotate, slopes


@af.attention
def dense(q, k, v):
    return af.softmax(af.full(af.scaled_dot_product(q, k))) @ v


@pytest.mark.parametrize("dtype", ["float32", "float16"])
def test_dense(random, dtype):
    q, k, v = qkv(random, dtype=dtype)
    output = dense(q, k, v)
    assert output.dtype == dtype
    check(output, attention(q, k, v)[0], dtype)


def test_bfloat16(random):
    ml_dtypes = pytest.importorskip("ml_dtypes")
    q, k, v = qkv(random, dtype=ml_dtypes.bfloat16)
    output = dense(q, k, v)
    assert output.dtype == ml_dtypes.bfloat16
    check(output, attention(q, k, v)[0], "bfloat16")


@pytest.mark.parametrize("align", ["bottom_right", "top_left"])
@pytest.mark.parametrize("nq, nkv", [(13, 21), (21, 13), (16, 16), (1, 9)])
def test_causal(random, align, nq, nkv):
    @af.attention
    def causal(q, k, v):
        return af.softmax(af.causal(af.scaled_dot_product(q, k), align=align)) @ v

    q, k, v = qkv(random, nq=nq, nkv=nkv)
    check(causal(q, k, v), attention(q, k, v, visible=distance(nq, nkv, align) <= 0)[0])


def test_sliding_window(random):
    @af.attention
    def symmetric(q, k, v):
        return af.softmax(af.sliding_window(af.scaled_dot_product(q, k), 5)) @ v

    @af.attention
    def bounds(q, k, v):
        return af.softmax(af.sliding_window(af.scaled_dot_product(q, k), left=6, right=1)) @ v

    @af.attention
    def one_bound(q, k, v):
        return af.softmax(af.sliding_window(af.scaled_dot_product(q, k), right=2)) @ v

    q, k, v = qkv(random, nq=17, nkv=29)
    d = distance(17, 29)
    check(symmetric(q, k, v), attention(q, k, v, visible=np.abs(d) < 5)[0])
    check(bounds(q, k, v), attention(q, k, v, visible=(d >= -6) & (d <= 1))[0])
    check(one_bound(q, k, v), attention(q, k, v, visible=d <= 2)[0])


@pytest.mark.parametrize("interleaved", [False, True])
def test_rope(random, interleaved):
    @af.attention
    def rotated(q, k, v):
        q, k = af.rope(q, k, interleaved=interleaved)
        return af.softmax(af.causal(af.scaled_dot_product(q, k))) @ v

    q, k, v = qkv(random, nq=19, nkv=19)
    cos, sin = af.build_rope_cache(64, 12)
    qr, kr = (rotate(x, cos, sin, interleaved) for x in (q, k))
    expected = attention(qr, kr, v, visible=distance(19, 19) <= 0)[0]
    check(rotated(q, k, v, cos=cos, sin=sin), expected)


def test_rope_positions_and_offset(random):
    @af.attention
    def at_offset(q, k, v, cos, sin, offset):
        q = af.rope(q, cos, sin, offset=offset)
        k = af.rope(k, cos, sin, offset=3)
        return af.softmax(af.scaled_dot_product(q, k)) @ v

    @af.attention
    def at_positions(q, k, v):
        q, k = af.rope(q, k)
        return af.softmax(af.scaled_dot_product(q, k)) @ v

    q, k, v = qkv(random, nq=5, nkv=20)
    cos, sin = af.build_rope_cache(64, 16)
    for offset in (0, np.int32(15), 31):
        qr = rotate(q, cos, sin, positions=np.arange(5) + offset)
        kr = rotate(k, cos, sin, positions=np.arange(20) + 3)
        check(at_offset(q, k, v, cos, sin, offset), attention(qr, kr, v)[0])
    with pytest.raises(af.OperandError, match="'offset': expected an offset of at least 0.*got -1"):
        at_offset(q, k, v, cos, sin, -1)
    with pytest.raises(
        af.OperandError, match="expected at least 65 rows for 5 positions of 'q' from 60"
    ):
        at_offset(q, k, v, cos, sin, 60)
    # The offset is no part of the code.
    assert len(at_offset._programs) == 1

    q, k, v = qkv(random, nq=9, nkv=9)
    for shape in ((9,), (2, 9)):
        positions = random.integers(0, 64, shape)
        qr, kr = (rotate(x, cos, sin, positions=positions) for x in (q, k))
        check(at_positions(q, k, v, cos=cos, sin=sin, positions=positions), attention(qr, kr, v)[0])


def test_rope_cache():
    cos, sin = af.build_rope_cache(7, 6, base=100.0)
    assert cos.shape == sin.shape == (7, 3) and cos.dtype == np.float32
    assert cos[3, 1] == np.float32(np.cos(3 * 100.0 ** (-2 / 6)))
    assert sin[6, 2] == np.float32(np.sin(6 * 100.0 ** (-4 / 6)))
    mistakes = [
        ((0, 6), "length"),
        ((7, 5), "dim"),
        ((7, 6, -1.0), "base"),
        ((7, 6, "x"), "base"),
        ((7, 6, 10.0, "f7"), "dtype"),
    ]
    for arguments, name in mistakes:
        with pytest.raises(af.OperandError, match=f"^{name}: expected"):
            af.build_rope_cache(*arguments)


def test_alibi(random):
    @af.attention
    def standard(q, k, v):
        return af.softmax(af.causal(af.alibi(af.scaled_dot_product(q, k), num_heads=6))) @ v

    @af.attention
    def given(q, k, v):
        return af.softmax(af.alibi(af.scaled_dot_product(q, k), align="top_left")) @ v

    q, k, v = qkv(random, hq=6, hkv=2)
    d = distance(13, 21)
    change = lambda s: s - slopes(6)[:, None, None] * np.abs(d)
    check(standard(q, k, v), attention(q, k, v, change=change, visible=d <= 0)[0])
    d = distance(13, 21, "top_left")
    for shape in ((6,), (2, 6)):
        own = random.random(shape).astype(np.float32)
        change = lambda s: s - own[..., None, None] * np.abs(d)
        check(given(q, k, v, slopes=own), attention(q, k, v, change=change)[0])


@pytest.mark.parametrize(
    "shape",
    [(), (21,), (13, 21), (4, 13, 21), (1, 13, 1), (2, 4, 13, 21), (2, 1, 1, 21), (1, 4, 1, 1)],
)
def test_additive_bias(random, shape):
    @af.attention
    def biased(q, k, v):
        return af.softmax(af.additive_bias(af.scaled_dot_product(q, k))) @ v

    q, k, v = qkv(random)
    bias = np.asarray(random.standard_normal(shape), np.float32)
    check(biased(q, k, v, bias=bias), attention(q, k, v, change=lambda s: s + bias)[0])


def test_infinite_bias_masks(random):
    @af.attention
    def biased(q, k, v):
        p, lse = af.softmax(af.additive_bias(af.scaled_dot_product(q, k)), return_lse=True)
        return p @ v, lse

    q, k, v = qkv(random)
    bias = np.where(random.random((13, 21)) < 0.4, -np.inf, 0).astype(np.float32)
    bias[2] = -np.inf
    output, lse = biased(q, k, v, bias=bias)
    expected = attention(q, k, v, change=lambda s: s + bias)
    check(output, expected[0])
    check(lse, expected[1])
    assert not output[:, :, 2].any() and (lse[:, :, 2] == -np.inf).all()


def test_block_sparse(random):
    @af.attention
    def sparse(q, k, v):
        return af.softmax(af.block_sparse(af.scaled_dot_product(q, k))) @ v

    q, k, v = qkv(random, nq=50, nkv=70)
    listed = random.random((2, 4, 4, 3)) < 0.6

    def at(b, h, i, j):
        return listed[b, h, i // 16, j // 32]

    i, j = np.arange(50)[:, None], np.arange(70)[None]
    shared = af.create_block_mask(
        lambda b, h, i, j: at(0, 0, i, j), Q_LEN=50, KV_LEN=70, BLOCK_SIZE=(16, 32)
    )
    assert shared.row_offsets.shape == (5,) and shared.row_offsets.dtype == np.int32
    check(sparse(q, k, v, block_mask=shared), attention(q, k, v, visible=at(0, 0, i, j))[0])
    own = af.create_block_mask(at, B=2, H=4, Q_LEN=50, KV_LEN=70, BLOCK_SIZE=(16, 32))
    assert own.row_offsets.shape == (2, 4, 5)
    visible = np.array([[at(b, h, i, j) for h in range(4)] for b in range(2)])
    check(sparse(q, k, v, block_mask=own), attention(q, k, v, visible=visible)[0])
    heads = af.create_block_mask(at, H=4, Q_LEN=50, KV_LEN=70, BLOCK_SIZE=(16, 32))
    assert heads.row_offsets.shape == (1, 4, 5)
    check(sparse(q, k, v, block_mask=heads), attention(q, k, v, visible=visible[:1])[0])


@pytest.mark.parametrize("norm", ["sum", "length", "none"])
def test_relu_attention(random, norm):
    @af.attention
    def relu(q, k, v):
        return af.relu_attention(af.causal(af.scaled_dot_product(q, k)), norm=norm) @ v

    q, k, v = qkv(random)
    check(relu(q, k, v), attention(q, k, v, visible=distance(13, 21) <= 0, norm=norm)[0])


def test_scale_and_output_type(random):
    @af.attention
    def scaled(q, k, v):
        return af.weighted_sum(af.softmax(af.scaled_dot_product(q, k, scale=0.3)), v, dtype="f32")

    q, k, v = qkv(random, dv=24, dtype=np.float16)
    output = scaled(q, k, v)
    assert output.dtype == np.float32 and output.shape == (2, 4, 13, 24)
    check(output, attention(q, k, v, scale=0.3)[0], "float16")


def test_everything(random):
    @af.attention
    def everything(q, k, v, pair_bias, mask_bias, *, window):
        q, k = af.rope(q, k)
        s = af.additive_bias(af.scaled_dot_product(q, k), pair_bias)
        s = af.alibi(af.causal(s))
        s = af.block_sparse(af.sliding_window(s, window))
        p, lse = af.softmax(af.additive_bias(s, mask_bias), return_lse=True)
        return lse, p @ v

    n = 41
    q, k, v = qkv(random, nq=n, nkv=n)
    cos, sin = af.build_rope_cache(n, 8)
    pair = random.standard_normal((1, 4, n, n)).astype(np.float32)
    mask = np.where(random.random((2, 1, 1, n)) < 0.2, -np.inf, 0).astype(np.float32)
    blocks = af.create_block_mask(
        lambda b, h, i, j: (i // 8 + j // 8) % 3 != 1, Q_LEN=n, KV_LEN=n, BLOCK_SIZE=8
    )
    lse, output = everything(
        q, k, v, pair, mask_bias=mask, window=20, cos=cos, sin=sin, block_mask=blocks
    )
    d = distance(n, n)
    i, j = np.arange(n)[:, None], np.arange(n)[None]
    visible = (d <= 0) & (np.abs(d) < 20) & ((i // 8 + j // 8) % 3 != 1)
    change = lambda s: s + pair - slopes(4)[:, None, None] * np.abs(d) + mask
    expected = attention(
        rotate(q, cos, sin), rotate(k, cos, sin), v, change=change, visible=visible
    )
    check(output, expected[0])
    check(lse, expected[1])


def test_strides(random):
    q, k, v = qkv(random, nq=21)
    stored = [
        np.ascontiguousarray(x.transpose(0, 2, 1, 3)).transpose(0, 2, 1, 3) for x in (q, k, v)
    ]
    expected = attention(q, k, v)[0]
    check(dense(*stored), expected)
    padded = [np.pad(x, ((0, 0), (0, 0), (0, 3), (1, 2)))[:, :, :-3, 1:-2] for x in (q, k, v)]
    check(dense(*padded), expected)
    check(dense(q[:, :, ::-1], k, v), expected[:, :, ::-1])
    shared = np.broadcast_to(k[:1], k.shape)
    check(dense(q, shared, v), attention(q, shared, v)[0])


@pytest.mark.parametrize("b, nq, nkv", [(0, 3, 4), (1, 0, 4), (1, 3, 0)])
def test_no_elements(random, b, nq, nkv):
    q, k, v = qkv(random, b=b, nq=nq, nkv=nkv)
    output = dense(q, k, v)
    assert output.shape == (b, 4, nq, 16) and not output.any()


def test_captured_arrays(random):
    table = random.standard_normal((4, 13, 21)).astype(np.float32)

    @af.attention
    def captured(q, k, v):
        return af.softmax(af.additive_bias(af.scaled_dot_product(q, k), table)) @ v

    q, k, v = qkv(random)
    check(captured(q, k, v), attention(q, k, v, change=lambda s: s + table)[0])
    # It is the array that is captured, not what it held.
    table *= 2
    check(captured(q, k, v), attention(q, k, v, change=lambda s: s + table)[0])


def test_one_program_for_all_lengths(random):
    @af.attention
    def causal(q, k, v):
        return af.softmax(af.causal(af.scaled_dot_product(q, k))) @ v

    for b, nq, nkv in ((1, 5, 5), (3, 1, 8), (2, 30, 30)):
        q, k, v = qkv(random, b=b, nq=nq, nkv=nkv)
        check(causal(q, k, v), attention(q, k, v, visible=distance(nq, nkv) <= 0)[0])
    assert len(causal._programs) == 1
    q, k, v = qkv(random, d=8)
    check(causal(q, k, v), attention(q, k, v, visible=distance(13, 21) <= 0)[0])
    assert len(causal._programs) == 2


def test_bias_programs_follow_what_is_broadcast(random):
    @af.attention
    def biased(q, k, v):
        return af.softmax(af.additive_bias(af.scaled_dot_product(q, k))) @ v

    for nq, shape in (
        (5, (2, 1, 5, 9)),
        (5, (2, 1, 1, 9)),
        (1, (2, 1, 1, 9)),
        (6, (2, 1, 6, 9)),
        (5, (1, 9)),
    ):
        q, k, v = qkv(random, nq=nq, nkv=9)
        bias = random.standard_normal(shape).astype(np.float32)
        check(biased(q, k, v, bias=bias), attention(q, k, v, change=lambda s: s + bias)[0])
    assert len(biased._programs) == 3
