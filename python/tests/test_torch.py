"""PyTorch's tensors, on the CPU; and the path to a GPU as far as a fake driver leads."""

import threading

import numpy as np
import pytest

torch = pytest.importorskip("torch")

import attnfuse as af
import variants
from reference import attention, check, distance, rotate
from torch_reference import compare, expected_of, tensors

F = torch.nn.functional

causal = af.attention(variants.causal)
causal_with_lse = af.attention(variants.causal_with_lse)
rotated = af.attention(variants.rotated)
shifted = af.attention(variants.shifted)
biased = af.attention(variants.biased)
sparse = af.attention(variants.sparse)


# ===-----------------------------------------------------------------------===#
# The CPU
# ===-----------------------------------------------------------------------===#


@pytest.mark.parametrize("dtype", [torch.float32, torch.float16, torch.bfloat16])
def test_types(dtype):
    q, k, v = tensors(dtype=dtype)
    output = causal(q, k, v)
    assert type(output) is torch.Tensor and output.dtype == dtype and not output.requires_grad
    expected = expected_of(q, k, v, visible=distance(13, 21) <= 0)[0]
    compare(output, expected, dtype)


def test_strides():
    q, k, v = (x.transpose(1, 2).contiguous().transpose(1, 2) for x in tensors(nq=21))
    expected = expected_of(q, k, v, visible=distance(21, 21) <= 0)[0]
    output = causal(q, k, v)
    compare(output, expected)
    # Like q, so that [B, N, H, D] stays that without a copy.
    assert output.stride() == q.stride()
    wide = torch.zeros(2, 2, 21, 40)
    wide[..., 1:33:2] = k
    compare(causal(q, wide[..., 1:33:2], v), expected)
    one = k[:1].expand(2, -1, -1, -1)
    compare(causal(q, one, v), expected_of(q, one, v, visible=distance(21, 21) <= 0)[0])


def test_sizes_change_from_call_to_call():
    for b, nq, nkv in ((1, 5, 5), (3, 1, 8), (3, 1, 9), (2, 30, 30), (1, 5, 5), (0, 2, 2)):
        q, k, v = tensors(b=b, nq=nq, nkv=nkv)
        compare(causal(q, k, v), expected_of(q, k, v, visible=distance(nq, nkv) <= 0)[0])


