"""CUDA tensors against the definition in fp64."""

import functools
import math
import threading

import numpy as np
import pytest

torch = pytest.importorskip("torch")

import attnfuse as af
import torch_reference
import variants
from reference import attention, distance, rotate, slopes
from torch_reference import compare, expected_of, host

TYPES = [torch.float16, torch.bfloat16]

causal = af.attention(variants.causal)
causal_with_lse = af.attention(variants.causal_with_lse)
rotated = af.attention(variants.rotated)
shifted = af.attention(variants.shifted)
biased = af.attention(variants.biased)
sparse = af.attention(variants.sparse)
tensors = functools.partial(
    torch_reference.tensors, hq=8, nq=190, nkv=333, d=64, dtype=torch.bfloat16, device="cuda"
)


@pytest.mark.parametrize("dtype", TYPES)
@pytest.mark.parametrize("d, dv", [(64, 64), (128, 128), (256, 256), (40, 40), (128, 64), (8, 16)])
def test_sizes_of_heads(dtype, d, dv):
    q, k, v = tensors(d=d, dv=dv, dtype=dtype)
    output, lse = causal_with_lse(q, k, v)
    assert output.dtype == dtype and output.device == q.device and output.shape == (2, 8, 190, dv)
    expected = expected_of(q, k, v, visible=distance(190, 333) <= 0)
    compare(output, expected[0], dtype)
    compare(lse, expected[1], dtype)


@pytest.mark.parametrize(
    "nq, nkv",
    [(1, 1), (1, 777), (7, 7), (64, 64), (129, 129), (500, 20), (1, 4096), (0, 5), (5, 0)],
)
def test_lengths(nq, nkv):
    q, k, v = tensors(nq=nq, nkv=nkv)
    compare(causal(q, k, v), expected_of(q, k, v, visible=distance(nq, nkv) <= 0)[0], q.dtype)


def test_strides():
    sizes = dict(nq=200, nkv=200)
    expected = expected_of(*tensors(**sizes), visible=distance(200, 200) <= 0)[0]
    stored = [x.transpose(1, 2).contiguous().transpose(1, 2) for x in tensors(**sizes)]
    output = causal(*stored)
    assert output.stride() == stored[0].stride()
    compare(output, expected, output.dtype)
    padded = [torch.nn.functional.pad(x, (0, 8, 0, 3))[:, :, :-3, :-8] for x in tensors(**sizes)]
    compare(causal(*padded), expected, output.dtype)
    odd = [torch.nn.functional.pad(x, (1, 2))[..., 1:-2] for x in tensors(**sizes)]
    assert all(x.data_ptr() % 16 for x in odd)
    for _ in range(2):
        compare(causal(*odd), expected, output.dtype)
    scattered = [torch.repeat_interleave(x, 2, dim=-1)[..., ::2] for x in tensors(**sizes)]
    compare(causal(*scattered), expected, output.dtype)
    memory = [torch.zeros(x.numel() + 1, dtype=x.dtype, device=x.device) for x in tensors(**sizes)]
    moved = [m[1:].view(x.shape).copy_(x) for m, x in zip(memory, tensors(**sizes))]
    plain = tensors(**sizes)
    for operands in (plain, moved, plain, moved):
        compare(causal(*operands), expected, output.dtype)
    q, k, v = tensors(**sizes)
    shared = k[:1].expand(2, -1, -1, -1)
    compare(
        causal(q, shared, v), expected_of(q, shared, v, visible=distance(200, 200) <= 0)[0], q.dtype
    )


@pytest.mark.parametrize("dtype", TYPES)
def test_rope(dtype):
    q, k, v = tensors(nq=333, d=128, dtype=dtype)
    cos, sin = af.build_rope_cache(512, 128, like=q)
    assert cos.device == q.device
    qr, kr = (rotate(host(x), host(cos), host(sin)) for x in (q, k))
    expected = attention(qr, kr, host(v), visible=distance(333, 333) <= 0)[0]
    compare(rotated(q, k, v, cos=cos, sin=sin), expected, dtype)
    positions = torch.randint(0, 512, (2, 333), device="cuda")
    qr, kr = (rotate(host(x), host(cos), host(sin), positions=positions.cpu()) for x in (q, k))
    expected = attention(qr, kr, host(v), visible=distance(333, 333) <= 0)[0]
    compare(rotated(q, k, v, cos=cos, sin=sin, positions=positions), expected, dtype)


