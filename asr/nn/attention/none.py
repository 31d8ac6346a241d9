"""No attention: the baseline of every comparison."""

from __future__ import annotations

from typing import Literal

import torch
from torch import Tensor

from asr.nn.about import About
from asr.nn.attention.base import Memory, memory_mask
from asr.nn.attention.parts import Stateless, Weighed, per_row
from asr.types import Encoded


class NoAttention(Stateless):
    """One fixed vector for the whole utterance, whatever the query (Sutskever et al. 2014, eq. 1).

    The bottleneck that attention removes. The weights say what the vector is made of.

    Args:
        encoder_dim, query_dim: C, H.
        pool: ``mean`` of all real frames, or the ``last`` real one alone, as in the paper.
    """

    name = "none"
    about = About(
        "z = mean of h_1 .. h_S, or h_S, for every s", "Sutskever et al. 2014", looks_at="nothing"
    )

    def __init__(
        self, encoder_dim: int, query_dim: int, *, pool: Literal["mean", "last"] = "mean"
    ) -> None:
        super().__init__()
        if pool not in ("mean", "last"):
            raise ValueError(f"pool={pool!r}: valid are mean, last")
        self.context_dim = encoder_dim
        self.pool = pool

    def prepare(self, encoded: Encoded) -> Memory:
        # There is nothing to compare: keys of no width.
        return Memory(encoded.states, encoded.states[..., :0], memory_mask(encoded))

    def weigh(self, query: Tensor, memory: Memory) -> Weighed:
        lengths = memory.mask.sum(-1, keepdim=True)
        if self.pool == "mean":
            weights = memory.mask / lengths.clamp(min=1)
        else:
            frames = torch.arange(memory.mask.shape[1], device=memory.mask.device)
            weights = (frames == lengths - 1).float()
        return Weighed(per_row(weights, len(query)).unsqueeze(1))
