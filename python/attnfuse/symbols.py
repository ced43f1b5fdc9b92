# ===-----------------------------------------------------------------------===#
# Licensed under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
# ===-----------------------------------------------------------------------===#
"""What stands for the values of a call while a function is traced."""

import operator

from . import arrays
from .operands import caller, fail

FLOATS = ("f16", "bf16", "f32")


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
        from .elements import load

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


def weighted_sum(weights, value, dtype=None):
    if not isinstance(weights, Weights):
        fail("weighted_sum: expected the result of af.softmax or af.relu_attention")
    value = weights.trace.tensor(value, "v", "weighted_sum")
    value.operand.use("v [B, Hkv, Nkv, Dv]", FLOATS, {4}, static=(1, 3))
    element = value.operand.element
    if dtype is not None:
        element = arrays.TensorSpec((), dtype).element
    return Output(weights, value, element, caller())
