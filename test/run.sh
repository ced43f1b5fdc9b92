#!/bin/sh
# Builds everything and runs all tests that this machine can run; the last line
# is `N passed, N failed`. Arguments go to lit (for example --filter fuse).
set -eu
cd "$(dirname "$0")/.."
[ -f build/CMakeCache.txt ] || cmake --preset default
cmake --build build
exec /usr/bin/python3 test/run.py build "$@"
