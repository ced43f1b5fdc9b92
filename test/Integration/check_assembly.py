"""Assembles the kernels of the matrix: few spills, none in a key loop, no remark of a serialised product.

  check_assembly.py --compile=PATH --ptxas=PATH --out=DIR --chip=CHIP [--nvdisasm=PATH] [--first=N]
      [--every=N] [--jobs=N]

Takes every N-th function, with its rotations fused and split. Without nvdisasm, where local memory is
touched is not looked at. The last line is `N passed, M failed`.
"""

import argparse
import concurrent.futures
import pathlib
import re
import subprocess
import sys

import disassembly
import matrix

# Kernels with many registers spill a few in some compositions, a few accesses per query tile. The aim is 0.
ALLOWED_BYTES = {"sm_90a": 96}
# C7519 says where a product waits for registers that were written before, which costs nothing.
REMARK = re.compile(r"C75(?!19)\d\d")


def check(options, variant, rotation):
    """What is wrong, or None."""
    name = f"{variant['name']}.{rotation}"
    source, ptx, manifest, cubin = (options.out / f"{name}.{kind}" for kind in ("mlir", "ptx", "json", "cubin"))
    source.write_text(matrix.function_text(variant))
    command = [options.compile, source, f"--chip={options.chip}", f"--rotation={rotation}", "-o", ptx]
    done = subprocess.run(command, capture_output=True, text=True)
    if done.returncode:
        return done.stderr.strip()
    done = subprocess.run([options.ptxas, "-v", f"-arch={options.chip}", ptx, "-o", cubin],
                          capture_output=True, text=True)
    report = done.stdout + done.stderr
    if done.returncode:
        return report.strip()
    remark = REMARK.search(report)
    if remark:
        return next(line for line in report.splitlines() if remark[0] in line)
    bytes_used = re.findall(r"(\d+) bytes stack frame, (\d+) bytes spill stores, (\d+) bytes spill loads", report)
    most = max(int(count) for counts in bytes_used for count in counts) if bytes_used else None
    if most is None or most > ALLOWED_BYTES.get(options.chip, 0):
        return f"expected at most {ALLOWED_BYTES.get(options.chip, 0)} bytes of stack and spills, got {most}"
    if options.nvdisasm and most:
        done = subprocess.run([options.nvdisasm, "-c", cubin], capture_output=True, text=True)
        if done.returncode:
            return done.stderr.strip()
        counts = disassembly.count_local_accesses_in_key_loops(done.stdout)
        if not counts and disassembly.PRODUCT.search(done.stdout):
            return "expected a key loop in the disassembly, got none"
        for kernel, count in counts.items():
            if count:
                return f"expected no local memory in a key loop of {kernel}, got {count} accesses"
    for path in (source, ptx, manifest, cubin):
        path.unlink()
    return None


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--compile", required=True, help="attnfuse-compile")
    parser.add_argument("--ptxas", required=True)
    parser.add_argument("--nvdisasm")
    parser.add_argument("--out", type=pathlib.Path, required=True)
    parser.add_argument("--chip", required=True)
    parser.add_argument("--every", type=int, default=1)
    parser.add_argument("--first", type=int, default=0)
    parser.add_argument("--jobs", type=int, default=1)
    options = parser.parse_args()
    options.out.mkdir(parents=True, exist_ok=True)
    variants = matrix.make_variants("cuda")[options.first :: options.every]
    cases = [(v, way) for v in variants for way in (("fused", "split") if v["rope"] else ("auto",))]
    passed = 0
    with concurrent.futures.ThreadPoolExecutor(options.jobs) as pool:
        for (variant, way), wrong in zip(cases, pool.map(lambda case: check(options, *case), cases)):
            passed += wrong is None
            if wrong:
                print(f"FAIL {variant['name']} {way}: {wrong}", flush=True)
    print(f"{passed} passed, {len(cases) - passed} failed")
    return passed != len(cases) or not cases


if __name__ == "__main__":
    sys.exit(main())
