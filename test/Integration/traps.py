"""Inputs that broke attention kernels elsewhere.

  traps.py --run=PATH --out=DIR [--device=cpu] [--only=SUBSTRING]

Every function decorated with @trap is a test: it gets a harness and returns what is
wrong, or None.
"""

import argparse
import sys

import numpy as np

import harness
import inputs
import matrix
import oracle

TRAPS = []


def trap(function):
    TRAPS.append(function)
    return function


def variant(element_type="f32", hq=2, hkv=None, d=16, dv=None, chain=(), rope=None, norm="softmax",
            dynamic_heads=False, scale=None, name="f"):
    return {
        "name": name, "type": element_type, "hq": hq, "hkv": hkv or hq, "d": d, "dv": dv or d,
        "dynamic_heads": dynamic_heads, "scale": scale, "rope": rope, "chain": list(chain),
        "norm": norm, "lse": norm == "softmax",
    }


def causal(align="bottom_right"):
    return {"op": "causal", "align": align}


def window(left, right, align="bottom_right"):
    return {"op": "sliding_window", "align": align, "left": left, "right": right}


def bias(shape, element_type="f32"):
    return {"op": "additive_bias", "shape": shape, "type": element_type}


def alibi(align="bottom_right", slopes=None):
    return {"op": "alibi", "align": align, "slopes": slopes}


def sizes(batch, nq, nkv):
    return {"B": batch, "Nq": nq, "Nkv": nkv}


def run(runner, v, dims, change=None, seed=7):
    """(inputs, output, lse) on random inputs, after `change` has edited them."""
    arrays = inputs.make_inputs(v, dims, seed)
    if change:
        change(arrays)
        for name, element_type, _ in matrix.arguments(v):
            if element_type in oracle.ROUNDOFF:
                arrays[name] = inputs.round_values(arrays[name], element_type)
    output, lse = runner.call(v, arrays, dims)
    return arrays, output, lse


def run_and_compare(runner, v, dims, change=None):
    arrays, output, lse = run(runner, v, dims, change)
    wrong = harness.compare_with_oracle(v, arrays, output, lse)
    return wrong and f"{v['type']} {v['norm']} {dims}: {wrong}"


def first_wrong(results):
    return next((wrong for wrong in results if wrong), None)


#===------------------------------------------------------------------------===#
# A. Empty rows, masks, infinities
#===------------------------------------------------------------------------===#


@trap
def fully_masked_row(runner):
    def mask_row(arrays):
        arrays["bias"][1, 0, 2, :] = -np.inf

    def mask_all(arrays):
        arrays["bias"][:] = -np.inf

    for element_type in ("f32", "bf16"):
        for norm in ("softmax", "sum", "length", "none"):
            v = variant(element_type, hq=1, chain=[bias("bhqk")], norm=norm)
            for dims, change, rows in ((sizes(2, 4, 4), mask_row, np.s_[1, 0, 2]), (sizes(1, 1, 1), mask_all, np.s_[0, 0, 0])):
                arrays, output, lse = run(runner, v, dims, change)
                wrong = harness.compare_with_oracle(v, arrays, output, lse)
                if wrong:
                    return f"{element_type} {norm}: {wrong}"
                if (output[rows] != 0).any() or (lse is not None and lse[rows] != -np.inf):
                    return f"{element_type} {norm}: an empty row is not 0 and -inf"


@trap
def mask_of_the_lowest_finite_number(runner):
    for element_type, lowest in (("f16", -65504.0), ("bf16", -3.3895313892515355e38), ("f32", -3.4028234663852886e38)):
        v = variant(element_type, hq=1, chain=[bias("qk", element_type)])

        def fill(arrays):
            arrays["bias"][:] = np.where(np.isinf(arrays["bias"]), 0, arrays["bias"])
            arrays["bias"][3, :] = lowest

        arrays, output, lse = run(runner, v, sizes(1, 5, 393), fill)
        if not np.isfinite(output).all() or not np.isfinite(lse).all():
            return f"{element_type}: a finite bias masked a row or overflowed"
        if element_type == "f16":
            # The scores still differ by what f32 keeps beside 65504.
            wrong = harness.compare_with_oracle(v, arrays, output, lse)
        else:
            mean = arrays["v"].astype(np.float64).mean(axis=2)
            wrong = harness.mismatch(output[:, :, 3], mean, 0 * mean + 2 * oracle.ROUNDOFF[element_type] + 1e-6)
        if wrong:
            return f"{element_type}: {wrong}"


