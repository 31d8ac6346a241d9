"""Attention that knows what was heard already."""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

import torch
from torch import Tensor, nn

from asr.nn.about import About
from asr.nn.attention.base import Attended, Attention, Memory, Mode, memory_mask
from asr.nn.attention.parts import AdditiveScore, at_least, mix, per_row
from asr.nn.masking import masked_softmax
from asr.types import Encoded


class Covered(NamedTuple):
    """total (N,S): the sum of all weights before this token."""

    total: Tensor


class Coverage(Attention):
    """score = v · tanh(W s + V h_j + u c_j + b), c the sum of all earlier attention.

    Tu et al. 2016, eq. 5-6 and sect. 3.1; the form of See et al. 2017, eq. 10-11. What overlaps
    with what was heard before costs ``sum_j min(a_j, c_j)`` a token (See et al. 2017, eq. 12).

    Args:
        encoder_dim, query_dim: C, H.
        dim: K.
        loss_weight: lambda, of the overlap in the training loss (their eq. 13); 0 leaves it out.
            The paper takes 1; a frame of speech may belong to more than one token, so less here.
    """

    name = "coverage"
    about = About(
        "v · tanh(W s + V h_j + u c_j + b), c = a_1 + .. + a_{i-1}; loss: sum_j min(a_j, c_j)",
        "Tu et al. 2016, eq. 5-6; See et al. 2017, eq. 10-13",
        looks_at="content+location",
    )

    def __init__(
        self, encoder_dim: int, query_dim: int, *, dim: int = 128, loss_weight: float = 0.1
    ) -> None:
        super().__init__()
        at_least("loss_weight", loss_weight, 0)
        self.context_dim = encoder_dim
        self.loss_weight = loss_weight
        self.score = AdditiveScore(encoder_dim, query_dim, dim)
        self.coverage = nn.Linear(1, dim, bias=False)

    def prepare(self, encoded: Encoded) -> Memory:
        return Memory(encoded.states, self.score.keys(encoded), memory_mask(encoded))

    def initial_state(self, memory: Memory, rows: int) -> Covered:
        size = memory.mask.shape[1]
        return Covered(memory.values.new_zeros(rows, size, dtype=torch.float32))

    def step(
        self, query: Tensor, memory: Memory, state: Covered, *, mode: Mode
    ) -> tuple[Attended, Covered]:
        heard = state.total.unsqueeze(-1).to(memory.keys.dtype)
        scores = self.score(query, memory.keys, heard, self.coverage.weight)
        weights = masked_softmax(scores, per_row(memory.mask, len(query)))
        overlap = torch.minimum(weights, state.total).sum(-1)
        weights_of_heads = weights.unsqueeze(1)
        attended = Attended(
            mix(weights_of_heads, memory.values), weights_of_heads, {"overlap": overlap}
        )
        return attended, Covered(state.total + weights)

    def loss(
        self, terms: Mapping[str, Tensor], mask: Tensor, token_log_probs: Tensor
    ) -> Tensor | None:
        """The overlap, mean over real tokens, times ``loss_weight``."""
        if not self.loss_weight:
            return None
        return self.loss_weight * (terms["overlap"] * mask).sum() / mask.sum().clamp(min=1)
