# ===-----------------------------------------------------------------------===#
# Licensed under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
# ===-----------------------------------------------------------------------===#
"""Launches on PyTorch's tensors: what is decided once for all calls with tensors of the same types,
sizes, strides and devices, and what is left to do for each call."""

import ctypes
import functools
import json

import numpy as np
import torch

from . import cache, native
from .block_mask import BlockMask
from .errors import OperandError
from .operands import Leaf

_Tensor = torch.Tensor
_launch_kernel, _run_launch = native.launch_kernel, native.run_launch
_empty_like = torch.empty_like

_CALLS_UNTIL_FAST = 8

DTYPES = {
    "f16": torch.float16,
    "bf16": torch.bfloat16,
    "f32": torch.float32,
    "f64": torch.float64,
}

try:
    _get_stream = torch._C._cuda_getCurrentRawStream
except AttributeError:

    def _get_stream(index):
        return torch.cuda.current_stream(index).cuda_stream


def bind(attention, args, operands):
    """The launch for operands like these."""
    bound = attention.bind(args, dict(operands))
    # As _flatten does, in the order in which _collect meets them.
    names = [parameter for parameter, _ in zip(attention.names, args)] + list(operands)
    program, leaves = attention.program(bound)
    device = bound[program.query].device
    places = _find_places(names, bound)
    if device.type == "cpu":
        return _CpuLaunch(attention, program, bound, leaves, places, device)
    if device.type != "cuda":
        raise OperandError(
            f"argument '{program.query}': expected a tensor on a CUDA device or the CPU, got {device}; "
            "move it by .to('cuda')"
        )
    return _CudaLaunch(attention, program, bound, leaves, places, device)


def _find_places(names, bound):
    """Of each leaf: (whether it is an int, its index among the call's tensors or ints)."""
    places, counts = {}, [0, 0]

    def add(name, value):
        kind = not isinstance(value, _Tensor)
        places[name] = (kind, counts[kind])
        counts[kind] += 1

    for name in names:
        value = bound.get(name)
        if isinstance(value, BlockMask):
            add(f"{name}.row_offsets", value.row_offsets)
            add(f"{name}.col_indices", value.col_indices)
        elif isinstance(value, (_Tensor, np.integer)) or type(value) is int:
            add(name, value)
    return places


class _Launch:
    """The descriptors of one kind of call."""

    def __init__(self, attention, program, bound, leaves, places, device):
        self.name = attention.name
        self.program = program
        #: What was checked, without the tensors; and the descriptors of its numbers.
        self.leaves = {n: Leaf(n, leaf.element, leaf.shape, None) for n, leaf in leaves.items()}
        self.scalars = {}
        self.device = device
        self.arguments = (native.Value * len(program.arguments))()
        self.results = (native.Value * len(program.results))()
        self.num_arguments, self.num_results = len(self.arguments), len(self.results)
        #: The descriptors: every look into an array makes an object of its own.
        self.order = [self.arguments[i] for i in range(self.num_arguments)]
        #: (descriptor, index of the tensor), of tensors that are taken as they are.
        self.slots = []
        #: The same of ints.
        self.scalar_slots = []
        #: (descriptor, index, element type) of tensors that the kernel wants contiguous.
        self.copied = []
        #: (index, value) of ints that are compiled in.
        self.fixed_scalars = [
            (places[operand.name][1], operand.guard)
            for operand in program.operands
            if operand.is_scalar and operand.guard != "any" and operand.name in places
        ]
        self.captured = program.captured
        #: Captured arrays, which must live as long as the launch.
        self.constants = []
        for value, operand in zip(self.order, program.arguments):
            is_given = operand.name in places
            if operand.is_scalar:
                self.scalars[operand.name] = value
            if operand.is_scalar and is_given:
                self.scalar_slots.append((value, places[operand.name][1]))
            elif operand.is_scalar:
                # The default of a parameter.
                value.scalar = leaves[operand.name].value
            elif not is_given:
                tensor = operand.value if operand.is_constant else leaves[operand.name].value
                tensor = torch.as_tensor(tensor).to(device).contiguous()
                self.constants.append(tensor)
                _describe(value, tensor, operand.element)
                value.data = tensor.data_ptr()
            else:
                tensor = leaves[operand.name].value
                _describe(value, tensor, operand.element)
                self._add(value, places[operand.name][1], operand, tensor)
        query, value = bound[program.query], bound[program.value]
        self.query = places[program.query][1]
        shapes = program.result_shapes(tuple(query.shape), tuple(value.shape))
        self.allocations = []
        for slot, shape, (_, element) in zip(self.results, shapes, program.results):
            dtype = DTYPES[element]
            is_like = shape == tuple(query.shape) and dtype == query.dtype
            self.allocations.append((slot, None if is_like else shape, dtype))
            _describe(slot, allocate(query, None if is_like else shape, dtype), element)

    def _add(self, value, index, operand, tensor):
        self.slots.append((value, index))

    def refuse(self, error):
        """Raises the error of a launch. Numbers change from call to call: where one is at fault, it is
        said as at the first call."""
        for name, value in self.scalars.items():
            self.leaves[name].value = value.scalar
        self.program.checks.check(self.leaves)
        raise OperandError(f"{self.name}: {error}")

    def serves(self, scalars):
        for index, value in self.fixed_scalars:
            if scalars[index] != value:
                return False
        return True

    def __call__(self, tensors, scalars):
        for slot, index in self.slots:
            slot.data = tensors[index].data_ptr()
        if scalars:
            for slot, index in self.scalar_slots:
                slot.scalar = scalars[index]
        keep = [self._copy(slot, tensors[index], element) for slot, index, element in self.copied]
        query = tensors[self.query]
        outputs = []
        for slot, shape, dtype in self.allocations:
            output = allocate(query, shape, dtype)
            slot.data = output.data_ptr()
            outputs.append(output)
        self._run()
        del keep
        return tuple(outputs) if self.program.is_tuple else outputs[0]

    def _copy(self, slot, tensor, element):
        tensor = tensor.clone(memory_format=torch.contiguous_format)
        _describe(slot, tensor, element)
        slot.data = tensor.data_ptr()
        return tensor


