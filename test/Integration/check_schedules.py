"""Compiles schedules of the space that `attnfuse-run --tune` searches.

  check_schedules.py --tools=DIR --out=DIR --chip=CHIP [--ptxas=PATH] [--count=N] [--jobs=N] FILE...

Of each function of the files takes N schedules, the nearest to the model's choice and others evenly from
the rest: each verifies, is left as it is and gives PTX. With ptxas every fourth is assembled too. The last
line is `N passed, M failed`.
"""

import argparse
import concurrent.futures
import itertools
import pathlib
import re
import subprocess
import sys

SCHEDULE = re.compile(r"schedule <[^<>]*(?:<[^<>]*>)?>")
ASSEMBLED = 4


def run(command):
    done = subprocess.run([str(part) for part in command], capture_output=True, text=True)
    if done.returncode:
        raise RuntimeError(f"{' '.join(map(str, command))}\n{done.stdout}{done.stderr}")
    return done.stdout


def select(schedules, count):
    """Half of them from the front, the rest evenly from what is behind."""
    front = schedules[: count // 2]
    rest = schedules[count // 2 :]
    step = max(1, len(rest) // max(1, count - len(front)))
    return front + rest[::step][: count - len(front)]


def make_cases(options, path):
    """(name, module with a schedule, the schedule) for each schedule of a file of one function."""
    scheduled = run([options.tools / "attnfuse-compile", path, f"--chip={options.chip}", "--emit=schedule", "-o", "-"])
    if len(SCHEDULE.findall(scheduled)) != 1:
        raise RuntimeError(f"expected one attention in {path}, got\n{scheduled}")
    listed = run([options.tools / "attnfuse-run", path, "--tune-list", f"--chip={options.chip}"])
    schedules = [line.split(" ", 1)[1] for line in listed.splitlines()]
    if len(set(schedules)) != len(schedules) or schedules[0] != SCHEDULE.search(scheduled)[0]:
        raise RuntimeError(f"expected the model's choice first and no schedule twice for {path}, got\n{listed}")
    for number, schedule in enumerate(select(schedules, options.count)):
        yield f"{path.stem}.{options.chip}.{number}", SCHEDULE.sub(schedule, scheduled), schedule


def check(options, case, assembles):
    name, text, schedule = case
    source, ptx, cubin = (options.out / f"{name}.{kind}" for kind in ("mlir", "ptx", "cubin"))
    source.write_text(text)
    kept = run([options.tools / "attnfuse-compile", source, "--emit=schedule", "-o", "-"])
    if SCHEDULE.search(kept)[0] != schedule:
        raise RuntimeError(f"expected {schedule} to be left, got\n{kept}")
    run([options.tools / "attnfuse-compile", source, "-o", ptx])
    if ".entry" not in ptx.read_text():
        raise RuntimeError(f"expected a kernel in {ptx}")
    if assembles:
        run([options.ptxas, f"-arch={options.chip}", ptx, "-o", cubin])
    for path in (source, ptx, cubin, ptx.with_suffix(".json")):
        path.unlink(missing_ok=True)


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--tools", type=pathlib.Path, required=True)
    parser.add_argument("--out", type=pathlib.Path, required=True)
    parser.add_argument("--chip", required=True)
    parser.add_argument("--ptxas")
    parser.add_argument("--count", type=int, default=1000)
    parser.add_argument("--jobs", type=int, default=1)
    parser.add_argument("files", nargs="+", type=pathlib.Path)
    options = parser.parse_args()
    options.out.mkdir(parents=True, exist_ok=True)
    cases = list(itertools.chain.from_iterable(make_cases(options, path) for path in options.files))
    passed = 0
    with concurrent.futures.ThreadPoolExecutor(options.jobs) as pool:
        futures = [
            pool.submit(check, options, case, options.ptxas and number % ASSEMBLED == 0)
            for number, case in enumerate(cases)
        ]
        for (name, _, schedule), future in zip(cases, futures):
            try:
                future.result()
                passed += 1
            except RuntimeError as error:
                print(f"FAIL {name} {schedule}: {error}", flush=True)
    print(f"{passed} passed, {len(cases) - passed} failed")
    return passed != len(cases) or not cases


if __name__ == "__main__":
    sys.exit(main())
