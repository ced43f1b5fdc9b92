# ===-----------------------------------------------------------------------===#
# Licensed under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
# ===-----------------------------------------------------------------------===#
"""Numbers of the score matrix: scores, indices, conditions, and what is computed from them."""

import operator

import numpy as np

from . import arrays
from .operands import caller, fail
from .symbols import Scalar, Symbol, Tensor


class Element(Symbol):
    """A number for every batch entry, head, query and key: the scores, an index, or what is computed
    from them. ``kind`` is "f32", "index" or "i1"."""

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
        fail("scores cannot be indexed; af.score_mod gives a function the indices of each score")

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
        if isinstance(exponent, int) and 1 <= exponent <= 16:
            result = self
            for _ in range(exponent - 1):
                result = result * self
            return result
        fail(f"expected a constant integer exponent from 1 to 16, got {exponent!r}")

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
    for value in values:
        if isinstance(value, (Element, Tensor, Scalar)):
            return value.trace
    fail(f"{what}: expected scores or an index among the operands")


def constant(trace, value, kind):
    return Element(trace, kind, "constant", value=value)


def as_kind(trace, value, kind, what):
    """``value``, a number or an element, as one of ``kind``."""
    if isinstance(value, Scalar):
        value = operator.index(value)
    if isinstance(value, np.generic):
        value = value.item()
    if isinstance(value, bool):
        if kind == "i1":
            return constant(trace, value, "i1")
        fail(f"{what}: expected a number, got {value}")
    if isinstance(value, int) and kind == "index":
        return constant(trace, value, "index")
    if isinstance(value, (int, float)) and kind == "f32":
        return constant(trace, float(value), "f32")
    if isinstance(value, Element):
        if value.kind == kind:
            return value
        if value.kind == "index" and kind == "f32":
            return Element(trace, "f32", "to_float", (value,))
        fail(f"{what}: expected {_KINDS[kind]}, got {value.describe()}")
    got = value.describe() if isinstance(value, Symbol) else arrays.describe(value)
    remedy = "; take its elements by af.load(x, indices...)" if arrays.is_array(value) else ""
    fail(f"{what}: expected {_KINDS[kind]}, got {got}{remedy}")


_KINDS = {"f32": "a number", "index": "an integer or an index", "i1": "a condition"}


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
    trace = _trace_of((tensor,) + indices, "load")
    tensor = trace.tensor(tensor, "table", "load")
    operand = tensor.operand
    operand.use("a table", ("f16", "bf16", "f32", "i32", "i64"), range(0, 9))
    if len(indices) != tensor.ndim:
        fail(
            f"load: operand '{operand.name}' has {tensor.ndim} dimensions, got {len(indices)} indices"
        )
    args = tuple(as_kind(trace, index, "index", "load") for index in indices)
    kind = "index" if operand.element in ("i32", "i64") else "f32"
    return Element(trace, kind, "load", args, operand=operand)
