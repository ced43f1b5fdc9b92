"""Traps: few queries, many keys, which a GPU's kernels spread over blocks and combine."""

import numpy as np

from traplib import alibi, bias, block_sparse, causal, first_wrong, float_type, run, run_and_compare, sizes, trap, variant, window

# Parts of some thousand keys are a few hundred; on the CPU there are none, and shorter rows do.
def lengths(runner):
    return [(1, 4100), (3, 2500), (16, 6000)] if runner.on_gpu else [(1, 300), (3, 200)]


CHAINS = [
    [], [causal()], [causal("top_left")], [window(1500, 0)], [window(40, None)], [window(None, 0)],
    [block_sparse(16, 64)], [block_sparse(64, 128, "BH"), causal()], [alibi()], [bias("1hqk")], [bias("b11k")],
]


@trap
def few_queries_and_many_keys(runner):
    for norm in ("softmax", "sum", "length", "none"):
        for index, chain in enumerate(CHAINS):
            v = variant(("f16", "bf16")[index % 2], hq=6, hkv=2, d=64, dv=(64, 40)[index % 2], chain=chain, norm=norm)
            wrong = first_wrong(run_and_compare(runner, v, sizes(1, *pair)) for pair in lengths(runner))
            if wrong:
                return f"{[op['op'] for op in chain]}: {wrong}"


@trap
def most_parts_see_no_key(runner):
    """A mask leaves the keys of one part, or none."""
    for norm in ("softmax", "sum", "length", "none"):
        v = variant("f16", hq=2, d=64, chain=[bias("1q1" if norm == "length" else "bhqk")], norm=norm)
        for nq, nkv in lengths(runner):
            def hide(arrays):
                arrays["bias"][:] = -np.inf
                if arrays["bias"].ndim == 4:
                    # Row 0 of head 0 stays empty.
                    arrays["bias"][:, 1:, :, nkv // 2 : nkv // 2 + 3] = 0.25
                    arrays["bias"][:, 0, 1:, nkv - 1] = 0.5

            wrong = run_and_compare(runner, v, sizes(1, nq, nkv), hide)
            if wrong:
                return wrong


@trap
def parts_of_very_different_scores(runner):
    """Each part's scores lie far from those of the next, up and down."""
    v = variant("bf16", hq=2, d=64, chain=[bias("11qk")])
    for norm in ("softmax", "sum"):
        v["norm"], v["lse"] = norm, norm == "softmax"
        for nq, nkv in lengths(runner):
            def spread(arrays):
                steps = np.arange(nkv) * 8 // nkv
                arrays["bias"][:] = np.where(steps % 2 == 0, 1.0, -1.0) * 300.0 * (steps + 1)

            wrong = run_and_compare(runner, v, sizes(1, nq, nkv), spread)
            if wrong:
                return wrong


@trap
def a_part_of_weight_0_adds_nothing(runner):
    """Its keys are visible, their probabilities 0 in any arithmetic, and V is NaN or infinite."""
    for garbage in (np.nan, np.inf, -np.inf):
        v = variant("f16", hq=2, d=64, chain=[bias("k")])
        for nq, nkv in lengths(runner):
            half = nkv // 2

            def spread(arrays):
                arrays["bias"][:] = 0.0
                arrays["bias"][:half] = -20000.0

            def spoil(arrays):
                spread(arrays)
                arrays["v"][:, :, :half] = garbage

            _, clean, clean_lse = run(runner, v, sizes(1, nq, nkv), spread)
            _, output, lse = run(runner, v, sizes(1, nq, nkv), spoil)
            close = np.abs(output - clean) <= (2.0**-8 if runner.on_gpu else 0) * np.abs(clean).max()
            if not close.all() or (lse != clean_lse).any():
                return f"{nq}x{nkv}: V of {garbage} at probability 0 changes {(~close).sum()} elements"


@trap
def garbage_in_one_part_spoils_the_rows_that_see_it(runner):
    for norm in ("softmax", "sum", "none"):
        v = variant(float_type(runner, "bf16"), hq=2, d=64, chain=[causal()], norm=norm)
        for nq, nkv in lengths(runner):
            def spoil(arrays):
                # The last query alone sees the last key.
                arrays["k"][:, :, nkv - 1] = np.nan

            _, clean, _ = run(runner, v, sizes(1, nq, nkv))
            _, output, _ = run(runner, v, sizes(1, nq, nkv), spoil)
            if not np.isnan(output[:, :, -1]).all():
                return f"{norm} {nq}x{nkv}: a NaN is lost"
            if not (np.abs(output[:, :, :-1] - clean[:, :, :-1]) <= 2.0**-6 * np.abs(clean).max()).all():
                return f"{norm} {nq}x{nkv}: a NaN reaches other rows"
