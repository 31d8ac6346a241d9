"""Positions told to the input alone."""

from __future__ import annotations

import torch
from torch import Tensor

from asr.nn.about import About
from asr.nn.encoders.selfattention.base import Position


class Absolute(Position):
    """A sinusoid of the frame's number is added to the input (Vaswani et al. 2017, sect. 3.5).

    Scores are content alone, q · k / sqrt(D).

    Args:
        dim, heads: C, A.
        longest: the wavelengths reach from 2 pi to 2 pi times this, in encoder frames.
    """

    name = "absolute"
    about = About(
        "x_i + [sin i w_1, cos i w_1, ..], then q_i · k_j / sqrt(D)",
        "Vaswani et al. 2017, sect. 3.5",
        looks_at="content+location",
    )

    def __init__(self, dim: int, heads: int, *, longest: float = 10_000.0) -> None:
        super().__init__()
        if not longest > 1:
            raise ValueError(f"longest={longest}: must be above 1")
        self.longest = longest
        self.scale = (dim // heads) ** -0.5

    def encode(self, states: Tensor) -> Tensor:
        size, dim = states.shape[1:]
        device = states.device
        # Even columns are sines, odd ones cosines, in float32: bf16 cannot tell frame 257 from 258.
        rates = self.longest ** (-torch.arange(0, dim, 2, device=device) / dim)
        angles = torch.arange(size, device=device).unsqueeze(1) * rates
        waves = torch.stack([angles.sin(), angles.cos()], -1).flatten(1)[:, :dim]
        return states + waves.to(states.dtype)
