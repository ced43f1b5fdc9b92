"""Traps: NaN and infinity reach the rows that see them, and nothing else."""

import functools

import numpy as np

import oracle
from traplib import bias, block_sparse, causal, float_type, run, sizes, trap, variant, window


def visible_keys(v, arrays):
    """[B, Hq, Nq, Nkv]: what the masks leave."""
    shape = (arrays["q"].shape[0], v["hq"], arrays["q"].shape[2], arrays["k"].shape[2])
    return oracle.score_chain(np.zeros(shape), 0.0, v["chain"], arrays)[1]


# Units in the last place, of the largest element of a row, by which a GPU's result may differ.
LAST_BITS = {"f16": 4 * 2.0**-11, "bf16": 4 * 2.0**-8}


def is_same(runner, element_type, output, clean):
    """On the CPU in every bit. A GPU's kernel may compute rows anew, with other roundings,
    where it meets values that are not finite."""
    tolerance = LAST_BITS[element_type] * np.abs(clean).max(-1, keepdims=True) if runner.on_gpu else 0
    return np.abs(output.astype(np.float64) - clean) <= tolerance


def judge(runner, element_type, output, lse, clean, clean_lse, spoiled, lse_is_spoiled):
    """Rows of `spoiled` [B, H, N] are NaN, all others what they are without the garbage;
    the log-sum-exp, which V does not reach, in every bit."""
    if not np.isnan(output[spoiled]).all():
        return f"{(~np.isnan(output).all(-1) & spoiled).sum()} of {spoiled.sum()} rows hide a NaN that they see"
    changed = ~is_same(runner, element_type, output, clean).all(-1) & ~spoiled
    if changed.any():
        return f"{changed.sum()} rows see garbage that is masked, the first is {np.argwhere(changed)[0]}"
    if lse is not None:
        expected = np.where(spoiled, np.nan, clean_lse) if lse_is_spoiled else clean_lse
        if not np.array_equal(lse, expected, equal_nan=True):
            return "log-sum-exp: wrong rows are NaN, or others have changed"
    return None


MASKS = {
    "causal": [causal("top_left")],
    "causal_bottom_right": [causal()],
    "window": [window(9, 3)],
    "window_in_causal": [causal(), window(40, None, "top_left")],
    "bias": [bias("bhqk")],
    "bias_of_each_key": [bias("b11k")],
    # 16 bits and four dimensions: pipelined kernels load these in tiles.
    "bias_in_tiles": [bias("bhqk", "f16")],
    "bias_of_each_key_in_tiles": [bias("b11k", "bf16")],
    "blocks": [block_sparse()],
    "blocks_of_each_head": [block_sparse(32, 16, "BH"), causal()],
}


def length_pairs(runner):
    return [(37, 41), (150, 200), (300, 140)] if runner.on_gpu else [(37, 41), (20, 12)]


def garbage_in_keys_that_some_rows_see(runner, number, chain):
    def large_weights(arrays):
        # No weight is too small for 16 bits.
        arrays["q"] *= 0.5
        if "bias" in arrays:
            hidden = np.random.default_rng(number).random(arrays["bias"].shape) < 0.4
            arrays["bias"] = np.where(hidden, -np.inf, arrays["bias"])

    for norm, names in (("softmax", "k"), ("softmax", "v"), ("sum", "k"), ("none", "kv")):
        element_type = ("f16", "bf16")[number % 2] if norm == "softmax" else float_type(runner, "bf16")
        v = variant(element_type, hq=3, hkv=1, d=16, dv=24, chain=chain, norm=norm)
        for nq, nkv in length_pairs(runner):
            # On both sides of the edges of tiles.
            keys = [key for key in (0, 15, 31, 64, 127, 128, nkv - 1) if key < nkv]

            def spoil(arrays):
                large_weights(arrays)
                for name in names:
                    arrays[name][:, :, keys] = np.nan

            arrays, clean, clean_lse = run(runner, v, sizes(2, nq, nkv), large_weights)
            _, output, lse = run(runner, v, sizes(2, nq, nkv), spoil)
            spoiled = visible_keys(v, arrays)[..., keys].any(-1)
            wrong = judge(runner, element_type, output, lse, clean, clean_lse, spoiled, "k" in names)
            if wrong:
                return f"NaN in {names}, {element_type} {norm} {nq}x{nkv}: {wrong}"


for index, (mask, ops) in enumerate(MASKS.items()):
    test = functools.partial(garbage_in_keys_that_some_rows_see, number=index, chain=ops)
    test.__name__ = f"garbage_in_keys_that_some_rows_see_{mask}"
    trap(test)


@trap
def infinity_in_keys_that_some_rows_see(runner):
    """Infinite features of a key give scores of both signs; what is masked stays masked."""
    v = variant("bf16", hq=2, chain=[causal("top_left")])
    for nq, nkv in length_pairs(runner):
        keys = [nkv // 2, nkv - 1]

        def spoil(arrays):
            arrays["k"][:, :, keys] = np.inf

        _, clean, clean_lse = run(runner, v, sizes(2, nq, nkv))
        _, output, lse = run(runner, v, sizes(2, nq, nkv), spoil)
        before = min(keys[0], nq)
        if (output[:, :, :before] != clean[:, :, :before]).any():
            return f"{nq}x{nkv}: a row sees an infinite key that is masked"
        # Features of q have both signs, so that the score is inf - inf.
        if not np.isnan(output[:, :, before:]).all():
            return f"{nq}x{nkv}: inf - inf is not NaN"


@trap
def infinity_in_v_reaches_its_rows_alone(runner):
    for element_type in ("f16", "bf16"):
        v = variant(element_type, hq=2, dv=16, chain=[causal("top_left")])
        for nq, nkv in length_pairs(runner):
            key = nkv // 2

            def spoil(arrays):
                arrays["q"] *= 0.5
                arrays["v"][:, :, key, 3] = np.inf

            def calm(arrays):
                arrays["q"] *= 0.5

            _, clean, clean_lse = run(runner, v, sizes(2, nq, nkv), calm)
            _, output, lse = run(runner, v, sizes(2, nq, nkv), spoil)
            seen = np.zeros(output.shape, bool)
            seen[:, :, key:, 3] = True
            if np.isfinite(output[seen]).any():
                return f"{element_type} {nq}x{nkv}: an infinite value is lost"
            if not is_same(runner, element_type, output, clean)[~seen].all() or (lse != clean_lse).any():
                return f"{element_type} {nq}x{nkv}: an infinite value reaches other rows or columns"


@trap
def garbage_in_a_query_stays_in_its_row(runner):
    for chain in ([], [causal()], [causal("top_left"), bias("qk")], [block_sparse()]):
        for norm in ("softmax", "sum"):
            v = variant("bf16", hq=4, hkv=2, d=24, dv=16, chain=chain, norm=norm)
            for nq, nkv in length_pairs(runner):
                rows = [row for row in (0, 7, 16, 63, 64, 129, nq - 1) if row < nq]

                def spoil(arrays):
                    arrays["q"][1, 2, rows, 5] = np.nan

                arrays, clean, clean_lse = run(runner, v, sizes(2, nq, nkv))
                _, output, lse = run(runner, v, sizes(2, nq, nkv), spoil)
                spoiled = np.zeros(output.shape[:3], bool)
                spoiled[1, 2, rows] = True
                # Rows without a key stay 0.
                spoiled &= visible_keys(v, arrays).any(-1)
                wrong = judge(runner, v["type"], output, lse, clean, clean_lse, spoiled, True)
                if wrong:
                    return f"{[op['op'] for op in chain]} {norm} {nq}x{nkv}: {wrong}"
