# ===-----------------------------------------------------------------------===#
# Licensed under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
# ===-----------------------------------------------------------------------===#
"""The C interface of libattnfuse.so (include/attnfuse-c), through ctypes."""

import ctypes
import functools
import os
import sys

from .errors import CompileError, Error

MAX_RANK = 8
API_VERSION = 1

# AttnfuseElementType.
ELEMENT_TYPES = {"f16": 0, "bf16": 1, "f32": 2, "f64": 3, "i32": 4, "i64": 5}

# AttnfuseEmit.
EMIT = {"fused": 0, "schedule": 1, "nvvm": 2, "llvm": 3, "ptx": 4, "cubin": 5, "linalg": 6}

#: The file's name for what is not from a line of Python.
_GENERATED = "module"

_SEVERITIES = {0: "note", 1: "warning", 2: "error", 3: "remark"}


class Value(ctypes.Structure):
    """AttnfuseValue."""

    _fields_ = [
        ("data", ctypes.c_void_p),
        ("scalar", ctypes.c_int64),
        ("type", ctypes.c_int32),
        ("rank", ctypes.c_int32),
        ("sizes", ctypes.c_int64 * MAX_RANK),
        ("strides", ctypes.c_int64 * MAX_RANK),
    ]

    def describe(self, element, sizes, strides):
        """Sets all but the place. ``strides`` are in elements."""
        if len(sizes) > MAX_RANK:
            raise Error(f"expected at most {MAX_RANK} dimensions, got {len(sizes)}")
        self.type = ELEMENT_TYPES[element]
        self.rank = len(sizes)
        for i, (size, stride) in enumerate(zip(sizes, strides)):
            self.sizes[i] = size
            self.strides[i] = stride


class _Diagnostic(ctypes.Structure):
    _fields_ = [
        ("severity", ctypes.c_int32),
        ("line", ctypes.c_int32),
        ("column", ctypes.c_int32),
        ("file", ctypes.c_char_p),
        ("message", ctypes.c_char_p),
    ]


_Handler = ctypes.CFUNCTYPE(None, ctypes.POINTER(_Diagnostic), ctypes.c_void_p)


def _find_library():
    path = os.environ.get("ATTNFUSE_LIBRARY")
    if path:
        return path
    package = os.path.dirname(os.path.abspath(__file__))
    installed = os.path.join(package, "libattnfuse.so")
    # A checkout has it in its build folder.
    built = os.path.join(package, "..", "..", "build", "lib", "libattnfuse.so")
    return built if os.path.exists(built) and not os.path.exists(installed) else installed


def _load():
    path = _find_library()
    try:
        # Calls that may take long release the interpreter's lock, a launch does not: it is over
        # before another thread could make use of it.
        library, quick = ctypes.CDLL(path), ctypes.PyDLL(path)
    except OSError as error:
        raise ImportError(
            f"cannot load {path} ({error}); install the package with pip, or set ATTNFUSE_LIBRARY to "
            "the libattnfuse.so of a build folder"
        ) from None
    pointer, text, size = ctypes.c_void_p, ctypes.c_char_p, ctypes.c_size_t
    values = ctypes.c_void_p
    declarations = {
        "GetApiVersion": (ctypes.c_int, []),
        "GetVersion": (text, []),
        "GetBuildId": (text, []),
        "GetLastError": (text, []),
        "Compile": (pointer, [text, size, text, ctypes.c_int, _Handler, pointer]),
        "CompiledGetCode": (pointer, [pointer]),
        "CompiledGetCodeSize": (size, [pointer]),
        "CompiledGetManifest": (text, [pointer]),
        "CompiledGetExplanation": (text, [pointer]),
        "CompiledDestroy": (None, [pointer]),
        "ListTargets": (text, []),
        "FindChip": (text, [ctypes.c_int]),
        "CpuCompile": (pointer, [text, size, text, _Handler, pointer]),
        "CpuFunctionDestroy": (None, [pointer]),
        "CpuFunctionRun": (ctypes.c_int, [pointer, values, size, values, size]),
        "DeviceGetCapability": (ctypes.c_int, [ctypes.c_int]),
        "KernelLoad": (pointer, [ctypes.c_int, text, size, text, text]),
        "KernelDestroy": (None, [pointer]),
        "KernelLaunch": (ctypes.c_int, [pointer, pointer, values, size, values, size]),
        "KernelBind": (pointer, [pointer, values, size, values, size]),
        "LaunchGetWorkspaceSize": (ctypes.c_int64, [pointer]),
        "LaunchRunInWorkspace": (ctypes.c_int, [pointer, pointer, values, ctypes.c_uint64]),
        "LaunchDestroy": (None, [pointer]),
    }
    for name, (result, arguments) in declarations.items():
        for each in (library, quick):
            function = getattr(each, "attnfuse" + name)
            function.restype, function.argtypes = result, arguments
    if library.attnfuseGetApiVersion() < API_VERSION:
        raise ImportError(
            f"{path} has version {library.attnfuseGetApiVersion()} of the C interface, expected at "
            f"least {API_VERSION}; install the package anew"
        )
    return library, quick


