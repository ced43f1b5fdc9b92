"""Every mistake has an error that names the argument and the remedy, or the user's line."""

import inspect
import json

import numpy as np
import pytest

import attnfuse as af
import variants
from reference import qkv

causal = af.attention(variants.causal)
rotated = af.attention(variants.rotated)
biased = af.attention(variants.biased)
sparse = af.attention(variants.sparse)


@pytest.fixture
def tensors(random):
    return qkv(random)


def refused(message, function, *args, error=af.OperandError, **operands):
    with pytest.raises(error, match=message) as caught:
        function(*args, **operands)
    return caught.value


# ===-----------------------------------------------------------------------===#
# Calls
# ===-----------------------------------------------------------------------===#


def test_shapes(tensors):
    q, k, v = tensors
    refused(
        r"operand 'q': expected q \[B, Hq, Nq, D\] of 4 dimensions, got 3 .*reshape",
        causal,
        q[0],
        k,
        v,
    )
    refused(r"operand 'v': .*of 4 dimensions, got 2", causal, q, k, v[0, 0])
    refused(
        r"causal: .*Nkv is 21 by dimension 2 of argument 'k', but 20 by .*'v'",
        causal,
        q,
        k,
        v[:, :, :20],
    )
    refused(r"causal: .*B is 2 by dimension 0 of argument 'q', but 1 by .*'k'", causal, q, k[:1], v)
    error = refused(
        r"query heads to be a multiple of .* got 4 and 3",
        causal,
        q,
        np.concatenate([k, k], 1)[:, :3],
        v,
        error=af.CompileError,
    )
    assert error.filename == variants.__file__
    refused(r"D|features", causal, q, k[..., :8], v, error=af.CompileError)


def test_elements(tensors):
    q, k, v = tensors
    refused(
        r"operand 'q': expected f16 or bf16 or f32 elements as q .*, got f64; convert",
        causal,
        *(x.astype(np.float64) for x in tensors),
    )
    refused(
        r"operand 'k': elements of type int8 are not supported; convert",
        causal,
        q,
        k.astype(np.int8),
        v,
    )
    refused(
        r"query and key|element type", causal, q.astype(np.float16), k, v, error=af.CompileError
    )
    refused(
        r"operand 'positions': expected i32 or i64 elements",
        rotated,
        q,
        q,
        q,
        **tables(),
        positions=np.zeros(13, np.float32),
    )
    refused(
        r"operand 'bias': expected f16 or bf16 or f32 elements as a bias, got i64",
        biased,
        q,
        k,
        v,
        bias=np.zeros((13, 21), np.int64),
    )


def test_strides_of_parts_of_elements(tensors):
    q, k, v = tensors
    record = np.zeros(q.shape, np.dtype([("x", np.float32), ("y", np.int8)]))["x"]
    refused(r"operand 'q': expected strides .*np\.ascontiguousarray\(q\)", causal, record, k, v)


def test_byte_order(tensors):
    q, k, v = tensors
    refused(
        r"operand 'q': expected elements in this machine's byte order, got >f4; convert",
        causal,
        q.astype(">f4"),
        k,
        v,
    )


def tables(rows=64, dim=16):
    cos, sin = af.build_rope_cache(rows, dim)
    return {"cos": cos, "sin": sin}


def test_missing_and_unexpected(tensors):
    refused("causal: missing operand 'v'; pass v=", causal, *tensors[:2])
    refused(
        r"rope: missing operand 'cos'; pass cos=\.\.\. to the call, or write af\.rope\(x, cos, sin\)",
        rotated,
        *tensors,
        error=af.CompileError,
    )
    refused(
        "rope: missing operand 'sin'", rotated, *tensors, cos=tables()["cos"], error=af.CompileError
    )
    refused(
        "additive_bias: missing operand 'bias'; pass bias=", biased, *tensors, error=af.CompileError
    )
    refused(
        "block_sparse: missing operand 'block_mask'; pass", sparse, *tensors, error=af.CompileError
    )
    refused(
        "causal: unexpected operand 'mask'; expected one of its parameters",
        causal,
        *tensors,
        mask=tensors[0],
    )
    refused("causal: operand 'bias' is not used", causal, *tensors, bias=tensors[0])
    refused("causal: expected at most 3 operands, got 4", causal, *tensors, tensors[0])
    refused("causal: operand 'q' is given twice", causal, *tensors, q=tensors[0])


