# ===-----------------------------------------------------------------------===#
# Licensed under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
# ===-----------------------------------------------------------------------===#
"""The tensors of a work, and what its rows should be."""

import torch

DTYPES = {"bf16": torch.bfloat16, "f16": torch.float16}

#: A row's error is its distance from the definition's in fp64 over the latter's length. Rounding q, k,
#: the weights and the output to the type, and peers' rotary tables too, stays well below these.
BOUNDS = {"bf16": 2.0**-5, "f16": 2.0**-7}


class Operands:
    """q, k, v, standard normal, and what else the work has, on a device. Tables for rotations are in
    f64 here; each contestant rounds them to what its users give it."""

    def __init__(self, work, device):
        self.work, self.device = work, device
        generator = torch.Generator(device).manual_seed(1)
        dtype = DTYPES[work.dtype]

        def normal(*shape):
            return torch.randn(shape, device=device, dtype=dtype, generator=generator)

        self.q = normal(work.batch, work.heads, work.queries, work.features)
        self.k = normal(work.batch, work.key_heads, work.keys, work.features)
        self.v = normal(work.batch, work.key_heads, work.keys, work.features)
        self.biases = [
            (
                normal(1, work.heads, work.queries, work.keys)
                if kind == "pairs"
                else normal(work.batch, 1, 1, work.keys)
            )
            for kind in work.bias
        ]
        self.slopes = None
        if work.alibi:
            steps = torch.arange(1, work.heads + 1, device=device, dtype=torch.float32)
            self.slopes = torch.exp2(-8 * steps / work.heads)
        self.cos = self.sin = None
        if work.rope:
            width = work.rotary_features
            pairs = torch.arange(0, width, 2, device=device, dtype=torch.float64)
            # Where keys do not rotate, the table starts at the first query's place.
            first = 0 if work.rotates_keys else work.keys - work.queries
            places = torch.arange(first, work.keys, device=device, dtype=torch.float64)
            angles = torch.outer(places, work.rope_base ** (-pairs / width))
            self.cos, self.sin = angles.cos(), angles.sin()

    def tables(self, dtype):
        """(cos, sin), each [positions, rotary features / 2]."""
        return self.cos.to(dtype), self.sin.to(dtype)


def _rotate(x, cos, sin, pairing):
    """x [N, D] by tables of its own positions."""
    pairs = cos.shape[-1]
    turned, rest = x[:, : 2 * pairs], x[:, 2 * pairs :]
    if pairing == "half":
        a, b = turned[:, :pairs], turned[:, pairs:]
        return torch.cat([a * cos - b * sin, b * cos + a * sin, rest], -1)
    a, b = turned[:, 0::2], turned[:, 1::2]
    return torch.cat([torch.stack([a * cos - b * sin, b * cos + a * sin], -1).flatten(1), rest], -1)


def sample_rows(work):
    """{(batch entry, head): rows} to compare: corners and a few in between, the same for all."""
    generator = torch.Generator().manual_seed(2)
    pairs = [(0, 0), (work.batch - 1, work.heads - 1)]
    for _ in range(2):
        pairs.append(
            tuple(int(torch.randint(n, (), generator=generator)) for n in (work.batch, work.heads))
        )
    rows = {}
    for pair in dict.fromkeys(pairs):
        drawn = torch.randint(work.queries, (14,), generator=generator).tolist()
        rows[pair] = sorted({0, work.queries - 1, *drawn})
    return rows


def _visible(work, rows, device):
    """[rows, keys], whether the mask shows the key."""
    i = torch.tensor(rows, device=device)[:, None]
    j = torch.arange(work.keys, device=device)
    distance = i + (work.keys - work.queries) - j
    if work.mask == "causal":
        return distance >= 0
    if work.mask == "window":
        return (distance <= work.left) & (-distance <= work.right)
    if work.mask == "blocks":
        return block_table(work, device)[i // work.block, j // work.block]
    return torch.ones(len(rows), work.keys, dtype=torch.bool, device=device)


def block_table(work, device):
    """[rows, columns] of blocks, whether they are listed."""
    from .works import block_rows

    rows = block_rows(work.queries, work.keys, work.block)
    table = torch.zeros(len(rows), -(-work.keys // work.block), dtype=torch.bool)
    for number, row in enumerate(rows):
        table[number, list(row)] = True
    return table.to(device)


def reference(work, operands):
    """{(batch entry, head): [rows, features]} of sample_rows(work), in fp64."""
    results = {}
    shift = work.keys - work.queries
    for (b, h), rows in sample_rows(work).items():
        q = operands.q[b, h, rows].double()
        kh = h // (work.heads // work.key_heads)
        k, v = operands.k[b, kh].double(), operands.v[b, kh].double()
        index = torch.tensor(rows, device=operands.device)
        if work.rope:
            q = _rotate(q, operands.cos[index], operands.sin[index], work.rope)
            if work.rotates_keys:
                k = _rotate(k, operands.cos, operands.sin, work.rope)
        s = work.scale_value * q @ k.T
        if work.alibi:
            places = index[:, None] + shift - torch.arange(work.keys, device=operands.device)
            s = s - operands.slopes[h].double() * places.abs()
        for kind, bias in zip(work.bias, operands.biases):
            s = s + (bias[0, h, rows] if kind == "pairs" else bias[b, 0, 0]).double()
        visible = _visible(work, rows, operands.device)
        if work.weights == "relu":
            p = torch.where(visible, s.relu(), 0.0) / work.keys
        else:
            p = s.masked_fill(~visible, float("-inf")).softmax(-1)
        results[b, h] = p @ v
    return results


def measure_error(work, output, expected):
    """The worst row's error; infinite where the shape or a value is none of an output's."""
    if tuple(output.shape) != (work.batch, work.heads, work.queries, work.features):
        return float("inf")
    worst = 0.0
    for (b, h), rows in sample_rows(work).items():
        truth = expected[b, h]
        distance = (output[b, h, rows].double() - truth).norm(dim=-1)
        errors = distance / truth.norm(dim=-1).clamp_min(1e-30)
        if not torch.isfinite(errors).all():
            return float("inf")
        worst = max(worst, errors.max().item())
    return worst
