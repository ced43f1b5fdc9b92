# ===-----------------------------------------------------------------------===#
# Licensed under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
# ===-----------------------------------------------------------------------===#
"""The JSON file of a run.

    {"format": 1, "environment": {...}, "absent": {peer: reason}, "state": "running" | "done" | ...,
     "seconds": 93.1, "results": [{"work": {...}, "label", "shape", "flops", "bytes", "entries": [...]}]}

An entry is a contestant: {"name", "status", ...} with the status "ok" or "wrong" (timed: "median_us",
"q1_us", "q3_us", "samples", "graph", "error", "bound"), or "failed" or "skipped" (with "reason").
"""

import json
import os
import tempfile

FORMAT = 1


class RecordError(Exception):
    """A file that is no record; the text says why."""


def write(path, data):
    """Writes beside the file and renames, so that a run that is killed leaves a whole one."""
    folder = os.path.dirname(os.path.abspath(path))
    handle, temporary = tempfile.mkstemp(dir=folder, prefix=".suite-")
    try:
        with os.fdopen(handle, "w", encoding="utf-8") as file:
            json.dump(data, file, indent=1)
            file.write("\n")
        os.replace(temporary, path)
    except BaseException:
        os.unlink(temporary)
        raise


def read(path):
    try:
        with open(path, encoding="utf-8") as file:
            data = json.load(file)
    except (OSError, ValueError) as error:
        raise RecordError(f"{path}: {error}") from None
    found = data.get("format") if isinstance(data, dict) else None
    if found != FORMAT or not isinstance(data.get("results"), list):
        raise RecordError(
            f"{path}: expected a file of 'suite.py run' of format {FORMAT}, got {found}"
        )
    return data


def is_timed(entry):
    return "median_us" in entry


def find(result, name):
    """The entry of a contestant, None if it has none that is timed and right."""
    for entry in result["entries"]:
        if entry["name"] == name and entry["status"] == "ok":
            return entry
    return None


def best_peer(result, ours):
    """The fastest entry that is right and none of ``ours``."""
    peers = [e for e in result["entries"] if e["status"] == "ok" and e["name"] not in ours]
    return min(peers, key=lambda entry: entry["median_us"], default=None)
