# ===-----------------------------------------------------------------------===#
# Licensed under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
# ===-----------------------------------------------------------------------===#
"""What the package raises.

Who has to change something decides the class: the line that calls (OperandError), or the function
that is called (CompileError). Python's own TypeError, IndexError and the like are never raised for
what a user passes to an attention function or writes in one: those that a traced function runs into
become CompileErrors at its line.
"""


class Error(Exception):
    """Any error of this package."""


class OperandError(Error, ValueError):
    """An argument is not what is expected: one that a call gives to an attention function (missing,
    unknown, of a wrong kind, shape, element type or device, at odds with another one, or not what a
    GPU takes), or one of the package's other functions. The message names the argument and the
    remedy."""


class CompileError(Error):
    """The function is no attention variant, or none that the target can execute, whatever it is called
    with. ``filename`` and ``lineno`` are the Python line that the message is about; None where it is
    about the whole function."""

    def __init__(self, message, filename=None, lineno=None):
        super().__init__(message)
        self.filename = filename
        self.lineno = lineno


class SymbolAttributeError(CompileError, AttributeError):
    """What stands for a value while a function is traced has no such attribute: a CompileError that
    ``hasattr`` understands."""


class GradientError(Error, RuntimeError):
    """A gradient is asked for, of an operand or of a captured tensor, and there is no backward pass
    yet."""
