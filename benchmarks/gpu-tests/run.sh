#!/bin/sh
# Runs the test matrix and the examples on this machine's GPU, each call checked
# against the fp64 reference; a sample of the matrix also with tensors in other memory
# layouts; and the traps, if python3 has NumPy (PYTHON=... names another). Needs an
# x86-64 Linux and NVIDIA's driver.
#
#   ./run.sh [--device cuda:0] [--seed 1] [--jobs N] [--only SUBSTRING]
#            [--rotation auto|fused|split|split_both] [--key-splits N]
#   ./run.sh --sanitize memcheck|racecheck|synccheck|initcheck   a sample only, under
#                                                                compute-sanitizer
#
# The last line is `N passed, M failed`; logs are in ./log.
set -u
cd "$(dirname "$0")"

device=cuda seed=1 jobs=$(nproc) only="" sanitize="" rotation=auto key_splits=0
python=${PYTHON:-python3}
# Functions of each file that also run in other layouts.
layout_sample=4
while [ $# -gt 0 ]; do
  [ $# -gt 1 ] || { echo "run.sh: unknown option $1, or it lacks its value" >&2; exit 2; }
  case $1 in
    --device) device=$2 ;;
    --seed) seed=$2 ;;
    --jobs) jobs=$2 ;;
    --only) only=$2 ;;
    --sanitize) sanitize=$2 ;;
    --rotation) rotation=$2 ;;
    --key-splits) key_splits=$2 ;;
    *) echo "run.sh: unknown option $1" >&2; exit 2 ;;
  esac
  shift 2
done

sanitizer=""
if [ -n "$sanitize" ]; then
  PATH=$PATH:/usr/local/cuda/bin
  command -v compute-sanitizer >/dev/null || { echo "run.sh: no compute-sanitizer here" >&2; exit 2; }
  sanitizer="compute-sanitizer --tool $sanitize --error-exitcode 99"
fi

log=log${sanitize:+/$sanitize}
rm -rf "$log"
mkdir -p "$log"

# run_file FILE [LAYOUT]: all of its functions at all of its sizes, or the first ones for
# a sample. Writes a log, whose last line is the count. A process that dies counts all
# calls that it owes as failed.
run_file() {
  file=$1 layout=${2:-}
  name=$(basename "$file" .mlir)${layout:+.$layout}
  functions=$(sed -n 's/^func\.func @\([A-Za-z0-9_]*\).*/\1/p' "$file")
  sizes=$(cat "${file%.mlir}.dims")
  if [ -n "$sanitizer" ]; then
    functions=$(echo "$functions" | head -n 1)
    sizes=$(echo "$sizes" | head -n 2 | tail -n 1)
  elif [ -n "$layout" ]; then
    functions=$(echo "$functions" | head -n "$layout_sample")
  fi
  set -- --device="$device" --random="$seed" --check --rotation="$rotation" \
    --key-splits="$key_splits" ${layout:+--layout="$layout"}
  for size in $sizes; do set -- "$@" --dims "$size"; done
  for function in $functions; do set -- "$@" --function "$function"; done
  owed=$(($(echo "$functions" | wc -l) * $(echo "$sizes" | wc -l)))
  $sanitizer bin/attnfuse-run "$file" "$@" >"$log/$name.log" 2>&1
  status=$?
  passed=$(sed -n 's/^\([0-9]*\) passed, [0-9]* failed$/\1/p' "$log/$name.log" | tail -n 1)
  [ -z "$sanitizer" ] || [ $status = 0 ] || passed=0
  passed=${passed:-0}
  echo "exit status $status: $passed of $owed" >>"$log/$name.log"
  if [ "$passed" != "$owed" ]; then
    echo "FAIL: $file${layout:+ --layout=$layout} ($passed of $owed), see $log/$name.log"
    grep -hE 'FAIL|error:|ERROR SUMMARY' "$log/$name.log" | head -n 3
  fi
  echo "$passed $owed" >"$log/$name.count"
}

# What the traps owe is known only when they end; if they do not, that is one failure.
run_traps() {
  "$python" Integration/traps.py --run="$PWD/bin/attnfuse-run" --device="$device" \
    --out="$log/traps" --jobs="$jobs" --rotation="$rotation" \
    --key-splits="$key_splits" >"$log/traps.log" 2>&1
  status=$?
  count=$(sed -n 's/^\([0-9]*\) passed, \([0-9]*\) failed$/\1 \2/p' "$log/traps.log" | tail -n 1)
  echo "exit status $status" >>"$log/traps.log"
  passed=${count% *} failed=${count#* }
  [ -n "$count" ] || passed=0 failed=1
  [ $status = 0 ] || [ "$failed" != 0 ] || failed=1
  if [ "$failed" != 0 ]; then
    echo "FAIL: traps ($passed of $((passed + failed))), see $log/traps.log"
    grep -h FAIL "$log/traps.log" | head -n 3
  fi
  rm -rf "$log/traps"
  echo "$passed $((passed + failed))" >"$log/traps.count"
}

print_count() {
  cat "$log"/*.count | awk '{passed += $1; owed += $2} END {
    print passed " passed, " owed - passed " failed"; exit passed != owed || owed == 0}'
}

# A run that is cut off says what it has seen.
stop() {
  trap - TERM INT
  kill $(jobs -p) 2>/dev/null
  echo "run.sh: stopped before the end; of what was run:"
  print_count
  exit 143
}
trap stop TERM INT

# Slots: file i runs in slot i modulo the number of jobs.
set -- $(ls matrix/*.mlir examples/*.mlir | grep -F -- "$only")
with_traps=false
case traps in *"$only"*) [ -n "$sanitizer" ] || with_traps=true ;; esac
[ $# -gt 0 ] || $with_traps || { echo "run.sh: no file matches $only" >&2; exit 2; }
slot=0
while [ $slot -lt "$jobs" ]; do
  (
    index=0
    for file in "$@"; do
      if [ $((index % jobs)) = $slot ]; then
        run_file "$file"
        case $file in matrix/*)
          [ -n "$sanitizer" ] || for layout in bnhd strided; do run_file "$file" "$layout"; done ;;
        esac
      fi
      index=$((index + 1))
    done
  ) &
  slot=$((slot + 1))
done
wait
if $with_traps; then
  if "$python" -c 'import numpy' 2>/dev/null; then
    run_traps
  else
    echo "the traps are not run: $python has no NumPy"
  fi
fi
print_count
