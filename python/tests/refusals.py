"""What the tests of errors share."""

import numpy as np
import pytest

import attnfuse as af


def refused(message, function, *args, error=af.OperandError, **operands):
    with pytest.raises(error, match=message) as caught:
        function(*args, **operands)
    return caught.value


def tables(rows=64, dim=16, **changed):
    cos, sin = af.build_rope_cache(rows, dim)
    return {"cos": cos, "sin": sin, **changed}


def block_mask(q_len=13, kv_len=21, block=8, **sizes):
    return af.create_block_mask(
        lambda b, h, i, j: i >= 0, Q_LEN=q_len, KV_LEN=kv_len, BLOCK_SIZE=block, **sizes
    )


def ones(*shape):
    return np.ones(shape, np.float32)
