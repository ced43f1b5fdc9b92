# ===-----------------------------------------------------------------------===#
# Licensed under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
# ===-----------------------------------------------------------------------===#
"""What the operands of a call have to be to one another, and to a GPU.

All of it is checked here, by the names that the user gave, before anything is compiled. The compiler
and the runtime check the same once more, in their own terms.
"""

import numpy as np

from . import arrays
from .errors import OperandError
from .operands import ROLES, shape_text, title

#: What is counted in a dimension.
_NOUNS = {
    "B": "batch entries",
    "Hq": "heads",
    "Hkv": "heads",
    "Nq": "queries",
    "Nkv": "keys",
    "D": "features",
    "Dv": "features",
    "P": "rows",
    "R/2": "columns",
}
_AT_LEAST_ONE = ("D", "Dv", "P", "R/2")

#: Roles whose arrays have one element type.
_ALIKE = dict.fromkeys(("q", "k", "v"), "q, k and v")
_ALIKE.update(dict.fromkeys(("cos", "sin"), "cos and sin"))

#: What kernels for GPUs take.
_GPU_ELEMENTS = ("f16", "bf16")
_GPU_FEATURES = range(8, 257, 8)
_GPU_BLOCK = 16

_PADDING = {"v": "pad v with zeros, and cut the output"}
_PADDING["q"] = _PADDING["k"] = (
    "pad q and k with zeros, and give af.scaled_dot_product scale={0:.6g}"
)


class Use:
    """An operand in a role. ``dims`` names its dimensions, or has None; a name has one size in all
    uses of one ``scope``."""

    def __init__(self, operand, role, dims=None, scope=None):
        self.operand = operand
        self.role = role
        self.dims = dims or ROLES[role].dims(len(operand.guards))
        self.scope = scope


