"""Traps: biases, ALiBi, large numbers, log-sum-exp and rotations."""

import numpy as np

import harness
import inputs
import matrix
import oracle
from traplib import alibi, bias, causal, first_wrong, float_type, run, run_and_compare, sizes, table_rows, trap, variant


@trap
def bias_shapes_and_odd_lengths(runner):
    for shape in ("11qk", "b11k", "1hqk", "qk"):
        v = variant("f16", hq=3, chain=[bias(shape, "f16")])
        for n in (43, 77, 203) if runner.on_gpu else (43, 77):
            wrong = run_and_compare(runner, v, sizes(2, n, n))
            if wrong:
                return f"{shape} {wrong}"
    v = variant("f16", hq=2, chain=[bias("1hqk", "f16")])
    return run_and_compare(runner, v, sizes(1, 361, 361))


@trap
def alibi_in_prefill_and_decode(runner):
    v = variant(float_type(runner), hq=12, chain=[alibi(), causal()])
    # One unit in the last place on the GPU, where the tiles of a step lie differently.
    bound = 1e-6 + (2 * oracle.ROUNDOFF["f16"] if runner.on_gpu else 0)
    n = 200 if runner.on_gpu else 64
    arrays, whole, _ = run(runner, v, sizes(1, n, n))
    for length in (1, 2, 33, 64, n):
        step = {
            "q": arrays["q"][:, :, length - 1 : length],
            "k": arrays["k"][:, :, :length],
            "v": arrays["v"][:, :, :length],
        }
        row, _ = runner.call(v, step, {})
        expected = whole[:, :, length - 1 : length]
        wrong = harness.mismatch(row, expected, bound * np.maximum(1, np.abs(expected)))
        if wrong:
            return f"step {length} differs from prefill: {wrong}"


@trap
def alibi_slopes(runner):
    element_type = float_type(runner)
    lengths = [(9, 33)] + ([(140, 200)] if runner.on_gpu else [])
    results = []
    for heads in (1, 12, 40, 71):
        v = variant(element_type, hq=heads, d=8, chain=[alibi()])
        results += [run_and_compare(runner, v, sizes(1, nq, nkv)) for nq, nkv in lengths]
    for slopes in ("H", "BH"):
        for align in ("top_left", "bottom_right"):
            v = variant("f16", hq=12, d=8, chain=[alibi(align, slopes)])
            results += [run_and_compare(runner, v, sizes(2, nkv, nq)) for nq, nkv in lengths]
    dynamic = variant(element_type, hq=12, d=8, chain=[alibi()], dynamic_heads=True)
    results.append(run_and_compare(runner, dynamic, dict(sizes(1, 9, 9), Hq=12, Hkv=12)))
    return first_wrong(results)


@trap
def logits_beyond_f16(runner):
    def large(arrays):
        arrays["q"][:] = 60 * np.sign(arrays["q"])
        arrays["k"][:] = 60 * np.sign(arrays["k"])
        arrays["k"][:, :, 11] = arrays["q"][:, :, 0]

    v = variant("f16", hq=1, d=128)
    arrays, output, lse = run(runner, v, sizes(1, 1, 33), large)
    if (output[0, 0, 0] != arrays["v"][0, 0, 11]).any():
        return "softmax is not one-hot where one key dominates"
    if abs(lse[0, 0, 0] - 128 * 3600 / np.sqrt(128)) > 1e-2:
        return f"lse {lse[0, 0, 0]}"

    def plus_minus(arrays):
        arrays["q"][:] = 174 * np.sign(arrays["q"])
        arrays["k"][:] = 172 * np.sign(arrays["q"]) * np.sign(arrays["k"][..., :1])

    return run_and_compare(runner, variant("bf16", hq=1, d=16, scale=1 / 16), sizes(1, 7, 7), plus_minus)


@trap
def lse_is_natural_and_merges(runner):
    """Parts of the keys, some of them wholly masked, merge to the whole by their LSEs."""
    v = variant(float_type(runner), hq=2, chain=[bias("k")])
    rounded = 4 * oracle.ROUNDOFF["f16"] if runner.on_gpu else 0
    dims = sizes(1, 5, 300)

    def mask(arrays):
        arrays["bias"][:] = np.where(np.arange(300) < 150, -np.inf, np.cos(np.arange(300)))

    arrays, whole, whole_lse = run(runner, v, dims, mask)
    wrong = harness.compare_with_oracle(runner, v, arrays, whole, whole_lse)
    if wrong:
        return wrong
    for parts in (1, 2, 3, 7):
        output, lse = np.zeros(whole.shape), np.full(whole_lse.shape, -np.inf)
        for keys in np.array_split(np.arange(300), parts):
            part = {"q": arrays["q"], "k": arrays["k"][:, :, keys], "v": arrays["v"][:, :, keys], "bias": arrays["bias"][keys]}
            o, l = runner.call(v, part, {})
            merged = np.logaddexp(lse, l)
            safe = np.where(np.isneginf(merged), 0, merged)
            output = output * np.exp(lse - safe)[..., None] + o * np.exp(l - safe)[..., None]
            lse = merged
        if np.abs(output - whole).max() > 1e-6 + rounded or np.abs(lse - whole_lse).max() > 1e-5:
            return f"{parts} parts do not merge to the whole"


