"""What a search did, step by step, and reading a hypothesis' own history out of it.

Nothing is copied while searching: each step leaves back-pointers and the weights of its rows as
they were before any reordering, and the few hypotheses that are returned walk back through them.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple

import torch
from torch import Tensor

from asr.search.scorers import Scores
from asr.text import EOS
from asr.types import Encoded, Hypothesis

#: not an attention term: nothing else may be called so
_WEIGHTS = ""


class End(NamedTuple):
    """Where a hypothesis stops: its utterance (of those searched), step and slot, and its score.

    Step -1 is the hypothesis without tokens.
    """

    utterance: int
    step: int
    slot: int
    score: float


@dataclass
class _Step:
    positions: Mapping[int, int]  # utterance -> its place among those still searched
    parents: Tensor  # (B',K) slot in the step before
    tokens: Tensor  # (B',K)
    log_probs: Tensor  # (B',K) of the token, by the speller
    kept: Mapping[str, Tensor]  # weights (B' x K, A, S) and terms (B' x K, ...), of the parents


class Trace:
    """The steps of one search over ``beam`` slots an utterance; ``record`` keeps the weights."""

    def __init__(self, beam: int, *, record: bool) -> None:
        self.beam = beam
        self.record = record
        self.steps: list[_Step] = []

    def add(
        self,
        searched: Sequence[int],
        voice: Scores,
        tokens: Tensor,
        parents: Tensor | None = None,
    ) -> None:
        """One step of the utterances ``searched`` (B'): tokens and the parents' slots (B',K)."""
        if parents is None:
            parents = torch.zeros_like(tokens)
        first = torch.arange(len(searched), device=tokens.device).unsqueeze(1) * self.beam
        log_probs = voice.log_probs[(first + parents).flatten(), tokens.flatten()]
        last = self.steps[-1].positions if self.steps else {}
        self.steps.append(
            _Step(
                # utterances only ever leave, so the same number means the same ones
                last if len(last) == len(searched) else {u: i for i, u in enumerate(searched)},
                parents,
                tokens,
                log_probs.view_as(tokens),
                _kept(voice) if self.record else {},
            )
        )

    def read(self, ends: Sequence[End], frames: Sequence[int], heads: int) -> list[Hypothesis]:
        """The hypotheses that stop at ``ends``; weights (U,A,S) on the CPU, S the utterance's own.

        ``frames`` are the encoder frames of each utterance, ``heads`` shapes the weights of a
        hypothesis without tokens. Terms keep the shape they were given, (U,...).
        """
        parents, tokens, log_probs = (
            [s.tolist() for s in self._fetch(name)] for name in ("parents", "tokens", "log_probs")
        )
        wanted: list[list[int]] = [[] for _ in self.steps]
        found = []
        for end in ends:
            path, slot = [], end.slot
            for step in range(end.step, -1, -1):
                place = self.steps[step].positions[end.utterance]
                parent = parents[step][place][slot]
                token, log_prob = tokens[step][place][slot], log_probs[step][place][slot]
                path.append((step, len(wanted[step]), token, log_prob))
                wanted[step].append(place * self.beam + parent)
                slot = parent
            found.append(path[::-1])
        kept = {
            name: _gather([step.kept[name] for step in self.steps], wanted)
            for name in (self.steps[0].kept if any(wanted) else ())
        }
        starts = [0]
        for rows in wanted:
            starts.append(starts[-1] + len(rows))
        made = []
        for end, path in zip(ends, found, strict=True):
            ids = [token for _, _, token, _ in path]
            ended = bool(ids) and ids[-1] == EOS
            index = torch.tensor([starts[step] + i for step, i, _, _ in path], dtype=torch.long)
            terms = {name: rows[index] for name, rows in kept.items()}
            weights = terms.pop(_WEIGHTS, torch.zeros(0, heads, frames[end.utterance]))
            made.append(
                Hypothesis(
                    tokens=tuple(ids[:-1] if ended else ids),
                    score=end.score,
                    log_probs=tuple(value for *_, value in path),
                    weights=weights[..., : frames[end.utterance]] if self.record else None,
                    ended=ended,
                    terms=terms,
                )
            )
        return made

    def _fetch(self, name: str) -> Sequence[Tensor]:
        """One small tensor of every step, brought to the CPU in a single transfer."""
        kept: list[Tensor] = [getattr(step, name) for step in self.steps]
        if not kept:
            return []
        flat = torch.cat([t.flatten() for t in kept]).cpu()
        parts = flat.split([t.numel() for t in kept])
        return [part.view(t.shape) for part, t in zip(parts, kept, strict=True)]


def _kept(voice: Scores) -> dict[str, Tensor]:
    kept = dict(voice.terms)
    return kept if voice.weights is None else {**kept, _WEIGHTS: voice.weights}


def _gather(kept: Sequence[Tensor], wanted: Sequence[Sequence[int]]) -> Tensor:
    """The wanted rows of every step, one after another, on the CPU."""
    rows = torch.tensor([row for step in wanted for row in step], device=kept[0].device)
    parts = rows.split([len(step) for step in wanted])
    return torch.cat([t.index_select(0, i) for t, i in zip(kept, parts, strict=True)]).cpu()


def speechless(frames: int, heads: int, *, record: bool) -> Hypothesis:
    """The one hypothesis where there is nothing to hear, or nothing that may be said."""
    weights = torch.zeros(0, heads, frames) if record else None
    return Hypothesis((), 0.0, (), weights, ended=frames == 0)


def audible(encoded: Encoded) -> tuple[Encoded, list[int], list[int]]:
    """Without the utterances of no frames: the rest, which ones they are, and their frames.

    Nothing can attend to nothing, so such utterances are never searched.
    """
    frames = encoded.lengths.tolist()
    kept = [i for i, n in enumerate(frames) if n]
    if len(kept) == len(frames):
        return encoded, kept, frames
    index = torch.tensor(kept, dtype=torch.long, device=encoded.states.device)
    rest = Encoded(encoded.states[index], encoded.lengths[index])
    return rest, kept, [frames[i] for i in kept]
