#!/usr/bin/env python3
"""Times where rotations are done: nowhere, of q in the kernel, of k in the kernel or before it.

    benchmarks/rotation_sweep.py run OUT.json [--quick]     on a machine with a GPU, needs PyTorch
    benchmarks/rotation_sweep.py report OUT.json            anywhere: predictions beside it, regret,
                                                            crossovers
    benchmarks/rotation_sweep.py plot OUT.json FOLDER       SVG files; needs matplotlib
    benchmarks/rotation_sweep.py machines                   predicted crossovers of the machines known

Kernels are compiled once per variant and numbers of heads, for all other sizes, and timed as CUDA
graphs, variants of one shape in turns, medians of the rounds. `run` needs libattnfuse.so
(ATTNFUSE_LIBRARY) and, to save time, a ptxas. `report` asks attnfuse-compile (build/bin) what is
predicted.
"""

import argparse
import concurrent.futures
import ctypes
import json
import os
import random
import re
import subprocess
import sys
import tempfile

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, os.path.join(HERE, "..", "python"))
WAYS = ("none", "q", "fused", "split")
BLOCK = 128


def module_text(mask, dim, way, sizes=None):
    """The variant; `sizes`, of which each may be "?", are those of its types."""
    batch, heads, key_heads, queries, keys = sizes or "?????"
    q, k = (f"tensor<{batch}x{h}x{n}x{dim}xbf16>" for h, n in ((heads, queries), (key_heads, keys)))
    s, table = f"tensor<{batch}x{heads}x{queries}x{keys}xf32>", f"tensor<?x{dim // 2}xf32>"
    arguments = [f"%q: {q}", f"%k: {k}", f"%v: {k}"]
    body, names = [], ["%q", "%k"]
    if way != "none":
        arguments += [f"%cos: {table}", f"%sin: {table}"]
        for i, (name, kind) in enumerate((("q", q), ("k", k))[: 1 if way == "q" else 2]):
            body.append(f"%{name}r = attnfuse.rope %{name}, %cos, %sin half : {kind}, {table}, {table}")
            names[i] = f"%{name}r"
    body.append(f"%s = attnfuse.scaled_dot_product {names[0]}, {names[1]} : {q}, {k} -> {s}")
    scores = "%s"
    if mask == "blocks":
        arguments += ["%rows: tensor<?xi32>", "%columns: tensor<?xi32>"]
        body.append(
            f"%m = attnfuse.block_sparse %s, %rows, %columns {{query_block = {BLOCK} : i64, key_block = "
            f"{BLOCK} : i64}} : {s}, tensor<?xi32>, tensor<?xi32>"
        )
        scores = "%m"
    elif mask.startswith("window"):
        body.append(f"%m = attnfuse.sliding_window %s bottom_right {{left = {int(mask[6:]) - 1} : i64, right = 0 : i64}} : {s}")
        scores = "%m"
    elif mask == "causal":
        body.append(f"%m = attnfuse.causal %s bottom_right : {s}")
        scores = "%m"
    body.append(f"%p = attnfuse.softmax {scores} : {s}")
    body.append(f"%o = attnfuse.weighted_sum %p, %v : {s}, {k} -> {q}")
    body.append(f"return %o : {q}")
    lines = "\n  ".join(body)
    return f"func.func @f({', '.join(arguments)}) -> {q} {{\n  {lines}\n}}\n"


