"""A lit format that tests every file of examples/: that it fuses to one op, that
it compiles to PTX for each chip quickly and without spills, and that the command
in its header runs and passes its own check."""

import json
import os
import re
import resource
import shlex
import subprocess
import tempfile

import lit.Test
from lit.formats.base import TestFormat

CHIPS = ["sm_80", "sm_86", "sm_89", "sm_90", "sm_90a", "sm_100", "sm_120"]

# The promise is half a second of wall time for each version of a kernel on an idle
# machine. The test counts processor time, which other work on the machine does not
# stretch, and leaves a factor of two for slower machines.
COMPILE_SECONDS = 1.0


class Failure(Exception):
    pass


def run(command, **options):
    """The output of a command that has to succeed, and its processor time."""
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    done = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, **options)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    if done.returncode != 0:
        raise Failure(f"{shlex.join(command)}\nexit status {done.returncode}\n{done.stdout}{done.stderr}")
    return done, after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime


class ExampleFormat(TestFormat):
    def __init__(self, examples, tools, ptxas):
        self.examples = examples
        self.tools = tools
        self.ptxas = ptxas

    def getTestsInDirectory(self, suite, path, lit_config, local_config):
        names = sorted(name for name in os.listdir(self.examples) if name.endswith(".mlir"))
        steps = ["fuse", "run"] + [f"compile-{chip}" for chip in CHIPS]
        for name in names:
            for step in steps:
                yield lit.Test.Test(suite, path + (name, step), local_config)

    def execute(self, test, lit_config):
        name, step = test.path_in_suite[-2:]
        example = os.path.join(self.examples, name)
        try:
            if step == "fuse":
                self.check_fuses(example)
            elif step == "run":
                self.check_runs(example)
            else:
                self.check_compiles(example, step.split("-", 1)[1])
        except Failure as failure:
            return lit.Test.FAIL, str(failure)
        return lit.Test.PASS, ""

    def tool(self, name):
        return os.path.join(self.tools, name)

    def check_fuses(self, example):
        done, _ = run([self.tool("attnfuse-opt"), example, "--canonicalize", "--attnfuse-fuse"])
        ops = set(re.findall(r"\battnfuse\.(\w+) ", re.sub(r'"[^"]*"|#attnfuse\.\w+', "", done.stdout)))
        ops -= {"yield", "alibi_slope"}
        count = len(re.findall(r"= attnfuse\.attention\b", done.stdout))
        if ops - {"name"} != {"attention"} or count != 1:
            raise Failure(f"expected one attnfuse.attention, got {count} and the ops {sorted(ops)}:\n{done.stdout}")

    def check_compiles(self, example, chip):
        with tempfile.TemporaryDirectory() as folder:
            ptx = os.path.join(folder, "out.ptx")
            command = [self.tool("attnfuse-compile"), example, f"--chip={chip}", "-o", ptx]
            seconds = min(run(command)[1] for _ in range(2))
            with open(os.path.join(folder, "out.json")) as file:
                functions = json.load(file)["functions"]
            versions = [version for function in functions for version in function.get("versions", [function])]
            # A rotation may have a kernel of its own, and so has the combination of parts.
            names = [[kernel["name"] for kernel in version["kernels"]] for version in versions]
            attentions = [[n for n in version if "$rotate" not in n and "$combine" not in n] for version in names]
            if len(functions) != 1 or any(len(version) != 1 for version in attentions):
                raise Failure(f"expected one function of one attention a version, got {names}")
            limit = COMPILE_SECONDS * len(versions)
            if seconds > limit:
                raise Failure(f"compiling took {seconds:.2f} s, expected at most {limit} s")
            if self.ptxas:
                self.check_assembles(ptx, chip, folder)

    def check_assembles(self, ptx, chip, folder):
        done, _ = run([self.ptxas, "-v", f"-arch={chip}", ptx, "-o", os.path.join(folder, "out.cubin")])
        report = done.stdout + done.stderr
        used = re.findall(r"(\d+) bytes stack frame, (\d+) bytes spill stores, (\d+) bytes spill loads", report)
        # Pipelined kernels that rotate q at D = 64, or split keys, are short of a register or two at the
        # start of a block and where rows are computed anew, and so are others of D = 128 that split keys;
        # the aim is 0.
        limit = 32 if chip == "sm_90a" else 0
        if not used or any(int(count) > limit for counts in used for count in counts):
            raise Failure(f"expected at most {limit} bytes of stack and spills, ptxas says:\n{report}")
        # C7519 says where a product waits for registers written before, which costs nothing.
        if re.search(r"warning|C75(?!19)\d\d", report):
            raise Failure(f"expected no warning, ptxas says:\n{report}")

    def check_runs(self, example):
        with open(example) as file:
            commands = re.findall(r"^// (attnfuse-run .*)$", file.read(), re.MULTILINE)
        if len(commands) != 1 or "--check" not in commands[0]:
            raise Failure("expected one attnfuse-run command with --check in the header")
        words = shlex.split(commands[0])
        run([self.tool(words[0]), *words[1:]], cwd=os.path.dirname(self.examples))
