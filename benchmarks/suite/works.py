# ===-----------------------------------------------------------------------===#
# Licensed under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
# ===-----------------------------------------------------------------------===#
"""What is timed: attention variants at shapes, in suites."""

import dataclasses
import functools
import random

OURS, PLAIN = "attnfuse", "attnfuse, no RoPE"

#: Peers that ship with PyTorch; a work names those that can express it.
FLEX, FLEX_EAGER, FLEX_COMPILED = "flex", "flex + eager RoPE", "flex + compiled RoPE"
FLEX_SMALL = "flex (64 x 64 tiles)"
FLASH, CUDNN, EFFICIENT = "SDPA flash", "SDPA cuDNN", "SDPA efficient"
CUDNN_COMPILED = "SDPA cuDNN + compiled RoPE"
SDPA, COMPILED = "SDPA", "torch.compile"

#: Peers of their own packages, for every work that they can express.
PACKAGES = ("flash-attn 2", "flash-attn 3", "flash-attn 4", "FlashInfer", "Triton tutorial")


@dataclasses.dataclass(frozen=True)
class Work:
    """q is [batch, heads, queries, features]; k and v are [batch, key_heads, keys, features]."""

    suite: str
    batch: int
    heads: int
    key_heads: int
    queries: int
    keys: int
    features: int
    dtype: str = "bf16"  # or f16
    #: dense, causal, window (left and right keys of the query's own), blocks
    mask: str = "dense"
    left: int = 0
    right: int = 0
    #: Of blocks: queries and keys of each.
    block: int = 0
    #: "", half or interleaved: how features pair.
    rope: str = ""
    #: Features that rotate, 0 for all.
    rotary: int = 0
    rope_base: float = 10000.0
    #: A cache holds rotated keys: then only q rotates, which stands at the end of the keys.
    rotates_keys: bool = True
    alibi: bool = False
    #: Any of pairs, [1, heads, queries, keys], and keys, [batch, 1, 1, keys].
    bias: tuple = ()
    #: softmax, or relu: max(s, 0) / keys.
    weights: str = "softmax"
    scale: float = 0.0  # 0: 1 / sqrt(features)
    #: The chip to compile for in place of the device's own.
    chip: str = ""
    #: device: how long the GPU takes; host: how long a call takes.
    clock: str = "device"
    peers: tuple = ()
    #: Times attnfuse without the rotation, too.
    with_plain: bool = False
    #: The name of the file in examples, if it is one of these.
    example: str = ""

    @property
    def label(self):
        if self.is_causal_window:
            parts = [f"window {self.left + 1}"]
        elif self.mask == "window":
            parts = [f"window -{self.left}..{self.right}"]
        elif self.mask == "blocks":
            parts = [f"blocks of {self.block}"]
        else:
            parts = [self.mask]
        if self.rope:
            parts.append("RoPE" if self.rope == "half" else "interleaved RoPE")
        if self.alibi:
            parts.append("ALiBi")
        parts += [{"pairs": "bias [1,H,N,N]", "keys": "bias [B,1,1,N]"}[kind] for kind in self.bias]
        if self.weights != "softmax":
            parts.append(self.weights)
        return ", ".join(parts)

    @property
    def shape(self):
        heads = (
            str(self.heads) if self.heads == self.key_heads else f"{self.heads}/{self.key_heads}"
        )
        sizes = str(self.keys) if self.queries == self.keys else f"{self.queries}:{self.keys}"
        return f"{self.dtype} {self.batch} x {heads} x {sizes} x {self.features}"

    @property
    def series(self):
        """What a line of a figure shares: all but batch and length."""
        return f"{self.label}, D = {self.features}"

    @property
    def is_causal_window(self):
        return self.mask == "window" and self.right == 0

    @property
    def scale_value(self):
        return self.scale or self.features**-0.5

    @property
    def rotary_features(self):
        return self.rotary or self.features

    @property
    def structure(self):
        """All that attnfuse makes code for: one kernel serves works that share it."""
        return (
            (
                self.heads,
                self.key_heads,
                self.features,
                self.dtype,
                self.mask,
                self.left,
                self.right,
            )
            + (self.block, self.rope, self.rotary, self.rotates_keys, self.alibi, self.bias)
            + (self.weights, self.scale, self.chip)
        )

    def without_rope(self):
        return dataclasses.replace(self, rope="", rotary=0)

    def tiny(self):
        """A work of the same kind for a CPU and a test."""
        keys = min(self.keys, 256 if self.mask == "blocks" else 48)
        group = min(self.heads // self.key_heads, 2)
        return dataclasses.replace(
            self,
            batch=min(self.batch, 2),
            heads=2 * group,
            key_heads=2,
            queries=keys if self.queries == self.keys else min(self.queries, 24),
            keys=keys,
            left=min(self.left, 15),
            right=min(self.right, 15),
        )

    def visible_pairs(self):
        """(query, key) pairs that the mask shows, of one head of one batch entry."""
        shift = self.keys - self.queries
        if self.mask == "dense":
            return self.queries * self.keys
        if self.mask == "blocks":
            size = self.block
            return sum(
                (min(self.queries, (i + 1) * size) - i * size)
                * (min(self.keys, (j + 1) * size) - j * size)
                for i, row in enumerate(block_rows(self.queries, self.keys, size))
                for j in row
            )
        left = self.keys if self.mask == "causal" else self.left
        return sum(
            max(0, min(self.keys - 1, i + shift + self.right) - max(0, i + shift - left) + 1)
            for i in range(self.queries)
        )

    def flops(self):
        """Of the two products, for visible pairs only; all else is overhead."""
        return 4 * self.batch * self.heads * self.visible_pairs() * self.features

    def bytes(self):
        """What has to be read and written once."""
        rows = self.batch * self.features * 2
        total = rows * (2 * self.heads * self.queries + 2 * self.key_heads * self.keys)
        if "pairs" in self.bias:
            total += 2 * self.heads * self.queries * self.keys
        if "keys" in self.bias:
            total += 2 * self.batch * self.keys
        return total

    def as_dict(self):
        return dataclasses.asdict(self)


@functools.lru_cache(maxsize=None)
def block_rows(queries, keys, size):
    """Of each row of blocks, those that are listed: as in BigBird the first row and column, the
    diagonal and its neighbours, and two at random."""
    source = random.Random(0)
    num_rows, num_columns = -(-queries // size), -(-keys // size)
    rows = []
    for i in range(num_rows):
        near = {j for j in (0, i - 1, i, i + 1) if 0 <= j < num_columns}
        drawn = source.sample(range(num_columns), min(2, num_columns))
        rows.append(tuple(range(num_columns)) if i == 0 else tuple(sorted(near | set(drawn))))
    return tuple(rows)


# ===-----------------------------------------------------------------------===#
# The suites
# ===-----------------------------------------------------------------------===#


def _square(suite, batch, heads, n, features, key_heads=None, **options):
    return Work(suite, batch, heads, key_heads or heads, n, n, features, **options)


def _llama():
    for n in (2048, 4096, 8192, 16384):
        yield _square(
            "llama",
            max(1, 8192 // n),
            32,
            n,
            128,
            key_heads=8,
            mask="causal",
            peers=(FLEX, FLASH, CUDNN),
        )


def _dense():
    for features, heads in ((128, 16), (64, 32)):
        for mask in ("dense", "causal"):
            for batch, n in ((4, 4096), (1, 16384)):
                yield _square(
                    "dense", batch, heads, n, features, mask=mask, peers=(FLEX, FLASH, CUDNN)
                )


_GPT2_LENGTHS = (512, 1024, 2048, 4096)


def _rope():
    peers = (FLEX_EAGER, FLEX_COMPILED)
    for alibi in (False, True):
        for n in _GPT2_LENGTHS:
            yield _square(
                "rope", 4, 12, n, 64, dtype="f16", mask="causal", rope="half", alibi=alibi,
                peers=peers, with_plain=True,
            )  # fmt: skip
    for n in (2048, 4096, 8192, 16384, 32768):
        yield _square(
            "rope", max(1, 8192 // n), 32, n, 128, key_heads=8, mask="causal", rope="half",
            rope_base=500000.0, with_plain=True,
            peers=(CUDNN_COMPILED,) + ((FLEX_EAGER,) if n <= 4096 else ()),
        )  # fmt: skip
    for window in (256, 512, 1024, 2048, 4096):
        yield _square(
            "rope", 1, 16, 16384, 128, mask="window", left=window - 1, rope="half", with_plain=True,
            peers=(FLEX_COMPILED,),
        )  # fmt: skip


def _gpt2():
    variants = (
        dict(mask="dense"),
        dict(mask="causal"),
        dict(mask="window", left=255, right=255),
        dict(mask="causal", alibi=True),
    )
    for variant in variants:
        for n in _GPT2_LENGTHS:
            yield _square("gpt2", 4, 12, n, 64, dtype="f16", peers=(FLEX,), **variant)


def _bias():
    for features in (64, 128):
        for kind in ("pairs", "keys"):
            yield _square(
                "bias", 4, 16, 2048, features, bias=(kind,), peers=(FLEX, CUDNN, EFFICIENT)
            )


def _window():
    for window in (256, 1024):
        yield _square("window", 1, 16, 16384, 128, mask="window", left=window - 1, peers=(FLEX,))


def _blocks():
    for n, block in ((4096, 64), (4096, 128), (16384, 128)):
        peers = (FLEX, FLEX_SMALL) if block == 64 else (FLEX,)
        yield _square("blocks", 4, 12, n, 64, dtype="f16", mask="blocks", block=block, peers=peers)


def _features():
    for features in (96, 192, 256):
        yield _square("features", 4, 16, 4096, features, mask="causal", peers=(CUDNN, FLASH, FLEX))


def _portable():
    for features, heads in ((64, 32), (128, 16)):
        for mask in ("dense", "causal"):
            yield _square(
                "portable", 4, heads, 4096, features, mask=mask, chip="sm_90", peers=(FLASH,)
            )


def _host():
    for key_heads, features in ((8, 64), (2, 128)):
        yield _square(
            "host",
            1,
            8,
            64,
            features,
            key_heads=key_heads,
            mask="causal",
            clock="host",
            peers=(SDPA,),
        )


def _examples():
    """Those files of examples that no other suite has a like of."""
    f16 = dict(dtype="f16")
    for example, options in {
        "mistral-window-gqa": dict(
            shape=(1, 32, 8, 16384, 16384, 128), mask="window", left=4095, peers=(FLEX,)
        ),
        "bidirectional-window": dict(
            shape=(4, 12, 12, 4096, 4096, 64), mask="window", left=64, right=64, peers=(FLEX,)
        ),
        "bloom-alibi": dict(
            shape=(2, 32, 32, 4096, 4096, 128), mask="causal", alibi=True, peers=(FLEX,)
        ),
        "gptj-interleaved-partial-rope": dict(
            shape=(4, 16, 16, 2048, 2048, 256), mask="causal", rope="interleaved", rotary=64, **f16,
            peers=(FLEX_EAGER, FLEX_COMPILED, CUDNN_COMPILED),
        ),
        "alphafold-row-bias": dict(
            shape=(128, 8, 8, 256, 256, 32), bias=("keys", "pairs"), peers=(FLEX, CUDNN, EFFICIENT)
        ),
        "t5-bias": dict(
            shape=(4, 12, 12, 2048, 2048, 64), bias=("pairs",), scale=1.0,
            peers=(FLEX, CUDNN, EFFICIENT),
        ),
        "relu-attention": dict(
            shape=(4, 12, 12, 4096, 4096, 64), weights="relu", **f16, peers=(COMPILED,)
        ),
        "cross-attention": dict(
            shape=(16, 20, 20, 448, 1500, 64), **f16, peers=(FLEX, FLASH, CUDNN)
        ),
        "decode-rope-offset": dict(
            shape=(32, 32, 8, 1, 8192, 128), rope="half", rotates_keys=False,
            peers=(FLEX_EAGER, FLEX_COMPILED, CUDNN_COMPILED),
        ),
    }.items():  # fmt: skip
        yield Work("examples", *options.pop("shape"), example=example, **options)


#: In the order in which they run, the most telling first.
SUITES = {
    "llama": (_llama, "causal, Llama-3-8B's heads"),
    "dense": (_dense, "dense and causal"),
    "rope": (_rope, "RoPE"),
    "gpt2": (_gpt2, "GPT-2's heads"),
    "bias": (_bias, "additive biases"),
    "window": (_window, "causal windows"),
    "blocks": (_blocks, "block-sparse, as in BigBird"),
    "features": (_features, "other head sizes"),
    "portable": (_portable, "the kernels without wgmma and TMA (sm_90)"),
    "host": (_host, "host time per call"),
    "examples": (_examples, "other examples"),
}


def get_works(names=None, quick=False, tiny=False):
    """The works of the named suites, of all if none is named. ``quick`` has the first and the last of
    what differs in length only."""
    works = []
    for name, (make, _) in SUITES.items():
        if names and name not in names:
            continue
        made = list(make())
        if quick:
            groups = {}
            for work in made:
                groups.setdefault((work.series, work.heads), []).append(work)
            made = [
                w
                for w in made
                if w in (groups[w.series, w.heads][0], groups[w.series, w.heads][-1])
            ]
        if tiny:
            made = list(dict.fromkeys(work.tiny() for work in made))
        works += made
    return works


def from_dict(fields):
    """What Work.as_dict gave, after its way through JSON."""
    return Work(**{k: tuple(v) if isinstance(v, list) else v for k, v in fields.items()})
