# ===-----------------------------------------------------------------------===#
# Licensed under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
# ===-----------------------------------------------------------------------===#
"""The decorator, and what is done with a decorated function."""

import functools
import inspect
import itertools
import threading
import weakref

import numpy as np

from . import arrays, cache, native
from .block_mask import BlockMask
from .checks import check_places
from .errors import CompileError, OperandError
from .operands import Leaf, defined_at, fail
from .printer import finish
from .program import function_name
from .symbol import Symbol
from .trace import DIMENSION, Trace

#: Operands that a call may give by these names without the function having them as parameters:
#: blocks take them where they are not given them.
AMBIENT = ("cos", "sin", "bias", "block_mask", "slopes", "positions", "offset")

LEVELS = ("blocks", "fused", "schedule", "nvvm", "llvm", "ptx", "manifest", "linalg")


class _SymbolicMask:
    """A block mask while a function is traced."""

    def __init__(self, mask, rows, columns):
        self.query_block, self.key_block = mask.query_block, mask.key_block
        self.key_blocks = mask.key_blocks
        self.row_offsets, self.col_indices = rows, columns


class Attention:
    """A function of q, k, v and further operands, written in blocks. It is traced at the first call
    and at calls that no earlier trace serves: other types, heads or feature sizes. Calling it with
    NumPy arrays runs on the CPU; with torch tensors, where these are."""

    def __init__(self, function):
        functools.update_wrapper(self, function)
        self.function = function
        self.name = function_name(function.__name__)
        parameters = self._read_parameters(function)
        # Plain values: PyTorch's compiler reads them too.
        self.names = tuple(parameter.name for parameter in parameters)
        self.num_positional = sum(p.kind is not p.KEYWORD_ONLY for p in parameters)
        self.defaults = {p.name: p.default for p in parameters if p.default is not p.empty}
        self._programs = []
        self._lock = threading.Lock()
        #: Launches by the sizes of a call; the PyTorch path has it.
        self.launches = threading.local()
        self.number = _register(self)

    def __repr__(self):
        return f"<attnfuse attention '{self.name}'>"

    def _read_parameters(self, function):
        parameters = list(inspect.signature(function).parameters.values())
        problem = None
        for parameter in parameters:
            if parameter.kind in (parameter.VAR_POSITIONAL, parameter.VAR_KEYWORD):
                problem = (
                    f"expected named parameters, got '{parameter}'; operands are told apart by their names"
                )
        if parameters and parameters[0].name in ("self", "cls"):
            problem = (
                f"expected a function of (q, k, v, ...), got a method of '{parameters[0].name}'; write "
                "@staticmethod above @af.attention, or define it outside of the class"
            )
        elif sum(p.kind is not p.KEYWORD_ONLY for p in parameters) < 3:
            problem = "expected at least the parameters q, k and v"
        if problem:
            fail(f"{self.name}: {problem}", defined_at(function))
        return parameters

    # ===---------------------------------------------------------------------===#
    # Calls
    # ===---------------------------------------------------------------------===#

    def __call__(self, *args, **operands):
        torch = arrays.loaded_torch()
        if torch is not None and args and isinstance(args[0], torch.Tensor):
            from . import torch_backend

            return torch_backend.call(self, args, operands)
        if not args and arrays.is_torch(operands.get(self.names[0])):
            from . import torch_backend

            return torch_backend.call(self, args, operands)
        return self._run_numpy(self.bind(args, operands))

    def bind(self, args, operands):
        """What a call gives, by name, in the order of the parameters."""
        if len(args) > self.num_positional:
            raise OperandError(
                f"{self.name}: expected at most {self.num_positional} operands, got {len(args)}"
            )
        bound = dict(zip(self.names, args))
        for name in self.names[len(args) :]:
            if name in operands:
                bound[name] = operands[name]
            elif name in self.defaults:
                bound[name] = self.defaults[name]
            else:
                raise OperandError(f"{self.name}: missing argument '{name}'; pass {name}=...")
        for name, value in operands.items():
            if name in self.names[: len(args)]:
                raise OperandError(f"{self.name}: argument '{name}' is given twice")
            if name in bound:
                continue
            if name not in AMBIENT:
                raise OperandError(
                    f"{self.name}: unexpected argument '{name}'; expected one of its parameters "
                    f"({', '.join(self.names)}) or of {', '.join(AMBIENT)}"
                )
            if value is not None:
                bound[name] = value
        return bound

    def program(self, bound, is_launched=True):
        """(program, leaves by name) for a call; the operands of one that is not launched may be
        anywhere."""
        leaves, structure = _flatten(bound)
        program = self.find_program(leaves, structure) or self._trace(bound, leaves, structure)
        if is_launched:
            constants = [operand for operand in program.arguments if operand.is_constant]
            check_places(leaves[program.query], leaves, constants)
        program.checks.check(leaves)
        return program, leaves

    def find_program(self, leaves, structure):
        for known, program in self._programs:
            if known == structure and program.fits(leaves):
                return program
        return None

    def _trace(self, bound, leaves, structure):
        with self._lock:
            program = self.find_program(leaves, structure)
            if program:
                return program
            plain = {name: value for name, value in bound.items() if _is_constant(value)}
            trace = Trace(self.name, leaves.values(), plain)
            values = {name: _symbol(trace, name, value) for name, value in bound.items()}
            trace.ambients = {n: value for n, value in values.items() if n not in self.names}
            returned = trace.run(self.function, {name: values[name] for name in self.names})
            program = finish(trace, returned)
            for name in bound:
                if name in trace.ambients and name not in trace.taken:
                    raise OperandError(
                        f"{self.name}: argument '{name}' is not used; no block of the function takes it"
                    )
            for operand in program.arguments:
                if DIMENSION.fullmatch(operand.name):
                    raise OperandError(
                        f"{self.name}: argument '{operand.name}' has the name of a dimension, which "
                        "kernels and messages use; rename the parameter"
                    )
            self._programs.append((structure, program))
            return program

    def _run_numpy(self, bound):
        program, leaves = self.program(bound)
        run = cache.cpu_function(program)
        arguments = (native.Value * len(program.arguments))()
        keep = []
        for value, operand in zip(arguments, program.arguments):
            leaf = operand if operand.is_constant else leaves[operand.name]
            if operand.is_scalar:
                value.scalar = leaf.value
                continue
            array = np.asarray(leaf.value)
            keep.append(array)
            _describe_numpy(value, array, operand.element, operand.name)
        query = bound[program.query]
        shapes = program.result_shapes(query.shape, bound[program.value].shape)
        results = (native.Value * len(shapes))()
        outputs = []
        for value, shape, (_, element) in zip(results, shapes, program.results):
            outputs.append(np.empty(shape, _numpy_dtype(element, query, bound[program.value])))
            _describe_numpy(value, outputs[-1], element)
        error = run.run(arguments, results)
        if error:
            raise OperandError(f"{self.name}: {error}")
        return tuple(outputs) if program.is_tuple else outputs[0]

    # ===---------------------------------------------------------------------===#
    # Looking inside
    # ===---------------------------------------------------------------------===#

    def lower(self, *args, level="fused", target=None, **operands):
        """The function's code as text, for operands like these (arrays or af.TensorSpec): as
        "blocks", "fused", "schedule", "nvvm", "llvm", "ptx", "manifest", or, for the CPU, "linalg".
        All but blocks, fused and linalg want a ``target``, such as "h200" or "sm_80"."""
        if level not in LEVELS:
            raise OperandError(f"level: expected one of {', '.join(LEVELS)}, got {level!r}")
        program, _ = self.program(self.bind(args, operands), is_launched=False)
        if level not in ("blocks", "fused", "linalg"):
            target = _check_target(target)
            program.checks.check_gpu()
        if level == "blocks":
            return program.text
        if level in ("fused", "linalg"):
            return native.compile_module(program.located_text, None, level).code.decode()
        if level in ("ptx", "manifest"):
            compiled = cache.ptx(program, target)
            return compiled.manifest if level == "manifest" else compiled.code.decode()
        return native.compile_module(program.located_text, target, level).code.decode()

    def explain(self, *args, target=None, **operands):
        """What the compiler decides for operands like these: what is fused, which rotations are part
        of the kernel, the schedule, and what it takes from the machine."""
        program, _ = self.program(self.bind(args, operands), is_launched=False)
        target = _check_target(target)
        program.checks.check_gpu()
        # Says whether there is a kernel at all.
        cache.ptx(program, target)
        # Remarks name lines, which what is cached may have from another file.
        return native.compile_module(program.located_text, target, "schedule").explanation