@trap
def bias_shorter_than_the_keys(runner):
    v = variant("f32", chain=[bias("qk")])
    arrays = inputs.make_inputs(v, sizes(1, 128, 128), 1)
    arrays["bias"] = arrays["bias"][:, :127]
    try:
        runner.call(v, arrays, {})
    except RuntimeError as error:
        message = str(error)
        return None if "127" in message and "128" in message else f"unclear message: {message}"
    return "a bias of 127 columns was taken for 128 keys"


SOFTCAP = """
func.func @f(%q: tensor<1x2x?x16xf32>, %k: tensor<1x2x?x16xf32>, %v: tensor<1x2x?x16xf32>) -> tensor<1x2x?x16xf32> {
  %o = attnfuse.attention q(%q) k(%k) v(%v) bands [#attnfuse.band<top_left, right = 0>] softmax score {
    ^bb0(%s: f32, %b: index, %h: index, %i: index, %j: index, %nq: index, %nkv: index, %hq: index):
      %t = math.tanh %s : f32
      attnfuse.yield %t : f32
    } {scale = 0.25 : f64}
    : (tensor<1x2x?x16xf32>, tensor<1x2x?x16xf32>, tensor<1x2x?x16xf32>) -> tensor<1x2x?x16xf32>
  return %o : tensor<1x2x?x16xf32>
}
"""


@trap
def softcap_does_not_unmask(runner):
    rng = np.random.default_rng(3)
    arrays = {name: rng.standard_normal((1, 2, 65, 16)).astype(np.float32) for name in "qkv"}
    outputs = []
    for last in (0.5, -1000.0):
        arrays["v"][:, :, -1] = last
        flags = []
        for name, values in arrays.items():
            np.save(runner.directory / f"{name}.npy", values)
            flags.append(f"--input={name}={runner.directory / name}.npy")
        result = runner.invoke(SOFTCAP, *flags, f"--output=output={runner.directory / 'o.npy'}")
        if result.returncode:
            return result.stderr
        outputs.append(np.load(runner.directory / "o.npy"))
    if (outputs[0][:, :, :-1] != outputs[1][:, :, :-1]).any():
        return "a row depends on a key after its own"
    scores = np.tanh(0.25 * (arrays["q"].astype(float) @ arrays["k"].astype(float).swapaxes(-1, -2)))
    scores = np.where(np.tri(65, dtype=bool), scores, -np.inf)
    weights = np.exp(scores) / np.exp(scores).sum(-1, keepdims=True)
    expected = weights @ arrays["v"].astype(float)
    return harness.mismatch(outputs[1].astype(float), expected, 1e-5 * (weights @ np.abs(arrays["v"])))


@trap
def garbage_outside_of_the_visible_keys(runner):
    """NaN and infinity in keys that are masked reach no result, in any position of the
    mask among the score ops."""
    for norm in ("softmax", "sum", "none"):
        for chain in ([causal("top_left"), alibi(), bias("qk")], [bias("qk"), alibi(), causal("top_left")]):
            v = variant("bf16", chain=chain, norm=norm)
            outputs = []
            for garbage in (None, np.nan, np.inf):

                def spoil(arrays):
                    arrays["bias"][:, 20:] = 1.0
                    if garbage is not None:
                        for name in "kv":
                            arrays[name][:, :, 20:] = garbage
                        arrays["bias"][:, 20:] = garbage

                _, output, _ = run(runner, v, sizes(2, 20, 33), spoil)
                outputs.append(output)
            if any((o != outputs[0]).any() for o in outputs[1:]):
                return f"{norm}: masked keys reach the result"


