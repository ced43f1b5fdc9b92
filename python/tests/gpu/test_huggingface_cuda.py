"""Small randomly initialised models in bf16: attnfuse is as near to f32 as SDPA is."""

import copy

import pytest

torch = pytest.importorskip("torch")
transformers = pytest.importorskip("transformers")

import attnfuse.huggingface as huggingface

VOCABULARY = 500
CONFIGS = {
    "llama": (transformers.LlamaConfig, dict(num_key_value_heads=2)),
    "mistral": (
        transformers.MistralConfig,
        dict(num_key_value_heads=2, sliding_window=50, head_dim=64),
    ),
    "qwen2": (transformers.Qwen2Config, dict(num_key_value_heads=4)),
}


@pytest.fixture(scope="module", params=sorted(CONFIGS))
def models(request):
    """SDPA in f32, SDPA in bf16, attnfuse, attnfuse with fused rotations."""
    torch.manual_seed(1)
    config_class, options = CONFIGS[request.param]
    config = config_class(
        vocab_size=VOCABULARY,
        hidden_size=512,
        intermediate_size=768,
        num_hidden_layers=3,
        num_attention_heads=8,
        max_position_embeddings=1024,
        pad_token_id=0,
        bos_token_id=1,
        eos_token_id=None,
        initializer_range=0.1,
        **options,
    )
    exact = (
        transformers.AutoModelForCausalLM.from_config(config, attn_implementation="sdpa")
        .eval()
        .cuda()
    )
    exact = exact.float()
    found = [exact]
    for implementation in ("sdpa", "attnfuse", "attnfuse"):
        own = copy.deepcopy(config)
        model = transformers.AutoModelForCausalLM.from_config(
            own, attn_implementation=implementation
        )
        model.load_state_dict(exact.state_dict())
        found.append(model.eval().cuda().to(torch.bfloat16))
    huggingface.fuse_rope(found[3])
    return found


def logits(model, *args, **kwargs):
    with torch.no_grad():
        return model(*args, **kwargs)


def judge(models, run):
    """`run` gives a model's logits."""
    exact, sdpa, *ours = [run(model).float() for model in models]
    allowed = 1.25 * (sdpa - exact).norm()
    for actual in ours:
        assert torch.isfinite(actual).all()
        assert (actual - exact).norm() <= allowed


def ids(batch, length):
    generator = torch.Generator().manual_seed(4)
    return torch.randint(1, VOCABULARY, (batch, length), generator=generator).cuda()


def test_prefill(models):
    judge(models, lambda model: logits(model, ids(2, 300)).logits)


@pytest.mark.parametrize("side", ["left", "right"])
def test_padding(models, side):
    x = ids(3, 200)
    mask = torch.ones_like(x)
    mask[0, :70] = 0
    mask[2, :150] = 0
    mask = mask if side == "left" else mask.flip(1)
    judge(models, lambda model: logits(model, x, attention_mask=mask).logits[mask.bool()])


def test_token_by_token(models):
    """The tokens are given, so that one rounding does not lead to another text."""
    x = ids(2, 150)

    def run(model):
        step = logits(model, x[:, :100], use_cache=True)
        parts = [step.logits]
        for position in range(100, 150):
            token = x[:, position : position + 1]
            step = logits(model, token, past_key_values=step.past_key_values, use_cache=True)
            parts.append(step.logits)
        return torch.cat(parts, dim=1)

    judge(models, run)


def test_generate(models):
    x = ids(2, 40)
    mask = torch.ones_like(x)
    mask[1, :13] = 0
    for model in models:
        for cache in ("dynamic", "static"):
            output = model.generate(
                x,
                attention_mask=mask,
                max_new_tokens=20,
                do_sample=False,
                cache_implementation=cache,
                disable_compile=True,
            )
            assert output.shape == (2, 60)
