"""An argument that is not what it should be, in a call or in making masks: the error names it and the
remedy."""

import json

import numpy as np
import pytest

import attnfuse as af
import variants
from reference import qkv
from refusals import block_mask, refused, tables

causal = af.attention(variants.causal)
rotated = af.attention(variants.rotated)
biased = af.attention(variants.biased)
sparse = af.attention(variants.sparse)
sloped = af.attention(variants.sloped)


# ===-----------------------------------------------------------------------===#
# What an argument is
# ===-----------------------------------------------------------------------===#


def test_shapes(tensors):
    q, k, v = tensors
    refused(
        r"argument 'q': expected q \[B, Hq, Nq, D\] of 4 dimensions, got 3 .*reshape",
        causal,
        q[0],
        k,
        v,
    )
    refused(r"argument 'v': .*of 4 dimensions, got 2", causal, q, k, v[0, 0])


def test_elements(tensors):
    q, k, v = tensors
    refused(
        r"argument 'q': expected f16 or bf16 or f32 elements as q .*, got f64; convert it by q\.astype\('float32'\)",
        causal,
        *(x.astype(np.float64) for x in tensors),
    )
    refused(
        r"argument 'k': expected f16 .*, got int8; convert it by k\.astype\('float32'\)",
        causal,
        q,
        k.astype(np.int8),
        v,
    )
    refused(
        r"argument 'positions': expected i32 or i64 elements",
        rotated,
        q,
        q,
        q,
        **tables(),
        positions=np.zeros(13, np.float32),
    )
    refused(
        r"argument 'bias': expected f16 or bf16 or f32 elements as a bias .*, got i64; convert",
        biased,
        q,
        k,
        v,
        bias=np.zeros((13, 21), np.int64),
    )
    refused(
        r"argument 'bias': .*got bool; a mask is a bias of 0 and -inf, np\.where\(bias, 0, -np\.inf\).*"
        r"af\.mask_mod",
        biased,
        q,
        k,
        v,
        bias=np.ones((13, 21), bool),
    )
    refused(r"'slopes': expected f32 .*got f64; convert", sloped, q, k, v, slopes=np.ones(4))


def test_strides_of_parts_of_elements(tensors):
    q, k, v = tensors
    record = np.zeros(q.shape, np.dtype([("x", np.float32), ("y", np.int8)]))["x"]
    refused(r"argument 'q': expected strides .*np\.ascontiguousarray\(q\)", causal, record, k, v)


def test_byte_order(tensors):
    q, k, v = tensors
    refused(
        r"argument 'q': expected elements in this machine's byte order, got >f4; convert",
        causal,
        q.astype(">f4"),
        k,
        v,
    )


def test_missing_and_unexpected(tensors):
    refused("causal: missing argument 'v'; pass v=", causal, *tensors[:2])
    refused(
        r"rope: missing argument 'cos'; pass cos=\.\.\. to the call, or write af\.rope\(x, cos, sin\)",
        rotated,
        *tensors,
    )
    refused("rope: missing argument 'sin'", rotated, *tensors, cos=tables()["cos"])
    refused("additive_bias: missing argument 'bias'; pass bias=", biased, *tensors)
    refused("block_sparse: missing argument 'block_mask'; pass", sparse, *tensors)
    refused(
        "causal: unexpected argument 'mask'; expected one of its parameters",
        causal,
        *tensors,
        mask=tensors[0],
    )
    refused("causal: argument 'bias' is not used", causal, *tensors, bias=tensors[0])
    refused("causal: expected at most 3 operands, got 4", causal, *tensors, tensors[0])
    refused("causal: argument 'q' is given twice", causal, *tensors, q=tensors[0])


def test_kinds(tensors):
    q, k, v = tensors
    refused(
        r"argument 'k': expected an array, an int or a block mask, got a list; convert",
        causal,
        q,
        [1.0],
        v,
    )
    for value, got in ((None, "None"), (3, "the int 3"), (3.5, "a float"), ("k", "a str")):
        message = rf"argument 'k': expected k \[B, Hkv, Nkv, D\], got {got}; pass a NumPy array"
        refused(message, causal, q, value, v)
    refused("argument 'q': .*got None; pass", rotated, None, None, None, **tables())
    refused("argument 'cos': expected cos .*got the int 3; pass", rotated, q, k, v, cos=3, sin=4)
    refused("argument 'positions': .*got the int 3; pass", rotated, q, k, v, **tables(positions=3))
    for dtype, got in ((bool, "bool"), (np.int32, "i32")):
        refused(
            rf"argument 'block_mask': expected a block mask, got an array of {got}; make one by "
            r"af\.create_block_mask.*af\.mask_mod",
            sparse,
            q,
            k,
            v,
            block_mask=np.zeros((13, 21), dtype),
        )
    refused("argument 'block_mask': .*got the int 3; make one", sparse, q, k, v, block_mask=3)
    for offset, got in ((1.5, "a float"), (np.arange(13), "an array of i64")):
        message = (
            rf"argument 'offset': expected an int as offset of rope, got {got}; pass int\(\.\.\.\)"
        )
        refused(message, rotated, q, k, v, **tables(offset=offset))
    refused(
        r"argument 'q': expected an array, got TensorSpec.*af\.lower",
        causal,
        af.TensorSpec((2, 4, 13, 16), "f32"),
        k,
        v,
    )


