#!/bin/sh
# Packs the GPU tests into one self-contained archive: attnfuse-run without LLVM to load, the
# composition matrix, the examples, the traps and a script that runs them all. It is for x86-64
# machines that have NVIDIA's driver and nothing else (but glibc 2.36, bookworm's, or later); the
# traps need Python with NumPy and are left out without it.
#
#   benchmarks/pack-gpu-tests.sh [ARCHIVE]      default: build/attnfuse-gpu-tests.tar.gz
set -eu
cd "$(dirname "$0")/.."
archive=${1:-build/attnfuse-gpu-tests.tar.gz}

[ -f build/CMakeCache.txt ] || cmake --preset default
cmake --build build --target attnfuse-run-portable

tree=build/attnfuse-gpu-tests
rm -rf "$tree"
mkdir -p "$tree/bin" "$tree/examples" "$tree/Integration"
cp build/portable/attnfuse-run "$tree/bin"
cp benchmarks/gpu-tests/run.sh LICENSE "$tree"
cp test/Integration/*.py "$tree/Integration"
# More files than processes, so that a file that fails costs few calls.
/usr/bin/python3 test/Integration/matrix.py "$tree/matrix" --device cuda --files 64
for example in examples/*.mlir; do
  cp "$example" "$tree/examples"
  # The sizes of the command in the header.
  sed -n 's|^// attnfuse-run .*--dims \([^ ]*\).*|\1|p' "$example" \
    >"$tree/examples/$(basename "$example" .mlir).dims"
done
# The same tree gives the same archive.
tar --sort=name --owner=0 --group=0 --numeric-owner --mtime=@0 \
  -C build -cf - attnfuse-gpu-tests | gzip -9n >"$archive"
ls -l "$archive"
