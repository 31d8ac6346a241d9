"""Additive attention."""

from __future__ import annotations

from typing import NamedTuple

import torch
from torch import Tensor, nn

from asr.nn.attention.base import Attended, Attention, Memory, Mode, memory_mask
from asr.nn.masking import masked_softmax
from asr.types import Encoded


class NoState(NamedTuple):
    """Nothing is remembered from token to token."""


def mix(weights: Tensor, values: Tensor) -> Tensor:
    """weights (N,A,S), values (B,S,C) shared by the N/B rows of an utterance -> (N,A*C)."""
    rows, heads, size = weights.shape
    batch, _, width = values.shape
    # Rows of one utterance form one matrix product, so values are never repeated.
    grouped = weights.reshape(batch, -1, size).to(values.dtype)
    return torch.bmm(grouped, values).reshape(rows, heads * width)


class Additive(Attention):
    """score(s, h_j) = v · tanh(W s + V h_j + b) (Bahdanau et al. 2014, appendix A.1.2).

    Content only: it looks at nothing it attended to before, so all tokens can be done at once.

    Args:
        encoder_dim, query_dim: C, H.
        dim: K.
    """

    name = "additive"

    def __init__(self, encoder_dim: int, query_dim: int, *, dim: int = 128) -> None:
        super().__init__()
        if dim < 1:
            raise ValueError(f"dim={dim}: at least 1 is needed")
        self.context_dim = encoder_dim
        self.query = nn.Linear(query_dim, dim, bias=False)
        self.key = nn.Linear(encoder_dim, dim)
        self.energy = nn.Linear(dim, 1, bias=False)

    def prepare(self, encoded: Encoded) -> Memory:
        return Memory(encoded.states, self.key(encoded.states), memory_mask(encoded))

    def initial_state(self, memory: Memory, rows: int) -> NoState:
        return NoState()

    def step(
        self, query: Tensor, memory: Memory, state: NoState, *, mode: Mode
    ) -> tuple[Attended, NoState]:
        batch, size = memory.mask.shape
        queries = self.query(query).view(batch, -1, 1, memory.keys.shape[-1])
        energies = self.energy(torch.tanh(queries + memory.keys.unsqueeze(1))).squeeze(-1)
        weights = masked_softmax(energies, memory.mask.unsqueeze(1)).view(-1, 1, size)
        return Attended(mix(weights, memory.values), weights), state

    def sequence(self, queries: Tensor, memory: Memory, *, mode: Mode) -> Attended:
        rows, count = queries.shape[:2]
        flat, _ = self.step(queries.flatten(0, 1), memory, NoState(), mode=mode)
        return Attended(
            flat.context.view(rows, count, -1), flat.weights.view(rows, count, 1, -1), flat.terms
        )