def attention(function):
    """Makes an attention of a function of (q, k, v, ...) that is written in blocks."""
    if not inspect.isroutine(function):
        raise CompileError(
            f"attention: expected a function of (q, k, v, ...), got {arrays.describe(function)}; write "
            "@af.attention above its def"
        )
    return Attention(function)


def lower(function, *args, **operands):
    return _check_attention(function).lower(*args, **operands)


def explain(function, *args, **operands):
    return _check_attention(function).explain(*args, **operands)


lower.__doc__, explain.__doc__ = Attention.lower.__doc__, Attention.explain.__doc__


def _check_attention(function):
    if isinstance(function, Attention):
        return function
    raise OperandError(f"expected a function decorated with @af.attention, got {function!r}")


def _check_target(target):
    known = native.list_targets()
    if target not in known:
        raise OperandError(
            f"target: expected the machine to compile for, one of {', '.join(known)}, got {target!r}"
        )
    return target


# ===-----------------------------------------------------------------------===#
# All attentions, by number
# ===-----------------------------------------------------------------------===#

#: PyTorch's op knows a function by its number.
_attentions = weakref.WeakValueDictionary()
_numbers = itertools.count()


def _register(attention_):
    number = next(_numbers)
    _attentions[number] = attention_
    return number


def by_number(number):
    return _attentions[number]


