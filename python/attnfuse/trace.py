# ===-----------------------------------------------------------------------===#
# Licensed under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
# ===-----------------------------------------------------------------------===#
"""One call of a Python function of blocks with symbols in place of its operands."""

import contextlib
import inspect
import re
import threading

from . import arrays
from .errors import Error, OperandError
from .operands import ROLES, Leaf, Operand, caller_frame, defined_at, fail, raised_at
from .symbol import Symbol, describe
from .symbols import Dimension, Scalar, Tensor

#: Names of dimensions in messages and manifests, with a number after the first of a kind. Operands
#: have other names.
DIMENSION = re.compile(r"(B|Hq|Hkv|Nq|Nkv|D|Dv|R|nnz|P|P_q|P_k)(_[0-9]+)?", re.ASCII)

_OF_THE_CALL = ("q", "k", "v", "rotated")

_active = threading.local()

#: What Python, NumPy and PyTorch raise where a function does what its symbols, or the blocks, cannot do.
_RAISED = (ArithmeticError, AttributeError, LookupError, RuntimeError, TypeError, ValueError)


class Trace:
    def __init__(self, name, leaves, plain):
        self.name = name
        self.operands = [Operand(leaf) for leaf in leaves]
        self._by_name = {operand.name: operand for operand in self.operands}
        self._constants = {}
        #: What the call gives that becomes part of the code, by name: None, bools, strings, floats.
        self._plain = plain
        #: What the call gives beside the function's parameters, by name.
        self.ambients = {}
        self.taken = set()
        #: An error that the function may not have seen.
        self.failure = None
        #: (file, line) of the function.
        self.place = None

    def run(self, function, operands):
        """What ``function`` returns for symbols."""
        before, _active.trace = getattr(_active, "trace", None), self
        self.place = defined_at(function)
        torch = arrays.loaded_torch()
        try:
            # What is made of captured tensors has to show that it requires a gradient, for later calls.
            with torch.enable_grad() if torch else contextlib.nullcontext():
                returned = function(**operands)
        except Error:
            raise
        except _RAISED as error:
            fail(_describe_raised(error), raised_at(error) or self.place, cause=error)
        finally:
            _active.trace = before
        if self.failure:
            raise self.failure
        return returned

    def symbol(self, name):
        operand = self._by_name[name]
        return Scalar(self, operand) if operand.is_scalar else Tensor(self, operand)

    def given(self, value, name, block, how):
        """The operand ``value``, or the call's of that name; ``how`` to write the former."""
        # A parameter of the function is for the function to pass on.
        value = self.ambient(name) if value is None else value
        if value is None:
            empty = [f"'{name}'" for name, plain in self._plain.items() if plain is None]
            also = f" ({' and '.join(empty)} may not be None)" if empty else ""
            raise OperandError(
                f"{block}: missing argument '{name}'; pass {name}=... to the call, or write {how}{also}"
            )
        return value

    def own(self, value):
        """Fails for a symbol of another trace."""
        if isinstance(value, Symbol) and value.trace is not self:
            fail(
                f"{value.describe()} is of another call: what a function is given stands for values only "
                "while that function is traced; pass them on as arguments, and keep none"
            )

    def ambient(self, name):
        """The call's operand ``name`` that is no parameter of the function, or None."""
        self.taken.add(name)
        return self.ambients.get(name)

    def tensor(self, value, role, block):
        """``value``, a symbol or a captured array, as a symbol in the role of that name. A captured
        array becomes an operand that every call passes along, but q, k and v are the call's."""
        self.own(value)
        if arrays.is_array(value) and role not in _OF_THE_CALL:
            operand = self._constants.get(id(value))
            if operand is None:
                operand = Operand(Leaf.of(self._name(value, role), value), is_constant=True)
                self._constants[id(value)] = operand
                self.operands.append(operand)
            value = Tensor(self, operand)
        if not isinstance(value, Tensor):
            remedy = "pass a NumPy array or a torch tensor, as an argument of the call"
            self.refuse(value, block, f"expected {ROLES[role]}, got {{0}}; {remedy}", role)
        value.operand.use(role)
        return value

    def refuse(self, value, place, message, preferred=None):
        """Fails for ``value``, whose description goes into the message: where the call gave it, for its
        argument (of several that are the same, that of the ``preferred`` name), else for the function's
        line, at ``place`` there."""
        if isinstance(value, (Scalar, Tensor)):
            value.operand.refuse(message.replace("{0}", value.operand.describe()))
        described = describe(value)
        if isinstance(value, Dimension):
            message = f"{message.partition('; ')[0]}; {value.remedy}"
        message = message.replace("{0}", described)
        names = [name for name, plain in self._plain.items() if plain is value]
        if names:
            name = preferred if preferred in names else names[0]
            raise OperandError(f"argument '{name}': {message}")
        fail(f"{place}: {message}")

    def _name(self, value, role):
        """The name by which the user's code knows a captured array, if that can be seen."""
        frame = caller_frame()
        scopes = (frame.f_locals, frame.f_globals) if frame else ()
        found = (name for scope in scopes for name, known in scope.items() if known is value)
        name = next(found, f"captured_{role}")
        names = {operand.name for operand in self.operands}
        while name in names or DIMENSION.fullmatch(name):
            name = f"captured_{name}"
        return name


def _describe_raised(error):
    """Of what a function raised, with the parameters of a block where it was called with others."""
    message = f"{type(error).__name__} while the function is traced: {error}"
    from . import blocks

    name, found, _ = str(error).partition("() ")
    block = getattr(blocks, name, None) if found and isinstance(error, TypeError) else None
    if inspect.isfunction(block):
        return f"{message}; expected af.{name}{inspect.signature(block)}"
    if isinstance(error, LookupError) and isinstance(error.args[0] if error.args else None, Symbol):
        return (
            f"{type(error).__name__} while the function is traced: {error.args[0].describe()} has no "
            "value to look up; write af.load(table, index, ...) of an array for table[index]"
        )
    return f"{message}; a function has symbols in place of values, which blocks and operators take"


def active_trace(block):
    """The trace that is going on."""
    trace = getattr(_active, "trace", None)
    if trace is None:
        fail(f"{block}: blocks are called inside of an @af.attention function")
    return trace
