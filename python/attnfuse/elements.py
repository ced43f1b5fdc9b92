# ===-----------------------------------------------------------------------===#
# Licensed under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
# ===-----------------------------------------------------------------------===#
"""Numbers of the score matrix: scores, indices, conditions, and what is computed from them."""

import operator

import numpy as np

from . import arrays
from .operands import caller, fail, fits_int64
from .symbol import Symbol, describe
from .symbols import Scalar, Tensor
from .trace import active_trace

_LOAD = "write af.load(table, index, ...) for table[index]"

_COUNTERPARTS = {
    name: f"write af.{name}"
    for name in "abs exp exp2 log log2 maximum minimum softmax sqrt tanh where".split()
}
_COUNTERPARTS.update(
    absolute="write af.abs",
    fabs="write af.abs",
    clip="write af.minimum(af.maximum(x, low), high)",
    clamp="write af.minimum(af.maximum(x, low), high)",
    relu="write af.maximum(x, 0)",
    sigmoid="write 1 / (1 + af.exp(-x))",
    square="write x * x",
    masked_fill="write af.where(condition, value, x)",
    logical_and="write &",
    logical_or="write |",
    logical_not="write ~",
    astype="write af.float32 for an index as a number",
    to="write af.float32 for an index as a number",
    take=_LOAD,
    __getitem__=_LOAD,
    # Questions.
    bool="write & | ~ for 'and', 'or' and 'not', (a <= x) & (x < b) for a <= x < b, "
    "af.where(condition, x, y) for 'if', af.maximum and af.minimum for max and min, and "
    "(x == a) | (x == b) for x in (a, b)",
    index=f"{_LOAD}, af.float32(i) for np.float32(i)",
    array=f"{_LOAD}, af.float32(i) for np.float32(i)",
    float="write af.tanh, af.exp and the like for functions of math, af.float32 for an index as a number",
    len="write af.lengths(s) for the numbers of queries and keys, and x for torch.tensor(x)",
    iter="write what is done to one: it is done to each",
    contains="write comparisons with | between them",
)
_COUNTERPARTS.update(dict.fromkeys(("round", "floor", "ceil", "trunc"), "write i // n of an index"))


class Element(Symbol):
    """A number for every batch entry, head, query and key: the scores, an index, or what is computed
    from them. ``kind`` is "f32", "index" or "i1"."""

    counterparts = _COUNTERPARTS
    remedy = (
        "it takes + - * / // % **, comparisons, & | ^ ~, af.where, af.load, af.maximum, af.minimum, "
        "af.abs, af.exp, af.exp2, af.log, af.log2, af.tanh and af.sqrt"
    )

    def __init__(self, trace, kind, op, args=(), place=None, **facts):
        self.trace = trace
        self.kind = kind
        self.op = op
        self.args = args
        self.facts = facts
        self.place = place or caller()
        products = {id(a.product): a.product for a in args if isinstance(a, Element) and a.product}
        if "product" in facts:
            products = {id(facts["product"]): facts["product"]}
        if len(products) > 1:
            fail("scores of two products cannot be combined; compute one product of q and k")
        self.product = next(iter(products.values()), None)

    def describe(self):
        return {"f32": "an element of the scores", "index": "an index", "i1": "a condition"}[
            self.kind
        ]

    def __getitem__(self, _):
        fail(
            f"{self.describe()} cannot be indexed; af.score_mod gives a function the indices of each "
            "score"
        )

    def __add__(self, other):
        return arithmetic("add", self, other)

    def __radd__(self, other):
        return arithmetic("add", other, self)

    def __sub__(self, other):
        return arithmetic("sub", self, other)

    def __rsub__(self, other):
        return arithmetic("sub", other, self)

    def __mul__(self, other):
        return arithmetic("mul", self, other)

    def __rmul__(self, other):
        return arithmetic("mul", other, self)

    def __truediv__(self, other):
        return arithmetic("div", self, other)

    def __rtruediv__(self, other):
        return arithmetic("div", other, self)

    def __floordiv__(self, other):
        return integers("floordiv", self, other)

    def __rfloordiv__(self, other):
        return integers("floordiv", other, self)

    def __mod__(self, other):
        return integers("mod", self, other)

    def __rmod__(self, other):
        return integers("mod", other, self)

    def __neg__(self):
        return arithmetic("sub", 0, self) if self.kind == "index" else unary("neg", self)

    def __abs__(self):
        return absolute(self)

    def __pow__(self, exponent):
        exponent = arrays.plain_number(exponent)
        is_number = isinstance(exponent, (int, float)) and not isinstance(exponent, bool)
        if is_number and abs(exponent) in range(1, 17):
            result = self
            for _ in range(int(abs(exponent)) - 1):
                result = result * self
            return result if exponent > 0 else 1 / result
        got = exponent if is_number else describe(exponent)
        fail(
            f"expected a constant integer exponent from 1 to 16 or -16 to -1, got {got}; write af.sqrt(x) "
            "for x ** 0.5, af.exp2(y * af.log2(x)) for x ** y"
        )

    def __rpow__(self, base):
        fail(f"expected a constant exponent; write af.exp2(x) for 2 ** x, got {describe(base)} ** x")

    def __lt__(self, other):
        return compare("lt", self, other)

    def __le__(self, other):
        return compare("le", self, other)

    def __gt__(self, other):
        return compare("gt", self, other)

    def __ge__(self, other):
        return compare("ge", self, other)

    def __eq__(self, other):
        return compare("eq", self, other)

    def __ne__(self, other):
        return compare("ne", self, other)

    __hash__ = Symbol.__hash__

    def __and__(self, other):
        return logic("and", self, other)

    __rand__ = __and__

    def __or__(self, other):
        return logic("or", self, other)

    __ror__ = __or__

    def __xor__(self, other):
        return logic("xor", self, other)

    __rxor__ = __xor__

    def __invert__(self):
        return logic("xor", self, True)

    def __matmul__(self, other):
        fail("scores are no weights; write af.softmax(s) @ v, or af.relu_attention(s) @ v")


