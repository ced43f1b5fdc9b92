# ===-----------------------------------------------------------------------===#
# Licensed under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
# ===-----------------------------------------------------------------------===#
"""What the package raises."""


class Error(Exception):
    """Any error of this package."""


class OperandError(Error, ValueError):
    """An argument of a call is not what the function takes. The message names the argument, what
    was expected, and the remedy."""


class CompileError(Error):
    """The function is no attention variant, or none that the target can execute. ``filename`` and
    ``lineno`` are the Python line that the compiler's message is about; None where it is about the
    whole function."""

    def __init__(self, message, filename=None, lineno=None):
        super().__init__(message)
        self.filename = filename
        self.lineno = lineno


class GradientError(Error, RuntimeError):
    """A gradient is asked for, and there is no backward pass yet."""
