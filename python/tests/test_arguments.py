"""Arguments that are taken for something else, of calls and of the package's other functions."""

import numpy as np
import pytest

import attnfuse as af
import variants
from reference import qkv
from refusals import refused, tables

try:
    import torch
except ImportError:
    torch = None

rotated = af.attention(variants.rotated)
sparse = af.attention(variants.sparse)


def test_signatures():
    with pytest.raises(af.CompileError, match="named parameters"):
        af.attention(lambda q, k, v, *rest: None)
    with pytest.raises(af.CompileError, match="at least the parameters q, k and v"):
        af.attention(lambda q, k: None)
    with pytest.raises(af.OperandError, match="dtype: expected one of f16"):
        af.TensorSpec((1, 2), "f8")


def test_methods():
    with pytest.raises(af.CompileError, match="a method of 'self'; write @staticmethod") as caught:

        class Layer:
            @af.attention
            def forward(self, q, k, v):
                return q

    assert caught.value.filename == __file__ and caught.value.lineno

    class Other:
        @staticmethod
        @af.attention
        def forward(q, k, v):
            return af.softmax(af.scaled_dot_product(q, k)) @ v

    q, k, v = qkv(np.random.default_rng(1))
    assert Other().forward(q, k, v).shape == q.shape


def test_specifications():
    for shape in (5, (1, "x"), (1, 2.5), (1, -1), None):
        refused("shape: expected a tuple of ints of at least 0 and None", af.TensorSpec, shape, "f16")
    for dtype in ("f16", "float16", np.float16, np.dtype("float16")):
        assert af.TensorSpec((1, np.int64(2), None), dtype).element == "f16"


def test_tables_of_transformers(tensors):
    """They are [B, N, R], with each angle twice."""
    q, k, v = tensors[0], tensors[0], tensors[0]
    cos, sin = tables().values()
    twice = {name: np.concatenate([x, x], 1) for name, x in (("cos", cos), ("sin", sin))}
    refused(r"'cos' has 16 columns.*or pass cos\[:, :8\] of one that has", rotated, q, k, v, **twice)
    refused(
        r"'cos': expected cos \[P, R/2\] .*pass cos\[0\],.*cos\[0, :, :R // 2\]",
        rotated,
        q,
        k,
        v,
        **{name: x[None] for name, x in twice.items()},
    )
    halves = {name: x[None][0, :, : 16 // 2] for name, x in twice.items()}
    assert np.array_equal(rotated(q, k, v, **halves), rotated(q, k, v, cos=cos, sin=sin))


def test_what_is_no_block_mask(tensors):
    class BlockMask:
        pass

    for mask in (lambda b, h, i, j: i >= j, (np.zeros(3), np.zeros(3)), BlockMask()):
        message = r"'block_mask': expected .*; make block masks by af\.create_block_mask\(predicate"
        refused(message, sparse, *tensors, block_mask=mask)


def test_an_array_for_an_offset(tensors):
    q = tensors[0]
    message = "'offset': expected an int .*got an array of i64; .*or positions="
    refused(message, rotated, q, q, q, **tables(offset=np.arange(13)))


@pytest.mark.parametrize("dtype", ["f16", "float16", np.float16, np.dtype("float16")])
def test_types_of_rope_caches(dtype):
    cos, sin = af.build_rope_cache(8, 16, dtype=dtype)
    assert cos.dtype == sin.dtype == np.float16


def test_what_rope_caches_are_not():
    build = af.build_rope_cache
    for dtype in ("f64", "float64", "int32", "f7", np.float64, 3, None):
        refused("dtype: expected one of f16, bf16, f32, got", build, 8, 16, dtype=dtype)
    message = "like: expected a torch tensor, got a numpy.ndarray; leave it out for NumPy"
    refused(message, build, 8, 16, like=np.zeros(3))
    if torch:
        for dtype in ("bf16", "bfloat16", torch.bfloat16):
            assert build(8, 16, dtype=dtype, device="cpu")[0].dtype == torch.bfloat16
        assert build(8, 16, dtype=torch.float16)[0].dtype == np.float16
        refused("dtype: expected one of f16", build, 8, 16, dtype=torch.float64, device="cpu")
        refused("device: expected one of PyTorch's, got 'nowhere'", build, 8, 16, device="nowhere")


def test_rope_caches_without_packages(monkeypatch):
    import sys

    monkeypatch.setitem(sys.modules, "torch", None)
    refused("device: expected PyTorch to be installed", af.build_rope_cache, 8, 16, device="cpu")