def test_kinds(tensors):
    q, k, v = tensors
    refused(
        r"operand 'k': expected an array, an int or a block mask, got a list", causal, q, [1.0], v
    )
    refused(
        "block_mask: expected a block mask, got operand 'block_mask'; make one with af.create_block_mask",
        sparse,
        *tensors,
        block_mask=np.zeros((13, 21), np.int32),
        error=af.CompileError,
    )
    refused(
        "operand 'cos': expected a tensor as a rotary table|rope: expected a tensor as cos",
        rotated,
        *tensors,
        cos=3,
        sin=4,
        error=af.Error,
    )
    refused(
        "operand 'q': expected an array, got TensorSpec",
        causal,
        af.TensorSpec((2, 4, 13, 16), "f32"),
        k,
        v,
    )


def test_values(tensors):
    q = tensors[0]
    refused("rotary|table", rotated, q, q, q, **tables(rows=12))
    mask = af.create_block_mask(lambda b, h, i, j: i >= 0, Q_LEN=13, KV_LEN=21, BLOCK_SIZE=8)
    refused(
        "R is|queries in blocks", sparse, *qkv(np.random.default_rng(1), nq=30), block_mask=mask
    )
    mask.col_indices = mask.col_indices + 5
    refused("col_indices", sparse, *tensors, block_mask=mask)
    for offset in (2**63, -(2**63) - 1, 2**64, np.uint64(2**64 - 1)):
        refused(
            f"operand 'offset': expected an int of 64 bits, .*, got {offset}",
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
    error = refused(
        "expected query of f16 or bf16 for the GPU, got 'f32'; convert it",
        causal.lower,
        *tensors,
        level="ptx",
        target="sm_80",
        error=af.CompileError,
    )
    assert error.lineno is not None
    odd = [x[..., :12] for x in halves]
    refused(
        "multiple of 8|head size",
        causal.lower,
        *odd,
        level="ptx",
        target="sm_80",
        error=af.CompileError,
    )
    with pytest.raises(af.CompileError, match="f16 or bf16 for the GPU"):
        causal.explain(*tensors, target="sm_80")
    refused(
        "unknown chip or machine 'gtx'; known are",
        causal.lower,
        *halves,
        level="ptx",
        target="gtx",
        error=af.CompileError,
    )
    refused(
        "target: expected the machine to compile for, one of a100",
        causal.lower,
        *halves,
        level="ptx",
    )
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
        "predicate: it raised ValueError .*use & and |", make, lambda b, h, i, j: i >= j and j > 3
    )
    refused("predicate: expected a function", make, 3)
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
# Functions
# ===-----------------------------------------------------------------------===#


def line_of(function, text):
    lines, start = inspect.getsourcelines(function.function)
    return start + next(n for n, line in enumerate(lines) if text in line)


