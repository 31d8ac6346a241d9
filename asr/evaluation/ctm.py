"""NIST ctm, a word a line: recording, channel, start, duration, word and maybe confidence."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from urllib.parse import unquote

from asr.errors import InputError

Lines = Sequence[tuple[int, str]]  # line numbers, and lines that are not blank


def is_ctm(lines: Lines) -> bool:
    """Whether every line that is no comment has these columns; a time has a decimal point
    somewhere, for an utterance of four or five spoken numbers must not look like this."""
    rows = [line.split() for _, line in lines if not line.startswith(";;")]
    shaped = all(len(row) in (5, 6) and _times(row[2:4]) for row in rows)
    return bool(rows) and shaped and any("." in time for row in rows for time in row[2:4])


def is_stm(lines: Lines) -> bool:
    """Whether every line that is no comment has recording, channel, speaker, start and end."""
    rows = [line.split() for _, line in lines if not line.startswith(";;")]
    shaped = all(len(row) >= 5 and _times(row[3:5]) for row in rows)
    return bool(rows) and shaped and any("." in time for row in rows for time in row[3:5])


def texts(lines: Lines) -> Iterator[tuple[str, str, str, list[tuple[str, float]]]]:
    """Where (as messages name it), recording, text, and words with their confidences (none where
    any lacks its own from 0 to 1) of each recording, words by their start.

    Recordings are percent-decoded: a name with a space in it has no other way to be one column.
    Raises InputError, naming the line, where a recording has two channels or a word two readings,
    which no single text can hold.
    """
    recordings: dict[str, list[tuple[float, str, float]]] = {}
    first: dict[str, tuple[int, str]] = {}
    for number, line in lines:
        if line.startswith(";;"):
            continue
        recording, channel, start, _, word, *rest = line.split()
        recording = unquote(recording)
        if channel == "*" or word.startswith("<ALT"):
            raise InputError(f"line {number}: alternative words; one reading is expected")
        since, named = first.setdefault(recording, (number, channel))
        if named != channel:
            raise InputError(
                f"line {number}: channel {channel} of {recording!r}, which has channel {named} in "
                f"line {since}; one channel a recording is expected"
            )
        recordings.setdefault(recording, []).append((float(start), word, _confidence(rest)))
    for recording, words in recordings.items():
        words.sort(key=lambda word: word[0])
        heard = [(word, confidence) for _, word, confidence in words]
        known = all(0 <= confidence <= 1 for _, confidence in heard)  # NaN is not
        text = " ".join(word for word, _ in heard)
        yield f"line {first[recording][0]}", recording, text, heard if known else []


def _confidence(rest: Sequence[str]) -> float:
    try:
        return float(rest[0])
    except (IndexError, ValueError):  # not given, or NA
        return math.nan


def _times(cells: Sequence[str]) -> bool:
    try:
        return all(math.isfinite(float(cell)) for cell in cells)
    except ValueError:
        return False
