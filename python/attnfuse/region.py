# ===-----------------------------------------------------------------------===#
# Licensed under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
# ===-----------------------------------------------------------------------===#
"""Prints what is computed from scores as the score region of an attention op."""

from .text import float_literal


_FLOAT_OPS = {"add": "arith.addf", "sub": "arith.subf", "mul": "arith.mulf", "div": "arith.divf"}
_FLOAT_OPS.update(max="arith.maximumf", min="arith.minimumf", neg="arith.negf", abs="math.absf")
_FLOAT_OPS.update({name: "math." + name for name in ("exp", "exp2", "log", "log2", "tanh", "sqrt")})
_INDEX_OPS = {"add": "arith.addi", "sub": "arith.subi", "mul": "arith.muli"}
_INDEX_OPS.update(floordiv="arith.floordivsi", max="arith.maxsi", min="arith.minsi")
_LOGIC_OPS = {"and": "arith.andi", "or": "arith.ori", "xor": "arith.xori"}
_COMPARISONS = {"lt", "le", "gt", "ge", "eq", "ne"}
LEAVES = ("batch", "head", "query", "key", "queries", "keys", "heads")


class RegionPrinter:
    """The score region of one attention op."""

    def __init__(self, printer, tables):
        self.printer = printer
        self.tables = tables
        self.values = {}

    def print(self, nodes):
        for node in nodes:
            self.values[id(node)] = self._print(node, [self.values[id(arg)] for arg in node.args])
        return self.values[id(nodes[-1])]

    def _op(self, text, node):
        return self.printer.op(text, node.place, "    ")

    def _print(self, node, args):
        op = node.op
        if op == "scores":
            return "%score"
        if op == "mask":
            return args[0]
        if op in LEAVES:
            return f"%{op}_index"
        if op == "constant":
            return self._constant(node, node.facts["value"], node.kind)
        if op in _COMPARISONS:
            return self._compare(node, args)
        if op == "where":
            return self._op(f"arith.select {args[0]}, {args[1]}, {args[2]} : {node.kind}", node)
        if op == "to_float":
            wide = self._op(f"arith.index_cast {args[0]} : index to i64", node)
            return self._op(f"arith.sitofp {wide} : i64 to f32", node)
        if op == "load":
            return self._load(node, node.facts["operand"], args)
        if op == "bias":
            return self._bias(node, args[0])
        if op == "alibi":
            return self._alibi(node, args[0])
        if op == "mod":
            return self._mod(node, args)
        table = {"f32": _FLOAT_OPS, "index": _INDEX_OPS, "i1": _LOGIC_OPS}[node.kind]
        return self._op(f"{table[op]} {', '.join(args)} : {node.kind}", node)

    def _constant(self, node, value, kind):
        if kind == "f32":
            return self._op(f"arith.constant {float_literal(value)} : f32", node)
        if kind == "i1":
            return self._op(f"arith.constant {'true' if value else 'false'}", node)
        return self._op(f"arith.constant {value} : index", node)

    def _compare(self, node, args):
        kind = node.args[0].kind
        if kind == "f32":
            predicate = "une" if node.op == "ne" else "o" + node.op
            return self._op(f"arith.cmpf {predicate}, {args[0]}, {args[1]} : f32", node)
        predicate = node.op if node.op in ("eq", "ne") else "s" + node.op
        return self._op(f"arith.cmpi {predicate}, {args[0]}, {args[1]} : index", node)

    def _load(self, node, operand, indices):
        value = self._op(
            f"tensor.extract {self.tables[id(operand)]}[{', '.join(indices)}] : {operand.type()}",
            node,
        )
        if operand.element in ("f16", "bf16"):
            return self._op(f"arith.extf {value} : {operand.element} to f32", node)
        if operand.element in ("i32", "i64"):
            return self._op(f"arith.index_cast {value} : {operand.element} to index", node)
        return value

    def _bias(self, node, score):
        operand = node.facts["bias"].operand
        leaves = [f"%{name}_index" for name in LEAVES[:4]][4 - len(operand.guards) :]
        indices = [
            self._constant(node, 0, "index") if guard == 1 else leaf
            for guard, leaf in zip(operand.guards, leaves)
        ]
        value = self._load(node, operand, indices)
        return self._op(f"arith.addf {score}, {value} : f32", node)

    def _alibi(self, node, score):
        slopes = node.facts["slopes"]
        if slopes is None:
            slope = self._op("attnfuse.alibi_slope %head_index, %heads_index", node)
        else:
            indices = ["%batch_index", "%head_index"][2 - len(slopes.operand.guards) :]
            slope = self._load(node, slopes.operand, indices)
        place = "%query_index"
        if node.facts["align"] == "bottom_right":
            offset = self._op("arith.subi %keys_index, %queries_index : index", node)
            place = self._op(f"arith.addi {place}, {offset} : index", node)
        distance = self._op(f"arith.subi {place}, %key_index : index", node)
        wide = self._op(f"arith.index_cast {distance} : index to i64", node)
        number = self._op(f"arith.sitofp {wide} : i64 to f32", node)
        number = self._op(f"math.absf {number} : f32", node)
        penalty = self._op(f"arith.mulf {slope}, {number} : f32", node)
        return self._op(f"arith.subf {score}, {penalty} : f32", node)

    def _mod(self, node, args):
        """As Python's %, whose sign is the divisor's."""
        value, divisor = args
        rest = self._op(f"arith.remsi {value}, {divisor} : index", node)
        zero = self._constant(node, 0, "index")
        is_left = self._op(f"arith.cmpi ne, {rest}, {zero} : index", node)
        rest_negative = self._op(f"arith.cmpi slt, {rest}, {zero} : index", node)
        divisor_negative = self._op(f"arith.cmpi slt, {divisor}, {zero} : index", node)
        differs = self._op(f"arith.xori {rest_negative}, {divisor_negative} : i1", node)
        wraps = self._op(f"arith.andi {is_left}, {differs} : i1", node)
        wrapped = self._op(f"arith.addi {rest}, {divisor} : index", node)
        return self._op(f"arith.select {wraps}, {wrapped}, {rest} : index", node)
