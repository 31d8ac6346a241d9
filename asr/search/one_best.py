"""One hypothesis an utterance, no beam: greedy search, and following a given text."""

from __future__ import annotations

from dataclasses import replace
from typing import Protocol

import torch
from torch import Tensor

from asr.nn.decoders.base import Speller
from asr.search.options import SearchOptions
from asr.search.scorers import SpellerScorer
from asr.search.trace import End, Trace, audible, speechless
from asr.text import EOS
from asr.types import Encoded, Hypothesis


class HasSpeller(Protocol):
    """Anything with a speller: a whole model."""

    speller: Speller


@torch.no_grad()
def greedy(
    model: HasSpeller | Speller,
    encoded: Encoded,
    options: SearchOptions | None = None,
    *,
    record: bool = True,
) -> list[Hypothesis]:
    """The likeliest token at each step, for all utterances at once, by the speller alone.

    Of ``options`` it reads ``eos_threshold``, the length limits and ``length_exponent`` (for the
    score). ``record=False`` leaves weights and terms out. The same as a beam of 1.
    """
    options = options or SearchOptions(beam_size=1)
    speller = _speller(model)
    scorer = SpellerScorer(speller, eos_threshold=options.eos_threshold)
    heads = speller.attention.heads
    found = [speechless(0, heads, record=record)] * encoded.lengths.shape[0]
    encoded, searched, frames = audible(encoded)
    if not searched:
        return found
    trace = Trace(1, record=record)
    heard, limits = searched, [options.limits(n) for n in frames]
    searched = list(range(len(heard)))
    fewest = torch.tensor([limit.fewest for limit in limits], device=encoded.states.device)
    most = torch.tensor([limit.most for limit in limits], device=encoded.states.device)
    last = torch.full_like(most, EOS)
    state = scorer.start(encoded, 1)
    ends = []
    for step in range(max(limit.most for limit in limits) + 1):
        scores, state = scorer.score(last, state)
        if any(limits[u].fewest > step for u in searched):
            scores.log_probs[:, EOS].masked_fill_(fewest > step, -torch.inf)
        likeliest, tokens = scores.log_probs.nan_to_num(nan=-torch.inf, neginf=-torch.inf).max(-1)
        trace.add(searched, scores, tokens.unsqueeze(1))
        # 1: ended here; 2: no room for this token, or none is possible
        cut = (most <= step) | likeliest.isneginf()
        verdict = torch.where((tokens == EOS) & ~likeliest.isneginf(), 1, 2 * cut).tolist()
        ends += [End(u, step + 1 - v, 0, 0.0) for u, v in zip(searched, verdict, strict=True) if v]
        stay = [i for i, v in enumerate(verdict) if not v]
        if not stay:
            break
        if len(stay) < len(searched):
            searched = [searched[i] for i in stay]
            rows = torch.tensor(stay, device=tokens.device)
            tokens, fewest, most = tokens[rows], fewest[rows], most[rows]
            state = scorer.select(state, rows, tokens)
        last = tokens
    for end, hypothesis in zip(ends, trace.read(ends, frames, heads), strict=True):
        found[heard[end.utterance]] = _ranked(hypothesis, options.exponent)
    return found


@torch.no_grad()
def forced(
    model: HasSpeller | Speller,
    encoded: Encoded,
    targets: Tensor,
    lengths: Tensor,
    *,
    record: bool = True,
) -> list[Hypothesis]:
    """What the speller does when made to write ``targets`` (B,U), ``lengths`` (B,), and ``<eos>``.

    Step by step as when searching, so the weights of a text that a search produced are those
    that the search saw. No token is forbidden. ``score`` is the mean log-probability of the
    tokens and ``<eos>``. An utterance of no frames gives a hypothesis without tokens.
    """
    speller = _speller(model)
    scorer = SpellerScorer(speller, banned=())
    heads = speller.attention.heads
    found = [speechless(0, heads, record=record)] * encoded.lengths.shape[0]
    encoded, heard, frames = audible(encoded)
    if not heard:
        return found
    device = encoded.states.device
    index = torch.tensor(heard, device=device)
    counts = lengths.to(device)[index].tolist()
    given = torch.full((len(heard), max(counts) + 1), EOS, device=device)
    for row, (u, count) in enumerate(zip(heard, counts, strict=True)):
        given[row, :count] = targets[u, :count].to(device)
    trace = Trace(1, record=record)
    state = scorer.start(encoded, 1)
    last = torch.full((len(heard),), EOS, device=device)
    for tokens in given.unbind(1):
        scores, state = scorer.score(last, state)
        trace.add(range(len(heard)), scores, tokens.unsqueeze(1))
        last = tokens
    ends = [End(row, count, 0, 0.0) for row, count in enumerate(counts)]
    for u, hypothesis in zip(heard, trace.read(ends, frames, heads), strict=True):
        found[u] = _ranked(hypothesis, 1.0)
    return found


def _speller(model: HasSpeller | Speller) -> Speller:
    return model if isinstance(model, Speller) else model.speller


def _ranked(hypothesis: Hypothesis, exponent: float) -> Hypothesis:
    """With the sum of its log-probabilities, over the number of tokens to a power, as its score."""
    written = max(len(hypothesis.log_probs), 1)
    return replace(hypothesis, score=sum(hypothesis.log_probs) / written**exponent)
