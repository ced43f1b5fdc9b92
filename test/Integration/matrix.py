"""Generates the composition matrix: every subset of the building blocks.

  matrix.py OUT_DIR [--device cpu|cuda] [--files N] [--only SUBSTRING]

writes OUT_DIR/matrix_<i>.mlir, each with many functions that all accept the same
dimensions, OUT_DIR/matrix_<i>.dims, one line of NAME=SIZE,... for every run, and
OUT_DIR/cases.json: a list of {file, function, dims: [...], variant}, where `variant`
is what oracle.py evaluates.

The subsets are {rope: none, half, interleaved} x {causal: none, top_left,
bottom_right} x {window} x {block_sparse} x {alibi} x {additive_bias} x {softmax with
lse, relu sum, relu length, relu none}. What is not part of the subset (types, head
sizes, groups, bounds, operand shapes, the order of the score ops) is drawn by a
generator with a fixed seed, so that all values of it occur in many combinations.
"""

import argparse
import itertools
import json
import pathlib
import random

# (Nq, Nkv) of the runs: one key, less than a tile, odd sizes on both sides of a tile.
LENGTHS = [
    (1, 1), (1, 130), (7, 7), (17, 33), (33, 17), (65, 130), (130, 65), (33, 33),
    (1, 20), (130, 1), (7, 65), (65, 65), (130, 130), (17, 7), (33, 130), (65, 1),
]
RUNS_PER_FILE = 3
# Few queries and many keys, which a GPU's kernels spread over many blocks.
DECODE_LENGTHS = [(1, 4100), (9, 2500), (16, 3333), (1, 2048)]
HEADS = [(2, 2), (3, 1), (6, 2), (5, 1), (7, 1), (4, 4), (10, 2), (8, 1)]
HEAD_SIZES = [16, 24, 40, 64, 80, 96, 128]
VALUE_SIZES = [None, None, 16, 32, 48, 128, 8]
BLOCKS = [(16, 16), (32, 16), (16, 32), (64, 64), (16, 64)]
TABLE_ROWS = 4224
TYPES = {"cpu": ["f16", "bf16", "f32"], "cuda": ["f16", "bf16"]}


def subsets():
    return itertools.product(
        [None, "half", "interleaved"],
        [None, "top_left", "bottom_right"],
        [False, True],
        [False, True],
        [False, True],
        [False, True],
        ["softmax", "sum", "length", "none"],
    )


