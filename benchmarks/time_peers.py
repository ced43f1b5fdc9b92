#!/usr/bin/env python3
"""Times what a PyTorch user would run in place of each example, on a CUDA GPU.

  time_peers.py [--ours FILE] [--json FILE] [--only SUBSTRING] [--budget SECONDS]
  time_peers.py --rows FILE --ours FILE

The examples and their sizes are the `time_one` lines of time-examples.sh; types, heads,
masks and rotary widths are those of examples/*.mlir. One line an example and peer:

  bert-dense B=4,N=4096 flex 534.2
  relu-attention B=4,N=4096 flex failed: ...

The figure is the median in microseconds of about 60 ms of runs, timed by events with the
L2 cache flushed before each. What is short is also replayed as a CUDA graph, and the better
figure counts, so that a peer is not charged for Python. Inputs are standard normal.

  --json FILE   also writes the rows
  --ours FILE   what time-examples.sh printed; ends with a Markdown table of both
  --rows FILE   takes the rows from an earlier --json and times nothing (needs no PyTorch)

Peers: `flex` is FlexAttention under torch.compile (no max-autotune), `fa2`, `cudnn` and
`efficient` are the back ends of scaled_dot_product_attention (SDPA), `eager` and `compiled`
are plain tensor operations. `+rope`: q and k are rotated by a compiled function first;
`+eager-rope`: by plain operations. Whatever depends on the shape alone (block masks,
attention masks, tables of the right type and length) is made ahead and costs a peer nothing;
biases that are inputs are added up in the timed call where the peer takes only one.
"""

from __future__ import annotations

import argparse
import dataclasses
import gc
import json
import math
import pathlib
import re
import sys
import time
import warnings
from typing import Callable

try:
    import torch
    import torch._dynamo
    import torch.nn.functional as F
    import triton.testing
    from torch.nn.attention import SDPBackend, sdpa_kernel
    from torch.nn.attention.flex_attention import create_block_mask, flex_attention
except ImportError as error:
    torch, import_error = None, error

START = time.monotonic()
DEVICE = "cuda"
# Below this many milliseconds the launches by Python may take longer than the kernels.
SHORT_MS = 0.5


@dataclasses.dataclass
class Case:
    """One example: q [batch, heads, queries, features], k and v alike over keys."""

    dtype: object
    batch: int
    heads: int
    key_heads: int
    queries: int
    keys: int
    features: int
    value_features: int | None = None  # None: as `features`
    scale: float | None = None  # None: 1 / sqrt(features)
    # (q, k) -> rotated (q, k).
    rotate: Callable | None = None
    # FlexAttention's two functions, None where there is nothing to do.
    score_mod: Callable | None = None
    mask_mod: Callable | None = None
    mask_heads: int | None = None  # None: one pattern for all heads
    mask_block: int = 128
    kernel_options: dict | None = None
    want_lse: bool = False
    # What SDPA can express without a mask: None, "dense" or "causal".
    plain: str | None = None
    # () -> additive mask that broadcasts to [batch, heads, queries, keys], run in each call.
    attn_mask: Callable | None = None
    # (q, k, v) -> output by plain operations; stands for all other peers.
    formula: Callable | None = None


def randn(*shape, dtype):
    return torch.randn(shape, device=DEVICE, dtype=dtype)


def positions(n):
    return torch.arange(n, device=DEVICE)


# ---------------------------------------------------------------------------
# Building blocks


def rotary_tables(indices, pairs, dtype):
    """cos and sin, each [*indices.shape, pairs], of base 10000."""
    frequencies = 10000.0 ** (-torch.arange(pairs, device=DEVICE) / pairs)
    angles = indices[..., None].float() * frequencies
    return angles.cos().to(dtype), angles.sin().to(dtype)


def rope_half(x, cos, sin):
    pairs = cos.shape[-1]
    a, b, rest = x[..., :pairs], x[..., pairs : 2 * pairs], x[..., 2 * pairs :]
    return torch.cat((a * cos - b * sin, b * cos + a * sin, rest), dim=-1)


