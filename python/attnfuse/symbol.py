# ===-----------------------------------------------------------------------===#
# Licensed under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
# ===-----------------------------------------------------------------------===#
"""What stands for a value while a function is traced, and what is said where it cannot."""

from . import arrays
from .errors import CompileError, SymbolAttributeError
from .operands import fail

#: Operators, by the names of their methods: (sign, NumPy's name, the method with the operands
#: exchanged).
OPERATORS = {
    "add": ("+", "add", "radd"),
    "sub": ("-", "subtract", "rsub"),
    "mul": ("*", "multiply", "rmul"),
    "truediv": ("/", "divide", "rtruediv"),
    "floordiv": ("//", "floor_divide", "rfloordiv"),
    "mod": ("%", "remainder", "rmod"),
    "pow": ("**", "power", "rpow"),
    "and": ("&", "bitwise_and", "rand"),
    "or": ("|", "bitwise_or", "ror"),
    "xor": ("^", "bitwise_xor", "rxor"),
    "lshift": ("<<", "left_shift", "rlshift"),
    "rshift": (">>", "right_shift", "rrshift"),
    "matmul": ("@", "matmul", "rmatmul"),
    "lt": ("<", "less", "gt"),
    "le": ("<=", "less_equal", "ge"),
    "gt": (">", "greater", "lt"),
    "ge": (">=", "greater_equal", "le"),
    "eq": ("==", "equal", "eq"),
    "ne": ("!=", "not_equal", "ne"),
}
UNARY = {"neg": "-", "pos": "+", "invert": "~", "abs": "abs"}

_OF_UFUNCS = {ufunc: name for name, (_, ufunc, _) in OPERATORS.items()}

#: Names of PyTorch's functions that are other than Python's, without underscores.
_OF_TORCH = {"div": "truediv", "true_divide": "truediv", "floor_divide": "floordiv", "remainder": "mod"}

#: What Python asks of a value.
QUESTIONS = "bool index array float int complex len iter contains round floor ceil trunc".split()


def describe(value):
    """For messages."""
    return value.describe() if isinstance(value, Symbol) else arrays.describe(value)


class Symbol:
    """Stands for a value of the call while a function is traced. What Python, NumPy or PyTorch want of
    a value is an error that says what to write, unless a subclass can do it."""

    __hash__ = object.__hash__

    #: What to write for the functions, methods and questions of these names; and for any other.
    counterparts = {}
    remedy = ""

    def refuse(self, name, what, error=CompileError):
        """Fails at the user's line, at the operator, function or method ``what``."""
        remedy = self.counterparts.get(name, self.remedy)
        fail(f"{self.describe()} cannot go through {what}; {remedy}", error=error)

    def __repr__(self):
        return f"<{self.describe()}>"

    def __getattr__(self, name):
        if name.startswith("__"):
            raise AttributeError(name)
        self.refuse(name, f".{name}", SymbolAttributeError)

    def __array_ufunc__(self, ufunc, method, *inputs, **options):
        try:
            if method != "__call__" or options or ufunc.__name__ not in _OF_UFUNCS:
                self.refuse(ufunc.__name__, f"np.{ufunc.__name__}")
            return _apply(_OF_UFUNCS[ufunc.__name__], *inputs)
        except CompileError as error:
            # NumPy before 1.25 takes an error for False where an array is compared.
            self.trace.failure = error
            raise

    def __array_function__(self, function, types, args, options):
        self.refuse(function.__name__, f"np.{function.__name__}")

    @classmethod
    def __torch_function__(cls, function, types, args=(), options=None):
        values = [*args, *(options or {}).values()]
        for value in values:
            # The index of a tensor may be several.
            values += value if isinstance(value, (tuple, list)) else ()
        symbol = next(value for value in values if isinstance(value, Symbol))
        name = function.__name__
        operator = _OF_TORCH.get(name.strip("_"), name.strip("_"))
        if operator in OPERATORS and len(args) == 2 and not options:
            # A tensor on the left of an operator.
            return _apply(operator, *args)
        with_array = name not in symbol.counterparts and any(map(arrays.is_array, values))
        symbol.refuse("__getitem__" if with_array else name, f"torch.{name}")


def _apply(name, left, right):
    """The operator of that name, with a symbol on either side."""
    if isinstance(left, Symbol):
        return getattr(left, f"__{name}__")(right)
    return getattr(right, f"__{OPERATORS[name][2]}__")(left)


def _refuse_question(name):
    def method(self, *_, **__):
        remedy = self.counterparts.get(name, self.remedy)
        fail(f"{self.describe()} has no value while the function is traced; {remedy}")

    return method


def _refuse_operator(name, sign):
    return lambda self, *_: self.refuse(name, f"'{sign}'")


for _name in QUESTIONS:
    setattr(Symbol, f"__{_name}__", _refuse_question(_name))
for _name, (_sign, _, _mirrored) in OPERATORS.items():
    setattr(Symbol, f"__{_name}__", _refuse_operator(_name, _sign))
    if _mirrored not in OPERATORS:
        setattr(Symbol, f"__{_mirrored}__", _refuse_operator(_name, _sign))
for _name, _sign in {**UNARY, "getitem": "[]", "divmod": "divmod", "rdivmod": "divmod"}.items():
    setattr(Symbol, f"__{_name}__", _refuse_operator(_name, _sign))
