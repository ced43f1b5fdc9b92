"""Runs pages that show what the tools print.

  pages.py --bin=build/bin --llvm=DIR --prefix=build --out=DIR PAGE...

In order of each page, in a folder of its own:
  ```sh    the commands succeed. `$ATTNFUSE` is the prefix, `examples` the folder.
  ```mlir, ```cpp, ```cmake, ```c, ```tablegen, ```diff
           Where the first line is a comment of a file's name alone: if the repository has
           that file, an excerpt of it, else its text, for the commands that follow.
           Without a name: an excerpt of what the last commands printed.
  ```text  an excerpt of what the last commands printed.
Links and columns of the text are checked as by snippets.py. In an excerpt, `...` stands for anything, on a line of its own for any lines. Lines may
be left out between those that are given only where it stands.
"""

import argparse
import os
import pathlib
import re
import shutil
import subprocess
import sys
import textwrap

import snippets

ROOT = pathlib.Path(__file__).resolve().parents[2]
NAME = re.compile(r"^(?://|#) ([\w./-]+\.\w+)$")


Failure = snippets.Failure


def matches(excerpt, whole):
    """Whether the lines of `excerpt` follow one another somewhere in `whole`."""
    pattern = ""
    for line in excerpt.strip("\n").splitlines():
        words = " ".join(line.split())
        if words == "...":
            pattern += r"(?:.*\n)*?"
        elif words:
            pattern += ".*?".join(re.escape(part) for part in words.split("...")) + r" ?\n"
    whole = "\n".join(" ".join(line.split()) for line in whole.splitlines() if line.strip())
    return re.search("^" + pattern, whole + "\n", re.M)


def check_block(fence, text, folder, environment, printed):
    if fence == "sh":
        done = subprocess.run(["bash", "-e", "-c", text], cwd=folder, env=environment, text=True,
                              stdout=subprocess.PIPE, stderr=subprocess.PIPE)
        if done.returncode != 0:
            raise Failure(f"{text}{done.stdout}{done.stderr}")
        return done.stdout + done.stderr
    first = text.split("\n", 1)[0]
    name = NAME.match(first)
    if name is None:
        if not matches(text, printed):
            raise Failure(f"not what is printed:\n{printed[:8000]}")
    elif (ROOT / name.group(1)).exists():
        file = (ROOT / name.group(1)).read_text(encoding="utf-8")
        if not matches(text.split("\n", 1)[1], file):
            raise Failure(f"not an excerpt of {name.group(1)}")
    else:
        path = folder / name.group(1)
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")
    return printed


def check_page(page, folder, environment):
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    (folder / "examples").symlink_to(ROOT / "examples")
    failures, fence, block, start, printed, count = [], None, "", 0, "", 0
    lines = snippets.Page(page, "", folder)
    for number, line in enumerate(page.read_text(encoding="utf-8").splitlines(), 1):
        if fence is None:
            try:
                lines.check_line(line, fence)
            except Failure as failure:
                failures.append(f"{page.name}:{number}: {failure}")
        if not line.lstrip().startswith("```"):
            block += line + "\n"
        elif fence is None:
            fence, block, start = line.strip()[3:], "", number
        else:
            try:
                if fence in ("sh", "mlir", "cpp", "cmake", "diff", "c", "tablegen", "text"):
                    printed = check_block(fence, textwrap.dedent(block), folder, environment, printed)
                    count += 1
            except Failure as failure:
                failures.append(f"{page.name}:{start}: {failure}")
            fence = None
    print(f"{page.name}: {count} blocks")
    if count == 0:
        failures.append(f"{page.name}: nothing to check")
    return failures


def main():
    parser = argparse.ArgumentParser()
    for option in ("--bin", "--llvm", "--prefix", "--out"):
        parser.add_argument(option, type=pathlib.Path, required=True)
    parser.add_argument("pages", nargs="+", type=pathlib.Path)
    options = parser.parse_args()
    path = f"{options.bin.resolve()}:{options.llvm.resolve()}:{os.environ['PATH']}"
    environment = dict(os.environ, PATH=path, ATTNFUSE=str(options.prefix.resolve()))
    failures = []
    for page in options.pages:
        failures += check_page(page.resolve(), options.out / page.stem, environment)
    print("\n".join(failures))
    return bool(failures)


if __name__ == "__main__":
    sys.exit(main())