def test_operands():
    q, k, v = tensors(nq=21)
    cos, sin = af.build_rope_cache(64, 16, like=q)
    assert cos.dtype == torch.float32 and cos.device == q.device
    qr, kr = (rotate(x.numpy(), cos, sin) for x in (q, k))
    expected = attention(qr, kr, v.numpy(), visible=distance(21, 21) <= 0)[0]
    compare(rotated(q, k, v, cos=cos, sin=sin), expected)
    output, lse = causal_with_lse(q, k, v)
    expected = expected_of(q, k, v, visible=distance(21, 21) <= 0)
    compare(output, expected[0])
    compare(lse, expected[1])

    positions = torch.randint(0, 64, (2, 21))
    output = rotated(q, k, v, cos=cos, sin=sin, positions=positions)
    qr, kr = (rotate(x.numpy(), cos, sin, positions=positions) for x in (q, k))
    check(output.numpy(), attention(qr, kr, v.numpy(), visible=distance(21, 21) <= 0)[0])

    bias = torch.randn(1, 4, 21, 21)
    check(
        biased(q, k, v, bias=bias).numpy(),
        expected_of(q, k, v, change=lambda s: s + bias.numpy())[0],
    )
    for offset in (0, 17, np.int64(5), 3):
        qr = rotate(q.numpy(), cos, sin, positions=np.arange(21) + offset)
        output = shifted(q, k, v, cos, sin, offset)
        check(output.numpy(), attention(qr, k.numpy(), v.numpy())[0])

    mask = af.create_block_mask(
        lambda b, h, i, j: i // 8 != j // 8, Q_LEN=21, KV_LEN=21, BLOCK_SIZE=8, device="cpu"
    )
    assert isinstance(mask.row_offsets, torch.Tensor)
    i, j = np.arange(21)[:, None], np.arange(21)[None]
    check(
        sparse(q, k, v, block_mask=mask).numpy(), expected_of(q, k, v, visible=i // 8 != j // 8)[0]
    )


def test_keywords():
    q, k, v = tensors()
    assert torch.equal(causal(q=q, k=k, v=v), causal(q, k, v))
    assert torch.equal(causal(q, v=v, k=k), causal(q, k, v))


def test_defaults_of_parameters():
    @af.attention
    def windowed(q, k, v, window=5):
        return af.softmax(af.sliding_window(af.scaled_dot_product(q, k), window)) @ v

    q, k, v = tensors()
    d = np.abs(distance(13, 21))
    for _ in range(2):
        check(windowed(q, k, v).numpy(), expected_of(q, k, v, visible=d < 5)[0])
        check(windowed(q, k, v, 3).numpy(), expected_of(q, k, v, visible=d < 3)[0])
        check(windowed(q, k, v, window=4).numpy(), expected_of(q, k, v, visible=d < 4)[0])


def test_captured_tensors():
    table = torch.randn(13, 21)
    array = np.random.default_rng(1).standard_normal((13, 21)).astype(np.float32)

    @af.attention
    def captured(q, k, v):
        return (
            af.softmax(
                af.additive_bias(af.additive_bias(af.scaled_dot_product(q, k), table), array)
            )
            @ v
        )

    q, k, v = tensors()
    expected = expected_of(q, k, v, change=lambda s: s + table.numpy() + array)[0]
    check(captured(q, k, v).numpy(), expected)


def test_threads():
    q, k, v = tensors(b=1)
    inputs = [(q + i, k, v) for i in range(6)]
    expected = [causal(*each) for each in inputs]
    failures = []

    def work(index):
        for _ in range(50):
            if not torch.equal(causal(*inputs[index]), expected[index]):
                failures.append(index)

    threads = [threading.Thread(target=work, args=(index,)) for index in range(6)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not failures


def test_against_sdpa():
    q, k, v = tensors(nq=21)
    expected = F.scaled_dot_product_attention(q, k, v, is_causal=True, enable_gqa=True)
    assert torch.allclose(causal(q, k, v), expected, atol=2e-6)


# ===-----------------------------------------------------------------------===#
# Errors
# ===-----------------------------------------------------------------------===#


#: What differs from tensors(), and the message.
MISTAKES = {
    "an array for v": (
        causal,
        lambda q, k, v: {"v": v.numpy()},
        r"'v': expected a tensor on cpu, where 'q' is, got a numpy.ndarray; pass "
        r"torch.from_numpy\(v\).to\('cpu'\)",
    ),
    "an array for q": (
        causal,
        lambda q, k, v: {"q": q.numpy()},
        r"'k': expected a NumPy array, as 'q' is one, got a torch.Tensor on cpu; pass "
        r"k.numpy\(force=True\), or tensors for all",
    ),
    "no such device": (
        causal,
        lambda q, k, v: {"q": q.to("meta"), "k": k.to("meta"), "v": v.to("meta")},
        r"'q': expected a tensor on a CUDA device or the CPU, got meta; move",
    ),
    "two devices": (
        causal,
        lambda q, k, v: {"k": k.to("meta")},
        r"'k': expected a tensor on cpu, where 'q' is, got a torch.Tensor on meta; pass "
        r"k.to\('cpu'\)",
    ),
    "a mask of arrays": (
        sparse,
        lambda q, k, v: {"block_mask": every_block()},
        r"'block_mask': expected a tensor on cpu, where 'q' is, got a numpy.ndarray; pass "
        r"block_mask.to\('cpu'\)",
    ),
    "a mask of tensors": (
        sparse,
        lambda q, k, v: {
            **{name: x.numpy() for name, x in (("q", q), ("k", k), ("v", v))},
            "block_mask": every_block(device="cpu"),
        },
        "'block_mask': expected a NumPy array, as 'q' is one, .*create_block_mask without a device",
    ),
    "a mask of another length": (
        sparse,
        lambda q, k, v: {"block_mask": every_block(kv_len=16, device="cpu")},
        "'block_mask' has 2 blocks of 8 keys where 'k' has 21 keys: .*KV_LEN=21",
    ),
    "a tensor for a mask": (
        sparse,
        lambda q, k, v: {"block_mask": torch.ones(13, 21, dtype=torch.bool)},
        r"'block_mask': expected a block mask, got an array of bool; make one by",
    ),
    "a mask for a bias": (
        biased,
        lambda q, k, v: {"bias": torch.ones(13, 21, dtype=torch.bool)},
        r"'bias': .*got bool; a mask is a bias of 0 and -inf, torch.where\(bias, 0.0, -torch.inf\)",
    ),
    "type of q": (
        causal,
        lambda q, k, v: {"q": q.to(torch.int8)},
        r"'q': expected f16 .* as q .*, got int8; convert it by q.to\(torch.float32\)",
    ),
    "a sparse tensor": (
        causal,
        lambda q, k, v: {"k": k.to_sparse()},
        r"'k': expected a dense tensor, got torch.sparse_coo; pass k.to_dense\(\)",
    ),
    "type of k": (
        causal,
        lambda q, k, v: {"k": k.half()},
        r"'k' has f16 elements where 'q' has f32: .*k.to\(q.dtype\)",
    ),
    "type of v": (
        causal,
        lambda q, k, v: {"v": v.bfloat16()},
        r"'v' has bf16 elements where 'q' has f32: .*v.to\(q.dtype\)",
    ),
    "heads of v": (causal, lambda q, k, v: {"v": v[:, :1]}, "'v' has 1 head where 'k' has 2"),
    "length of v": (
        causal,
        lambda q, k, v: {"v": v[:, :, :20]},
        "'v' has 20 keys where 'k' has 21",
    ),
    "no v": (causal, lambda q, k, v: {"v": None}, r"'v': expected v .*got None; pass"),
    "no bias": (biased, lambda q, k, v: {}, "missing argument 'bias'; pass bias="),
    "a tensor for an offset": (
        rotated,
        lambda q, k, v: {**rope_tables(q), "offset": torch.tensor(3)},
        r"'offset': expected an int .*got an array of i64; pass int",
    ),
    "an offset": (
        rotated,
        lambda q, k, v: {**rope_tables(q), "offset": 50},
        "'cos' is too short: expected at least 71 rows",
    ),
}


def every_block(kv_len=21, device=None):
    return af.create_block_mask(
        lambda b, h, i, j: i >= 0, Q_LEN=13, KV_LEN=kv_len, BLOCK_SIZE=8, device=device
    )


def rope_tables(q):
    return dict(zip(("cos", "sin"), af.build_rope_cache(64, 16, like=q)))


@pytest.mark.parametrize("case", sorted(MISTAKES))
def test_mistake(case):
    function, change, message = MISTAKES[case]
    operands = dict(zip("qkv", tensors()))
    operands.update(change(*operands.values()))
    with pytest.raises(af.OperandError, match=message):
        function(**operands)


def test_numbers_are_checked_at_every_call():
    q, k, v = tensors(nq=1)
    tables = rope_tables(q).values()
    for _ in range(3):
        shifted(q, k, v, *tables, 63)
        for offset, message in (
            (64, r"'cos' is too short: expected at least 65 rows .* from 64, got 64; make it by"),
            (-1, "'offset': expected an offset of at least 0, .*got -1"),
        ):
            with pytest.raises(af.OperandError, match=message):
                shifted(q, k, v, *tables, offset)


# ===-----------------------------------------------------------------------===#
# torch.compile
# ===-----------------------------------------------------------------------===#


@pytest.fixture(autouse=True)
def fresh_compiler():
    torch._dynamo.reset()


def compiled(function, **options):
    # The back end that runs the captured graph: code for it is not what is tested.
    return torch.compile(function, fullgraph=True, backend="aot_eager", **options)


def test_compile():
    q, k, v = tensors(nq=21)
    cos, sin = af.build_rope_cache(64, 16, like=q)

    def function(q, k, v, cos, sin):
        output, lse = causal_with_lse(q * 2, k, v)
        return rotated(output, k, v, cos=cos, sin=sin) + lse[..., None]

    expected = function(q, k, v, cos, sin)
    assert torch.allclose(compiled(function)(q, k, v, cos, sin), expected)


def test_compile_with_open_sizes():
    graphs = []

    def backend(graph, _):
        graphs.append(graph)
        return graph

    function = torch.compile(
        lambda *x: causal(*x) * 2, fullgraph=True, dynamic=True, backend=backend
    )
    # Sizes that are equal once are taken to be so for good.
    for b, n in ((3, 7), (5, 9), (6, 30)):
        q, k, v = tensors(b=b, nq=n, nkv=n)
        assert torch.equal(function(q, k, v), causal(q, k, v) * 2)
    assert len(graphs) == 1
    targets = [node.target for node in graphs[0].graph.nodes if node.op == "call_function"]
    assert any("attnfuse" in str(target) for target in targets)


def test_compile_keeps_other_operands():
    q, k, v = tensors(nq=21)
    cos, sin = af.build_rope_cache(64, 16, like=q)
    mask = af.create_block_mask(
        lambda b, h, i, j: i // 8 != j // 8, Q_LEN=21, KV_LEN=21, BLOCK_SIZE=8, device="cpu"
    )
    function = compiled(
        lambda q, k, v: sparse(q, k, v, block_mask=mask) + shifted(q, k, v, cos, sin, 7)
    )
    assert torch.allclose(
        function(q, k, v), sparse(q, k, v, block_mask=mask) + shifted(q, k, v, cos, sin, 7)
    )


def test_op_is_sound():
    q, k, v = tensors()
    torch.library.opcheck(
        torch.ops.attnfuse.attention.default,
        (causal.number, "q:t;k:t;v:t", [q, k, v], []),
        test_utils=("test_schema", "test_faketensor"),
    )


def test_fake_tensors():
    from torch._subclasses.fake_tensor import FakeTensorMode

    with FakeTensorMode():
        q, k, v = (
            torch.empty(s, dtype=torch.bfloat16)
            for s in ((2, 4, 7, 32), (2, 2, 9, 32), (2, 2, 9, 24))
        )
        output = causal(q, k, v)
        assert output.shape == (2, 4, 7, 24) and output.dtype == torch.bfloat16


# ===-----------------------------------------------------------------------===#
# The path to a GPU
# ===-----------------------------------------------------------------------===#


def test_layouts_that_a_kernel_takes():
    from attnfuse.torch_launch import _has_layout

    demand = {"unit_inner_stride": True, "stride_multiple": 8}
    x = torch.zeros(2, 4, 6, 16)
    assert _has_layout(x, demand) and _has_layout(x.transpose(1, 2), demand)
    assert _has_layout(x[:, :, ::2], demand) and _has_layout(x[:1].expand(5, -1, -1, -1), demand)
    assert not _has_layout(x[..., ::2], demand) and not _has_layout(x.transpose(2, 3), demand)
    assert not _has_layout(torch.zeros(2, 4, 6, 17)[..., :16], demand)
    # Strides of dimensions of size 1, and of what is empty, mean nothing.
    assert _has_layout(torch.zeros(2, 4, 6, 17)[:1, :1, :1, :16], demand)
    assert _has_layout(torch.zeros(2, 4, 0, 17)[..., :16], demand)
    assert _has_layout(x.transpose(2, 3), {})