def allocate(query, shape, dtype):
    """A result: like q where it has q's shape and type (also in storage as [B, N, H, D]), else
    contiguous."""
    if shape is None:
        return torch.empty_like(query)
    return torch.empty(shape, dtype=dtype, device=query.device)


def _describe(value, tensor, element):
    shape = tensor.shape
    rank = len(shape)
    if rank > native.MAX_RANK:
        raise OperandError(f"expected at most {native.MAX_RANK} dimensions, got {rank}")
    value.type = native.ELEMENT_TYPES[element]
    value.rank = rank
    value.sizes[:rank] = shape
    value.strides[:rank] = tensor.stride()


class _CpuLaunch(_Launch):
    def __init__(self, attention, program, *details):
        super().__init__(attention, program, *details)
        self.function = cache.cpu_function(program)

    def _run(self):
        error = self.function.run(self.arguments, self.results)
        if error:
            self.refuse(error)


class _CudaLaunch(_Launch):
    def __init__(self, attention, program, bound, leaves, places, device):
        program.checks.check_gpu()
        self.index = _device_index(device)
        self.kernel = cache.kernel(program, self.index)
        self.demands = _read_demands(program, native.find_chip(self.index))
        #: (descriptor, index, element type, mask) of tensors whose address has bits that must be 0.
        self.alignments = []
        super().__init__(attention, program, bound, leaves, places, device)
        self.handle = self.kernel.handle
        #: For calls that change nothing but addresses: made once there have been enough of them.
        self.fast = None
        self.can_be_fast = not self.copied and not self.scalar_slots
        self.num_calls = 0

    def _add(self, value, index, operand, tensor):
        demand = self.demands[operand.name]
        if not _has_layout(tensor, demand):
            self.copied.append((value, index, operand.element))
            return
        self.slots.append((value, index))
        alignment = demand.get("alignment", 1)
        if alignment > 1:
            self.alignments.append((value, index, operand.element, alignment - 1))

    def __call__(self, tensors, scalars):
        if self.fast is not None:
            return self.fast(tensors)
        outputs = self._launch(tensors, scalars)
        self.num_calls += 1
        # Sizes that grow with every token are seen once for each layer.
        if self.num_calls >= _CALLS_UNTIL_FAST and self.can_be_fast:
            self.fast = _make_fast(self)
        return outputs

    def _launch(self, tensors, scalars):
        for slot, index in self.slots:
            slot.data = tensors[index].data_ptr()
        for slot, index in self.scalar_slots:
            slot.scalar = scalars[index]
        for slot, _, _, mask in self.alignments:
            if slot.data is not None and slot.data & mask:
                return self._call_on_copies(tensors, scalars)
        keep = [self._copy(slot, tensors[index], element) for slot, index, element in self.copied]
        query = tensors[self.query]
        outputs = []
        for slot, shape, dtype in self.allocations:
            output = allocate(query, shape, dtype)
            slot.data = output.data_ptr()
            outputs.append(output)
        if _launch_kernel(
            self.handle,
            _get_stream(self.index),
            self.arguments,
            self.num_arguments,
            self.results,
            self.num_results,
        ):
            self.refuse(native.last_error())
        del keep
        return tuple(outputs) if self.program.is_tuple else outputs[0]

    def _call_on_copies(self, tensors, scalars):
        """The call with copies in place of tensors at odd addresses. Their descriptors are written
        anew, and are afterwards what they were."""
        tensors = list(tensors)
        saved = []
        for slot, index, element, mask in self.alignments:
            if tensors[index].data_ptr() & mask:
                saved.append((slot, element, tensors[index]))
                tensors[index] = tensors[index].clone(memory_format=torch.contiguous_format)
                _describe(slot, tensors[index], element)
        try:
            return self._launch(tensors, scalars)
        finally:
            for slot, element, tensor in saved:
                _describe(slot, tensor, element)


