"""Whether one system is better than another on the same utterances.

Two questions, two tests. *Matched pairs*: L. Gillick and S. J. Cox, "Some statistical issues in the
comparison of speech recognition algorithms", ICASSP 1989, on the sentence segments of
NIST's sc_stats (MAPSSWE): do the errors per segment differ, segments taken for independent?
*Paired bootstrap*: M. Bisani and H. Ney, "Bootstrap estimates for confidence intervals in ASR
performance evaluation", ICASSP 2004: how far do the rates differ, and in what share of
samples is the second lower? It may resample speakers, which need not be alike in their segments.
"""

from __future__ import annotations

import math
from array import array
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from asr.errors import InputError
from asr.evaluation import bootstrap
from asr.evaluation.aligners import ALIGNERS, Edit
from asr.evaluation.bootstrap import Interval
from asr.evaluation.report import Report, Summary
from asr.evaluation.scoring import units
from asr.text.normalise import normalise

APART = 2  # words that both systems have right end a segment: sc_stats' own default
FEW = 50  # segments, below which the normal distribution is not to be trusted


@dataclass(frozen=True)
class MatchedPairs:
    """Gillick and Cox's test over ``segments`` segments, each with an error of either system.

    ``mean`` and ``deviation`` of the difference in errors per segment (first minus second: above
    zero where the first makes more), ``z`` the normal statistic, ``p`` its two-sided probability
    if there were no difference. Both are None where all segments differ by the same amount and
    that is not zero, so that their deviation says nothing (sc_stats prints 0 there).
    """

    segments: int
    mean: float
    deviation: float
    z: float | None
    p: float | None

    @property
    def warning(self) -> str:
        if self.z is None:
            return "the segments all differ by the same: the matched-pair test is not defined"
        if self.segments >= FEW:
            return ""
        return (
            f"only {self.segments} segments with an error: the matched-pair test is rough "
            f"(fewer than {FEW})"
        )


@dataclass(frozen=True)
class Comparison:
    """A second system against the first, on the same references.

    ``difference`` is the second's word error rate minus the first's (below zero: the second is
    better; None without reference words), ``interval`` that of the difference, ``improvement`` the
    share of bootstrap samples in which the second's rate is lower; samples with equal rates do not
    count. The last two are None where there is no interval, and with ``matched_pairs`` where no
    test was asked for.
    """

    first: Summary
    second: Summary
    missing: tuple[str, ...]
    difference: float | None
    interval: Interval | None = None
    improvement: float | None = None
    matched_pairs: MatchedPairs | None = None

    @property
    def warnings(self) -> tuple[str, ...]:
        found = (each.warning for each in (self.interval, self.matched_pairs) if each)
        return tuple(warning for warning in found if warning)

    def to_json(self) -> dict[str, Any]:
        return {
            "first": self.first.to_json(),
            "second": self.second.to_json(),
            "missing": list(self.missing),
            "difference": self.difference,
            "interval": self.interval.to_json() if self.interval else None,
            "probability_of_improvement": self.improvement,
            "matched_pairs": asdict(self.matched_pairs) if self.matched_pairs else None,
        }


