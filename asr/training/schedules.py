"""How things change over a run: pure functions of how far it has come."""

from __future__ import annotations

import math


def progress(
    step: int, max_steps: int, elapsed: float = 0.0, max_time: float | None = None
) -> float:
    """The share of the run that is over, in [0, 1]: of its steps, or of its seconds if further.

    ``max_steps`` below 1 means that only time bounds the run. A run bounded by time is by nature
    not repeatable bit for bit; without ``max_time`` this is a function of the step alone.
    """
    by_steps = step / max_steps if max_steps > 0 else 0.0
    by_time = elapsed / max_time if max_time else 0.0
    return min(1.0, max(by_steps, by_time))


def warmup_cosine(step: int, progress: float, *, warmup: int, floor: float = 0.0) -> float:
    """Factor on the learning rate: linear up over ``warmup`` steps, half a cosine to ``floor``.

    Loshchilov & Hutter 2017, eq. 5, without restarts; the cosine runs over the whole of the run
    and the warm-up only caps it, so the two meet without a jump however the run is bounded.
    """
    cosine = floor + (1 - floor) * 0.5 * (1 + math.cos(math.pi * progress))
    return min(1.0, (step + 1) / warmup) * cosine if warmup > 0 else cosine


def fade_out(progress: float, share: float) -> float:
    """1 at the start, 0 once ``share`` of the run is over, linear between."""
    return max(0.0, 1.0 - progress / share) if share > 0 else 0.0


def fade_in(progress: float, share: float) -> float:
    """0 at the start, 1 once ``share`` of the run is over, linear between."""
    return min(1.0, progress / share) if share > 0 else 1.0
