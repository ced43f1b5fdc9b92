"""Arguments that are at odds with each other: the error names both, and what they need."""

import numpy as np
import pytest

import attnfuse as af
import variants
from reference import check, qkv
from refusals import block_mask, ones, refused, tables

causal = af.attention(variants.causal)
rotated = af.attention(variants.rotated)
biased = af.attention(variants.biased)
sparse = af.attention(variants.sparse)
sloped = af.attention(variants.sloped)


#: (function, what differs from qkv(), the message): who is at fault, with whom, and what they need.
DISAGREEMENTS = {
    "batch of k": (
        causal,
        {"k": ones(1, 2, 21, 16)},
        "'k' has 1 batch entry where 'q' has 2: 'q' and 'k' need the same number",
    ),
    "batch of v": (causal, {"v": ones(3, 2, 21, 16)}, "'v' has 3 batch entries where 'q' has 2"),
    "heads of v": (
        causal,
        {"v": ones(2, 4, 21, 16)},
        r"'v' has 4 heads where 'k' has 2: 'k' and 'v' need the same number of heads \(dimension 1 of \[B, Hkv, Nkv, Dv\]\); got the shapes \[2, 2, 21, 16\] and \[2, 4, 21, 16\]",
    ),
    "heads of q": (
        causal,
        {"q": ones(2, 5, 13, 16)},
        r"'q' has 5 heads where 'k' has 2: .* a multiple .*\(dimension 1 .*repeat or drop some, or transpose",
    ),
    "no heads": (
        causal,
        {"k": ones(2, 0, 21, 16), "v": ones(2, 0, 21, 16)},
        "'q' has 4 heads where 'k' has 0: .* a multiple",
    ),
    "length of v": (
        causal,
        {"v": ones(2, 2, 20, 16)},
        r"'v' has 20 keys where 'k' has 21: 'k' and 'v' need the same .*\(dimension 2",
    ),
    "features of k": (
        causal,
        {"k": ones(2, 2, 21, 8)},
        r"'k' has 8 features where 'q' has 16: 'q' and 'k' need the same .*\(dimension 3",
    ),
    "no features": (
        causal,
        {"q": ones(2, 4, 13, 0), "k": ones(2, 2, 21, 0)},
        r"'q' has no features: give it at least 1 .*dimension 3 .*got the shape \[2, 4, 13, 0\]",
    ),
    "type of k": (
        causal,
        {"k": ones(2, 2, 21, 16).astype(np.float16)},
        r"'k' has f16 elements where 'q' has f32: q, k and v need one .*k\.astype\(q\.dtype\)",
    ),
    "type of v": (
        causal,
        {"v": ones(2, 2, 21, 16).astype(np.float16)},
        r"'v' has f16 elements where 'q' has f32: .*v\.astype\(q\.dtype\)",
    ),
    "heads of a bias": (
        biased,
        {"bias": ones(3, 13, 21)},
        "'bias' has 3 heads where 'q' has 4: .*, or 1 in 'bias', which is broadcast",
    ),
    "queries of a bias": (
        biased,
        {"bias": ones(12, 21)},
        r"'bias' has 12 queries where 'q' has 13: .*\(dimension 0 of \[Nq, Nkv\]\)",
    ),
    "keys of a bias": (
        biased,
        {"bias": ones(20)},
        "'bias' has 20 keys where 'k' has 21: .*broadcast",
    ),
    "batch of a bias": (
        biased,
        {"bias": ones(3, 1, 1, 1)},
        "'bias' has 3 batch entries where 'q' has 2: .*broadcast",
    ),
    "slopes": (
        sloped,
        {"slopes": ones(5)},
        "'slopes' has 5 heads where 'q' has 4: 'q' and 'slopes' need the same number of heads",
    ),
    "batch of slopes": (
        sloped,
        {"slopes": ones(1, 4)},
        "'slopes' has 1 batch entry where 'q' has 2",
    ),
    "columns of sin": (
        rotated,
        tables(sin=ones(64, 4)),
        "'sin' has 4 columns where 'cos' has 8: 'cos' and 'sin' need the same",
    ),
    "rows of sin": (
        rotated,
        tables(sin=ones(20, 8)),
        "'sin' has 20 rows where 'cos' has 64: 'cos' and 'sin' need the same",
    ),
    "type of sin": (
        rotated,
        tables(sin=ones(64, 8).astype(np.float16)),
        r"'sin' has f16 elements where 'cos' has f32: .*sin\.astype\(cos\.dtype\)",
    ),
    "wide tables": (
        rotated,
        tables(dim=18),
        r"'cos' has 9 columns, .*'q' has 16 features: expected at most 8; .*build_rope_cache\(length, 16\)",
    ),
    "no columns": (
        rotated,
        tables(cos=ones(64, 0), sin=ones(64, 0)),
        "'cos' has no columns: give it at least 1",
    ),
    "short tables": (
        rotated,
        tables(rows=12),
        r"'cos' is too short: expected at least 13 rows for 13 positions of 'q' from 0, got 12; .*build_rope_cache\(13, 16\)",
    ),
    "short tables for k": (
        rotated,
        tables(rows=20),
        r"'cos' is too short: .*of 'k' .*build_rope_cache\(21, 16\)",
    ),
    "offset": (
        rotated,
        tables(offset=50),
        r"'cos' is too short: expected at least 71 rows for 21 positions of 'k' from 50, got 64; .*build_rope_cache\(71, 16\)",
    ),
    "negative offset": (
        rotated,
        tables(offset=-1),
        "'offset': expected an offset of at least 0, .*got -1",
    ),
    "positions": (
        rotated,
        tables(positions=np.arange(12)),
        "'positions' has 12 queries where 'q' has 13",
    ),
    "two positions": (
        rotated,
        tables(positions=np.arange(13), offset=2),
        "'offset': expected it or 'positions', got both; add the offset",
    ),
    "queries of a mask": (
        sparse,
        {"block_mask": block_mask(q_len=30)},
        r"'block_mask' has 4 blocks of 8 queries where 'q' has 13 queries: .*create_block_mask\(\.\.\., Q_LEN=13\)",
    ),
    "more keys in a mask": (
        sparse,
        {"block_mask": block_mask(kv_len=30)},
        r"'block_mask' has 4 blocks of 8 keys where 'k' has 21 keys: .*KV_LEN=21",
    ),
    "fewer keys in a mask": (
        sparse,
        {"block_mask": block_mask(kv_len=16)},
        "'block_mask' has 2 blocks of 8 keys where 'k' has 21 keys: .*KV_LEN=21",
    ),
    "heads of a mask": (
        sparse,
        {"block_mask": block_mask(H=3)},
        "'block_mask' has 3 heads where 'q' has 4: .*broadcast",
    ),
    "batch of a mask": (
        sparse,
        {"block_mask": block_mask(B=3)},
        "'block_mask' has 3 batch entries where 'q' has 2",
    ),
}


