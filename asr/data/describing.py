"""What a prepared corpus holds, and what looks wrong about it."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Mapping, Sequence
from itertools import pairwise
from pathlib import Path
from typing import Any

from asr.data.manifest import Utterance
from asr.text import CharacterTokenizer, Tokenizer, normalise

FRAME_SHIFT = 0.04  # seconds of an encoder frame, as the configurations have it
_ODD_RATES = (2.0, 35.0)  # characters a second that hardly anybody speaks at
_SHOWN = 10


def suspicions(
    utterance: Utterance, tokenizer: Tokenizer, *, shortest: float, longest: float
) -> list[str]:
    """What is odd about an utterance: nothing, mostly.

    Too short or too long; without text once normalised; with characters that the tokenizer lacks;
    with more tokens than encoder frames, which CTC cannot align; so slow or fast that text and
    sound hardly belong together.
    """
    text, seconds = normalise(utterance.text), utterance.duration
    tokens = tokenizer.encode(text)
    needed = len(tokens) + sum(a == b for a, b in pairwise(tokens))
    frames = math.ceil(seconds / FRAME_SHIFT - 1e-6)
    lacking = tokenizer.missing([text])
    found = []
    if seconds < shortest:
        found.append(f"too short ({seconds:.2f} s)")
    if seconds > longest:
        found.append(f"too long ({seconds:.2f} s)")
    if not text:
        found.append("empty")
        return found
    if lacking:
        found.append("the tokenizer lacks " + ", ".join(repr(c) for c in lacking))
    if needed > frames:
        found.append(f"more tokens than frames ({needed} needed, {frames} there)")
    elif seconds > 1 and not _ODD_RATES[0] <= len(text) / seconds <= _ODD_RATES[1]:
        found.append(f"{len(text) / seconds:.1f} characters a second")
    return found


def describe(
    parts: Mapping[str, Sequence[Utterance]],
    rates: Mapping[Path, int],
    tokenizer: Tokenizer | None,
    *,
    shortest: float,
    longest: float,
) -> dict[str, Any]:
    """The report of a preparation, JSON-ready; without a tokenizer, characters of the training
    texts are counted as tokens."""
    everything = [u for part in parts.values() for u in part]
    texts = [normalise(u.text) for u in parts["train"]]
    checked = tokenizer or CharacterTokenizer.train([*texts, " "])
    odd = {
        u.id: found
        for u in everything
        if (found := suspicions(u, checked, shortest=shortest, longest=longest))
    }
    return {
        "schema": "asr-preparation/1",
        "splits": {
            name: {
                "utterances": len(part),
                "hours": round(sum(u.duration for u in part) / 3600, 4),
                "speakers": len({u.speaker for u in part if u.speaker}),
            }
            for name, part in parts.items()
        },
        "longest": round(max(u.duration for u in everything), 3),
        "sample_rates": dict(sorted(Counter(str(rates[u.audio]) for u in everything).items())),
        "characters": dict(
            sorted(
                Counter(c for u in everything for c in normalise(u.text)).items(),
                key=lambda item: (-item[1], item[0]),
            )
        ),
        "vocabulary_size": checked.vocabulary_size,
        "suspicious": odd,
    }


def told(report: Mapping[str, Any]) -> str:
    """The report in a few lines."""
    lines = [
        f"{name}: {part['utterances']} utterances, {part['hours']:.2f} hours, "
        + (f"{part['speakers']} speakers" if part["speakers"] else "speakers unknown")
        for name, part in report["splits"].items()
    ]
    rates = ", ".join(f"{rate} Hz ({count})" for rate, count in report["sample_rates"].items())
    lines.append(f"sample rates: {rates}; the longest utterance has {report['longest']:.1f} s")
    lines.append(f"characters: {' '.join(c if c != ' ' else '␣' for c in report['characters'])}")
    odd = report["suspicious"]
    lines.append(f"suspicious: {len(odd) or 'none'}")
    lines += [f"  {id}: {'; '.join(found)}" for id, found in list(odd.items())[:_SHOWN]]
    if len(odd) > _SHOWN:
        lines.append("  ... all of them are in report.json under 'suspicious'")
    return "\n".join(lines)