def test_decoding_with_an_offset():
    cos, sin = af.build_rope_cache(512, 64, device="cuda")
    for nkv in (40, 41, 42, 300):
        q, k, v = tensors(nq=1, nkv=nkv)
        qr = rotate(host(q), host(cos), host(sin), positions=np.array([nkv - 1]))
        compare(shifted(q, k, v, cos, sin, nkv - 1), attention(qr, host(k), host(v))[0], q.dtype)
    assert len(shifted._programs) == 1
    with pytest.raises(af.OperandError, match="'cos' is too short: .*make it by"):
        shifted(*tensors(nq=1, nkv=9), cos, sin, 512)


@pytest.mark.parametrize(
    "shape", [(1, 8, 190, 333), (2, 1, 1, 333), (190, 333), (8, 190, 1), (2, 8, 190, 333), ()]
)
@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float32])
def test_bias(shape, dtype):
    q, k, v = tensors()
    bias = torch.randn(shape, device="cuda").to(dtype)
    compare(
        biased(q, k, v, bias=bias),
        expected_of(q, k, v, change=lambda s: s + host(bias))[0],
        q.dtype,
    )
    if shape and shape[-1] > 1:
        bias = torch.where(torch.rand(shape, device="cuda") < 0.3, -math.inf, bias)
        expected = expected_of(q, k, v, change=lambda s: s + host(bias))[0]
        compare(biased(q, k, v, bias=bias), expected, q.dtype)