@pytest.mark.parametrize("case", sorted(DISAGREEMENTS))
def test_disagreement(random, case):
    """It is the same before anything is compiled, for the CPU and for a GPU."""
    function, changed, message = DISAGREEMENTS[case]
    operands = {**dict(zip("qkv", qkv(random))), **changed}
    compiled = af.cache.statistics["compiled"]
    refused("argument " + message, function, **operands)
    refused("argument " + message, function.lower, **operands, level="ptx", target="h200")
    assert af.cache.statistics["compiled"] == compiled


@af.attention
def everything(queries, keys, values, cosines, sines, rows, blocks, pairs, slants, table):
    queries = af.rope(queries, cosines, sines, positions=rows)
    keys = af.rope(keys, cosines, sines)
    s = af.block_sparse(af.scaled_dot_product(queries, keys), blocks)
    s = af.alibi(af.additive_bias(s, pairs), slopes=slants)
    s = af.score_mod(s, lambda s, b, h, i, j: s + af.load(table, b, h, i, j))
    return af.softmax(s) @ values


def everything_operands(random):
    return {
        **dict(zip(("queries", "keys", "values"), qkv(random))),
        **dict(zip(("cosines", "sines"), tables().values())),
        "rows": np.zeros((2, 13), np.int32),
        "blocks": block_mask(),
        "pairs": ones(2, 4, 13, 21),
        "slants": ones(2, 4),
        "table": ones(2, 4, 13, 21),
    }


