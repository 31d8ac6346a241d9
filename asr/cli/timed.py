"""Words and their times as speech tools read them: NIST CTM and Praat TextGrid."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import TYPE_CHECKING, NamedTuple
from urllib.parse import quote

if TYPE_CHECKING:
    from asr.types import Transcript

_BREAKS = re.compile(r"[\x00-\x1f\x7f-\x9f\u2028\u2029]+")
_SHORTEST = 1e-3  # seconds; an interval of Praat's is longer than nothing


class Interval(NamedTuple):
    """A stretch of a tier; ``start`` and ``end`` in seconds."""

    start: float
    end: float
    text: str


def ctm(transcript: Transcript) -> str:
    """One word a line: recording, channel, start, duration (seconds), word, confidence.

    White space parts the columns: in a recording's id it is percent-encoded, as is a percent sign
    that would read as such a code; in a word it becomes an underscore.
    """
    unfit = r"[\s\x00-\x1f\x7f-\x9f]|%(?=[0-9A-Fa-f]{2})"
    name = re.sub(unfit, lambda found: quote(found[0], safe=""), transcript.id) or "-"
    return "".join(
        f"{name} 1 {word.start:.3f} {max(0.0, word.end - word.start):.3f} "
        f"{_column(word.word)} {word.confidence:.3f}\n"
        for word in transcript.words
    )


def _seconds(value: float) -> str:
    """To the microsecond, and never as 1e-05, which not every reader knows."""
    return f"{value:.6f}".rstrip("0").rstrip(".")


def _column(text: str) -> str:
    return "_".join(_label(text).split()) or "-"


def _label(text: str) -> str:
    """On one line and without control characters: a label ends with its line for some readers."""
    return _BREAKS.sub(" ", text).strip()


def textgrid(transcript: Transcript, segments: Sequence[tuple[float, float, str]]) -> str:
    """Tiers of segments and of words, each from 0 to the sound's end without a gap."""
    duration = max(round(transcript.duration, 6), _SHORTEST)
    words = [(word.start, word.end, word.word) for word in transcript.words]
    lines = [
        'File type = "ooTextFile"', 'Object class = "TextGrid"', "",
        "xmin = 0", f"xmax = {_seconds(duration)}", "tiers? <exists>", "size = 2", "item []:",
    ]  # fmt: skip
    for number, (name, spans) in enumerate((("segments", segments), ("words", words)), start=1):
        intervals = tiled(spans, duration)
        lines += [
            f"    item [{number}]:",
            '        class = "IntervalTier"',
            f'        name = "{name}"',
            "        xmin = 0",
            f"        xmax = {_seconds(duration)}",
            f"        intervals: size = {len(intervals)}",
        ]
        for place, interval in enumerate(intervals, start=1):
            text = _label(interval.text).replace('"', '""')
            lines += [
                f"        intervals [{place}]:",
                f"            xmin = {_seconds(interval.start)}",
                f"            xmax = {_seconds(interval.end)}",
                f'            text = "{text}"',
            ]
    return "\n".join(lines) + "\n"


def tiled(spans: Sequence[tuple[float, float, str]], duration: float) -> list[Interval]:
    """The spans as intervals that fill [0, duration] in order, silences as empty ones.

    A word too short to have an interval shares that of the next one, or of the last.
    """
    intervals: list[Interval] = []
    at, waiting = 0.0, ""
    for start, end, text in spans:
        text = f"{waiting} {text}".strip()
        start, end = max(at, round(start, 6)), min(duration, round(end, 6))
        if end - start < _SHORTEST:
            waiting = text
            continue
        if start > at:
            intervals.append(Interval(at, start, ""))
        intervals.append(Interval(start, end, text))
        at, waiting = end, ""
    if waiting and intervals:
        last = intervals.pop()
        intervals.append(last._replace(text=f"{last.text} {waiting}".strip()))
    elif waiting:
        return [Interval(0.0, duration, waiting)]
    if at < duration:
        intervals.append(Interval(at, duration, ""))
    return intervals
