# ===-----------------------------------------------------------------------===#
# Licensed under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
# ===-----------------------------------------------------------------------===#
"""Calls with PyTorch's tensors. Imported by the first of them.

A call finds its *launch* by what decides how the kernel is launched: names, element types, sizes,
strides and devices. A launch holds the descriptors of the C interface, and a call with known sizes only
writes addresses into them. Each thread has its own launches, so no lock is taken.
"""

import ast

import numpy as np
import torch
from torch._C import _functorch, _SetExcludeDispatchKeyGuard
from torch._subclasses.fake_tensor import unset_fake_temporarily
from torch.autograd import forward_ad

from . import arrays
from .attention import by_number, refuse_kind
from .block_mask import BlockMask
from .errors import GradientError, OperandError
from .operands import fits_int64
from .torch_launch import DTYPES, allocate, bind

_Tensor = torch.Tensor
_AUTOGRAD = torch._C.DispatchKey.AutogradFunctionality
_PLAIN = (torch.Tensor, torch.nn.Parameter)
_is_grad_enabled = torch.is_grad_enabled
_is_compiling = torch.compiler.is_compiling

#: A thread forgets its launches when there are so many, as generation without end may make.
_MAX_LAUNCHES = 4096


def call(attention, args, operands):
    """Calls ``attention``, of which the first operand is a tensor."""
    if _is_compiling():
        return _call_op(attention, args, operands)
    key, tensors, scalars = [], [], []
    # What most operands are is taken care of here: a call of a function costs as much as the rest.
    for value in args:
        if type(value) is _Tensor:
            tensors.append(value)
            key += value.dtype, value.shape, value.stride(), value.device
        else:
            _collect(value, key, tensors, scalars)
    for name, value in operands.items():
        key.append(name)
        if type(value) is _Tensor:
            tensors.append(value)
            key += value.dtype, value.shape, value.stride(), value.device
        else:
            _collect(value, key, tensors, scalars)
    is_grad_enabled = _is_grad_enabled()
    if is_grad_enabled:
        for tensor in tensors:
            if tensor.requires_grad:
                _refuse_gradient(attention)
    if forward_ad._current_level >= 0:
        _refuse_transforms(attention, tensors)
    key = tuple(key)
    launches = attention.launches.__dict__
    launch = launches.get(key)
    if launch is None or (launch.fixed_scalars and not launch.serves(scalars)):
        for tensor in tensors:
            if type(tensor) not in _PLAIN:
                # A subclass, such as a tensor without data: PyTorch knows what to do with ops.
                return _call_op(attention, args, operands)
        if len(launches) >= _MAX_LAUNCHES:
            launches.clear()
        try:
            launch = launches[key] = bind(attention, args, operands)
        except RuntimeError:
            _refuse_transforms(attention, tensors)
            raise
    if is_grad_enabled and launch.captured:
        _check_captured(attention, launch.captured)
    try:
        return launch(tensors, scalars)
    except RuntimeError:
        _refuse_transforms(attention, tensors)
        raise


def _collect(value, key, tensors, scalars):
    """Adds what decides over the launch to ``key``, and what may change from call to call to the
    lists."""
    if isinstance(value, _Tensor):
        tensors.append(value)
        key += value.dtype, value.shape, value.stride(), value.device
        if type(value) not in _PLAIN:
            key.append(object())
    elif type(value) is int or isinstance(value, np.integer):
        scalars.append(int(value))
        # One that no code can be given is refused when the launch is bound.
        key.append(int if fits_int64(value) else object())
    elif isinstance(value, BlockMask):
        key.append(value.sizes)
        _collect(value.row_offsets, key, tensors, scalars)
        _collect(value.col_indices, key, tensors, scalars)
    elif arrays.is_array(value):
        # Refused when the launch is bound.
        key.append(object())
    else:
        key.append((type(value), value) if value.__hash__ else object())


def _refuse_gradient(attention, what="an operand"):
    raise GradientError(
        f"{attention.name}: {what} requires a gradient, and there is no backward pass yet; call it under "
        "torch.no_grad(), or detach the operands"
    )


def _check_captured(attention, operands):
    """Of captured tensors, which no graph of PyTorch's knows, where gradients are enabled."""
    for operand in operands:
        if operand.value.requires_grad:
            _refuse_gradient(attention, f"the captured tensor '{operand.name}'")


