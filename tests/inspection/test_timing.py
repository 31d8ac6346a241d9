"""Planted alignments are recovered; whatever the weights, word times are in order and inside."""

from __future__ import annotations

import itertools
import math
import random

import pytest
import torch

from asr.inspection.timing import (
    TRIM,
    estimate_shift,
    monotonic_runs,
    stretch,
    word_times,
)
from asr.types import Word
from tests.inspection.planted import SHIFT, record, rows

SPANS = [(2, 5), (5, 9), (12, 13), (15, 20)]


def best_by_hand(weights: torch.Tensor) -> float:
    """The most attention any cut into runs can hold, by trying them all."""
    tokens, frames = weights.shape
    cuts = itertools.combinations(range(1, frames), tokens - 1)
    return max(
        sum(
            float(weights[u, a:b].sum())
            for u, (a, b) in enumerate(itertools.pairwise((0, *cut, frames)))
        )
        for cut in cuts
    )


def test_planted_runs_come_back():
    assert monotonic_runs(rows(*SPANS, frames=22)[:, 0]).tolist() == [list(s) for s in SPANS]


def test_planted_runs_come_back_through_noise():
    torch.manual_seed(0)
    noisy = 0.9 * rows(*SPANS, frames=22) + 0.1 * torch.rand(4, 1, 22).softmax(-1)
    for found, planted in zip(monotonic_runs(noisy[:, 0]).tolist(), SPANS, strict=True):
        assert found == pytest.approx(planted, abs=1)


@pytest.mark.parametrize("seed", range(20))
def test_no_other_cut_holds_more(seed):
    random.seed(seed)
    tokens = random.randint(1, 4)
    frames = random.randint(tokens, 9)
    weights = torch.rand(tokens, frames, generator=torch.Generator().manual_seed(seed)) ** 3
    runs = monotonic_runs(weights).long()
    held = sum(float(weights[u, a:b].sum()) for u, (a, b) in enumerate(runs.tolist()))
    # Trimming takes weak frames off the runs, never the frames that hold the most.
    assert best_by_hand(weights) >= held - 1e-6
    assert held >= best_by_hand(weights) - TRIM * frames * float(weights.max())
    assert (runs[1:, 0] >= runs[:-1, 1]).all()


def test_one_stray_row_does_not_move_its_neighbours():
    weights = rows((0, 4), (30, 34), (8, 12), (12, 16), frames=40)[:, 0]
    runs = monotonic_runs(weights)
    assert runs[0].tolist() == [0, 4]
    assert runs[2].tolist() == [8, 12] and runs[3].tolist() == [12, 16]


def test_onsets_are_exact_and_confidence_is_the_geometric_mean():
    made = record(rows(*SPANS, frames=22, heads=2), start=7.0)
    words = word_times(made, [("ab", 0, 2), ("cd", 2, 4)], [math.log(0.9), math.log(0.4), 0, 0])
    assert [word.word for word in words] == ["ab", "cd"]
    assert [(w.start, w.end) for w in words] == [
        pytest.approx((2 * SHIFT, 9 * SHIFT)),
        pytest.approx((12 * SHIFT, 20 * SHIFT)),
    ]
    assert words[0].confidence == pytest.approx(0.6) and words[1].confidence == 1.0


def test_the_shift_of_a_model_is_taken_off_and_can_be_estimated():
    made, spans = record(rows(*SPANS, frames=22)), [("a", 0, 1), ("b", 2, 3)]
    plain = word_times(made, spans, [0.0] * 4)
    moved = word_times(made, spans, [0.0] * 4, onset_shift=0.03)
    assert [w.start for w in moved] == pytest.approx([w.start - 0.03 for w in plain])
    assert estimate_shift(plain, [w.start for w in moved]) == pytest.approx(0.03)
    assert estimate_shift([], []) == 0.0
    with pytest.raises(ValueError, match="found 2 words, known 1"):
        estimate_shift(plain, [0.0])


@pytest.mark.parametrize("seed", range(30))
def test_times_are_always_there_in_order_and_inside(seed):
    generator = torch.Generator().manual_seed(seed)
    tokens, frames = (int(torch.randint(0, 12, (), generator=generator)) for _ in range(2))
    weights = torch.rand(tokens, 2, frames, generator=generator)
    duration = max(0.0, frames * SHIFT - 0.02)
    shift = 0.3 * (seed % 3 - 1)
    spans = [(f"w{u}", u, u + 1 + seed % 2) for u in range(tokens - 1)]  # some share a token
    words = word_times(
        record(weights, duration=duration), spans, [-1.0] * tokens, onset_shift=shift
    )
    assert [w.word for w in words] == [span[0] for span in spans]
    times = [time for w in words for time in (w.start, w.end)]
    assert times == sorted(times)
    assert all(0 <= time <= duration for time in times)
    assert all(0 <= w.confidence <= 1 for w in words)


def test_more_tokens_than_frames_share_them():
    runs = monotonic_runs(torch.ones(7, 3))
    assert (runs[:, 1] > runs[:, 0]).all() and (runs[1:, 0] >= runs[:-1, 1]).all()
    assert float(runs[-1, 1]) <= 3


def test_the_stretch_of_a_token_is_around_its_peak():
    row = torch.tensor([0.3, 0.0, 0.1, 0.5, 0.1, 0.0])
    assert stretch(row, SHIFT) == pytest.approx((2 * SHIFT, 5 * SHIFT))
    assert stretch(torch.zeros(4), SHIFT) == stretch(torch.zeros(0), SHIFT) == (0.0, 0.0)
    assert stretch(torch.ones(4), SHIFT) == pytest.approx((0.0, 4 * SHIFT))


def test_a_word_has_its_fields():
    (word,) = word_times(record(rows((0, 2), frames=2)), [("a", 0, 1)], [0.0])
    assert word == Word("a", 0.0, pytest.approx(2 * SHIFT), 1.0)