@functools.lru_cache(maxsize=None)
def _read_demands(program, chip):
    """What the kernel demands of each argument, by name."""
    (function,) = json.loads(cache.ptx(program, chip).manifest)["functions"]
    return {entry["name"]: entry for entry in function["arguments"]}


def _make_fast(launch):
    """A function of a call's tensors that does as little as can be: it asks for their addresses,
    allocates the results, and launches. None where there is none."""
    bound = native.Launch(launch.kernel, launch.arguments, launch.results)
    if not bound.handle:
        return None
    # Addresses of arguments that do not change stay as they are written here.
    values = [*launch.arguments, *launch.results]
    addresses = (ctypes.c_uint64 * len(values))(*(value.data or 0 for value in values))
    places = {id(slot): number for number, slot in enumerate(launch.order)}
    indices = [(places[id(slot)], index) for slot, index in launch.slots]
    first = len(launch.arguments)
    mask = 0
    for _, _, _, bits in launch.alignments:
        mask |= bits
    query, device = launch.query, launch.index
    handle, is_tuple, name = bound.handle, launch.program.is_tuple, launch.name
    workspace_size = bound.workspace_size
    ((_, shape, dtype), *others) = launch.allocations

    def fast(tensors, bound=bound):
        bits = 0
        for place, index in indices:
            addresses[place] = address = tensors[index].data_ptr()
            bits |= address
        if bits & mask:
            # Perhaps it is one whose kernel does not mind.
            return launch._call_on_copies(tensors, ())
        like = tensors[query]
        if shape is None:
            output = _empty_like(like)
        else:
            output = allocate(like, shape, dtype)
        addresses[first] = output.data_ptr()
        outputs = [output]
        for number, (_, other, other_dtype) in enumerate(others):
            outputs.append(allocate(like, other, other_dtype))
            addresses[first + 1 + number] = outputs[-1].data_ptr()
        workspace = 0
        if workspace_size:
            # PyTorch's own memory, which it gives away again in the order of the stream.
            scratch = torch.empty(workspace_size, dtype=torch.uint8, device=like.device)
            workspace = scratch.data_ptr()
        if _run_launch(handle, _get_stream(device), addresses, workspace):
            raise OperandError(f"{name}: {native.last_error()}")
        return tuple(outputs) if is_tuple else output

    return fast


def _device_index(device):
    return torch.cuda.current_device() if device.index is None else device.index


def _has_layout(tensor, demand):
    """Whether the kernel takes the tensor's strides (docs/manifest.md)."""
    multiple = demand.get("stride_multiple", 1)
    shape, strides = tensor.shape, tensor.stride()
    if 0 in shape:
        return True
    last = len(shape) - 1
    for dim, (size, stride) in enumerate(zip(shape, strides)):
        if size <= 1:
            continue
        if dim == last:
            if stride != 1 and demand.get("unit_inner_stride"):
                return False
        elif stride % multiple:
            return False
    return True
