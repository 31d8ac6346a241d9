"""Several heads, each with a projection of its own."""

from __future__ import annotations

from typing import Literal, NamedTuple

import torch
from torch import Tensor, nn

from asr.nn.about import About
from asr.nn.attention.base import Attended, Attention, Memory, Mode, memory_mask
from asr.nn.attention.parts import (
    NoState,
    Stateless,
    Weighed,
    above_zero,
    additive_energies,
    at_least,
    dot_scores,
    located,
    mix_heads,
    per_row,
)
from asr.nn.masking import masked_softmax
from asr.types import Encoded


class MultiHead(Stateless):
    """Concat(head_1 .. head_A) W^O, each head scaled dot attention over projections of its own.

    Vaswani et al. 2017, sect. 3.2.2, as cross-attention: the query is the speller's, keys and
    values are glimpses.

    Args:
        encoder_dim, query_dim: C, H.
        dim: width of all heads together, and of the context.
        heads: A; must divide ``dim``.
    """

    name = "multi_head"
    about = About(
        "softmax(W_q s · W_k h_j / sqrt(D)) for each head, concatenated",
        "Vaswani et al. 2017, sect. 3.2.2",
    )

    def __init__(self, encoder_dim: int, query_dim: int, *, dim: int = 128, heads: int = 4) -> None:
        super().__init__()
        check_heads(dim, heads)
        self.heads, self.context_dim = heads, dim
        self.query = nn.Linear(query_dim, dim)
        self.key = nn.Linear(encoder_dim, dim)
        self.value = nn.Linear(encoder_dim, dim)
        self.output = nn.Linear(dim, dim)

    def prepare(self, encoded: Encoded) -> Memory:
        states = encoded.states
        return Memory(self.value(states), self.key(states), memory_mask(encoded))

    def weigh(self, query: Tensor, memory: Memory) -> Weighed:
        queries = self.query(query).unflatten(-1, (self.heads, -1))
        scores = dot_scores(queries, memory.keys) / queries.shape[-1] ** 0.5
        return Weighed(masked_softmax(scores, per_row(memory.mask, len(query)).unsqueeze(1)))

    def step(
        self, query: Tensor, memory: Memory, state: NoState, *, mode: Mode
    ) -> tuple[Attended, NoState]:
        weights, terms = self.weigh(query, memory)
        return Attended(self.output(mix_heads(weights, memory.values)), weights, terms), state


class HeadsState(NamedTuple):
    """previous (N,A,S): each head's vector before this token; total (N,A,S): the sum of all."""

    previous: Tensor
    total: Tensor


class MultiHeadLocation(Attention):
    """Location-aware attention (Chorowski et al. 2015, eq. 8-9) with several heads.

    Each head has its own part of the additive score, sees its own earlier vectors through filters
    of its own, and mixes its own projection of the glimpses; the heads are concatenated and
    projected as in Vaswani et al. 2017, sect. 3.2.2.

    Args:
        encoder_dim, query_dim: C, H.
        dim: K of all heads together, and width of the context.
        heads: A; must divide ``dim``.
        channels, kernel: of each head's convolution over its earlier attention; ``kernel`` is
            odd, in encoder frames.
        convolve: what is convolved: the ``previous`` vector, or the ``accumulated`` sum of all
            earlier ones, or ``both``, each with filters of its own.
        sharpening: beta, which multiplies the scores before the softmax (sect. 2.3, eq. 10).
    """

    name = "multi_head_location"
    about = About(
        "v · tanh(W s + V h_j + U f_j + b), f = F * a_{i-1}, for each head, concatenated",
        "Chorowski et al. 2015, eq. 8-9; Vaswani et al. 2017, sect. 3.2.2",
        looks_at="content+location",
    )

    def __init__(
        self,
        encoder_dim: int,
        query_dim: int,
        *,
        dim: int = 128,
        heads: int = 4,
        channels: int = 10,
        kernel: int = 31,
        convolve: Literal["previous", "accumulated", "both"] = "both",
        sharpening: float = 1.0,
    ) -> None:
        super().__init__()
        check_heads(dim, heads)
        at_least("channels", channels, 1)
        if kernel < 1 or kernel % 2 == 0:
            raise ValueError(f"kernel={kernel}: must be odd, so that a frame is its centre")
        if convolve not in ("previous", "accumulated", "both"):
            raise ValueError(f"convolve={convolve!r}: valid are previous, accumulated, both")
        above_zero("sharpening", sharpening)
        self.heads, self.context_dim = heads, dim
        self.convolve, self.kernel, self.sharpening = convolve, kernel, sharpening
        self.query = nn.Linear(query_dim, dim, bias=False)
        self.key = nn.Linear(encoder_dim, dim)
        self.value = nn.Linear(encoder_dim, dim)
        self.output = nn.Linear(dim, dim)
        inputs = 2 * kernel if convolve == "both" else kernel
        self.filters = nn.Parameter(torch.empty(heads, inputs, channels))
        self.location = nn.Parameter(torch.empty(heads, channels, dim // heads))
        self.energy = nn.Parameter(torch.empty(heads, dim // heads))
        for weight, width in (
            (self.filters, inputs), (self.location, channels), (self.energy, dim // heads)
        ):  # fmt: skip
            nn.init.uniform_(weight, -(width**-0.5), width**-0.5)

    def prepare(self, encoded: Encoded) -> Memory:
        states = encoded.states
        return Memory(self.value(states), self.key(states), memory_mask(encoded))

    def initial_state(self, memory: Memory, rows: int) -> HeadsState:
        size = memory.mask.shape[1]
        nothing = memory.values.new_zeros(rows, self.heads, size, dtype=torch.float32)
        return HeadsState(nothing, nothing)

    def step(
        self, query: Tensor, memory: Memory, state: HeadsState, *, mode: Mode
    ) -> tuple[Attended, HeadsState]:
        # Heads side by side: each has its own columns of K, and 0 in the others'.
        apart = torch.eye(self.heads, device=query.device, dtype=self.energy.dtype)
        energy = (apart.unsqueeze(2) * self.energy).flatten(1)  # (A,K)
        scores = additive_energies(self.query(query), memory.keys, energy, *self._location(state))
        mask = per_row(memory.mask, len(query)).unsqueeze(1)
        weights = masked_softmax(scores * self.sharpening, mask)
        context = self.output(mix_heads(weights, memory.values))
        return Attended(context, weights), HeadsState(weights, state.total + weights)

    def _location(self, state: HeadsState) -> tuple[Tensor, Tensor | None]:
        """F * a of each head, and U to extend it with."""
        around = {
            "previous": (state.previous,),
            "accumulated": (state.total,),
            "both": (state.previous, state.total),
        }[self.convolve]
        return located(around, self.filters, self.location)


def check_heads(dim: int, heads: int) -> None:
    """ValueError where ``dim`` cannot be split into ``heads`` parts."""
    at_least("dim", dim, 1)
    if heads < 1 or dim % heads:
        raise ValueError(f"heads={heads}: must divide dim={dim}")
