"""Relative positions of Transformer-XL, without a bias matrix."""

from __future__ import annotations

import math

import torch
from torch import Tensor, nn

from asr.nn.about import About
from asr.nn.encoders.selfattention.base import Position


class Relative(Position):
    """Query with content plus query with distance (Dai et al. 2019, sect. 3.3).

    score(i, j) = ((q_i + u) · k_j + (q_i + v) · W r_{i-j}) / sqrt(D), where r_d is the sinusoid
    [sin d w_1 .. sin d w_P, cos d w_1 .. cos d w_P], u and v are learned for each head and W for
    each head maps r to D. By the angle addition theorem, with (a, b) = W^T (q_i + v),

        (a, b) · r_{i-j} = [a sin iw + b cos iw] · cos jw + [b sin iw - a cos iw] · sin jw,

    so the distance term is a rotated query times sinusoid keys, and both terms are one dot
    product of length D + 2P: exact, linear in memory, any length, served by the fused kernel.

    ``frequencies`` is P. The paper ties 2P to the model width; fewer cost less and, spaced
    geometrically from 1 to ``longest``, still tell all distances of an utterance apart.
    """

    name = "relative"
    about = About(
        "((q_i + u) · k_j + (q_i + v) · W r_{i-j}) / sqrt(D)",
        "Dai et al. 2019, sect. 3.3",
        looks_at="content+location",
    )
    rates: Tensor

    def __init__(
        self, dim: int, heads: int, *, frequencies: int = 16, longest: float = 10_000.0
    ) -> None:
        super().__init__()
        if frequencies < 1:
            raise ValueError(f"frequencies={frequencies}: at least 1 is needed")
        if longest <= 1:
            raise ValueError(f"longest={longest}: must be above 1")
        width = dim // heads
        self.content_bias = nn.Parameter(torch.zeros(heads, 1, width))
        self.distance_bias = nn.Parameter(torch.zeros(heads, 1, width))
        self.distance = nn.Parameter(torch.empty(heads, width, 2 * frequencies))
        nn.init.normal_(self.distance, std=width**-0.5)
        rates = torch.exp(torch.arange(frequencies) * (-math.log(longest) / frequencies))
        self.register_buffer("rates", rates, persistent=False)
        self.scale = width**-0.5

    def forward(self, queries: Tensor, keys: Tensor) -> tuple[Tensor, Tensor]:
        size = queries.shape[2]
        # Angles in float32 whatever the autocast dtype: bf16 cannot tell frame 257 from 258.
        angles = torch.arange(size, device=queries.device).unsqueeze(1) * self.rates
        sine, cosine = angles.sin(), angles.cos()  # (S,P)
        with torch.autocast(queries.device.type, enabled=False):
            projected = (queries.float() + self.distance_bias) @ self.distance
            a, b = projected.chunk(2, -1)
            with_cosine = a * sine + b * cosine
            with_sine = b * sine - a * cosine
            query = torch.cat([queries.float() + self.content_bias, with_cosine, with_sine], -1)
            sinusoids = torch.cat([cosine, sine], -1).expand(*keys.shape[:3], -1)
            key = torch.cat([keys.float(), sinusoids], -1)
            dtype = queries.dtype
            return (query * self.scale).to(dtype), key.to(dtype)
