"""Host time per call: ours and F.scaled_dot_product_attention, on tensors so small that the GPU is
done before the host. Prints a table, and with --check fails where ours takes longer.

usage: overhead.py [--check] [--json FILE]
"""

import json
import pathlib
import statistics
import sys
import time

import torch

import attnfuse as af

sys.path.insert(0, str(pathlib.Path(__file__).parents[1]))
import variants

causal, rotated = af.attention(variants.causal), af.attention(variants.rotated)
F = torch.nn.functional
CALLS, REPEATS = 400, 15


def measure(function):
    """Microseconds per call: the median of several runs of many calls, and the least."""
    for _ in range(50):
        function()
    times = []
    for _ in range(REPEATS):
        torch.cuda.synchronize()
        start = time.perf_counter()
        for _ in range(CALLS):
            function()
        times.append((time.perf_counter() - start) / CALLS * 1e6)
        torch.cuda.synchronize()
    return statistics.median(times), min(times)


def measure_device(function):
    """Microseconds that the GPU takes for one call, replayed from a graph."""
    for _ in range(3):
        function()
    torch.cuda.synchronize()
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        for _ in range(100):
            function()
    graph.replay()
    start, end = (torch.cuda.Event(enable_timing=True) for _ in range(2))
    start.record()
    graph.replay()
    end.record()
    end.synchronize()
    return start.elapsed_time(end) * 10


def main():
    torch.manual_seed(0)
    rows = []
    with torch.no_grad():
        for heads, kv_heads, n, d in ((8, 8, 64, 64), (8, 2, 64, 128)):
            q, k, v = (
                torch.randn(1, h, n, d, device="cuda", dtype=torch.bfloat16)
                for h in (heads, kv_heads, kv_heads)
            )
            cos, sin = af.build_rope_cache(512, d, like=q)
            is_grouped = heads != kv_heads
            cases = {
                "SDPA, causal": lambda: F.scaled_dot_product_attention(
                    q, k, v, is_causal=True, enable_gqa=is_grouped
                ),
                "attnfuse, causal": lambda: causal(q, k, v),
                "attnfuse, rope and causal": lambda: rotated(q, k, v, cos=cos, sin=sin),
                "empty_like alone": lambda: torch.empty_like(q),
            }
            for name, function in cases.items():
                median, least = measure(function)
                device = 0.0 if "empty" in name else measure_device(function)
                rows.append(
                    dict(
                        heads=heads,
                        kv_heads=kv_heads,
                        n=n,
                        d=d,
                        case=name,
                        median=median,
                        least=least,
                        device=device,
                    )
                )
    print(f"{torch.cuda.get_device_name()}, PyTorch {torch.__version__}: microseconds per call")
    print(f"{'heads':>8} {'D':>4}  {'case':28} {'host median':>11} {'least':>7} {'GPU':>7}")
    for row in rows:
        heads = f"{row['heads']}/{row['kv_heads']}"
        print(
            f"{heads:>8} {row['d']:>4}  {row['case']:28} {row['median']:11.2f} {row['least']:7.2f} {row['device']:7.2f}"
        )
        if row["device"] > 0.9 * row["median"]:
            print("          (the GPU takes as long: this is no host time)")
    if "--json" in sys.argv:
        with open(sys.argv[sys.argv.index("--json") + 1], "w", encoding="utf-8") as file:
            json.dump(rows, file, indent=1)
    slower = False
    for sdpa, ours in zip(rows[0::4], rows[1::4]):
        verdict = "at most SDPA's" if ours["median"] <= sdpa["median"] else "MORE than SDPA's"
        slower |= ours["median"] > sdpa["median"]
        print(
            f"host time per call, {ours['heads']}/{ours['kv_heads']} heads: {ours['median']:.2f} us, SDPA {sdpa['median']:.2f} us: {verdict}"
        )
    return int(slower and "--check" in sys.argv)


if __name__ == "__main__":
    sys.exit(main())
