# ===-----------------------------------------------------------------------===#
# Licensed under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
# ===-----------------------------------------------------------------------===#
"""What tracing a function results in."""

import re

from . import arrays


class Program:
    """A traced function."""

    def __init__(
        self, name, text, located_text, operands, arguments, results, query, value, checks
    ):
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
        #: Of the operands of a call.
        self.checks = checks
        #: Those that are captured tensors of PyTorch's, which may require gradients.
        self.captured = [o for o in arguments if o.is_constant and arrays.is_torch(o.value)]
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
