"""Utterances as a page embeds them: small, as there may be thousands."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from asr.evaluation.counts import Step
from asr.evaluation.report import UtteranceScore

#: Bytes that a page may have.
LIMIT = 20_000_000


def entry(
    scores: Sequence[UtteranceScore],
    sure: Sequence[Mapping[str, Sequence[float]]],
    durations: Mapping[str, float],
) -> dict[str, Any]:
    """One utterance, by one or two systems: keys are absent where there is nothing to say.

    ``sure`` are the confidences of the systems' words, by utterance id.
    """
    first = scores[0]
    words = said(first)
    heard = [[s.hypothesis for s in u.alignment if s.hypothesis is not None] for u in scores]
    given = [first.reference, *(score.hypothesis for score in scores)]
    confidences = [[round(100 * c) for c in of.get(first.id, ())] for of in sure]
    made = {
        "id": first.id,
        "group": first.group,
        "speaker": first.speaker if first.speaker != first.group else "",
        "seconds": round(durations[first.id], 2) if first.id in durations else None,
        "said": words,
        "heard": [_packed(score.alignment) for score in scores],
        # Only where normalising, or white space, changed them.
        "given": given if given != [" ".join(words), *map(" ".join, heard)] else None,
        "missing": [index for index, score in enumerate(scores) if score.hypothesis is None],
        "sure": confidences if any(confidences) else [],
    }
    return {key: value for key, value in made.items() if value not in ("", None, [])}


def fitting(
    entries: Iterable[dict[str, Any]], limit: int = LIMIT
) -> tuple[list[dict[str, Any]], int]:
    """The entries that fit ``limit`` bytes as JSON, those with most errors first in line, and
    their size. They stay in their order."""
    kept = list(entries)
    sizes = [len(json.dumps(each)) for each in kept]
    if sum(sizes) <= limit:
        return kept, sum(sizes)
    chosen, size = set(), 0
    for place in sorted(range(len(kept)), key=lambda place: -_errors(kept[place])):
        if size + sizes[place] > limit:
            break
        chosen.add(place)
        size += sizes[place]
    return [each for place, each in enumerate(kept) if place in chosen], size


def said(utterance: UtteranceScore) -> list[str]:
    """The words of the reference, as they were scored."""
    return [step.reference for step in utterance.alignment if step.reference is not None]


def _packed(alignment: Sequence[Step]) -> list[int | str]:
    """Hits as their number in a row, a deletion as 0, ``~word`` substituted, ``+word`` inserted."""
    packed: list[int | str] = []
    for step in alignment:
        if step.op == "=":
            if packed and isinstance(packed[-1], int) and packed[-1] > 0:
                packed[-1] += 1
            else:
                packed.append(1)
        elif step.op == "D":
            packed.append(0)
        else:
            packed.append(("~" if step.op == "S" else "+") + (step.hypothesis or ""))
    return packed


def _errors(entry: Mapping[str, Any]) -> int:
    return sum(item == 0 or isinstance(item, str) for of in entry["heard"] for item in of)
