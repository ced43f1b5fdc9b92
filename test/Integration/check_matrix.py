"""Runs the composition matrix, each function as it is and fused, and checks every
result with the reference that attnfuse-run has built in.

  check_matrix.py --run=PATH --opt=PATH --out=DIR [--device=cpu] [--shard=I/N]
"""

import argparse
import pathlib
import subprocess
import sys

import matrix


def run_file(options, source, dims, functions):
    """Runs every function of a file with every line of `dims`; True if all pass."""
    command = [options.run, str(source), f"--device={options.device}", "--random=1", "--check"]
    result = subprocess.run(command + [f"--dims={d}" for d in dims], capture_output=True, text=True)
    expected = f"{functions * len(dims)} passed, 0 failed"
    lines = result.stdout.splitlines()
    print(f"{source.name}: {lines[-1] if lines else 'no output'}")
    if result.returncode == 0 and lines and lines[-1] == expected:
        return True
    print(f"FAIL {' '.join(command)}: expected {expected}")
    where = ""
    for line in lines:
        where = line if not line.startswith(" ") else where
        if "FAIL" in line:
            print(where, line, sep="\n")
    print(result.stderr)
    return False


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--run", required=True, help="attnfuse-run")
    parser.add_argument("--opt", required=True, help="attnfuse-opt")
    parser.add_argument("--out", required=True, type=pathlib.Path)
    parser.add_argument("--device", default="cpu")
    parser.add_argument("--shard", default="0/1")
    options = parser.parse_args()

    device = "cuda" if options.device.startswith("cuda") else "cpu"
    cases = matrix.write(options.out, matrix.make_variants(device), files=8)
    functions = {}
    for case in cases:
        functions[case["file"]] = functions.get(case["file"], 0) + 1
    shard, shards = map(int, options.shard.split("/"))
    passed = True
    for name in sorted(functions)[shard::shards]:
        source = options.out / name
        dims = source.with_suffix(".dims").read_text().split()
        fused = source.with_suffix(".fused.mlir")
        subprocess.run([options.opt, str(source), "--attnfuse-fuse", "-o", str(fused)], check=True)
        # Every chain of the matrix fuses: otherwise the second run tests nothing new.
        assert fused.read_text().count("= attnfuse.attention ") == functions[name], fused
        passed &= run_file(options, source, dims, functions[name])
        passed &= run_file(options, fused, dims, functions[name])
    return not passed


if __name__ == "__main__":
    sys.exit(main())
