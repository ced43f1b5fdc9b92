"""Text mutations of MLIR, and random chains of building blocks."""

import re

NUMBERS = ["0", "1", "-1", "2", "7", "8", "255", "256", "257", "2147483647", "2147483648",
           "4294967296", "9223372036854775807", "-9223372036854775808", "18446744073709551616"]
FLOATS = ["0.0", "-0.0", "1.0e308", "1.0e-320", "0x7FF0000000000000", "0x7FF8000000000000", "-3.5"]
TYPES = ["f16", "bf16", "f32", "f64", "i1", "i32", "i64", "index", "f8E4M3FN", "complex<f32>", "none",
         "tensor<f32>", "tensor<*xf16>", "tensor<?xi32>", "tensor<1x2x3x4xf16>", "memref<4xf32>",
         "vector<4xf32>", "tensor<0x0x0x0xf16>", "!llvm.ptr", "(i32) -> i32"]
WORDS = ["half", "interleaved", "top_left", "bottom_right", "sum", "length", "none", "softmax",
         "relu_sum", "relu_length", "relu_none", "left", "right", "offset", "positions", "slopes",
         "scale", "schedule", "bands", "blocks", "rotate_q", "rotate_k", "score", "operands", "dense<0>",
         "dense<[]>", "unit", "@f", "loc(unknown)", "{", "}", "(", ")", "[", "]", "<", ">", ",", ":", "->", "="]
TOKEN = re.compile(r'"[^"\n]*"|[%#@^!]?[A-Za-z_][\w.$-]*|-?\d+\.\d+(?:e[+-]?\d+)?|-?\d+|->|\S|\s+')
NUMBER = re.compile(r"-?\d+$")


def tokens(text):
    return TOKEN.findall(text)


def place(rng, items):
    return rng.randrange(len(items)) if items else 0


def truncate(rng, text, _):
    return text[:place(rng, text)]


def flip_bytes(rng, text, _):
    data = bytearray(text.encode(errors="surrogateescape"))
    for _ in range(rng.randint(1, 4)):
        if data:
            data[place(rng, data)] = rng.choice(b"\0\n\"{}<>()%#!x?0\x7f\xff")
    return data.decode(errors="surrogateescape")


def drop_tokens(rng, text, _):
    parts = tokens(text)
    start = place(rng, parts)
    del parts[start:start + rng.choice([1, 1, 2, 5, 20])]
    return "".join(parts)


def repeat_tokens(rng, text, _):
    parts = tokens(text)
    start = place(rng, parts)
    piece = parts[start:start + rng.choice([1, 2, 5, 20])]
    return "".join(parts[:start] + piece * rng.choice([2, 2, 3, 50]) + parts[start:])


def swap_tokens(rng, text, _):
    parts = tokens(text)
    words = [i for i, part in enumerate(parts) if not part.isspace()]
    if len(words) > 1:
        i, j = rng.sample(words, 2)
        parts[i], parts[j] = parts[j], parts[i]
    return "".join(parts)


def replace_number(rng, text, _):
    parts = tokens(text)
    places = [i for i, part in enumerate(parts) if NUMBER.match(part) or re.match(r"x\d", part)]
    if places:
        i = rng.choice(places)
        parts[i] = ("x" if parts[i].startswith("x") else "") + rng.choice(NUMBERS)
    return "".join(parts)


def replace_dimension(rng, text, _):
    """Another size somewhere inside a shape."""
    places = [m.span() for m in re.finditer(r"(?<=[<x])(?:\d+|\?)(?=x)", text)]
    if not places:
        return text
    start, end = rng.choice(places)
    return text[:start] + rng.choice(["?", "0", "1", "2", "3", "8", "12", "64", "100000"]) + text[end:]


def replace_everywhere(rng, text, _):
    """One spelling replaced throughout, so that types still agree with each other."""
    kinds = [r"tensor<[^<>]*>", r"\b(?:f16|bf16|f32|i32|i64)\b", r"(?<=x)\d+(?=x)"]
    found = sorted(set(re.findall(rng.choice(kinds), text)))
    if not found:
        return text
    old = rng.choice(found)
    new = rng.choice(found + (NUMBERS[:9] if old.isdigit() else TYPES))
    return re.sub(r"(?<![\w])" + re.escape(old) + r"(?![\w])" if not old.isdigit() else rf"(?<=x){old}(?=x)",
                  lambda _: new, text)


