"""Cutting long audio: nothing lost, nothing too long, and in the pauses."""

from __future__ import annotations

import pytest
import torch

from asr.inference.pieces import Piece, batches, cut, padded

RATE = 8000


def noise(seconds: float, seed: int = 0) -> torch.Tensor:
    return torch.randn(round(seconds * RATE), generator=torch.Generator().manual_seed(seed)) * 0.1


def borders(sound: torch.Tensor, longest: float) -> list[int]:
    """Where it is cut, in samples, its end included."""
    at, found = 0, []
    for piece in cut(0, [sound], RATE, longest):
        at += len(piece.samples)
        found.append(at)
    return found


@pytest.mark.parametrize("samples", [0, 1, 79, 80, 81, 2400, 80_000, 80_001, 240_123])
@pytest.mark.parametrize("longest", [0.05, 1.0, 9.99, 10.0, 60.0])
def test_every_sample_is_in_one_piece_and_none_is_too_long(samples, longest):
    sound = torch.rand(samples, generator=torch.Generator().manual_seed(samples)) - 0.5
    parts = Piece(7, sound, RATE, start=2.0).split(longest)
    assert torch.equal(torch.cat([part.samples for part in parts] or [sound]), sound)
    assert all(0 < part.duration <= longest for part in parts)
    at = 0
    for part in parts:
        assert part.source == 7
        assert part.start == pytest.approx(2.0 + at / RATE)
        at += len(part.samples)
    if samples:
        assert len(parts) <= max(1, 3 * samples / RATE / longest + 1)


def test_short_audio_is_left_whole():
    assert borders(noise(9.0), 9.0) == [9 * RATE]


def test_cuts_fall_into_the_planted_pauses():
    pauses = [(7.0, 7.5), (15.2, 15.6), (22.0, 23.0)]
    sound = noise(30.0)
    for start, end in pauses:
        sound[round(start * RATE) : round(end * RATE)] *= 0.01
    *found, _ = borders(sound, 10.0)
    assert len(found) == len(pauses)
    for border, (start, end) in zip(found, pauses, strict=True):
        assert start + 0.1 < border / RATE < end - 0.1


@pytest.mark.parametrize("seconds", [2.0, 31.7, 60.0])
@pytest.mark.parametrize("longest", [0.5, 3.0, 10.0])
def test_how_sound_comes_in_blocks_makes_no_difference(seconds, longest):
    sound = noise(seconds) * torch.rand(round(seconds * RATE)).round()
    whole = list(cut(0, [sound], RATE, longest, start=1.5))
    for size in (997, 8000, 100_000):
        parts = list(cut(0, sound.split(size), RATE, longest, start=1.5))
        assert [(p.start, len(p.samples)) for p in parts] == [
            (p.start, len(p.samples)) for p in whole
        ]
        assert all(torch.equal(p.samples, w.samples) for p, w in zip(parts, whole, strict=True))


def test_no_more_is_waited_for_than_a_cut_depends_on():
    """A piece comes out as soon as its end is certain, long before the sound is over."""
    taken = 0

    def blocks():
        nonlocal taken
        for block in noise(100.0).split(RATE):
            taken += 1
            yield block

    for number, piece in enumerate(cut(0, blocks(), RATE, 9.0)):
        assert taken <= piece.start + 9 + 3 + 1.2 or number > 8


def test_a_click_in_a_pause_and_a_dip_in_a_word_do_not_mislead():
    sound = noise(16.0)
    sound[6 * RATE : 7 * RATE] *= 0.01
    sound[8 * RATE : 8 * RATE + 80] = 0.0  # 10 ms of nothing is no pause
    border, _ = borders(sound, 10.0)
    assert 6.0 < border / RATE < 7.0


def test_no_scrap_is_left_at_the_end():
    sound = noise(10.1)
    sound[round(9.9 * RATE) :] = 0.0
    parts = Piece(0, sound, RATE).split(10.0)
    assert min(part.duration for part in parts) > 3.0


def test_batches_hold_each_piece_once_within_their_size():
    lengths = [1.0, 8.0, 2.0, 30.0, 2.5, 0.5, 7.0]
    pieces = [Piece(i, noise(s), RATE) for i, s in enumerate(lengths)]
    made = batches(pieces, 16.0)
    assert sorted(piece.source for batch in made for piece in batch) == list(range(7))
    for batch in made:
        longest = max(piece.duration for piece in batch)
        assert len(batch) == 1 or len(batch) * longest <= 16.0
    assert len(made) < len(pieces)
    assert batches([], 16.0) == []


def test_padding_is_zero():
    waves, lengths = padded([Piece(0, torch.ones(3), RATE), Piece(1, torch.ones(5), RATE)])
    assert lengths.tolist() == [3, 5]
    assert waves.tolist() == [[1, 1, 1, 0, 0], [1] * 5]
