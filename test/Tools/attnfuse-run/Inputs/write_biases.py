"""Biases so large that f32 scores lose what q and k say, in three ways."""

import sys

import numpy

folder = sys.argv[1]
rng = numpy.random.default_rng(7)
keys = 48
# All keys alike: rounding decides which of them count.
numpy.save(f"{folder}/all.npy", (1e8 + rng.integers(0, 3, (keys, keys))).astype(numpy.float32))
# One key wins, whatever the roundings.
one = rng.standard_normal((keys, keys)).astype(numpy.float32)
one[numpy.arange(keys), rng.integers(0, keys, keys)] = 1e8
numpy.save(f"{folder}/one.npy", one)
# A mask: the keys that are left have small biases.
mask = rng.standard_normal((keys, keys)).astype(numpy.float32)
mask[rng.random((keys, keys)) < 0.5] = -1e9
numpy.save(f"{folder}/mask.npy", mask)
