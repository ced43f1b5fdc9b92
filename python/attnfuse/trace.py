#===-----------------------------------------------------------------------===#
# Licensed under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#===-----------------------------------------------------------------------===#
"""From a Python function of blocks to the dialect's text.

A function is called once with symbols for its operands; the blocks build a graph of them, which is
printed as a module. Of an operand, those sizes are compiled in that the dialect wants to know (heads,
features) or that decide what is broadcast; lengths and batch stay open. The *guards* of a program
say for which operands it serves.
"""

import math
import operator
import os
import re
import sys

import numpy as np

from . import arrays
from .errors import CompileError, OperandError

# Guards of a size: any, any but 1 (which would be broadcast), or the int itself.
ANY = "any"
NOT_ONE = "not one"

_PACKAGE = os.path.dirname(os.path.abspath(__file__)) + os.sep


def caller():
    """(file, line) of the innermost frame outside of this package."""
    frame = sys._getframe(1)
    while frame and frame.f_code.co_filename.startswith(_PACKAGE):
        frame = frame.f_back
    return (frame.f_code.co_filename, frame.f_lineno) if frame else ("", 0)


def fail(message, place=None):
    """Raises a CompileError at the user's line."""
    file, line = place or caller()
    raise CompileError(f"{file}:{line}: {message}", file, line)


#===-----------------------------------------------------------------------===#
# Operands
#===-----------------------------------------------------------------------===#


class Leaf:
    """What a call gives for one argument of the compiled function: a tensor, or an int."""

    def __init__(self, name, element, shape, value):
        self.name = name
        self.element = element
        #: None for an int.
        self.shape = shape
        self.value = value

    @staticmethod
    def of(name, value):
        if isinstance(value, arrays.TensorSpec):
            return Leaf(name, value.element, value.shape, value)
        if arrays.is_array(value):
            return Leaf(name, arrays.element(value, name), tuple(value.shape), value)
        return Leaf(name, "i64", None, value)


class Operand:
    """An argument of the function that is being traced."""

    def __init__(self, leaf, is_constant=False):
        self.name = leaf.name
        self.element = leaf.element
        self.sizes = leaf.shape
        self.value = leaf.value
        self.is_constant = is_constant
        self.is_used = False
        #: For an int: its value, once the program depends on it.
        self.guard = ANY
        self.guards = None if leaf.shape is None else [ANY] * len(leaf.shape)

    @property
    def is_scalar(self):
        return self.sizes is None

    def use(self, role, elements, ranks, static=(), broadcast=False):
        """Notes a use: the element types and ranks that it takes, the dimensions (from the end) that
        are compiled in, and whether sizes of 1 are broadcast."""
        self.is_used = True
        if self.is_scalar:
            raise OperandError(f"operand '{self.name}': expected a tensor as {role}, got an int")
        if self.element not in elements:
            raise OperandError(
                f"operand '{self.name}': expected {' or '.join(elements)} elements as {role}, got "
                f"{self.element}; convert it to one of these types"
            )
        if len(self.sizes) not in ranks:
            raise OperandError(
                f"operand '{self.name}': expected {role} of {_ranks(ranks)} dimensions, got "
                f"{len(self.sizes)} (shape {list(self.sizes)}); reshape it"
            )
        rank = len(self.sizes)
        for dim in static:
            if dim <= rank and self.sizes[rank - dim] is None:
                raise OperandError(
                    f"operand '{self.name}': dimension {rank - dim} is part of the compiled code; "
                    "give its size"
                )
        for index, size in enumerate(self.sizes):
            if rank - index in static:
                self.guards[index] = int(size)
            elif broadcast and self.guards[index] is ANY:
                self.guards[index] = 1 if size == 1 else NOT_ONE

    def type(self):
        if self.is_scalar:
            return self.element
        sizes = [str(g) if isinstance(g, int) else "?" for g in self.guards]
        return f"tensor<{'x'.join(sizes + [self.element])}>"

    def fits(self, leaf):
        """Whether the program serves a call with this leaf in the operand's place."""
        if leaf.element != self.element or (leaf.shape is None) != self.is_scalar:
            return False
        if self.is_scalar:
            return self.guard is ANY or self.guard == leaf.value
        return len(leaf.shape) == len(self.guards) and all(
            g is ANY or (g is NOT_ONE and size != 1) or g == size
            for g, size in zip(self.guards, leaf.shape)
        )


