"""Runs what the pages of the documentation quote.

  snippets.py --tools=build/bin --out=DIR PAGE...

In order of each page:
  ```mlir   a function verifies, survives printing and parsing, and compiles. Where
            `examples` has one of its name, it is that one. Commands below it know it
            as variant.mlir. Anything else is what its function is fused to, with the
            types left out.
  ```sh     the commands that begin with the name of a tool succeed, or say that they
            miss the CUDA driver.
  ```text   is what the last of the commands above prints; fractions may differ.
  ```json   is a part of the function's manifest for the chip that it names.
Links lead to files, and lines have at most 100 columns outside of tables and output.
"""

import argparse
import json
import os
import pathlib
import re
import subprocess
import sys

import numpy as np

ROOT = pathlib.Path(__file__).resolve().parents[2]
COLUMNS = 100
NO_GPU = re.compile(r"error: .*(libcuda|CUDA)")
FRACTION = re.compile(r"\d+\.\d+(e[+-]\d+)?|\d+e[+-]\d+")


class Failure(Exception):
    pass


def squeeze(text):
    return " ".join(text.split())


def contains(whole, part):
    """Whether JSON `part` is `whole` with members and elements left out."""
    if isinstance(part, dict):
        return isinstance(whole, dict) and all(
            key in whole and contains(whole[key], value) for key, value in part.items()
        )
    if isinstance(part, list) and any(isinstance(item, dict) for item in part):
        rest = iter(whole)
        return all(any(contains(item, wanted) for item in rest) for wanted in part)
    return whole == part


class Page:
    def __init__(self, path, tools, out):
        self.path = path
        self.lines = path.read_text(encoding="utf-8").splitlines()
        self.out = out
        self.environment = dict(os.environ, PATH=f"{tools}:{os.environ['PATH']}")
        self.variant = out / "variant.mlir"
        self.printed = ""

    def run(self, command):
        return subprocess.run(
            command, shell=True, cwd=self.out, env=self.environment, text=True,
            stdout=subprocess.PIPE, stderr=subprocess.PIPE,
        )

    def succeed(self, command):
        done = self.run(command)
        if done.returncode != 0:
            raise Failure(f"{command}\n{done.stdout}{done.stderr}")
        return done.stdout

    def check_mlir(self, text):
        if "func.func" not in text:
            return self.check_fused(text)
        name = re.search(r"func\.func @(\w+)", text).group(1)
        for example in (ROOT / "examples").glob("*.mlir"):
            known = example.read_text()
            if f"@{name}(" in known and text.strip() not in known:
                raise Failure(f"@{name} is not that of {example.name}")
        self.variant.write_text(text)
        self.succeed("attnfuse-opt variant.mlir --verify-roundtrip")
        self.succeed("attnfuse-compile variant.mlir --chip=sm_80 -o -")
        # Inputs for commands that read files.
        for argument, shape, kind in re.findall(r"%([qkv]): tensor<([?0-9x]+)x(f16|f32)>", text):
            sizes = [2 if size == "?" else int(size) for size in shape.split("x")]
            values = np.random.default_rng(len(sizes)).standard_normal(sizes)
            np.save(self.out / f"{argument}.npy", values.astype({"f16": "f2", "f32": "f4"}[kind]))

    def check_fused(self, text):
        names = re.findall(r"(%\w+): ", self.variant.read_text())
        fused = self.succeed("attnfuse-opt variant.mlir --canonicalize --attnfuse-fuse")
        fused = re.sub(r"%arg(\d+)", lambda number: names[int(number.group(1))], fused)
        if not any(squeeze(line).startswith(squeeze(text) + " :") for line in fused.splitlines()):
            raise Failure(f"it is fused to\n{fused}")

    def check_sh(self, text):
        variables = ""
        for command in re.sub(r"\\\n", " ", text).splitlines():
            if re.match(r"\w+=\S*$", command):
                variables += command + "\n"
            elif re.match(r"attnfuse-(opt|compile|run) ", command):
                done = self.run(variables + command)
                if done.returncode != 0 and not NO_GPU.search(done.stderr):
                    raise Failure(f"{command}\n{done.stdout}{done.stderr}")
                self.printed = done.stdout

    def check_text(self, text):
        wanted, got = (FRACTION.sub("#", string.strip()) for string in (text, self.printed))
        if wanted != got:
            raise Failure(f"expected\n{self.printed}")

    def check_json(self, text):
        part = json.loads(text)
        self.succeed(f"attnfuse-compile variant.mlir --chip={part['chip']} -o variant.ptx")
        manifest = (self.out / "variant.json").read_text()
        if not contains(json.loads(manifest), part):
            raise Failure(f"not a part of\n{manifest}")

    def check_line(self, line, fence):
        if len(line) > COLUMNS and fence != "text" and not line.lstrip().startswith("|"):
            raise Failure(f"{len(line)} columns, expected at most {COLUMNS}")
        for target in re.findall(r"\]\(([^)#]+)", line) if fence is None else []:
            if "://" not in target and not (self.path.parent / target).exists():
                raise Failure(f"no file {target}")

    def check(self):
        failures, fence, block, start = [], None, "", 0
        for number, line in enumerate(self.lines, 1):
            try:
                self.check_line(line, fence)
                if not line.lstrip().startswith("```"):
                    block += line + "\n"
                elif fence is None:
                    fence, block, start = line.strip()[3:], "", number
                else:
                    check = getattr(self, f"check_{fence}", None)
                    fence, number = None, start
                    if check:
                        check(block)
            except Failure as failure:
                failures.append(f"{self.path.relative_to(ROOT)}:{number}: {failure}")
        return failures


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--tools", type=pathlib.Path, required=True)
    parser.add_argument("--out", type=pathlib.Path, required=True)
    parser.add_argument("pages", nargs="+", type=pathlib.Path)
    options = parser.parse_args()
    options.out.mkdir(parents=True, exist_ok=True)
    link = options.out / "examples"
    if not link.exists():
        link.symlink_to(ROOT / "examples")
    failures = []
    for path in options.pages:
        failures += Page(path.resolve(), options.tools.resolve(), options.out).check()
    print("\n".join(failures))
    return bool(failures)


if __name__ == "__main__":
    sys.exit(main())