def shapes(quick):
    """(mask, dim, batch, query heads, key heads, queries, keys); about 8192 tokens."""
    groups = ((16, 16), (32, 8), (32, 4), (16, 1))
    for dim in (128, 64):
        for heads, key_heads in groups:
            for n in (128, 256, 512, 1024, 2048, 4096, 8192, 16384, 32768):
                if quick and n not in (256, 1024, 4096):
                    continue
                yield "causal", dim, max(1, 8192 // n), heads, key_heads, n, n
        for heads, key_heads in groups[:2]:
            for n in (256, 512, 1024, 4096):
                yield "dense", dim, max(1, 8192 // n), heads, key_heads, n, n
            for window in (128, 512, 4096):
                for n in (1024, 16384):
                    yield f"window{window}", dim, max(1, 16384 // n), heads, key_heads, n, n
            for n in (1024, 8192):
                yield "dense", dim, 8, heads, key_heads, 1, n
            for n in (2048, 8192):
                yield "blocks", dim, max(1, 8192 // n), heads, key_heads, n, n


def variant_of(mask, dim, _, heads, key_heads, queries, __):
    """What a kernel knows of a shape; of the lengths, that there is one query."""
    return mask, dim, heads, key_heads, 1 if queries == 1 else "?"


def block_list(torch, n):
    """The diagonal, the block before it and the first, of BLOCK queries each."""
    rows, columns = [0], []
    for i in range((n + BLOCK - 1) // BLOCK):
        columns += sorted({0, max(i - 1, 0), i})
        rows.append(len(columns))
    return [torch.tensor(x, dtype=torch.int32, device="cuda") for x in (rows, columns)]


#===-----------------------------------------------------------------------===#
# On a GPU
#===-----------------------------------------------------------------------===#


def assemble(ptx, chip):
    """The cubin, or `ptx`, which the driver assembles, where there is no ptxas that can."""
    with tempfile.NamedTemporaryFile() as file:
        try:
            done = subprocess.run(["ptxas", f"-arch={chip}", "-", "-o", file.name], input=ptx, capture_output=True)
        except OSError:
            return ptx
        return open(file.name, "rb").read() if done.returncode == 0 else ptx


def compile_variant(job):
    """(job, code, manifest) of one variant."""
    from attnfuse import native

    chip, mask, dim, heads, key_heads, queries, way = job
    sizes = ("?", heads, key_heads, queries, "?")
    fused = native.compile_module(module_text(mask, dim, way, sizes), None, "fused").code.decode()
    plan = "split" if way == "split" else "fused"
    fused = fused.replace("{scale =", f"{{rotation_plan = #attnfuse.rotation_plan<q = fused, k = {plan}>, scale =")
    compiled = native.compile_module(fused, chip, "ptx")
    return job, assemble(compiled.code, chip), compiled.manifest


class Loaded:
    def __init__(self, native, code, manifest):
        self.native = native
        self.kernel = native.Kernel(0, native.Compiled(code, manifest, ""), "f")

    def bind(self, torch, tensors):
        values = (self.native.Value * len(tensors))()
        kinds = {torch.bfloat16: "bf16", torch.float32: "f32", torch.int32: "i32"}
        for value, tensor in zip(values, tensors):
            value.describe(kinds[tensor.dtype], tensor.shape, tensor.stride())
            value.data = tensor.data_ptr()
        size = ctypes.sizeof(self.native.Value)
        results = (self.native.Value * 1).from_buffer(values, (len(tensors) - 1) * size)
        arguments = (self.native.Value * (len(tensors) - 1)).from_buffer(values)
        launch = self.native.Launch(self.kernel, arguments, results)
        if not launch.handle:
            raise RuntimeError(self.native.last_error())
        library = self.native._library
        library.attnfuseLaunchGetWorkspaceSize.restype = ctypes.c_int64
        library.attnfuseLaunchGetWorkspaceSize.argtypes = [ctypes.c_void_p]
        run = library.attnfuseLaunchRunInWorkspace
        run.argtypes = [ctypes.c_void_p, ctypes.c_void_p, ctypes.c_void_p, ctypes.c_uint64]
        workspace = torch.empty(max(256, library.attnfuseLaunchGetWorkspaceSize(launch.handle)),
                                dtype=torch.uint8, device="cuda")
        addresses = (ctypes.c_uint64 * len(tensors))(*[tensor.data_ptr() for tensor in tensors])

        def call():
            stream = torch.cuda.current_stream().cuda_stream
            if run(launch.handle, stream, addresses, workspace.data_ptr()):
                raise RuntimeError(self.native.last_error())

        call.keep = (launch, workspace, values)
        return call


def time_graphs(torch, calls, rounds):
    """Seconds of each call, medians."""
    graphs, counts = [], []
    for call in calls:
        call()
        start, end = torch.cuda.Event(enable_timing=True), torch.cuda.Event(enable_timing=True)
        start.record()
        call()
        end.record()
        end.synchronize()
        count = max(1, min(16, int(400e-6 / max(start.elapsed_time(end) * 1e-3, 1e-6))))
        graph = torch.cuda.CUDAGraph()
        with torch.cuda.graph(graph):
            for _ in range(count):
                call()
        graphs.append(graph)
        counts.append(count)
    times = [[] for _ in calls]
    shuffle = random.Random(0).shuffle
    order = list(range(len(graphs)))
    for _ in range(rounds):
        # None always follows the same: what runs before it changes the GPU's clock.
        shuffle(order)
        for i in order:
            start, end = torch.cuda.Event(enable_timing=True), torch.cuda.Event(enable_timing=True)
            start.record()
            graphs[i].replay()
            end.record()
            end.synchronize()
            times[i].append(start.elapsed_time(end) * 1e-3 / counts[i])
    return [sorted(each)[len(each) // 2] for each in times]


def run(options):
    import torch
    from attnfuse import native

    all_shapes = list(shapes(options.quick))
    capability = torch.cuda.get_device_capability()
    chips = ["sm_90a", "sm_90"] if capability == (9, 0) else [f"sm_{capability[0]}{capability[1]}"]
    jobs = [(chip, *variant, way) for chip in chips
            for variant in dict.fromkeys(variant_of(*s) for s in all_shapes) for way in WAYS]
    with concurrent.futures.ProcessPoolExecutor() as pool:
        kernels = {job: Loaded(native, code, manifest) for job, code, manifest in pool.map(compile_variant, jobs)}
    print(f"compiled {len(jobs)} variants", flush=True)
    most = max(b * max(h * n, kh * m) * d for _, d, b, h, kh, n, m in all_shapes)
    torch.manual_seed(0)
    pools = [torch.randn(most, device="cuda", dtype=torch.bfloat16) for _ in range(3)]
    output = torch.empty(most, device="cuda", dtype=torch.bfloat16)
    results = []
    for number, shape in enumerate(all_shapes):
        mask, dim, batch, heads, key_heads, queries, keys = shape
        q_shape, k_shape = (batch, heads, queries, dim), (batch, key_heads, keys, dim)
        view = lambda pool, shape: pool[: torch.Size(shape).numel()].view(shape)
        q, k, v, o = view(pools[0], q_shape), view(pools[1], k_shape), view(pools[2], k_shape), view(output, q_shape)
        angles = torch.outer(torch.arange(keys, device="cuda"), 500000.0 ** (-torch.arange(dim // 2, device="cuda") * 2 / dim))
        tables = [angles.cos(), angles.sin()]
        lists = block_list(torch, queries) if mask == "blocks" else []
        for chip in chips:
            try:
                calls = [kernels[chip, *variant_of(*shape), way].bind(torch, [q, k, v, *(tables if way != "none" else []), *lists, o])
                         for way in WAYS]
                seconds = time_graphs(torch, calls, 5 if options.quick else 9)
            except RuntimeError as error:
                print(f"{chip} {mask} {dim} {q_shape} {k_shape}: {error}", flush=True)
                continue
            entry = dict(chip=chip, mask=mask, dim=dim, batch=batch, heads=heads, key_heads=key_heads,
                         queries=queries, keys=keys, **dict(zip(WAYS, seconds)))
            if lists:
                entry["blocks"] = lists[1].numel()
            results.append(entry)
        print(f"\r{number + 1} of {len(all_shapes)}", end="", flush=True)
    print()
    with open(options.file, "w") as file:
        json.dump(dict(device=torch.cuda.get_device_name(), results=results), file, indent=1)


#===-----------------------------------------------------------------------===#
# Anywhere
#===-----------------------------------------------------------------------===#


MACHINES = ("a100", "rtx3090", "rtx4090", "h100-sxm", "h100-pcie", "h100-nvl", "h200", "b200")


def run_compiler(text, target):
    tool = os.path.join(HERE, "..", "build", "bin", "attnfuse-compile")
    if not os.path.exists(tool):
        sys.exit(f"expected attnfuse-compile at {os.path.normpath(tool)}: build the project first")
    done = subprocess.run(
        [tool, "-", "--emit=schedule"],
        input=f"module attributes {{attnfuse.target = #attnfuse.target<{target}>}} {{\n{text}}}\n",
        capture_output=True, text=True, check=True)
    return done.stdout


def predict(entry, target):
    """(seconds added by the fused way, by the split one, whether fused is chosen)."""
    sizes = [entry[key] for key in ("batch", "heads", "key_heads", "queries", "keys")]
    text = module_text(entry["mask"], entry["dim"], "fused", sizes)
    if "blocks" in entry:
        # The length of the list decides.
        text = text.replace("%columns: tensor<?xi32>", f"%columns: tensor<{entry['blocks']}xi32>")
        text = text.replace("tensor<?xi32>, tensor<?xi32>", f"tensor<?xi32>, tensor<{entry['blocks']}xi32>")
    found = re.search(r"k = (\w+), k_fused_ps = (\d+), k_split_ps = (\d+)", run_compiler(text, target))
    return float(found[2]) * 1e-12, float(found[3]) * 1e-12, found[1] == "fused"


def predict_crossover(mask, dim, heads, key_heads, target, tokens=8192):
    """The length from which on rotating k before the kernel is expected to pay, of about so many
    tokens; 0 if always."""
    low, high = 0, 16384
    while high - low > 8:
        n = (low + high) // 2
        entry = dict(mask=mask, dim=dim, batch=max(1, tokens // n), heads=heads, key_heads=key_heads, queries=n, keys=n)
        if predict(entry, target)[2]:
            low = n
        else:
            high = n
    return low


def crossovers(results, predictions):
    """Where the curves of both ways cross, between two lengths that were measured: (chip, dim, heads,
    key heads, measured length, predicted length, the lengths around)."""
    groups = {}
    for e, (fused, split, _) in zip(results, predictions):
        if e["mask"] == "causal":
            # Relative to the kernel, so that lengths compare.
            entry = e["keys"], (e["fused"] - e["split"]) / e["q"], (fused - split) / e["q"]
            groups.setdefault((e["chip"], e["dim"], e["heads"], e["key_heads"]), []).append(entry)

    def cross(entries, index):
        for a, b in zip(entries, entries[1:]):
            if a[index] < 0 <= b[index]:
                return round(a[0] * (b[0] / a[0]) ** (-a[index] / (b[index] - a[index]))), a[0], b[0]
        return 0, 0, entries[0][0]

    for key, entries in groups.items():
        entries.sort()
        n, low, high = cross(entries, 1)
        yield *key, n, cross(entries, 2)[0], low, high


def get_target(chip, machine):
    return f'"{machine}", {{chip = "{chip}"}}'


def machines(options):
    cells = [(mask, dim, g) for mask in ("causal", "dense") for dim in (128, 64) for g in (1, 4, 8)]
    print("| machine | " + " | ".join(f"{mask} D={dim} g={g}" for mask, dim, g in cells) + " |")
    print("| --- |" + " ---: |" * len(cells))
    with concurrent.futures.ThreadPoolExecutor(2) as pool:
        for machine in MACHINES:
            found = pool.map(lambda cell: predict_crossover(cell[0], cell[1], 32, 32 // cell[2], f'"{machine}"'), cells)
            print(f"| {machine} | " + " | ".join(str(n) if n else "-" for n in found) + " |", flush=True)


def plot(options):
    import matplotlib

    matplotlib.use("Agg")
    matplotlib.rcParams["svg.hashsalt"] = "attnfuse"
    import matplotlib.pyplot as plt

    with open(options.file) as file:
        results = json.load(file)["results"]
    os.makedirs(options.folder, exist_ok=True)
    colors = {"fused": "#d55e00", "split": "#0072b2"}

    def draw(axes, entries, x, title):
        entries = sorted(entries, key=lambda e: e[x])
        lengths = [e[x] for e in entries]
        predictions = [predict(e, get_target(e["chip"], options.target)) for e in entries]
        for i, way in enumerate(("fused", "split")):
            # Less than 1 % of a kernel's time is noise.
            added = [e[way] - e["q"] for e in entries]
            measured = [a * 1e6 if a > 0.01 * e["q"] else float("nan") for a, e in zip(added, entries)]
            axes.plot(lengths, measured, "o-", color=colors[way], label=f"{way}, measured", markersize=4)
            axes.plot(lengths, [p[i] * 1e6 for p in predictions], "--", color=colors[way], label=f"{way}, predicted")
        axes.set(xscale="log", yscale="log", title=title, xlabel="length", ylabel="added to the kernel, \u00b5s")
        axes.set_xticks(lengths, [str(n) for n in lengths], rotation=45)
        axes.minorticks_off()
        axes.grid(alpha=0.3)

    for chip in dict.fromkeys(e["chip"] for e in results):
        figure, all_axes = plt.subplots(2, 4, figsize=(16, 7.5), layout="constrained")
        for row, dim in zip(all_axes, (128, 64)):
            for axes, (heads, key_heads, name) in zip(row, ((16, 16, "MHA"), (32, 8, "GQA 4"), (32, 4, "GQA 8"), (16, 1, "MQA"))):
                chosen = [e for e in results if e["chip"] == chip and e["mask"] == "causal" and e["dim"] == dim
                          and (e["heads"], e["key_heads"]) == (heads, key_heads)]
                draw(axes, chosen, "keys", f"causal, {name}, D={dim}")
        all_axes[0][0].legend(frameon=False)
        figure.suptitle(f"Rotating k in the kernel or before it: {chip} kernels on one H200, about 8192 tokens")
        figure.savefig(os.path.join(options.folder, f"rotation-causal-{chip}.svg"), metadata={"Date": None})
        figure, all_axes = plt.subplots(1, 4, figsize=(16, 4), layout="constrained")
        pick = lambda masks, heads, **rest: [
            e for e in results if e["chip"] == chip and e["mask"] in masks and e["heads"] == heads and e["dim"] == 128
            and all(e[key] == value for key, value in rest.items())]
        draw(all_axes[0], [e for e in pick(["dense"], 16) if e["queries"] > 1], "keys", "dense, MHA, D=128")
        draw(all_axes[1], [e for e in pick(["dense"], 16) if e["queries"] == 1], "keys", "decode, MHA, D=128")
        windows = [dict(e, window=int(e["mask"][6:])) for e in pick(["window128", "window512", "window4096"], 16, keys=16384)]
        draw(all_axes[2], windows, "window", "window of so many keys, N=16384")
        draw(all_axes[3], pick(["blocks"], 16), "keys", "block-sparse, 3 of all blocks a row")
        all_axes[0].legend(frameon=False)
        figure.savefig(os.path.join(options.folder, f"rotation-masks-{chip}.svg"), metadata={"Date": None})


def report(options):
    with open(options.file) as file:
        data = json.load(file)
    regrets = {}
    with concurrent.futures.ThreadPoolExecutor(2) as pool:
        targets = [get_target(e["chip"], options.target) for e in data["results"]]
        predictions = list(pool.map(predict, data["results"], targets))
    print("chip mask dim BxHq/Hkv Nq Nkv | us: none q fused split | k added: fused split, predicted fused split | regret %")
    for e, (fused, split, is_fused) in zip(data["results"], predictions):
        chosen = e["fused"] if is_fused else e["split"]
        regret = chosen / min(e["fused"], e["split"]) - 1
        regrets.setdefault(e["chip"], []).append(regret)
        print(f"{e['chip']} {e['mask']} {e['dim']} {e['batch']}x{e['heads']}/{e['key_heads']} {e['queries']} {e['keys']} | "
              + " ".join(f"{e[w] * 1e6:.1f}" for w in WAYS)
              + f" | {(e['fused'] - e['q']) * 1e6:.1f} {(e['split'] - e['q']) * 1e6:.1f}, {fused * 1e6:.1f} {split * 1e6:.1f} | {regret * 100:.1f}"
              + (" fused" if is_fused else ""))
    for chip, dim, heads, key_heads, n, predicted, low, high in crossovers(data["results"], predictions):
        print(f"{chip} causal {dim} {heads}/{key_heads}: crossover at about {n} (between {low} and {high}), predicted {predicted}")
    for chip, values in regrets.items():
        print(f"{chip}: {len(values)} shapes, regret {100 * sum(values) / len(values):.2f} % on average, {100 * max(values):.1f} % at most")


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("mode", choices=("run", "report", "plot", "machines"))
    parser.add_argument("file", nargs="?")
    parser.add_argument("folder", nargs="?")
    parser.add_argument("--quick", action="store_true")
    parser.add_argument("--target", default="h200", help="the machine that was measured")
    options = parser.parse_args()
    needed = {"machines": 0, "plot": 2}.get(options.mode, 1)
    if sum(x is not None for x in (options.file, options.folder)) != needed:
        parser.error(f"expected {needed} paths for {options.mode}")
    {"run": run, "report": report, "plot": plot, "machines": machines}[options.mode](options)


if __name__ == "__main__":
    main()
