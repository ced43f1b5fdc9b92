"""What the traps have in common: how they register, their variants and their runs."""

import contextlib

import harness
import inputs
import matrix
import oracle

# Name -> function from a harness to what is wrong, or None.
TRAPS = {}
GPU_TRAPS = {}


def trap(function):
    TRAPS[function.__name__] = function
    return function


def gpu_trap(function):
    """A trap of the GPU path alone."""
    GPU_TRAPS[function.__name__] = function
    return function


@contextlib.contextmanager
def table_rows(rows):
    """Rotary tables have this many rows."""
    saved, matrix.TABLE_ROWS = matrix.TABLE_ROWS, rows
    try:
        yield
    finally:
        matrix.TABLE_ROWS = saved


def float_type(runner, on_gpu="f16"):
    """f32 where the device has it."""
    return on_gpu if runner.on_gpu else "f32"


def variant(element_type="f32", hq=2, hkv=None, d=16, dv=None, chain=(), rope=None, norm="softmax",
            dynamic_heads=False, scale=None, name="f"):
    return {
        "name": name, "type": element_type, "hq": hq, "hkv": hkv or hq, "d": d, "dv": dv or d,
        "dynamic_heads": dynamic_heads, "scale": scale, "rope": rope, "chain": list(chain),
        "norm": norm, "lse": norm == "softmax",
    }


def causal(align="bottom_right"):
    return {"op": "causal", "align": align}


def window(left, right, align="bottom_right"):
    return {"op": "sliding_window", "align": align, "left": left, "right": right}


def block_sparse(query_block=16, key_block=16, pattern="shared"):
    return {"op": "block_sparse", "query_block": query_block, "key_block": key_block, "pattern": pattern}


def bias(shape, element_type="f32", name="bias"):
    return {"op": "additive_bias", "shape": shape, "type": element_type, "name": name}


def alibi(align="bottom_right", slopes=None):
    return {"op": "alibi", "align": align, "slopes": slopes}


def sizes(batch, nq, nkv):
    return {"B": batch, "Nq": nq, "Nkv": nkv}


def run(runner, v, dims, change=None, seed=7):
    """(inputs, output, lse) on random inputs, after `change` has edited them."""
    arrays = inputs.make_inputs(v, dims, seed)
    if change:
        change(arrays)
        for name, element_type, _ in matrix.arguments(v):
            if element_type in oracle.ROUNDOFF:
                arrays[name] = inputs.round_values(arrays[name], element_type)
    output, lse = runner.call(v, arrays, dims)
    return arrays, output, lse


def run_and_compare(runner, v, dims, change=None):
    arrays, output, lse = run(runner, v, dims, change)
    wrong = harness.compare_with_oracle(runner, v, arrays, output, lse)
    return wrong and f"{v['type']} {v['norm']} {dims}: {wrong}"


def first_wrong(results):
    return next((wrong for wrong in results if wrong), None)
