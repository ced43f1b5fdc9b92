"""Every mistake in a function has an error at the user's line that says what to write."""

import inspect

import numpy as np
import pytest

import attnfuse as af
import variants
from refusals import refused


def line_of(function, text):
    lines, start = inspect.getsourcelines(function.function)
    return start + next(n for n, line in enumerate(lines) if text in line)


matrix = np.zeros((4, 64), np.float32)

BAD_FUNCTIONS = {
    "no scores": ("causal: expected scores", lambda q, k, v: af.causal(q)),
    "matmul": (r"'q' cannot go through '@'; .*af\.scaled_dot_product", lambda q, k, v: q @ k),
    "transposed": (r"'k' cannot go through \.T; .*af\.scaled_dot_product", lambda q, k, v: q @ k.T),
    "function of q": (
        r"'q' cannot go through np\.exp; it is a whole tensor.*before the call",
        lambda q, k, v: af.scaled_dot_product(np.exp(q), k),
    ),
    "arithmetic": ("whole tensor.*scale=", lambda q, k, v: af.scaled_dot_product(q * 2, k)),
    "truth": (
        r"a condition has no value while the function is traced; .*af\.where\(condition, x, y\) for 'if'",
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
        r"load: expected 1 dimensions, one for each index, of 'matrix', got 2; give it",
        lambda q, k, v: af.score_mod(
            af.scaled_dot_product(q, k), lambda s, b, h, i, j: s + af.load(matrix, i)
        ),
    ),
    "exponent": (
        r"constant integer exponent .* got 0\.5; write af\.sqrt",
        lambda q, k, v: af.scaled_dot_product(q, k) ** 0.5,
    ),
    "power of a number": (
        r"write af\.exp2\(x\) for 2 \*\* x",
        lambda q, k, v: 2 ** af.scaled_dot_product(q, k),
    ),
    "shift": (
        r"cannot go through '<<'; it takes",
        lambda q, k, v: af.scaled_dot_product(q, k) << 1,
    ),
    "kinds": (
        r"expected a number, got a condition; write af\.where",
        lambda q, k, v: af.score_mod(
            af.scaled_dot_product(q, k), lambda s, b, h, i, j: s + (i > j)
        ),
    ),
    "array": (r"af\.load", lambda q, k, v: af.scaled_dot_product(q, k) + np.zeros((3, 3))),
    "output": (
        "the output cannot go through '\\*'; return it, and compute",
        lambda q, k, v: (af.softmax(af.scaled_dot_product(q, k)) @ v) * 2,
    ),
    "log-sum-exp": (
        "the log-sum-exp cannot go through '\\+'; return it",
        lambda q, k, v: af.softmax(af.scaled_dot_product(q, k), return_lse=True)[1] + 1,
    ),
    "two parameters": (
        r"mask_mod: expected a function of \(b, h, i, j\), got one of \(i, j\); write lambda b, h, i, j",
        lambda q, k, v: af.mask_mod(af.scaled_dot_product(q, k), lambda i, j: i > j),
    ),
    "an array for a function": (
        r"mask_mod: expected a function of \(b, h, i, j\), got an array; .*af\.load",
        lambda q, k, v: af.mask_mod(af.scaled_dot_product(q, k), np.ones((13, 21), bool)),
    ),
    "captured k": (
        r"scaled_dot_product: expected k .*got a numpy\.ndarray; pass .* an argument of the call",
        lambda q, k, v: af.scaled_dot_product(q, np.zeros((2, 2, 21, 16), np.float32)),
    ),
    "captured v": (
        r"weighted_sum: expected v .*got a numpy\.ndarray; pass .* an argument of the call",
        lambda q, k, v: af.softmax(af.scaled_dot_product(q, k))
        @ np.zeros((2, 2, 21, 16), np.float32),
    ),
    "no return": (
        "returns no output: .*got None; is its return missing",
        lambda q, k, v: None,
    ),
    "a word too many": (
        r"sliding_window\(\) takes .*expected af\.sliding_window\(s, window=None, \*, left=None",
        lambda q, k, v: af.sliding_window(af.scaled_dot_product(q, k), 3, 0),
    ),
    "an unknown option": (
        r"unexpected keyword argument 'theta'; expected af\.rope\(\*inputs, cos=None",
        lambda q, k, v: af.rope(q, theta=1e4),
    ),
    "slopes for heads": (
        r"expected an int as num_heads of alibi, got a numpy.ndarray; .*slopes=",
        lambda q, k, v: af.alibi(af.scaled_dot_product(q, k), np.ones(4, np.float32)),
    ),
    "negative bound": (
        r"expected 'left' to be in \[0, 2\^31\), got -1",
        lambda q, k, v: af.sliding_window(af.scaled_dot_product(q, k), left=-1) * 2,
    ),
    "no sin": (
        r"rope: sin is missing; write af\.rope\(x, cos, sin\)",
        lambda q, k, v: af.rope(q, np.ones((64, 8), np.float32)),
    ),
    "lse not unpacked": (
        r"got a tuple; write p, lse = af\.softmax\(s, return_lse=True\)",
        lambda q, k, v: af.softmax(af.scaled_dot_product(q, k), return_lse=True) @ v,
    ),
    "part of q": (r"'q' cannot go through \[\], but for an element", lambda q, k, v: q[0]),
    "open size": (
        r"dimension 2 of argument 'q' cannot go through '\*\*'; .*af\.lengths\(s\)",
        lambda q, k, v: af.scaled_dot_product(q, k, scale=q.shape[2] ** -0.5),
    ),
    "open size as an option": (
        r"expected an int as window .*got dimension 2 of argument 'k'; .*af\.lengths\(s\)",
        lambda q, k, v: af.sliding_window(af.scaled_dot_product(q, k), k.shape[-2]),
    ),
    "open size beside an index": (
        r"sub: expected a number, got dimension 2 of argument 'k'; .*af\.lengths\(s\)",
        lambda q, k, v: af.score_mod(
            af.scaled_dot_product(q, k), lambda s, b, h, i, j: s + (j - k.shape[2])
        ),
    ),
    "loop over a size": (
        r"dimension 0 of argument 'v' has no value .*af\.lengths\(s\)",
        lambda q, k, v: range(v.shape[0]),
    ),
    "inside": (
        r"called inside of another; call the function that it was made of, its \.function",
        lambda q, k, v: causal(q, k, v),
    ),
}