_library, _quick = _load()

launch_kernel = _quick.attnfuseKernelLaunch
run_launch = _quick.attnfuseLaunchRunInWorkspace


def last_error():
    # The error is the thread's own, so no other call may come between.
    return _quick.attnfuseGetLastError().decode(errors="replace")


def version():
    return _library.attnfuseGetVersion().decode()


def build_id():
    return _library.attnfuseGetBuildId().decode()


def list_targets():
    return _library.attnfuseListTargets().decode().split(", ")


class _Diagnostics:
    """Collects what the compiler says."""

    def __init__(self):
        self.entries = []
        self.handler = _Handler(self._add)

    def _add(self, diagnostic, _):
        entry = diagnostic.contents
        file = entry.file.decode(errors="replace")
        self.entries.append(
            (
                _SEVERITIES.get(entry.severity, "error"),
                # Places in generated text say nothing to anybody.
                "" if file == _GENERATED else file,
                entry.line,
                entry.message.decode(errors="replace"),
            )
        )

    def error(self):
        """The CompileError of the first error, with all errors and notes in its text."""
        lines, first = [], None
        for severity, file, line, message in self.entries:
            if severity == "error":
                first = first or (file, line)
            elif severity == "remark" or not first:
                # A remark says why a chain was not fused, which is often the cause.
                severity = "remark"
            place = f"{file}:{line}: " if file else ""
            prefix = "" if severity == "error" else severity + ": "
            lines.append(place + prefix + message)
        file, line = first or ("", 0)
        return CompileError("\n".join(lines), file or None, line if file else None)


class Compiled:
    """Code, manifest and explanation as texts (code as bytes)."""

    def __init__(self, code, manifest, explanation):
        self.code = code
        self.manifest = manifest
        self.explanation = explanation


def compile_module(text, target, emit):
    diagnostics = _Diagnostics()
    source = text.encode()
    handle = _library.attnfuseCompile(
        source, len(source), (target or "").encode(), EMIT[emit], diagnostics.handler, None
    )
    if not handle:
        raise diagnostics.error()
    try:
        return Compiled(
            ctypes.string_at(
                _library.attnfuseCompiledGetCode(handle),
                _library.attnfuseCompiledGetCodeSize(handle),
            ),
            _library.attnfuseCompiledGetManifest(handle).decode(),
            _library.attnfuseCompiledGetExplanation(handle).decode(),
        )
    finally:
        _library.attnfuseCompiledDestroy(handle)


class CpuFunction:
    def __init__(self, text, function):
        diagnostics = _Diagnostics()
        source = text.encode()
        self._handle = None
        self._handle = _library.attnfuseCpuCompile(
            source, len(source), function.encode(), diagnostics.handler, None
        )
        if not self._handle:
            # What the compiler says has the line, which what the code for the host lacks may not.
            compile_module(text, None, "linalg")
            raise diagnostics.error()

    def run(self, arguments, results):
        """Runs on arrays of Value; the message of an error, or None."""
        if _library.attnfuseCpuFunctionRun(
            self._handle, arguments, len(arguments), results, len(results)
        ):
            return last_error()
        return None

    def __del__(self):
        if self._handle and _library is not None:
            _library.attnfuseCpuFunctionDestroy(self._handle)


@functools.lru_cache(maxsize=None)
def find_chip(device):
    """The chip to compile for, for a device's number."""
    capability = _library.attnfuseDeviceGetCapability(device)
    if capability < 0:
        raise Error(last_error())
    chip = _library.attnfuseFindChip(capability)
    if not chip:
        raise Error(last_error())
    return chip.decode()


class Kernel:
    """A function loaded on a device; ``handle`` is what launch_kernel takes."""

    def __init__(self, device, compiled, function):
        self.handle = None
        self.handle = _library.attnfuseKernelLoad(
            device,
            compiled.code,
            len(compiled.code),
            compiled.manifest.encode(),
            function.encode(),
        )
        if not self.handle:
            raise Error(last_error())

    def __del__(self):
        # At the end of the process the driver goes first.
        if self.handle and _library is not None and not _is_finalizing():
            _library.attnfuseKernelDestroy(self.handle)


class Launch:
    """Launches of a kernel on tensors of one kind; ``handle`` is what run_launch takes."""

    def __init__(self, kernel, arguments, results):
        self.handle = None
        self.handle = _library.attnfuseKernelBind(
            kernel.handle, arguments, len(arguments), results, len(results)
        )
        #: Bytes that run_launch wants beside the tensors; where it cannot be said, it helps itself.
        self.workspace_size = 0
        if self.handle:
            self.workspace_size = max(0, _library.attnfuseLaunchGetWorkspaceSize(self.handle))

    def __del__(self):
        if self.handle and _library is not None and not _is_finalizing():
            _library.attnfuseLaunchDestroy(self.handle)


def _is_finalizing():
    # By then modules' names may be gone, and nothing can be imported.
    return sys is None or sys.is_finalizing()
