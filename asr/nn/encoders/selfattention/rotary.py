"""Positions as rotations."""

from __future__ import annotations

import torch
from torch import Tensor

from asr.nn.about import About
from asr.nn.encoders.selfattention.base import Position


class Rotary(Position):
    """Queries and keys are rotated by their position (Su et al. 2021, eq. 14-16, 34).

    Pairs of neighbouring columns (2m, 2m+1) turn by i w_m, so the dot product depends on the
    distance alone. No bias and no parameters.

    Args:
        dim, heads: C, A; a head's width ``dim / heads`` must be even.
        longest: the wavelengths reach from 2 pi to 2 pi times this, in encoder frames.
    """

    name = "rotary"
    about = About(
        "(R_i q_i) · (R_j k_j) / sqrt(D), R_i rotating by i w_m",
        "Su et al. 2021, eq. 14-16",
        looks_at="content+location",
    )

    def __init__(self, dim: int, heads: int, *, longest: float = 10_000.0) -> None:
        super().__init__()
        width = dim // heads
        if width % 2:
            raise ValueError(
                f"heads={heads}: rotary turns pairs, so dim / heads must be even; it is {width}"
            )
        if not longest > 1:
            raise ValueError(f"longest={longest}: must be above 1")
        self.longest = longest
        self.scale = width**-0.5

    def forward(self, queries: Tensor, keys: Tensor) -> tuple[Tensor, Tensor]:
        size, width = queries.shape[2:]
        device = queries.device
        # In float32: bf16 cannot tell frame 257 from 258.
        rates = self.longest ** (-torch.arange(0, width, 2, device=device) / width)
        angles = torch.arange(size, device=device).unsqueeze(1) * rates
        sine, cosine = angles.sin(), angles.cos()

        def rotated(vectors: Tensor) -> Tensor:
            first, second = vectors.float().unflatten(-1, (-1, 2)).unbind(-1)
            turned = [first * cosine - second * sine, first * sine + second * cosine]
            return torch.stack(turned, -1).flatten(-2).to(vectors.dtype)

        return rotated(queries * self.scale), rotated(keys)
