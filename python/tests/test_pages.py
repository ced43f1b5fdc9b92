"""The code of docs/python.md and docs/from-flex-attention.md."""

import pathlib
import re
import sys
import types

import numpy as np
import pytest

import attnfuse as af
from reference import attention, check, distance

try:
    import torch
except ImportError:
    torch = None

DOCS = pathlib.Path(__file__).parents[2] / "docs"


def run_page(name):
    """What the page's Python leaves behind."""
    text = (DOCS / name).read_text(encoding="utf-8")
    # A module: PyTorch's compiler looks functions' up.
    module = types.ModuleType(re.sub(r"\W", "_", name))
    sys.modules[module.__name__] = module
    scope = module.__dict__
    for match in re.finditer(r"^```python\n(.*?)^```$", text, re.S | re.M):
        if match.group(1).startswith("# torch") and torch is None:
            continue
        # Lines of errors are the page's.
        padding = "\n" * (text.count("\n", 0, match.start()) + 1)
        exec(compile(padding + match.group(1), str(DOCS / name), "exec"), scope)
    return scope


def test_python():
    scope = run_page("python.md")
    assert (
        ".entry llama" in scope["ptx"]
        and '"versions"' in scope["manifest"]
        or '"kernels"' in scope["manifest"]
    )


@pytest.fixture(scope="module")
def page():
    return run_page("from-flex-attention.md")


def definitions(page):
    """Of each example: (change of scores, visible keys)."""
    n, heads = page["N"], page["H"]
    b, h, i, j = np.ogrid[: page["B"], :heads, :n, :n]
    slopes = 2.0 ** (-8 * (h + 1) / heads)
    documents = page["documents"]
    w, half = page["WIDTH"], page["KERNEL"] // 2
    x = np.clip(i // w, half, page["HEIGHT"] - 1 - half) - j // w
    y = np.clip(i % w, half, w - 1 - half) - j % w
    return {
        "causal": (None, j <= i),
        "windowed": (None, (j <= i) & (i - j <= 32)),
        "prefix_lm": (None, (j < page["prefixes"][b]) | (j <= i)),
        "packed": (None, (documents[i] == documents[j]) & (j <= i)),
        "alibi": (lambda s: s - slopes * (i - j), j <= i),
        "soft_capped": (lambda s: 2 * np.tanh(s / 2), None),
        "relative": (lambda s: s + 0.01 * (i - j), None),
        "learned_bias": (lambda s: s + page["distances"][h, i - j + n - 1], None),
        "dilated": (None, (abs(i - j) <= 20) & ((i - j) % 4 == 0)),
        "natten": (None, (abs(x) <= half) & (abs(y) <= half)),
        "grouped": (None, j <= i),
    }


EXAMPLES = sorted(
    "causal windowed prefix_lm packed alibi soft_capped relative learned_bias dilated natten grouped".split()
)


def inputs(page):
    rng = np.random.default_rng(9)
    return [
        rng.standard_normal((page["B"], page["H"], page["N"], page["D"]), np.float32) for _ in "qkv"
    ]


@pytest.mark.parametrize("name", EXAMPLES)
def test_flex_example(page, name):
    q, k, v = inputs(page)
    actual = page[name](q, k, v)
    change, visible = definitions(page)[name]
    if name == "grouped":
        k, v = k[:, ::2], v[:, ::2]
    output, lse = attention(q, k, v, change=change, visible=visible)
    if isinstance(actual, tuple):
        check(actual[1], lse)
        actual = actual[0]
    check(actual, output)


@pytest.mark.skipif(torch is None, reason="PyTorch is not installed")
@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("name", EXAMPLES)
def test_flex_example_against_flex_attention(page, name):
    assert sorted(page["flex"]) == EXAMPLES
    q, k, v = (torch.from_numpy(x) for x in inputs(page))
    expected, actual = page["flex"][name](q, k, v), page[name](q, k, v)
    if not isinstance(actual, tuple):
        expected, actual = (expected,), (actual,)
    assert len(expected) == len(actual)
    for e, a in zip(expected, actual):
        assert torch.allclose(e, a, atol=1e-5)


@pytest.mark.parametrize("name", EXAMPLES)
def test_flex_example_compiles_for_a_gpu(page, name):
    function = page["grouped_heads" if name == "grouped" else name]
    q, k, v = (x.astype(np.float16) for x in inputs(page))
    for target in ("sm_80", "h200"):
        assert f".entry {function.name}" in function.lower(q, k, v, level="ptx", target=target)
