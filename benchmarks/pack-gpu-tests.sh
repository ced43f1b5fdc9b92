#!/bin/sh
# Packs the GPU tests into one self-contained archive: statically linked tools, the
# composition matrix, the examples, the traps and a script that runs them all. It is for
# x86-64 machines that have NVIDIA's driver and nothing else; the traps need Python with
# NumPy and are left out without it.
#
#   benchmarks/pack-gpu-tests.sh [ARCHIVE]      default: build-portable/attnfuse-gpu-tests.tar.gz
set -eu
cd "$(dirname "$0")/.."
archive=${1:-build-portable/attnfuse-gpu-tests.tar.gz}

[ -f build-portable/CMakeCache.txt ] || cmake --preset portable
cmake --build --preset portable --target attnfuse-run attnfuse-compile

tree=build-portable/attnfuse-gpu-tests
rm -rf "$tree"
mkdir -p "$tree/bin" "$tree/examples" "$tree/Integration"
cp build-portable/bin/attnfuse-run build-portable/bin/attnfuse-compile "$tree/bin"
cp benchmarks/gpu-tests/run.sh benchmarks/time-examples.sh LICENSE "$tree"
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
  -C build-portable -cf - attnfuse-gpu-tests | gzip -9n >"$archive"
ls -l "$archive"
