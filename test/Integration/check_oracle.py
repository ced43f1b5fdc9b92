"""Compares a sample of the composition matrix with the NumPy oracle.

  check_oracle.py --run=PATH --out=DIR [--device=cpu] [--every=N]
"""

import argparse
import sys

import harness
import inputs
import matrix


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--run", required=True, help="attnfuse-run")
    parser.add_argument("--out", required=True)
    parser.add_argument("--device", default="cpu")
    parser.add_argument("--every", type=int, default=1, help="test every Nth function")
    options = parser.parse_args()

    device = "cuda" if options.device.startswith("cuda") else "cpu"
    runner = harness.Harness(options.run, options.device, options.out)
    failed, variants = 0, matrix.make_variants(device)[:: options.every]
    for index, variant in enumerate(variants):
        nq, nkv = matrix.LENGTHS[index % len(matrix.LENGTHS)]
        dims = {"B": 1 + index % 2, "Nq": nq, "Nkv": nkv}
        arrays = inputs.make_inputs(variant, dims, seed=index)
        try:
            wrong = harness.compare_with_oracle(runner, variant, arrays, *runner.call(variant, arrays, dims))
        except RuntimeError as error:
            wrong = str(error)
        if wrong:
            failed += 1
            print(f"FAIL {variant['name']} {dims}: {wrong}")
    print(f"{len(variants)} functions compared with the oracle, {failed} wrong")
    return failed != 0 or not variants


if __name__ == "__main__":
    sys.exit(main())