def _ranks(ranks):
    ranks = sorted(ranks)
    return str(ranks[0]) if len(ranks) == 1 else f"{ranks[0]} to {ranks[-1]}"


#===-----------------------------------------------------------------------===#
# Symbols
#===-----------------------------------------------------------------------===#


class Symbol:
    """Stands for a value of the call while a function is traced."""

    # NumPy leaves operators to us.
    __array_ufunc__ = None
    __hash__ = object.__hash__

    def __bool__(self):
        fail(f"{self.describe()} has no truth value while the function is traced; use af.where")

    def __iter__(self):
        fail(f"{self.describe()} cannot be iterated over")


class Scalar(Symbol):
    """An int of the call. It stays open where a block takes a run-time number; wherever Python wants
    its value, that is compiled in."""

    def __init__(self, trace, operand):
        self.trace = trace
        self.operand = operand

    def describe(self):
        return f"operand '{self.operand.name}'"

    def __index__(self):
        if self.operand.value is None:
            fail(f"{self.describe()} has no value here; pass a number")
        self.operand.guard = int(self.operand.value)
        return self.operand.guard

    __int__ = __index__

    def __bool__(self):
        return bool(operator.index(self))

    def __eq__(self, other):
        return operator.index(self) == other

    __hash__ = Symbol.__hash__

    def __float__(self):
        return float(operator.index(self))

    def __repr__(self):
        return self.describe()


def _fold(function):
    """An operator on the value of a Scalar."""

    def apply(self, other):
        return function(operator.index(self), other)

    return apply


for _name in ("add", "sub", "mul", "floordiv", "mod", "truediv", "lt", "le", "gt", "ge", "ne"):
    setattr(Scalar, f"__{_name}__", _fold(getattr(operator, _name)))
for _name in ("add", "sub", "mul", "floordiv", "mod", "truediv"):
    setattr(
        Scalar,
        f"__r{_name}__",
        _fold(lambda value, other, _function=getattr(operator, _name): _function(other, value)),
    )


class Tensor(Symbol):
    """An operand, or a rotated one."""

    def __init__(self, trace, operand, rotation=None):
        self.trace = trace
        #: The argument that it comes from.
        self.operand = operand
        #: The last rotation, or None.
        self.rotation = rotation

    def describe(self):
        return f"operand '{self.operand.name}'"

    @property
    def shape(self):
        """Sizes that are compiled in; None for the others."""
        return tuple(g if isinstance(g, int) else None for g in self.operand.guards)

    @property
    def ndim(self):
        return len(self.operand.guards)

    def __getitem__(self, index):
        return load(self, *(index if isinstance(index, tuple) else (index,)))

    def _refuse(self, *_):
        fail(
            f"{self.describe()} is a whole tensor, and blocks are all that it can go through: take "
            "af.scaled_dot_product(q, k, scale=...), af.rope, or an element by af.load; or transform "
            "it before the call"
        )

    def __matmul__(self, other):
        fail(
            f"{self.describe()} cannot be multiplied by '@'; use af.scaled_dot_product(q, k) for the "
            "scores, and af.softmax(s) @ v for the output"
        )

    __rmatmul__ = __matmul__
    __add__ = __radd__ = __sub__ = __rsub__ = __mul__ = __rmul__ = _refuse
    __truediv__ = __rtruediv__ = __pow__ = __neg__ = _refuse


class Rotation:
    def __init__(self, source, cos, sin, pairing, static_offset, offset, positions, place):
        self.source = source
        self.cos, self.sin = cos, sin
        self.pairing = pairing
        self.static_offset = static_offset
        self.offset, self.positions = offset, positions
        self.place = place


class Product:
    """The scaled product that scores come from."""

    def __init__(self, query, key, scale, place):
        self.query, self.key, self.scale, self.place = query, key, scale, place


class Mask:
    """A band (causal, sliding_window, full) or a block list."""

    def __init__(self, kind, align=None, left=None, right=None, blocks=None, place=None):
        self.kind, self.align, self.left, self.right = kind, align, left, right
        #: (row offsets, column indices, queries per block, keys per block).
        self.blocks = blocks
        self.place = place


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
        return {"f32": "an element of the scores", "index": "an index", "i1": "a condition"}[self.kind]

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


