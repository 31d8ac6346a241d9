"""Frames and seconds."""

from __future__ import annotations

import pytest
import torch

from asr.glimpses import timing


@pytest.mark.parametrize("subsampling", [1, 4, 8])
@pytest.mark.parametrize("samples", [1, 80, 81, 319, 320, 321, 12345])
def test_encoder_cells_cover_the_audio_and_no_cell_more(samples: int, subsampling: int) -> None:
    shift = timing.shift_of(80, 8000, subsampling)
    cells = timing.cells(timing.cells(samples, 80), subsampling)
    end = timing.frame_end(cells - 1, shift)
    assert samples / 8000 <= end + 1e-9 < samples / 8000 + shift + 1e-9


def test_repeated_halving_is_one_division() -> None:
    lengths = torch.arange(200)
    assert torch.equal(timing.cells(timing.cells(lengths, 2), 2), timing.cells(lengths, 4))


def test_there_and_back() -> None:
    for index in range(500):
        assert timing.frame_at(timing.frame_start(index, 0.01), 0.01) == index
        assert timing.frame_at(timing.frame_centre(index, 0.04), 0.04) == index
    assert timing.frame_end(3, 0.04) == timing.frame_start(4, 0.04)
