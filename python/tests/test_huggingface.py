"""Tiny randomly initialised models: what attnfuse computes is what SDPA does."""

import copy

import pytest

torch = pytest.importorskip("torch")
transformers = pytest.importorskip("transformers")

import attnfuse as af
import attnfuse.huggingface as huggingface

CONFIGS = {
    "llama": lambda: transformers.LlamaConfig(num_key_value_heads=2),
    "mistral": lambda: transformers.MistralConfig(
        num_key_value_heads=2, sliding_window=7, head_dim=16
    ),
    "mistral-wide": lambda: transformers.MistralConfig(
        num_key_value_heads=4, sliding_window=None, head_dim=16
    ),
    "qwen2": lambda: transformers.Qwen2Config(num_key_value_heads=1),
    "qwen2-window": lambda: transformers.Qwen2Config(
        num_key_value_heads=2, use_sliding_window=True, sliding_window=6, max_window_layers=1
    ),
}
VOCABULARY = 97


@pytest.fixture(scope="module", params=sorted(CONFIGS))
def models(request):
    """(SDPA's, ours, ours with rotations fused), of the same weights."""
    torch.manual_seed(5)
    config = CONFIGS[request.param]()
    sizes = dict(
        vocab_size=VOCABULARY,
        hidden_size=64,
        intermediate_size=96,
        num_hidden_layers=2,
        num_attention_heads=4,
        max_position_embeddings=128,
        pad_token_id=0,
        bos_token_id=1,
        eos_token_id=None,
        initializer_range=0.3,
    )
    for name, value in sizes.items():
        setattr(config, name, value)
    if getattr(config, "layer_types", None):
        config.layer_types = config.layer_types[:2]
        if request.param == "qwen2-window":
            config.layer_types = ["full_attention", "sliding_attention"]
    found = []
    for implementation in ("sdpa", "attnfuse", "attnfuse"):
        config = copy.deepcopy(config)
        config._attn_implementation = implementation
        model = transformers.AutoModelForCausalLM.from_config(
            config, attn_implementation=implementation
        )
        if found:
            model.load_state_dict(found[0].state_dict())
        found.append(model.eval())
    assert [model.config._attn_implementation for model in found] == [
        "sdpa",
        "attnfuse",
        "attnfuse",
    ]
    assert huggingface.fuse_rope(found[2]) == 2
    return found


@pytest.fixture
def calls(monkeypatch):
    """Counts the calls of attnfuse's attention, by what it is made for."""
    seen = []
    real = huggingface._make_attention

    def spy(*kind):
        seen.append(kind)
        return real(*kind)

    monkeypatch.setattr(huggingface, "_make_attention", spy)
    return seen


def ids(batch, length):
    return torch.randint(
        1, VOCABULARY, (batch, length), generator=torch.Generator().manual_seed(11)
    )


def logits(model, *args, **kwargs):
    with torch.no_grad():
        return model(*args, **kwargs).logits


def assert_close(actual, expected):
    scale = expected.abs().max()
    assert scale > 0.1 and (actual - expected).abs().max() < 3e-5 * scale


def test_prefill(models, calls):
    sdpa, *ours = models
    x = ids(2, 19)
    expected = logits(sdpa, x)
    for model in ours:
        for use_cache in (True, False):
            assert_close(logits(model, x, use_cache=use_cache), expected)
    assert len(calls) == 8
    # Causal masks and windows are bands: no mask is read.
    assert all(kind[0] and kind[2] == 0 for kind in calls)


@pytest.mark.parametrize("side", ["left", "right"])
def test_padding(models, calls, side):
    sdpa, *ours = models
    x = ids(3, 17)
    mask = torch.ones_like(x)
    for row, count in ((0, 5), (2, 11)):
        mask[row, :count] = 0
    if side == "right":
        mask = mask.flip(1)
    expected = logits(sdpa, x, attention_mask=mask)
    for model in ours:
        actual = logits(model, x, attention_mask=mask)
        # What a padded query gives is nobody's business.
        assert_close(actual[mask.bool()], expected[mask.bool()])
    assert all(kind[0] and kind[2] == 1 for kind in calls)