class Weights(Symbol):
    """Probabilities, or what relu_attention gives."""

    def __init__(self, scores, normalizer, place):
        self.trace = scores.trace
        self.scores = scores
        self.normalizer = normalizer
        self.place = place

    def describe(self):
        return "the weights"

    def __matmul__(self, value):
        return weighted_sum(self, value)

    def _refuse(self, *_):
        fail("weights cannot be changed; change the scores before the normaliser")

    __add__ = __radd__ = __sub__ = __rsub__ = __mul__ = __rmul__ = __truediv__ = _refuse


class LogSumExp(Symbol):
    def __init__(self, weights):
        self.trace = weights.trace
        self.weights = weights

    def describe(self):
        return "the log-sum-exp"


class Output(Symbol):
    def __init__(self, weights, value, element, place):
        self.trace = weights.trace
        self.weights, self.value, self.element, self.place = weights, value, element, place

    def describe(self):
        return "the output"


FLOATS = ("f16", "bf16", "f32")


def weighted_sum(weights, value, dtype=None):
    if not isinstance(weights, Weights):
        fail("weighted_sum: expected the result of af.softmax or af.relu_attention")
    value = weights.trace.tensor(value, "v", "weighted_sum")
    value.operand.use("v [B, Hkv, Nkv, Dv]", FLOATS, {4}, static=(1, 3))
    element = value.operand.element
    if dtype is not None:
        element = arrays.TensorSpec((), dtype).element
    return Output(weights, value, element, caller())


#===-----------------------------------------------------------------------===#
# Numbers of the score matrix
#===-----------------------------------------------------------------------===#


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
    return (
        isinstance(value, (int, np.integer, Scalar)) and not isinstance(value, bool)
    ) or (isinstance(value, Element) and value.kind == "index")


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
        fail(f"load: operand '{operand.name}' has {tensor.ndim} dimensions, got {len(indices)} indices")
    args = tuple(as_kind(trace, index, "index", "load") for index in indices)
    kind = "index" if operand.element in ("i32", "i64") else "f32"
    return Element(trace, kind, "load", args, operand=operand)


#===-----------------------------------------------------------------------===#
# Traces
#===-----------------------------------------------------------------------===#


class Trace:
    def __init__(self, name, leaves):
        self.name = name
        self.operands = [Operand(leaf) for leaf in leaves]
        self._by_name = {operand.name: operand for operand in self.operands}
        self._constants = {}
        #: What the call gives beside the function's parameters, by name.
        self.ambients = {}
        self.taken = set()

    def symbol(self, name):
        operand = self._by_name[name]
        return Scalar(self, operand) if operand.is_scalar else Tensor(self, operand)

    def ambient(self, name):
        """The call's operand ``name`` that is no parameter of the function, or None."""
        self.taken.add(name)
        return self.ambients.get(name)

    def tensor(self, value, name, block):
        """``value``, a symbol or a captured array, as a symbol. A captured array becomes an operand
        that every call passes along."""
        if isinstance(value, Tensor):
            return value
        if arrays.is_array(value):
            operand = self._constants.get(id(value))
            if operand is None:
                names = {other.name for other in self.operands}
                name, count = f"captured_{name}", 0
                while name in names:
                    count += 1
                    name = f"{name.rstrip('0123456789_')}_{count}"
                operand = Operand(Leaf.of(name, value), is_constant=True)
                self._constants[id(value)] = operand
                self.operands.append(operand)
            return Tensor(self, operand)
        got = value.describe() if isinstance(value, Symbol) else arrays.describe(value)
        fail(f"{block}: expected a tensor as {name}, got {got}")


