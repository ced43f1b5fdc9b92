"""The block of docs/AddingABlock.md, as docs/guide/softcap.patch adds it.

  guide.py --source=DIR --out=DIR --cc=CC --cxx=CXX

Applies the patch to a copy of the sources. Where ATTNFUSE_TEST_GUIDE is set, builds the
copy too, runs the test that the patch adds and the page's commands.
"""

import argparse
import os
import pathlib
import re
import shutil
import subprocess
import sys


def run(command, folder, **more):
    done = subprocess.run(command, cwd=folder, text=True, stdout=subprocess.PIPE,
                          stderr=subprocess.STDOUT, **more)
    print(done.stdout[-4000:])
    if done.returncode != 0:
        sys.exit(f"failed: {command}")


def main():
    parser = argparse.ArgumentParser()
    for option in ("--source", "--out", "--cc", "--cxx"):
        parser.add_argument(option, required=True)
    options = parser.parse_args()
    source, out = pathlib.Path(options.source).resolve(), pathlib.Path(options.out).resolve()
    patch = source / "docs/guide/softcap.patch"
    shutil.rmtree(out, ignore_errors=True)
    out.mkdir(parents=True)
    names = ["CMakeLists.txt", "CMakePresets.json", "LICENSE", "cmake", "docs", "examples",
             "include", "lib", "test", "tools", "unittests"]
    for name in names:
        if (source / name).is_dir():
            shutil.copytree(source / name, out / name)
        else:
            shutil.copy(source / name, out / name)
    # Outside of a repository it is a plain patch.
    run(["git", "apply", "--verbose", str(patch)], out,
        env=dict(os.environ, GIT_CEILING_DIRECTORIES=str(out.parent)))
    if not (out / "examples/gemma2-softcap.mlir").exists():
        sys.exit("the patch did not apply")
    if not os.environ.get("ATTNFUSE_TEST_GUIDE"):
        return
    run(["cmake", "-S", ".", "-B", "build", "-G", "Ninja", f"-DCMAKE_C_COMPILER={options.cc}",
         f"-DCMAKE_CXX_COMPILER={options.cxx}", "-DCMAKE_CXX_FLAGS_RELEASE=-O0"], out)
    run(["ninja", "-C", "build", "attnfuse-opt", "attnfuse-compile", "attnfuse-run"], out)
    run(["lit", "build/test", "-v", "--filter", "softcap"], out)
    page = (source / "docs/AddingABlock.md").read_text(encoding="utf-8")
    commands = re.search(r"```console\n(.*?)```", page, re.S).group(1)
    run(["bash", "-e", "-c", commands], out,
        env=dict(os.environ, PATH=f"{out}/build/bin:{os.environ['PATH']}"))


main()
