"""What the package needs, and what it says of itself."""

import subprocess
import sys
import os

import attnfuse as af


def run(code):
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}
    return subprocess.run(
        [sys.executable, "-c", code], env=environment, capture_output=True, text=True, check=True
    ).stdout


def test_numpy_is_all_that_it_imports():
    loaded = run(
        "import sys, numpy; before = set(sys.modules); import attnfuse\n"
        "new = {name.split('.')[0] for name in set(sys.modules) - before}\n"
        "print(' '.join(sorted(new - set(sys.stdlib_module_names))))"
    )
    assert loaded.split() == ["attnfuse"]


def test_a_missing_library_is_explained():
    environment = {
        **os.environ,
        "PYTHONPATH": os.pathsep.join(sys.path),
        "ATTNFUSE_LIBRARY": "/no/such.so",
    }
    process = subprocess.run(
        [sys.executable, "-c", "import attnfuse"], env=environment, capture_output=True, text=True
    )
    assert process.returncode == 1
    assert "ImportError: cannot load /no/such.so" in process.stderr and "pip" in process.stderr


def test_version():
    assert af.__version__.count(".") == 2


def test_no_driver():
    """Without NVIDIA's driver, a kernel cannot be loaded, and the error says why."""
    from attnfuse import native

    try:
        chip = native.find_chip(0)
    except af.Error as error:
        assert "CUDA driver" in str(error) or "device" in str(error)
    else:
        assert chip.startswith("sm_")