def test_numbers_of_the_call(tensors):
    @af.attention
    def windowed(q, k, v, window):
        return af.softmax(af.sliding_window(af.scaled_dot_product(q, k), window)) @ v

    @af.attention
    def counted(q, k, v, count):
        return af.softmax(af.alibi(af.scaled_dot_product(q, k), num_heads=count)) @ v

    @af.attention
    def scaled(q, k, v, scale, align="top_left"):
        return af.softmax(af.causal(af.scaled_dot_product(q, k, scale=scale), align=align)) @ v

    for scale, got in (
        (float("nan"), "nan"),
        (tensors[0], "an array of f32; pass float"),
        ("{}", "a str"),
    ):
        refused(
            f"argument 'scale': expected a finite number as scale, got {got}",
            scaled,
            *tensors,
            scale,
        )
    refused(
        "argument 'align': expected 'bottom_right' or 'top_left', got '{0}'",
        scaled,
        *tensors,
        0.5,
        align="{0}",
    )
    refused("argument 'window': expected at least 1, got 0", windowed, *tensors, 0)
    refused("argument 'window': expected an int .*got a float; pass int", windowed, *tensors, 2.5)
    refused(
        "argument 'count': expected the 4 heads of q, got 5; leave it out", counted, *tensors, 5
    )


def test_values(tensors):
    q = tensors[0]
    mask = block_mask()
    mask.col_indices = mask.col_indices + 5
    refused("col_indices", sparse, *tensors, block_mask=mask)
    for offset in (2**63, -(2**63) - 1, 2**64, np.uint64(2**64 - 1)):
        refused(
            f"argument 'offset': expected an int of 64 bits, .*, got {offset}",
            rotated,
            q,
            q,
            q,
            **tables(),
            offset=offset,
        )
    # Strides of 0 make an array of more bytes than there are.
    many = np.broadcast_to(np.float32(1), (*q.shape[:2], 2**36, q.shape[3]))
    refused("'k' is too large: expected tensors that fit", causal, q, many, many)


def test_gpu_only_limits(tensors):
    halves = [x.astype(np.float16) for x in tensors]
    assert ".entry causal" in causal.lower(*halves, level="ptx", target="sm_80")
    message = (
        r"argument 'q': expected f16 or bf16 for a GPU, got f32; convert .*q\.astype\('float16'\)"
    )
    refused(message, causal.lower, *tensors, level="schedule", target="sm_80")
    refused(message, causal.explain, *tensors, target="sm_80")
    features = (
        r"expected a head size \(dimension 3\) that is a multiple of 8 from 8 to 256 for a GPU, got"
    )
    narrow = [x[..., :12] for x in halves]
    gpu = {"level": "ptx", "target": "sm_80"}
    refused(
        rf"argument 'q': {features} 12; pad q and k .*scale=0.288", causal.lower, *narrow, **gpu
    )
    refused(rf"argument 'v': {features} 12; pad v", causal.lower, *halves[:2], narrow[2], **gpu)
    wide = qkv(np.random.default_rng(1), d=264, dtype=np.float16)
    refused(rf"argument 'q': {features} 264; call the function .*CPU", causal.lower, *wide, **gpu)
    refused(
        "argument 'block_mask': expected blocks of a multiple of 16 for a GPU, got 8; .*BLOCK_SIZE=16",
        sparse.lower,
        *halves,
        block_mask=block_mask(),
        **gpu,
    )
    for target in (None, "gtx"):
        message = f"target: expected the machine to compile for, one of a100.*got {target!r}"
        refused(message, causal.lower, *halves, level="ptx", target=target)
    refused("level: expected one of blocks, fused", causal.lower, *halves, level="sass")
    refused("expected a function decorated with @af.attention", af.explain, max)


# ===-----------------------------------------------------------------------===#
# Predicates
# ===-----------------------------------------------------------------------===#


