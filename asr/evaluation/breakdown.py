"""Where the errors are: which words, and how long the utterances they stand in."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import Literal, NamedTuple

from asr.evaluation.counts import Counts
from asr.evaluation.report import UtteranceScore

_FEWEST = 5  # utterances in a bin


class Confusion(NamedTuple):
    """An error that was made, and how often by each system; None where there was no word."""

    reference: str | None
    hypothesis: str | None
    counts: tuple[int, ...]


def confusions(
    systems: Sequence[Sequence[UtteranceScore]], op: Literal["S", "D", "I"]
) -> list[Confusion]:
    """The substitutions, deletions or insertions of some systems, most frequent first.

    What any one system did most leads; ties are in the order of the words.
    """
    tallies = [
        Counter(
            (step.reference, step.hypothesis)
            for utterance in utterances
            for step in utterance.alignment
            if step.op == op
        )
        for utterances in systems
    ]
    found = [
        Confusion(*words, tuple(tally[words] for tally in tallies))
        for words in set().union(*tallies)
    ]
    return sorted(
        found, key=lambda c: (-max(c.counts), -sum(c.counts), c.reference or "", c.hypothesis or "")
    )


class Span(NamedTuple):
    """Utterances whose value lies in [``low``, ``high``], and their pooled counts by system."""

    low: float
    high: float
    utterances: int
    counts: tuple[Counts, ...]


def spans(
    values: Sequence[float], counts: Sequence[tuple[Counts, ...]], *, most: int = 8
) -> list[Span]:
    """Utterances in at most ``most`` bins of about equally many, in the order of their ``values``.

    Utterances of the same value are never parted, and there are five or more to a bin wherever
    there are that many at all. ``values`` (n,), ``counts`` (n,) of one tuple of all systems each.
    """
    order = sorted(range(len(values)), key=lambda index: values[index])
    bins = max(1, min(most, len(values) // _FEWEST))
    size = len(values) / bins
    parts: list[list[int]] = [[]]
    for place, index in enumerate(order):
        new = place == 0 or values[index] != values[order[place - 1]]
        if new and len(parts[-1]) >= size:
            parts.append([])
        parts[-1].append(index)
    if len(parts) > 1 and len(parts[-1]) < max(_FEWEST, size / 2):
        parts[-2] += parts.pop()
    return [
        Span(
            values[part[0]],
            values[part[-1]],
            len(part),
            tuple(sum(kind, Counts()) for kind in zip(*(counts[i] for i in part), strict=True)),
        )
        for part in parts
        if part
    ]
