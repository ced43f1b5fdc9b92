# ===-----------------------------------------------------------------------===#
# Licensed under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
# ===-----------------------------------------------------------------------===#
"""The benchmark's logic, without a GPU: plans, rounds, budgets, records, tables, figures."""

import gc
import io
import json
import os
import subprocess
import sys
import types
import weakref

import pytest

HERE = os.path.dirname(os.path.abspath(__file__))
SUITE = os.path.join(HERE, "..", "suite.py")
sys.path.insert(0, os.path.join(HERE, ".."))

# pylint: disable=wrong-import-position
from suite import record, report, runner, timing, works


def call_suite(*arguments, status=0):
    done = subprocess.run(
        [sys.executable, "-W", "ignore", SUITE, *arguments],
        capture_output=True,
        text=True,
        check=False,
        # Threads that wait for each other take longer than tiny products.
        env={**os.environ, "OMP_NUM_THREADS": "1"},
    )
    assert done.returncode == status, done.stderr
    return done


# ===-----------------------------------------------------------------------===#
# Works
# ===-----------------------------------------------------------------------===#


def count_pairs(work):
    rows = works.block_rows(work.queries, work.keys, work.block) if work.block else None
    count, shift = 0, work.keys - work.queries
    for i in range(work.queries):
        for j in range(work.keys):
            distance = i + shift - j
            count += {
                "dense": lambda: True,
                "causal": lambda: distance >= 0,
                "window": lambda: -work.right <= distance <= work.left,
                "blocks": lambda: j // work.block in rows[i // work.block],
            }[work.mask]()
    return count


def test_visible_pairs_are_those_of_the_mask():
    seen = set()
    for work in works.get_works(tiny=True):
        seen.add(work.mask)
        assert work.visible_pairs() == count_pairs(work), work
    assert seen == {"dense", "causal", "window", "blocks"}


def test_suites_have_the_shapes_that_they_are_for():
    shapes = {}
    for work in works.get_works():
        shapes.setdefault(work.suite, []).append(work)
    assert list(shapes) == list(works.SUITES)
    assert [(w.batch, w.keys) for w in shapes["llama"]] == [
        (4, 2048), (2, 4096), (1, 8192), (1, 16384)
    ]  # fmt: skip
    assert {(w.heads, w.features, w.mask, w.batch, w.keys) for w in shapes["dense"]} == {
        (heads, features, mask, batch, n)
        for heads, features in ((16, 128), (32, 64))
        for mask in ("dense", "causal")
        for batch, n in ((4, 4096), (1, 16384))
    }
    assert len(shapes["gpt2"]) == 16 and all(w.peers == (works.FLEX,) for w in shapes["gpt2"])
    assert [w.features for w in shapes["features"]] == [96, 192, 256]
    assert [w.left + 1 for w in shapes["window"]] == [256, 1024]
    assert all(w.with_plain for w in shapes["rope"])
    assert all(w.chip == "sm_90" for w in shapes["portable"])
    assert {w.clock for w in shapes["host"]} == {"host"}


def test_flops_and_bytes():
    work = works.Work("dense", 2, 4, 2, 8, 16, 32)
    assert work.flops() == 4 * 2 * 4 * 8 * 16 * 32
    # q and the output, k and v.
    assert work.bytes() == 2 * (2 * 2 * 4 * 8 * 32 + 2 * 2 * 2 * 16 * 32)


def test_one_kernel_serves_all_lengths():
    structures = {w.structure for w in works.get_works(["llama"])}
    assert len(structures) == 1
    dense, portable = (
        next(w for w in works.get_works([name]) if w.mask == "dense" and w.features == 64)
        for name in ("dense", "portable")
    )
    assert dense.structure != portable.structure


def test_quick_has_the_ends_of_each_series():
    quick = works.get_works(["gpt2"], quick=True)
    assert sorted({w.keys for w in quick}) == [512, 4096]
    assert len(quick) == 8


