"""SpecAugment: what it hides, how much, and what it leaves alone."""

from __future__ import annotations

import pytest
import torch

from asr.glimpses import SpecAugment
from asr.nn.masking import length_mask


def test_hides_bands_of_bounded_size_and_nothing_else() -> None:
    torch.manual_seed(0)
    lengths = torch.tensor([200, 100, 0, 7])
    frames = torch.ones(4, 200, 40) * length_mask(lengths, 200).unsqueeze(-1)
    augment = SpecAugment(
        frequency_masks=1, frequency_width=8, time_masks=1, time_width=30, time_ratio=0.1
    )
    widest_band, widest_time = 0, 0
    for _ in range(100):
        out = augment(frames, lengths)
        assert set(out.unique().tolist()) <= {0.0, 1.0}
        hidden = (out[0] == 0).float()
        columns, rows = int(hidden.amin(0).sum()), int(hidden.amin(1).sum())
        widest_band, widest_time = max(widest_band, columns), max(widest_time, rows)
        # What is hidden is exactly the union of whole rows and whole columns.
        assert int(hidden.sum()) == columns * 200 + rows * (40 - columns)
        assert not out[1, 100:].any() and not out[2].any()
    assert widest_band == 8
    assert widest_time == 20  # a tenth of 200, below time_width


def test_nothing_asked_nothing_changed() -> None:
    frames, lengths = torch.randn(2, 30, 8), torch.tensor([30, 30])
    assert torch.equal(SpecAugment(frequency_masks=0, time_masks=0)(frames, lengths), frames)
    assert SpecAugment()(frames[:, :0], lengths * 0).shape == (2, 0, 8)


def test_warp_moves_a_peak_along_the_mel_axis() -> None:
    torch.manual_seed(0)
    frames = torch.zeros(64, 5, 40)
    frames[:, :, 20] = 1.0
    warped = SpecAugment(frequency_masks=0, time_masks=0, warp=0.2)(frames, torch.full((64,), 5))
    centres = (warped[:, 0] * torch.arange(40)).sum(-1) / warped[:, 0].sum(-1)
    assert 16 < centres.min() < 18.5 and 22 < centres.max() < 25.5
    # A warp of factor 1 is the identity.
    same = SpecAugment(frequency_masks=0, time_masks=0, warp=1e-9)(frames, torch.full((64,), 5))
    torch.testing.assert_close(same, frames, atol=1e-5, rtol=0)


@pytest.mark.parametrize(
    ("arguments", "named"),
    [
        ({"frequency_masks": -1}, "frequency_masks=-1"),
        ({"time_ratio": 1.5}, "time_ratio=1.5"),
        ({"warp": 0.7}, "warp=0.7"),
    ],
)
def test_refuses(arguments: dict, named: str) -> None:
    with pytest.raises(ValueError, match=named):
        SpecAugment(**arguments)
