"""Feeds attnfuse-opt and attnfuse-compile truncated, mutated and random IR.

Any end by a signal, any text of an assertion and any timeout is a failure, and so
is IR that verifies but does not survive printing and parsing, or that passes every
check and then fails in code generation. The inputs follow from the seed alone.
Inputs go to attnfuse-opt in batches, split by its own separator; a batch that fails
is run again input by input, and what fails alone is shortened and reported.

  fuzz.py --tools build/bin --seconds 20 --seed 1 examples test
  fuzz.py --tools build/bin --seconds 3600 --seed 2 --jobs 8 --keep found examples test
"""

import argparse
import concurrent.futures
import os
import random
import re
import subprocess
import sys
import time

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
from mutate import mutate, random_chain

SEPARATOR = "// -----"
BATCH = 40
# attnfuse-compile takes one input a time, and longer.
COMPILE_BATCH = 4
TIMEOUT = 20
TARGETS = ["sm_80", "sm_86", "h200", "sm_120"]
FUSE = ["--canonicalize", "--attnfuse-fuse"]
PIPELINES = [
    ["--verify-roundtrip"],
    ["--canonicalize"],
    FUSE,
    ["--attnfuse-fuse", "--canonicalize", "--cse"],
    FUSE + ["--attnfuse-expand-alibi-slope", "--canonicalize"],
    ["--convert-attnfuse-to-linalg"],
    FUSE + ["--convert-attnfuse-to-linalg"],
    FUSE + ["--attnfuse-select-schedule"],
    FUSE + ["--attnfuse-expand-alibi-slope", "--attnfuse-select-schedule", "--convert-attnfuse-to-gpu"],
    ["--attnfuse-report-fusion", "--attnfuse-fuse", "--attnfuse-outline"],
    FUSE + ["--attnfuse-outline", "--attnfuse-select-schedule", "--convert-attnfuse-to-gpu",
            "--attnfuse-merge-kernels"],
    ["--convert-attnfuse-launch-to-runtime"],
]
COMPILE = [["attnfuse-compile", "-", "-o", "-", f"--chip={chip}"] for chip in TARGETS]
# What upstream's own driver can run too.
UPSTREAM = {"--verify-roundtrip", "--canonicalize", "--cse"}
DEATH = re.compile(r"Assertion|LLVM ERROR|PLEASE submit|Stack dump|UNREACHABLE|Sanitizer|runtime error:|roundTrip|round-trip"
                   "|code generation failed")


class Case:
    def __init__(self, text, pipeline, upstream):
        self.text = text
        self.pipeline = pipeline
        self.upstream = upstream


def failure(command, text):
    """Why the command fails on the text in a way that no input may cause, or None."""
    try:
        done = subprocess.run(command, input=text.encode(errors="surrogateescape"),
                              stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, timeout=TIMEOUT)
    except subprocess.TimeoutExpired:
        return f"no answer in {TIMEOUT} s"
    message = done.stderr.decode(errors="replace")
    found = DEATH.search(message)
    if done.returncode < 0 or done.returncode > 2 or found:
        return f"exit status {done.returncode}: {message[found.start() if found else 0:][:2500]}"
    return None


def read_corpus(folders):
    corpus = []
    for folder in folders:
        for path, _, names in sorted(os.walk(folder)):
            for name in sorted(names):
                if name.endswith(".mlir"):
                    with open(os.path.join(path, name), errors="surrogateescape") as file:
                        corpus += file.read().split(SEPARATOR)
    # Comments (expectations of tests among them) are no material.
    corpus = [re.sub(r"^\s*//.*\n", "", text, flags=re.MULTILINE) for text in corpus]
    return [text for text in corpus if "attnfuse." in text and len(text) < 20000]