def test_works_survive_json():
    for work in works.get_works():
        assert works.from_dict(json.loads(json.dumps(work.as_dict()))) == work


# ===-----------------------------------------------------------------------===#
# Timing
# ===-----------------------------------------------------------------------===#


def test_contestants_take_turns():
    order = []

    class Sampler:
        def __init__(self, name):
            self.name = name

        def sample(self):
            order.append(self.name)
            return 1.0

    times = timing.sample_in_turns([Sampler("a"), Sampler("b"), Sampler("c")], 30)
    assert [len(each) for each in times] == [30, 30, 30]
    rounds = ["".join(order[start : start + 3]) for start in range(0, 90, 3)]
    assert {"".join(sorted(each)) for each in rounds} == {"abc"}
    # Each follows every other, in its round or the one before.
    assert {before + after for before, after in zip(order, order[1:])} >= {
        "ab", "ac", "ba", "bc", "ca", "cb"
    }


def test_medians_and_quartiles():
    found = timing.summarize([5e-6, 1e-6, 2e-6, 3e-6, 4e-6])
    assert found == {"median_us": 3.0, "q1_us": 2.0, "q3_us": 4.0, "samples": 5}
    assert timing.summarize([2e-6])["q3_us"] == 2.0


class FakeTensor:
    def __init__(self):
        self.value = 1

    def fill_(self, value):
        self.value = value


class FakeCuda:
    """As much of torch.cuda as CudaClock calls. A kernel takes 10 us."""

    def __init__(self, can_capture):
        cuda = self
        self.now, self.is_capturing, self.recorded = 0.0, False, []

        class Event:
            def __init__(self, enable_timing):
                assert enable_timing

            def record(self):
                self.at = cuda.now

            def synchronize(self):
                pass

            def elapsed_time(self, end):
                return (end.at - self.at) * 1e3

        class Graph:
            def replay(self):
                for kernel in cuda.recorded:
                    kernel()

        class Capture:
            def __init__(self, graph):
                pass

            def __enter__(self):
                cuda.is_capturing = True
                if not can_capture:
                    cuda.is_capturing = False
                    raise RuntimeError("operation not permitted\nand more")

            def __exit__(self, *_):
                cuda.is_capturing = False

        class Stream:
            def wait_stream(self, other):
                pass

            def __enter__(self):
                pass

            def __exit__(self, *_):
                pass

        self.Event, self.CUDAGraph, self.graph, self.Stream = Event, Graph, Capture, Stream
        self.stream = lambda stream: stream
        self.current_stream = Stream
        self.synchronize = lambda: None

    def _sleep(self, cycles):
        self.now += 1.0

    def launch(self, kernel):
        def run():
            self.now += 10e-6
            kernel()

        self.recorded.append(run) if self.is_capturing else run()


@pytest.mark.parametrize("can_capture", (True, False))
def test_the_cuda_clock(can_capture):
    cuda = FakeCuda(can_capture)

    def call():
        output = FakeTensor()
        cuda.launch(lambda: setattr(output, "value", 42))
        return output

    sampler = timing.CudaClock(types.SimpleNamespace(cuda=cuda)).prepare(call)
    assert sampler.graph == can_capture
    assert sampler.reason == (None if can_capture else "operation not permitted")
    assert sampler.sample() == pytest.approx(10e-6)
    # What a replay writes, not what was left of an earlier call.
    assert sampler.output().value == 42
    if can_capture:
        cuda.recorded.clear()
        assert sampler.output().value != 42


def test_what_a_graph_reads_outlives_its_making():
    cuda = FakeCuda(can_capture=True)

    class Mask:
        """A tensor that only the call refers to; a kernel has its address."""

    def prepare():
        mask = Mask()

        def call(mask=mask):
            output, address = FakeTensor(), weakref.ref(mask)
            cuda.launch(lambda: setattr(output, "value", 42 if address() else float("nan")))
            return output

        return timing.CudaClock(types.SimpleNamespace(cuda=cuda)).prepare(call)

    sampler = prepare()
    gc.collect()
    assert sampler.output().value == 42


