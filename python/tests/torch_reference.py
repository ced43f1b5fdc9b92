"""Tensors of PyTorch for the definition in fp64."""

import torch

from reference import attention, check


def tensors(
    b=2, hq=4, hkv=2, nq=13, nkv=21, d=16, dv=None, dtype=torch.float32, device="cpu"
):
    """q, k and v; the lengths decide the numbers."""
    generator = torch.Generator().manual_seed(nq * 1000 + nkv)
    shapes = (b, hq, nq, d), (b, hkv, nkv, d), (b, hkv, nkv, dv or d)
    return [torch.randn(shape, generator=generator).to(dtype).to(device) for shape in shapes]


def host(x):
    return x.detach().float().cpu().numpy()


def expected_of(q, k, v, **options):
    return attention(host(q), host(k), host(v), **options)


def compare(actual, expected, dtype=torch.float32):
    check(host(actual), expected, str(dtype).split(".")[1])