causal = af.attention(variants.causal)


@pytest.mark.parametrize("case", sorted(BAD_FUNCTIONS))
def test_bad_function(tensors, case):
    message, function = BAD_FUNCTIONS[case]
    error = refused(message, af.attention(function), *tensors, error=af.CompileError)
    first = function.__code__.co_firstlineno
    assert error.filename == __file__ and first <= error.lineno < first + 8
    assert str(error).startswith(f"{__file__}:{error.lineno}: ")


table = np.zeros(64, np.float32)


def test_what_a_function_raises(tensors):
    """Python's own is the cause of the error at the line that it passed last; a user's stays."""

    def helper(scores):
        return scores.undefined if hasattr(scores, "undefined") else [][1]  # here

    class Mine(Exception):
        pass

    def complain(error):
        raise error

    @af.attention
    def failing(q, k, v):
        return helper(af.scaled_dot_product(q, k))

    message = "IndexError while the function is traced: list index"
    error = refused(message, failing, *tensors, error=af.CompileError)
    lines, start = inspect.getsourcelines(helper)
    assert error.filename == __file__ and error.lineno == start + 1
    assert isinstance(error.__cause__, IndexError)
    for mine in (Mine, AssertionError):
        with pytest.raises(mine):
            af.attention(lambda q, k, v: complain(mine()))(*tensors)


def test_captured_arrays_have_their_names(tensors):
    def outer():
        biases = np.zeros(5, np.float32)
        return lambda s, b, h, i, j: s + af.load(biases, j)

    names = {
        "table": lambda s, b, h, i, j: s + af.load(table, i),
        "biases": outer(),
        "captured_table": lambda s, b, h, i, j: s + af.load(np.zeros(5, np.float32), i),
    }
    for name, function in names.items():
        attention = af.attention(
            lambda q, k, v: af.softmax(af.score_mod(af.scaled_dot_product(q, k), function)) @ v
        )
        error = refused(f"argument '{name}' has", attention, *tensors)
        assert str(error).startswith(f"{__file__}:{function.__code__.co_firstlineno}: ")

    # Names of operands and of dimensions are taken.
    q = Nq = np.zeros(4, np.float32)

    @af.attention
    def shadowed(q, k, v):
        s = af.score_mod(af.scaled_dot_product(q, k), lambda s, b, h, i, j: s + af.load(Nq, h))
        return af.softmax(s) @ v

    assert "captured_Nq" in shadowed.lower(*tensors, level="blocks")


def test_the_verifier_names_the_python_line(tensors):
    @af.attention
    def negative(q, k, v):
        s = af.scaled_dot_product(q, k)
        s = s + af.load(table, -3)  # here
        return af.softmax(s) @ v

    def lower(*operands):
        return negative.lower(*(x.astype("float16") for x in operands), level="ptx", target="h200")

    # For the CPU as for a GPU.
    for function in (negative, lower):
        error = refused("expected index 0 .*got -3", function, *tensors, error=af.CompileError)
        assert error.filename == __file__ and error.lineno == line_of(negative, "# here")
        assert ":0: " not in str(error)


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