def rotation(pairing="half", width=64, table_type="f32", q_offset=0, k_offset=0, offset=False, positions=None):
    return {
        "pairing": pairing, "width": width, "table_type": table_type, "q_offset": q_offset, "k_offset": k_offset,
        "sides": "qk", "offset": offset, "positions": positions,
    }


@trap
def rope_at_long_positions(runner):
    rows = 131072
    with table_rows(rows):
        for table_type in ("f32", "bf16"):
            for base in (1e4, 5e5):
                angles = np.arange(rows)[:, None] * base ** (-np.arange(32)[None, :] / 32)

                def long(arrays):
                    arrays["cos"], arrays["sin"] = np.cos(angles), np.sin(angles)
                    for side in "qk":
                        if f"{side}_positions" in arrays:
                            arrays[f"{side}_positions"] = np.random.default_rng(1).integers(0, 8192, 65)

                for rope in (rotation(table_type=table_type, q_offset=131000, k_offset=131007),
                             rotation("interleaved", table_type=table_type, positions="N")):
                    v = variant("bf16", hq=1, d=64, rope=rope)
                    wrong = run_and_compare(runner, v, sizes(1, 65, 65), long)
                    if wrong:
                        return f"{table_type} tables, base {base}, {rope['pairing']}: {wrong}"


@trap
def rope_beyond_the_table(runner):
    """Refused where an offset is known, clamped where positions are given."""
    with table_rows(192):
        v = variant(float_type(runner), d=16, rope=rotation(width=16, q_offset=100))
        arrays = inputs.make_inputs(v, sizes(1, 93, 20), 1)
        try:
            runner.call(v, arrays, {})
            return "193 positions were read from a table of 192 rows"
        except RuntimeError as error:
            if "193" not in str(error) or "192" not in str(error):
                return f"unclear message: {error}"
    v = variant(float_type(runner), d=16, rope=rotation(width=16, offset=True))
    arrays = dict(inputs.make_inputs(v, sizes(1, 9, 20), 1), offset=np.int64(-1))
    try:
        runner.call(v, arrays, {})
        return "position -1 was read from a table"
    except RuntimeError as error:
        if "'offset'" not in str(error) or "-1" not in str(error):
            return f"unclear message: {error}"
    v = variant(float_type(runner), d=16, rope=rotation(width=16, positions="BN"))

    def outside(arrays):
        arrays["q_positions"][:, ::2] = -(2**31)
        arrays["k_positions"][:, ::2] = 2**62

    return run_and_compare(runner, v, sizes(2, 7, 9), outside)


@trap
def rope_over_many_key_tiles(runner):
    """Warps that rotate K and warps that compute wait for each other, tile after tile."""
    long = (200, 1500) if runner.on_gpu else (20, 300)
    with table_rows(long[1]):
        for d, chain in ((96, []), (128, []), (64, []), (96, [causal()]), (200, [])):
            v = variant(float_type(runner), hq=2, hkv=1, d=d, rope=rotation(), chain=chain)
            wrong = run_and_compare(runner, v, sizes(1, *long))
            if wrong:
                return f"D={d}, {len(chain)} masks: {wrong}"


@trap
def rope_offset_in_decode(runner):
    """One query at a run-time offset, keys rotated from 0: the last row of a prefill."""
    v = variant("bf16", hq=4, hkv=2, d=64, rope=rotation(), chain=[causal()])
    arrays, whole, _ = run(runner, v, sizes(1, 40, 40))
    step = variant("bf16", hq=4, hkv=2, d=64, rope=dict(rotation(offset=True), sides="q"), chain=[causal()])
    keys = oracle.rope(arrays["k"].astype(float), arrays["cos"].astype(float), arrays["sin"].astype(float), "half", np.arange(40))
    again = dict(arrays, q=arrays["q"][:, :, -1:], k=inputs.round_values(keys, "bf16"), offset=np.int64(39))
    row, _ = runner.call(step, again, {})
    difference = np.abs(row - whole[:, :, -1:]).max()
    bound = 3 * 2**-8 if runner.on_gpu else 2**-8
    return f"the decode step differs from prefill by {difference}" if difference > bound else None
