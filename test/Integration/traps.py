"""Inputs that broke attention kernels elsewhere.

  traps.py --run=PATH --out=DIR [--device=cpu] [--layout=bhnd] [--rotation=auto] [--key-splits=0] [--only=SUBSTRING]
           [--jobs=N]

The last line is `N passed, M failed`.
"""

import argparse
import concurrent.futures
import pathlib
import sys

import harness
import traplib
import traps_garbage
import traps_masks
import traps_scores
import traps_shapes
import traps_splits


def run_trap(options, name):
    """What is wrong, or None. Every trap has a directory of its own."""
    runner = harness.Harness(
        options.run, options.device, pathlib.Path(options.out) / name, options.layout, options.rotation,
        options.key_splits
    )
    test = traplib.TRAPS.get(name) or traplib.GPU_TRAPS[name]
    try:
        return test(runner)
    except RuntimeError as error:
        return str(error)


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--run", required=True, help="attnfuse-run")
    parser.add_argument("--out", required=True)
    parser.add_argument("--device", default="cpu")
    parser.add_argument("--layout", default="bhnd", help="of tensors on a GPU")
    parser.add_argument("--rotation", default="auto", help="where a GPU's kernels rotate")
    parser.add_argument("--key-splits", type=int, default=0, help="blocks that share keys on a GPU")
    parser.add_argument("--only", default="", help="substring of the traps' names")
    parser.add_argument("--jobs", type=int, default=1)
    options = parser.parse_args()
    traps = list(traplib.TRAPS) + (list(traplib.GPU_TRAPS) if options.device != "cpu" else [])
    selected = [name for name in traps if options.only in name]
    failed = 0
    with concurrent.futures.ProcessPoolExecutor(options.jobs) as pool:
        # The longest ones, which are of the GPU alone, come first.
        runs = {name: pool.submit(run_trap, options, name) for name in reversed(selected)}
        for name in selected:
            try:
                wrong = runs[name].result()
            except Exception as error:
                wrong = f"{type(error).__name__}: {error}"
            failed += bool(wrong)
            print(f"{'FAIL' if wrong else 'pass'} {name}{f': {wrong}' if wrong else ''}", flush=True)
    print(f"{len(selected) - failed} passed, {failed} failed")
    return failed != 0 or not selected


if __name__ == "__main__":
    sys.exit(main())
