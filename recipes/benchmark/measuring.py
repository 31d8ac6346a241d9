"""What the scripts of this folder measure with: time in turn, memory of a process, JSON lines."""

from __future__ import annotations

import ctypes
import importlib.util
import json
import logging
import math
import resource
import statistics
import time
import warnings
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

MIB = 2**20


def show(name: str, metric: str, value: float, unit: str, **more: Any) -> None:
    """One measurement as a line of JSON."""
    line = {"name": name, "metric": metric, "value": float(f"{value:.5g}"), "unit": unit} | more
    print(json.dumps(line), flush=True)


def installed(name: str) -> bool:
    """Whether a peer can be imported."""
    return importlib.util.find_spec(name) is not None


def quiet() -> None:
    """Peers' warnings and log lines are not what is measured; off for the whole process."""
    warnings.filterwarnings("ignore")
    logging.disable(logging.WARNING)


def interleaved(calls: Mapping[str, Callable[[], object]], repeats: int) -> dict[str, list[float]]:
    """Seconds of each in each round, one after another, so that a busy machine slows all alike.

    A first round is thrown away.
    """
    for call in calls.values():
        call()
    times: dict[str, list[float]] = {name: [] for name in calls}
    for _ in range(repeats):
        for name, call in calls.items():
            start = time.perf_counter()
            call()
            times[name].append(time.perf_counter() - start)
    return times


def report_times(
    times: Mapping[str, Sequence[float]], peers: Sequence[str], metric: str, **more: Any
) -> None:
    """The median of each in ms, and how many times faster than each peer: the median of rounds."""
    for name, seconds in times.items():
        show(name, metric, 1000 * statistics.median(seconds), "ms", **more)
    for peer in peers:
        for name in (name for name in times if name not in peers):
            ratios = [theirs / own for theirs, own in zip(times[peer], times[name], strict=True)]
            show(f"{name}/{peer}", "speedup", statistics.median(ratios), "ratio", **more)


def peak_memory(call: Callable[[], object], warm: Callable[[], object]) -> int:
    """Bytes that ``call`` takes at most beyond what the process holds before.

    ``warm`` is called first, something small of the same kind, so that libraries and threads are
    there. What the allocator has kept of memory that is no longer used is given back before, where
    the C library can do that (glibc): else ``call`` would be served from it, unseen.
    """
    warm()
    trim = getattr(ctypes.CDLL(None), "malloc_trim", None)
    if trim is not None:
        trim(0)
    clear = Path("/proc/self/clear_refs")
    if clear.exists():
        clear.write_text("5")
        before = _status("VmRSS")
        call()
        return _status("VmHWM") - before
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    call()
    return 1024 * (resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before)


def _status(key: str) -> int:
    lines = Path("/proc/self/status").read_text().splitlines()
    return 1024 * next(int(line.split()[1]) for line in lines if line.startswith(f"{key}:"))


def growth(sizes: Sequence[float], values: Sequence[float]) -> float:
    """The exponent e of ``value = c size^e`` that fits best: the slope of the logarithms."""
    return statistics.linear_regression(
        [math.log(size) for size in sizes], [math.log(value) for value in values]
    ).slope
