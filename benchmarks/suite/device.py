# ===-----------------------------------------------------------------------===#
# Licensed under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
# ===-----------------------------------------------------------------------===#
"""The machine that a run is on."""

import concurrent.futures
import dataclasses
import gc
import os
import platform

import torch

import attnfuse

from . import contestants, timing
from .operands import BOUNDS, Operands, measure_error, reference
from .runner import DeviceLost


class Bench:
    """Contestants, clocks and references on a device of PyTorch's."""

    def __init__(self, device):
        self.device = device
        self.is_cuda = torch.device(device).type == "cuda"
        contestants.allow_many_compilations()
        # Of the work in turn.
        self.operands = self.expected = None

    def contestants(self, work):
        self.operands = Operands(work, self.device)
        self.expected = {}
        return contestants.get_contestants(work, self.operands)

    def clock(self, work):
        if work.clock == "host":
            return timing.HostClock(self.synchronize, calls=400 if self.is_cuda else 3)
        return timing.CudaClock(torch) if self.is_cuda else timing.CpuClock()

    def check(self, work, output):
        if work not in self.expected:
            self.expected[work] = reference(work, self.operands)
        return measure_error(work, output, self.expected[work]), BOUNDS[work.dtype]

    def describe(self, error, caught):
        return contestants.describe_failure(error, caught)

    def synchronize(self):
        if self.is_cuda:
            torch.cuda.synchronize()

    def check_device(self):
        """After a failure: an illegal access ends all work of the process."""
        try:
            self.synchronize()
        except Exception as error:  # pylint: disable=broad-except
            raise DeviceLost(contestants.describe(error)) from error

    def release(self):
        self.operands = self.expected = None
        gc.collect()
        if self.is_cuda:
            torch.cuda.empty_cache()

    def prepare(self, planned):
        """Compiles and loads attnfuse's kernels of all works, several at a time: a kernel serves all
        lengths, so small operands do. What fails here fails again, and is reported, in its turn."""
        small = {}
        for work in planned:
            for each in (work, work.without_rope()) if work.with_plain else (work,):
                # Forced chips are no matter of several threads.
                if not each.chip:
                    small.setdefault(each.structure, each)

        def compile_one(work):
            length = 2 * work.block or 128
            queries = length if work.queries == work.keys else min(work.queries, length)
            # A batch of one would be a bias that is broadcast over it: other code.
            shrunk = dataclasses.replace(work, batch=2, queries=queries, keys=length)
            try:
                with torch.no_grad():
                    contestants.make_ours(shrunk, Operands(shrunk, self.device))()
            except Exception:  # pylint: disable=broad-except
                pass

        with concurrent.futures.ThreadPoolExecutor(max(1, min(16, os.cpu_count() or 1))) as pool:
            list(pool.map(compile_one, small.values()))
        self.check_device()
        return len(small)

    def environment(self):
        facts = {
            "attnfuse": attnfuse.__version__,
            "torch": torch.__version__,
            "python": platform.python_version(),
            "device": "CPU",
        }
        if self.is_cuda:
            properties = torch.cuda.get_device_properties(0)
            facts.update(
                device=properties.name,
                processors=properties.multi_processor_count,
                capability=f"{properties.major}.{properties.minor}",
                cuda=torch.version.cuda,
                cudnn=torch.backends.cudnn.version(),
                ceilings=self._measure_ceilings(),
            )
        try:
            import triton

            facts["triton"] = triton.__version__
        except ImportError:
            pass
        return facts

    def _measure_ceilings(self):
        """What a large matrix product and a large copy reach, for the roofline."""
        clock = timing.CudaClock(torch)
        n = 8192
        a, b = (torch.randn(n, n, device=self.device, dtype=torch.bfloat16) for _ in range(2))
        product = clock.prepare(lambda: a @ b)
        source = torch.empty(1 << 29, device=self.device, dtype=torch.float32)
        target = torch.empty_like(source)

        moved = clock.prepare(lambda: target.copy_(source))
        times = timing.sample_in_turns([product, moved], 9)
        seconds = [sorted(each)[len(each) // 2] for each in times]
        self.release()
        return {
            "tflops": round(2 * n**3 / seconds[0] / 1e12, 1),
            "gb_per_second": round(2 * 4 * source.numel() / seconds[1] / 1e9),
        }
