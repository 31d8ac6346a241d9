"""Beam search over all utterances and all their hypotheses at once."""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import Tensor

from asr.search.options import SearchOptions
from asr.search.scorers import Weighted, fuse
from asr.search.trace import End, Trace, audible, speechless
from asr.text import EOS
from asr.types import Encoded, Hypothesis

_NEVER = -torch.inf


@torch.no_grad()
def beam(
    scorers: Sequence[Weighted],
    encoded: Encoded,
    options: SearchOptions,
    *,
    heads: int = 1,
    record: bool = True,
) -> list[list[Hypothesis]]:
    """The best ``options.nbest`` hypotheses of each utterance, best first; at least one each.

    The first scorer is the speller: its weights and log-probabilities are what hypotheses keep.
    Each step extends every live hypothesis by every token and keeps the best ``beam_size`` of
    an utterance; those that end in ``<eos>`` leave the beam and compete by
    :attr:`~SearchOptions.length_exponent`. An utterance is finished when no live hypothesis can
    still beat its n-th best finished one (exact, as log-probabilities only ever lower a score),
    or at its length limit; if nothing has ended by then, its best live hypotheses are
    returned with ``ended=False``. ``heads`` shapes the weights of a hypothesis without tokens;
    ``record=False`` leaves weights and terms out.
    """
    utterances = encoded.lengths.shape[0]
    encoded, heard, frames = audible(encoded)
    found = [[speechless(0, heads, record=record)] for _ in range(utterances)]
    if not heard:
        return found
    trace = Trace(options.beam_size, record=record)
    scores, references = _run(scorers, encoded, frames, options, trace)
    ends = [
        End(u, reference // options.beam_size, reference % options.beam_size, score)
        for u, row in enumerate(zip(scores.tolist(), references.tolist(), strict=True))
        for score, reference in zip(*row, strict=True)
        if score > _NEVER
    ]
    for u in heard:
        found[u] = []
    for end, hypothesis in zip(ends, trace.read(ends, frames, heads), strict=True):
        found[heard[end.utterance]].append(hypothesis)
    for u, n in zip(heard, frames, strict=True):
        found[u] = found[u] or [speechless(n, heads, record=record)]
    return found


def _run(
    scorers: Sequence[Weighted],
    encoded: Encoded,
    frames: Sequence[int],
    options: SearchOptions,
    trace: Trace,
) -> tuple[Tensor, Tensor]:
    """Fill the trace; (B,nbest) scores, best first, and where each stops: step * beam + slot.

    A score of -inf marks a place that stayed empty.
    """
    size, exponent = options.beam_size, options.exponent
    rise = max(options.length_bonus, 0.0)
    device = encoded.states.device
    limits = [options.limits(n) for n in frames]
    searched = list(range(len(frames)))  # utterances still searched: B' of them
    fewest = torch.tensor([limit.fewest for limit in limits], device=device).unsqueeze(1)
    most = torch.tensor([limit.most for limit in limits], device=device)
    best = torch.full((len(frames), options.nbest), _NEVER, device=device)
    stops = torch.zeros(len(frames), options.nbest, dtype=torch.long, device=device)

    states = [scorer.start(encoded, size) for scorer, _ in scorers]
    last = torch.full((len(frames) * size,), EOS, device=device)
    # Only the first slot is a hypothesis yet: the others would be copies of it.
    live = torch.full((len(frames), size), _NEVER, device=device)
    live[:, 0] = 0.0
    slots = torch.arange(size, device=device)
    where = torch.tensor(searched, device=device)

    for step in range(max(limit.most for limit in limits) + 1):
        total, voice, states = fuse(scorers, last, states)
        choices = total.view(len(searched), size, -1)
        vocabulary = choices.shape[-1]
        if any(limits[u].fewest > step for u in searched):
            choices[..., EOS].masked_fill_(fewest[where] > step, _NEVER)
        scores, picked = (live.unsqueeze(-1) + choices).flatten(1).topk(size)
        parents, tokens = picked // vocabulary, picked % vocabulary
        trace.add(searched, voice, tokens, parents)

        ends = tokens == EOS
        ranked = scores.masked_fill(~ends, _NEVER) / (step + 1) ** exponent
        best[where], stops[where] = _merge(best[where], stops[where], ranked, step * size + slots)
        before, live = live, scores.masked_fill(ends, _NEVER)

        # Log-probabilities never rise above 0, so the most that a live hypothesis can reach
        # is what it has, all of the bonus to come, and the length that flatters it most.
        left = (most[where] - step - 1).clamp(min=0)
        reach = (live.amax(1) + rise * left) / (step + 2 + left) ** exponent
        done = (reach <= best[where, -1]) | (most[where] <= step)
        verdict = (done.long() + (done & (best[where, 0] == _NEVER))).tolist()

        if 2 in verdict:  # nothing has ended: take the live ones as they were before this step
            for (scorer, weight), state in zip(scorers, states, strict=True):
                gain = weight * scorer.final(state)
                before = before + gain.expand(before.numel()).view_as(before)
            bare = torch.tensor([v == 2 for v in verdict], device=device).unsqueeze(1)
            ranked = before.masked_fill(~bare, _NEVER) / max(step, 1) ** exponent
            best[where], stops[where] = _merge(
                best[where], stops[where], ranked, (step - 1) * size + slots
            )
        if any(verdict):
            stay = [i for i, v in enumerate(verdict) if not v]
            if not stay:
                break
            searched = [searched[i] for i in stay]
            staying = torch.tensor(stay, device=device)
            where, live, tokens = where[staying], live[staying], tokens[staying]
            parents = parents[staying] + size * staying.unsqueeze(1)
        else:
            parents = parents + size * torch.arange(len(searched), device=device).unsqueeze(1)
        rows, last = parents.flatten(), tokens.flatten()
        states = [
            scorer.select(state, rows, last)
            for (scorer, _), state in zip(scorers, states, strict=True)
        ]
    return best, stops


def _merge(best: Tensor, stops: Tensor, new: Tensor, at: Tensor) -> tuple[Tensor, Tensor]:
    """The best of (B',nbest) known and (B',K) new scores, with where they stop (at (K,))."""
    scores, index = torch.cat([best, new], 1).topk(best.shape[1])
    return scores, torch.cat([stops, at.expand(new.shape)], 1).gather(1, index)
