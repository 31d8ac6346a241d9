"""Relative positions as learned vectors."""

from __future__ import annotations

import torch
from torch import Tensor, nn

from asr.nn.about import About
from asr.nn.encoders.selfattention.base import Position


class RelativeShaw(Position):
    """A learned vector for each clipped distance is added to keys and values.

    score(i, j) = q_i · (k_j + a^K_d) / sqrt(D) and z_i = sum_j w_ij (v_j + a^V_d), with
    d = clip(j - i, -clip, clip) (Shaw et al. 2018, eq. 3-5). Vectors are shared by the heads of a
    layer, as in the paper. No dot product of one vector a frame says this, so it is computed in
    chunks (see :func:`~asr.nn.encoders.selfattention.kernels.explicit`): exact, linear in memory,
    slower than kinds that the fused kernel serves.

    Args:
        dim, heads: C, A.
        clip: the distance, in encoder frames, from which on all are alike.
        values: whether distances are told to the values too, or to the keys alone.
    """

    name = "relative_shaw"
    about = About(
        "q_i · (k_j + a^K_d) / sqrt(D), sum_j w_ij (v_j + a^V_d), d = clip(j - i)",
        "Shaw et al. 2018, eq. 3-5",
        looks_at="content+location",
    )
    explicit = True

    def __init__(self, dim: int, heads: int, *, clip: int = 16, values: bool = True) -> None:
        super().__init__()
        if clip < 1:
            raise ValueError(f"clip={clip}: at least 1 is needed")
        width = dim // heads
        self.clip = clip
        self.scale = width**-0.5
        self.for_keys = nn.Parameter(torch.randn(2 * clip + 1, width) * width**-0.5)
        self.for_values = (
            nn.Parameter(torch.randn(2 * clip + 1, width) * width**-0.5) if values else None
        )

    def bias(self, queries: Tensor, distances: Tensor) -> Tensor:
        each = queries @ self.for_keys.float().T  # (B,A,I,2 clip + 1), scaled as the queries are
        index = self._index(distances).expand(*each.shape[:2], -1, -1)
        return each.gather(-1, index)

    def recall(self, weights: Tensor, distances: Tensor) -> Tensor:
        if self.for_values is None:
            return weights.new_zeros(())
        # The weight of each distance: at most 2 clip + 1 of them, however long the row.
        index = self._index(distances).expand(*weights.shape[:2], -1, -1)
        each = weights.new_zeros(*weights.shape[:3], 2 * self.clip + 1)
        return each.scatter_add(-1, index, weights) @ self.for_values.float()

    def _index(self, distances: Tensor) -> Tensor:
        return distances.clamp(-self.clip, self.clip) + self.clip