def rope_interleaved(x, cos, sin):
    width = 2 * cos.shape[-1]
    a, b = x[..., 0:width:2], x[..., 1:width:2]
    turned = torch.stack((a * cos - b * sin, b * cos + a * sin), dim=-1).flatten(-2)
    return torch.cat((turned, x[..., width:]), dim=-1)


def rotate_both(rope, n, pairs, dtype):
    cos, sin = rotary_tables(positions(n), pairs, dtype)

    def rotate(q, k):
        return rope(q, cos, sin), rope(k, cos, sin)

    return rotate


def causal(b, h, i, j):
    return i >= j


def geometric_slopes(heads):
    """ALiBi's slopes for a power of two of heads."""
    return torch.exp2(-8.0 * (positions(heads) + 1) / heads)


def alibi_mod(slopes):
    def score_mod(score, b, h, i, j):
        return score - slopes[h] * (i - j).abs()

    return score_mod


def alibi_causal_mask(slopes, n, dtype):
    """[1, heads, n, n]."""
    distance = positions(n)[:, None] - positions(n)
    mask = -slopes[:, None, None] * distance.abs()
    return mask.masked_fill_(distance < 0, -math.inf).to(dtype)[None]


def visibility_mask(visible, dtype):
    """Additive mask of a boolean one."""
    mask = torch.zeros(visible.shape, device=DEVICE, dtype=dtype)
    return mask.masked_fill_(~visible, -math.inf)


def random_blocks(*shape):
    """Which blocks are listed: drawn as `attnfuse-run --random` draws them (a tenth of the
    rows empty; in the others one block for sure and 40 % of the rest)."""
    listed = torch.rand(shape, device=DEVICE) < 0.4
    first = torch.randint(shape[-1], shape[:-1], device=DEVICE)
    listed.scatter_(-1, first[..., None], True)
    return listed & (torch.rand(shape[:-1], device=DEVICE) >= 0.1)[..., None]


# ---------------------------------------------------------------------------
# The examples


def encoder(dtype, heads, features, plain):
    def build(d):
        mask_mod = causal if plain == "causal" else None
        return Case(dtype, d["B"], heads, heads, d["N"], d["N"], features, plain=plain, mask_mod=mask_mod)

    return build


def window_case(d, dtype, heads, key_heads, features, left, right):
    n = d["N"]

    def mask_mod(b, h, i, j):
        return (i - j <= left) & (j - i <= right)

    i, j = positions(n)[:, None], positions(n)
    mask = visibility_mask(mask_mod(None, None, i, j), dtype)
    return Case(dtype, d["B"], heads, key_heads, n, n, features, mask_mod=mask_mod, attn_mask=lambda: mask)


def mistral_window_gqa(d):
    return window_case(d, torch.bfloat16, 32, 8, 128, left=4095, right=0)


def bidirectional_window(d):
    return window_case(d, torch.bfloat16, 12, 12, 64, left=64, right=64)


def bloom_alibi(d):
    dtype, slopes = torch.bfloat16, geometric_slopes(32)
    mask = alibi_causal_mask(slopes, d["N"], dtype)
    return Case(dtype, d["B"], 32, 32, d["N"], d["N"], 128, score_mod=alibi_mod(slopes), mask_mod=causal,
                attn_mask=lambda: mask)


def llama3_rope_causal_gqa(d):
    dtype, n = torch.bfloat16, d["N"]
    return Case(dtype, d["B"], 32, 8, n, n, 128, rotate=rotate_both(rope_half, n, 64, dtype), mask_mod=causal,
                plain="causal")


def gptj_interleaved_partial_rope(d):
    dtype, n = torch.float16, d["N"]
    return Case(dtype, d["B"], 16, 16, n, n, 256, rotate=rotate_both(rope_interleaved, n, 32, dtype),
                mask_mod=causal, plain="causal")


