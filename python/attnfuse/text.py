# ===-----------------------------------------------------------------------===#
# Licensed under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
# ===-----------------------------------------------------------------------===#
"""Text of MLIR."""

import math

import numpy as np


def quote(text):
    return (
        '"'
        + "".join(
            (
                c
                if 32 <= ord(c) < 127 and c not in '"\\'
                else "".join(f"\\{b:02X}" for b in c.encode())
            )
            for c in text
        )
        + '"'
    )


def float_literal(value):
    # What is too large is infinite.
    with np.errstate(over="ignore"):
        value = float(np.float32(value))
    if not math.isfinite(value):
        return f"0x{np.float32(value).view(np.uint32):08X}"
    digits = repr(value)
    if "." not in digits:
        mantissa, e, exponent = digits.partition("e")
        digits = mantissa + ".0" + e + exponent
    return digits


def double_literal(value):
    digits = repr(float(value))
    if "." not in digits and "e" in digits:
        digits = digits.replace("e", ".0e")
    return digits


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
