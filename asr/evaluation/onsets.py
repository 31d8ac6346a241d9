"""How far recognised words begin from where they were really said."""

from __future__ import annotations

import statistics
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any

from asr.text.normalise import normalise


@dataclass(frozen=True)
class OnsetReport:
    """Word-onset errors: ``median`` absolute error in seconds, ``within`` the share of words whose
    error is at most ``tolerance`` seconds (both None without a word), ``words`` measured, in
    ``utterances`` that were recognised without an error out of ``timed`` that have true onsets."""

    median: float | None
    within: float | None
    tolerance: float
    words: int
    utterances: int
    timed: int

    def to_json(self) -> dict[str, Any]:
        return asdict(self)


def onset_errors(
    references: Mapping[str, Sequence[tuple[str, float]]],
    hypotheses: Mapping[str, Sequence[tuple[str, float]]],
    *,
    normalizer: str = "none",
    tolerance: float = 0.1,
) -> OnsetReport:
    """Compare (word, onset in seconds) sequences by id.

    Only utterances whose words are all right count: an onset is compared for the same word alone,
    never across an error. Words are the same when ``normalizer`` writes them the same; those it
    removes altogether (fillers, punctuation) are left out on both sides. An utterance without true
    onsets, or without a hypothesis, is not measured.
    """
    errors: list[float] = []
    timed = right = 0
    for id in sorted(references):
        said = _kept(references[id], normalizer)
        if not said:
            continue
        timed += 1
        heard = _kept(hypotheses.get(id, ()), normalizer)
        if [word for word, _ in said] != [word for word, _ in heard]:
            continue
        right += 1
        errors += [abs(a - b) for (_, a), (_, b) in zip(said, heard, strict=True)]
    # Onsets are decimals in seconds: a difference of exactly the tolerance must not fall outside.
    near = sum(error <= tolerance + 1e-9 for error in errors)
    return OnsetReport(
        statistics.median(errors) if errors else None,
        near / len(errors) if errors else None,
        tolerance,
        len(errors),
        right,
        timed,
    )


def _kept(words: Iterable[tuple[str, float]], how: str) -> list[tuple[str, float]]:
    written = ((normalise(word, how).strip(), onset) for word, onset in words)
    return [(word, onset) for word, onset in written if word]
