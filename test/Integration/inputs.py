"""Random inputs of a variant of matrix.py: every value differs from its neighbours."""

import numpy as np

import matrix
import oracle


def round_values(values, element_type):
    """Float values as the function will read them; float32 holds every type."""
    return oracle.round_to(values, element_type).astype(np.float32)


def size_of(dimension, dims):
    if isinstance(dimension, int):
        return dimension
    scope = dict(dims, ceildiv=lambda a, b: -(-a // b))
    return eval(dimension, {"__builtins__": {}}, scope)


def make_blocks(op, lead, nq, nkv, rng):
    """(row_offsets, col_indices): random lists, a third of the rows empty or full."""
    rows, columns = -(-nq // op["query_block"]), -(-nkv // op["key_block"])
    offsets = np.zeros(tuple(lead) + (rows + 1,), np.int32)
    indices = []
    for place in np.ndindex(*lead):
        offsets[place + (0,)] = len(indices)
        for row in range(rows):
            density = rng.choice([0.0, 0.5, 0.5, 0.5, 1.0])
            indices += [column for column in range(columns) if rng.random() < density]
            offsets[place + (row + 1,)] = len(indices)
    return offsets, np.array(indices, np.int32)


def make_tables(rows, columns, rng):
    """Rotary tables with an angle of its own for every entry."""
    angles = np.arange(rows)[:, None] * 10000.0 ** (-np.arange(columns)[None, :] / max(columns, 1))
    angles = angles + rng.uniform(-0.1, 0.1, (rows, columns))
    return np.cos(angles), np.sin(angles)


def make_inputs(variant, dims, seed):
    """Name -> array, in the order of the function's arguments."""
    rng = np.random.default_rng(seed)
    dims = dict({"Hq": variant["hq"], "Hkv": variant["hkv"]}, **dims)
    blocks = next((op for op in variant["chain"] if op["op"] == "block_sparse"), None)
    tables, result = None, {}
    for name, element_type, shape in matrix.arguments(variant):
        if name in ("row_offsets", "col_indices"):
            if name == "row_offsets":
                lead = [size_of(d, dims) for d in shape[:-1]]
                lists = make_blocks(blocks, lead, dims["Nq"], dims["Nkv"], rng)
            result[name] = lists[name == "col_indices"]
            continue
        if name == "offset":
            result[name] = np.int64(rng.integers(0, 40))
            continue
        sizes = [size_of(d, dims) for d in shape]
        if name in ("cos", "sin"):
            tables = tables or make_tables(*sizes, rng)
            values = tables[name == "sin"]
        elif name.endswith("positions"):
            # Some lie outside the tables, which clamps them.
            dtype = np.int32 if element_type == "i32" else np.int64
            result[name] = rng.integers(-8, matrix.TABLE_ROWS + 8, sizes).astype(dtype)
            continue
        elif name == "slopes":
            values = rng.uniform(0.01, 0.5, sizes)
        else:
            values = rng.standard_normal(sizes)
            if name.startswith("bias"):
                values = np.where(rng.random(sizes) < 0.1, -np.inf, values)
        result[name] = round_values(values, element_type)
    return result
