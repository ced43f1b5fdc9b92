# ===-----------------------------------------------------------------------===#
# Licensed under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
# ===-----------------------------------------------------------------------===#
"""What stands for the values of a call while a function is traced."""

import operator

from . import arrays
from .operands import caller, fail
from .symbol import OPERATORS, UNARY, Symbol


class Scalar(Symbol):
    """An int of the call. It stays open where a block takes a run-time number; wherever Python wants
    its value, that is compiled in."""

    remedy = "int(x) is its value"

    def __init__(self, trace, operand):
        self.trace = trace
        self.operand = operand

    def describe(self):
        return f"argument '{self.operand.name}'"

    def __index__(self):
        if self.operand.value is None:
            fail(f"{self.describe()} has no value here; pass a number")
        self.operand.guard = int(self.operand.value)
        return self.operand.guard

    __int__ = __index__

    def __bool__(self):
        return bool(operator.index(self))

    def __float__(self):
        return float(operator.index(self))


def _fold(function):
    """An operator on the value of a Scalar."""
    return lambda self, *other: function(operator.index(self), *other)


def _fold_mirrored(function):
    return lambda self, other: function(other, operator.index(self))


for _name, (_, _, _mirrored) in OPERATORS.items():
    _function = getattr(operator, f"__{_name}__")
    setattr(Scalar, f"__{_name}__", _fold(_function))
    if _mirrored not in OPERATORS:
        setattr(Scalar, f"__{_mirrored}__", _fold_mirrored(_function))
for _name in UNARY:
    setattr(Scalar, f"__{_name}__", _fold(getattr(operator, f"__{_name}__")))


class Tensor(Symbol):
    """An operand, or a rotated one."""

    remedy = (
        "it is a whole tensor, and blocks are all that it can go through: take "
        "af.scaled_dot_product(q, k, scale=...) for scores, af.rope, af.softmax(s) @ v for the output, "
        "or an element by af.load; or transform it before the call"
    )

    def __init__(self, trace, operand, rotation=None):
        self.trace = trace
        #: The argument that it comes from.
        self.operand = operand
        #: The last rotation, or None.
        self.rotation = rotation

    counterparts = dict.fromkeys(("size", "dim"), "write x.shape and x.ndim")

    def describe(self):
        return f"argument '{self.operand.name}'"

    def rotations(self):
        """From the last to the first."""
        tensor = self
        while tensor.rotation:
            yield tensor.rotation
            tensor = tensor.rotation.source

    @property
    def shape(self):
        """Heads and features of q, k and v, which are compiled in, are ints; so are others that are
        compiled in by now. The rest are symbols."""
        operand = self.operand
        if self.ndim == 4 and operand in self.trace.operands[:3]:
            for axis in (1, 3):
                operand.compile_in(axis)
        return tuple(
            guard if isinstance(guard, int) else Dimension(self, axis)
            for axis, guard in enumerate(operand.guards)
        )

    @property
    def ndim(self):
        return len(self.operand.guards)

    def __getitem__(self, index):
        from .elements import Element, load

        indices = index if isinstance(index, tuple) else (index,)
        is_load = any(isinstance(each, Element) for each in indices)
        is_part = any(each is None or isinstance(each, (slice, type(...))) for each in indices)
        if is_part or (not is_load and len(indices) != self.ndim):
            self.refuse("getitem", "[], but for an element, by an index for each dimension")
        return load(self, *indices)

    def __rmatmul__(self, weights):
        if isinstance(weights, tuple):
            fail(
                "expected weights before '@', got a tuple; write p, lse = af.softmax(s, return_lse=True), "
                "then p @ v"
            )
        self.refuse("rmatmul", "'@'")


class Dimension(Symbol):
    """The size of a tensor in a dimension that is open: one kernel serves all its sizes."""

    remedy = (
        "it is no number before the call: the sizes of batch and sequences are open, while those of "
        "heads and features (x.shape[1], x.shape[-1] of q, k and v) are ints; write af.lengths(s) for the "
        "numbers of queries and keys"
    )

    def __init__(self, tensor, axis):
        self.trace, self.tensor, self.axis = tensor.trace, tensor, axis

    def describe(self):
        return f"dimension {self.axis} of {self.tensor.describe()}"


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
        #: (row offsets, column indices, queries per block, keys per block, blocks of keys or None).
        self.blocks = blocks
        self.place = place


class Weights(Symbol):
    """Probabilities, or what relu_attention gives."""

    remedy = "write weights @ v; change the scores before the normaliser"

    def __init__(self, scores, normalizer, place):
        self.trace = scores.trace
        self.scores = scores
        self.normalizer = normalizer
        self.place = place

    def describe(self):
        return "the weights"

    def __matmul__(self, value):
        return weighted_sum(self, value)


class LogSumExp(Symbol):
    remedy = "return it beside the output, and compute on it after the call"

    def __init__(self, weights):
        self.trace = weights.trace
        self.weights = weights

    def describe(self):
        return "the log-sum-exp"


class Output(Symbol):
    remedy = "return it, and compute on it after the call"

    def __init__(self, weights, value, element, place):
        self.trace = weights.trace
        self.weights, self.value, self.element, self.place = weights, value, element, place

    def describe(self):
        return "the output"


def weighted_sum(weights, value, dtype=None):
    if not isinstance(weights, Weights):
        fail("weighted_sum: expected the result of af.softmax or af.relu_attention")
    value = weights.trace.tensor(value, "v", "weighted_sum")
    element = value.operand.element
    if dtype is not None:
        element = arrays.element_named(dtype, dict.fromkeys((element, "f32")))
    return Output(weights, value, element, caller())