def test_the_host_clock():
    synchronized, calls = [], []
    clock = timing.HostClock(lambda: synchronized.append(1), calls=5)
    sampler = clock.prepare(lambda: calls.append(1) or "output")
    calls.clear()
    assert sampler.sample() > 0
    assert len(calls) == 5 and synchronized == [1]
    assert sampler.output() == "output"


# ===-----------------------------------------------------------------------===#
# Runs
# ===-----------------------------------------------------------------------===#


class FakeSampler:
    graph = True

    def __init__(self, seconds, error=0.001, failure=None):
        self.seconds, self.error, self.failure = seconds, error, failure

    def sample(self):
        if self.failure:
            raise self.failure
        return self.seconds

    def output(self):
        return self.error


class FakeBench:
    """Contestants are samplers, made at once; an output is its error."""

    def __init__(self, table, seconds_each=0.0, lost=False):
        self.table, self.seconds_each, self.lost = table, seconds_each, lost
        self.time, self.checked, self.released = 0.0, [], 0

    def now(self):
        return self.time

    def contestants(self, work):
        def make(value):
            self.time += self.seconds_each
            if isinstance(value, Exception):
                raise value
            return value

        found = self.table(work) if callable(self.table) else self.table
        return [(name, lambda value=value: make(value)) for name, value in found.items()]

    def clock(self, work):
        return types.SimpleNamespace(prepare=lambda sampler: sampler)

    def check(self, work, output):
        self.checked.append(work)
        return output, 0.01

    def describe(self, error, caught):
        return str(error)

    def check_device(self):
        if self.lost:
            raise runner.DeviceLost("an illegal memory access")

    def release(self):
        self.released += 1


def do_run(bench, planned, budget=1e9, save=None):
    stream = io.StringIO()
    data = {
        "format": record.FORMAT,
        "environment": {"device": "a fake", "attnfuse": "0", "torch": "1"},
    }
    data.update(absent={"FlashInfer": "No module named 'flashinfer'"}, results=[])
    whole = runner.run(
        planned, bench, data, save or (lambda data: None), budget, 3,
        runner.Progress(stream, len(planned), bench.now), bench.now,
    )  # fmt: skip
    return data, whole, stream.getvalue()


def test_peers_that_fail_or_are_wrong_are_told_apart():
    table = {
        works.OURS: FakeSampler(20e-6),
        "right": FakeSampler(30e-6),
        "wrong": FakeSampler(1e-6, error=0.5),
        "infinite": FakeSampler(1e-6, error=float("inf")),
        "absent": RuntimeError("no kernel"),
        "dies": FakeSampler(1e-6, failure=RuntimeError("misaligned")),
    }
    work = works.get_works(["llama"])[0]
    data, whole, progress = do_run(FakeBench(table), [work])
    assert whole and data["state"] == "done"
    entries = {entry["name"]: entry for entry in data["results"][0]["entries"]}
    assert {name: entry["status"] for name, entry in entries.items()} == {
        works.OURS: "ok", "right": "ok", "wrong": "wrong", "infinite": "wrong",
        "absent": "failed", "dies": "failed",
    }  # fmt: skip
    assert entries["absent"]["reason"] == "no kernel" and entries["dies"]["reason"] == "misaligned"
    assert entries["infinite"]["error"] is None
    assert record.best_peer(data["results"][0], (works.OURS,))["name"] == "right"
    assert "20.0 us, 1.50 x right" in progress and "wrong wrong" in progress
    text = report.make(data)
    assert "| 30.0 (1.50) | WRONG (1.00) | WRONG (1.00) | failed | failed | **1.50** |" in text
    assert "wrong is WRONG: error 0.5, bound 0.01" in text and "error not finite" in text
    assert "absent failed: no kernel" in text
    assert "Absent: FlashInfer (No module named 'flashinfer')" in text


