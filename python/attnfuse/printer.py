# ===-----------------------------------------------------------------------===#
# Licensed under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
# ===-----------------------------------------------------------------------===#
"""Prints a traced function as a module of the dialect."""

import math
import re

from .checks import Checks, Use
from .operands import Operand, fail
from .program import Program, function_name
from .region import LEAVES, RegionPrinter
from .symbol import describe
from .symbols import LogSumExp, Output
from .text import Printer, double_literal, quote

#: The dimension of the scores that an index runs over: a table that it alone indexes has its size.
INDEXED = {"batch": "B", "head": "Hq", "query": "Nq", "key": "Nkv"}


class FunctionPrinter(Printer):
    def __init__(self, trace, outputs):
        super().__init__()
        self.trace = trace
        for each in outputs:
            trace.own(each)
        output = next((o for o in outputs if isinstance(o, Output)), None)
        if output is None:
            got = " and ".join(map(describe, outputs))
            remedy = "; is its return missing?" if outputs[0] is None else ""
            fail(
                f"the function returns no output: expected af.softmax(s) @ v, got {got}{remedy}",
                trace.place,
            )
        self.output = output
        self.outputs = outputs
        self.weights = output.weights
        for other in outputs:
            if other is output:
                continue
            if not isinstance(other, LogSumExp) or other.weights is not self.weights:
                got = describe(other)
                fail(
                    f"the function may return the output and its log-sum-exp, got another value: {got}",
                    output.place,
                )
        if len(outputs) > 2 or len(set(map(id, outputs))) != len(outputs):
            fail("the function may return the output and its log-sum-exp, each once", output.place)
        self.has_lse = any(isinstance(o, LogSumExp) for o in outputs)
        self.product = self.weights.scores.product
        self.checks = self._make_checks()
        used = {id(use.operand) for use in self.checks.uses}
        used.update(id(r.offset.operand) for _, r in self.checks.rotations if r.offset is not None)
        self.arguments = [operand for operand in trace.operands if id(operand) in used]
        self.names = {}
        for index, operand in enumerate(self.arguments):
            plain = re.fullmatch(r"[A-Za-z_][A-Za-z0-9_.]*", operand.name, re.ASCII)
            self.names[id(operand)] = "%" + (operand.name if plain else f"arg{index}")

    # What the result depends on.

    def _find_uses(self):
        """The uses of operands, in the order that Checks wants."""
        product = self.product
        chain = (
            (product.query, "q", "Nq"),
            (product.key, "k", "Nkv"),
            (self.output.value, "v", "Nkv"),
        )
        for tensor, role, _ in chain:
            yield Use(tensor.operand, role)
        for tensor, _, length in chain:
            for rotation in tensor.rotations():
                yield Use(rotation.cos.operand, "cos", scope=rotation)
                yield Use(rotation.sin.operand, "sin", scope=rotation)
                if rotation.positions is not None:
                    positions = rotation.positions.operand
                    yield Use(positions, "positions", ["B", length][2 - len(positions.guards) :])
        for node in self._nodes():
            if node.op == "load":
                dims = [INDEXED.get(index.op) for index in node.args]
                yield Use(node.facts["operand"], "table", dims)
            elif node.op == "bias":
                yield Use(node.facts["bias"].operand, "bias")
            elif node.op == "alibi" and node.facts["slopes"] is not None:
                yield Use(node.facts["slopes"].operand, "slopes")
            elif node.op == "mask" and node.facts["mask"].blocks:
                rows, columns = node.facts["mask"].blocks[:2]
                yield Use(rows.operand, "row_offsets")
                yield Use(columns.operand, "col_indices")

    def _make_checks(self):
        rotations = [
            (tensor.operand, rotation)
            for tensor in (self.product.query, self.product.key, self.output.value)
            for rotation in tensor.rotations()
        ]
        masks = [node.facts["mask"] for node in self._nodes() if node.op == "mask"]
        return Checks(list(self._find_uses()), rotations, [mask for mask in masks if mask.blocks])

    def _nodes(self):
        """The elements that the scores are computed from, each after its arguments."""
        order, seen, stack = [], set(), [(self.weights.scores, False)]
        while stack:
            node, is_done = stack.pop()
            if is_done:
                order.append(node)
            elif id(node) not in seen:
                seen.add(id(node))
                stack.append((node, True))
                stack.extend((arg, False) for arg in reversed(node.args))
        return order

    # Types.

    def scores_type(self):
        heads = self.product.query.operand.guards[1]
        return f"tensor<?x{heads}x?x?xf32>"

    def lse_type(self):
        return f"tensor<?x{self.product.query.operand.guards[1]}x?xf32>"

    def output_type(self):
        heads = self.product.query.operand.guards[1]
        return f"tensor<?x{heads}x?x{self.output.value.operand.guards[3]}x{self.output.element}>"

    # The function.

    def print(self):
        name = function_name(self.trace.name)
        arguments = ", ".join(
            f"{self.names[id(o)]}: {o.type()} {{attnfuse.name = {quote(o.name)}}}"
            for o in self.arguments
        )
        kinds = ["output" if o is self.output else "lse" for o in self.outputs]
        types = {"output": self.output_type(), "lse": self.lse_type()}
        results = ", ".join(types[kind] for kind in kinds)
        self.line(f"func.func @{name}({arguments}) -> ({results}) {{")
        nodes = self._nodes()
        if all(node.op in ("scores", "mask", "alibi", "bias") for node in nodes):
            names = self._print_blocks(nodes)
        else:
            names = self._print_fused(nodes)
        self.line(f"  return {', '.join(names[kind] for kind in kinds)} : {results}")
        self.line("}")
        query, value = self.product.query.operand, self.output.value.operand
        return Program(
            name,
            "\n".join(self.plain) + "\n",
            "\n".join(self.located) + "\n",
            self.trace.operands,
            self.arguments,
            [(k, self.output.element if k == "output" else "f32") for k in kinds],
            query.name,
            value.name,
            self.checks,
        )

    def value(self, tensor):
        return self.names[id(tensor.operand)]

    # Building blocks, in the order in which they were written.

    def _print_rotations(self, tensor):
        """The name of ``tensor``, rotated."""
        if not tensor.rotation:
            return self.value(tensor)
        rotation = tensor.rotation
        source = self._print_rotations(rotation.source)
        table = rotation.cos.operand.type()
        text = f"attnfuse.rope {source}, {self.value(rotation.cos)}, {self.value(rotation.sin)} "
        text += rotation.pairing
        if rotation.offset is not None:
            text += f" offset({self.value(rotation.offset)})"
        if rotation.positions is not None:
            positions = rotation.positions
            text += f" positions({self.value(positions)} : {positions.operand.type()})"
        if rotation.static_offset:
            text += f" {{static_offset = {rotation.static_offset} : i64}}"
        text += f" : {tensor.operand.type()}, {table}, {rotation.sin.operand.type()}"
        return self.op(text, rotation.place)

    def _print_blocks(self, nodes):
        product, scores = self.product, self.scores_type()
        query, key = self._print_rotations(product.query), self._print_rotations(product.key)
        scale = (
            "" if product.scale is None else f" {{scale = {double_literal(product.scale)} : f64}}"
        )
        current = self.op(
            f"attnfuse.scaled_dot_product {query}, {key}{scale} : {product.query.operand.type()}, "
            f"{product.key.operand.type()} -> {scores}",
            product.place,
        )
        for node in nodes[1:]:
            if node.op == "mask":
                current = self._print_mask(current, node.facts["mask"], scores)
            elif node.op == "bias":
                bias = node.facts["bias"]
                current = self.op(
                    f"attnfuse.additive_bias {current}, {self.value(bias)} : {scores}, "
                    f"{bias.operand.type()}",
                    node.place,
                )
            else:
                slopes = node.facts["slopes"]
                given = (
                    ""
                    if slopes is None
                    else f" slopes({self.value(slopes)} : {slopes.operand.type()})"
                )
                current = self.op(
                    f"attnfuse.alibi {current} {node.facts['align']}{given} : {scores}", node.place
                )
        weights = self.weights
        if weights.normalizer == "softmax":
            lse = f", {self.lse_type()}" if self.has_lse else ""
            probs = self.op2(
                f"attnfuse.softmax {current} : {scores}{lse}", weights.place, self.has_lse
            )
        else:
            norm = weights.normalizer.split("_")[1]
            probs = self.op2(
                f"attnfuse.relu_attention {current} {norm} : {scores}", weights.place, False
            )
        value = self._print_rotations(self.output.value)
        output = self.op(
            f"attnfuse.weighted_sum {probs[0]}, {value} : {scores}, {self.output.value.operand.type()} "
            f"-> {self.output_type()}",
            self.output.place,
        )
        return {"output": output, "lse": probs[1]}

    def op2(self, text, place, has_two):
        """Prints an op of one or two results."""
        if not has_two:
            return self.op(text, place), None
        first, second = f"%{self.count}", f"%{self.count + 1}"
        self.count += 2
        self.line(f"  {first}, {second} = {text}", place)
        return first, second

    def _print_mask(self, current, mask, scores):
        if mask.kind == "full":
            return self.op(f"attnfuse.full {current} : {scores}", mask.place)
        if mask.kind == "causal":
            return self.op(f"attnfuse.causal {current} {mask.align} : {scores}", mask.place)
        if mask.kind == "window":
            bounds = ", ".join(
                f"{name} = {bound} : i64"
                for name, bound in (("left", mask.left), ("right", mask.right))
                if bound is not None
            )
            return self.op(
                f"attnfuse.sliding_window {current} {mask.align} {{{bounds}}} : {scores}",
                mask.place,
            )
        rows, columns, query_block, key_block, _ = mask.blocks
        return self.op(
            f"attnfuse.block_sparse {current}, {self.value(rows)}, {self.value(columns)} "
            f"{{query_block = {query_block} : i64, key_block = {key_block} : i64}} : {scores}, "
            f"{rows.operand.type()}, {columns.operand.type()}",
            mask.place,
        )

    # One op with a score region: what computes on scores is no block.

    def _print_fused(self, nodes):
        product = self.product
        operands = [product.query.operand, product.key.operand, self.output.value.operand]
        parts = []
        for letter, tensor in (("q", product.query), ("k", product.key)):
            rotation = tensor.rotation
            if not rotation:
                continue
            if rotation.source.rotation:
                fail(
                    "rope: two rotations of one tensor cannot stand beside computations on scores; "
                    "rotate once",
                    rotation.place,
                )
            names = [self.value(rotation.cos), self.value(rotation.sin)]
            operands += [rotation.cos.operand, rotation.sin.operand]
            if rotation.offset is not None:
                names.append(f"offset {self.value(rotation.offset)}")
                operands.append(rotation.offset.operand)
            if rotation.positions is not None:
                names.append(f"positions {self.value(rotation.positions)}")
                operands.append(rotation.positions.operand)
            parts.append(
                f"rotate_{letter} <{rotation.pairing}, offset = {rotation.static_offset}>"
                f"({', '.join(names)})"
            )
        if self.output.value.rotation:
            fail("v cannot be rotated beside computations on scores", self.output.place)
        masks = [node.facts["mask"] for node in nodes if node.op == "mask"]
        blocks = [mask for mask in masks if mask.blocks]
        if len(blocks) > 1:
            fail(
                "block_sparse: at most one list of blocks can stand beside computations on scores; "
                "combine them in one block mask",
                blocks[1].place,
            )
        for mask in blocks:
            rows, columns, query_block, key_block, _ = mask.blocks
            parts.append(
                f"blocks <{query_block}x{key_block}>({self.value(rows)}, {self.value(columns)})"
            )
            operands += [rows.operand, columns.operand]
        bands = [_band(mask) for mask in masks if mask.kind in ("causal", "window")]
        if bands:
            parts.append(f"bands [{', '.join(bands)}]")
        parts.append(self.weights.normalizer)

        tables = []
        for node in nodes:
            table = {"load": "operand", "bias": "bias", "alibi": "slopes"}.get(node.op)
            if table and node.facts[table] is not None:
                operand = node.facts[table]
                operand = operand if isinstance(operand, Operand) else operand.operand
                if not any(operand is other for other in tables):
                    tables.append(operand)
        names = ", ".join(self.names[id(operand)] for operand in tables)
        parts.append(f"score operands({names})" if tables else "score")
        operands += tables

        results = [f"%{self.count}"]
        self.count += 1
        types = [self.output_type()]
        if self.has_lse:
            results.append(f"%{self.count}")
            self.count += 1
            types.append(self.lse_type())
        self.line(
            f"  {', '.join(results)} = attnfuse.attention q({self.value(product.query)}) "
            f"k({self.value(product.key)}) v({self.value(self.output.value)}) {' '.join(parts)} {{"
        )
        indices = ", ".join(f"%{name}_index: index" for name in LEAVES)
        arguments = "".join(f", %table{i}: {o.type()}" for i, o in enumerate(tables))
        self.line(f"  ^bb0(%score: f32, {indices}{arguments}):")
        region = RegionPrinter(self, {id(o): f"%table{i}" for i, o in enumerate(tables)})
        score = region.print(nodes)
        self.line(f"    attnfuse.yield {score} : f32", self.weights.scores.place)
        scale = product.scale
        if scale is None:
            scale = 1 / math.sqrt(product.query.operand.guards[3] or 1)
        self.line(
            f"  }} {{scale = {double_literal(scale)} : f64}} : "
            f"({', '.join(o.type() for o in operands)}) -> ({', '.join(types)})",
            self.output.place,
        )
        return {"output": results[0], "lse": results[-1]}


def _band(mask):
    left, right = (None, 0) if mask.kind == "causal" else (mask.left, mask.right)
    bounds = [f"{n} = {b}" for n, b in (("left", left), ("right", right)) if b is not None]
    return f"#attnfuse.band<{', '.join([mask.align] + bounds)}>"


def finish(trace, returned):
    """The program of a traced function that returned ``returned``."""
    outputs = list(returned) if isinstance(returned, (tuple, list)) and returned else [returned]
    program = FunctionPrinter(trace, outputs).print()
    program.is_tuple = isinstance(returned, (tuple, list))
    return program