class Program:
    """A traced function."""

    def __init__(self, name, text, located_text, operands, arguments, results, query, value):
        #: The name of the function in the module.
        self.function = name
        self.text = text
        #: With the Python lines that its ops come from, for messages.
        self.located_text = located_text
        #: All operands of the trace, for their guards.
        self.operands = operands
        #: Those that are arguments, in order.
        self.arguments = arguments
        #: (kind, element type): kinds are "output" and "lse".
        self.results = results
        #: The names of the operands that q and v are.
        self.query, self.value = query, value
        #: Whether the Python function returned a tuple.
        self.is_tuple = False

    def fits(self, leaves):
        return all(
            operand.is_constant or operand.fits(leaves[operand.name]) for operand in self.operands
        )

    def result_shapes(self, query, value):
        """From the shapes of q and v."""
        shapes = {"output": (*query[:3], value[3]), "lse": tuple(query[:3])}
        return [shapes[kind] for kind, _ in self.results]


def function_name(name):
    """A name that kernels can have."""
    name = re.sub(r"[^A-Za-z0-9_]", "_", name)
    return name if re.match(r"[A-Za-z]", name) else "attention" + name


#===-----------------------------------------------------------------------===#
# Printing
#===-----------------------------------------------------------------------===#


def quote(text):
    return '"' + "".join(
        c if 32 <= ord(c) < 127 and c not in '"\\' else "".join(f"\\{b:02X}" for b in c.encode())
        for c in text
    ) + '"'


def float_literal(value):
    value = float(np.float32(value))
    if not math.isfinite(value):
        return f"0x{np.float32(value).view(np.uint32):08X}"
    digits = repr(value)
    if "." not in digits:
        mantissa, e, exponent = digits.partition("e")
        digits = mantissa + ".0" + e + exponent
    return digits


_FLOAT_OPS = {"add": "arith.addf", "sub": "arith.subf", "mul": "arith.mulf", "div": "arith.divf"}
_FLOAT_OPS.update(max="arith.maximumf", min="arith.minimumf", neg="arith.negf", abs="math.absf")
_FLOAT_OPS.update({name: "math." + name for name in ("exp", "exp2", "log", "log2", "tanh", "sqrt")})
_INDEX_OPS = {"add": "arith.addi", "sub": "arith.subi", "mul": "arith.muli"}
_INDEX_OPS.update(floordiv="arith.floordivsi", max="arith.maxsi", min="arith.minsi")
_LOGIC_OPS = {"and": "arith.andi", "or": "arith.ori", "xor": "arith.xori"}
_COMPARISONS = {"lt", "le", "gt", "ge", "eq", "ne"}
_LEAVES = ("batch", "head", "query", "key", "queries", "keys", "heads")


class Printer:
    """Prints one function twice at once: with locations and without."""

    def __init__(self):
        self.plain = []
        self.located = []
        self.count = 0

    def line(self, text, place=None):
        self.plain.append(text)
        file, number = place or ("", 0)
        self.located.append(f"{text} loc({quote(file)}:{number}:0)" if file else text)

    def op(self, text, place, indent="  "):
        """Prints an op of one result, and gives its name."""
        name = f"%{self.count}"
        self.count += 1
        self.line(f"{indent}{name} = {text}", place)
        return name


