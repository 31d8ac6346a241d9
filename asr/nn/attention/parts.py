"""What mechanisms are made of: scores, mixing, and the case in which nothing is remembered."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Mapping
from typing import NamedTuple

import torch
from torch import Tensor, nn

from asr.nn.attention.base import Attended, Attention, Memory, Mode
from asr.types import Encoded


class NoState(NamedTuple):
    """Nothing is remembered from token to token."""


class Weighed(NamedTuple):
    """weights (N,A,S) float32 and the terms that go with them."""

    weights: Tensor
    terms: Mapping[str, Tensor] = {}


class Stateless(Attention):
    """A mechanism that looks at nothing earlier: all tokens are done at once."""

    @abstractmethod
    def weigh(self, query: Tensor, memory: Memory) -> Weighed:
        """query (N,H) -> weights (N,A,S)."""

    def initial_state(self, memory: Memory, rows: int) -> NoState:
        return NoState()

    def step(
        self, query: Tensor, memory: Memory, state: NoState, *, mode: Mode
    ) -> tuple[Attended, NoState]:
        weights, terms = self.weigh(query, memory)
        return Attended(mix(weights, memory.values), weights, terms), state

    def sequence(self, queries: Tensor, memory: Memory, *, mode: Mode) -> Attended:
        rows = queries.shape[:2]
        flat, _ = self.step(queries.flatten(0, 1), memory, NoState(), mode=mode)
        context, weights, terms = flat
        return Attended(
            context.unflatten(0, rows),
            weights.unflatten(0, rows),
            {name: term.unflatten(0, rows) for name, term in terms.items()},
        )


class AdditiveScore(nn.Module):
    """v · tanh(W s + V h_j + b) (Bahdanau et al. 2014, appendix A.1.2), with room for features."""

    def __init__(self, encoder_dim: int, query_dim: int, dim: int) -> None:
        super().__init__()
        at_least("dim", dim, 1)
        self.query = nn.Linear(query_dim, dim, bias=False)
        self.key = nn.Linear(encoder_dim, dim)
        self.energy = nn.Linear(dim, 1, bias=False)

    def keys(self, encoded: Encoded) -> Tensor:
        """(B,S,K), once per utterance."""
        return self.key(encoded.states)

    def forward(self, query: Tensor, keys: Tensor, features: Tensor | None = None) -> Tensor:
        """query (N,H), keys (B,S,K), features (N,S,K) inside the tanh -> (N,S) float32."""
        batch, size, width = keys.shape
        share = query.shape[0] // batch
        inner = self.query(query).view(batch, share, 1, width) + keys.unsqueeze(1)
        if features is not None:
            inner = inner + features.view(batch, share, size, width)
        with torch.autocast(query.device.type, enabled=False):
            energies = torch.tanh(inner).float() @ self.energy.weight[0].float()
        return energies.view(-1, size) if size else energies.view(len(query), 0)


def dot_scores(queries: Tensor, keys: Tensor) -> Tensor:
    """queries (N,A,D), keys (B,S,A*D) -> (N,A,S), computed in float32 under mixed precision too."""
    rows, heads, width = queries.shape
    batch, size = keys.shape[:2]
    with torch.autocast(queries.device.type, enabled=False):
        # Rows of one utterance form one matrix product, so keys are never repeated.
        left = queries.float().reshape(batch, rows // batch, heads, width).transpose(1, 2)
        right = keys.float().view(batch, size, heads, width).permute(0, 2, 3, 1)
        return (left @ right).transpose(1, 2).reshape(rows, heads, size)


def mix(weights: Tensor, values: Tensor) -> Tensor:
    """weights (N,A,S), values (B,S,C) shared by the N/B rows of an utterance -> (N,A*C)."""
    rows, heads, size = weights.shape
    batch, _, width = values.shape
    # Rows of one utterance form one matrix product, so values are never repeated.
    grouped = weights.reshape(batch, rows // batch * heads, size).to(values.dtype)
    return torch.bmm(grouped, values).reshape(rows, heads * width)


def mix_heads(weights: Tensor, values: Tensor) -> Tensor:
    """weights (N,A,S), values (B,S,A*D), head a mixing its own D of them -> (N,A*D)."""
    rows, heads, size = weights.shape
    batch, _, width = values.shape
    left = weights.reshape(batch, rows // batch, heads, size).transpose(1, 2).to(values.dtype)
    right = values.view(batch, size, heads, width // heads).transpose(1, 2)
    return (left @ right).transpose(1, 2).reshape(rows, width)


def per_row(shared: Tensor, rows: int) -> Tensor:
    """(B,...) -> (N,...): what belongs to an utterance, for each of its rows."""
    return shared.repeat_interleave(rows // shared.shape[0], 0)


def windows(vectors: Tensor, before: int, after: int) -> Tensor:
    """(...,S) -> (...,S,before+1+after): each frame's surroundings, zeros past either end."""
    if vectors.shape[-1] == 0:
        return vectors.new_zeros(*vectors.shape, before + 1 + after)
    return nn.functional.pad(vectors, (before, after)).unfold(-1, before + 1 + after, 1)


def at_least(name: str, value: float, least: float) -> None:
    """ValueError for an argument below what makes sense."""
    if not value >= least:
        raise ValueError(f"{name}={value}: at least {least} is needed")


def above_zero(name: str, value: float) -> None:
    """ValueError for an argument that must be positive."""
    if not value > 0:
        raise ValueError(f"{name}={value}: must be above 0")
