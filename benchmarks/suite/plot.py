# ===-----------------------------------------------------------------------===#
# Licensed under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
# ===-----------------------------------------------------------------------===#
"""Figures of a record, as PNG and SVG."""

import json
import math
import os

import matplotlib

matplotlib.use("Agg")
# pylint: disable=wrong-import-position
import matplotlib.pyplot as plt
from matplotlib.ticker import FixedLocator, FuncFormatter, NullLocator

from . import record, report, works

#: Okabe and Ito's palette, which colour-blind readers tell apart; shapes tell them apart in print.
_STYLES = {
    works.OURS: ("#D55E00", "o"),
    works.PLAIN: ("#E69F00", "o"),
    works.FLEX: ("#0072B2", "s"),
    works.FLEX_COMPILED: ("#0072B2", "s"),
    works.FLEX_EAGER: ("#56B4E9", "D"),
    works.FLEX_SMALL: ("#56B4E9", "D"),
    works.CUDNN: ("#009E73", "^"),
    works.CUDNN_COMPILED: ("#009E73", "^"),
    works.FLASH: ("#CC79A7", "v"),
    works.EFFICIENT: ("#000000", "x"),
}
_OTHERS = (("#F0E442", "P"), ("#999999", "*"), ("#882255", "h"), ("#44AA99", "X"), ("#332288", "d"))
_FASTER, _SLOWER = "#0072B2", "#D55E00"

plt.rcParams.update(
    {
        "font.size": 10,
        "axes.titlesize": 10.5,
        "axes.grid": True,
        "grid.color": "#DDDDDD",
        "grid.linewidth": 0.6,
        "axes.axisbelow": True,
        "axes.spines.top": False,
        "axes.spines.right": False,
        "legend.frameon": False,
        "figure.constrained_layout.use": True,
        "svg.fonttype": "none",
        # The same record gives the same file.
        "svg.hashsalt": "attnfuse",
    }
)


def read_rotations(path):
    """The file that rotation_sweep.py wrote."""
    try:
        with open(path, encoding="utf-8") as file:
            data = json.load(file)
    except (OSError, ValueError) as error:
        raise record.RecordError(f"{path}: {error}") from None
    if not isinstance(data, dict) or not isinstance(data.get("results"), list):
        raise record.RecordError(f"{path}: expected a file of 'rotation_sweep.py run'")
    return data


def _style(name):
    if name in _STYLES:
        return _STYLES[name]
    return _OTHERS[sum(map(ord, name)) % len(_OTHERS)]


def _save(figure, folder, name):
    paths = []
    for ending, options in (("png", {"dpi": 160}), ("svg", {"metadata": {"Date": None}})):
        paths.append(os.path.join(folder, f"{name}.{ending}"))
        figure.savefig(paths[-1], **options)
    plt.close(figure)
    return paths


def _format_length(n):
    return f"{n // 1024}k" if n >= 1024 and n % 1024 == 0 else f"{n:g}"


def _log_lengths(axis, lengths):
    axis.set_xscale("log", base=2)
    axis.xaxis.set_major_locator(FixedLocator(sorted(set(lengths))))
    axis.xaxis.set_minor_locator(NullLocator())
    axis.xaxis.set_major_formatter(FuncFormatter(lambda n, _: _format_length(int(round(n)))))


