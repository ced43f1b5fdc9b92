"""The cache of compiled modules."""

import hashlib
import os
import pathlib
import subprocess
import sys
import threading

import pytest

import attnfuse as af
import variants

causal = af.attention(variants.causal)
SPECS = [af.TensorSpec((None, 4, None, 64), "f16")] * 3


def compile_once():
    af.cache.clear_memory()
    return causal.lower(*SPECS, level="ptx", target="sm_80")


@pytest.fixture
def counts():
    before = dict(af.cache.statistics)
    return lambda: {name: count - before[name] for name, count in af.cache.statistics.items()}


def entries():
    return [path for path in pathlib.Path(af.cache.directory()).rglob("*") if path.is_file()]


def test_memory_and_disk(counts):
    ptx = compile_once()
    assert counts() == {"memory": 0, "disk": 0, "compiled": 1, "damaged": 0}
    assert causal.lower(*SPECS, level="ptx", target="sm_80") == ptx
    assert counts()["memory"] == 1
    assert compile_once() == ptx
    assert counts() == {"memory": 1, "disk": 1, "compiled": 1, "damaged": 0}
    assert len(entries()) == 1
    assert causal.explain(*SPECS, target="sm_80").startswith("causal for sm_80")
    assert counts()["compiled"] == 1
    assert causal.lower(*SPECS, level="ptx", target="sm_90a") != ptx
    assert len(entries()) == 2


def test_the_place_in_the_source_does_not_matter(counts):
    def make():
        def same(q, k, v):
            return af.softmax(af.scaled_dot_product(q, k)) @ v

        return af.attention(same)

    text = "def same(q, k, v):\n    return af.softmax(af.scaled_dot_product(q, k)) @ v\n"
    scope = {"af": af}
    exec(compile("\n\n\n" + text, "elsewhere.py", "exec"), scope)
    af.cache.clear_memory()
    first = make().lower(*SPECS, level="ptx", target="sm_80")
    assert af.attention(scope["same"]).lower(*SPECS, level="ptx", target="sm_80") == first
    assert counts()["compiled"] == 1 and counts()["memory"] == 1


def with_checksum(entry, payload):
    """An entry like ``entry``, of another payload."""
    magic = entry[: entry.index(b"\n") + 1]
    return magic + hashlib.sha256(payload).hexdigest().encode() + b"\n" + payload


@pytest.mark.parametrize("damage", ["cut", "flip", "empty", "other", "foreign"])
def test_damaged_entries_are_rebuilt(counts, damage):
    ptx = compile_once()
    (path,) = entries()
    whole = path.read_bytes()
    middle = len(whole) // 2
    path.write_bytes(
        {
            "cut": whole[:-10],
            "flip": whole[:middle] + bytes([whole[middle] ^ 1]) + whole[middle + 1 :],
            "empty": b"",
            "other": b"\0" * 1000,
            # Whole, but not what is expected.
            "foreign": with_checksum(whole, b'{"code": 3}'),
        }[damage]
    )
    assert compile_once() == ptx
    assert counts() == {"memory": 0, "disk": 0, "compiled": 2, "damaged": 1}
    assert path.read_bytes() == whole and entries() == [path]


def test_no_place_to_write(monkeypatch, tmp_path, counts):
    (tmp_path / "file").write_text("")
    for folder in ("", str(tmp_path / "file" / "cache"), "/proc/none"):
        monkeypatch.setenv("ATTNFUSE_CACHE_DIR", folder)
        assert ".entry causal" in compile_once()
    assert counts()["compiled"] == 3


def test_directory(monkeypatch):
    monkeypatch.setenv("ATTNFUSE_CACHE_DIR", "")
    assert af.cache.directory() is None
    monkeypatch.delenv("ATTNFUSE_CACHE_DIR")
    monkeypatch.setenv("XDG_CACHE_HOME", "/somewhere")
    assert af.cache.directory() == "/somewhere/attnfuse"
    monkeypatch.delenv("XDG_CACHE_HOME")
    monkeypatch.setenv("HOME", "/home/me")
    assert af.cache.directory() == "/home/me/.cache/attnfuse"


def test_threads_compile_once(counts):
    af.cache.clear_memory()
    results = []
    threads = [
        threading.Thread(
            target=lambda: results.append(causal.lower(*SPECS, level="ptx", target="sm_80"))
        )
        for _ in range(8)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(results) == 8 and len(set(results)) == 1
    assert counts()["compiled"] == 1


def test_processes(tmp_path):
    """Processes that compile the same at once agree, and leave one whole entry."""
    script = tmp_path / "script.py"
    script.write_text(
        "import hashlib, sys\n"
        "import attnfuse as af\n"
        "@af.attention\n"
        "def causal(q, k, v):\n"
        "    return af.softmax(af.causal(af.scaled_dot_product(q, k))) @ v\n"
        "specs = [af.TensorSpec((None, 4, None, 64), 'f16')] * 3\n"
        "sys.stdin.readline()\n"
        "ptx = causal.lower(*specs, level='ptx', target='sm_80')\n"
        "print(hashlib.sha256(ptx.encode()).hexdigest())\n"
    )
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}
    processes = [
        subprocess.Popen(
            [sys.executable, str(script)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            env=environment,
            text=True,
        )
        for _ in range(4)
    ]
    for process in processes:
        process.stdin.write("go\n")
        process.stdin.flush()
    outputs = {process.communicate()[0].strip() for process in processes}
    assert all(process.returncode == 0 for process in processes)
    assert len(outputs) == 1 and len(outputs.pop()) == 64
    assert len(entries()) == 1


def test_entries_are_private():
    compile_once()
    (path,) = entries()
    assert path.parent.stat().st_mode & 0o077 == 0 and path.stat().st_mode & 0o077 == 0