@trap
def infinite_bias_does_not_unmask(runner):
    """-inf on one side and +inf or NaN on the other is masked."""

    def spoil(arrays):
        arrays["k"][:, :, 5] = np.nan
        arrays["v"][:, :, 5] = np.nan
        arrays["bias"][:, 5] = -np.inf
        arrays["bias"][3, 4:] = np.inf

    return run_and_compare(runner, variant("f32", chain=[causal("top_left"), bias("qk")]), sizes(1, 9, 9), spoil)


#===------------------------------------------------------------------------===#
# B. Lengths, alignment of causal and windows
#===------------------------------------------------------------------------===#


@trap
def causal_with_different_lengths(runner):
    for align in ("top_left", "bottom_right"):
        v = variant("f16", chain=[causal(align)])
        for nq, nkv in ((2, 5), (5, 2), (1, 8), (7, 300), (300, 7)):
            arrays, output, lse = run(runner, v, sizes(1, nq, nkv))
            wrong = harness.compare_with_oracle(v, arrays, output, lse)
            if wrong:
                return f"{align} {nq}x{nkv}: {wrong}"
            above = nq - nkv if align == "bottom_right" else 0
            if above > 0 and not (lse[:, :, :above] == -np.inf).all():
                return f"{align} {nq}x{nkv}: the rows before the first key are not empty"


@trap
def window_sizes_around_the_length(runner):
    for n in (17, 130):
        def one_hot(arrays):
            arrays["q"][:] = 0
            arrays["v"][:] = np.eye(n)

        plain = variant("f32", hq=1, dv=n, chain=[causal()])
        whole = run(runner, plain, sizes(1, n, n), one_hot)[1]
        for size in (1, 2, n - 1, n, n + 1):
            v = variant("f32", hq=1, dv=n, chain=[causal(), window(size - 1, None)])
            weights = run(runner, v, sizes(1, n, n), one_hot)[1][0, 0]
            i, j = np.mgrid[:n, :n]
            seen = (j <= i) & (j > i - size)
            expected = seen / np.minimum(i + 1, size)
            wrong = harness.mismatch(weights, expected, expected * 2.0**-22)
            if wrong:
                return f"N={n} W={size}: {wrong}"
            if size >= n and (weights != whole[0, 0]).any():
                return f"N={n} W={size}: not the same as causal alone"


@trap
def window_below_one(runner):
    v = variant("f32", chain=[window(-1, 0)])
    result = runner.invoke(matrix.function_text(v), "--random=1", "--dims=B=1,Nq=4,Nkv=4")
    if result.returncode == 0 or "-1" not in result.stderr:
        return f"a negative bound was accepted: {result.stderr}"


@trap
def lengths_below_a_tile(runner):
    short = variant("f32", d=16, chain=[causal()])
    dims = [sizes(1, n, n) for n in range(1, 18)]
    decode = variant("f16", hq=32, d=128)
    return first_wrong([
        runner.check(matrix.function_text(short), dims),
        runner.check(matrix.function_text(decode), [sizes(4, 1, 20)]),
        run_and_compare(runner, variant("f32"), sizes(2, 5, 1), lambda arrays: arrays["q"].__imul__(3)),
    ])


@trap
def one_key_returns_v(runner):
    arrays, output, _ = run(runner, variant("bf16"), sizes(2, 3, 1))
    if (output != np.broadcast_to(arrays["v"], output.shape)).any():
        return "the only key has a weight other than 1"


@trap
def nothing_to_do(runner):
    for chain in ([], [causal()], [causal("top_left"), alibi(), bias("qk")]):
        for norm in ("softmax", "sum", "length"):
            v = variant("f16", chain=chain, norm=norm)
            for dims in (sizes(0, 4, 4), sizes(2, 0, 7), sizes(2, 0, 4096), sizes(2, 5, 0), sizes(0, 0, 0)):
                wrong = run_and_compare(runner, v, dims)
                if wrong:
                    return wrong