def _grid(count, width=4.2, height=3.1, most=3):
    columns = min(most, count)
    rows = -(-count // columns)
    figure, axes = plt.subplots(
        rows, columns, figsize=(width * columns, height * rows + 0.6), squeeze=False
    )
    axes = list(axes.flat)
    for unused in axes[count:]:
        unused.set_visible(False)
    return figure, axes[:count]


def _device(data):
    return data["environment"]["device"]


def _legend_below(figure, axes):
    handles = {}
    for axis in axes:
        for handle, label in zip(*axis.get_legend_handles_labels()):
            handles.setdefault(label, handle)
    figure.legend(
        handles.values(), handles, loc="outside lower center", ncols=min(4, max(1, len(handles)))
    )


def draw_lengths(data, folder):
    """TFLOP/s against the length, a panel for each variant that was timed at several lengths."""
    paths = []
    for suite, (_, title) in works.SUITES.items():
        series = {}
        for result in data["results"]:
            work = works.from_dict(result["work"])
            is_timed = any(entry["status"] == "ok" for entry in result["entries"])
            if work.suite == suite and work.clock == "device" and is_timed:
                series.setdefault((work.series, work.heads), []).append((work.keys, result))
        series = {
            key: sorted(points, key=lambda point: point[0])
            for key, points in series.items()
            if len({n for n, _ in points}) > 1
        }
        if not series:
            continue
        figure, axes = _grid(len(series))
        for axis, ((label, _), points) in zip(axes, series.items()):
            names = dict.fromkeys(e["name"] for _, result in points for e in result["entries"])
            for name in names:
                found = [(n, r, record.find(r, name)) for n, r in points]
                found = [(n, r["flops"] / 1e6, entry) for n, r, entry in found if entry]
                if not found:
                    continue
                color, marker = _style(name)
                is_ours = name == works.OURS
                middle = [flops / e["median_us"] for _, flops, e in found]
                spread = [
                    [m - flops / e["q3_us"] for m, (_, flops, e) in zip(middle, found)],
                    [flops / e["q1_us"] - m for m, (_, flops, e) in zip(middle, found)],
                ]
                axis.errorbar(
                    [n for n, _, _ in found], middle, yerr=spread, label=name, color=color, marker=marker,
                    markersize=6 if is_ours else 5, linewidth=2.2 if is_ours else 1.4, capsize=2,
                    linestyle="--" if name == works.PLAIN else "-", zorder=3 if is_ours else 2,
                )  # fmt: skip
            _log_lengths(axis, [n for n, _ in points])
            axis.set_ylim(bottom=0)
            axis.set_title(label)
            axis.set_xlabel("sequence length N")
            axis.set_ylabel("TFLOP/s")
        figure.suptitle(f"{title} ({_device(data)})")
        _legend_below(figure, axes)
        paths += _save(figure, folder, f"tflops-{suite}")
    return paths


def draw_speedups(data, folder):
    """A bar for each work: the best peer's time over ours."""
    bars = [(result, report.best_ratio(result)) for result in data["results"]]
    bars = [(result, ratio) for result, ratio in bars if ratio]
    if not bars:
        return []
    figure, axis = plt.subplots(figsize=(9.5, 1.2 + 0.24 * len(bars)))
    places, place, last = [], 0.0, None
    for result, _ in bars:
        suite = result["work"]["suite"]
        place += 1.0 if suite == last or last is None else 1.9
        last = suite
        places.append(place)
    for y, (result, (ratio, name)) in zip(places, bars):
        axis.barh(
            y, ratio, height=0.78, color=_FASTER if ratio >= 1 else _SLOWER, alpha=0.85,
            hatch=None if ratio >= 1 else "///", edgecolor="white",
        )  # fmt: skip
        axis.text(ratio, y, f" {ratio:.2f} × {name}", va="center", fontsize=7.5)
    axis.axvline(1, color="black", linewidth=1)
    axis.set_yticks(
        places,
        [f"{r['work']['suite']}: {r['label']}, {r['shape']}" for r, _ in bars],
        fontsize=7.5,
    )
    axis.invert_yaxis()
    axis.margins(y=0.01)
    axis.set_xlim(0, 1.5 * max(ratio for _, (ratio, _) in bars))
    axis.grid(axis="y", visible=False)
    axis.set_xlabel("time of the best peer / time of attnfuse (above 1: attnfuse is faster)")
    axis.set_title(f"attnfuse and the best peer ({_device(data)})")
    return _save(figure, folder, "speedups")


def draw_roofline(data, folder):
    """Our kernels under what the machine's matrix products and copies reach."""
    ceilings = data["environment"].get("ceilings")
    points = {}
    for result in data["results"]:
        ours = record.find(result, works.OURS)
        if ours and result["work"]["clock"] == "device":
            x = result["flops"] / result["bytes"]
            y = result["flops"] / ours["median_us"] / 1e6
            points.setdefault(result["work"]["suite"], []).append((x, y))
    if not ceilings or not points:
        return []
    figure, axis = plt.subplots(figsize=(7.5, 5))
    least = min(x for each in points.values() for x, _ in each) / 2
    most = max(x for each in points.values() for x, _ in each) * 2
    slope, flat = ceilings["gb_per_second"] / 1e3, ceilings["tflops"]
    ridge = flat / slope
    xs = sorted({least, min(max(least, ridge), most), most})
    axis.plot(xs, [min(flat, slope * x) for x in xs], color="black", linewidth=1.6)
    axis.text(most, flat * 1.04, f"matrix product, {flat:.0f} TFLOP/s", ha="right", fontsize=8.5)
    colors = [
        "#D55E00",
        "#0072B2",
        "#009E73",
        "#CC79A7",
        "#E69F00",
        "#56B4E9",
        "#000000",
        "#999999",
    ]
    colors += ["#882255", "#44AA99"]
    markers = "osD^vPX*hd"
    for number, (suite, each) in enumerate(points.items()):
        axis.scatter(
            *zip(*each), label=f"{suite}: {works.SUITES[suite][1]}" if suite in works.SUITES else suite,
            color=colors[number % len(colors)], marker=markers[number % len(markers)], s=34, zorder=3,
            edgecolor="white", linewidth=0.5,
        )  # fmt: skip
    axis.set_xscale("log")
    axis.set_yscale("log")
    axis.set_xlabel("FLOP per byte that has to move once")
    axis.set_ylabel("TFLOP/s")
    axis.set_title(
        f"attnfuse under the ceilings of the same run ({_device(data)}; copy {slope:.2f} TB/s)"
    )
    axis.legend(loc="lower right", fontsize=8)
    return _save(figure, folder, "roofline")


def draw_rotation_shares(data, folder):
    """How much longer our kernel takes with RoPE."""
    series = {}
    for result in data["results"]:
        share = report.rotation_share(result)
        if share is not None:
            work = works.from_dict(result["work"])
            # Windows differ at one length, all else at one variant.
            if work.is_causal_window:
                key, x = f"windows, D = {work.features}, N = {work.keys}", work.left + 1
            else:
                key, x = f"{work.label}, {work.heads} heads, D = {work.features}", work.keys
            series.setdefault(key, []).append((x, 100 * share))
    if not series:
        return []
    figure, axis = plt.subplots(figsize=(7.5, 4.4))
    colors = ("#D55E00", "#0072B2", "#009E73", "#CC79A7")
    for number, (label, points) in enumerate(series.items()):
        xs, ys = zip(*sorted(points))
        axis.plot(xs, ys, label=label, color=colors[number % 4], marker="osD^"[number % 4])
    _log_lengths(axis, [x for points in series.values() for x, _ in points])
    axis.axhline(0, color="black", linewidth=0.8)
    axis.set_xlabel("sequence length N, or the window's width")
    axis.set_ylabel("time that RoPE adds, %")
    axis.set_title(f"RoPE in the kernel ({_device(data)})")
    axis.legend(fontsize=8.5)
    return _save(figure, folder, "rope-added")


def find_crossover(points):
    """Where the first of two costs stops being the smaller, or begins to be, between two neighbours of
    [(n, first, second)], by a straight line over log n; None where it never does."""
    points = sorted(points)
    for (n, a, b), (m, c, d) in zip(points, points[1:]):
        before, after = a - b, c - d
        if before and after and (before < 0) != (after < 0):
            part = before / (before - after)
            return 2 ** (math.log2(n) + part * (math.log2(m) - math.log2(n)))
    return None


def draw_rotations(rotations, folder):
    """What rotating K costs in the kernel and before it, against the length, where the two cross."""
    series = {}
    for entry in rotations["results"]:
        if entry["mask"] != "causal" or entry["queries"] != entry["keys"]:
            continue
        key = entry["chip"], entry["dim"], entry["heads"], entry["key_heads"]
        share = [100 * (entry[way] - entry["q"]) / entry["none"] for way in ("fused", "split")]
        series.setdefault(key, []).append((entry["keys"], *share))
    paths = []
    for chip in dict.fromkeys(key[0] for key in series):
        panels = {key: sorted(points) for key, points in series.items() if key[0] == chip}
        figure, axes = _grid(len(panels), width=3.9, most=4)
        for axis, ((_, dim, heads, key_heads), points) in zip(axes, panels.items()):
            xs = [n for n, _, _ in points]
            lines = (("in the kernel", "#D55E00", "o"), ("before it, once", "#0072B2", "s"))
            for which, (label, color, marker) in enumerate(lines):
                ys = [point[1 + which] for point in points]
                axis.plot(xs, ys, label=f"K rotated {label}", color=color, marker=marker)
            crossing = find_crossover(points)
            if crossing:
                axis.axvline(crossing, color="#555555", linestyle=":", linewidth=1.4)
                axis.annotate(
                    f"N = {crossing:.0f}", (crossing, 0.97), xycoords=("data", "axes fraction"),
                    xytext=(4, 0), textcoords="offset points", va="top", fontsize=8.5,
                )  # fmt: skip
            _log_lengths(axis, xs)
            axis.tick_params(axis="x", labelsize=8)
            axis.set_title(f"D = {dim}, {heads}/{key_heads} heads")
            axis.set_xlabel("sequence length N")
            axis.set_ylabel("added time, % of no RoPE")
        figure.suptitle(f"Where to rotate K: causal, {chip} ({rotations.get('device', '')})")
        _legend_below(figure, axes)
        paths += _save(figure, folder, f"rotations-{chip}")
    return paths


def draw_all(data, folder, rotations=None):
    """The paths of what was drawn."""
    paths = draw_lengths(data, folder) + draw_speedups(data, folder)
    paths += draw_roofline(data, folder) + draw_rotation_shares(data, folder)
    return paths + (draw_rotations(rotations, folder) if rotations else [])
