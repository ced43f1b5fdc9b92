"""Checks the RECORD of an unpacked wheel: every file is there, with its digest, and no other.

usage: check_record.py FOLDER
"""

import base64
import hashlib
import pathlib
import sys

folder = pathlib.Path(sys.argv[1])
(record,) = folder.glob("*.dist-info/RECORD")
listed = {}
for line in record.read_text().splitlines():
    name, digest, size = line.rsplit(",", 2)
    listed[name] = (digest, size)
found = {str(path.relative_to(folder)) for path in folder.rglob("*") if path.is_file()}
assert found == set(listed), found ^ set(listed)
for name, (digest, size) in listed.items():
    if name.endswith("/RECORD"):
        continue
    contents = (folder / name).read_bytes()
    actual = base64.urlsafe_b64encode(hashlib.sha256(contents).digest()).rstrip(b"=").decode()
    assert digest == "sha256=" + actual and int(size) == len(contents), name
assert "attnfuse/libattnfuse.so" in found and "attnfuse/__init__.py" in found