@pytest.mark.parametrize("name", everything.names)
def test_anything_else_is_refused_by_name(random, name):
    """Whatever an argument is in place of what it should be."""
    operands = everything_operands(random)
    assert everything(**operands).shape == operands["queries"].shape
    value = operands[name]
    wrong = [3, 3.5, True, "x", [1.0], np.zeros((1,) * 6), np.zeros((1,) * 9), {}, af, max]
    wrong += [np.zeros(3, object), np.zeros((2, 2), complex), np.ones((13, 21), bool)]
    if name not in ("rows", "slants"):  # which may be left out
        wrong.append(None)
    if isinstance(value, np.ndarray):
        wrong += [value.astype(dtype) for dtype in (bool, np.int8, complex, object)]
        wrong += [value[None, None, None], np.zeros((0,) * value.ndim, value.dtype)]
        for axis in range(value.ndim):
            if (name, axis) != ("values", 3):  # which is v's alone
                wrong.append(np.concatenate([value, value.take([0], axis)], axis))
    for other in wrong:
        error = refused(f"'{name}'", everything, **{**operands, name: other})
        assert ";" in str(error) or ": make it" in str(error)


def test_names_are_the_users(random):
    per_head = ones(3)

    @af.attention
    def renamed(queries, keys, values, cosines, sines):
        queries, keys = af.rope(queries, keys, cosines, sines)
        s = af.scaled_dot_product(queries, keys)
        s = af.score_mod(s, lambda s, b, h, i, j: s + af.load(per_head, h))
        return af.softmax(s) @ values

    q, k, v = qkv(random)
    cos, sin = tables().values()
    refused("'keys' has 8 features where 'queries' has 16", renamed, q, k[..., :8], v, cos, sin)
    refused("'values' has 20 keys where 'keys' has 21", renamed, q, k, v[:, :, :20], cos, sin)
    refused("'sines' has 20 rows where 'cosines' has 64", renamed, q, k, v, cos, sin[:20])
    refused(
        r"'per_head' has 3 heads where 'queries' has 4: .*\(dimension 0 is indexed by these alone\)",
        renamed,
        q,
        k,
        v,
        cos,
        sin,
    )


def test_what_agrees(random):
    """Views of any strides, sizes of 0, tables for a part of the features, broadcast dimensions."""
    q, k, v = qkv(random)
    check(causal(q, k[..., ::-1][..., ::-1], v), causal(q, k, v).astype(np.float64))
    for empty in (
        qkv(random, b=0),
        qkv(random, nq=0),
        qkv(random, nkv=0),
        qkv(random, hq=0, hkv=0),
    ):
        assert causal(*empty).shape == empty[0].shape
    assert rotated(q, k, v, **tables(dim=6)).shape == q.shape
    odd = qkv(random, d=15)
    assert rotated(*odd, **tables(dim=14)).shape == odd[0].shape
    for shape in ((), (1,), (21,), (13, 1), (4, 1, 21), (1, 4, 1, 1), (2, 1, 13, 21)):
        assert biased(q, k, v, bias=ones(*shape)).shape == q.shape
    for mask in (block_mask(B=2), block_mask(H=4), block_mask(q_len=16, kv_len=24)):
        assert sparse(q, k, v, block_mask=mask).shape == q.shape
