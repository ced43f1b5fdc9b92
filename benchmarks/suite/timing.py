# ===-----------------------------------------------------------------------===#
# Licensed under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
# ===-----------------------------------------------------------------------===#
"""How long calls take.

A clock's ``prepare(call)`` gives a sampler: ``sampler.sample()`` is the seconds of one call, the mean
of a few in a row, and ``sampler.output()`` what the timed calls compute. Contestants of one work are
sampled in turns, so that clocks and temperature are the same for all.
"""

import random
import statistics
import time

#: A sample lasts about this long, in seconds, so that starting it does not count.
_SAMPLE = 1e-3
_MOST_CALLS = 32
#: Calls before anything is timed. attnfuse takes its quick path after eight of the same sizes.
_WARM_UP = 12


class CpuClock:
    """Wall time; for the CPU."""

    has_graphs = False

    def prepare(self, call):
        output = call()

        class Sampler:
            graph = False

            def sample(self):
                start = time.perf_counter()
                call()
                return time.perf_counter() - start

            def output(self):
                return output

        return Sampler()


class HostClock:
    """How long a call keeps the host: of kernels so short that the GPU is done before it."""

    def __init__(self, synchronize, calls=400):
        self.synchronize, self.calls = synchronize, calls

    def prepare(self, call):
        clock = self
        for _ in range(_WARM_UP):
            call()

        class Sampler:
            graph = False

            def sample(self):
                clock.synchronize()
                start = time.perf_counter()
                for _ in range(clock.calls):
                    call()
                return (time.perf_counter() - start) / clock.calls

            def output(self):
                return call()

        return Sampler()


class CudaClock:
    """Events around a CUDA graph of a few calls; around the calls themselves, if they refuse to be
    captured."""

    def __init__(self, torch):
        self.torch = torch

    def _measure(self, function):
        torch = self.torch
        start, end = (torch.cuda.Event(enable_timing=True) for _ in range(2))
        # The GPU waits a little, so that the launch is there when the first event passes.
        torch.cuda._sleep(100_000)
        start.record()
        function()
        end.record()
        end.synchronize()
        return start.elapsed_time(end) * 1e-3

    def prepare(self, call):
        torch, clock = self.torch, self
        stream = torch.cuda.Stream()
        stream.wait_stream(torch.cuda.current_stream())
        with torch.cuda.stream(stream):
            for _ in range(_WARM_UP):
                call()
        torch.cuda.current_stream().wait_stream(stream)
        torch.cuda.synchronize()
        seconds = min(self._measure(call) for _ in range(3))
        count = max(1, min(_MOST_CALLS, round(_SAMPLE / max(seconds, 1e-6))))
        kept = []

        def calls():
            for _ in range(count):
                output = call()
            # The last output outlives the calls; the others share their memory.
            kept[:] = [output]

        graph, reason = torch.cuda.CUDAGraph(), None
        try:
            with torch.cuda.graph(graph):
                calls()
            replay = graph.replay
            # Loads the graph.
            replay()
            torch.cuda.synchronize()
        except Exception as error:  # pylint: disable=broad-except
            graph, replay, reason = None, calls, str(error).split("\n")[0]
            torch.cuda.synchronize()

        class Sampler:
            def __init__(self):
                self.graph, self.reason = graph is not None, reason
                # A graph has the addresses of what the call reads, and does not keep it alive.
                self.call = call

            def sample(self):
                return clock._measure(replay) / count

            def output(self):
                # What is compared is what a timed call writes.
                if kept:
                    kept[0].fill_(float("nan"))
                replay()
                torch.cuda.synchronize()
                return kept[0]

        return Sampler()


def sample_in_turns(samplers, rounds):
    """The samples of each: ``rounds`` rounds of one sample each, every round in an order of its own. A
    GPU that is limited by its power is slower after some calls than after others, so none may always
    follow the same."""
    times = [[] for _ in samplers]
    shuffle = random.Random(0).shuffle
    order = list(range(len(samplers)))
    for _ in range(rounds):
        shuffle(order)
        for index in order:
            times[index].append(samplers[index].sample())
    return times


def summarize(times):
    """Median and quartiles, in microseconds."""
    if len(times) > 1:
        q1, median, q3 = statistics.quantiles(times, n=4, method="inclusive")
    else:
        q1 = median = q3 = times[0]
    digits = {"median_us": median, "q1_us": q1, "q3_us": q3}
    return {name: round(value * 1e6, 3) for name, value in digits.items()} | {"samples": len(times)}