def rope_alibi_causal(d):
    dtype, n = torch.float16, d["N"]
    slopes = torch.exp2(-8.0 * torch.rand(16, device=DEVICE))
    mask = alibi_causal_mask(slopes, n, dtype)
    return Case(dtype, d["B"], 16, 16, n, n, 64, rotate=rotate_both(rope_half, n, 32, dtype),
                score_mod=alibi_mod(slopes), mask_mod=causal, attn_mask=lambda: mask)


def alphafold_row_bias(d):
    dtype, batch, n = torch.bfloat16, d["B"], d["N"]
    pair, row = randn(1, 8, n, n, dtype=dtype), randn(batch, 1, 1, n, dtype=dtype)

    def score_mod(score, b, h, i, j):
        return score + row[b, 0, 0, j] + pair[0, h, i, j]

    return Case(dtype, batch, 8, 8, n, n, 32, score_mod=score_mod, attn_mask=lambda: row + pair)


def t5_bias(d):
    dtype, n = torch.bfloat16, d["N"]
    bias = randn(1, 12, n, n, dtype=dtype)

    def score_mod(score, b, h, i, j):
        return score + bias[0, h, i, j]

    return Case(dtype, d["B"], 12, 12, n, n, 64, scale=1.0, score_mod=score_mod, attn_mask=lambda: bias)