def test_chunks_of_a_prompt(models):
    """A cache, and more than one query."""
    sdpa, *ours = models
    x = ids(2, 23)
    for model in ours:
        expected = logits(sdpa, x)
        with torch.no_grad():
            first = model(x[:, :9], use_cache=True)
            second = model(x[:, 9:14], past_key_values=first.past_key_values, use_cache=True)
            third = model(x[:, 14:], past_key_values=second.past_key_values, use_cache=True)
        actual = torch.cat([first.logits, second.logits, third.logits], dim=1)
        assert_close(actual, expected)


def generate(model, x, **options):
    return model.generate(x, max_new_tokens=12, do_sample=False, **options)


def test_generation(models, calls):
    sdpa, *ours = models
    x = ids(2, 9)
    mask = torch.ones_like(x)
    mask[1, :4] = 0
    for options in ({"attention_mask": torch.ones_like(x)}, {"attention_mask": mask}):
        expected = generate(sdpa, x, **options)
        for model in ours:
            assert torch.equal(generate(model, x, **options), expected)
    assert len(calls) == 2 * 2 * 2 * 12


def test_static_cache(models):
    sdpa, *ours = models
    x = ids(2, 9)
    options = dict(
        attention_mask=torch.ones_like(x), cache_implementation="static", disable_compile=True
    )
    expected = generate(sdpa, x, **options)
    for model in ours:
        assert torch.equal(generate(model, x, **options), expected)


def test_mask_of_four_dimensions(models):
    sdpa, *ours = models
    x = ids(2, 13)
    visible = (
        torch.ones(13, 13).tril().bool() & (torch.rand(2, 1, 13, 13) < 0.7) | torch.eye(13).bool()
    )
    if (
        isinstance(sdpa.config, transformers.Qwen2Config)
        and "sliding_attention" in sdpa.config.layer_types
    ):
        visible = {"full_attention": visible, "sliding_attention": visible}
    expected = logits(sdpa, x, attention_mask=visible)
    for model in ours:
        assert_close(logits(model, x, attention_mask=visible), expected)


def test_bfloat16(models):
    x = ids(2, 19)
    results = []
    for model in models:
        model = copy.deepcopy(model).to(torch.bfloat16)
        if "forward" in model.model.layers[0].self_attn.__dict__:
            # A copied module has the method of the module that it is a copy of.
            huggingface.fuse_rope(model)
        results.append(logits(model, x).float())
    exact = logits(models[0], x)
    error = (results[0] - exact).norm()
    for actual in results[1:]:
        assert (actual - exact).norm() < 1.5 * error


def test_refusals(models):
    model = copy.deepcopy(models[1])
    x = ids(1, 5)
    with pytest.raises(af.GradientError, match="no backward pass yet"):
        model(x)
    model.train()
    for layer in model.model.layers:
        layer.self_attn.attention_dropout = 0.1
    with pytest.raises(af.OperandError, match="dropout: expected 0, got 0.1"):
        logits(model, x)
    with pytest.raises(af.OperandError, match="model: expected one with attention modules Llama"):
        huggingface.fuse_rope(torch.nn.Linear(2, 2))


def test_soft_capping():
    """What Gemma 2's layers ask for."""
    torch.manual_seed(2)
    module = torch.nn.Module()
    q, k, v = (torch.randn(1, 4, 9, 16) for _ in range(3))
    actual, _ = huggingface.attention_forward(module, q, k, v, None, scaling=0.3, softcap=2.0)
    scores = 2.0 * torch.tanh(q @ k.transpose(-1, -2) * 0.3 / 2.0)
    scores = scores.masked_fill(~torch.ones(9, 9).tril().bool(), -torch.inf)
    expected = (scores.softmax(-1) @ v).transpose(1, 2)
    assert torch.allclose(actual, expected, atol=1e-5)
    with pytest.raises(af.OperandError, match="s_aux"):
        huggingface.attention_forward(module, q, k, v, None, s_aux=torch.zeros(4))