def compare(
    first: Report,
    second: Report,
    *,
    significance: bool = True,
    ci: float | None = 0.95,
    replicates: int = 2000,
    seed: int = 0,
) -> Comparison:
    """The second of two systems against the first; ``significance`` adds both tests (without
    ``ci`` the matched pairs alone).

    The reports must be of the same references under the same normaliser and aligner. Speakers
    are resampled where the first report knows two or more, else utterances. Raises InputError
    when the references differ, ValueError for what is out of range.
    """
    if ci is not None and not 0 < ci < 1:
        raise ValueError(f"ci must lie between 0 and 1, not {ci!r}")
    if replicates < 1:
        raise ValueError(f"replicates must be 1 or more, not {replicates!r}")
    how = [(r.normalizer["name"], r.aligner["name"]) for r in (first, second)]
    if how[0] != how[1]:
        raise ValueError(f"normalizer and aligner must be the same, not {how[0]} and {how[1]}")
    before, after = first.utterances, second.utterances
    if [(u.id, u.reference) for u in before] != [(u.id, u.reference) for u in after]:
        raise InputError("the two systems were scored on different references; give the same")
    rates = first.wer, second.wer
    difference = None if None in rates else rates[1] - rates[0]  # type: ignore[operator]
    if not significance:
        return Comparison(first.summary, second.summary, second.missing, difference)
    interval = improvement = None
    if ci is not None:
        interval, improvement = paired_bootstrap(
            [(u.words.errors, v.words.errors) for u, v in zip(before, after, strict=True)],
            [u.words.reference for u in before],
            units([u.id for u in before], {u.id: u.speaker for u in before if u.speaker}),
            level=ci,
            replicates=replicates,
            seed=seed,
        )
    normalizer, aligner = how[0]
    errors = array("q")
    for u, v in zip(before, after, strict=True):
        texts = (u.reference, u.hypothesis or "", v.hypothesis or "")
        said, *heard = (normalise(text, normalizer).split() for text in texts)
        for pair in segments(*(ALIGNERS[aligner](said, each) for each in heard)):
            errors.extend(pair)
    return Comparison(
        first.summary,
        second.summary,
        second.missing,
        difference,
        interval,
        improvement,
        matched_pairs(np.array(errors).reshape(-1, 2)),
    )


def segments(first: Sequence[Edit], second: Sequence[Edit]) -> list[tuple[int, int]]:
    """Errors of both systems in each segment of one utterance, of two alignments to one reference.

    A segment goes from an error of either system to the next place where both have two words
    right on end, with nothing inserted between them; what is right throughout is in none.
    """
    found: list[tuple[int, int]] = []
    end = -APART
    ours = ((place, op, 0) for op, place, _ in first)
    theirs = ((place, op, 1) for op, place, _ in second)
    # An insertion stands before its reference word, so that it comes first and takes no room.
    for place, op, which in sorted((*ours, *theirs), key=lambda each: (each[0], each[1] != "I")):
        if not found or place - end >= APART:
            found.append((0, 0))
        errors = found[-1]
        found[-1] = (errors[0] + (which == 0), errors[1] + (which == 1))
        end = max(end, place + (op != "I"))
    return found


def matched_pairs(errors: ArrayLike) -> MatchedPairs:
    """The test on the errors (n,2) that two systems made in n segments.

    Gillick and Cox's W = mean / (deviation / sqrt(n)), the deviation with n - 1.
    """
    errors = np.asarray(errors, dtype=np.float64).reshape(-1, 2)
    difference = errors[:, 0] - errors[:, 1]
    count = len(difference)
    mean = float(difference.mean()) if count else 0.0
    deviation = float(difference.std(ddof=1)) if count > 1 else 0.0
    if mean and not deviation:
        return MatchedPairs(count, mean, deviation, None, None)
    z = mean / (deviation / math.sqrt(count)) if deviation else 0.0
    return MatchedPairs(count, mean, deviation, z, math.erfc(abs(z) / math.sqrt(2)))


def paired_bootstrap(
    errors: ArrayLike,
    lengths: ArrayLike,
    units: Sequence[str] | None,
    *,
    level: float = 0.95,
    replicates: int = 2000,
    seed: int = 0,
) -> tuple[Interval | None, float | None]:
    """Interval of the difference in rate (second minus first), and probability of improvement.

    ``errors`` (n,2) of both systems and ``lengths`` (n,) of the references; both systems share
    every sample. ``units`` as in :func:`asr.evaluation.bootstrap.intervals`. None and None for
    fewer than two units.
    """
    columns = np.concatenate([np.asarray(errors), np.asarray(lengths)[:, None]], axis=1)
    sums: NDArray[np.float64] = bootstrap.by_unit(columns, units)
    count = len(sums)
    if count < 2:
        return None, None
    sums = bootstrap.thinned(sums, seed)
    rates = bootstrap.resampled_rates(
        sums[:, :2], sums[:, [2, 2]], replicates=replicates, seed=seed
    )
    change = rates[:, 1] - rates[:, 0]
    ends = bootstrap.percentiles(change, level)
    if ends is None:
        return None, None
    unit = "utterance" if units is None else "speaker"
    defined = change[~np.isnan(change)]
    interval = Interval(*ends, level, replicates, seed, unit, count)
    return interval, float(np.mean(defined < 0))
