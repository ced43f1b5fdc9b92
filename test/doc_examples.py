#!/usr/bin/env python3
"""Prints the examples in TableGen descriptions as MLIR with FileCheck lines.

usage: doc_examples.py FILE.td...

Each ```mlir block of an op becomes a function whose arguments are the values
that the example uses without defining them; their types are read from the
example. Each attribute that a description quotes becomes an attribute of a
function. An op without an example is an error.
"""

import re
import sys

# Operands whose type is fixed by the op and so is not written.
IMPLIED = [(re.compile(r"\boffset\s*\(?\s*(%\w+)"), "i64")]
IMPLIED_BY_OP = {"attnfuse.alibi_slope": "index"}


def split_top_level(text):
    """Splits at the commas that are outside all brackets."""
    parts, depth, current = [], 0, ""
    for char in text:
        depth += {"(": 1, "<": 1, "[": 1, ")": -1, ">": -1, "]": -1}.get(char, 0)
        if char == "," and depth == 0:
            parts.append(current.strip())
            current = ""
        else:
            current += char
    return parts + [current.strip()]


def statements(block):
    """The statements of an example: a new one starts where a value is named
    outside all braces."""
    result, depth = [], 0
    for line in block.splitlines():
        if depth == 0 and re.match(r"\s*%\w+.*=", line):
            result.append("")
        depth += line.count("{") - line.count("}")
        result[-1] += line + "\n"
    return result


def operand_types(statement):
    """Name to type of the values that a statement uses."""
    body = statement.split("=", 1)[1]
    op = re.search(r"attnfuse\.\w+", body).group()
    # A region's values are its own.
    region = re.search(r"\{\s*\^bb0.*\}", body, re.S)
    if region:
        body = body[: region.start()] + body[region.end() :]
    # The types follow the last colon that is outside brackets.
    depth, cut = 0, len(body)
    for index, char in enumerate(body):
        depth += {"(": 1, "{": 1, ")": -1, "}": -1}.get(char, 0)
        if char == ":" and depth == 0:
            cut = index
    head, tail = body[:cut], body[cut + 1 :]

    types = dict(re.findall(r"(%\w+)\s*:\s*([^)]+)", head))
    for pattern, implied in IMPLIED:
        types.update({name: implied for name in pattern.findall(head)})
    names = [n for n in re.findall(r"%\w+", head) if n not in types]
    if op in IMPLIED_BY_OP:
        return {name: IMPLIED_BY_OP[op] for name in names}
    listed = re.sub(r"\s+", " ", tail.split("->")[0]).strip()
    if listed.startswith("("):
        listed = listed[1:-1]
    types.update(zip(names, split_top_level(listed)))
    return types


def print_op_examples(name, description):
    blocks = re.findall(r"```mlir\n(.*?)```", description, re.S)
    if not blocks and "Example: see" not in description:
        sys.exit(f"{name} has no example")
    for index, block in enumerate(blocks):
        arguments, defined = {}, set()
        for statement in statements(block):
            for value, type in operand_types(statement).items():
                if value not in defined:
                    arguments.setdefault(value, type)
            defined.update(re.findall(r"%\w+", statement.split("=", 1)[0]))
        # The ops of a block are independent: a name may come twice.
        signature = ", ".join(f"{v}: {t}" for v, t in arguments.items())
        print(f"// CHECK-LABEL: func @{name}_{index}")
        for op in re.findall(r"= (attnfuse\.\w+)", block):
            print(f"// CHECK: {op} ")
        print(f"func.func @{name}_{index}({signature}) {{\n{block.rstrip()}\n  return\n}}\n")


def print_attribute_examples(name, description):
    for index, attribute in enumerate(re.findall(r"`(#attnfuse[^`]*)`", description)):
        attribute = re.sub(r"\s+", " ", attribute)
        print(f"// CHECK: {attribute}")
        print(f"func.func private @{name}_{index}() attributes {{a = {attribute}}}\n")


def main():
    for path in sys.argv[1:]:
        with open(path, encoding="utf-8") as file:
            text = file.read()
        definitions = re.split(r"^def AttnFuse_", text, flags=re.M)[1:]
        for definition in definitions:
            name = re.match(r"\w+", definition).group()
            found = re.search(r"let description = \[\{(.*?)\}\];", definition, re.S)
            if name.endswith("Op"):
                if not found:
                    sys.exit(f"{name} has no description")
                print_op_examples(name, found.group(1))
            elif name.endswith("Attr") and found:
                print_attribute_examples(name, found.group(1))


main()
