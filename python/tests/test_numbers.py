"""Numbers in functions: constants, sizes, powers."""

import warnings

import numpy as np
import pytest

import attnfuse as af
from reference import attention, check
from refusals import refused

try:
    import torch
except ImportError:
    torch = None


def changed(change):
    return af.attention(lambda q, k, v: af.softmax(change(af.scaled_dot_product(q, k))) @ v)


TWO = [np.float32(2), np.array(2.0), np.array(2, np.int8)]
TWO += [torch.tensor(2.0), torch.tensor(2, dtype=torch.int32)] if torch else []


@pytest.mark.parametrize("two", TWO, ids=str)
def test_numbers_without_dimensions(tensors, two):
    changes = {
        "right": (lambda s: s * two, lambda s: s * 2),
        "left": (lambda s: two - s, lambda s: 2 - s),
        "quotient": (lambda s: two / (s * s + 1), lambda s: 2 / (s * s + 1)),
        "comparison": (lambda s: af.where(two < s, s, two), lambda s: np.where(s > 2, s, 2)),
        "power": (lambda s: s**two, lambda s: s * s),
    }
    for change, expected in changes.values():
        check(changed(change)(*tensors), attention(*tensors, change=expected)[0])
    scaled = af.attention(lambda q, k, v: af.softmax(af.scaled_dot_product(q, k, scale=two)) @ v)
    check(scaled(*tensors), attention(*tensors, scale=2.0)[0])


def test_powers(tensors):
    for exponent in (-3, -1, 2.0, np.int64(2)):
        check(
            changed(lambda s: (s * s + 1) ** exponent)(*tensors),
            attention(*tensors, change=lambda s: (s * s + 1) ** exponent)[0],
        )
    for exponent in (0, 17, -17, 0.5, True, float("inf"), float("nan")):
        message = "expected a constant integer exponent from 1 to 16 or -16 to -1, got"
        refused(message, changed(lambda s: s**exponent), *tensors, error=af.CompileError)


def test_large_constants(tensors):
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        output = changed(lambda s: af.maximum(s, -1e39))(*tensors)
    check(output, attention(*tensors)[0])


def test_numbers_of_the_call(tensors):
    @af.attention
    def scaled(q, k, v, factor):
        return af.softmax(af.scaled_dot_product(q, k) * factor) @ v

    for factor in (True, "x"):
        refused("argument 'factor': expected a number, got a .*convert", scaled, *tensors, factor)
    check(scaled(*tensors, 2.0), attention(*tensors, change=lambda s: s * 2)[0])


def test_tables_of_one_element(tensors):
    one, number, index = np.full(1, 2.0, np.float32), np.array(2.0, np.float32), np.array([3])
    expected = attention(*tensors, change=lambda s: s * 2)[0]
    for function in (
        changed(lambda s: s * af.load(one, 0)),
        changed(lambda s: s * af.load(number)),
        changed(lambda s: s * af.where(af.load(index, 0) == 3, 2.0, 0.0)),
    ):
        check(function(*tensors), expected)
        halves = [x.astype(np.float16) for x in tensors]
        assert ".entry" in function.lower(*halves, level="ptx", target="h200")


def test_sizes(tensors):
    seen = []

    @af.attention
    def scaled(q, k, v, bias):
        seen.append((q.shape, k.shape[1], v.shape[3], bias.shape[1]))
        s = af.scaled_dot_product(q, k, scale=q.shape[-1] ** -0.5)
        return af.softmax(af.additive_bias(s, bias)) @ v

    q, k, v = tensors
    bias = np.zeros((1, 4, 1, 1), np.float32)
    check(scaled(q, k, v, bias), attention(q, k, v)[0])
    # Lengths stay open: no second trace.
    scaled(q[:, :, :5], k[:, :, :7], v[:, :, :7], bias)
    ((shape, heads, features, other),) = seen
    assert (shape[1], shape[3], heads, features) == (4, 16, 2, 16)
    assert repr(shape[2]) == "<dimension 2 of argument 'q'>"
    assert repr(other) == "<dimension 1 of argument 'bias'>"
    spec = af.TensorSpec((None, 4, None, None), "f16")
    refused("'q': dimension 3 is part of the compiled code", scaled.lower, spec, spec, spec, spec)
