#!/usr/bin/env python3
# ===-----------------------------------------------------------------------===#
# Licensed under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
# ===-----------------------------------------------------------------------===#
"""Times attnfuse beside its peers, in one process and in turns.

    benchmarks/suite.py list
    benchmarks/suite.py run OUT.json [--suites a,b] [--budget SECONDS] [--quick]
    benchmarks/suite.py report OUT.json
    benchmarks/suite.py plot OUT.json FOLDER [--rotations SWEEP.json]

`run` needs PyTorch and a GPU, and writes what it has after every work; `report` prints tables in
Markdown; `plot` needs matplotlib and writes PNG and SVG. docs/performance.md says what is measured.
"""

import argparse
import os
import sys

HERE = os.path.dirname(os.path.abspath(__file__))
# The folder of this name is the package, which Python prefers to this file.
sys.path.insert(0, HERE)
sys.path.append(os.path.join(HERE, "..", "python"))

# pylint: disable=wrong-import-position
from suite import record, works


def fail(message):
    sys.exit(f"error: {message}")


def parse_suites(text):
    names = [name for name in text.split(",") if name]
    for name in names:
        if name not in works.SUITES:
            raise argparse.ArgumentTypeError(
                f"expected suites of {', '.join(works.SUITES)}, got '{name}'"
            )
    return names


def positive(text):
    try:
        value = float(text)
    except ValueError:
        value = 0
    if not value > 0:
        raise argparse.ArgumentTypeError(f"expected a number above 0, got '{text}'")
    return value


def run(options):
    planned = works.get_works(options.suites, options.quick, options.tiny)
    # Before minutes are spent on it.
    folder = os.path.dirname(os.path.abspath(options.file))
    if os.path.isdir(options.file) or not os.access(folder, os.W_OK):
        fail(f"cannot write {options.file}")
    try:
        import torch
    except ImportError as error:
        fail(f"expected PyTorch: {error}")
    if options.device == "cuda" and not torch.cuda.is_available():
        fail("expected a CUDA GPU, found none; --device cpu --tiny is a rehearsal")
    if options.device == "cpu" and not options.tiny:
        fail("expected --tiny with --device cpu: the CPU path is exact, not fast")
    try:
        from suite import contestants, device, runner
    except ImportError as error:
        fail(f"expected the package attnfuse: {error}")

    stream = sys.stderr
    with torch.no_grad():
        bench = device.Bench(options.device)
        data = {"format": record.FORMAT, "environment": bench.environment()}
        data.update(absent=contestants.find_packages()[1], quick=options.quick, results=[])
        for name, reason in data["absent"].items():
            print(f"absent: {name}: {reason}", file=stream)
        progress = runner.Progress(stream, len(planned))
        try:
            count = bench.prepare(planned)
        except runner.DeviceLost as error:
            fail(f"the GPU failed while kernels were loaded: {error}")
        spent = progress.now() - progress.start
        print(f"compiled {count} kernels in {spent:.0f} s", file=stream, flush=True)
        rounds = 3 if options.tiny else 9 if options.quick else 30
        is_whole = runner.run(
            planned,
            bench,
            data,
            lambda data: record.write(options.file, data),
            options.budget - spent,
            rounds,
            progress,
        )
    print(f"{options.file}: {data['state']}, {data['seconds']:g} s", file=stream)
    return 0 if is_whole else 1


def report(options):
    from suite import report as tables

    print(tables.make(record.read(options.file)), end="")
    return 0


def plot(options):
    try:
        from suite import plot as figures
    except ImportError as error:
        fail(f"expected matplotlib: {error}")
    data = record.read(options.file)
    rotations = figures.read_rotations(options.rotations) if options.rotations else None
    os.makedirs(options.folder, exist_ok=True)
    for path in figures.draw_all(data, options.folder, rotations):
        print(path)
    return 0


def list_works(options):
    for work in works.get_works(options.suites):
        print(f"{work.suite}: {work.label}, {work.shape}: {', '.join(work.peers)}")
    return 0


def main():
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    commands = parser.add_subparsers(dest="command", required=True)
    lister = commands.add_parser("list", help="print what would be timed")
    lister.add_argument("--suites", type=parse_suites, metavar="A,B")
    lister.set_defaults(function=list_works)
    runs = commands.add_parser("run", help="time it")
    runs.add_argument("file", metavar="OUT.json")
    runs.add_argument("--suites", type=parse_suites, metavar="A,B", help=", ".join(works.SUITES))
    runs.add_argument(
        "--budget",
        type=positive,
        default=float("inf"),
        metavar="SECONDS",
        help="begin nothing after it",
    )
    runs.add_argument("--quick", action="store_true", help="ends of each series, fewer rounds")
    runs.add_argument("--device", choices=("cuda", "cpu"), default="cuda")
    runs.add_argument("--tiny", action="store_true", help="tiny shapes, to rehearse")
    runs.set_defaults(function=run)
    reports = commands.add_parser("report", help="print tables in Markdown")
    reports.add_argument("file", metavar="OUT.json")
    reports.set_defaults(function=report)
    plots = commands.add_parser("plot", help="draw figures")
    plots.add_argument("file", metavar="OUT.json")
    plots.add_argument("folder", metavar="FOLDER")
    plots.add_argument("--rotations", metavar="SWEEP.json", help="what rotation_sweep.py wrote")
    plots.set_defaults(function=plot)
    options = parser.parse_args()
    try:
        return options.function(options)
    except record.RecordError as error:
        return fail(error)


if __name__ == "__main__":
    sys.exit(main())