def _trace_of(values, what):
    """The trace that is going on, which has to be that of ``values``: at least one is a symbol."""
    if any(isinstance(value, Symbol) for value in values):
        trace = active_trace(what)
        for value in values:
            trace.own(value)
        return trace
    fail(
        f"{what}: expected scores or an index among the operands; it is called with these inside of an "
        "@af.attention function, where other numbers and arrays take NumPy's functions"
    )


def constant(trace, value, kind):
    return Element(trace, kind, "constant", value=value)


def as_kind(trace, value, kind, what):
    """``value``, a number or an element, as one of ``kind``."""
    if isinstance(value, Scalar):
        value = operator.index(value)
    given, value = value, arrays.plain_number(value)
    if isinstance(value, bool):
        if kind == "i1":
            return constant(trace, value, "i1")
    elif isinstance(value, int) and kind == "index":
        if not fits_int64(value):
            fail(f"{what}: expected an integer of 64 bits, from -2**63 to 2**63 - 1, got a larger one")
        return constant(trace, value, "index")
    elif isinstance(value, (int, float)) and kind == "f32":
        try:
            return constant(trace, float(value), "f32")
        except OverflowError:
            fail(f"{what}: expected a number of f32, got an int that is too large; write math.inf")
    if isinstance(value, Element):
        if value.kind == kind:
            return value
        if value.kind == "index" and kind == "f32":
            return Element(trace, "f32", "to_float", (value,))
        remedy = _REMEDIES[kind, value.kind]
        fail(f"{what}: expected {_KINDS[kind]}, got {value.describe()}; {remedy}")
    trace.refuse(given, what, f"expected {_KINDS[kind]}, got {{0}}; {_remedy(value)}")


def _remedy(value):
    """For what cannot be a number, an index or a condition."""
    if isinstance(value, Symbol) and not isinstance(value, Tensor):
        return value.remedy
    if not arrays.is_array(value) and not isinstance(value, Tensor):
        return "convert it by float(...) or int(...)"
    element = value.operand.element if isinstance(value, Tensor) else arrays.element(value, "x")
    if element == "bool":
        return (
            "hide keys by af.mask_mod(s, lambda b, h, i, j: af.load(x, i, j) != 0), with x in int32; or "
            "make a bias of 0 and -inf of it for af.additive_bias(s, x)"
        )
    return (
        "take its elements by af.load(x, indices...), or write af.additive_bias(s, x) for the sum of scores "
        "and an array"
    )