def test_what_is_wrong_with_ours_is_no_win():
    table = {works.OURS: FakeSampler(1e-6, error=1.0), "right": FakeSampler(30e-6)}
    data, _, _ = do_run(FakeBench(table), works.get_works(["llama"])[:1])
    assert report.best_ratio(data["results"][0]) is None
    assert "| WRONG (1.00) | 30.0 |" in report.make(data)


def test_the_kernel_without_rope_is_checked_as_such():
    table = {works.OURS: FakeSampler(22e-6), works.PLAIN: FakeSampler(20e-6)}
    bench = FakeBench(table)
    work = works.get_works(["rope"])[0]
    data, _, _ = do_run(bench, [work])
    assert bench.checked == [work, work.without_rope()]
    assert report.rotation_share(data["results"][0]) == pytest.approx(0.1)
    # It is ours, too: no peer.
    assert report.best_ratio(data["results"][0]) is None
    assert "| 20.0 (RoPE adds 10%) |" in report.make(data)


def test_the_budget_ends_peers_and_then_works():
    table = {works.OURS: FakeSampler(1e-6), "flex": FakeSampler(2e-6), "cudnn": FakeSampler(3e-6)}
    planned = works.get_works(["llama"])
    saved = []
    data, whole, _ = do_run(
        FakeBench(table, seconds_each=10),
        planned,
        budget=35,
        save=lambda data: saved.append(json.dumps(data)),
    )
    assert whole and len(data["results"]) == len(planned)
    statuses = [[e["status"] for e in result["entries"]] for result in data["results"]]
    assert statuses[0] == ["ok"] * 3
    # Begun in time: ours is timed, the peers that come too late are not.
    assert statuses[1] == ["ok", "skipped", "skipped"]
    assert all(set(each) == {"skipped"} for each in statuses[2:])
    assert "budget of 35 s left" in data["state"] and "Not all of it" in report.make(data)
    # What was there after each work.
    assert [len(json.loads(each)["results"]) for each in saved] == [0, 1, 2, 4]


def test_a_lost_device_ends_the_run_and_keeps_what_there_is():
    def table(work):
        bad = RuntimeError("illegal address") if work.keys == 4096 else FakeSampler(2e-6)
        return {works.OURS: FakeSampler(1e-6), "flex": bad}

    saved = []
    data, whole, _ = do_run(
        FakeBench(table, lost=True),
        works.get_works(["llama"]),
        save=lambda d: saved.append(d["state"]),
    )
    assert not whole and data["state"].startswith("ended early: an illegal memory access")
    assert saved[-1] == data["state"] and len(data["results"]) == 2
    assert record.find(data["results"][0], works.OURS)
    # Who did it, and who was to be timed with it.
    reasons = [entry["reason"] for entry in data["results"][1]["entries"]]
    assert reasons == ["the device was lost: an illegal memory access", "illegal address"]
    assert "flex failed: illegal address" in report.make(data)


def test_operands_that_cannot_be_had_end_one_work():
    def table(work):
        if work.keys == 4096:
            raise MemoryError("out of memory")
        return {works.OURS: FakeSampler(1e-6)}

    data, whole, _ = do_run(FakeBench(table), works.get_works(["llama"]))
    assert whole and data["state"] == "done"
    entries = [result["entries"] for result in data["results"]]
    assert [each[0]["status"] for each in entries] == ["ok", "failed", "ok", "ok"]
    assert entries[1] == [{"name": works.OURS, "status": "failed", "reason": "out of memory"}]


def test_records_are_written_whole(tmp_path):
    path = tmp_path / "out.json"
    record.write(path, {"format": record.FORMAT, "results": []})
    with pytest.raises(TypeError):
        record.write(path, {"format": object()})
    assert record.read(path)["results"] == []
    assert os.listdir(tmp_path) == ["out.json"]


