"""What mechanisms are made of: scores, mixing, and the case in which nothing is remembered."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Mapping, Sequence
from typing import NamedTuple

import torch
from torch import Tensor, nn

from asr.nn.attention.base import Attended, Attention, Memory, Mode
from asr.types import Encoded

#: numbers of one array that a processor's second cache holds beside what else is needed
IN_CACHE = 400_000


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

    def forward(
        self,
        query: Tensor,
        keys: Tensor,
        features: Tensor | None = None,
        extend: Tensor | None = None,
    ) -> Tensor:
        """query (N,H), keys (B,S,K) -> (N,S) float32; features (N,S,E) enter as U f, U (K,E)."""
        queries, weight = self.query(query), self.energy.weight
        return additive_energies(queries, keys, weight, features, extend).squeeze(1)


def additive_energies(
    queries: Tensor,
    keys: Tensor,
    energy: Tensor,
    features: Tensor | None = None,
    extend: Tensor | None = None,
) -> Tensor:
    """v_a · tanh(q + k_j + U f_j) for each v_a: (N,A,S) float32, also under mixed precision.

    queries (N,K), keys (B,S,K) shared by the N/B rows of an utterance, energy (A,K), and, where
    there are any, features (N,S,E) with extend U (K,E), or (N,S,K), extended already.

    The N x S x K numbers inside are what attending costs, moving them more than computing them:
    they are changed in place and, where no gradient is kept, made for so few utterances at a time
    that they stay in the processor's cache.
    """
    batch, size, width = keys.shape
    share = len(queries) // batch
    queries = queries.view(batch, share, 1, width)
    if features is not None:
        features = features.view(batch, share, size, features.shape[-1])
    count = batch
    if not torch.is_grad_enabled() and not torch.compiler.is_compiling():
        count = max(1, IN_CACHE // max(1, share * size * width))
    found = []
    for first in range(0, batch, count):
        some = slice(first, first + count)
        inner = keys[some].unsqueeze(1) + queries[some]
        if features is not None:
            own = features[some]
            inner += own if extend is None else nn.functional.linear(own, extend)
        inner.tanh_()
        with torch.autocast(inner.device.type, enabled=False):
            found.append(nn.functional.linear(inner.float(), energy.float()))
    return torch.cat(found).view(batch * share, size, len(energy)).transpose(1, 2)


def located(
    vectors: Sequence[Tensor], filters: Tensor, extend: Tensor
) -> tuple[Tensor, Tensor | None]:
    """Where was listened before, as features and extend of :func:`additive_energies`.

    vectors, filters as in :func:`convolved`, extend (G,E,K/G): each group g has its own part of K.
    """
    if torch.is_grad_enabled() and filters.device.type == "cpu":
        # With filters so few and short, convolving backward costs more than all else in a
        # training step; one product by filters and extension together does not.
        reach = filters.shape[1] // len(vectors) // 2
        seen = torch.cat([windows(vector, reach, reach) for vector in vectors], -1)
        product = seen.to(filters.dtype) @ (filters @ extend)  # (N,G,S,K/G)
        return product.transpose(1, 2).flatten(2), None
    return convolved(vectors, filters), torch.block_diag(*extend.transpose(1, 2))


def convolved(vectors: Sequence[Tensor], filters: Tensor) -> Tensor:
    """F * a: vectors, each (N,G,S), filters (G,len(vectors) x kernel,E) -> (N,S,G x E).

    Each group g has filters of its own over all vectors; row ``i kernel + k`` of them is for the
    frame ``k - kernel // 2`` away in vector i.
    """
    groups, inputs, channels = filters.shape
    kernel = inputs // len(vectors)
    seen = torch.stack(list(vectors), 2).flatten(1, 2).to(filters.dtype)
    if not seen.shape[-1]:
        return seen.new_zeros(len(seen), 0, groups * channels)
    weight = filters.transpose(1, 2).reshape(groups * channels, len(vectors), kernel)
    return nn.functional.conv1d(seen, weight, padding=kernel // 2, groups=groups).transpose(1, 2)


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