class Checks:
    """The checks of one program. Sizes that are not known, of a TensorSpec or in a graph of PyTorch's,
    are left out."""

    def __init__(self, uses, rotations, masks):
        #: Begins with q, k and v: what disagrees with these is at fault.
        self.uses = uses
        #: (operand, Rotation), of each that is applied.
        self.rotations = rotations
        #: Masks that are lists of blocks.
        self.masks = masks

    def check(self, leaves):
        """Raises OperandError where the leaves of a call, or captured arrays, disagree."""
        self._check_elements(leaves)
        self._check_sizes(leaves)
        self._check_heads(leaves)
        for operand, rotation in self.rotations:
            _check_rotation(_leaf(operand, leaves), rotation, leaves)
        for mask in self.masks:
            self._check_blocks(mask, leaves)

    def _check_elements(self, leaves):
        first = {}
        for use in self.uses:
            if use.role not in _ALIKE:
                continue
            this = _leaf(use.operand, leaves)
            other = first.setdefault((_ALIKE[use.role], use.scope), this)
            if this.element != other.element:
                cast = "to" if arrays.is_torch(this.value) else "astype"
                raise OperandError(
                    f"{title(this)} has {this.element} elements where '{other.name}' has "
                    f"{other.element}: {_ALIKE[use.role]} need one element type; convert one of them, "
                    f"as by {this.name}.{cast}({other.name}.dtype)"
                )

    def _check_sizes(self, leaves):
        first = {}
        for use in self.uses:
            this, role = _leaf(use.operand, leaves), ROLES[use.role]
            for axis, (dim, size) in enumerate(zip(use.dims, this.shape)):
                is_broadcast = dim in role.broadcast
                if dim not in _NOUNS or not _is_known(size) or (is_broadcast and size == 1):
                    continue
                if size == 0 and dim in _AT_LEAST_ONE:
                    raise OperandError(
                        f"{title(this)} has no {_NOUNS[dim]}: give it at least 1 (dimension "
                        f"{axis} of {shape_text(use.dims)}); got the shape {shape_text(this.shape)}"
                    )
                other, expected = first.setdefault((dim, use.scope), (this, size))
                if size != expected:
                    also = f", or 1 in '{_name(this)}', which is broadcast" if is_broadcast else ""
                    place = (
                        f"of {shape_text(use.dims)}" if role.shapes else "is indexed by these alone"
                    )
                    raise OperandError(
                        f"{title(this)} has {_count(size, dim)} where '{_name(other)}' has "
                        f"{expected}: '{_name(other)}' and '{_name(this)}' need the same number of "
                        f"{_NOUNS[dim]}{also} (dimension {axis} {place}); got the shapes "
                        f"{shape_text(other.shape)} and {shape_text(this.shape)}"
                    )

    def _check_heads(self, leaves):
        query, key = (_leaf(use.operand, leaves) for use in self.uses[:2])
        heads, groups = query.shape[1], key.shape[1]
        if heads % groups if groups else heads:
            raise OperandError(
                f"{title(query)} has {_count(heads, 'Hq')} where '{key.name}' has {groups}: the heads "
                f"of '{query.name}' have to be a multiple of those of '{key.name}' (dimension 1 of [B, "
                "H, N, D]); repeat or drop some, or transpose arrays that are [B, N, H, D]; got the "
                f"shapes {shape_text(query.shape)} and {shape_text(key.shape)}"
            )

    def _check_blocks(self, mask, leaves):
        rows, _, query_block, key_block, num_columns = mask.blocks
        rows = _leaf(rows.operand, leaves)
        num_rows = rows.shape[-1] - 1 if _is_known(rows.shape[-1]) else None
        for use, count, block, option in (
            (self.uses[0], num_rows, query_block, "Q_LEN"),
            (self.uses[1], num_columns, key_block, "KV_LEN"),
        ):
            tensor, noun = _leaf(use.operand, leaves), _NOUNS[use.dims[2]]
            size = tensor.shape[2]
            if count is not None and _is_known(size) and -(-size // block) != count:
                raise OperandError(
                    f"{title(rows)} has {count} blocks of {block} {noun} where "
                    f"'{tensor.name}' has {size} {noun}: make it for these, by "
                    f"af.create_block_mask(..., {option}={size})"
                )

    def check_gpu(self):
        """Raises OperandError where no kernel for a GPU takes operands like the program's."""
        for use in self.uses[:3]:
            operand = use.operand
            if operand.element not in _GPU_ELEMENTS:
                operand.refuse(
                    f"expected f16 or bf16 for a GPU, got {operand.element}; convert q, k and v, as by "
                    f"{arrays.conversion(operand.value, operand.name, 'f16')}, or call the function "
                    "with arrays on the CPU"
                )
            features = operand.guards[3]
            if features not in _GPU_FEATURES:
                padded = features + -features % 8
                remedy = f"{_PADDING[use.role]}, or " if padded in _GPU_FEATURES else ""
                operand.refuse(
                    "expected a head size (dimension 3) that is a multiple of 8 from 8 to 256 for a GPU, "
                    f"got {features}; {remedy.format(features**-0.5)}call the function with arrays on "
                    "the CPU"
                )
        for mask in self.masks:
            for block in mask.blocks[2:4]:
                if block % _GPU_BLOCK:
                    raise OperandError(
                        f"{title(mask.blocks[0].operand)}: expected blocks of a multiple of "
                        f"{_GPU_BLOCK} for a GPU, got {block}; make it by af.create_block_mask(..., "
                        f"BLOCK_SIZE={block + -block % _GPU_BLOCK})"
                    )


def _check_rotation(tensor, rotation, leaves):
    table = _leaf(rotation.cos.operand, leaves)
    (rows, columns), features, length = table.shape, tensor.shape[3], tensor.shape[2]
    if 2 * columns > features:
        raise OperandError(
            f"{title(table)} has {columns} columns, one for two features, where "
            f"'{tensor.name}' has {features} features: expected at most {features // 2}; make it by "
            f"af.build_rope_cache(length, {features - features % 2}), or pass {table.name}[:, "
            f":{features // 2}] of one that has each angle twice, as transformers' have"
        )
    if rotation.positions is not None:
        return
    start = rotation.static_offset
    if rotation.offset is not None:
        offset = _leaf(rotation.offset.operand, leaves)
        if not _is_known(offset.value):
            return
        start += offset.value
        if start < 0:
            raise OperandError(
                f"{title(offset)}: expected an offset of at least 0, which is the first row "
                f"of the rotary table, got {offset.value}"
            )
    if _is_known(rows) and _is_known(length) and rows < start + length:
        raise OperandError(
            f"{title(table)} is too short: expected at least {start + length} rows for "
            f"{length} positions of '{tensor.name}' from {start}, got {rows}; make it by "
            f"af.build_rope_cache({start + length}, {2 * columns})"
        )


def _count(size, dim):
    noun = _NOUNS[dim]
    if size == 1:
        noun = f"{noun[:-3]}y" if noun.endswith("ies") else noun[:-1]
    return f"{size} {noun}"


def _leaf(operand, leaves):
    """What the call gives for the operand; of a captured array, the array."""
    return leaves.get(operand.name, operand)


def _is_known(size):
    return isinstance(size, (int, np.integer))


def _name(leaf):
    """As the user gave it: lists are parts of a block mask."""
    return leaf.name.partition(".")[0]


def check_places(query, leaves, constants):
    """Raises OperandError where arrays are not where ``query`` is, of these leaves. Captured arrays are
    brought to it, but tensors not to NumPy."""
    device = query.value.device if arrays.is_torch(query.value) else None
    for leaf in (*leaves.values(), *(() if device else constants)):
        if leaf.shape is None or arrays.device(leaf.value) == device:
            continue
        name, is_mask = _name(leaf), "." in leaf.name
        if isinstance(leaf.value, arrays.TensorSpec):
            expected, remedy = "an array", "specifications are for af.lower and af.explain"
        elif device is None:
            expected = f"a NumPy array, as '{query.name}' is one"
            remedy = f"pass {name}.numpy(force=True), or tensors for all"
            if is_mask:
                remedy = "make it by af.create_block_mask without a device"
        else:
            expected = f"a tensor on {device}, where '{query.name}' is"
            has_to = is_mask or arrays.is_torch(leaf.value)
            remedy = f"pass {name if has_to else f'torch.from_numpy({name})'}.to('{device}')"
        raise OperandError(
            f"argument '{name}': expected {expected}, got {arrays.describe(leaf.value)}; {remedy}"
        )