def draw_rope(rng, pairing, d, element_type):
    if not pairing:
        return None
    width = rng.choice([d, d, d // 2])
    return {
        "pairing": pairing,
        "width": width,
        "table_type": rng.choice(["f32", "f32", element_type]),
        "q_offset": rng.choice([0, 0, 3]),
        "k_offset": rng.choice([0, 0, 5]),
        "sides": rng.choice(["qk", "qk", "qk", "q", "k"]),
        "offset": rng.choice([False, False, True]),
        "positions": rng.choice([None, None, None, "N", "BN"]),
    }


def draw_chain(rng, causal, window, blocks, alibi, bias, element_type):
    chain = []
    alignment = lambda: rng.choice(["top_left", "bottom_right"])
    if causal:
        chain.append({"op": "causal", "align": causal})
    if window:
        left, right = rng.choice([(0, 0), (3, 2), (16, 0), (31, 31), (None, 5), (40, None), (100, 7)])
        chain.append({"op": "sliding_window", "align": alignment(), "left": left, "right": right})
    if blocks:
        query_block, key_block = rng.choice(BLOCKS)
        chain.append({
            "op": "block_sparse", "query_block": query_block, "key_block": key_block,
            "pattern": rng.choice(["shared", "shared", "1H", "BH", "11"]),
        })
    if alibi:
        chain.append({"op": "alibi", "align": alignment(), "slopes": rng.choice([None, None, "H", "BH"])})
    if bias:
        chain.append({
            "op": "additive_bias",
            "shape": rng.choice(["qk", "11qk", "b11k", "1hqk", "h11", "k", "", "bhqk", "1q1"]),
            "type": rng.choice([element_type, "f32"]),
        })
    rng.shuffle(chain)
    return chain


def make_variant(rng, index, subset, element_type):
    rope, causal, window, blocks, alibi, bias, norm = subset
    d = rng.choice(HEAD_SIZES)
    hq, hkv = rng.choice(HEADS)
    parts = [rope or "", {"top_left": "causal_tl", "bottom_right": "causal_br"}.get(causal, "")]
    parts += [name for name, used in [("window", window), ("blocks", blocks), ("alibi", alibi), ("bias", bias)] if used]
    parts += ["softmax" if norm == "softmax" else f"relu_{norm}", element_type]
    return {
        "name": f"m{index:04}_" + "_".join(part for part in parts if part),
        "type": element_type,
        "hq": hq,
        "hkv": hkv,
        "d": d,
        "dv": rng.choice(VALUE_SIZES) or d,
        "dynamic_heads": rng.random() < 0.2,
        "scale": rng.choice([None, None, None, 0.3, 1.0]),
        "rope": draw_rope(rng, rope, d, element_type),
        "chain": draw_chain(rng, causal, window, blocks, alibi, bias, element_type),
        "norm": norm,
        "lse": norm == "softmax",
    }


#===------------------------------------------------------------------------===#
# Arguments and text
#===------------------------------------------------------------------------===#


def arguments(variant):
    """(name, element type, dimensions) of each argument, in order. A dimension is an
    integer or an expression over the names of the dimensions; () is a scalar."""
    element_type, chain = variant["type"], variant["chain"]
    hq, hkv = ("Hq", "Hkv") if variant["dynamic_heads"] else (variant["hq"], variant["hkv"])
    result = [
        ("q", element_type, ["B", hq, "Nq", variant["d"]]),
        ("k", element_type, ["B", hkv, "Nkv", variant["d"]]),
        ("v", element_type, ["B", hkv, "Nkv", variant["dv"]]),
    ]
    rope = variant["rope"]
    if rope:
        table = [TABLE_ROWS, rope["width"] // 2]
        result += [("cos", rope["table_type"], table), ("sin", rope["table_type"], table)]
        if rope["offset"]:
            result.append(("offset", "i64", None))
        for side in rope["sides"]:
            if rope["positions"] and not rope["offset"]:
                length = "Nq" if side == "q" else "Nkv"
                shape = [length] if rope["positions"] == "N" else ["B", length]
                result.append((f"{side}_positions", "i32" if side == "q" else "i64", shape))
    for op in chain:
        if op["op"] == "block_sparse":
            rows = f"ceildiv(Nq, {op['query_block']}) + 1"
            lead = {"shared": [], "1H": [1, hq], "BH": ["B", hq], "11": [1, 1]}[op["pattern"]]
            result += [("row_offsets", "i32", lead + [rows]), ("col_indices", "i32", ["nnz"])]
        elif op["op"] == "alibi" and op["slopes"]:
            result.append(("slopes", "f32", ["B", hq] if op["slopes"] == "BH" else [hq]))
        elif op["op"] == "additive_bias":
            sizes = {"b": "B", "h": hq, "q": "Nq", "k": "Nkv", "1": 1}
            result.append((op.get("name", "bias"), op["type"], [sizes[c] for c in op["shape"]]))
    return result


def tensor_type(shape, element_type):
    if shape is None:
        return element_type
    return "tensor<" + "".join(f"{d}x" if isinstance(d, int) else "?x" for d in shape) + element_type + ">"


def score_op(op, before, after, scores, types):
    """The line of one score op."""
    result, operand = f"%{after} = attnfuse.{op['op']} %{before}", ""
    if op["op"] == "causal":
        return f"{result} {op['align']} : {scores}"
    if op["op"] == "sliding_window":
        bounds = [f"{side} = {op[side]}" for side in ("left", "right") if op[side] is not None]
        return f"{result} {op['align']} {{{', '.join(bounds)}}} : {scores}"
    if op["op"] == "block_sparse":
        sizes = f"{{query_block = {op['query_block']}, key_block = {op['key_block']}}}"
        return f"{result}, %row_offsets, %col_indices {sizes} : {scores}, {types['row_offsets']}, {types['col_indices']}"
    if op["op"] == "alibi":
        operand = f" slopes(%slopes : {types['slopes']})" if op["slopes"] else ""
        return f"{result} {op['align']}{operand} : {scores}"
    name = op.get("name", "bias")
    return f"{result}, %{name} : {scores}, {types[name]}"


def function_text(variant):
    args = arguments(variant)
    types = {name: tensor_type(shape, element) for name, element, shape in args}
    hq = "?" if variant["dynamic_heads"] else variant["hq"]
    scores = f"tensor<?x{hq}x?x?xf32>"
    output = f"tensor<?x{hq}x?x{variant['dv']}x{variant['type']}>"
    lse = f"tensor<?x{hq}x?xf32>"
    results = f"({output}, {lse})" if variant["lse"] else output
    signature = ", ".join(f'%{name}: {types[name]} {{attnfuse.name = "{name}"}}' for name, _, _ in args)
    lines = [f"func.func @{variant['name']}({signature}) -> {results} {{"]

    names, rope = {"q": "q", "k": "k"}, variant["rope"]
    for side in rope["sides"] if rope else "":
        operands = " offset(%offset)" if rope["offset"] else ""
        positions = f"{side}_positions"
        if positions in types:
            operands += f" positions(%{positions} : {types[positions]})"
        static = rope[f"{side}_offset"]
        attributes = f" {{static_offset = {static} : i64}}" if static else ""
        lines.append(
            f"  %{side}r = attnfuse.rope %{side}, %cos, %sin {rope['pairing']}{operands}{attributes}"
            f" : {types[side]}, {types['cos']}, {types['sin']}"
        )
        names[side] = f"{side}r"
    scale = "" if variant["scale"] is None else f" {{scale = {variant['scale']} : f64}}"
    lines.append(
        f"  %s0 = attnfuse.scaled_dot_product %{names['q']}, %{names['k']}{scale}"
        f" : {types['q']}, {types['k']} -> {scores}"
    )
    for index, op in enumerate(variant["chain"]):
        lines.append("  " + score_op(op, f"s{index}", f"s{index + 1}", scores, types))
    last = f"%s{len(variant['chain'])}"
    if variant["norm"] == "softmax":
        lines.append(f"  %p, %lse = attnfuse.softmax {last} : {scores}, {lse}")
    else:
        lines.append(f"  %p = attnfuse.relu_attention {last} {variant['norm']} : {scores}")
    lines.append(f"  %o = attnfuse.weighted_sum %p, %v : {scores}, {types['v']} -> {output}")
    lines.append(f"  return %o, %lse : {output}, {lse}" if variant["lse"] else f"  return %o : {output}")
    return "\n".join(lines + ["}"]) + "\n"


#===------------------------------------------------------------------------===#
# Files
#===------------------------------------------------------------------------===#


def make_variants(device):
    rng = random.Random(20260913)
    variants = []
    for index, subset in enumerate(subsets()):
        # One type per subset on the CPU, where types differ in conversions only; every
        # type on a GPU, where they are different kernels.
        types = TYPES[device] if device == "cuda" else [TYPES[device][index % 3]]
        for element_type in types:
            variants.append(make_variant(rng, len(variants), subset, element_type))
    return variants


def dimensions(variant, batch, nq, nkv):
    dims = {"B": batch, "Nq": nq, "Nkv": nkv}
    if variant["dynamic_heads"]:
        dims.update(Hq=variant["hq"], Hkv=variant["hkv"])
    return dims


def split(variants, files):
    """Lists of variants per file. Functions of one file accept the same dimensions."""
    static = [v for v in variants if not v["dynamic_heads"]]
    by_heads = {}
    for variant in variants:
        if variant["dynamic_heads"]:
            by_heads.setdefault((variant["hq"], variant["hkv"]), []).append(variant)
    return [static[i::files] for i in range(files)] + [by_heads[heads] for heads in sorted(by_heads)]


def write(out, variants, files, decodes=False):
    out.mkdir(parents=True, exist_ok=True)
    cases = []
    for index, group in enumerate(split(variants, files)):
        if not group:
            continue
        lengths = [LENGTHS[(index * RUNS_PER_FILE + run) % len(LENGTHS)] for run in range(RUNS_PER_FILE)]
        if decodes:
            lengths.append(DECODE_LENGTHS[index % len(DECODE_LENGTHS)])
        runs = [dimensions(group[0], 1 + run % 2, nq, nkv) for run, (nq, nkv) in enumerate(lengths)]
        name = f"matrix_{index:02}.mlir"
        (out / name).write_text("\n".join(function_text(variant) for variant in group))
        lines = [",".join(f"{key}={size}" for key, size in dims.items()) for dims in runs]
        (out / name).with_suffix(".dims").write_text("\n".join(lines) + "\n")
        for variant in group:
            cases.append({"file": name, "function": variant["name"], "dims": runs, "variant": variant})
    (out / "cases.json").write_text(json.dumps(cases, indent=1))
    return cases


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("out", type=pathlib.Path, metavar="OUT_DIR")
    parser.add_argument("--device", choices=["cpu", "cuda"], default="cpu")
    parser.add_argument("--files", type=int, default=8)
    parser.add_argument("--only", default="", help="substring of the functions' names")
    options = parser.parse_args()
    variants = [v for v in make_variants(options.device) if options.only in v["name"]]
    cases = write(options.out, variants, options.files, decodes=options.device == "cuda")
    print(f"{len(cases)} functions, {sum(len(case['dims']) for case in cases)} runs")


if __name__ == "__main__":
    main()
