"""Runs functions with attnfuse-run on arrays, and compares with the oracle."""

import pathlib
import subprocess

import numpy as np

import matrix
import oracle

DTYPES = {"f16": np.float16, "f32": np.float32, "i32": np.int32, "i64": np.int64}


def save_npy(path, values, element_type):
    """bf16 has no NumPy type; attnfuse-run takes its bits as uint16."""
    if element_type == "bf16":
        values = (np.asarray(values, np.float32).view(np.uint32) >> 16).astype(np.uint16)
    else:
        values = np.asarray(values).astype(DTYPES[element_type])
    np.save(path, values)


def load_npy(path, element_type):
    values = np.load(path)
    if element_type == "bf16":
        values = (values.astype(np.uint32) << 16).view(np.float32)
    return values.astype(np.float64)


class Harness:
    """Calls attnfuse-run; files go to `directory`. `layout` is how a GPU's tensors lie, `rotation`
    where they are rotated, `key_splits` how many blocks share keys (0: by the sizes)."""

    def __init__(self, run, device, directory, layout="bhnd", rotation="auto", key_splits=0):
        self.run, self.device, self.layout, self.rotation = run, device, layout, rotation
        self.key_splits = key_splits
        self.directory = pathlib.Path(directory)
        self.directory.mkdir(parents=True, exist_ok=True)

    @property
    def on_gpu(self):
        return self.device != "cpu"

    def invoke(self, text, *flags):
        """The finished process, for the module `text`."""
        source = self.directory / "input.mlir"
        source.write_text(text)
        command = [self.run, str(source), f"--device={self.device}", f"--layout={self.layout}"]
        command += [f"--rotation={self.rotation}", f"--key-splits={self.key_splits}", *flags]
        return subprocess.run(command, capture_output=True, text=True)

    def check(self, text, dims, seed=1):
        """Runs with random inputs and --check, once for each of `dims`. Returns what is
        wrong, or None."""
        flags = [f"--dims={','.join(f'{k}={v}' for k, v in d.items())}" for d in dims]
        result = self.invoke(text, f"--random={seed}", "--check", *flags)
        if result.returncode == 0:
            return None
        failed = [line for line in result.stdout.splitlines() if "FAIL" in line]
        return "\n".join(failed + result.stderr.splitlines()[:5])

    def call(self, variant, inputs, dims):
        """(output, lse or None) of the function of a variant on given inputs, each an
        array or the path of its file."""
        types = {name: element for name, element, _ in matrix.arguments(variant)}
        flags = [f"--dims={','.join(f'{k}={v}' for k, v in dims.items())}"] if dims else []
        for name, element in types.items():
            path = inputs[name]
            if not isinstance(path, pathlib.Path):
                path = self.directory / f"{name}.npy"
                save_npy(path, inputs[name], element)
            flags.append(f"--input={name}={path}")
        results = {"output": variant["type"]}
        if variant["lse"]:
            results["lse"] = "f32"
        for name in results:
            flags.append(f"--output={name}={self.directory / name}.npy")
        result = self.invoke(matrix.function_text(variant), *flags)
        if result.returncode != 0:
            raise RuntimeError(result.stderr.strip() or result.stdout.strip())
        loaded = {n: load_npy(self.directory / f"{n}.npy", t) for n, t in results.items()}
        return loaded["output"], loaded.get("lse")


def mismatch(got, expected, bound):
    """What is wrong with `got`, or None: NaN and infinity must be where they are
    expected, everything else within its bound."""
    if got.shape != expected.shape:
        return f"shape {got.shape}, expected {expected.shape}"
    with np.errstate(invalid="ignore"):
        fine = (got == expected) | (np.isnan(got) & np.isnan(expected))
        fine |= np.abs(got - expected) <= bound
    if fine.all():
        return None
    at = tuple(int(i) for i in np.argwhere(~fine)[0])
    return f"{(~fine).sum()} wrong, first at {at}: {got[at]:.9g}, expected {expected[at]:.9g} +- {bound[at]:.3g}"


def compare_with_oracle(runner, variant, inputs, output, lse):
    """What is wrong with the results of a variant, or None."""
    expected, expected_lse, bound, lse_bound = oracle.attention(
        variant, inputs, variant["type"], rounds_weights=runner.on_gpu
    )
    wrong = mismatch(output, expected, bound)
    if wrong is None and variant["lse"]:
        wrong = mismatch(lse, expected_lse, lse_bound)
        wrong = wrong and f"lse: {wrong}"
    return wrong