def test_predicates():
    def make(predicate, **sizes):
        return af.create_block_mask(
            predicate, **{"Q_LEN": 64, "KV_LEN": 64, "BLOCK_SIZE": 16, **sizes}
        )

    refused(
        r"predicate: it is no block predicate: of query block 0 and key block 0 .*BLOCK_SIZE.*af\.causal",
        make,
        lambda b, h, i, j: i >= j,
    )
    refused(
        r"query block 1 and key block 2 \(queries from 16, keys from 32; batch entry 0, head 1\)",
        make,
        lambda b, h, i, j: (j < 40) | (i < 16) | (h == 0),
        H=2,
    )
    refused(
        "predicate: expected it to return booleans, got int64; compare",
        make,
        lambda b, h, i, j: i - j,
    )
    refused(
        r"predicate: it raised ValueError .*write & \| ~ for 'and'",
        make,
        lambda b, h, i, j: i >= j and j > 3,
    )
    refused(r"predicate: expected a function of \(b, h, i, j\), got an int", make, 3)
    refused(
        r"predicate: expected a function of \(b, h, i, j\), got one of \(i, j\); write lambda b, h, i, j",
        make,
        lambda i, j: i == j,
    )
    table = np.arange(64)
    refused(
        r"predicate: .*write table\[i\] for af\.load",
        make,
        lambda b, h, i, j: af.load(table, i) == j,
    )
    refused(
        "predicate: it raised IndexError .*an entry for each index",
        make,
        lambda b, h, i, j: table[:9][i] == j,
    )
    refused("predicate: it raised TypeError .*NumPy's functions", make, lambda b, h, i, j: [] + 1)
    refused(
        r"predicate: expected an array that broadcasts to \(16, 64\), got",
        make,
        lambda b, h, i, j: np.ones((3, 3), bool),
    )
    refused(
        "Q_LEN: expected an int of at least 0, got None",
        af.create_block_mask,
        lambda b, h, i, j: i >= 0,
        KV_LEN=4,
    )
    refused(
        "BLOCK_SIZE: expected an int of at least 1, got 0",
        make,
        lambda b, h, i, j: i >= 0,
        BLOCK_SIZE=0,
    )
    # The last blocks may be cut short.
    assert make(
        lambda b, h, i, j: i // 16 >= j // 16, Q_LEN=50, KV_LEN=70
    ).col_indices.tolist() == [0, 0, 1, 0, 1, 2, 0, 1, 2, 3]


# ===-----------------------------------------------------------------------===#
# Functions and their operands
# ===-----------------------------------------------------------------------===#


DIMENSIONS = ("B", "Hq", "Hkv", "Nq", "Nkv", "D", "Dv", "R", "nnz", "P", "P_q", "P_k", "Nq_1")


@pytest.mark.parametrize("name", DIMENSIONS)
def test_operands_with_names_of_dimensions(tensors, name):
    """They are refused before anything is compiled, for every device."""
    scope = {"af": af}
    exec(
        f"def f(q, k, v, {name}):\n"
        f"    return af.softmax(af.additive_bias(af.scaled_dot_product(q, k), {name})) @ v\n"
        f"def g(q, k, v, {name}):\n"
        f"    return af.softmax(af.sliding_window(af.scaled_dot_product(q, k), {name})) @ v\n",
        scope,
    )
    function = af.attention(scope["f"])
    message = rf"f: argument '{name}' has the name of a dimension.*rename the parameter"
    bias = np.zeros((4, 13, 21), np.float32)
    refused(message, function, *tensors, bias)
    refused(message, function.lower, *tensors, bias, level="ptx", target="sm_80")
    # A number that becomes part of the code is no operand of it.
    assert af.attention(scope["g"])(*tensors, 5).shape == tensors[0].shape


def test_names_of_dimensions_are_known(tensors):
    """The compiler has no other names of dimensions than those."""

    @af.attention
    def everything(q, k, v, cos, sin, k_cos, k_sin, block_mask, bias, slopes):
        q, k = af.rope(q, cos, sin), af.rope(k, k_cos, k_sin)
        s = af.block_sparse(af.scaled_dot_product(q, k), block_mask)
        s = af.alibi(af.additive_bias(s, bias), slopes=slopes)
        return af.softmax(s) @ v

    mask = af.create_block_mask(lambda b, h, i, j: j >= 0, Q_LEN=13, KV_LEN=21, BLOCK_SIZE=16)
    manifest = everything.lower(
        *(x.astype(np.float16) for x in tensors),
        *tables().values(),
        *tables(32).values(),
        mask,
        np.zeros((13, 21), np.float32),
        np.zeros(4, np.float32),
        level="manifest",
        target="sm_80",
    )
    function = json.loads(manifest)["functions"][0]
    shapes = [x["shape"] for x in function["arguments"] + function["results"]]
    names = {size for shape in shapes for size in shape if isinstance(size, str)}
    assert {"B", "Nq", "Nkv", "P_q", "P_k", "R", "nnz"} <= names <= set(DIMENSIONS)


def test_errors_do_not_stick(tensors):
    """A function that failed for some operands serves others."""
    q, k, v = tensors
    refused(
        "multiple",
        causal,
        q,
        np.concatenate([k, k], 1)[:, :3],
        np.concatenate([v, v], 1)[:, :3],
    )
    assert causal(q, k, v).shape == q.shape
