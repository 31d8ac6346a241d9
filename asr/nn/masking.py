"""Masks from lengths: True marks a real frame."""

from __future__ import annotations

import torch
from torch import Tensor


def length_mask(lengths: Tensor, size: int) -> Tensor:
    """(B,) -> (B,size) bool, True where the index is below the length."""
    return torch.arange(size, device=lengths.device) < lengths.unsqueeze(-1)


def masked_softmax(scores: Tensor, mask: Tensor) -> Tensor:
    """Softmax over the last axis in float32; masked positions get exactly 0.

    ``scores`` (...,S) any float type, ``mask`` broadcastable bool. A row without one real
    position is all zeros rather than NaN (an utterance of no frames is legal).
    """
    scores = scores.float().masked_fill(~mask, torch.finfo(torch.float32).min)
    return torch.softmax(scores, dim=-1) * mask