# ===-----------------------------------------------------------------------===#
# Operands
# ===-----------------------------------------------------------------------===#


def _flatten(bound):
    """Tensors and ints by name, and what else the code depends on."""
    leaves, structure = {}, []
    for name, value in bound.items():
        if isinstance(value, BlockMask):
            for part in ("row_offsets", "col_indices"):
                leaf = Leaf.of(f"{name}.{part}", getattr(value, part))
                leaves[leaf.name] = leaf
            structure.append((name, "blocks", *value.sizes))
        elif _is_constant(value):
            structure.append((name, "constant", type(value), value))
        elif isinstance(value, (int, arrays.TensorSpec)) or arrays.is_array(value):
            leaves[name] = Leaf.of(name, value)
            structure.append((name, "leaf"))
        elif isinstance(value, Symbol):
            fail(
                "an @af.attention function is called inside of another; call the function that it was "
                "made of, its .function"
            )
        else:
            refuse_kind(name, value)
    return leaves, tuple(structure)


def refuse_kind(name, value):
    """Raises the OperandError of a value that is nothing that a call may give."""
    remedy = "convert it to a NumPy array or a torch tensor"
    if name == "block_mask" or callable(value) or type(value).__name__ == "BlockMask":
        remedy = "make block masks by af.create_block_mask(predicate, Q_LEN=..., KV_LEN=...)"
    raise OperandError(
        f"argument '{name}': expected an array, an int or a block mask, got {arrays.describe(value)}; "
        f"{remedy}"
    )


def _is_constant(value):
    return value is None or isinstance(value, (bool, str, float))


def _symbol(trace, name, value):
    if isinstance(value, BlockMask):
        rows, columns = (trace.symbol(f"{name}.{part}") for part in ("row_offsets", "col_indices"))
        return _SymbolicMask(value, rows, columns)
    return value if _is_constant(value) else trace.symbol(name)


def _describe_numpy(value, array, element, name="output"):
    width = array.dtype.itemsize
    if any(stride % width for stride in array.strides):
        raise OperandError(
            f"argument '{name}': expected strides that are whole elements; pass "
            f"np.ascontiguousarray({name})"
        )
    value.describe(element, array.shape, [stride // width for stride in array.strides])
    value.data = array.ctypes.data


def _numpy_dtype(element, query, value):
    if element == "bf16":
        # There is no bf16 of NumPy's own: the type is the operands'.
        return next(a.dtype for a in (value, query) if a.dtype.name == "bfloat16")
    return {"f16": np.float16, "f32": np.float32, "f64": np.float64}[element]