#===------------------------------------------------------------------------===#
# C. Heads and dims
#===------------------------------------------------------------------------===#


@trap
def groups_of_any_size(runner):
    v = variant("f16", d=16, dynamic_heads=True, chain=[causal()])
    dims = []
    for hq, hkv in ((2, 2), (3, 1), (9, 3), (10, 2), (12, 2), (7, 1), (18, 2), (12, 1), (14, 1), (16, 1), (28, 4)):
        dims += [dict(sizes(1, n, 100), Hq=hq, Hkv=hkv) for n in (1, 5, 100)]
    dims.append(dict(sizes(1, 1, 4096), Hq=12, Hkv=2))
    static = variant("bf16", hq=9, hkv=3, d=16)
    return first_wrong([
        runner.check(matrix.function_text(v), dims),
        run_and_compare(runner, v, dict(sizes(2, 5, 9), Hq=2, Hkv=2)),
        run_and_compare(runner, static, sizes(2, 5, 9)),
    ])


@trap
def prefill_and_decode_agree_on_heads(runner):
    v = variant("f32", hq=15, hkv=3, chain=[causal()])
    arrays, whole, _ = run(runner, v, sizes(1, 20, 20))
    step = dict(arrays, q=arrays["q"][:, :, -1:])
    last, _ = runner.call(v, step, {})
    if (last != whole[:, :, -1:]).any():
        return "the last row of a prefill differs from the decode step"


@trap
def head_sizes_of_any_kind(runner):
    pairs = [(d, d) for d in (1, 6, 8, 31, 40, 72, 80, 96, 112, 192)] + [(192, 128), (8, 16), (64, 1)]
    text = "\n".join(
        matrix.function_text(variant("f32" if d % 8 else "f16", d=d, dv=dv, name=f"d{d}_{dv}")) for d, dv in pairs
    )
    return first_wrong(
        [runner.check(text, [sizes(2, 33, 17)])]
        + [run_and_compare(runner, variant("f32", d=d, dv=dv), sizes(1, 7, 9)) for d, dv in ((1, 1), (31, 31), (192, 128))]
    )


#===------------------------------------------------------------------------===#
# D. Sizes
#===------------------------------------------------------------------------===#


@trap
def more_heads_than_a_launch_grid_has(runner):
    v = variant("f16", d=16, dynamic_heads=True)
    dims = [dict(sizes(b, 4, 4), Hq=h, Hkv=h) for b, h in ((65536, 1), (1, 65536), (65536, 2))]
    return runner.check(matrix.function_text(v), dims)


@trap
def scores_beyond_the_memory(runner):
    """An error, not a crash: the scores of this call would need 64 TiB."""
    v = variant("f32", hq=1, d=1)
    text = matrix.function_text(v)
    result = runner.invoke(text, "--random=1", "--dims=B=1,Nq=4194304,Nkv=4194304")
    if result.returncode not in (1, 2) or "memory" not in result.stderr:
        return f"exit code {result.returncode}: {result.stderr}"


#===------------------------------------------------------------------------===#
# F. Bias and ALiBi
#===------------------------------------------------------------------------===#


@trap
def bias_shapes_and_odd_lengths(runner):
    for shape in ("11qk", "b11k", "1hqk", "qk"):
        v = variant("f16", hq=3, chain=[bias(shape, "f16")])
        for n in (43, 77):
            wrong = run_and_compare(runner, v, sizes(2, n, n))
            if wrong:
                return f"{shape} {wrong}"
    v = variant("f16", hq=2, chain=[bias("1hqk", "f16")])
    return run_and_compare(runner, v, sizes(1, 361, 361))


@trap
def alibi_in_prefill_and_decode(runner):
    v = variant("f32", hq=12, chain=[alibi(), causal()])
    arrays, whole, _ = run(runner, v, sizes(1, 64, 64))
    for length in (1, 2, 33, 64):
        step = {
            "q": arrays["q"][:, :, length - 1 : length],
            "k": arrays["k"][:, :, :length],
            "v": arrays["v"][:, :, :length],
        }
        row, _ = runner.call(v, step, {})
        difference = np.abs(row - whole[:, :, length - 1 : length]).max()
        if difference > 1e-6:
            return f"step {length} differs from prefill by {difference}"


