# ===-----------------------------------------------------------------------===#
# Licensed under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
# ===-----------------------------------------------------------------------===#
"""What a call gives, as the arguments of the function that is traced.

Of an operand, those sizes are compiled in that the dialect wants to know (heads, features) or that
decide what is broadcast; lengths and batch stay open. The *guards* of a program say for which
operands it serves.
"""

import os
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


def fits_int64(value):
    """Whether code can be given the int."""
    return -(2**63) <= value < 2**63


# ===-----------------------------------------------------------------------===#
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
        if isinstance(value, np.integer):
            value = int(value)
        if arrays.is_array(value):
            return Leaf(name, arrays.element(value, name), tuple(value.shape), value)
        if not fits_int64(value):
            raise OperandError(
                f"operand '{name}': expected an int of 64 bits, from -2**63 to 2**63 - 1, got {value}"
            )
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
