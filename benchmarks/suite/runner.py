# ===-----------------------------------------------------------------------===#
# Licensed under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
# ===-----------------------------------------------------------------------===#
"""One work after the other. What touches a device is behind ``Bench``, of which tests have their own."""

import time
import warnings

from . import record, timing, works


class DeviceLost(Exception):
    """The device serves nobody in this process any more."""


class Progress:
    """A line of how far the run is; one that is written over where it is seen."""

    def __init__(self, stream, total, now=time.monotonic):
        self.stream, self.total, self.now = stream, total, now
        self.start, self.done, self.width = now(), 0, 0
        self.is_terminal = stream.isatty()

    def _put(self, text, end):
        if self.is_terminal:
            text, self.width = text.ljust(self.width), len(text)
            self.stream.write("\r" + text + (end if end else ""))
        elif end:
            self.stream.write(text + end)
        self.stream.flush()

    def begin(self, work):
        self._put(
            f"[{self.done + 1:3}/{self.total}] {work.suite}: {work.label}, {work.shape} ...", ""
        )

    def end(self, work, text):
        self.done += 1
        elapsed = self.now() - self.start
        left = elapsed / self.done * (self.total - self.done)
        self._put(
            f"[{self.done:3}/{self.total}] {work.suite}: {work.label}, {work.shape}: {text}"
            f"  ({elapsed:.0f} s, about {left:.0f} s to go)",
            "\n",
        )


def summarize(entries):
    """For the progress line."""
    result = {"entries": entries}
    ours, peer = record.find(result, works.OURS), record.best_peer(
        result, (works.OURS, works.PLAIN)
    )
    trouble = [
        f"{e['name']} {e['status']}" for e in entries if e["status"] not in ("ok", "skipped")
    ]
    if ours:
        text = f"{ours['median_us']:.1f} us"
        if peer:
            text += f", {peer['median_us'] / ours['median_us']:.2f} x {peer['name']}"
    else:
        text = "not timed"
    return text + (f" [{'; '.join(trouble)}]" if trouble else "")


def time_work(work, bench, rounds, out_of_time, entries):
    """Puts the entries of one work into ``entries``, also those from before an exception."""
    ready = []
    for name, make in bench.contestants(work):
        entry = {"name": name, "status": "ok"}
        entries.append(entry)
        # attnfuse is timed even then: a work is begun only while there is time.
        if entries[1:] and out_of_time():
            entry.update(status="skipped", reason="the budget is spent")
            continue
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            try:
                sampler = bench.clock(work).prepare(make())
            except Exception as error:  # pylint: disable=broad-except
                entry.update(status="failed", reason=bench.describe(error, caught))
                bench.check_device()
                continue
        ready.append((entry, sampler))
    # One that fails while it is timed takes the samples of none of the others with it.
    samplers = [_Guarded(sampler) for _, sampler in ready]
    times = timing.sample_in_turns(samplers, rounds)
    for (entry, sampler), guarded, samples in zip(ready, samplers, times):
        try:
            if guarded.error:
                raise guarded.error
            reference_of = work.without_rope() if entry["name"] == works.PLAIN else work
            error, bound = bench.check(reference_of, sampler.output())
        except Exception as error:  # pylint: disable=broad-except
            entry.update(status="failed", reason=bench.describe(error, []))
            bench.check_device()
            continue
        entry.update(timing.summarize(samples), graph=sampler.graph)
        if getattr(sampler, "reason", None):
            entry["graph_reason"] = sampler.reason
        # JSON has no infinity.
        entry.update(error=error if error < 1e30 else None, bound=bound)
        if not error <= bound:
            entry["status"] = "wrong"


class _Guarded:
    def __init__(self, sampler):
        self.sampler, self.error = sampler, None

    def sample(self):
        if self.error is None:
            try:
                return self.sampler.sample()
            except Exception as error:  # pylint: disable=broad-except
                self.error = error
        return 0.0


def _time_safely(work, bench, rounds, out_of_time, entries):
    """The DeviceLost that ends the run, None if it may go on."""
    try:
        try:
            time_work(work, bench, rounds, out_of_time, entries)
        except DeviceLost:
            raise
        except Exception as error:  # pylint: disable=broad-except
            # Of the operands: their memory, say.
            reason = bench.describe(error, [])
            bench.check_device()
            _give_up(entries, reason)
        return None
    except DeviceLost as lost:
        _give_up(entries, f"the device was lost: {lost}")
        return lost


def _give_up(entries, reason):
    """What was to be timed has failed."""
    if not entries:
        entries.append({"name": works.OURS, "status": "ok"})
    for entry in entries:
        if entry["status"] == "ok" and not record.is_timed(entry):
            entry.update(status="failed", reason=reason)


def run(planned, bench, data, save, budget, rounds, progress, now=time.monotonic):
    """Times the works into ``data``, which ``save`` is called with after each. True if all went to the
    end; ``data["state"]`` says so, too."""
    start = now()

    def out_of_time():
        return now() - start > budget

    data["state"] = "running"
    save(data)
    for work in planned:
        result = {"work": work.as_dict(), "label": work.label, "shape": work.shape}
        result.update(flops=work.flops(), bytes=work.bytes())
        if out_of_time():
            names = [works.OURS, *work.peers]
            reason = "the budget is spent"
            result["entries"] = [dict(name=n, status="skipped", reason=reason) for n in names]
            data["results"].append(result)
            continue
        progress.begin(work)
        entries = result["entries"] = []
        lost = _time_safely(work, bench, rounds, out_of_time, entries)
        if lost:
            data["results"].append(result)
            data.update(state=f"ended early: {lost}", seconds=round(now() - start, 1))
            save(data)
            return False
        data["results"].append(result)
        data["seconds"] = round(now() - start, 1)
        save(data)
        progress.end(work, summarize(entries))
        bench.release()
    skipped = sum(e["status"] == "skipped" for r in data["results"] for e in r["entries"])
    data["state"] = f"the budget of {budget:g} s left {skipped} timings out" if skipped else "done"
    data["seconds"] = round(now() - start, 1)
    save(data)
    return True
