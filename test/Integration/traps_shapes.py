"""Traps: lengths, windows, heads, head sizes, and sizes of all kinds."""

import os

import numpy as np

import harness
import inputs
import matrix
import oracle
from traplib import alibi, bias, causal, first_wrong, float_type, gpu_trap, run, run_and_compare, sizes, table_rows, trap, variant, window


@trap
def causal_with_different_lengths(runner):
    for align in ("top_left", "bottom_right"):
        v = variant("f16", chain=[causal(align)])
        for nq, nkv in ((2, 5), (5, 2), (1, 8), (7, 300), (300, 7)):
            arrays, output, lse = run(runner, v, sizes(1, nq, nkv))
            wrong = harness.compare_with_oracle(runner, v, arrays, output, lse)
            if wrong:
                return f"{align} {nq}x{nkv}: {wrong}"
            above = nq - nkv if align == "bottom_right" else 0
            if above > 0 and not (lse[:, :, :above] == -np.inf).all():
                return f"{align} {nq}x{nkv}: the rows before the first key are not empty"


@trap
def window_sizes_around_the_length(runner):
    element_type = float_type(runner)
    unit = oracle.ROUNDOFF[element_type]
    for n in (17, 130, 200) if runner.on_gpu else (17, 130):
        # On the GPU head sizes are multiples of 8.
        dv = -(-n // 8) * 8 if runner.on_gpu else n

        def one_hot(arrays):
            arrays["q"][:] = 0
            arrays["v"][:] = np.eye(n, dv)

        plain = variant(element_type, hq=1, dv=dv, chain=[causal()])
        whole = run(runner, plain, sizes(1, n, n), one_hot)[1]
        for size in (1, 2, 64, n - 1, n, n + 1):
            v = variant(element_type, hq=1, dv=dv, chain=[causal(), window(size - 1, None)])
            weights = run(runner, v, sizes(1, n, n), one_hot)[1][0, 0]
            i, j = np.mgrid[:n, :dv]
            seen = (j <= i) & (j > i - size)
            expected = seen / np.minimum(i + 1, size)
            wrong = harness.mismatch(weights, expected, expected * (2.0**-22 + 1.01 * unit))
            if wrong:
                return f"N={n} W={size}: {wrong}"
            if size >= n and (weights != whole[0, 0]).any():
                return f"N={n} W={size}: not the same as causal alone"


@trap
def window_below_one(runner):
    v = variant(float_type(runner), chain=[window(-1, 0)])
    result = runner.invoke(matrix.function_text(v), "--random=1", "--dims=B=1,Nq=4,Nkv=4")
    if result.returncode == 0 or "-1" not in result.stderr:
        return f"a negative bound was accepted: {result.stderr}"


@trap
def lengths_below_a_tile(runner):
    element_type = float_type(runner)
    short = variant(element_type, d=16, chain=[causal()])
    lengths = list(range(1, 18)) + ([31, 32, 33, 63, 64, 65, 127, 128, 129] if runner.on_gpu else [])
    decode = variant("f16", hq=32, d=128)
    return first_wrong([
        runner.check(matrix.function_text(short), [sizes(1, n, n) for n in lengths]),
        runner.check(matrix.function_text(decode), [sizes(4, 1, 20)]),
        run_and_compare(runner, variant(element_type), sizes(2, 5, 1), lambda arrays: arrays["q"].__imul__(3)),
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


@trap
def groups_of_any_size(runner):
    v = variant("f16", d=16, dynamic_heads=True, chain=[causal()])
    dims = []
    for hq, hkv in ((2, 2), (3, 1), (9, 3), (10, 2), (12, 2), (7, 1), (18, 2), (12, 1), (14, 1), (16, 1), (28, 4)):
        dims += [dict(sizes(1, n, 100), Hq=hq, Hkv=hkv) for n in (1, 5, 100)]
        if runner.on_gpu:
            dims.append(dict(sizes(2, 150, 200), Hq=hq, Hkv=hkv))
    dims.append(dict(sizes(1, 1, 4096), Hq=12, Hkv=2))
    static = variant("bf16", hq=9, hkv=3, d=16)
    return first_wrong([
        runner.check(matrix.function_text(v), dims),
        run_and_compare(runner, v, dict(sizes(2, 5, 9), Hq=2, Hkv=2)),
        run_and_compare(runner, static, sizes(2, 5, 9)),
    ])


@trap
def prefill_and_decode_agree_on_heads(runner):
    v = variant(float_type(runner), hq=15, hkv=3, chain=[causal()])
    for n in (20, 64, 201) if runner.on_gpu else (20,):
        arrays, whole, whole_lse = run(runner, v, sizes(1, n, n))
        step = dict(arrays, q=arrays["q"][:, :, -1:])
        last, lse = runner.call(v, step, {})
        if (last != whole[:, :, -1:]).any() or (lse != whole_lse[:, :, -1:]).any():
            return f"N={n}: the last row of a prefill differs from the decode step"


@trap
def head_sizes_of_any_kind(runner):
    any_size = [(d, d) for d in (8, 40, 72, 80, 96, 112, 192)] + [(192, 128), (8, 16)]
    if runner.on_gpu:
        pairs = any_size + [(16, 16), (24, 24), (256, 256), (64, 8), (8, 64), (128, 192)]
        compared = [(8, 8), (72, 72), (192, 128)]
    else:
        pairs = any_size + [(1, 1), (6, 6), (31, 31), (64, 1)]
        compared = [(1, 1), (31, 31), (192, 128)]
    f32 = float_type(runner, "bf16")
    text = "\n".join(
        matrix.function_text(variant(f32 if d % 16 else "f16", d=d, dv=dv, name=f"d{d}_{dv}")) for d, dv in pairs
    )
    lengths = [sizes(2, 33, 17)] + ([sizes(1, 130, 150)] if runner.on_gpu else [])
    return first_wrong(
        [runner.check(text, lengths)]
        + [run_and_compare(runner, variant(f32, d=d, dv=dv), sizes(1, 7, 9)) for d, dv in compared]
    )


@gpu_trap
def what_a_gpu_refuses(runner):
    """A message that names the limit and the value."""
    cases = [
        (variant("f32"), ["f16 or bf16", "f32"]),
        (variant("f16", d=12), ["multiple of 8", "12"]),
        (variant("f16", dv=264), ["256", "264"]),
    ]
    for v, words in cases:
        result = runner.invoke(matrix.function_text(v), "--random=1", "--dims=B=1,Nq=4,Nkv=4")
        if result.returncode != 1 or any(word not in result.stderr for word in words):
            return f"{v['type']} {v['d']} {v['dv']}: exit code {result.returncode}: {result.stderr}"


@trap
def more_heads_than_a_launch_grid_has(runner):
    v = variant("f16", d=16, dynamic_heads=True)
    dims = [dict(sizes(b, 4, 4), Hq=h, Hkv=h) for b, h in ((65536, 1), (1, 65536), (65536, 2))]
    return runner.check(matrix.function_text(v), dims)


@gpu_trap
def more_tiles_than_blocks(runner):
    """Blocks compute several tiles each, of more heads than the cache holds, with heads that share a tile and
    without, and with every way of rotating q. Some heads against the oracle, all others for what is left of the
    poison."""
    rope = {"pairing": "half", "width": 128, "table_type": "f32", "q_offset": 0, "k_offset": 0, "sides": "qk",
            "offset": False, "positions": None}
    partial = dict(rope, pairing="interleaved", width=64, table_type="bf16", q_offset=3, offset=True)
    placed = dict(rope, width=96, sides="q", positions="BN")
    cases = [  # heads, query heads of a key head, head size, masks, rotation, lengths
        (90, 1, 64, [causal()], None, 2), (50, 1, 128, [causal("top_left")], rope, 2), (50, 1, 128, [], rope, 2),
        (90, 1, 64, [window(300, 0)], None, 2), (90, 1, 32, [alibi(), causal()], None, 2),
        (96, 4, 128, [causal()], rope, 2), (96, 4, 128, [], partial, 1), (96, 8, 96, [window(200, 40)], placed, 1),
        (96, 2, 128, [causal()], rope, 2), (96, 4, 128, [causal("top_left"), alibi()], None, 1),
        (96, 1, 96, [causal()], None, 2),
        (96, 4, 64, [causal()], dict(rope, width=64), 1), (96, 4, 192, [], dict(rope, width=192), 1),
    ]
    with table_rows(1300):
        for heads, group, d, chain, turned, count in cases:
            for nq, nkv in ((1100, 1100), (1190, 1000))[:count]:
                v = variant("f16", hq=heads, hkv=heads // group, d=d, chain=chain, rope=turned)
                arrays, output, lse = run(runner, v, sizes(2, nq, nkv))
                where = f"{heads} heads of {d}, {group} of a key head, {[op['op'] for op in chain]}, {nq}x{nkv}"
                if not np.isfinite(output).all():
                    return f"{where}: rows were not written"
                for batch, head in ((0, 0), (0, heads - 1), (1, heads // 2 + 1), (1, heads - 1)):
                    place = np.s_[batch : batch + 1, head : head + 1]
                    key_place = np.s_[batch : batch + 1, head // group : head // group + 1]
                    part = dict(arrays, q=arrays["q"][place], k=arrays["k"][key_place], v=arrays["v"][key_place])
                    for name in ("q_positions", "k_positions"):
                        if name in part:
                            part[name] = part[name][batch : batch + 1]
                    alone = dict(v, hq=1, hkv=1)
                    part["slopes"] = oracle.standard_slopes(heads)[head : head + 1]
                    wrong = harness.compare_with_oracle(runner, alone, part, output[place], lse[place])
                    if wrong:
                        return f"{where}, head {head} of batch {batch}: {wrong}"


def long_window(runner):
    """A million keys need no memory for scores. The last rows against the oracle."""
    n, rows, left = 1 << 20, 70, 100
    v = variant("bf16", hq=1, chain=[window(left, 0)])
    arrays, output, lse = run(runner, v, sizes(1, n, n))
    tail = {"q": arrays["q"][:, :, -rows:], "k": arrays["k"][:, :, -rows - left :], "v": arrays["v"][:, :, -rows - left :]}
    return harness.compare_with_oracle(runner, v, tail, output[:, :, -rows:], lse[:, :, -rows:])


@trap
def scores_beyond_the_memory(runner):
    """An error on the CPU, not a crash: the scores of this call would need 64 TiB."""
    if runner.on_gpu:
        return long_window(runner)
    v = variant("f32", hq=1, d=1)
    text = matrix.function_text(v)
    result = runner.invoke(text, "--random=1", "--dims=B=1,Nq=4194304,Nkv=4194304")
    if result.returncode not in (1, 2) or "memory" not in result.stderr:
        return f"exit code {result.returncode}: {result.stderr}"


@gpu_trap
def bias_beyond_32_bits(runner):
    """The last head of the last batch entry lies beyond 2^31 elements of the bias."""
    n, heads, batch = 16400, 3, 3
    if os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE") < 48 << 30:
        print("bias_beyond_32_bits is not run: it needs 48 GB of memory")
        return None
    v = variant("f16", hq=heads, d=16, chain=[bias("bhqk", "f16")])
    small = inputs.make_inputs(v, sizes(batch, n, 1), 5)
    rng = np.random.default_rng(6)
    arrays = {"q": small["q"]}
    for name in "kv":
        arrays[name] = inputs.round_values(rng.standard_normal((batch, heads, n, 16)), "f16")
    # A prime period: 2^31 or 2^32 elements or bytes too early there are other numbers.
    pattern = rng.standard_normal(1000003).astype(np.float16)
    path = runner.directory / "bias.npy"
    try:
        whole = np.lib.format.open_memmap(path, "w+", np.float16, (batch, heads, n, n))
        flat = whole.reshape(-1)
        for start in range(0, flat.size, pattern.size):
            flat[start : start + pattern.size] = pattern[: flat.size - start]
        whole.flush()
        output, lse = runner.call(v, dict(arrays, bias=path), {})
        one = dict(v, hq=1, hkv=1)
        rows = [0, 1, 63, 64, 8191, n - 1]
        for b, h in ((0, 0), (1, 2), (batch - 1, heads - 1)):
            part = {"q": arrays["q"][b : b + 1, h : h + 1, rows], "bias": np.array(whole[b : b + 1, h : h + 1, rows])}
            part.update({name: arrays[name][b : b + 1, h : h + 1] for name in "kv"})
            wrong = harness.compare_with_oracle(
                runner, one, part, output[b : b + 1, h : h + 1, rows], lse[b : b + 1, h : h + 1, rows]
            )
            if wrong:
                return f"batch entry {b}, head {h}: {wrong}"
    finally:
        path.unlink(missing_ok=True)
