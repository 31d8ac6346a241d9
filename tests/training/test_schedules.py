from __future__ import annotations

import math
from itertools import pairwise, product

import pytest

from asr.training import schedules
from asr.training.randomness import mixed


def test_progress_is_the_further_of_steps_and_time() -> None:
    assert schedules.progress(25, 100) == 0.25
    assert schedules.progress(25, 100, elapsed=50.0, max_time=100.0) == 0.5
    assert schedules.progress(75, 100, elapsed=50.0, max_time=100.0) == 0.75
    assert schedules.progress(75, 0, elapsed=10.0, max_time=40.0) == 0.25
    assert schedules.progress(200, 100) == 1.0


def test_warmup_then_cosine_to_the_floor() -> None:
    def rate(step: int) -> float:
        return schedules.warmup_cosine(step, step / 100, warmup=10, floor=0.1)

    rates = [rate(step) for step in range(101)]
    assert rates[0] < 0.11 and max(rates) == max(rates[8:12])
    assert rates[50] == pytest.approx(0.1 + 0.9 * 0.5)
    assert rates[-1] == pytest.approx(0.1)
    assert all(a >= b for a, b in pairwise(rates[10:]))
    assert schedules.warmup_cosine(0, 0.0, warmup=0) == 1.0


@pytest.mark.parametrize("share", [0.0, 0.3, 1.0])
def test_fades_meet_their_ends(share: float) -> None:
    assert schedules.fade_in(share, share) == 1.0 and schedules.fade_out(share, share) == 0.0
    if share:
        assert schedules.fade_in(0.0, share) == 0.0 and schedules.fade_out(0.0, share) == 1.0
        assert math.isclose(schedules.fade_in(share / 4, share), 0.25)
        assert math.isclose(schedules.fade_out(share / 4, share), 0.75)


def test_seeds_of_neighbouring_steps_are_unrelated() -> None:
    seeds = {mixed(*parts) for parts in product(range(5), range(5), range(20))}
    assert len(seeds) == 500
    assert all(0 <= seed < 2**63 for seed in seeds)
    assert mixed(1, 2, 3) == mixed(1, 2, 3)
