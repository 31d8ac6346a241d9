"""What every speller attention is to the rest of the project.

State is a NamedTuple whose every leaf is N-first, so one ``index_select`` over its leaves
reorders any mechanism; memory is B-first and shared by the rows of an utterance. Rows are
utterance-major: row ``n`` belongs to utterance ``n // (N // B)``.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Mapping
from types import MappingProxyType
from typing import Any, ClassVar, Literal, NamedTuple, TypeAlias

import torch
from torch import Tensor

from asr.nn.about import About
from asr.nn.masking import length_mask
from asr.nn.registry import Component
from asr.types import Encoded

Mode: TypeAlias = Literal["train", "decode"]


class Memory(NamedTuple):
    """What is attended to, once per utterance: values (B,S,C), keys (B,S,K), mask (B,S) bool."""

    values: Tensor
    keys: Tensor
    mask: Tensor


class Attended(NamedTuple):
    """context (N,context_dim); weights (N,A,S) float32, padding exactly 0; terms as a loss needs.

    From :meth:`Attention.sequence`: context (N,U,context_dim), weights (N,U,A,S).
    """

    context: Tensor
    weights: Tensor
    terms: Mapping[str, Tensor] = MappingProxyType({})


class Attention(Component, family=True):
    """Where to listen, for each output token.

    Subclasses take ``(encoder_dim, query_dim, *, ...)`` and set ``context_dim``, ``heads``.
    """

    #: what ``asr attentions`` says of it
    about: ClassVar[About]
    context_dim: int
    heads: int = 1
    #: whether each row of weights sums to one (monotonic ones may fall below)
    normalised: ClassVar[bool] = True

    @abstractmethod
    def prepare(self, encoded: Encoded) -> Memory:
        """Keys and values of an utterance, computed once and never repeated per hypothesis."""

    @abstractmethod
    def initial_state(self, memory: Memory, rows: int) -> Any:
        """The state before the first token for ``rows`` rows (N), each leaf N-first."""

    @abstractmethod
    def step(
        self, query: Tensor, memory: Memory, state: Any, *, mode: Mode
    ) -> tuple[Attended, Any]:
        """One token: query (N,H) -> Attended and the next state."""

    def sequence(self, queries: Tensor, memory: Memory, *, mode: Mode) -> Attended:
        """All tokens at once, (N,U,H); mechanisms that look at nothing earlier need no loop."""
        state = self.initial_state(memory, queries.shape[0])
        steps = []
        for query in queries.unbind(1):
            attended, state = self.step(query, memory, state, mode=mode)
            steps.append(attended)
        return stack_attended(steps)

    def loss(
        self, terms: Mapping[str, Tensor], mask: Tensor, token_log_probs: Tensor
    ) -> Tensor | None:
        """What the mechanism adds to the training loss (REINFORCE, coverage ...); None by default.

        ``terms`` each (B,U,...), ``mask`` (B,U) True on real tokens, ``token_log_probs`` (B,U).
        """
        return None

    def guided(self, weights: Tensor, terms: Mapping[str, Tensor]) -> Tensor:
        """What a guide of attention pushes at (B,U,A,S): weights, or else what they are drawn from.

        ``weights`` (B,U,A,S) and ``terms``, each (B,U,...), are those of one pass.
        """
        return weights


def stack_attended(steps: list[Attended]) -> Attended:
    """Attended of single tokens, each N-first, to one with U as the second axis."""
    names = steps[0].terms.keys()
    return Attended(
        torch.stack([s.context for s in steps], 1),
        torch.stack([s.weights for s in steps], 1),
        {name: torch.stack([s.terms[name] for s in steps], 1) for name in names},
    )


def memory_mask(encoded: Encoded) -> Tensor:
    """(B,S) True on real encoder frames."""
    return length_mask(encoded.lengths, encoded.states.shape[1])