def replace_word(rng, text, _):
    parts = tokens(text)
    if parts:
        parts[place(rng, parts)] = rng.choice(WORDS + TYPES + FLOATS)
    return "".join(parts)


def replace_value(rng, text, _):
    values = sorted(set(re.findall(r"%[\w#]+", text)))
    uses = [m.span() for m in re.finditer(r"%[\w#]+", text)]
    if not uses:
        return text
    start, end = rng.choice(uses)
    return text[:start] + rng.choice(values) + text[end:]


def drop_line(rng, text, _):
    lines = text.split("\n")
    start = place(rng, lines)
    del lines[start:start + rng.choice([1, 1, 2, 4])]
    return "\n".join(lines)


def splice_line(rng, text, corpus):
    lines = text.split("\n")
    donor = rng.choice(corpus).split("\n")
    start = place(rng, donor)
    lines[place(rng, lines):0] = donor[start:start + rng.choice([1, 1, 2, 6])]
    return "\n".join(lines)


def nest(rng, text, _):
    opening, closing = rng.choice([("(", ")"), ("[", "]"), ("{", "}"), ("<", ">"), ("module {\n", "\n}")])
    depth = rng.choice([1, 3, 200])
    return opening * depth + text + closing * depth


# Those that keep most of the text valid come more often: they reach the passes.
MUTATIONS = [truncate, flip_bytes, drop_tokens, repeat_tokens, swap_tokens, drop_line, splice_line, nest,
             replace_word, replace_word] + 3 * [replace_number, replace_value] + 5 * [replace_dimension, replace_everywhere]


def mutate(rng, text, corpus):
    for _ in range(rng.choice([1, 1, 1, 2, 3])):
        text = rng.choice(MUTATIONS)(rng, text, corpus)
    return text


