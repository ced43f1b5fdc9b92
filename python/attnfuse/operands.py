# ===-----------------------------------------------------------------------===#
# Licensed under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
# ===-----------------------------------------------------------------------===#
"""What a call gives, as the arguments of the function that is traced.

Of an operand, those sizes are compiled in that the dialect wants to know (heads, features) or that
decide what is broadcast; lengths and batch stay open. The *guards* of a program say for which
operands it serves.
"""

import inspect
import os
import sys

import numpy as np

from . import arrays
from .errors import CompileError, OperandError

# Guards of a size: any, any but 1 (which would be broadcast), or the int itself.
ANY = "any"
NOT_ONE = "not one"

_PACKAGE = os.path.dirname(os.path.abspath(__file__)) + os.sep
_NUMPY = os.path.dirname(os.path.abspath(np.__file__)) + os.sep


def _is_users(frame):
    """Whether a frame is outside of this package, and of the libraries whose functions it answers
    for."""
    torch = arrays.loaded_torch()
    skipped = (_PACKAGE, _NUMPY, "<__array_function__")
    skipped += (os.path.dirname(torch.__file__) + os.sep,) if torch else ()
    return not frame.f_code.co_filename.startswith(skipped)


def caller_frame():
    """The innermost frame of the user's; or None."""
    frame = sys._getframe(1)
    while frame and not _is_users(frame):
        frame = frame.f_back
    return frame


def caller():
    """(file, line) of the user's code that is running."""
    frame = caller_frame()
    return (frame.f_code.co_filename, frame.f_lineno) if frame else ("", 0)


def raised_at(error):
    """(file, line) of the user's code that an exception passed last."""
    place, trace = None, error.__traceback__
    while trace:
        if _is_users(trace.tb_frame):
            place = trace.tb_frame.f_code.co_filename, trace.tb_lineno
        trace = trace.tb_next
    return place


def defined_at(function):
    """(file, line) of a function; None of one that has no Python."""
    code = getattr(inspect.unwrap(function), "__code__", None)
    return code and (code.co_filename, code.co_firstlineno)


def fail(message, place=None, error=CompileError, cause=None):
    """Raises a CompileError at the user's line."""
    file, line = place or caller()
    if not file:
        raise error(message) from cause
    raise error(f"{file}:{line}: {message}", file, line) from cause


def describe_parameters(function, parameters):
    """What is wrong with ``function`` where one of these parameters is expected, with the remedy; or
    None."""
    names = ", ".join(parameters)
    if not callable(function):
        return f"expected a function of ({names}), got {arrays.describe(function)}"
    try:
        signature = inspect.signature(function)
    except (TypeError, ValueError):
        # Some that are written in C do not say.
        return None
    try:
        signature.bind(*parameters)
    except TypeError:
        return (
            f"expected a function of ({names}), got one of {signature}; write lambda {names}: ..., "
            "whether it needs all of them or not"
        )
    return None


def fits_int64(value):
    """Whether code can be given the int."""
    return -(2**63) <= value < 2**63


# ===-----------------------------------------------------------------------===#
# Roles
# ===-----------------------------------------------------------------------===#

FLOATS = ("f16", "bf16", "f32")
INTS = ("i32", "i64")
_ANY_RANK = range(0, 9)


def shape_text(sizes):
    return f"[{', '.join(map(str, sizes))}]"


class Role:
    """What an argument is for, and so what it may be."""

    def __init__(
        self, name, elements, shapes=None, static="", broadcast="", hint="", reshape="reshape it"
    ):
        self._name = name
        self.elements = elements
        #: The names of dimensions, by rank; None where any shape will do.
        self.shapes = shapes and {len(shape.split()): shape.split() for shape in shapes}
        #: The dimensions whose sizes are compiled in, and those in which a size of 1 is broadcast.
        self.static, self.broadcast = static.split(), broadcast.split()
        #: The remedy for an array of bools, a mask; {0} is for its conversion.
        self.hint = hint
        #: The remedy for an array of another rank; {0} is its name.
        self.reshape = reshape

    def __str__(self):
        shapes = self.shapes.values() if self.shapes and not self.broadcast else ()
        return f"{self._name} {' or '.join(map(shape_text, shapes))}".rstrip()

    def dims(self, rank):
        """The names of the dimensions of an array that has the role."""
        return self.shapes[rank] if self.shapes else [None] * rank


#: Tables of transformers are [B, N, R], and have each angle twice.
_PART = (
    "pass {0}[0], where positions are alike in the batch, and of tables that have each angle twice, as "
    "transformers' have, {0}[0, :, :R // 2]"
)

