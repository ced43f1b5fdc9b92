"""Traps: empty rows, masks, infinities, and what must not be seen."""

import numpy as np

import harness
import inputs
import oracle
from traplib import alibi, bias, causal, first_wrong, float_type, run, run_and_compare, sizes, trap, variant


@trap
def fully_masked_row(runner):
    def mask_rows(*rows):
        def change(arrays):
            arrays["bias"][1, 0, rows, :] = -np.inf

        return change

    def mask_all(arrays):
        arrays["bias"][:] = -np.inf

    cases = [
        (sizes(2, 4, 4), mask_rows(2), np.s_[1, 0, [2]]),
        (sizes(1, 1, 1), mask_all, np.s_[0, 0, :]),
    ]
    if runner.on_gpu:
        cases.append((sizes(2, 150, 200), mask_rows(0, 15, 64, 149), np.s_[1, 0, [0, 15, 64, 149]]))
        cases.append((sizes(1, 130, 260), mask_all, np.s_[0, 0, :]))
    for element_type in (float_type(runner), "bf16"):
        for norm in ("softmax", "sum", "length", "none"):
            v = variant(element_type, hq=1, chain=[bias("bhqk")], norm=norm)
            for dims, change, rows in cases:
                arrays, output, lse = run(runner, v, dims, change)
                wrong = harness.compare_with_oracle(runner, v, arrays, output, lse)
                if wrong:
                    return f"{element_type} {norm} {dims}: {wrong}"
                if (output[rows] != 0).any() or (lse is not None and (lse[rows] != -np.inf).any()):
                    return f"{element_type} {norm} {dims}: an empty row is not 0 and -inf"


