# ===-----------------------------------------------------------------------===#
# Licensed under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
# ===-----------------------------------------------------------------------===#
"""Compiled modules, kept in memory and on disk.

An entry of the disk cache is a file whose name is a digest of everything that the code depends on:
the module's text, the target, the function, and the build of the compiler. It is written beside its
place and renamed, so that another process sees all of it or nothing, and it starts with a digest of
its contents: what is damaged is compiled anew and replaced.
"""

import hashlib
import json
import os
import tempfile
import threading

from . import native

_MAGIC = b"attnfuse-cache-1\n"

_lock = threading.Lock()
_memory = {}
_building = {}

#: How often each source served a request, for tests and the curious.
statistics = {"memory": 0, "disk": 0, "compiled": 0, "damaged": 0}


def directory():
    """The folder of the disk cache; None where it is switched off by an empty ATTNFUSE_CACHE_DIR."""
    path = os.environ.get("ATTNFUSE_CACHE_DIR")
    if path is not None:
        return path or None
    base = os.environ.get("XDG_CACHE_HOME") or os.path.expanduser("~/.cache")
    return os.path.join(base, "attnfuse") if os.path.isabs(base) else None


def clear_memory():
    """Forgets what this process has compiled; kernels in use stay loaded."""
    with _lock:
        _memory.clear()


def _digest(*parts):
    state = hashlib.sha256()
    for part in parts:
        data = part.encode()
        state.update(len(data).to_bytes(8, "little"))
        state.update(data)
    return state.hexdigest()


def _path(key):
    folder = directory()
    return folder and os.path.join(folder, key[:2], key)


def _read(path):
    """The entry at ``path``; None where there is none that is whole."""
    try:
        with open(path, "rb") as file:
            contents = file.read()
    except OSError:
        return None
    head = len(_MAGIC) + 64 + 1
    payload = contents[head:]
    checksum = hashlib.sha256(payload).hexdigest().encode()
    if contents[:head] == _MAGIC + checksum + b"\n":
        try:
            entry = json.loads(payload)
            return native.Compiled(entry["code"].encode(), entry["manifest"], "")
        except (ValueError, LookupError, TypeError, AttributeError):
            pass  # Whole, but none of ours.
    statistics["damaged"] += 1
    return None


def _write(path, compiled):
    """A disk that is full or read-only costs time, not the result."""
    entry = {"code": compiled.code.decode(), "manifest": compiled.manifest}
    payload = json.dumps(entry).encode()
    checksum = hashlib.sha256(payload).hexdigest().encode()
    temporary = None
    try:
        os.makedirs(os.path.dirname(path), mode=0o700, exist_ok=True)
        handle, temporary = tempfile.mkstemp(dir=os.path.dirname(path), prefix=".tmp-")
        with os.fdopen(handle, "wb") as file:
            file.write(_MAGIC + checksum + b"\n" + payload)
        os.replace(temporary, path)
    except OSError:
        if temporary:
            try:
                os.unlink(temporary)
            except OSError:
                pass


def _once(key, build):
    """What ``build`` gives, called by one thread only for each key."""
    with _lock:
        if key in _memory:
            statistics["memory"] += 1
            return _memory[key]
        turn = _building.setdefault(key, threading.Lock())
    with turn:
        with _lock:
            if key in _memory:
                statistics["memory"] += 1
                return _memory[key]
        value = build()
        with _lock:
            _memory[key] = value
            _building.pop(key, None)
        return value


def ptx(program, target):
    """The program's PTX and manifest for a target."""
    # Lines of the source are in errors only.
    key = _digest(native.version(), native.build_id(), "ptx", target, program.text)

    def build():
        path = _path(key)
        compiled = path and _read(path)
        if compiled:
            statistics["disk"] += 1
            return compiled
        compiled = native.compile_module(program.located_text, target, "ptx")
        statistics["compiled"] += 1
        if path:
            _write(path, compiled)
        return compiled

    return _once(key, build)


def kernel(program, device):
    """The program loaded on a device, by its number."""

    def build():
        return native.Kernel(device, ptx(program, native.find_chip(device)), program.function)

    return _once(("kernel", device, program.text), build)


def cpu_function(program):
    """The program compiled for this machine: kept in memory only."""

    def build():
        statistics["compiled"] += 1
        return native.CpuFunction(program.located_text, program.function)

    return _once(("cpu", program.text), build)
