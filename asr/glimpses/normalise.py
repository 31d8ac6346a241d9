"""What front ends have in common after their energies: loudness and channel forgotten."""

from __future__ import annotations

from torch import Tensor

from asr.nn.masking import length_mask


def over_utterance(frames: Tensor, lengths: Tensor) -> Tensor:
    """Each bin's mean over the real frames taken away, all divided by one standard deviation.

    frames (B,T,F), lengths (B,) -> (B,T,F), zero beyond their lengths.
    """
    mask = length_mask(lengths, frames.shape[1]).unsqueeze(-1)
    real = lengths.clamp_min(1).view(-1, 1, 1)
    frames = frames - (frames * mask).sum(1, keepdim=True) / real
    count = real * frames.shape[2]
    spread = ((frames * mask).square().sum((1, 2), keepdim=True) / count).sqrt()
    return frames / (spread + 1e-3) * mask
