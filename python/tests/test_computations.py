"""What does not apply to scores, indices and conditions is an error at the user's line that says what to
write."""

import math

import numpy as np
import pytest

import attnfuse as af
from refusals import refused

try:
    import torch
except ImportError:
    torch = None


#: Symbols that a function keeps beyond its call.
KEPT = []


def keeping(kept, k, v):
    KEPT[:] = [kept, af.scaled_dot_product(kept, k)]
    return af.softmax(KEPT[1]) @ v


table = np.zeros(64, np.float32)
matrix = np.zeros((4, 64), np.float32)
LOAD = r"an index has no value while the function is traced; write af\.load\(table, index, \.\.\.\)"

#: What does not apply to scores, indices and conditions, and what is to be written.
BAD_COMPUTATIONS = {
    "array by index": (LOAD, lambda s, i, j: s + table[i]),
    "array by indices": (LOAD, lambda s, i, j: s + matrix[0, i - j]),
    "slice": (LOAD, lambda s, i, j: s + table[i:]),
    "list by index": (LOAD, lambda s, i, j: s + [1, 2, 3][i]),
    "range": (LOAD, lambda s, i, j: sum(range(i))),
    "np.asarray": (LOAD, lambda s, i, j: np.asarray(i)),
    "np.tanh": (
        r"an element of the scores cannot go through np\.tanh; write af\.tanh",
        lambda s, i, j: np.tanh(s),
    ),
    "np.abs": (r"np\.absolute; write af\.abs", lambda s, i, j: s + np.abs(i - j)),
    "np.where": (r"np\.where; write af\.where", lambda s, i, j: np.where(i > j, s, 0)),
    "np.clip": (r"np\.clip; write af\.minimum\(af\.maximum", lambda s, i, j: np.clip(s, -1, 1)),
    "np.logical_and": (r"np\.logical_and; write &", lambda s, i, j: np.logical_and(i > j, j > 3)),
    "np.sin": (r"np\.sin; it takes \+ - .* af\.tanh and af\.sqrt", lambda s, i, j: np.sin(s)),
    "np.sum": (r"np\.sum; it takes", lambda s, i, j: np.sum(s)),
    "np.add.reduce": (r"np\.add; it takes", lambda s, i, j: np.add.reduce(s)),
    "an array": (r"got a numpy\.ndarray; take its elements by af\.load", lambda s, i, j: table * s),
    "an array's comparison": (
        r"got a numpy\.ndarray; take its elements",
        lambda s, i, j: af.where(table == i, s, 0),
    ),
    "math.tanh": (r"has no value .*write af\.tanh, af\.exp", lambda s, i, j: math.tanh(s)),
    "math.floor": (r"has no value .*write i // n", lambda s, i, j: math.floor(s)),
    "round": (r"has no value .*write i // n", lambda s, i, j: round(s)),
    "int": ("has no value .*it takes", lambda s, i, j: s + int(i)),
    "len": (r"has no value .*af\.lengths", lambda s, i, j: len(s)),
    "for": ("has no value .*it is done to each", lambda s, i, j: [x for x in s]),
    "in": (r"has no value .*comparisons with \|", lambda s, i, j: 3 in i),
    "method": (r"cannot go through \.abs; write af\.abs", lambda s, i, j: s.abs()),
    "clamp": (r"cannot go through \.clamp; write af\.minimum", lambda s, i, j: s.clamp(0, 1)),
    "attribute": (r"cannot go through \.dtype; it takes", lambda s, i, j: s.dtype),
    "index": (r"cannot be indexed; af\.score_mod gives", lambda s, i, j: s[0]),
    "if": (r"for 'if'", lambda s, i, j: s if i > j else 0),
    "and": (r"write & \| ~ for 'and', 'or' and 'not'", lambda s, i, j: i > j and j > 3),
    "or": (r"write & \| ~ for 'and'", lambda s, i, j: i > j or j > 3),
    "not": (r"write & \| ~ for 'and'", lambda s, i, j: not i > j),
    "chain": (r"\(a <= x\) & \(x < b\) for a <= x < b", lambda s, i, j: 0 <= i - j < 5),
    "condition as index": (
        r"got a condition; write af\.where\(condition, 1, 0\)",
        lambda s, i, j: af.load(table, i > j),
    ),
    "score as index": (
        "got an element of the scores; write integers",
        lambda s, i, j: af.load(table, s),
    ),
    "index as condition": (
        r"expected a condition, got an index; write a comparison, .*i % 2 for i & 1",
        lambda s, i, j: i & 1,
    ),
    "no parentheses": (
        r"got an index; .*in parentheses, as \(i > j\) & \(i < 5\)",
        lambda s, i, j: i > j & i < 5,
    ),
    "max": (r"af\.maximum and af\.minimum for max and min", lambda s, i, j: max(s, 0)),
    "in a tuple": (
        r"\(x == a\) \| \(x == b\) for x in \(a, b\)",
        lambda s, i, j: i in (1, 2),
    ),
    "np.float32": (r"af\.float32\(i\) for np\.float32\(i\)", lambda s, i, j: s * np.float32(i)),
    "masked_fill": (
        r"\.masked_fill; write af\.where\(condition, value, x\)",
        lambda s, i, j: s.masked_fill(i > j, 0),
    ),
    "an array's sum": (
        r"got a numpy\.ndarray; .*write af\.additive_bias\(s, x\)",
        lambda s, i, j: s + np.ones((13, 21), np.float32),
    ),
    "a mask's sum": (
        r"got a numpy\.ndarray; hide keys by af\.mask_mod",
        lambda s, i, j: s + np.ones((13, 21), bool),
    ),
    "dictionary": (
        r"KeyError .*an index has no value to look up; write af\.load",
        lambda s, i, j: s + {0: 1.0}[i],
    ),
    "large float": ("of f32, got an int that is too large", lambda s, i, j: s + 10**400),
    "large int": ("expected an integer of 64 bits", lambda s, i, j: s + (i + 10**30)),
    "zero": ("floordiv: expected a divisor that is not 0", lambda s, i, j: s + i // 0),
    "zero of a remainder": ("mod: expected a divisor that is not 0", lambda s, i, j: s + i % 0),
    "a string": ("expected a number, got a str; convert", lambda s, i, j: s * "x"),
    "of another call": (
        "argument 'kept' is of another call: .*pass them on as arguments",
        lambda s, i, j: s + af.load(KEPT[0], i),
    ),
    "score of another call": (
        "an element of the scores is of another call",
        lambda s, i, j: s + KEPT[1],
    ),
}
if torch:
    tensor = torch.zeros(64)
    BAD_COMPUTATIONS.update(
        {
            "tensor by index": (
                r"torch\.__getitem__; write af\.load",
                lambda s, i, j: s + tensor[i],
            ),
            "torch.tanh": (r"torch\.tanh; write af\.tanh", lambda s, i, j: torch.tanh(s)),
            "torch.where": (
                r"torch\.where; write af\.where",
                lambda s, i, j: torch.where(i > j, s, 0),
            ),
            "torch.relu": (
                r"torch\.relu; write af\.maximum",
                lambda s, i, j: torch.nn.functional.relu(s),
            ),
            "torch.tensor": (
                r"write af\.lengths\(s\) .* x for torch\.tensor\(x\)",
                lambda s, i, j: torch.tensor(s),
            ),
            "torch.float32": (
                "TypeError while the function is traced",
                lambda s, i, j: s * torch.float32(i),
            ),
            "torch.cat": (r"torch\.cat; it takes", lambda s, i, j: torch.cat([s, s])),
            "a tensor": (
                r"mul: expected a number, got a torch\.Tensor on cpu; .*af\.load",
                lambda s, i, j: tensor * s,
            ),
            "a mask": (
                "got a torch.Tensor on cpu; hide keys by af.mask_mod",
                lambda s, i, j: (tensor > 0) + s,
            ),
        }
    )


@pytest.mark.parametrize("case", sorted(BAD_COMPUTATIONS))
@pytest.mark.filterwarnings("ignore:elementwise comparison")
def test_bad_computation(tensors, case):
    message, function = BAD_COMPUTATIONS[case]
    af.attention(keeping)(*tensors)

    @af.attention
    def computed(q, k, v):
        s = af.scaled_dot_product(q, k)
        return af.softmax(af.score_mod(s, lambda s, b, h, i, j: function(s, i, j))) @ v

    error = refused(message, computed, *tensors, error=af.CompileError)
    assert error.filename == __file__
    assert error.lineno == function.__code__.co_firstlineno


def test_symbols_in_operators_of_numpy(tensors):
    """Where NumPy's numbers stand on the left, they leave operators to the symbols."""

    @af.attention
    def left(q, k, v):
        s = af.score_mod(
            af.scaled_dot_product(q, k),
            lambda s, b, h, i, j: np.float32(2) * s - np.int64(3) * i + np.add(s, 1),
        )
        return af.softmax(af.mask_mod(s, lambda b, h, i, j: np.int64(4) <= j)) @ v

    @af.attention
    def right(q, k, v):
        s = af.score_mod(af.scaled_dot_product(q, k), lambda s, b, h, i, j: s * 2 - i * 3 + (s + 1))
        return af.softmax(af.mask_mod(s, lambda b, h, i, j: j >= 4)) @ v

    assert np.array_equal(left(*tensors), right(*tensors))