def random_chain(rng):
    """A function of random building blocks, right in syntax and often valid."""
    def number(*usual):
        """Mostly a usual number, now and then one from the edges."""
        return rng.choice(usual) if rng.random() < 0.93 else rng.choice(NUMBERS[:14])

    def size(*usual):
        return str(rng.choice(usual + ("?",) * 2 + (1, 3)) if rng.random() < 0.97 else 0)

    def shape(*sizes):
        if rng.random() < 0.02:
            sizes = sizes[:-1] if rng.random() < 0.5 else sizes + ("2",)
        return "x".join(sizes)

    element = rng.choice(["f16", "bf16", "f32"])
    batch, heads, nq, nkv = size(2), size(4, 12), size(17, 64), size(17, 64)
    kv_heads = heads if rng.random() < 0.8 else size(2, 5)
    dim, value_dim = str(number(8, 16, 64, 72, 128, 256)), str(number(8, 64, 80, 256))
    q = f"tensor<{shape(batch, heads, nq, dim)}x{element}>"
    k = f"tensor<{shape(batch, kv_heads, nkv, dim)}x{element}>"
    v = f"tensor<{shape(batch, kv_heads, nkv, value_dim)}x{element}>"
    s = f"tensor<{batch}x{heads}x{nq}x{nkv}xf32>"
    o = f"tensor<{batch}x{heads}x{nq}x{value_dim}x{element}>"
    half = max(abs(int(dim)) // 2, 1) % 1000
    table = f"tensor<{rng.choice(['?', 512])}x{rng.choice([4, half, half])}x{rng.choice([element, 'f32'])}>"
    arguments = {"%q": q, "%k": k, "%v": v, "%cos": table, "%sin": table, "%n": "i64"}
    lines = []

    def align():
        return rng.choice(["top_left", "bottom_right"])

    def argument(kind):
        name = f"%a{len(arguments)}"
        arguments[name] = kind
        return name, kind

    def rope(name, kind):
        new = f"{name}{len(lines)}"
        length = nq if name.startswith("%q") else nkv
        offset = rng.choice(["", "", " offset(%n)"])
        if not offset and rng.random() < 0.3:
            offset = " positions(%s : %s)" % argument(rng.choice([f"tensor<{length}xi32>", f"tensor<{batch}x{length}xi64>"]))
        constant = rng.choice(["", "", " {static_offset = %s : i64}" % number(0, 1, 5, 100)])
        lines.append(f"{new} = attnfuse.rope {name}, %cos, %sin {rng.choice(['half', 'interleaved'])}{offset}{constant}"
                     f" : {kind}, {table}, {table}")
        return new

    query, key = "%q", "%k"
    for _ in range(rng.choice([0, 0, 1, 1, 1, 1, 2])):
        query = rope(query, q)
    for _ in range(rng.choice([0, 0, 1, 1, 1, 1, 2])):
        key = rope(key, k)
    scale = rng.choice(["", "", " {scale = %s : f64}" % (rng.choice(FLOATS) if rng.random() < 0.1 else "0.25")])
    lines.append(f"%s = attnfuse.scaled_dot_product {query}, {key}{scale} : {q}, {k} -> {s}")
    current = "%s"
    for step in range(rng.choice([0, 1, 2, 3, 8])):
        new = f"%s{step}"
        kind = rng.choice(["full", "causal", "sliding_window", "block_sparse", "alibi", "additive_bias"])
        if kind == "full":
            line = f"{current} : {s}"
        elif kind == "causal":
            line = f"{current} {align()} : {s}"
        elif kind == "sliding_window":
            bounds = [f"{side} = {number(0, 1, 16, 100)} : i64" for side in ("left", "right") if rng.random() < 0.7]
            line = f"{current} {align()} {{{', '.join(bounds)}}} : {s}"
        elif kind == "block_sparse":
            rows, rows_type = argument(rng.choice(["tensor<?xi32>", "tensor<?xi32>", f"tensor<{batch}x{heads}x?xi32>"]))
            columns, columns_type = argument("tensor<?xi32>")
            blocks = f"{{query_block = {number(16, 32, 64, 128)} : i64, key_block = {number(16, 64, 80)} : i64}}"
            line = f"{current}, {rows}, {columns} {blocks} : {s}, {rows_type}, {columns_type}"
        elif kind == "alibi":
            slopes = rng.choice(["", " slopes(%s : %s)" % argument(rng.choice([f"tensor<{heads}xf32>", f"tensor<{batch}x{heads}xf32>"]))])
            line = f"{current} {align()}{slopes} : {s}"
        else:
            bias = rng.choice([f"{nq}x{nkv}x", f"1x{heads}x{nq}x{nkv}x", f"{batch}x1x1x{nkv}x", "", "?x?x", "1x"])
            line = "%s, %s : %s, %s" % (current, *(lambda a: (a[0], s, a[1]))(argument(f"tensor<{bias}{rng.choice(['f16', 'bf16', 'f32'])}>")))
        lines.append(f"{new} = attnfuse.{kind} {line}")
        current = new
    results = [o]
    if rng.random() < 0.7:
        lse = rng.random() < 0.3
        lines.append(f"%p{', %lse' if lse else ''} = attnfuse.softmax {current} : {s}" + (f", tensor<{batch}x{heads}x{nq}xf32>" if lse else ""))
        if lse:
            results.append(f"tensor<{batch}x{heads}x{nq}xf32>")
    else:
        lines.append(f"%p = attnfuse.relu_attention {current} {rng.choice(['sum', 'length', 'none'])} : {s}")
    lines.append(f"%o = attnfuse.weighted_sum %p, %v : {s}, {v} -> {o}")
    lines.append(f"return %o{', %lse' if len(results) > 1 else ''} : {', '.join(results)}")
    signature = ", ".join(f"{name}: {kind}" for name, kind in arguments.items())
    body = "\n".join("  " + line for line in lines)
    return f"func.func @f({signature}) -> ({', '.join(results)}) {{\n{body}\n}}\n"