_KINDS = {"f32": "a number", "index": "an integer or an index", "i1": "a condition"}

#: Of an element of the second kind where one of the first is wanted.
_REMEDIES = {
    ("f32", "i1"): "write af.where(condition, 1.0, 0.0)",
    ("index", "i1"): "write af.where(condition, 1, 0)",
    ("index", "f32"): "write integers, indices and what // and % make of them",
    ("i1", "f32"): "write a comparison, as x > 0",
    ("i1", "index"): "write a comparison, as i != 0, in parentheses, as (i > j) & (i < 5), for & | ^ bind "
    "more tightly than < and ==; and i % 2 for i & 1",
}


def _is_integer(value):
    return (isinstance(value, (int, np.integer, Scalar)) and not isinstance(value, bool)) or (
        isinstance(value, Element) and value.kind == "index"
    )


def arithmetic(name, lhs, rhs):
    trace = _trace_of((lhs, rhs), name)
    kind = "index" if name != "div" and _is_integer(lhs) and _is_integer(rhs) else "f32"
    args = (as_kind(trace, lhs, kind, name), as_kind(trace, rhs, kind, name))
    return Element(trace, kind, name, args)


def integers(name, lhs, rhs):
    trace = _trace_of((lhs, rhs), name)
    args = tuple(as_kind(trace, value, "index", name) for value in (lhs, rhs))
    if args[1].op == "constant" and args[1].facts["value"] == 0:
        fail(f"{name}: expected a divisor that is not 0")
    return Element(trace, "index", name, args)


def compare(name, lhs, rhs):
    trace = _trace_of((lhs, rhs), name)
    kind = "index" if _is_integer(lhs) and _is_integer(rhs) else "f32"
    args = (as_kind(trace, lhs, kind, name), as_kind(trace, rhs, kind, name))
    return Element(trace, "i1", name, args)


def logic(name, lhs, rhs):
    trace = _trace_of((lhs, rhs), name)
    args = tuple(as_kind(trace, value, "i1", name) for value in (lhs, rhs))
    return Element(trace, "i1", name, args)


def unary(name, value):
    trace = _trace_of((value,), name)
    return Element(trace, "f32", name, (as_kind(trace, value, "f32", name),))


def absolute(value):
    if isinstance(value, Element) and value.kind == "index":
        return extremum("max", value, 0 - value)
    return unary("abs", value)


def extremum(name, lhs, rhs):
    trace = _trace_of((lhs, rhs), name)
    kind = "index" if _is_integer(lhs) and _is_integer(rhs) else "f32"
    args = (as_kind(trace, lhs, kind, name), as_kind(trace, rhs, kind, name))
    return Element(trace, kind, name, args)


def where(condition, x, y):
    trace = _trace_of((condition, x, y), "where")
    kind = "index" if _is_integer(x) and _is_integer(y) else "f32"
    args = (as_kind(trace, condition, "i1", "where"),) + tuple(
        as_kind(trace, value, kind, "where") for value in (x, y)
    )
    return Element(trace, kind, "where", args)


def to_float(value):
    trace = _trace_of((value,), "float32")
    return as_kind(trace, value, "f32", "float32")


def load(tensor, *indices):
    """An element of a tensor, at indices of the score matrix."""
    trace = active_trace("load")
    operand = trace.tensor(tensor, "table", "load").operand
    if len(indices) != len(operand.guards):
        count, (file, line) = len(indices), caller()
        remedy = f"give it {count}, or as many indices as it has"
        if operand.is_constant:
            fail(
                f"load: expected {count} dimensions, one for each index, of '{operand.name}', got "
                f"{len(operand.guards)}; {remedy}"
            )
        operand.refuse(
            f"expected {count} dimensions, one for each index of af.load at {file}:{line}, got "
            f"{len(operand.guards)}; {remedy}"
        )
    args = tuple(as_kind(trace, index, "index", "load") for index in indices)
    kind = "index" if operand.element in ("i32", "i64") else "f32"
    return Element(trace, kind, "load", args, operand=operand)
