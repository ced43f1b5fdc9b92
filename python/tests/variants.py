"""Variants that several files test. Each decorates them for itself, so that no file sees what another
has traced."""

import attnfuse as af


def causal(q, k, v):
    return af.softmax(af.causal(af.scaled_dot_product(q, k))) @ v


def causal_with_lse(q, k, v):
    p, lse = af.softmax(af.causal(af.scaled_dot_product(q, k)), return_lse=True)
    return p @ v, lse


def rotated(q, k, v):
    q, k = af.rope(q, k)
    return af.softmax(af.causal(af.scaled_dot_product(q, k))) @ v


def shifted(q, k, v, cos, sin, offset):
    """Queries that begin at a run-time position, keys that are rotated already."""
    q = af.rope(q, cos, sin, offset=offset)
    return af.softmax(af.scaled_dot_product(q, k)) @ v


def biased(q, k, v):
    return af.softmax(af.additive_bias(af.scaled_dot_product(q, k))) @ v


def sparse(q, k, v):
    return af.softmax(af.block_sparse(af.scaled_dot_product(q, k))) @ v


def sloped(q, k, v):
    return af.softmax(af.alibi(af.scaled_dot_product(q, k))) @ v
