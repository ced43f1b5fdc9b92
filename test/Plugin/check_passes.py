"""Every pass and pipeline of the project, in a tool that loaded the plugin.

  check_passes.py MLIR-OPT PLUGIN ATTNFUSE-OPT REFERENCE.md...

The names are those of the reference pages and, for pipelines, of attnfuse-opt's help.
Each must parse in MLIR-OPT, with its options at their defaults.
"""

import re
import subprocess
import sys


def run(*command):
    return subprocess.run(command, text=True, input="module {}\n",
                          stdout=subprocess.PIPE, stderr=subprocess.STDOUT)


def main():
    mlir_opt, plugin, attnfuse_opt, *pages = sys.argv[1:]
    passes = []
    for page in pages:
        with open(page, encoding="utf-8") as file:
            passes += re.findall(r"^### `-([\w-]+)`", file.read(), re.M)
    text = run(attnfuse_opt, "--help").stdout
    text = text[text.index("Pass Pipelines:"):]
    pipelines = re.findall(r"^ +--(attnfuse-[\w-]+)", text, re.M)
    failures = []
    for name in passes + pipelines:
        # An op-agnostic pass may run anywhere; others say where they run.
        done = [
            run(mlir_opt, f"--load-dialect-plugin={plugin}", f"--load-pass-plugin={plugin}",
                f"--pass-pipeline=builtin.module({nested})")
            for nested in (name, f"func.func({name})", f"gpu.module({name})")
        ]
        if all(one.returncode for one in done):
            failures.append(f"{name}: {done[0].stdout}")
    print("\n".join(failures))
    print(f"{len(passes)} passes, {len(pipelines)} pipelines, {len(failures)} unknown")
    return bool(failures) or len(passes) < 6 or len(pipelines) < 3


sys.exit(main())
