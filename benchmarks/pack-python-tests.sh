#!/bin/sh
# Packs the Python package's tests into one archive: the wheel, the tests, those that want a GPU, the
# benchmark suite, and a script that runs them. For x86-64 Linux with a Python that has NumPy and
# pytest; PyTorch, transformers and a GPU are used where they are.
#
#   benchmarks/pack-python-tests.sh [ARCHIVE]      default: build/attnfuse-python-tests.tar.gz
#
# $ATTNFUSE_BUILD is the build folder, by default build.
set -eu
cd "$(dirname "$0")/.."
build=${ATTNFUSE_BUILD:-build}
archive=${1:-$build/attnfuse-python-tests.tar.gz}
tree=$build/attnfuse-python-tests
rm -rf "$tree"
mkdir -p "$tree/python" "$tree/docs" "$tree/benchmarks"
/usr/bin/python3 python/build_backend.py "$tree"
cp -r python/tests "$tree/python"
rm -rf "$tree"/python/tests/__pycache__ "$tree"/python/tests/gpu/__pycache__
mv "$tree/python/tests/gpu/run.sh" "$tree/run.sh"
cp -r benchmarks/suite.py benchmarks/suite "$tree/benchmarks"
rm -rf "$tree/benchmarks/suite/__pycache__"
cp docs/python.md docs/from-flex-attention.md "$tree/docs"
cp LICENSE "$tree"
# The same tree gives the same archive.
tar --sort=name --owner=0 --group=0 --numeric-owner --mtime=@0 \
  -C "$build" -cf - attnfuse-python-tests | gzip -9n >"$archive"
ls -l "$archive"