def test_block_sparse():
    q, k, v = tensors(nq=333)
    i, j = np.arange(333)[:, None], np.arange(333)[None]

    def seen(b, h, i, j):
        return ((i // 64 + j // 64 + h) % 3 != 0) | (j < 64)

    mask = af.create_block_mask(seen, H=8, Q_LEN=333, KV_LEN=333, device="cuda")
    visible = np.stack([seen(0, h, i, j) for h in range(8)])
    compare(sparse(q, k, v, block_mask=mask), expected_of(q, k, v, visible=visible)[0], q.dtype)


def test_other_blocks():
    @af.attention
    def alibi(q, k, v):
        return af.softmax(af.sliding_window(af.alibi(af.scaled_dot_product(q, k)), 100)) @ v

    @af.attention
    def relu(q, k, v):
        return af.relu_attention(af.scaled_dot_product(q, k), norm="length") @ v

    table = torch.randn(8, 64, device="cuda")
    array = np.random.default_rng(0).standard_normal(333).astype(np.float32)

    @af.attention
    def computed(q, k, v, per_distance):
        s = 20 * af.tanh(af.scaled_dot_product(q, k) / 20)
        s = af.score_mod(
            s,
            lambda s, b, h, i, j: s
            + af.load(per_distance, h, af.minimum(af.abs(i - j), 63))
            + af.load(array, j),
        )
        return af.softmax(af.mask_mod(af.causal(s), lambda b, h, i, j: (i - j) % 3 != 1)) @ v

    q, k, v = tensors(nq=333)
    d = distance(333, 333)
    i, j = np.arange(333)[:, None], np.arange(333)[None]
    expected = expected_of(
        q, k, v, change=lambda s: s - slopes(8)[:, None, None] * abs(d), visible=abs(d) < 100
    )
    compare(alibi(q, k, v), expected[0], q.dtype)
    compare(relu(q, k, v), expected_of(q, k, v, norm="length")[0], q.dtype)
    change = lambda s: 20 * np.tanh(s / 20) + host(table)[:, np.minimum(abs(i - j), 63)] + array
    expected = expected_of(q, k, v, change=change, visible=(j <= i) & ((i - j) % 3 != 1))
    compare(computed(q, k, v, table), expected[0], q.dtype)


def test_the_current_stream():
    """What is launched waits for what its stream computes, and what follows waits for it."""
    q, k, v = tensors(nq=1024, nkv=1024)
    expected = causal(q, k, v)
    torch.cuda.synchronize()
    stream = torch.cuda.Stream()
    for _ in range(5):
        later = torch.zeros_like(q)
        torch.cuda.synchronize()
        with torch.cuda.stream(stream):
            torch.cuda._sleep(20_000_000)
            later.copy_(q)
            output = causal(later, k, v)
            result = output.clone()
        stream.synchronize()
        assert torch.equal(result, expected)


def test_graphs():
    q, k, v = tensors(nq=256, nkv=256)
    cos, sin = af.build_rope_cache(256, 64, like=q)
    side = torch.cuda.Stream()
    side.wait_stream(torch.cuda.current_stream())
    with torch.cuda.stream(side):
        rotated(q, k, v, cos=cos, sin=sin)
    torch.cuda.current_stream().wait_stream(side)
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        output = rotated(q, k, v, cos=cos, sin=sin) * 2
    for seed in range(3):
        torch.manual_seed(seed)
        for x in (q, k, v):
            x.copy_(torch.randn(x.shape))
        graph.replay()
        assert torch.equal(output, rotated(q, k, v, cos=cos, sin=sin) * 2)


def test_graph_of_a_launch_on_a_side_stream_and_new_sizes():
    """Sizes that are new while a graph is captured need no new code."""
    causal(*tensors(nq=64, nkv=64))
    q, k, v = tensors(nq=80, nkv=96)
    torch.cuda.synchronize()
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        output = causal(q, k, v)
    graph.replay()
    torch.cuda.synchronize()
    assert torch.equal(output, causal(q, k, v))


@pytest.mark.parametrize("backend", ["aot_eager", "inductor"])
def test_compile(backend):
    torch._dynamo.reset()
    q, k, v = tensors(nq=333)
    cos, sin = af.build_rope_cache(512, 64, like=q)
    function = lambda q, k, v: rotated(q * 0.5, k, v, cos=cos, sin=sin) + 1
    compiled = torch.compile(function, fullgraph=True, backend=backend)
    assert torch.allclose(compiled(q, k, v), function(q, k, v), atol=2e-2)
    for n in (100, 101, 300):
        operands = tensors(nq=n, nkv=n)
        assert torch.allclose(compiled(*operands), function(*operands), atol=2e-2)


def test_threads():
    operands = [tensors(nq=n, nkv=n) for n in (64, 96, 128, 160)]
    expected = [causal(*each) for each in operands]
    failures = []

    def work(index):
        with torch.cuda.stream(torch.cuda.Stream()):
            for _ in range(100):
                output = causal(*operands[index])
                if not torch.equal(output, expected[index]):
                    failures.append(index)

    torch.cuda.synchronize()
    threads = [threading.Thread(target=work, args=(index,)) for index in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not failures


@pytest.mark.skipif(
    not torch.cuda.is_available() or torch.cuda.device_count() < 2, reason="one GPU"
)
def test_another_device():
    q, k, v = tensors(device="cuda:1")
    assert torch.cuda.current_device() == 0
    output = causal(q, k, v)
    assert output.device == q.device and torch.cuda.current_device() == 0
    compare(output, expected_of(q, k, v, visible=distance(190, 333) <= 0)[0], q.dtype)
    with pytest.raises(af.OperandError, match="argument 'k': expected a tensor on cuda:1"):
        causal(q, k.to("cuda:0"), v)


def test_errors():
    q, k, v = tensors()
    with pytest.raises(
        af.OperandError,
        match=r"argument 'k': expected a tensor on cuda:0, where 'q' is, got a torch.Tensor on cpu; pass k.to\('cuda:0'\)",
    ):
        causal(q, k.cpu(), v)
    with pytest.raises(
        af.OperandError,
        match="argument 'v': expected a tensor on cuda:0, where 'q' is, got a numpy.ndarray",
    ):
        causal(q, k, host(v))
    with pytest.raises(
        af.OperandError, match="argument 'q': expected f16 or bf16 for a GPU, got f32; convert"
    ):
        causal(*(x.float() for x in (q, k, v)))
    with pytest.raises(
        af.OperandError, match="argument 'q': .*multiple of 8 from 8 to 256 for a GPU, got 12; pad"
    ):
        causal(*(x[..., :12] for x in (q, k, v)))
    with pytest.raises(af.OperandError, match="argument 'v' has 300 keys where 'k' has 333"):
        causal(q, k, v[:, :, :300])
    with pytest.raises(af.GradientError):
        causal(q.requires_grad_(), k, v)
    # After all of it the device still works.
    q = q.detach()
    compare(causal(q, k, v), expected_of(q, k, v, visible=distance(190, 333) <= 0)[0], q.dtype)


def test_large_tensors():
    """Offsets beyond 2^31 elements."""
    free, _ = torch.cuda.mem_get_info()
    if free < 24 << 30:
        pytest.skip("less than 24 GiB of free memory")
    heads, n, d = 64, 8192 * 3, 128
    k = torch.randn(11, 1, n, d, device="cuda", dtype=torch.bfloat16)
    q = torch.randn(11, heads, n, d, device="cuda", dtype=torch.bfloat16)
    assert q.numel() > 1 << 31

    @af.attention
    def windowed(q, k, v):
        return af.softmax(af.sliding_window(af.scaled_dot_product(q, k), left=63, right=0)) @ v

    output = windowed(q, k, k)
    part = windowed(q[-1:, -1:, -500:], k[-1:, :, -600:], k[-1:, :, -600:])
    assert torch.allclose(output[-1:, -1:, -500:].float(), part.float(), atol=2e-2)