class Fuzzer:
    def __init__(self, options):
        self.options = options
        self.rng = random.Random(options.seed)
        self.opt = os.path.join(options.tools, "attnfuse-opt")
        self.corpus = read_corpus(options.corpus)
        if not self.corpus:
            sys.exit("fuzz.py: no IR in the corpus folders")
        self.add_derived_forms()

    def add_derived_forms(self):
        """The generic form lets mutations reach verifiers past the parsers; fused
        forms are what the later passes read."""
        derived = []
        for flags in (["--mlir-print-op-generic"], FUSE, FUSE + ["--mlir-print-op-generic"]):
            done = subprocess.run([self.opt, "--split-input-file", "--mlir-print-local-scope", *flags],
                                  input=f"\n{SEPARATOR}\n".join(self.corpus).encode(errors="surrogateescape"),
                                  stdout=subprocess.PIPE, stderr=subprocess.DEVNULL)
            derived += [text for text in done.stdout.decode().split(SEPARATOR) if "attnfuse." in text]
        self.corpus += derived

    def new_text(self, share_of_chains):
        if self.rng.random() < share_of_chains:
            text = random_chain(self.rng)
            return text if self.rng.random() < 0.7 else mutate(self.rng, text, self.corpus)
        return mutate(self.rng, self.rng.choice(self.corpus), self.corpus)

    def new_batch(self):
        compiles = self.rng.random() < 0.3
        pipeline = self.rng.choice(COMPILE if compiles else PIPELINES)
        texts = []
        for _ in range(COMPILE_BATCH if compiles else BATCH):
            text = self.new_text(0.6 if compiles else 0.25).replace(SEPARATOR, "")
            if "--attnfuse-select-schedule" in pipeline and not text.lstrip().startswith("module"):
                text = f'module attributes {{attnfuse.target = #attnfuse.target<"{self.rng.choice(TARGETS)}">}} {{\n{text}\n}}'
            texts.append(text)
        return texts, pipeline

    def command(self, pipeline):
        if pipeline and not pipeline[0].startswith("-"):
            return [os.path.join(self.options.tools, pipeline[0]), *pipeline[1:]]
        return [self.opt, "--mlir-disable-threading", *pipeline]

    def run_batch(self, texts, pipeline):
        """The cases of a batch that fail alone."""
        if pipeline not in COMPILE and not failure(
                self.command(pipeline) + ["--split-input-file"], f"\n{SEPARATOR}\n".join(texts)):
            return []
        return [Case(text, pipeline, self.is_upstream(text, pipeline))
                for text in texts if failure(self.command(pipeline), text)]

    def shorten(self, case):
        """Removes lines and passes while the case still fails."""
        deadline = time.monotonic() + 60
        for flag in case.pipeline if case.pipeline not in COMPILE else []:
            fewer = [other for other in case.pipeline if other != flag]
            if failure(self.command(fewer), case.text):
                case.pipeline = fewer
        lines, size = case.text.split("\n"), 16
        while size:
            start = 0
            while start < len(lines) and time.monotonic() < deadline:
                fewer = lines[:start] + lines[start + size:]
                if failure(self.command(case.pipeline), "\n".join(fewer)):
                    lines = fewer
                else:
                    start += size
            size //= 2
        case.text = "\n".join(lines)

    def is_upstream(self, text, pipeline):
        """True if upstream's driver, which knows none of our code, dies of the same
        text: our ops are unregistered ones to it."""
        mlir_opt = self.options.mlir_opt
        if not mlir_opt:
            return False
        common = [flag for flag in pipeline if flag in UPSTREAM]
        # It reads our ops in the generic form alone.
        printed = subprocess.run([*self.command([]), "--mlir-print-op-generic"], input=text.encode(errors="surrogateescape"),
                                 capture_output=True)
        if printed.returncode == 0:
            text = printed.stdout.decode(errors="surrogateescape")
        return bool(failure([mlir_opt, "--allow-unregistered-dialect", *common], text))

    def report(self, number, case):
        self.shorten(case)
        reason = failure(self.command(case.pipeline), case.text)
        command = " ".join(self.command(case.pipeline))
        print(f"failure {number}: {command}\n{case.text}\n{reason}\n", flush=True)
        if self.options.keep:
            os.makedirs(self.options.keep, exist_ok=True)
            with open(os.path.join(self.options.keep, f"failure-{number}.mlir"), "w", errors="surrogateescape") as file:
                file.write(f"// {command}\n{case.text}")

    def fuzz(self):
        """The numbers of inputs, of failures, and of those that are upstream's."""
        deadline = time.monotonic() + self.options.seconds
        inputs, cases, upstream = 0, [], 0
        with concurrent.futures.ThreadPoolExecutor(self.options.jobs) as pool:
            running = set()
            while running or time.monotonic() < deadline:
                while len(running) < self.options.jobs and time.monotonic() < deadline and len(cases) < 20:
                    texts, pipeline = self.new_batch()
                    inputs += len(texts)
                    running.add(pool.submit(self.run_batch, texts, pipeline))
                if not running:
                    break
                done, running = concurrent.futures.wait(running, return_when=concurrent.futures.FIRST_COMPLETED)
                for future in done:
                    upstream += sum(case.upstream for case in future.result())
                    cases += [case for case in future.result() if not case.upstream]
        for number, case in enumerate(cases):
            self.report(number, case)
        return inputs, len(cases), upstream


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--tools", required=True, help="folder of attnfuse-opt")
    parser.add_argument("--mlir-opt", help="upstream's mlir-opt, to tell its failures from ours")
    parser.add_argument("--seconds", type=float, default=20)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--jobs", type=int, default=os.cpu_count())
    parser.add_argument("--keep", help="folder for inputs that fail")
    parser.add_argument("corpus", nargs="+", help="folders with .mlir files")
    options = parser.parse_args()
    inputs, failures, upstream = Fuzzer(options).fuzz()
    print(f"{inputs} inputs, {failures} failures, {upstream} more that upstream's mlir-opt shares (seed {options.seed})")
    sys.exit(failures > 0)


if __name__ == "__main__":
    main()
