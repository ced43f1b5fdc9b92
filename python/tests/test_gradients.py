"""No gradient is lost in silence: what asks for one is refused."""

import pytest

torch = pytest.importorskip("torch")

import attnfuse as af
import variants
from torch.autograd import forward_ad
from torch_reference import tensors

causal = af.attention(variants.causal)
biased = af.attention(variants.biased)


@pytest.fixture(autouse=True)
def fresh_compiler():
    torch._dynamo.reset()


def test_gradients():
    q, k, v = tensors()
    parameter = torch.nn.Parameter(q)
    for operand in (q.clone().requires_grad_(), parameter):
        with pytest.raises(
            af.GradientError, match="no backward pass yet; call it under torch.no_grad"
        ):
            causal(operand, k, v)
        with torch.no_grad():
            assert torch.equal(causal(operand, k, v), causal(q, k, v))
        with pytest.raises(af.GradientError):
            torch.ops.attnfuse.attention(causal.number, "q:t;k:t;v:t", [operand, k, v], [])
    bias = torch.zeros(13, 21, requires_grad=True)
    with pytest.raises(af.GradientError):
        biased(q, k, v, bias=bias)


def test_compile_refuses_gradients():
    q, k, v = tensors()
    q.requires_grad_()
    with pytest.raises(Exception, match="GradientError|no backward pass yet"):
        torch.compile(lambda *x: causal(*x), fullgraph=True, backend="aot_eager")(q, k, v)
    with pytest.raises(af.GradientError):
        torch.compile(lambda *x: causal(*x), backend="eager")(q, k, v)


WEIGHT = torch.nn.Parameter(torch.randn(13, 21))
FACTOR = torch.nn.Parameter(torch.tensor(2.0))

#: What is captured, and its name.
CAPTURING = {
    "a bias": ("WEIGHT", lambda s: af.additive_bias(s, WEIGHT)),
    "a table": (
        "WEIGHT",
        lambda s: af.score_mod(s, lambda s, b, h, i, j: s + af.load(WEIGHT, i, j)),
    ),
    "a number": ("FACTOR", lambda s: s * af.load(FACTOR)),
    "a part": ("captured_bias", lambda s: af.additive_bias(s, WEIGHT[0])),
    "what is made of one": ("captured_bias", lambda s: af.additive_bias(s, WEIGHT * 2)),
}


def capturing(case):
    name, change = CAPTURING[case]

    @af.attention
    def function(q, k, v):
        return af.softmax(change(af.scaled_dot_product(q, k))) @ v

    return function, f"the captured tensor '{name}' requires a gradient, .*no_grad"


@pytest.mark.parametrize("case", sorted(CAPTURING))
def test_captured_tensors(case):
    operands = tensors()
    function, message = capturing(case)
    # At any call, whatever has been traced before.
    with torch.no_grad():
        expected = function(*operands)
    for _ in range(2):
        with pytest.raises(af.GradientError, match=message):
            function(*operands)
        with torch.no_grad():
            assert torch.equal(function(*operands), expected)


@pytest.mark.parametrize("backend", ["eager", "aot_eager"])
@pytest.mark.parametrize("case", sorted(CAPTURING))
def test_captured_tensors_in_a_graph(case, backend):
    operands = tensors()
    function, message = capturing(case)
    graph = torch.compile(lambda *x: function(*x), fullgraph=True, backend=backend)
    with torch.no_grad():
        assert torch.equal(graph(*operands), function(*operands))
    with pytest.raises(Exception, match=message):
        graph(*operands)
    with pytest.raises(af.GradientError, match=message):
        layout = "q:t;k:t;v:t"
        torch.ops.attnfuse.attention(function.number, layout, list(operands), [])


def test_a_number_that_is_learned_is_no_constant():
    function = af.attention(lambda q, k, v: af.softmax(af.scaled_dot_product(q, k) * FACTOR) @ v)
    for mode in (torch.enable_grad, torch.no_grad):
        with mode(), pytest.raises(af.CompileError, match=r"take its elements by af\.load"):
            function(*tensors())


def test_transforms():
    q, k, v = tensors()
    for _ in range(2):
        with pytest.raises(af.OperandError, match="got those of torch.vmap; .*dimension 0"):
            torch.func.vmap(causal)(q[None], k[None], v[None])
        with pytest.raises(af.GradientError, match="an operand has a tangent"):
            torch.func.jvp(lambda q: causal(q, k, v), (q,), (q,))
        with pytest.raises(af.GradientError, match="an operand has a tangent"):
            with forward_ad.dual_level():
                causal(forward_ad.make_dual(q, q), k, v)
        with pytest.raises(af.GradientError, match="an operand requires a gradient"):
            torch.func.grad(lambda q: causal(q, k, v).sum())(q)
        # Then with a launch that is there.
        assert causal(q, k, v).shape == q.shape
