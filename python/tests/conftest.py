"""What all tests share."""

import os
import sys

import numpy as np
import pytest

sys.path.insert(0, os.path.dirname(__file__))


@pytest.fixture(autouse=True)
def own_cache(tmp_path, monkeypatch):
    """No test sees what another, or the user, has compiled."""
    monkeypatch.setenv("ATTNFUSE_CACHE_DIR", str(tmp_path / "attnfuse-cache"))


@pytest.fixture
def random():
    return np.random.default_rng(7)


@pytest.fixture
def tensors(random):
    """q, k and v."""
    # Found only now: this file is what puts its folder on the path.
    from reference import qkv

    return qkv(random)