ROLES = {
    "q": Role("q", FLOATS, ["B Hq Nq D"], static="Hq D"),
    "k": Role("k", FLOATS, ["B Hkv Nkv D"], static="Hkv D"),
    "v": Role("v", FLOATS, ["B Hkv Nkv Dv"], static="Hkv Dv"),
    "rotated": Role("q or k", FLOATS, ["B H N D"], static="H D"),
    "cos": Role("cos", FLOATS, ["P R/2"], static="R/2", reshape=_PART),
    "sin": Role("sin", FLOATS, ["P R/2"], static="R/2", reshape=_PART),
    "positions": Role("positions", INTS, ["N", "B N"]),
    "slopes": Role("slopes", ("f32",), ["Hq", "B Hq"], static="Hq"),
    "bias": Role(
        "a bias that broadcasts to [B, Hq, Nq, Nkv]",
        FLOATS,
        ["B Hq Nq Nkv", "Hq Nq Nkv", "Nq Nkv", "Nkv", ""],
        static="Hq",
        broadcast="B Hq Nq Nkv",
        hint="a mask is a bias of 0 and -inf, {0}; or hide keys in the function, by af.mask_mod or "
        "af.block_sparse",
    ),
    "row_offsets": Role(
        "row offsets [rows] or [B, Hq, rows]",
        ("i32",),
        ["rows", "B Hq rows"],
        static="Hq",
        broadcast="B Hq",
    ),
    "col_indices": Role("column indices", ("i32",), ["entries"]),
    "table": Role("a table", FLOATS + INTS),
}


# ===-----------------------------------------------------------------------===#
class Leaf:
    """What a call gives for one argument of the compiled function: a tensor, or an int."""

    def __init__(self, name, element, shape, value):
        self.name = name
        #: As MLIR writes it; of a type that no role takes, as its library does.
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
                f"argument '{name}': expected an int of 64 bits, from -2**63 to 2**63 - 1, got {value}"
            )
        return Leaf(name, "i64", None, value)


def title(leaf):
    """For messages, a leaf or an operand: the name that the user's code has for it; of a captured array
    also the line, for it may have none."""
    # Lists are parts of a block mask.
    name = leaf.name.partition(".")[0]
    if getattr(leaf, "is_constant", False):
        return f"{leaf.place[0]}:{leaf.place[1]}: argument '{name}'"
    return f"argument '{name}'"


class Operand:
    """An argument of the function that is being traced."""

    def __init__(self, leaf, is_constant=False):
        self.name = leaf.name
        self.element = leaf.element
        self.shape = leaf.shape
        self.value = leaf.value
        self.is_constant = is_constant
        #: Where a captured array is used first.
        self.place = caller() if is_constant else None
        #: For an int: its value, once the program depends on it.
        self.guard = ANY
        self.guards = None if leaf.shape is None else [ANY] * len(leaf.shape)

    @property
    def is_scalar(self):
        return self.shape is None

    def use(self, role):
        """Notes a use in the role of that name, for which the operand must have the rank and the
        element type."""
        role = ROLES[role]
        if self.element not in role.elements:
            self.refuse(
                f"expected {' or '.join(role.elements)} elements as {role}, got {self.element}; "
                + self._conversion(role)
            )
        rank = len(self.shape)
        if rank not in (role.shapes or _ANY_RANK):
            ranks = sorted(role.shapes or _ANY_RANK)
            span = str(ranks[0]) if len(ranks) == 1 else f"{ranks[0]} to {ranks[-1]}"
            self.refuse(
                f"expected {role} of {span} dimensions, got {rank} (shape {list(self.shape)}); "
                + role.reshape.replace("{0}", self.name)
            )
        for axis, (dim, size) in enumerate(zip(role.dims(rank), self.shape)):
            if dim in role.static:
                self.compile_in(axis)
            elif dim in role.broadcast and self.guards[axis] is ANY:
                self.guards[axis] = 1 if size == 1 else NOT_ONE

    def compile_in(self, axis):
        """The size of a dimension, on which the code comes to depend."""
        if self.shape[axis] is None:
            self.refuse(f"dimension {axis} is part of the compiled code; give its size")
        self.guards[axis] = int(self.shape[axis])
        return self.guards[axis]

    def describe(self):
        """For messages: what the call gives."""
        return f"the int {self.value}" if self.is_scalar else f"an array of {self.element}"

    def refuse(self, message):
        raise OperandError(f"{title(self)}: {message}")

    def _conversion(self, role):
        if self.element == "bool" and role.hint:
            return role.hint.format(arrays.as_bias(self.value, self.name))
        is_integer = self.element.lstrip("u").startswith(("bool", "int"))
        wanted = "i32" if is_integer or "f32" not in role.elements else "f32"
        wanted = wanted if wanted in role.elements else role.elements[-1]
        return f"convert it by {arrays.conversion(self.value, self.name, wanted)}"

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
