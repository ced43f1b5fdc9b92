"""Runs the test suite of a build folder and sums up its results.

usage: run.py BUILD [lit arguments]
"""

import collections
import json
import os
import subprocess
import sys
import tempfile


def cache_value(build, name):
    with open(os.path.join(build, "CMakeCache.txt")) as cache:
        for line in cache:
            if line.startswith(name + ":"):
                return line.split("=", 1)[1].strip()
    sys.exit(f"run.py: {build} has no {name}; configure it with tests")


def main():
    build, arguments = sys.argv[1], sys.argv[2:]
    with tempfile.TemporaryDirectory() as folder:
        results = os.path.join(folder, "results.json")
        lit = [sys.executable, cache_value(build, "LLVM_EXTERNAL_LIT"), "-sv", "--time-tests"]
        status = subprocess.run(lit + ["-o", results, *arguments, os.path.join(build, "test")]).returncode
        if not os.path.exists(results):
            sys.exit(status or 1)
        with open(results) as file:
            tests = json.load(file)["tests"]
    counts = collections.Counter(test["code"] for test in tests)
    passed = counts.pop("PASS", 0) + counts.pop("FLAKYPASS", 0) + counts.pop("XFAIL", 0)
    unsupported = counts.pop("UNSUPPORTED", 0) + counts.pop("EXCLUDED", 0)
    failed = sum(counts.values())
    if unsupported:
        print(f"{unsupported} not run: this machine lacks what they need")
    print(f"{passed} passed, {failed} failed")
    sys.exit(status or failed > 0 or passed == 0)


if __name__ == "__main__":
    main()
