# ===-----------------------------------------------------------------------===#
# Licensed under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
# ===-----------------------------------------------------------------------===#
"""Tables in Markdown of a record."""

import math

from . import record, works


def format_us(us):
    return f"{us:.0f}" if us >= 1000 else f"{us:.1f}" if us >= 10 else f"{us:.2f}"


def _rows_of(data, suite):
    return [result for result in data["results"] if result["work"]["suite"] == suite]


def _find_any(result, name):
    return next((entry for entry in result["entries"] if entry["name"] == name), None)


def _cell(entry, ours, is_host=False):
    if entry is None:
        return ""
    if entry["status"] in ("failed", "skipped"):
        return entry["status"]
    text = format_us(entry["median_us"])
    if entry["status"] == "wrong":
        return f"WRONG ({text})"
    text += "" if entry["graph"] or is_host else "†"
    return text + (f" ({entry['median_us'] / ours['median_us']:.2f})" if ours else "")


def _ours_cell(result, entry):
    if entry is None:
        return "not timed"
    if entry["status"] != "ok":
        return _cell(entry, None)
    half = (entry["q3_us"] - entry["q1_us"]) / 2
    text = f"{format_us(entry['median_us'])} ± {100 * half / entry['median_us']:.1f}%"
    if result["work"]["clock"] == "host":
        return text
    return text + f" ({result['flops'] / entry['median_us'] / 1e6:.0f})"


def best_ratio(result):
    """(the best right peer's time over ours, its name), None where either is missing."""
    ours = record.find(result, works.OURS)
    peer = record.best_peer(result, (works.OURS, works.PLAIN))
    return (peer["median_us"] / ours["median_us"], peer["name"]) if ours and peer else None


def rotation_share(result):
    """What the rotation adds to our kernel without it, as a share; None where not both are timed."""
    ours, plain = record.find(result, works.OURS), record.find(result, works.PLAIN)
    return ours["median_us"] / plain["median_us"] - 1 if ours and plain else None


def _geometric_mean(values):
    return math.exp(sum(map(math.log, values)) / len(values))


def _table(results):
    names = list(dict.fromkeys(e["name"] for r in results for e in r["entries"]))
    peers = [name for name in names if name not in (works.OURS, works.PLAIN)]
    is_host = all(result["work"]["clock"] == "host" for result in results)
    has_plain = works.PLAIN in names
    header = ["work", "shape", "attnfuse, us" + ("" if is_host else " (TFLOP/s)")]
    header += ["without RoPE"] if has_plain else []
    header += peers + ["best peer"]
    lines = ["| " + " | ".join(header) + " |", "|---|---|" + "--:|" * (len(header) - 2)]
    for result in results:
        ours = record.find(result, works.OURS)
        label = f"{result['work']['example']}: " if result["work"]["example"] else ""
        cells = [label + result["label"], result["shape"]]
        cells.append(_ours_cell(result, _find_any(result, works.OURS)))
        if has_plain:
            plain, share = _find_any(result, works.PLAIN), rotation_share(result)
            cells.append(
                f"{format_us(plain['median_us'])} (RoPE adds {100 * share:.0f}%)"
                if share is not None
                else _cell(plain, None)
            )
        cells += [_cell(_find_any(result, name), ours, is_host) for name in peers]
        ratio = best_ratio(result)
        cells.append(f"**{ratio[0]:.2f}**" if ratio else "")
        lines.append("| " + " | ".join(cells) + " |")
    ratios = [ratio[0] for ratio in map(best_ratio, results) if ratio]
    if ratios:
        slower = sum(ratio < 1 for ratio in ratios)
        lines.append("")
        lines.append(
            f"Geometric mean over the best peer: {_geometric_mean(ratios):.2f}; least {min(ratios):.2f}, "
            f"most {max(ratios):.2f}; a peer is faster in {slower} of {len(ratios)}."
        )
    return lines


def _list_trouble(data):
    lines = []
    for result in data["results"]:
        where = f"{result['work']['suite']}, {result['label']}, {result['shape']}"
        for entry in result["entries"]:
            if entry["status"] == "failed":
                lines.append(f"- {where}: {entry['name']} failed: {entry['reason']}")
            elif entry["status"] == "wrong":
                error = "not finite" if entry["error"] is None else f"{entry['error']:.3g}"
                lines.append(
                    f"- {where}: {entry['name']} is WRONG: error {error}, bound {entry['bound']:.3g}"
                )
    return lines


def make(data):
    facts = data["environment"]
    known = ("torch", "triton", "cuda", "cudnn")
    versions = ", ".join(f"{name} {facts[name]}" for name in known if facts.get(name))
    lines = [f"{facts['device']}; attnfuse {facts['attnfuse']}, {versions}."]
    if data["state"] != "done":
        lines += ["", f"Not all of it: {data['state']}."]
    if facts.get("ceilings"):
        lines += [
            "",
            f"Ceilings in the same run: {facts['ceilings']['tflops']:.0f} TFLOP/s (a matrix product of 8192^3), "
            f"{facts['ceilings']['gb_per_second']:.0f} GB/s (a copy).",
        ]
    lines += [
        "",
        "Medians in microseconds, ± half of the interquartile range; TFLOP/s counts visible pairs only. In "
        "brackets behind a peer: its time over attnfuse's, above 1 attnfuse is faster. † marks what "
        "could not be captured in a CUDA graph.",
    ]
    for suite, (_, title) in works.SUITES.items():
        results = _rows_of(data, suite)
        if results:
            lines += ["", f"### {suite}: {title}", "", *_table(results)]
    worst = {}
    for result in data["results"]:
        for entry in result["entries"]:
            if entry.get("error") is not None:
                key = entry["name"], result["work"]["dtype"]
                worst[key] = max(worst.get(key, 0), entry["error"])
    if worst:
        lines += ["", "### Errors", ""]
        lines += ["The worst row's distance from fp64, over its length.", ""]
        lines += ["| | type | error |", "|---|---|--:|"]
        lines += [f"| {name} | {dtype} | {error:.2e} |" for (name, dtype), error in worst.items()]
    if data["absent"]:
        lines += ["", "Absent: " + "; ".join(f"{n} ({r})" for n, r in data["absent"].items()) + "."]
    trouble = _list_trouble(data)
    if trouble:
        lines += ["", "### Failed or wrong", "", *trouble]
    return "\n".join(lines) + "\n"
