"""Writes q in C order, k in Fortran order and v as a version 2 file."""

import sys

import numpy as np

rng = np.random.default_rng(5)
folder = sys.argv[1]


def draw(*shape):
    return rng.standard_normal(shape).astype(np.float32)


np.save(f"{folder}/q.npy", draw(2, 2, 3, 4))
np.save(f"{folder}/k.npy", np.asfortranarray(draw(2, 1, 5, 4)))
with open(f"{folder}/v.npy", "wb") as file:
    np.lib.format.write_array(file, draw(2, 1, 5, 3), version=(2, 0))
