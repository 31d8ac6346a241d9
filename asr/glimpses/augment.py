"""Changes to training glimpses that leave the words alone."""

from __future__ import annotations

import torch
from torch import Tensor, nn

from asr.nn.masking import length_mask


class SpecAugment(nn.Module):
    """Bands of time and frequency set to the mean (Park et al. 2019, sect. 2), per utterance.

    Time masks are bounded by ``time_ratio`` of the utterance (Park et al. 2020, adaptive size),
    so that short utterances keep most of their frames. With ``warp`` the mel axis is also
    stretched by a factor drawn from [1 - warp, 1 + warp]: vocal tract length perturbation
    (Jaitly & Hinton 2013), here on the mel axis itself, which makes few speakers sound like more.

    Draws come from torch's global generator, so a run's seed fixes them.
    """

    def __init__(
        self,
        *,
        frequency_masks: int = 2,
        frequency_width: int = 27,
        time_masks: int = 2,
        time_width: int = 40,
        time_ratio: float = 0.1,
        warp: float = 0.0,
    ) -> None:
        super().__init__()
        for key, value in (
            ("frequency_masks", frequency_masks),
            ("frequency_width", frequency_width),
            ("time_masks", time_masks),
            ("time_width", time_width),
        ):
            if value < 0:
                raise ValueError(f"{key}={value}: at least 0 is needed")
        if not 0 <= time_ratio <= 1:
            raise ValueError(f"time_ratio={time_ratio}: needs 0 <= time_ratio <= 1")
        if not 0 <= warp < 0.5:
            raise ValueError(f"warp={warp}: needs 0 <= warp < 0.5")
        self.frequency_masks, self.frequency_width = frequency_masks, frequency_width
        self.time_masks, self.time_width, self.time_ratio = time_masks, time_width, time_ratio
        self.warp = warp

    def forward(self, frames: Tensor, lengths: Tensor) -> Tensor:
        """frames (B,T,F) normalised (their mean is 0), lengths (B,) -> the same, changed."""
        batch, size, bins = frames.shape
        if size == 0:
            return frames
        if self.warp:
            frames = self._stretch(frames)
        bounds = torch.full((batch,), float(bins), device=frames.device)
        width = bounds.clamp_max(self.frequency_width)
        bands = _bands(self.frequency_masks, bounds, width, bins)
        span = (lengths * self.time_ratio).clamp_max(self.time_width)
        times = _bands(self.time_masks, lengths.float(), span, size)
        hidden = bands.unsqueeze(1) | times.unsqueeze(2)
        return frames.masked_fill(hidden, 0.0) * length_mask(lengths, size).unsqueeze(-1)

    def _stretch(self, frames: Tensor) -> Tensor:
        batch, _, bins = frames.shape
        factor = 1 + self.warp * (2 * torch.rand(batch, 1, device=frames.device) - 1)
        source = (torch.arange(bins, device=frames.device) * factor).clamp_max(bins - 1)
        low = source.floor().long()
        part = source - low
        columns = torch.arange(bins, device=frames.device).expand(batch, bins)
        matrix = frames.new_zeros(batch, bins, bins)
        index = torch.arange(batch, device=frames.device).unsqueeze(1)
        matrix.index_put_((index, low, columns), (1 - part).to(frames.dtype), accumulate=True)
        high = (low + 1).clamp_max(bins - 1)
        matrix.index_put_((index, high, columns), part.to(frames.dtype), accumulate=True)
        return frames @ matrix


def _bands(count: int, bounds: Tensor, width: Tensor, size: int) -> Tensor:
    """(B,size) bool: ``count`` bands of width up to ``width`` (B,) within ``bounds`` (B,)."""
    positions = torch.arange(size, device=bounds.device)
    covered = torch.zeros(len(bounds), size, dtype=torch.bool, device=bounds.device)
    for _ in range(count):
        drawn = (torch.rand_like(bounds) * (width + 1)).floor()
        start = (torch.rand_like(bounds) * (bounds - drawn + 1)).floor()
        covered |= (positions >= start.unsqueeze(1)) & (positions < (start + drawn).unsqueeze(1))
    return covered
