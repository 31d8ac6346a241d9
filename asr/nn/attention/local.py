"""A window around a position: local attention."""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

import torch
from torch import Tensor, nn

from asr.nn.about import About
from asr.nn.attention.base import Attended, Attention, Memory, Mode, memory_mask
from asr.nn.attention.parts import (
    Stateless,
    Weighed,
    above_zero,
    at_least,
    dot_scores,
    mix,
    per_row,
)
from asr.nn.masking import masked_softmax
from asr.types import Encoded


class Position(NamedTuple):
    """written (N,): how many tokens were written before this one."""

    written: Tensor


class LocalM(Attention):
    """softmax of s · W h_j within ``reach`` of where token i should be: monotonic alignment.

    Luong et al. 2015, sect. 3.2 (local-m), where the position of target i is i itself. Speech has
    more frames than tokens, so token i stands at frame i / r. The rate r, tokens an encoder frame
    (tokens per second times the seconds of a frame), is that of the training data: :meth:`loss`
    counts both while training, and the counts are kept with the model.

    Args:
        encoder_dim, query_dim: C, H.
        reach: D, frames on either side.
        tokens_per_frame: the rate until training has counted any.
    """

    name = "local_m"
    about = About(
        "softmax(s · W h_j) over j in [p - D, p + D], p = i / tokens per frame",
        "Luong et al. 2015, sect. 3.2",
        reach="local",
        looks_at="content+location",
    )
    tokens_heard: Tensor
    frames_heard: Tensor

    def __init__(
        self,
        encoder_dim: int,
        query_dim: int,
        *,
        reach: int = 10,
        tokens_per_frame: float = 0.25,
    ) -> None:
        super().__init__()
        at_least("reach", reach, 1)
        above_zero("tokens_per_frame", tokens_per_frame)
        self.context_dim = encoder_dim
        self.reach, self.initial_rate = reach, tokens_per_frame
        self.key = nn.Linear(encoder_dim, query_dim, bias=False)
        self.register_buffer("tokens_heard", torch.zeros((), dtype=torch.long))
        self.register_buffer("frames_heard", torch.zeros((), dtype=torch.long))

    @property
    def tokens_per_frame(self) -> Tensor:
        """The rate as it is now, a scalar; divided by the seconds of a frame, tokens per second."""
        counted = self.tokens_heard / self.frames_heard.clamp(min=1)
        return torch.where(self.tokens_heard > 0, counted, self.initial_rate)

    def prepare(self, encoded: Encoded) -> Memory:
        return Memory(encoded.states, self.key(encoded.states), memory_mask(encoded))

    def initial_state(self, memory: Memory, rows: int) -> Position:
        return Position(memory.mask.new_zeros(rows, dtype=torch.long))

    def step(
        self, query: Tensor, memory: Memory, state: Position, *, mode: Mode
    ) -> tuple[Attended, Position]:
        mask = per_row(memory.mask, len(query))
        frames = mask.sum(-1)
        # What is written past the last frame is still said by the end of it.
        centre = torch.minimum(state.written / self.tokens_per_frame, (frames - 1).clamp(min=0))
        near = distances(centre, mask.shape[1]).abs() <= self.reach
        scores = dot_scores(query.unsqueeze(1), memory.keys)
        weights = masked_softmax(scores, (mask & near).unsqueeze(1))
        terms = {"centres": centre.unsqueeze(1), "frames": frames}
        attended = Attended(mix(weights, memory.values), weights, terms)
        return attended, Position(state.written + 1)

    def loss(
        self, terms: Mapping[str, Tensor], mask: Tensor, token_log_probs: Tensor
    ) -> Tensor | None:
        """Adds nothing; counts the tokens (``<eos>`` included) and frames it was trained on."""
        if torch.is_grad_enabled():
            self.tokens_heard += mask.sum()
            self.frames_heard += terms["frames"][:, 0].sum()
        return None


class LocalP(Stateless):
    """softmax of s · W h_j around a predicted position p, under a Gaussian: predictive alignment.

    p = S sigmoid(v · tanh(W_p s)), sigma = D / 2 (Luong et al. 2015, eq. 9-10). Deviation: the
    weights are divided by their sum, so that a context is always a mean of glimpses; the Gaussian
    then enters as a term of the score, -(j - p)^2 / (2 sigma^2).

    Args:
        encoder_dim, query_dim: C, H.
        reach: D, frames on either side; beyond it weights are 0.
        dim: width of the layer that predicts the position.
    """

    name = "local_p"
    about = About(
        "softmax(s · W h_j - (j - p)^2 / (2 sigma^2)) over j in [p - D, p + D], "
        "p = S sigmoid(v · tanh(W s))",
        "Luong et al. 2015, eq. 9-10",
        reach="local",
        looks_at="content+location",
    )

    def __init__(
        self, encoder_dim: int, query_dim: int, *, reach: int = 10, dim: int = 128
    ) -> None:
        super().__init__()
        at_least("reach", reach, 1)
        at_least("dim", dim, 1)
        self.context_dim = encoder_dim
        self.reach = reach
        self.key = nn.Linear(encoder_dim, query_dim, bias=False)
        self.inner = nn.Linear(query_dim, dim, bias=False)
        self.position = nn.Linear(dim, 1, bias=False)

    def prepare(self, encoded: Encoded) -> Memory:
        return Memory(encoded.states, self.key(encoded.states), memory_mask(encoded))

    def weigh(self, query: Tensor, memory: Memory) -> Weighed:
        mask = per_row(memory.mask, len(query))
        share = torch.sigmoid(self.position(torch.tanh(self.inner(query))).float()).squeeze(-1)
        centre = mask.sum(-1) * share
        away = distances(centre, mask.shape[1])
        scores = dot_scores(query.unsqueeze(1), memory.keys)
        scores = scores - (away.square() * (2 / self.reach**2)).unsqueeze(1)
        weights = masked_softmax(scores, (mask & (away.abs() <= self.reach)).unsqueeze(1))
        return Weighed(weights, {"centres": centre.unsqueeze(1)})


def distances(centre: Tensor, size: int) -> Tensor:
    """centre (N,), in frames -> (N,S): how far each frame is from it."""
    return torch.arange(size, device=centre.device) - centre.unsqueeze(1)
