"""Planted alignments have known figures, and nothing is ever NaN."""

from __future__ import annotations

import math

import pytest
import torch

from asr.inspection import diagnostics
from asr.inspection.diagnostics import MEANINGS, measure
from tests.inspection.planted import SHIFT, record, rows


def diagonal(tokens: int = 10, width: int = 3):
    return rows(*((u * width, (u + 1) * width) for u in range(tokens)), frames=tokens * width)


def test_a_perfect_diagonal():
    figures = measure(record(diagonal()))
    assert figures.keys() == MEANINGS.keys() - {"ctc_agreement"}
    assert figures["entropy"] == pytest.approx(math.log(3), abs=1e-6)
    assert figures["relative_entropy"] == pytest.approx(math.log(3) / math.log(30), abs=1e-6)
    assert figures["monotonicity"] == figures["coverage"] == 1.0
    assert figures["longest_skip"] == pytest.approx(3 * SHIFT)
    for name in ("backward_jumps", "longest_backward_jump", "unattended_tail"):
        assert figures[name] == 0.0, name


def test_uniform_attention_has_formed_no_alignment():
    weights = torch.full((8, 2, 50), 1 / 50)
    figures = measure(record(weights))
    assert figures["entropy"] == pytest.approx(math.log(50), abs=1e-5)
    assert figures["relative_entropy"] == pytest.approx(1.0)


def test_entropy_is_the_mean_over_heads_and_real_tokens():
    weights = torch.zeros(2, 3, 2, 8)
    weights[..., 0] = 1.0
    weights[0, 1, 1] = 1 / 8
    weights[1, 2] = 1 / 8  # a padded token
    mask = torch.tensor([[True, True, True], [True, True, False]])
    found = diagnostics.entropy(weights, mask)
    assert found.tolist() == pytest.approx([math.log(8) / 6, 0.0])


def test_a_planted_jump_back_is_found_in_seconds():
    spans = [(0, 1), (10, 11), (20, 21), (5, 6), (30, 31)]
    figures = measure(record(rows(*spans, frames=31)))
    assert figures["backward_jumps"] == 1
    assert figures["monotonicity"] == pytest.approx(3 / 4)
    assert figures["longest_backward_jump"] == pytest.approx(15 * SHIFT)
    assert figures["longest_skip"] == pytest.approx(25 * SHIFT)


@pytest.mark.parametrize("deaf", [0, 2, 4])
def test_a_token_that_heard_nothing_is_no_jump(deaf):
    """Its row is all 0, as when monotonic attention finds no place to stop."""
    weights = diagonal(5)
    weights[deaf] = 0.0
    figures = measure(record(weights))
    assert figures["backward_jumps"] == 0 and figures["monotonicity"] == 1.0
    assert figures["longest_skip"] == pytest.approx(3 * SHIFT)


def test_jitter_is_no_jump():
    back = int(diagnostics.TOLERANCE / SHIFT)
    spans = [(10, 11), (10 - back, 11 - back), (11, 12)]
    assert measure(record(rows(*spans, frames=20)))["backward_jumps"] == 0


def test_stray_attention_does_not_move_the_centre():
    weights = rows((2, 3), (4, 5), frames=500)
    weights[0] *= 0.7
    weights[0, 0, 450] = 0.3
    assert measure(record(weights))["monotonicity"] == 1.0


def test_batched_monotonicity_ignores_padding():
    weights = torch.stack([rows((5, 6), (0, 1), (8, 9), frames=9), diagonal(3)])
    weights[1, 2] = 0
    mask = torch.tensor([[True, True, True], [True, True, False]])
    assert diagnostics.monotonicity(weights, mask).tolist() == [0.5, 1.0]
    assert diagnostics.monotonicity(weights, mask, tolerance=5).tolist() == [1.0, 1.0]


def test_a_text_that_stops_early_leaves_a_tail_and_eos_cannot_hide_it():
    weights = rows((0, 4), (4, 8), (99, 100), frames=100)
    figures = measure(record(weights, ("a", "b", "<eos>")))
    heard = 8 * SHIFT + diagnostics.REACH
    assert figures["unattended_tail"] == pytest.approx(4.0 - heard, abs=2 * SHIFT)
    assert figures["coverage"] == pytest.approx(heard / 4.0, abs=0.03)


def test_silence_is_not_missed():
    speech = torch.zeros(100, dtype=torch.bool)
    speech[:8] = True
    weights = rows((0, 4), (4, 8), frames=100)
    figures = measure(record(weights), speech)
    assert figures["coverage"] == 1.0 and figures["unattended_tail"] == 0.0
    assert measure(record(weights), speech[:90]) == figures  # a frame or so fewer is fine


def test_coverage_of_a_batch_counts_real_frames_only():
    weights = torch.zeros(2, 2, 1, 60)
    weights[:, 0, :, 10] = weights[:, 1, :, 30] = 1.0
    frames = torch.arange(60) < torch.tensor([[60], [40]])
    mask = torch.tensor([[True, True], [True, False]])
    found = diagnostics.coverage(weights, mask, frames, reach=2)
    assert found.tolist() == pytest.approx([10 / 60, 5 / 40])


def test_loud_finds_the_planted_burst():
    samples = 1e-4 * torch.randn(16000, generator=torch.Generator().manual_seed(0))
    samples[6400:9600] += 0.5 * torch.sin(torch.arange(3200) * 0.3)
    found = diagnostics.loud(samples, 16000, SHIFT)
    assert found.nonzero().flatten().tolist() == [10, 11, 12, 13, 14]
    assert not diagnostics.loud(torch.zeros(16000), 16000, SHIFT).any()
    assert len(diagnostics.loud(torch.zeros(0), 16000, SHIFT)) == 0


@pytest.mark.parametrize("tokens", [0, 1, 3])
@pytest.mark.parametrize("frames", [0, 1, 40])
def test_never_nan(tokens, frames):
    weights = torch.zeros(tokens, 2, frames)
    if frames:
        weights[..., 0] = 1.0
    figures = measure(record(weights), torch.zeros(frames, dtype=torch.bool))
    assert all(math.isfinite(value) for value in figures.values()), figures
    batch, mask = weights[None], torch.zeros(1, tokens, dtype=torch.bool)
    none = torch.zeros(1, frames, dtype=torch.bool)
    for found in (
        diagnostics.entropy(batch, mask),
        diagnostics.relative_entropy(batch, mask, none),
        diagnostics.monotonicity(batch, mask),
        diagnostics.coverage(batch, mask, none),
    ):
        assert found.isfinite().all() and found.shape == (1,)
