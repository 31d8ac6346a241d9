"""Additive attention."""

from __future__ import annotations

import torch
from torch import Tensor, nn

from asr.nn.about import About
from asr.nn.attention.base import Memory, memory_mask
from asr.nn.attention.parts import Stateless, Weighed, at_least
from asr.nn.masking import masked_softmax
from asr.types import Encoded


class Additive(Stateless):
    """score(s, h_j) = v · tanh(W s + V h_j + b) (Bahdanau et al. 2014, appendix A.1.2).

    Content only: it looks at nothing it attended to before, so all tokens can be done at once.

    Args:
        encoder_dim, query_dim: C, H.
        dim: K.
    """

    name = "additive"
    about = About("v · tanh(W s + V h_j + b)", "Bahdanau et al. 2014, appendix A.1.2")

    def __init__(self, encoder_dim: int, query_dim: int, *, dim: int = 128) -> None:
        super().__init__()
        at_least("dim", dim, 1)
        self.context_dim = encoder_dim
        self.query = nn.Linear(query_dim, dim, bias=False)
        self.key = nn.Linear(encoder_dim, dim)
        self.energy = nn.Linear(dim, 1, bias=False)

    def prepare(self, encoded: Encoded) -> Memory:
        return Memory(encoded.states, self.key(encoded.states), memory_mask(encoded))

    def weigh(self, query: Tensor, memory: Memory) -> Weighed:
        batch, size, width = memory.keys.shape
        share = len(query) // batch
        queries = self.query(query).view(batch, share, 1, width)
        energies = self.energy(torch.tanh(queries + memory.keys.unsqueeze(1)))
        weights = masked_softmax(energies.squeeze(-1), memory.mask.unsqueeze(1))
        return Weighed(weights.view(len(query), 1, size))