BAD_FUNCTIONS = {
    "no scores": ("causal: expected scores", lambda q, k, v: af.causal(q)),
    "matmul": (r"use af\.scaled_dot_product", lambda q, k, v: q @ k),
    "arithmetic": ("whole tensor.*scale=", lambda q, k, v: af.scaled_dot_product(q * 2, k)),
    "truth": (
        "no truth value.*af.where",
        lambda q, k, v: 1 if af.scaled_dot_product(q, k) > 0 else 2,
    ),
    "weights": (
        "change the scores before",
        lambda q, k, v: (af.softmax(af.scaled_dot_product(q, k)) * 2) @ v,
    ),
    "no normaliser": (r"af\.softmax\(s\) @ v", lambda q, k, v: af.scaled_dot_product(q, k) @ v),
    "no output": ("returns no output", lambda q, k, v: None),
    "scores out": ("returns no output", lambda q, k, v: af.scaled_dot_product(q, k)),
    "other output": (
        "output and its log-sum-exp, got",
        lambda q, k, v: (af.softmax(af.scaled_dot_product(q, k)) @ v, 3),
    ),
    "align": (
        "causal: align: expected 'bottom_right' or 'top_left', got 'left'",
        lambda q, k, v: af.causal(af.scaled_dot_product(q, k), align="left"),
    ),
    "window": (
        "window: expected at least 1, got 0",
        lambda q, k, v: af.sliding_window(af.scaled_dot_product(q, k), 0),
    ),
    "both bounds": (
        "expected a window, or left and right",
        lambda q, k, v: af.sliding_window(af.scaled_dot_product(q, k), 3, left=2),
    ),
    "norm": (
        "norm: expected 'sum'",
        lambda q, k, v: af.relu_attention(af.scaled_dot_product(q, k), norm="mean"),
    ),
    "heads": (
        "num_heads: expected the 4 heads of q, got 5",
        lambda q, k, v: af.alibi(af.scaled_dot_product(q, k), num_heads=5),
    ),
    "scale": (
        "scale: expected a finite number",
        lambda q, k, v: af.scaled_dot_product(q, k, scale=float("inf")),
    ),
    "rope": (r"rope: expected rope\(q, k\)", lambda q, k, v: af.rope(q, k, v)),
    "two products": (
        "two products",
        lambda q, k, v: af.scaled_dot_product(q, k) + af.scaled_dot_product(k, k),
    ),
    "score_mod": (
        "expected the function to return a score",
        lambda q, k, v: af.score_mod(af.scaled_dot_product(q, k), lambda s, b, h, i, j: i),
    ),
    "mask_mod": (
        "return a condition",
        lambda q, k, v: af.mask_mod(af.scaled_dot_product(q, k), lambda b, h, i, j: i),
    ),
    "indices": (
        "3 dimensions|4 dimensions, got 1 indices",
        lambda q, k, v: af.score_mod(af.scaled_dot_product(q, k), lambda s, b, h, i, j: s + k[i]),
    ),
    "exponent": ("constant integer exponent", lambda q, k, v: af.scaled_dot_product(q, k) ** 0.5),
    "kinds": (
        "expected a number, got a condition",
        lambda q, k, v: af.score_mod(
            af.scaled_dot_product(q, k), lambda s, b, h, i, j: s + (i > j)
        ),
    ),
    "array": (r"af\.load", lambda q, k, v: af.scaled_dot_product(q, k) + np.zeros((3, 3))),
    "iteration": ("cannot be iterated", lambda q, k, v: list(af.scaled_dot_product(q, k))),
}


@pytest.mark.parametrize("case", sorted(BAD_FUNCTIONS))
def test_bad_function(tensors, case):
    message, function = BAD_FUNCTIONS[case]
    error = refused(message, af.attention(function), *tensors, error=af.CompileError)
    if case not in ("no output", "scores out"):
        first = function.__code__.co_firstlineno
        assert error.filename == __file__ and first <= error.lineno < first + 8
        assert str(error).startswith(f"{__file__}:{error.lineno}: ")


def test_the_verifier_names_the_python_line(tensors):
    @af.attention
    def negative(q, k, v):
        s = af.scaled_dot_product(q, k)
        s = af.sliding_window(s, left=-3)  # here
        return af.softmax(s) @ v

    error = refused(r"expected 'left' to be in .*got -3", negative, *tensors, error=af.CompileError)
    assert error.filename == __file__ and error.lineno == line_of(negative, "# here")


def test_outside_of_a_function(tensors):
    refused(
        "called inside of an @af.attention function", af.causal, tensors[0], error=af.CompileError
    )
    refused(
        "called inside of an @af.attention function",
        af.scaled_dot_product,
        *tensors[:2],
        error=af.CompileError,
    )


def test_signatures():
    with pytest.raises(af.CompileError, match="named parameters"):
        af.attention(lambda q, k, v, *rest: None)
    with pytest.raises(af.CompileError, match="at least the parameters q, k and v"):
        af.attention(lambda q, k: None)
    with pytest.raises(af.OperandError, match="dtype: expected one of f16"):
        af.TensorSpec((1, 2), "f8")


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
    message = rf"f: operand '{name}' has the name of a dimension.*rename the parameter"
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
        error=af.CompileError,
    )
    assert causal(q, k, v).shape == q.shape
