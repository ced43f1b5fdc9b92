# ===-----------------------------------------------------------------------===#
# Licensed under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
# ===-----------------------------------------------------------------------===#
"""Block masks."""

import numpy as np

from . import arrays
from .errors import Error, OperandError
from .operands import describe_parameters


class BlockMask:
    """Which blocks of keys each block of queries sees, as lists in compressed sparse row form:
    ``row_offsets`` is ``[rows + 1]``, or ``[B or 1, H or 1, rows + 1]``, and ``col_indices`` ``[entries]``, both
    int32, for blocks of ``query_block`` x ``key_block``. ``key_blocks`` says how many blocks of keys there
    are, where that is known: a call with others is refused."""

    def __init__(self, row_offsets, col_indices, query_block, key_block, key_blocks=None):
        self.row_offsets = row_offsets
        self.col_indices = col_indices
        self.query_block = int(query_block)
        self.key_block = int(key_block)
        self.key_blocks = key_blocks

    @property
    def sizes(self):
        """What becomes part of the code, or of its checks."""
        return self.query_block, self.key_block, self.key_blocks

    def to(self, device):
        """With lists that are torch tensors on ``device``."""
        import torch

        return BlockMask(
            torch.as_tensor(self.row_offsets, device=device),
            torch.as_tensor(self.col_indices, device=device),
            *self.sizes,
        )

    @property
    def density(self):
        """The share of listed blocks that one row of blocks has, on average, counted against the
        widest."""
        rows = self.row_offsets.shape[-1] - 1
        for size in self.row_offsets.shape[:-1]:
            rows *= size
        entries = self.col_indices.shape[0]
        columns = int(self.col_indices.max()) + 1 if entries else 0
        return entries / (rows * columns) if rows and columns else 0.0

    def __repr__(self):
        return (
            f"BlockMask({self.col_indices.shape[0]} blocks of {self.query_block}x{self.key_block}, "
            f"row_offsets {list(self.row_offsets.shape)})"
        )


def _count(value, name, least):
    if not isinstance(value, (int, np.integer)) or value < least:
        raise OperandError(f"{name}: expected an int of at least {least}, got {value!r}")
    return int(value)


def create_block_mask(
    predicate, B=None, H=None, Q_LEN=None, KV_LEN=None, BLOCK_SIZE=64, device=None
):
    """The block mask of ``predicate(b, h, i, j)``, which says of arrays of indices (of batch entry, head,
    query and key) whether the query sees the key.

    ``B`` and ``H`` are None where the mask is the same for all. ``BLOCK_SIZE`` is an int or (queries, keys).
    Every block must be wholly visible or wholly hidden, else OperandError tells which is not. With a
    ``device`` the lists are torch tensors there."""
    problem = describe_parameters(predicate, ("b", "h", "i", "j"))
    if problem:
        raise OperandError(f"predicate: {problem}")
    batch = 1 if B is None else _count(B, "B", 1)
    heads = 1 if H is None else _count(H, "H", 1)
    queries, keys = _count(Q_LEN, "Q_LEN", 0), _count(KV_LEN, "KV_LEN", 0)
    sizes = BLOCK_SIZE if isinstance(BLOCK_SIZE, (tuple, list)) else (BLOCK_SIZE, BLOCK_SIZE)
    if len(sizes) != 2:
        raise OperandError(f"BLOCK_SIZE: expected an int or a pair, got {BLOCK_SIZE!r}")
    query_block, key_block = (_count(size, "BLOCK_SIZE", 1) for size in sizes)
    rows, columns = -(-queries // query_block), -(-keys // key_block)

    counts = np.zeros((batch, heads, rows), np.int64)
    lists = []
    starts = np.arange(columns) * key_block
    j = np.arange(keys).reshape(1, keys)
    for b in range(batch):
        for h in range(heads):
            for row in range(rows):
                i = np.arange(row * query_block, min(queries, (row + 1) * query_block)).reshape(
                    -1, 1
                )
                seen = _evaluate(predicate, b, h, i, j)
                visible = seen.all(axis=0)
                if keys == 0:
                    continue
                full = np.logical_and.reduceat(visible, starts)
                some = np.logical_or.reduceat(seen.any(axis=0), starts)
                if (full != some).any():
                    column = int(np.argmax(full != some))
                    raise OperandError(_describe_partial(row, column, query_block, key_block, b, h))
                listed = np.flatnonzero(full)
                counts[b, h, row] = len(listed)
                lists.append(listed)
    offsets = np.zeros((batch, heads, rows + 1), np.int64)
    ends = np.cumsum(counts.reshape(-1)).reshape(counts.shape)
    if rows:
        offsets[:, :, 1:] = ends
        offsets[:, :, 0] = ends[:, :, 0] - counts[:, :, 0]
    col_indices = np.concatenate(lists) if lists else np.zeros(0)
    if offsets.size and offsets.max(initial=0) > np.iinfo(np.int32).max:
        raise OperandError("BLOCK_SIZE: expected fewer than 2^31 listed blocks; take larger blocks")
    if B is None and H is None:
        offsets = offsets.reshape(-1)
    mask = BlockMask(
        offsets.astype(np.int32), col_indices.astype(np.int32), query_block, key_block, columns
    )
    return mask if device is None else mask.to(device)


#: What to do about an error in a predicate, by its class.
_REMEDIES = {
    Error: "write table[i] for af.load(table, i), np.where, np.abs and the like for af's functions, "
    "which are for af.mask_mod",
    IndexError: "give the arrays that it reads an entry for each index, of Q_LEN queries and KV_LEN keys",
    ValueError: "write & | ~ for 'and', 'or' and 'not', (a <= x) & (x < b) for a <= x < b, and np.where "
    "for 'if'",
    Exception: "write it with operators and NumPy's functions",
}


def _evaluate(predicate, b, h, i, j):
    shape = (i.shape[0], j.shape[1])
    try:
        seen = np.asarray(predicate(np.int64(b), np.int64(h), i, j))
    except Exception as error:
        remedy = next(text for kind, text in _REMEDIES.items() if isinstance(error, kind))
        raise OperandError(
            f"predicate: it raised {type(error).__name__} ({error}) on NumPy arrays of indices (b, h, "
            f"i, j); {remedy}"
        ) from error
    if seen.dtype != np.bool_:
        raise OperandError(
            f"predicate: expected it to return booleans, got {seen.dtype}; compare, as in i >= j"
        )
    try:
        return np.broadcast_to(seen, shape)
    except ValueError:
        raise OperandError(
            f"predicate: expected an array that broadcasts to {shape}, got {seen.shape}"
        ) from None


def _describe_partial(row, column, query_block, key_block, b, h):
    return (
        f"predicate: it is no block predicate: of query block {row} and key block {column} (queries from "
        f"{row * query_block}, keys from {column * key_block}; batch entry {b}, head {h}) it shows a part "
        "only. Choose a BLOCK_SIZE that divides its boundaries; or write the part of it that is a band "
        "as af.causal or af.sliding_window, and any other as af.mask_mod, in the function itself"
    )