def test_what_is_no_record_is_refused(tmp_path):
    path = tmp_path / "out.json"
    for text in ("", "[]", '{"format": 99, "results": []}', '{"format": 1}'):
        path.write_text(text)
        done = call_suite("report", str(path), status=1)
        assert done.stderr.startswith("error: ") and "Traceback" not in done.stderr
    done = call_suite("report", str(tmp_path / "none.json"), status=1)
    assert "none.json" in done.stderr


def test_arguments():
    assert (
        "expected suites of llama, dense"
        in call_suite("run", "x", "--suites", "a", status=2).stderr
    )
    assert "expected a number above 0" in call_suite("run", "x", "--budget", "0", status=2).stderr
    assert len(call_suite("list").stdout.splitlines()) == len(works.get_works())


# ===-----------------------------------------------------------------------===#
# Figures
# ===-----------------------------------------------------------------------===#


def make_record():
    """All suites at invented speeds."""

    def table(work):
        best = work.flops() / 600e12 * (1 + 600 / work.keys) + 3e-6
        names = (works.OURS, *((works.PLAIN,) if work.with_plain else ()), *work.peers)
        slower = {works.OURS: 1.08, works.PLAIN: 1.0}
        return {
            name: FakeSampler(best * slower.get(name, 1.15 + 0.2 * number))
            for number, name in enumerate(names)
        }

    data, _, _ = do_run(FakeBench(table), works.get_works(quick=True))
    data["environment"]["ceilings"] = {"tflops": 790.0, "gb_per_second": 4200.0}
    return data


def test_figures(tmp_path):
    pytest.importorskip("matplotlib")
    path, sweep, folder = tmp_path / "out.json", tmp_path / "sweep.json", tmp_path / "figures"
    record.write(path, make_record())
    results = [
        dict(
            chip="sm_90a", mask="causal", dim=128, batch=1, heads=heads, key_heads=8, queries=n, keys=n,
            none=n * 1e-8, q=n * 1.01e-8, fused=n * (1.01e-8 + n * 1e-12), split=n * 1.06e-8,
        )
        for heads in (8, 32)
        for n in (128, 256, 512, 1024, 4096)
    ]  # fmt: skip
    sweep.write_text(json.dumps({"device": "a fake", "results": results}))
    done = call_suite("plot", str(path), str(folder), "--rotations", str(sweep))
    drawn = sorted(os.path.basename(line) for line in done.stdout.splitlines())
    assert drawn == sorted(os.listdir(folder))
    stems = {name.rsplit(".", 1)[0] for name in drawn}
    assert {"tflops-llama", "tflops-gpt2", "tflops-rope", "speedups", "roofline"} <= stems
    assert {"rope-added", "rotations-sm_90a"} <= stems and "tflops-window" not in stems
    assert {stem + ending for stem in stems for ending in (".png", ".svg")} == set(drawn)
    # Text stays text.
    svg = (folder / "tflops-llama.svg").read_text()
    for text in ("sequence length N", "TFLOP/s", works.OURS, works.CUDNN):
        assert f">{text}<" in svg
    # Fused costs n * 1e-12 and split 5e-10 a token: they cross at 500, between points at 256 and 512.
    assert ">N = 496<" in (folder / "rotations-sm_90a.svg").read_text()


def test_crossovers():
    plot = pytest.importorskip("suite.plot", reason="needs matplotlib")
    assert plot.find_crossover([(4, 1, 3), (1, 3, 1)]) == pytest.approx(2)
    assert plot.find_crossover([(1, 1, 2), (4, 1, 3)]) is None


def test_a_record_of_failures_has_figures_of_nothing(tmp_path):
    plot = pytest.importorskip("suite.plot", reason="needs matplotlib")
    table = {works.OURS: RuntimeError("no GPU")}
    data, _, _ = do_run(FakeBench(table), works.get_works())
    assert plot.draw_all(data, str(tmp_path)) == []


# ===-----------------------------------------------------------------------===#
# On the CPU
# ===-----------------------------------------------------------------------===#


