# ===-----------------------------------------------------------------------===#
# Licensed under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
# ===-----------------------------------------------------------------------===#
"""Builds the wheel (PEP 517): the Python sources and libattnfuse.so.

The library is the one that ATTNFUSE_LIBRARY names; else it is built by CMake, in the folder that
ATTNFUSE_BUILD names, by default `build` of the checkout.

    pip install ./python
    python3 python/build_backend.py FOLDER      # the wheel without pip
"""

import base64
import hashlib
import os
import platform
import re
import subprocess
import sys
import zipfile

HERE = os.path.dirname(os.path.abspath(__file__))
ROOT = os.path.dirname(HERE)
NAME = "attnfuse"


def _version():
    with open(os.path.join(ROOT, "CMakeLists.txt"), encoding="utf-8") as file:
        return re.search(r"project\(AttnFuse VERSION ([0-9.]+)", file.read()).group(1)


def _metadata():
    with open(os.path.join(HERE, "README.md"), encoding="utf-8") as file:
        readme = file.read()
    return f"""Metadata-Version: 2.1
Name: {NAME}
Version: {_version()}
Summary: Attention variants as chains of blocks, compiled to one fused GPU kernel each
License: Apache-2.0 WITH LLVM-exception
Requires-Python: >=3.9
Requires-Dist: numpy>=1.22
Description-Content-Type: text/markdown

{readme}"""


def _tag():
    return f"py3-none-linux_{platform.machine()}"


def _library():
    """The path of libattnfuse.so."""
    path = os.environ.get("ATTNFUSE_LIBRARY")
    if path:
        return path
    build = os.environ.get("ATTNFUSE_BUILD") or os.path.join(ROOT, "build")
    if not os.path.exists(os.path.join(build, "CMakeCache.txt")):
        command = ["cmake", "--preset", "default", "-DATTNFUSE_INCLUDE_TESTS=OFF", "-B", build]
        subprocess.run(command, cwd=ROOT, check=True)
    subprocess.run(["cmake", "--build", build, "--target", "attnfuse-shared"], check=True)
    return os.path.join(build, "lib", "libattnfuse.so")


def _wheel_info():
    return f"Wheel-Version: 1.0\nGenerator: {NAME}\nRoot-Is-Purelib: false\nTag: {_tag()}\n"


class _Wheel:
    """A wheel that is being written; the same contents make the same file."""

    def __init__(self, path):
        self.archive = zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED)
        self.info = f"{NAME}-{_version()}.dist-info"
        self.record = []

    def add(self, name, contents, mode=0o644):
        if isinstance(contents, str):
            contents = contents.encode()
        entry = zipfile.ZipInfo(name, (1980, 1, 1, 0, 0, 0))
        entry.external_attr = (0o100000 | mode) << 16
        entry.compress_type = zipfile.ZIP_DEFLATED
        self.archive.writestr(entry, contents)
        digest = base64.urlsafe_b64encode(hashlib.sha256(contents).digest()).rstrip(b"=").decode()
        self.record.append(f"{name},sha256={digest},{len(contents)}")

    def add_file(self, name, path, mode=0o644):
        with open(path, "rb") as file:
            self.add(name, file.read(), mode)

    def finish(self):
        self.add(f"{self.info}/METADATA", _metadata())
        self.add(f"{self.info}/WHEEL", _wheel_info())
        self.add_file(f"{self.info}/licenses/LICENSE", os.path.join(ROOT, "LICENSE"))
        name = f"{self.info}/RECORD"
        record = "\n".join(self.record + [f"{name},,"]) + "\n"
        self.archive.writestr(zipfile.ZipInfo(name, (1980, 1, 1, 0, 0, 0)), record)
        self.archive.close()


def _write(folder, fill):
    filename = f"{NAME}-{_version()}-{_tag()}.whl"
    path = os.path.join(folder, filename)
    wheel = _Wheel(path + ".tmp")
    try:
        fill(wheel)
        wheel.finish()
        os.replace(path + ".tmp", path)
    finally:
        if os.path.exists(path + ".tmp"):
            os.unlink(path + ".tmp")
    return filename


def build_wheel(wheel_directory, config_settings=None, metadata_directory=None):
    library = _library()

    def fill(wheel):
        package = os.path.join(HERE, NAME)
        for name in sorted(os.listdir(package)):
            if name.endswith(".py") or name == "py.typed":
                wheel.add_file(f"{NAME}/{name}", os.path.join(package, name))
        wheel.add_file(f"{NAME}/libattnfuse.so", library, 0o755)

    return _write(wheel_directory, fill)


def build_editable(wheel_directory, config_settings=None, metadata_directory=None):
    # The package finds the library in the checkout's build folder.
    _library()
    return _write(wheel_directory, lambda wheel: wheel.add(f"{NAME}.pth", HERE + "\n"))


def build_sdist(sdist_directory, config_settings=None):
    raise SystemExit("there is no source distribution; build the wheel from a checkout")


if __name__ == "__main__":
    if len(sys.argv) != 2:
        raise SystemExit(__doc__)
    os.makedirs(sys.argv[1], exist_ok=True)
    print(os.path.join(sys.argv[1], build_wheel(sys.argv[1])))
