#!/bin/sh
# Runs the Python package's tests on this machine, the GPU's among them, from the unpacked archive:
#
#   attnfuse-python-tests/run.sh [pytest arguments]
#   attnfuse-python-tests/run.sh --benchmark OUT.json [options of suite.py run]
#
# Takes $PYTHON or python3, with NumPy and pytest; what wants PyTorch, transformers or a GPU is
# skipped without them. Then measures host time per call. The last line is `N passed, N failed`.
# With --benchmark the benchmark suite runs instead, which wants PyTorch and a GPU.
set -u
usage="usage: run.sh [pytest arguments], or run.sh --benchmark OUT.json [options]"
case "${1-}, ${2-}" in
  "--benchmark, " | "--benchmark, -"*) echo "$usage" >&2 && exit 2 ;;
esac
here=$(cd "$(dirname "$0")" && pwd)
python=${PYTHON:-python3}
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

"$python" -m zipfile -e "$here"/attnfuse-*.whl "$work/site" || exit 1
export PYTHONPATH="$work/site${PYTHONPATH:+:$PYTHONPATH}" PYTHONDONTWRITEBYTECODE=1
export ATTNFUSE_CACHE_DIR="$work/cache" HF_HUB_OFFLINE=1
"$python" -c 'import attnfuse; print("attnfuse", attnfuse.__version__, attnfuse.__file__)' || exit 1
"$python" -c 'import torch; print("PyTorch", torch.__version__, torch.cuda.get_device_name() if torch.cuda.is_available() else "without a GPU")' 2>/dev/null ||
  echo "without PyTorch"

if [ "${1-}" = --benchmark ]; then
  shift
  "$python" "$here/benchmarks/suite.py" run "$@"
  exit
fi

"$python" -m pytest -q -p no:cacheprovider -rfEs --show-capture=no --tb=short \
  --junitxml="$work/results.xml" "$here/python/tests" "$@"
status=$?
overhead=0
if "$python" -c 'import sys, torch; sys.exit(not torch.cuda.is_available())' 2>/dev/null; then
  "$python" "$here/python/tests/gpu/overhead.py" --check
  overhead=$?
fi
"$python" - "$work/results.xml" "$status" "$overhead" <<'END'
import sys
import xml.etree.ElementTree as tree

path, status, overhead = sys.argv[1], int(sys.argv[2]), int(sys.argv[3])
try:
    suites = list(tree.parse(path).getroot().iter("testsuite"))
except (OSError, tree.ParseError):
    suites = []
count = lambda name: sum(int(suite.get(name, 0)) for suite in suites)
bad = count("failures") + count("errors")
passed = count("tests") - bad - count("skipped")
# A run that ends for another reason than a failure has failed too.
failed = bad + (overhead != 0) + (status not in (0, 1) or status == 1 and bad == 0)
if overhead:
    print("host time per call: FAILED")
print(f"{count('skipped')} skipped")
print(f"{passed} passed, {failed} failed")
sys.exit(failed > 0 or passed == 0)
END
