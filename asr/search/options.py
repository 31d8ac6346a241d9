"""What a user may say about the search.

Imports no torch: commands check it before they load a model.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import NamedTuple

from asr.errors import InputError

DEFAULT_CTC_WEIGHT = 0.3


class Limits(NamedTuple):
    """How many tokens (``<eos>`` not counted) a hypothesis of one utterance may have."""

    fewest: int
    most: int


@dataclass(frozen=True)
class SearchOptions:
    """How to search; ValueError names the parameter, its value and what is allowed.

    ``beam_size``: hypotheses kept per utterance; 1 without CTC or bonus is greedy search.
    ``ctc_weight`` w: (1-w) * speller + w * CTC prefix score (Watanabe et al. 2017); None takes
    0.3 where the model has a CTC head and 0 where it has none.
    ``length_bonus``: added to the score for each token, ``<eos>`` excepted.
    ``length_exponent`` a: hypotheses of different lengths are ranked by score / (tokens + 1)**a,
    the 1 being ``<eos>`` (a = 1: Chan et al. 2016). Both this and the bonus correct the
    same bias towards short text, and a constant bonus cancels in an average (Murray & Chiang
    2018 compare the two): None takes 1 without a bonus, 0 with one.
    ``eos_threshold`` g: ``<eos>`` is allowed only where its log-probability exceeds g times that
    of the best other token (Hannun et al. 2019), which keeps a wide beam from ending
    early; None never forbids it. At g >= 1 it cannot change a greedy search.
    ``min_tokens_per_frame``, ``max_tokens_per_frame``: bounds on the length, in tokens per encoder
    frame (rounded down and up, the latter at least one token).
    ``nbest``: hypotheses returned per utterance, if as many were finished.
    """

    beam_size: int = 8
    ctc_weight: float | None = None
    length_bonus: float = 0.0
    length_exponent: float | None = None
    eos_threshold: float | None = 1.5
    min_tokens_per_frame: float = 0.0
    max_tokens_per_frame: float = 1.5
    nbest: int = 1

    def __post_init__(self) -> None:
        least = self.min_tokens_per_frame
        _check("beam_size", self.beam_size, _whole(self.beam_size), "a whole number >= 1")
        _check("ctc_weight", self.ctc_weight, _between(self.ctc_weight, 0, 1), "0 to 1, or None")
        _check("length_bonus", self.length_bonus, _finite(self.length_bonus), "a finite number")
        _check(
            "length_exponent",
            self.length_exponent,
            _between(self.length_exponent, 0, 1),
            "0 to 1, or None",
        )
        _check(
            "eos_threshold",
            self.eos_threshold,
            self.eos_threshold is None or (_finite(self.eos_threshold) and self.eos_threshold > 0),
            "a number > 0, or None",
        )
        _check("min_tokens_per_frame", least, _finite(least) and least >= 0, "a number >= 0")
        _check(
            "max_tokens_per_frame",
            self.max_tokens_per_frame,
            _finite(self.max_tokens_per_frame)
            and self.max_tokens_per_frame > 0
            and self.max_tokens_per_frame >= least,
            f"a number > 0, and not below min_tokens_per_frame ({least})",
        )
        _check(
            "nbest",
            self.nbest,
            _whole(self.nbest) and self.nbest <= self.beam_size,
            f"a whole number from 1 to beam_size ({self.beam_size})",
        )

    def resolve(self, *, has_ctc: bool) -> SearchOptions:
        """The same with every None that stands for a choice replaced: what is really used.

        InputError where CTC scores are asked of a model that has none.
        """
        weight = self.ctc_weight
        if weight is None:
            weight = DEFAULT_CTC_WEIGHT if has_ctc else 0.0
        if weight > 0 and not has_ctc:
            raise InputError(f"ctc_weight {weight}: this model has no CTC head; allowed: 0")
        return replace(self, ctc_weight=weight, length_exponent=self.exponent)

    @property
    def exponent(self) -> float:
        """``length_exponent``, or what its None stands for."""
        if self.length_exponent is not None:
            return self.length_exponent
        return 0.0 if self.length_bonus else 1.0

    def limits(self, frames: int) -> Limits:
        """Bounds on the number of tokens for an utterance of so many encoder frames."""
        # 1.1 * 10 is 11.000000000000002: a hair must not make one token more or less
        most = max(1, math.ceil(self.max_tokens_per_frame * frames - 1e-9))
        return Limits(math.floor(self.min_tokens_per_frame * frames + 1e-9), most)


def _check(name: str, value: object, good: bool, allowed: str) -> None:
    if not good:
        raise ValueError(f"{name} {value!r}; allowed: {allowed}")


def _finite(value: object) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool) and math.isfinite(value)


def _whole(value: object) -> bool:
    return isinstance(value, int) and not isinstance(value, bool) and value >= 1


def _between(value: float | None, low: float, high: float) -> bool:
    return value is None or (_finite(value) and low <= value <= high)
