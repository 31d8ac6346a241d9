"""What scores the next token, and how several opinions become one.

Rows are hypotheses, utterance-major: N = B x beam. A scorer never keeps state on itself.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from types import MappingProxyType
from typing import Any, NamedTuple, Protocol, TypeVar

import torch
from torch import Tensor

from asr.nn.attention.base import Memory
from asr.nn.decoders.base import Speller
from asr.search.tree import survive
from asr.text import BLANK, EOS, UNK
from asr.types import Encoded

StateT = TypeVar("StateT")


class Scores(NamedTuple):
    """log_probs (N,V) or broadcastable; of a speller also weights (N,A,S), terms (N,...)."""

    log_probs: Tensor
    weights: Tensor | None = None
    terms: Mapping[str, Tensor] = MappingProxyType({})


class Scorer(Protocol[StateT]):
    """One opinion on the next token: a speller, CTC, a language model, coverage ..."""

    def start(self, encoded: Encoded, beam: int) -> StateT:
        """The state of the empty hypothesis for ``beam`` rows of each utterance."""

    def score(self, last: Tensor, state: StateT, heard: Tensor | None) -> tuple[Scores, StateT]:
        """Scores of every next token.

        ``last`` (N,) is the token just taken (``<sos>`` first), ``heard`` (N,A,S) the weights of
        the speller in this very step (it runs first; None for the speller itself).
        """

    def select(self, state: StateT, rows: Tensor, tokens: Tensor) -> StateT:
        """rows (N',) that survive, in their new order, each with the token (N',) appended to it.

        N' is smaller than N where utterances are finished; each still has all of its rows.
        """

    def final(self, state: StateT) -> Tensor:
        """(N,), or broadcastable: what a hypothesis gains by stopping where it is, unfinished.

        Asked for only where nothing was finished at the length limit.
        """


class Weighted(NamedTuple):
    """A scorer and what its scores are multiplied by."""

    scorer: Scorer[Any]
    weight: float = 1.0


class Fused(NamedTuple):
    """One step of all scorers: total (N,V), what the first one said, and their new states."""

    total: Tensor
    voice: Scores
    states: list[Any]


def fuse(scorers: Sequence[Weighted], last: Tensor, states: Sequence[Any]) -> Fused:
    """Weighted sum of all scores; what one scorer forbids is forbidden, whatever its weight.

    NaN (a broken model) counts as forbidden: it must neither win nor spread.
    """
    total: Tensor | None = None
    voice: Scores | None = None
    after = []
    for (scorer, weight), state in zip(scorers, states, strict=True):
        scores, state = scorer.score(last, state, voice.weights if voice else None)
        voice = voice or scores
        after.append(state)
        part = scores.log_probs
        # 0 * -inf would be NaN
        part = part * weight if weight else part.masked_fill(part > -torch.inf, 0.0)
        total = part if total is None else total + part
    assert total is not None and voice is not None
    return Fused(total.nan_to_num(nan=-torch.inf, neginf=-torch.inf), voice, after)


class SpellerState(NamedTuple):
    """memory is per utterance, inner per row; beam rows an utterance."""

    memory: Memory
    inner: Any
    beam: int


class SpellerScorer:
    """The speller's own log-probabilities, in float32; ``banned`` ids never.

    ``eos_threshold``: see :class:`asr.search.options.SearchOptions`.
    """

    def __init__(
        self,
        speller: Speller,
        *,
        eos_threshold: float | None = None,
        banned: Collection[int] = (BLANK, UNK),
    ) -> None:
        self.speller = speller
        self.eos_threshold = eos_threshold
        self.banned = tuple(banned)

    def start(self, encoded: Encoded, beam: int) -> SpellerState:
        rows = encoded.states.shape[0] * beam
        return SpellerState(*self.speller.start(encoded, rows), beam)

    def score(
        self, last: Tensor, state: SpellerState, heard: Tensor | None = None
    ) -> tuple[Scores, SpellerState]:
        step = self.speller.step(last, state.memory, state.inner)
        log_probs = torch.log_softmax(step.logits.float(), dim=-1)
        for token in self.banned:
            log_probs[:, token] = -torch.inf
        if self.eos_threshold is not None:
            end = log_probs[:, EOS].clone()
            log_probs[:, EOS] = -torch.inf
            allowed = end > self.eos_threshold * log_probs.amax(-1)
            log_probs[:, EOS] = end.masked_fill(~allowed, -torch.inf)
        return Scores(log_probs, step.weights, step.terms), state._replace(inner=step.state)

    def select(self, state: SpellerState, rows: Tensor, tokens: Tensor) -> SpellerState:
        memory, inner = survive(
            state.memory,
            state.inner,
            rows,
            utterances=state.memory.mask.shape[0],
            beam=state.beam,
        )
        return SpellerState(memory, inner, state.beam)

    def final(self, state: SpellerState) -> Tensor:
        return state.memory.values.new_zeros(1, dtype=torch.float32)


class LengthBonus:
    """1 for each token but ``<eos>``; its weight is the bonus."""

    def __init__(self, vocabulary_size: int) -> None:
        self.vocabulary_size = vocabulary_size

    def start(self, encoded: Encoded, beam: int) -> Tensor:
        bonus = torch.ones(1, self.vocabulary_size, device=encoded.states.device)
        bonus[:, EOS] = 0
        return bonus

    def score(
        self, last: Tensor, state: Tensor, heard: Tensor | None = None
    ) -> tuple[Scores, Tensor]:
        return Scores(state), state

    def select(self, state: Tensor, rows: Tensor, tokens: Tensor) -> Tensor:
        return state

    def final(self, state: Tensor) -> Tensor:
        return state.new_zeros(1)
