"""Checks what a search of one function measured where a launch takes 1 us a thread."""

import json
import math
import sys

with open(sys.argv[1]) as file:
    (function,) = json.load(file)["functions"]
schedules = function["schedules"]
for entry in schedules:
    (seconds,) = entry["seconds"]
    assert math.isclose(seconds, 32e-6 * entry["schedule"]["warps"], rel_tol=1e-5), entry
    assert math.isclose(entry["ratio"], entry["schedule"]["warps"] / schedules[0]["schedule"]["warps"], rel_tol=1e-5)
best = schedules[function["best"]]
assert best["schedule"]["warps"] == 1 and math.isclose(best["final_ratio"], 0.25, rel_tol=1e-5), best
assert function["calls"][0]["sizes"] == {"B": 2, "Hq": 4, "Hkv": 2, "Nq": 100, "Nkv": 100, "D": 16, "Dv": 16}
assert len({entry["attribute"] for entry in schedules}) == len(schedules)
