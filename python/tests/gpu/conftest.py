"""These tests want PyTorch and a GPU that it sees; elsewhere each is skipped with the reason."""

import importlib.util
import pathlib
import sys

import pytest

sys.path.insert(0, str(pathlib.Path(__file__).parents[1]))

if importlib.util.find_spec("torch") is None:
    REASON = "PyTorch is not installed"
else:
    import torch

    REASON = "" if torch.cuda.is_available() else "PyTorch sees no GPU"


def pytest_collection_modifyitems(items):
    here = pathlib.Path(__file__).parent
    for item in items:
        if REASON and here in pathlib.Path(item.fspath).parents:
            item.add_marker(pytest.mark.skip(reason=REASON))
