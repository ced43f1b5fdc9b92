# ===-----------------------------------------------------------------------===#
# Licensed under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
# ===-----------------------------------------------------------------------===#
"""One call of a Python function of blocks with symbols in place of its operands."""

from . import arrays
from .operands import Leaf, Operand, fail
from .symbols import Scalar, Symbol, Tensor


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