@trap
def a_masked_start_of_each_row(runner):
    """The first tiles of a row have no visible key, the later ones do."""

    def mask(arrays):
        arrays["bias"][:, : arrays["bias"].shape[1] * 3 // 4] = -np.inf

    for norm in ("softmax", "sum", "length"):
        for dims in [sizes(1, 9, 70)] + ([sizes(2, 140, 290)] if runner.on_gpu else []):
            wrong = run_and_compare(runner, variant("f16", chain=[bias("qk")], norm=norm), dims, mask)
            if wrong:
                return wrong


@trap
def mask_of_the_lowest_finite_number(runner):
    lowest_of = {"f16": -65504.0, "bf16": -3.3895313892515355e38, "f32": -3.4028234663852886e38}
    for bias_type, lowest in lowest_of.items():
        element_type = "bf16" if runner.on_gpu and bias_type == "f32" else bias_type
        v = variant(element_type, hq=1, chain=[bias("qk", bias_type)])

        def fill(arrays):
            arrays["bias"][:] = np.where(np.isinf(arrays["bias"]), 0, arrays["bias"])
            arrays["bias"][3, :] = lowest
            # And where it hides keys that are far from the row's maximum.
            arrays["bias"][4, ::2] = lowest

        arrays, output, lse = run(runner, v, sizes(1, 5, 393), fill)
        if not np.isfinite(output).all() or not np.isfinite(lse).all():
            return f"{bias_type}: a finite bias masked a row or overflowed"
        if bias_type == "f16":
            # The scores still differ by what f32 keeps beside 65504.
            wrong = harness.compare_with_oracle(runner, v, arrays, output, lse)
        else:
            mean = arrays["v"].astype(np.float64).mean(axis=2)
            wrong = harness.mismatch(output[:, :, 3], mean, 0 * mean + 2 * oracle.ROUNDOFF[element_type] + 1e-6)
        if wrong:
            return f"{bias_type}: {wrong}"


@trap
def several_biases(runner):
    """All of 16 bits, which pipelined kernels load in tiles where strides allow it, in any order and of any
    shape: rows that one hides, or the others, or only all of them together."""
    shapes = [("bhqk", "b11k"), ("b11k", "1hqk"), ("11qk", "bh1k"), ("b1qk", "1h1k", "bhqk"), ("b11k", "1hqk", "11qk")]
    lengths = [(5, 70)] + ([(70, 392), (200, 512), (130, 133)] if runner.on_gpu else [])
    for number, shape in enumerate(shapes):
        element_type = ("f16", "bf16")[number % 2]
        chain = [bias(s, ("f16", "bf16")[(number + n) // 2 % 2], f"bias{n}") for n, s in enumerate(shape)]
        for extra in ([], [causal()]):
            for norm in ("softmax", "sum"):
                d = (32, 64, 128)[number % 3]
                v = variant(element_type, hq=2, d=d, chain=chain[:1] + extra + chain[1:], norm=norm)

                def fill(arrays):
                    for n in range(len(shape)):
                        rows = arrays[f"bias{n}"].reshape(-1, arrays[f"bias{n}"].shape[-1])
                        rows[n % len(rows)] = -np.inf
                        # Together they leave nothing of a row.
                        rows[-1, n :: len(shape)] = -np.inf

                for nq, nkv in lengths:
                    wrong = run_and_compare(runner, v, sizes(2, nq, nkv), fill)
                    if wrong:
                        return f"{element_type} {shape} {norm} {nq}x{nkv}: {wrong}"


@trap
def hidden_and_lowest_biases_in_tiles(runner):
    """Rows of 16-bit biases of four dimensions, which pipelined kernels load in tiles: hidden keys beside
    the lowest finite number, over whole and ragged tiles."""
    lowest_of = {"f16": -65504.0, "bf16": -3.3895313892515355e38}
    lengths = [(5, 70)] + ([(70, 393), (200, 512)] if runner.on_gpu else [])
    for element_type, lowest in lowest_of.items():
        for shape in ("bhqk", "b11k"):
            for nq, nkv in lengths:
                v = variant(element_type, hq=1, chain=[bias(shape, element_type)])

                def fill(arrays):
                    # By row or, of a bias of each key, by batch entry.
                    rows = arrays["bias"].reshape(-1, nkv)
                    rows[:] = np.where(np.isinf(rows), 0, rows)
                    rows[0] = -np.inf
                    rows[1] = lowest
                    if shape == "bhqk":
                        rows[2, ::2], rows[2, 1::2] = -np.inf, lowest
                        rows[3, : nkv - 1], rows[3, nkv - 1 :] = -np.inf, lowest
                        rows[4, ::3] = lowest
                        rows[4, 1::3] = -np.inf

                arrays, output, lse = run(runner, v, sizes(2, nq, nkv), fill)
                seen = arrays["bias"] > -np.inf
                values = arrays["v"].astype(np.float64)[:, 0]
                weights = np.broadcast_to(seen[:, 0], (2, nq, nkv)).astype(np.float64)
                bound = 2 * oracle.ROUNDOFF[element_type] + 1e-6
                where = f"{element_type} {shape} {nq}x{nkv}"
                rows = {(0, 0): 0, (0, 1): 1, (0, 2): 1, (0, 3): 1} if shape == "bhqk" else {(0, 0): 0, (1, 0): 1}
                for (b, i), any_visible in rows.items():
                    if not any_visible:
                        if (output[b, 0, i] != 0).any() or lse[b, 0, i] != -np.inf:
                            return f"{where}: row {i} is not empty"
                        continue
                    if not np.isfinite(lse[b, 0, i]):
                        return f"{where}: finite biases masked row {i}"
                    if element_type == "bf16":
                        mean = weights[b, i] @ values[b] / weights[b, i].sum()
                        wrong = harness.mismatch(output[b, 0, i], mean, 0 * mean + bound)
                        if wrong:
                            return f"{where}: row {i}: {wrong}"
                # All other rows; in f16 the scores still differ by what f32 keeps beside 65504.
                others = np.ones((2, nq), bool)
                if element_type == "bf16":
                    others[tuple(zip(*rows))] = False
                    if shape == "b11k":
                        others[:] = False
                expected, _, error, _ = oracle.attention(v, arrays, element_type, rounds_weights=runner.on_gpu)
                wrong = harness.mismatch(output[:, 0][others], expected[:, 0][others], error[:, 0][others])
                if wrong:
                    return f"{where}: {wrong}"


@trap
def bias_shorter_than_the_keys(runner):
    v = variant(float_type(runner), chain=[bias("qk")])
    arrays = inputs.make_inputs(v, sizes(1, 128, 128), 1)
    arrays["bias"] = arrays["bias"][:, :127]
    try:
        runner.call(v, arrays, {})
    except RuntimeError as error:
        message = str(error)
        return None if "127" in message and "128" in message else f"unclear message: {message}"
    return "a bias of 127 columns was taken for 128 keys"


SOFTCAP = """
func.func @f(%q: tensor<1x2x?x16xTYPE>, %k: tensor<1x2x?x16xTYPE>, %v: tensor<1x2x?x16xTYPE>) -> tensor<1x2x?x16xTYPE> {
  %o = attnfuse.attention q(%q) k(%k) v(%v) bands [#attnfuse.band<top_left, right = 0>] softmax score {
    ^bb0(%s: f32, %b: index, %h: index, %i: index, %j: index, %nq: index, %nkv: index, %hq: index):
      %t = math.tanh %s : f32
      attnfuse.yield %t : f32
    } {scale = 0.25 : f64}
    : (tensor<1x2x?x16xTYPE>, tensor<1x2x?x16xTYPE>, tensor<1x2x?x16xTYPE>) -> tensor<1x2x?x16xTYPE>
  return %o : tensor<1x2x?x16xTYPE>
}
"""


def run_softcap(runner, arrays, element_type):
    flags = []
    for name, values in arrays.items():
        harness.save_npy(runner.directory / f"{name}.npy", values, element_type)
        flags.append(f"--input={name}={runner.directory / name}.npy")
    flags.append(f"--output=output={runner.directory / 'o.npy'}")
    result = runner.invoke(SOFTCAP.replace("TYPE", element_type), *flags)
    if result.returncode:
        raise RuntimeError(result.stderr)
    return harness.load_npy(runner.directory / "o.npy", element_type)


@trap
def softcap_does_not_unmask(runner):
    element_type = float_type(runner)
    unit = oracle.ROUNDOFF[element_type]
    for n in (65, 200) if runner.on_gpu else (65,):
        rng = np.random.default_rng(3)
        arrays = {name: inputs.round_values(rng.standard_normal((1, 2, n, 16)), element_type) for name in "qkv"}
        outputs = []
        for last in (0.5, -1000.0):
            arrays["v"][:, :, -1] = last
            outputs.append(run_softcap(runner, arrays, element_type))
        if (outputs[0][:, :, :-1] != outputs[1][:, :, :-1]).any():
            return f"N={n}: a row depends on a key after its own"
        scores = np.tanh(0.25 * (arrays["q"].astype(float) @ arrays["k"].astype(float).swapaxes(-1, -2)))
        scores = np.where(np.tri(n, dtype=bool), scores, -np.inf)
        weights = np.exp(scores) / np.exp(scores).sum(-1, keepdims=True)
        expected = weights @ arrays["v"].astype(float)
        wrong = harness.mismatch(outputs[1], expected, (1e-5 + 2.5 * unit) * (weights @ np.abs(arrays["v"])))
        if wrong:
            return f"N={n}: {wrong}"


@trap
def garbage_outside_of_the_visible_keys(runner):
    """NaN and infinity in keys that are masked reach no result, in any position of the
    mask among the score ops."""
    lengths = [(20, 33)] + ([(130, 150), (130, 300)] if runner.on_gpu else [])
    for norm in ("softmax", "sum", "none"):
        for chain in ([causal("top_left"), alibi(), bias("qk")], [bias("qk"), alibi(), causal("top_left")]):
            v = variant("bf16", chain=chain, norm=norm)
            for nq, nkv in lengths:
                outputs = []
                for garbage in (None, np.nan, np.inf):

                    def spoil(arrays):
                        arrays["bias"][:, nq:] = 1.0
                        if garbage is not None:
                            for name in "kv":
                                arrays[name][:, :, nq:] = garbage
                            arrays["bias"][:, nq:] = garbage

                    _, output, _ = run(runner, v, sizes(2, nq, nkv), spoil)
                    outputs.append(output)
                if any((o != outputs[0]).any() for o in outputs[1:]):
                    return f"{norm} {nq}x{nkv}: masked keys reach the result"


@trap
def infinite_bias_does_not_unmask(runner):
    """-inf on one side and +inf or NaN on the other is masked."""

    def spoil(arrays):
        arrays["k"][:, :, 5] = np.nan
        arrays["v"][:, :, 5] = np.nan
        arrays["bias"][:, 5] = -np.inf
        arrays["bias"][3, 4:] = np.inf

    v = variant(float_type(runner), chain=[causal("top_left"), bias("qk")])
    lengths = (9, 150) if runner.on_gpu else (9,)
    return first_wrong(run_and_compare(runner, v, sizes(1, n, n), spoil) for n in lengths)