def bigbird_block_sparse(d):
    n, block = d["N"], 64
    listed = random_blocks(12, math.ceil(n / block), math.ceil(n / block))

    def mask_mod(b, h, i, j):
        return listed[h, i // block, j // block]

    # The default tile of 128 queries does not fit into blocks of 64, and is refused.
    return Case(torch.float16, d["B"], 12, 12, n, n, 64, mask_mod=mask_mod, mask_heads=12, mask_block=block,
                kernel_options={"BLOCK_M": block, "BLOCK_N": block})


def relu_attention(d):
    n = d["N"]

    def formula(q, k, v):
        # The division comes last, where it is cheapest and costs f16 no precision.
        return torch.relu((q * q.shape[-1] ** -0.5) @ k.mT) @ v / n

    return Case(torch.float16, d["B"], 12, 12, n, n, 64, formula=formula)


def cross_attention(d):
    return Case(torch.float16, d["B"], 20, 20, d["Nq"], d["Nkv"], 64, plain="dense")


def decode_rope_offset(d):
    dtype = torch.bfloat16
    cos, sin = rotary_tables(torch.tensor([d["Nkv"] - 1], device=DEVICE), 64, dtype)
    return Case(dtype, d["B"], 32, 8, 1, d["Nkv"], 128, rotate=lambda q, k: (rope_half(q, cos, sin), k),
                plain="dense")


def everything(d):
    dtype, batch, n = torch.bfloat16, d["B"], d["N"]
    q_cos, q_sin = rotary_tables(positions(n) + 19, 48, dtype)
    k_positions = torch.randint(n + 64, (batch, 1, n), device=DEVICE)
    k_cos, k_sin = rotary_tables(k_positions, 48, dtype)
    slopes = torch.exp2(-8.0 * torch.rand(12, device=DEVICE))
    bias, row = randn(1, 12, n, n, dtype=dtype), randn(batch, 1, 1, n, dtype=torch.float32)
    listed = random_blocks(math.ceil(n / 32), math.ceil(n / 64))

    def rotate(q, k):
        return rope_half(q, q_cos, q_sin), rope_half(k, k_cos, k_sin)

    def score_mod(score, b, h, i, j):
        return score + bias[0, h, i, j] - slopes[h] * (i - j).abs() + row[b, 0, 0, j]

    def mask_mod(b, h, i, j):
        return (i >= j) & (i - j <= 95) & listed[i // 32, j // 64]

    i, j = positions(n)[:, None], positions(n)
    fixed = alibi_causal_mask(slopes, n, dtype) + visibility_mask(mask_mod(None, None, i, j), dtype)
    return Case(dtype, batch, 12, 4, n, n, 128, value_features=64, rotate=rotate, score_mod=score_mod,
                mask_mod=mask_mod, want_lse=True, attn_mask=lambda: bias + fixed + row.to(dtype))


def get_builders():
    return {
        "bert-dense": encoder(torch.float16, 12, 64, "dense"),
        "gpt2-causal": encoder(torch.float16, 12, 64, "causal"),
        "mistral-window-gqa": mistral_window_gqa,
        "bidirectional-window": bidirectional_window,
        "bloom-alibi": bloom_alibi,
        "llama3-rope-causal-gqa": llama3_rope_causal_gqa,
        "gptj-interleaved-partial-rope": gptj_interleaved_partial_rope,
        "rope-alibi-causal": rope_alibi_causal,
        "alphafold-row-bias": alphafold_row_bias,
        "t5-bias": t5_bias,
        "bigbird-block-sparse": bigbird_block_sparse,
        "relu-attention": relu_attention,
        "cross-attention": cross_attention,
        "decode-rope-offset": decode_rope_offset,
        "everything": everything,
    }


# ---------------------------------------------------------------------------
# The peers of a case


def make_flex(case, v):
    """(q, k) -> output. The block mask is made here, outside the timed call."""
    block_mask = None
    if case.mask_mod:
        block_mask = create_block_mask(case.mask_mod, None, case.mask_heads, case.queries, case.keys,
                                       device=DEVICE, BLOCK_SIZE=case.mask_block)
    options = {}
    if case.want_lse:
        from torch.nn.attention.flex_attention import AuxRequest

        options["return_aux"] = AuxRequest(lse=True)
    compiled = torch.compile(flex_attention, dynamic=False, fullgraph=True)

    def run(q, k):
        result = compiled(q, k, v, score_mod=case.score_mod, block_mask=block_mask, scale=case.scale,
                          enable_gqa=case.heads != case.key_heads, kernel_options=case.kernel_options, **options)
        return result[0] if isinstance(result, tuple) else result

    return run


def make_sdpa(case, v, backend):
    """(q, k) -> output."""
    group = case.heads // case.key_heads
    # The memory-efficient back end has no grouped heads: its users copy k and v.
    copies = group > 1 and backend == SDPBackend.EFFICIENT_ATTENTION

    def run(q, k):
        values, mask = v, None
        if copies:
            k, values = k.repeat_interleave(group, 1), v.repeat_interleave(group, 1)
        if not case.plain:
            mask = case.attn_mask().expand(case.batch, case.heads, case.queries, case.keys)
        with sdpa_kernel(backend):
            return F.scaled_dot_product_attention(q, k, values, attn_mask=mask, is_causal=case.plain == "causal",
                                                  scale=case.scale, enable_gqa=group > 1 and not copies)

    return run


def make_peers(case):
    """Yields the name and a function that returns () -> output. The latter may raise, too."""
    torch.manual_seed(1)
    q = randn(case.batch, case.heads, case.queries, case.features, dtype=case.dtype)
    k = randn(case.batch, case.key_heads, case.keys, case.features, dtype=case.dtype)
    v = randn(case.batch, case.key_heads, case.keys, case.value_features or case.features, dtype=case.dtype)
    if case.formula:
        yield "eager", lambda: lambda: case.formula(q, k, v)
        formula = torch.compile(case.formula, dynamic=False, fullgraph=True)
        yield "compiled", lambda: lambda: formula(q, k, v)
        return

    made = []

    def flex():
        if not made:
            made.append(make_flex(case, v))
        return made[0]

    def after(rotate, make):
        def build():
            attend = make()
            return lambda: attend(*rotate(q, k))

        return build

    backends = []
    if case.plain:
        backends = [("fa2", SDPBackend.FLASH_ATTENTION), ("cudnn", SDPBackend.CUDNN_ATTENTION)]
    elif case.attn_mask:
        backends = [("efficient", SDPBackend.EFFICIENT_ATTENTION), ("cudnn", SDPBackend.CUDNN_ATTENTION)]
    rotate, suffix = lambda q, k: (q, k), ""
    if case.rotate:
        rotate, suffix = torch.compile(case.rotate, dynamic=False, fullgraph=True), "+rope"
    yield "flex" + suffix, after(rotate, flex)
    if case.rotate:
        yield "flex+eager-rope", after(case.rotate, flex)
    for name, backend in backends:
        yield name + suffix, after(rotate, lambda backend=backend: make_sdpa(case, v, backend))


# ---------------------------------------------------------------------------
# Timing


def measure(call):
    """Median microseconds of a call that has run before."""

    def bench(function):
        return triton.testing.do_bench(function, warmup=10, rep=60, return_mode="median")

    best = bench(call)
    if best < SHORT_MS:
        try:
            graph = torch.cuda.CUDAGraph()
            with torch.cuda.graph(graph):
                call()
            best = min(best, bench(graph.replay))
        except Exception:  # The call cannot be captured: its own time stands.
            torch.cuda.synchronize()
    return best * 1e3


def describe_failure(error, caught):
    """One line. SDPA says in warnings why it has no kernel."""
    text = str(error).replace("backend='inductor' raised:", "") or type(error).__name__
    if "No available kernel" in text:
        reasons = [str(w.message).split("(Triggered")[0].strip() for w in caught]
        reasons = [r for r in reasons if not r.endswith("because:") and "runtime disabled" not in r]
        text = "no kernel: " + "; ".join(dict.fromkeys(reasons))
    text = " ".join(text.split())
    return text if len(text) <= 200 else text[:197] + "..."


def compare(example, name, output, reference):
    """A peer that computes something else is not a peer. Rows that see no key are NaN in
    some and 0 in others; a bias mask in bf16 rounds large distances, hence the wide bound."""
    error = (output.nan_to_num() - reference.nan_to_num()).abs().max().item()
    bound = 0.1 * reference.nan_to_num().abs().max().item()
    if not error <= bound:
        print(f"{example}: warning: {name} is off by {error:.3g} (bound {bound:.3g})", file=sys.stderr)


def time_example(example, dims, build, budget):
    """Yields rows: example, dims, peer, and median_us or reason."""

    def row(peer, **result):
        return {"example": example, "dims": dims, "peer": peer, **result}

    torch._dynamo.reset()
    gc.collect()
    reference = None
    try:
        torch.cuda.empty_cache()
        sizes = {name: int(size) for name, size in (part.split("=") for part in dims.split(","))}
        for name, make in make_peers(build(sizes)):
            if time.monotonic() - START > budget:
                yield row(name, reason=f"skipped, the budget of {budget:g} s is spent")
                continue
            with warnings.catch_warnings(record=True) as caught:
                warnings.simplefilter("always")
                try:
                    call = make()
                    output = call()
                    torch.cuda.synchronize()
                    result = row(name, median_us=round(measure(call), 2))
                    if reference is None:
                        reference = output
                    else:
                        compare(example, name, output, reference)
                except Exception as error:
                    result = row(name, reason=describe_failure(error, caught))
            yield result
    except Exception as error:
        yield row("set-up", reason=describe_failure(error, []))


def read_examples(only):
    script = pathlib.Path(__file__).with_name("time-examples.sh").read_text()
    found = re.findall(r"^time_one (\S+) (\S+)", script, re.MULTILINE)
    return [(stem, dims) for stem, dims in found if only in stem]


def time_all(only, budget):
    if torch is None:
        sys.exit(f"error: expected PyTorch and Triton: {import_error}")
    if not torch.cuda.is_available():
        sys.exit("error: expected a CUDA GPU, found none")
    # Every example starts from an empty cache, but one may compile several variants.
    torch._dynamo.config.recompile_limit = 64
    torch._dynamo.config.accumulated_recompile_limit = 1024
    print(f"# {torch.cuda.get_device_name()}, torch {torch.__version__}, triton {triton.__version__}, "
          f"cuDNN {torch.backends.cudnn.version()}", flush=True)
    rows, builders = [], get_builders()
    with torch.no_grad():
        for stem, dims in read_examples(only):
            if stem not in builders:
                rows.append({"example": stem, "dims": dims, "peer": "none", "reason": "no peers are known"})
                print(f"{stem} {dims} none failed: no peers are known", flush=True)
                continue
            for row in time_example(stem, dims, builders[stem], budget):
                rows.append(row)
                result = row.get("median_us") or "failed: " + row["reason"]
                print(f"{stem} {dims} {row['peer']} {result}", flush=True)
    print(f"# {time.monotonic() - START:.0f} s", flush=True)
    return rows


# ---------------------------------------------------------------------------
# The table

COLUMNS = {"flex": "FlexAttention", "flex+eager-rope": "FlexAttention, eager RoPE", "fa2": "SDPA FA2",
           "cudnn": "SDPA cuDNN", "efficient": "SDPA efficient", "eager": "eager", "compiled": "torch.compile"}


def read_ours(path):
    """{(example, dims): (median in us, TFLOP/s)} of time-examples.sh's lines."""
    number = r"([0-9.]+(?:e[+-]?\d+)?)"
    line = rf"^(\S+) (\S+): median {number} us.*? at the median {number} TFLOP/s"
    found = re.findall(line, pathlib.Path(path).read_text(), re.MULTILINE)
    return {(stem, dims): (float(us), float(rate)) for stem, dims, us, rate in found}


def format_us(us):
    return f"{us:.0f}" if us >= 100 else f"{us:.1f}"


def print_table(rows, ours):
    keys = list(dict.fromkeys((row["example"], row["dims"]) for row in rows))
    cells = {(row["example"], row["dims"], row["peer"].removesuffix("+rope")): row for row in rows}
    columns = [peer for peer in COLUMNS if any(key[2] == peer for key in cells)]
    header = ["example", "sizes", "attnfuse us (TFLOP/s)"] + [COLUMNS[peer] for peer in columns]
    print("\n| " + " | ".join(header) + " |")
    print("|---|---|" + "--:|" * (len(header) - 2))
    for stem, dims in keys:
        mine = ours.get((stem, dims))
        line = [stem, dims, f"{format_us(mine[0])} ({mine[1]:.0f})" if mine else "not timed"]
        for peer in columns:
            row = cells.get((stem, dims, peer))
            if row is None:
                line.append("")
            elif "median_us" not in row:
                line.append("failed")
            else:
                ratio = f" ({row['median_us'] / mine[0]:.2f}x)" if mine else ""
                line.append(format_us(row["median_us"]) + ratio)
        print("| " + " | ".join(line) + " |")
    print("\nMedian us; in brackets the peer's time over attnfuse's, so that above 1 attnfuse is faster."
          " Where an example rotates, peers rotate by a compiled function first, unless the column says"
          " eager. Empty: the peer cannot express it.")
    failures = [row for row in rows if "reason" in row]
    if failures:
        print("\nFailed:\n")
    for row in failures:
        print(f"- {row['example']} {row['dims']}, {row['peer']}: {row['reason']}")


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--ours", metavar="FILE", help="what time-examples.sh printed")
    parser.add_argument("--json", metavar="FILE", help="write the rows here")
    parser.add_argument("--rows", metavar="FILE", help="rows of an earlier --json, in place of timing")
    parser.add_argument("--only", metavar="SUBSTRING", default="", help="examples whose name has this")
    parser.add_argument("--budget", metavar="SECONDS", type=float, default=140,
                        help="start no further peer after this time (default 140)")
    arguments = parser.parse_args()
    # A typing error here should not cost a run.
    ours = read_ours(arguments.ours) if arguments.ours else None
    if arguments.ours and not ours:
        sys.exit(f"error: expected lines of time-examples.sh in {arguments.ours}, found none")
    if arguments.rows:
        rows = json.loads(pathlib.Path(arguments.rows).read_text())
    else:
        rows = time_all(arguments.only, arguments.budget)
    if arguments.json:
        pathlib.Path(arguments.json).write_text(json.dumps(rows, indent=1) + "\n")
    if ours is not None:
        print_table(rows, ours)


if __name__ == "__main__":
    main()
