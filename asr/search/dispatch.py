"""The front door: which search a set of options asks for."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Protocol

from torch import Tensor

from asr.nn.decoders.base import Speller
from asr.search.beam_search import beam
from asr.search.ctc import CTCPrefixScorer
from asr.search.one_best import greedy
from asr.search.options import SearchOptions
from asr.search.scorers import LengthBonus, SpellerScorer, Weighted
from asr.types import Encoded, Hypothesis


class Searchable(Protocol):
    """What is needed of a model; ``ctc`` is None where it has no CTC head."""

    speller: Speller
    ctc: Any
    vocabulary_size: int

    def ctc_log_probs(self, encoded: Encoded) -> Tensor:
        """(B,S,V) log-softmaxed CTC outputs."""


def search(
    model: Searchable,
    encoded: Encoded,
    options: SearchOptions | None = None,
    *,
    fusion: Sequence[Weighted] = (),
    record: bool = True,
) -> list[list[Hypothesis]]:
    """The best hypotheses of each utterance, best first, at least one each.

    Greedy where ``beam_size`` is 1 and nothing but the speller scores; otherwise a beam over
    (1-w) * speller + w * CTC + bonus, and whatever ``fusion`` adds (a language model ...).
    ``record=False`` leaves weights and terms out. InputError where CTC scores are asked of a
    model without a CTC head.
    """
    options = (options or SearchOptions()).resolve(has_ctc=model.ctc is not None)
    weight = options.ctc_weight or 0.0
    if options.beam_size == 1 and not weight and not options.length_bonus and not fusion:
        return [[one] for one in greedy(model, encoded, options, record=record)]
    speller = SpellerScorer(model.speller, eos_threshold=options.eos_threshold)
    scorers = [Weighted(speller, 1 - weight)]
    if weight:
        scorers.append(Weighted(CTCPrefixScorer(model.ctc_log_probs), weight))
    if options.length_bonus:
        scorers.append(Weighted(LengthBonus(model.vocabulary_size), options.length_bonus))
    heads = model.speller.attention.heads
    return beam([*scorers, *fusion], encoded, options, heads=heads, record=record)