@trap
def alibi_slopes(runner):
    results = []
    for heads in (1, 12, 40, 71):
        v = variant("f32", hq=heads, d=8, chain=[alibi()])
        results.append(run_and_compare(runner, v, sizes(1, 9, 33)))
    for slopes in ("H", "BH"):
        for align in ("top_left", "bottom_right"):
            v = variant("f16", hq=12, d=8, chain=[alibi(align, slopes)])
            results.append(run_and_compare(runner, v, sizes(2, 33, 9)))
    dynamic = variant("f32", hq=12, d=8, chain=[alibi()], dynamic_heads=True)
    results.append(run_and_compare(runner, dynamic, dict(sizes(1, 9, 9), Hq=12, Hkv=12)))
    return first_wrong(results)


#===------------------------------------------------------------------------===#
# G. Numerics
#===------------------------------------------------------------------------===#


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
    v = variant("f32", hq=2, chain=[bias("k")])
    dims = sizes(1, 5, 300)

    def mask(arrays):
        arrays["bias"][:] = np.where(np.arange(300) < 150, -np.inf, np.cos(np.arange(300)))

    arrays, whole, whole_lse = run(runner, v, dims, mask)
    wrong = harness.compare_with_oracle(v, arrays, whole, whole_lse)
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
        if np.abs(output - whole).max() > 1e-6 or np.abs(lse - whole_lse).max() > 1e-5:
            return f"{parts} parts do not merge to the whole"


#===------------------------------------------------------------------------===#
# H. RoPE
#===------------------------------------------------------------------------===#


def rotation(pairing="half", width=64, table_type="f32", q_offset=0, k_offset=0, offset=False, positions=None):
    return {
        "pairing": pairing, "width": width, "table_type": table_type, "q_offset": q_offset, "k_offset": k_offset,
        "sides": "qk", "offset": offset, "positions": positions,
    }


@trap
def rope_at_long_positions(runner):
    rows = 131072
    saved, matrix.TABLE_ROWS = matrix.TABLE_ROWS, rows
    try:
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
    finally:
        matrix.TABLE_ROWS = saved


@trap
def rope_beyond_the_table(runner):
    """Refused where the length is known, clamped where positions are given."""
    v = variant("f32", d=16, rope=rotation(width=16, q_offset=100))
    arrays = inputs.make_inputs(v, sizes(1, 93, 20), 1)
    try:
        runner.call(v, arrays, {})
        return "193 positions were read from a table of 192 rows"
    except RuntimeError as error:
        if "193" not in str(error) or "192" not in str(error):
            return f"unclear message: {error}"
    v = variant("f32", d=16, rope=rotation(width=16, positions="BN"))

    def outside(arrays):
        arrays["q_positions"][:, ::2] = -(2**31)
        arrays["k_positions"][:, ::2] = 2**62

    return run_and_compare(runner, v, sizes(2, 7, 9), outside)


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
    return f"the decode step differs from prefill by {difference}" if difference > 2**-8 else None


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--run", required=True, help="attnfuse-run")
    parser.add_argument("--out", required=True)
    parser.add_argument("--device", default="cpu")
    parser.add_argument("--only", default="", help="substring of the traps' names")
    options = parser.parse_args()
    runner = harness.Harness(options.run, options.device, options.out)
    failed = 0
    selected = [t for t in TRAPS if options.only in t.__name__]
    for test in selected:
        try:
            wrong = test(runner)
        except RuntimeError as error:
            wrong = str(error)
        failed += bool(wrong)
        print(f"{'FAIL' if wrong else 'pass'} {test.__name__}{': ' + wrong if wrong else ''}", flush=True)
    return failed != 0 or not selected


if __name__ == "__main__":
    sys.exit(main())
