"""Compares the outputs with NumPy's own attention."""

import sys

import numpy as np

folder = sys.argv[1]
q, k, v, o, lse = (np.load(f"{folder}/{name}.npy") for name in ("q", "k", "v", "o", "lse"))
scores = np.einsum("bhid,bjd->bhij", q.astype(np.float64), k[:, 0].astype(np.float64))
weights = np.exp(scores)
sums = weights.sum(axis=-1)
expected = np.einsum("bhij,bjd->bhid", weights / sums[..., None], v[:, 0].astype(np.float64))
assert o.dtype == np.float32 and o.shape == expected.shape
np.testing.assert_allclose(o, expected, rtol=0, atol=1e-5)
np.testing.assert_allclose(lse, np.log(sums), rtol=0, atol=1e-5)