def _refuse_transforms(attention, tensors):
    """Refuses tensors of torch.func's transforms, and those that have tangents."""
    for tensor in tensors:
        if _functorch.is_batchedtensor(tensor):
            raise OperandError(
                f"{attention.name}: expected tensors, got those of torch.vmap; call it without: the "
                "batch is dimension 0 of q, k and v"
            )
        if _functorch.is_gradtrackingtensor(tensor) or (
            forward_ad._current_level >= 0 and forward_ad.unpack_dual(tensor).tangent is not None
        ):
            raise GradientError(
                f"{attention.name}: an operand has a tangent, and there are no derivatives yet; detach "
                "the operands"
            )


# ===-----------------------------------------------------------------------===#
# The op that PyTorch's compilers see
# ===-----------------------------------------------------------------------===#


#: Of the parts of a layout. Inductor writes the text into a line of Python as it is.
_SEPARATOR = ";"


def _call_op(attention, args, operands):
    """The call as torch.ops.attnfuse.attention, which takes tensors, ints and a text that says what is
    what."""
    if _is_grad_enabled():
        for value in (*args, *operands.values()):
            if isinstance(value, _Tensor) and value.requires_grad:
                _refuse_gradient(attention)
    layout, tensors, scalars = [], [], []
    for name, value in zip(attention.names, args):
        layout.append(_pack(name, value, tensors, scalars))
    for name, value in operands.items():
        layout.append(_pack(name, value, tensors, scalars))
    results = torch.ops.attnfuse.attention(attention.number, _SEPARATOR.join(layout), tensors, scalars)
    # A function that returns a tuple returns two.
    return tuple(results) if len(results) > 1 else results[0]


def _pack(name, value, tensors, scalars):
    if isinstance(value, _Tensor):
        tensors.append(value)
        return name + ":t"
    if isinstance(value, BlockMask):
        tensors.append(value.row_offsets)
        tensors.append(value.col_indices)
        return f"{name}:m{value.sizes}"
    if value is None or isinstance(value, (bool, str, float)):
        return f"{name}:c{value!r}".replace(_SEPARATOR, "\\x3b")
    if not isinstance(value, (int, np.integer, torch.SymInt)):
        refuse_kind(name, value)
    scalars.append(value)
    return name + ":i"


def _unpack(layout, tensors, scalars):
    operands, tensors, scalars = {}, list(tensors), list(scalars)
    for line in layout.split(_SEPARATOR):
        name, _, kind = line.partition(":")
        if kind == "t":
            operands[name] = tensors.pop(0)
        elif kind == "i":
            operands[name] = scalars.pop(0)
        elif kind[0] == "m":
            rows, columns = tensors.pop(0), tensors.pop(0)
            operands[name] = BlockMask(rows, columns, *ast.literal_eval(kind[1:]))
        else:
            operands[name] = ast.literal_eval(kind[1:])
    return operands


@torch.library.custom_op(
    "attnfuse::attention",
    mutates_args=(),
    schema="(int number, str layout, Tensor[] tensors, SymInt[] scalars) -> Tensor[]",
)
def _op(number, layout, tensors, scalars):
    # Of the operands' gradients the op's autograd takes care.
    tensors = [tensor.detach() for tensor in tensors]
    result = call(by_number(number), (), _unpack(layout, tensors, scalars))
    return list(result) if isinstance(result, tuple) else [result]


@_op.register_fake
def _fake(number, layout, tensors, scalars):
    attention = by_number(number)
    bound = attention.bind((), _unpack(layout, tensors, scalars))
    # What the function captures, or makes of it, are tensors with values, and may require gradients.
    with unset_fake_temporarily(), _SetExcludeDispatchKeyGuard(_AUTOGRAD, False):
        program, _ = attention.program(bound, is_launched=False)
    if _is_grad_enabled():
        _check_captured(attention, program.captured)
    query, value = bound[program.query], bound[program.value]
    results = []
    for shape, (_, element) in zip(
        program.result_shapes(tuple(query.shape), tuple(value.shape)), program.results
    ):
        dtype = DTYPES[element]
        is_like = len(shape) == 4 and query.dtype == dtype and shape[3] == query.shape[3]
        results.append(allocate(query, None if is_like else shape, dtype))
    return results


def _refuse_in_graph(ctx, inputs, output):
    for tensor in inputs[2]:
        if tensor.requires_grad:
            _refuse_gradient(by_number(inputs[0]))


def _no_backward(ctx, *gradients):
    raise GradientError("there is no backward pass yet")


torch.library.register_autograd("attnfuse::attention", _no_backward, setup_context=_refuse_in_graph)
