"""Whether word confidences can be believed: calibration, and how well they point at errors.

Only words that were recognised carry a confidence, so hits, substitutions and insertions are
measured; a deleted word has none and is not seen here.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from asr.errors import InputError
from asr.evaluation.counts import Step
from asr.evaluation.report import Report
from asr.text.normalise import normalise

#: What one word that was certain and wrong costs is -log2 of this, not infinity.
FLOOR = 1e-7
_CURVE = 100  # most points of a curve that is kept; areas are computed from all of them


@dataclass(frozen=True)
class Bin:
    """Words of confidence in [``low``, ``high``), the last bin closed above; None: no words."""

    low: float
    high: float
    words: int
    confidence: float | None
    accuracy: float | None


@dataclass(frozen=True)
class Calibration:
    """What :func:`measure` found about ``words`` recognised words, ``correct`` of them right.

    ``nce`` and ``auc`` are None where they are not defined: when all words are right, or none is.
    ``roc`` is the curve behind ``auc``: share of right words flagged in vain, share of wrong
    words flagged, as the threshold rises.
    """

    words: int
    correct: int
    nce: float | None
    auc: float | None
    ece: float | None
    bins: tuple[Bin, ...] = ()
    roc: tuple[tuple[float, float], ...] = ()

    @property
    def accuracy(self) -> float | None:
        """Share of the recognised words that are right."""
        return self.correct / self.words if self.words else None

    def to_json(self) -> dict[str, Any]:
        """JSON-ready, without NaN."""
        return {
            "words": self.words,
            "correct": self.correct,
            "accuracy": self.accuracy,
            "nce": self.nce,
            "auc": self.auc,
            "ece": self.ece,
            "bins": [asdict(bin) for bin in self.bins],
            "roc": [list(point) for point in self.roc],
        }


def measure(pairs: Sequence[tuple[float, bool]], *, bins: int = 10) -> Calibration:
    """Calibration of (confidence in [0, 1], correct) of each recognised word.

    - ``nce``: normalised cross entropy (:func:`normalised_cross_entropy`).
    - ``auc``: area under the ROC curve of error detection (:func:`error_detection`).
    - ``ece``: expected calibration error, the mean over words of the distance between accuracy and
      mean confidence of their bin, over ``bins`` bins of equal width (C. Guo et al., "On
      calibration of modern neural networks", ICML 2017, eq. 3; their bins are closed above, ours
      below).

    Raises ValueError for a confidence outside [0, 1] or fewer than one bin.
    """
    if bins < 1:
        raise ValueError(f"bins must be 1 or more, not {bins!r}")
    confidence = np.array([pair[0] for pair in pairs], dtype=np.float64)
    correct = np.array([bool(pair[1]) for pair in pairs], dtype=bool)
    bad = confidence[~((confidence >= 0) & (confidence <= 1))]  # NaN is bad too
    if bad.size:
        raise ValueError(f"confidences must lie in [0, 1], not {float(bad[0])!r}")
    auc, roc = error_detection(confidence, correct)
    table = _binned(confidence, correct, bins)
    gaps = [
        bin.words * abs(bin.accuracy - bin.confidence)
        for bin in table
        if bin.accuracy is not None and bin.confidence is not None
    ]
    return Calibration(
        words=len(confidence),
        correct=int(correct.sum()),
        nce=normalised_cross_entropy(confidence, correct),
        auc=auc,
        ece=sum(gaps) / len(confidence) if len(confidence) else None,
        bins=table,
        roc=roc,
    )


def normalised_cross_entropy(
    confidence: NDArray[np.float64], correct: NDArray[np.bool_]
) -> float | None:
    """NIST's NCE of ``confidence`` (n,) in [0, 1] and ``correct`` (n,) bool.

    ``(Hmax + sum over right words of log2 p + sum over wrong words of log2(1 - p)) / Hmax``, where
    ``Hmax = -k log2(k / n) - (n - k) log2(1 - k / n)`` for k right words of n (M. Siu, H. Gish and
    F. Richardson, "Improved estimation, evaluation and applications of confidence measures for
    speech recognition", Eurospeech 1997; the measure of NIST's Hub-5 evaluations and sclite).
    1 for an oracle, 0 for confidences that all equal k / n, below 0 for worse than that.
    Probabilities of what happened are floored at :data:`FLOOR`. None where Hmax is 0.
    """
    n, k = len(confidence), int(correct.sum())
    if k in (0, n):
        return None
    most = -k * math.log2(k / n) - (n - k) * math.log2(1 - k / n)
    happened = np.where(correct, confidence, 1 - confidence)
    return float((most + np.log2(np.maximum(happened, FLOOR)).sum()) / most)


def error_detection(
    confidence: NDArray[np.float64], correct: NDArray[np.bool_]
) -> tuple[float | None, tuple[tuple[float, float], ...]]:
    """ROC of flagging words whose confidence is at most a threshold; the wrong are to be found.

    The area is the probability that a wrong word has a lower confidence than a right one, ties
    counting half (T. Fawcett, "An introduction to ROC analysis", 2006): words of one confidence
    enter the curve together, as one straight stroke. ``confidence`` (n,), ``correct`` (n,).
    """
    n, k = len(confidence), int(correct.sum())
    if k in (0, n):
        return None, ()
    _, rank = np.unique(confidence, return_inverse=True)
    right = np.concatenate([[0], np.bincount(rank, weights=correct).cumsum()]) / k
    wrong = np.concatenate([[0], np.bincount(rank, weights=~correct).cumsum()]) / (n - k)
    area = float(np.sum(np.diff(right) * (wrong[1:] + wrong[:-1]) / 2))
    # Thinned by length along the curve, so that its bend keeps its points.
    along = right + wrong
    kept = np.unique(np.searchsorted(along, np.linspace(0, 2, _CURVE) - 1e-9))
    kept = np.unique(np.concatenate([kept[kept < len(along)], [len(along) - 1]]))
    return area, tuple((float(right[i]), float(wrong[i])) for i in kept)


def pairs(alignment: Sequence[Step], confidences: Sequence[float]) -> list[tuple[float, bool]]:
    """(confidence, correct) of the recognised words of one utterance, in order.

    ``alignment`` as in :class:`~asr.evaluation.report.UtteranceScore`, ``confidences`` one for each
    word of its hypothesis. Raises ValueError when their numbers differ.
    """
    heard = [step for step in alignment if step.hypothesis is not None]
    if len(heard) != len(confidences):
        raise ValueError(
            f"confidences must be one for each of the {len(heard)} words recognised, "
            f"not {len(confidences)}"
        )
    return [(float(c), step.op == "=") for step, c in zip(heard, confidences, strict=True)]


class Collected(NamedTuple):
    """``pairs`` of a whole report, the ``confidences`` by utterance id that they were made from,
    and the ids of those ``skipped`` because their words could not be told apart any more."""

    pairs: list[tuple[float, bool]]
    confidences: dict[str, list[float]]
    skipped: tuple[str, ...]


def collect(report: Report, words: Mapping[str, Sequence[tuple[str, float]]]) -> Collected:
    """The pairs of a report, from the (word, confidence) that were recognised, by utterance id.

    The report's words are normalised ones. Each word is normalised by itself and hands its
    confidence to whatever it becomes (none, one or more words); where that is not what became of
    the whole text - `twenty five` to `25` - the utterance is skipped rather than guessed at.
    Utterances without ``words`` are left out. Raises InputError, with the id, for a confidence
    that is not a number in [0, 1].
    """
    how = report.normalizer["name"]
    found: list[tuple[float, bool]] = []
    kept: dict[str, list[float]] = {}
    skipped = []
    for utterance in report.utterances:
        if utterance.id not in words:
            continue
        spread: list[tuple[str, float]] = []
        for word, confidence in words[utterance.id]:
            if not (isinstance(confidence, int | float) and 0 <= confidence <= 1):
                raise InputError(
                    f"{utterance.id!r}: the confidence of {word!r} must be a number from 0 to 1, "
                    f"not {confidence!r}"
                )
            spread += [(part, float(confidence)) for part in normalise(word, how).split()]
        heard = [step.hypothesis for step in utterance.alignment if step.hypothesis is not None]
        if [word for word, _ in spread] != heard:
            skipped.append(utterance.id)
            continue
        kept[utterance.id] = [confidence for _, confidence in spread]
        found += pairs(utterance.alignment, kept[utterance.id])
    return Collected(found, kept, tuple(skipped))


def _binned(
    confidence: NDArray[np.float64], correct: NDArray[np.bool_], bins: int
) -> tuple[Bin, ...]:
    where = np.minimum((confidence * bins).astype(int), bins - 1)
    made = []
    for index in range(bins):
        inside = where == index
        words = int(inside.sum())
        made.append(
            Bin(
                index / bins,
                (index + 1) / bins,
                words,
                float(confidence[inside].mean()) if words else None,
                float(correct[inside].mean()) if words else None,
            )
        )
    return tuple(made)