class _FunctionPrinter(Printer):
    def __init__(self, trace, outputs):
        super().__init__()
        self.trace = trace
        output = next((o for o in outputs if isinstance(o, Output)), None)
        if output is None:
            fail("the function returns no output; expected af.softmax(s) @ v", ("", 0))
        self.output = output
        self.outputs = outputs
        self.weights = output.weights
        for other in outputs:
            if other is output:
                continue
            if not isinstance(other, LogSumExp) or other.weights is not self.weights:
                got = other.describe() if isinstance(other, Symbol) else arrays.describe(other)
                fail(
                    "the function may return the output and its log-sum-exp, got another value: " + got,
                    output.place,
                )
        if len(outputs) > 2 or len(set(map(id, outputs))) != len(outputs):
            fail("the function may return the output and its log-sum-exp, each once", output.place)
        self.has_lse = any(isinstance(o, LogSumExp) for o in outputs)
        self.product = self.weights.scores.product
        for operand in self._operands_in_use():
            operand.is_used = True
        self.arguments = [operand for operand in trace.operands if operand.is_used]
        self.names = {}
        for index, operand in enumerate(self.arguments):
            plain = re.fullmatch(r"[A-Za-z_][A-Za-z0-9_.]*", operand.name, re.ASCII)
            self.names[id(operand)] = "%" + (operand.name if plain else f"arg{index}")

    # What the result depends on.

    def _operands_in_use(self):
        for operand in self.trace.operands:
            operand.is_used = False
        product = self.product
        for tensor in (product.query, product.key, self.output.value):
            yield tensor.operand
            rotation = tensor.rotation
            while rotation:
                for other in (rotation.cos, rotation.sin, rotation.offset, rotation.positions):
                    if other is not None:
                        yield other.operand
                rotation = rotation.source.rotation
        for node in self._nodes():
            if node.op == "load":
                yield node.facts["operand"]
            if node.op == "bias":
                yield node.facts["bias"].operand
            if node.op == "alibi" and node.facts["slopes"] is not None:
                yield node.facts["slopes"].operand
            if node.op == "mask" and node.facts["mask"].blocks:
                for tensor in node.facts["mask"].blocks[:2]:
                    yield tensor.operand

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
            f"{self.names[id(o)]}: {o.type()} {{attnfuse.name = {quote(o.name)}}}" for o in self.arguments
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
        scale = "" if product.scale is None else f" {{scale = {_double_literal(product.scale)} : f64}}"
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
                given = "" if slopes is None else f" slopes({self.value(slopes)} : {slopes.operand.type()})"
                current = self.op(
                    f"attnfuse.alibi {current} {node.facts['align']}{given} : {scores}", node.place
                )
        weights = self.weights
        if weights.normalizer == "softmax":
            lse = f", {self.lse_type()}" if self.has_lse else ""
            probs = self.op2(f"attnfuse.softmax {current} : {scores}{lse}", weights.place, self.has_lse)
        else:
            norm = weights.normalizer.split("_")[1]
            probs = self.op2(f"attnfuse.relu_attention {current} {norm} : {scores}", weights.place, False)
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
                f"attnfuse.sliding_window {current} {mask.align} {{{bounds}}} : {scores}", mask.place
            )
        rows, columns, query_block, key_block = mask.blocks
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
            rows, columns, query_block, key_block = mask.blocks
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
        indices = ", ".join(f"%{name}_index: index" for name in _LEAVES)
        arguments = "".join(f", %table{i}: {o.type()}" for i, o in enumerate(tables))
        self.line(f"  ^bb0(%score: f32, {indices}{arguments}):")
        region = _RegionPrinter(self, {id(o): f"%table{i}" for i, o in enumerate(tables)})
        score = region.print(nodes)
        self.line(f"    attnfuse.yield {score} : f32", self.weights.scores.place)
        scale = product.scale
        if scale is None:
            scale = 1 / math.sqrt(product.query.operand.guards[3] or 1)
        self.line(
            f"  }} {{scale = {_double_literal(scale)} : f64}} : "
            f"({', '.join(o.type() for o in operands)}) -> ({', '.join(types)})",
            self.output.place,
        )
        return {"output": results[0], "lse": results[-1]}


def _double_literal(value):
    digits = repr(float(value))
    if "." not in digits and "e" in digits:
        digits = digits.replace("e", ".0e")
    return digits


def _band(mask):
    left, right = (None, 0) if mask.kind == "causal" else (mask.left, mask.right)
    bounds = [f"{n} = {b}" for n, b in (("left", left), ("right", right)) if b is not None]
    return f"#attnfuse.band<{', '.join([mask.align] + bounds)}>"


class _RegionPrinter:
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
        if op in _LEAVES:
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
            f"tensor.extract {self.tables[id(operand)]}[{', '.join(indices)}] : {operand.type()}", node
        )
        if operand.element in ("f16", "bf16"):
            return self._op(f"arith.extf {value} : {operand.element} to f32", node)
        if operand.element in ("i32", "i64"):
            return self._op(f"arith.index_cast {value} : {operand.element} to index", node)
        return value

    def _bias(self, node, score):
        operand = node.facts["bias"].operand
        leaves = [f"%{name}_index" for name in _LEAVES[:4]][4 - len(operand.guards) :]
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


def finish(trace, returned):
    """The program of a traced function that returned ``returned``."""
    outputs = list(returned) if isinstance(returned, (tuple, list)) else [returned]
    program = _FunctionPrinter(trace, outputs).print()
    program.is_tuple = isinstance(returned, (tuple, list))
    return program