def test_the_reference_is_sdpa():
    torch = pytest.importorskip("torch")
    from suite import operands

    work = works.Work("x", 2, 4, 2, 48, 48, 32, dtype="f16", mask="causal", bias=("keys",))
    mine = operands.Operands(work, "cpu")
    mask = torch.zeros(48, 48).masked_fill(torch.ones(48, 48).triu(1).bool(), float("-inf"))
    output = torch.nn.functional.scaled_dot_product_attention(
        mine.q.float(), mine.k.float(), mine.v.float(), attn_mask=mask + mine.biases[0].float(),
        enable_gqa=True,
    )  # fmt: skip
    expected = operands.reference(work, mine)
    assert operands.measure_error(work, output, expected) < 1e-5
    # Errors that must be seen: one key too many, a row that was left out, NaN, another shape.
    shifted = torch.nn.functional.scaled_dot_product_attention(
        mine.q.float(), mine.k.float(), mine.v.float(), enable_gqa=True
    )
    bound = operands.BOUNDS["f16"]
    assert operands.measure_error(work, shifted, expected) > bound
    broken = output.clone()
    broken[:, :, -1] = 0
    assert operands.measure_error(work, broken, expected) > bound
    broken[:, :, -1] = float("nan")
    assert operands.measure_error(work, broken, expected) == float("inf")
    assert operands.measure_error(work, output[:, :2], expected) == float("inf")


def test_rotations_are_those_of_models():
    torch = pytest.importorskip("torch")
    from suite import contestants, operands

    for rope, rotary in (("half", 0), ("interleaved", 16)):
        work = works.Work("x", 1, 2, 2, 24, 24, 32, dtype="f16", rope=rope, rotary=rotary)
        mine = operands.Operands(work, "cpu")
        q, k = contestants._rotation(work, mine, is_compiled=False)(mine.q, mine.k)
        output = torch.nn.functional.scaled_dot_product_attention(
            q.float(), k.float(), mine.v.float()
        )
        error = operands.measure_error(work, output, operands.reference(work, mine))
        assert 0 < error < operands.BOUNDS["f16"]


def test_packages_take_what_they_can():
    pytest.importorskip("torch")
    from suite import contestants

    def count(name, suite):
        return sum(contestants._can_package(name, w) for w in works.get_works([suite]))

    assert count("flash-attn 2", "llama") == 4 and count("Triton tutorial", "llama") == 0
    assert count("flash-attn 2", "gpt2") == 16 and count("flash-attn 3", "gpt2") == 12
    assert count("FlashInfer", "gpt2") == 8 and count("Triton tutorial", "dense") == 8
    for name in works.PACKAGES:
        for suite in ("rope", "bias", "blocks", "portable", "host"):
            assert count(name, suite) == 0


def test_a_rehearsal(tmp_path):
    """Every suite, through the package, on the CPU."""
    pytest.importorskip("torch")
    pytest.importorskip("attnfuse")
    path = tmp_path / "out.json"
    done = call_suite("run", str(path), "--device", "cpu", "--tiny")
    data = record.read(path)
    assert data["state"] == "done" and f"{path}: done" in done.stderr
    assert set(data["absent"]) <= set(works.PACKAGES)
    assert {r["work"]["suite"] for r in data["results"]} == set(works.SUITES)
    for result in data["results"]:
        # A peer may lack a CPU's kernel, but none computes anything else.
        entries = {entry["name"]: entry for entry in result["entries"]}
        assert entries[works.OURS]["status"] == "ok", entries[works.OURS]
        for name, entry in entries.items():
            assert entry["status"] != "wrong", (result["label"], entry)
            if name.startswith((works.PLAIN, "flex", works.COMPILED)):
                assert entry["status"] == "ok", (result["label"], entry)
        assert (works.PLAIN in entries) == result["work"]["with_plain"]
    text = call_suite("report", str(path)).stdout
    for suite in works.SUITES:
        assert f"### {suite}: " in text
    assert "SDPA cuDNN failed: " in text
