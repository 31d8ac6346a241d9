"""A transcript in each of the formats that `asr transcribe` writes.

A format is one function here: (transcript, label, word timestamps or not) -> text.
"""

from __future__ import annotations

import dataclasses
import json
import math
import os
import secrets
import tempfile
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from asr.cli import timed
from asr.cli.options import UsageError
from asr.errors import InputError

if TYPE_CHECKING:
    from asr.types import Transcript, Word

SCHEMA = "asr-transcript/1"
# A cue is read at a glance: it ends at a pause, or before it gets long (seconds, characters).
_PAUSE, _LONGEST, _WIDEST = 0.8, 6.0, 84


class Segment(NamedTuple):
    """A stretch of speech; ``start`` and ``end`` in seconds."""

    start: float
    end: float
    text: str


def segments(transcript: Transcript) -> list[Segment]:
    """The words in order, cut at pauses and before a cue gets too long to read."""
    if not transcript.words:
        text = transcript.text
        return [Segment(0.0, _last(transcript), text)] if text.strip() else []
    cues: list[list[Word]] = [[]]
    for word in transcript.words:
        cue = cues[-1]
        width = sum(len(each.word) + 1 for each in cue) + len(word.word)
        if cue and (
            word.start - cue[-1].end > _PAUSE
            or word.end - cue[0].start > _LONGEST
            or width > _WIDEST
        ):
            cues.append([word])
        else:
            cue.append(word)
    return [Segment(cue[0].start, cue[-1].end, _joined(cue)) for cue in cues]


def _joined(words: Sequence[Word]) -> str:
    return " ".join(word.word for word in words)


def rounded(transcript: Transcript) -> Transcript:
    """Times to the millisecond, none beyond the end; other figures to four decimals."""
    from asr.types import TranscriptWarning, Word

    last = _last(transcript)

    def time(seconds: float) -> float:
        return min(round(seconds, 3), last)

    return dataclasses.replace(
        transcript,
        duration=round(transcript.duration, 6),
        score=round(transcript.score, 4),
        words=tuple(
            Word(word.word, time(word.start), time(word.end), round(word.confidence, 4))
            for word in transcript.words
        ),
        nbest=tuple((text, round(score, 4)) for text, score in transcript.nbest),
        attention={name: round(figure, 4) for name, figure in transcript.attention.items()},
        warnings=tuple(
            TranscriptWarning(
                warning.code,
                warning.message,
                None if warning.start is None else time(warning.start),
                None if warning.end is None else time(warning.end),
            )
            for warning in transcript.warnings
        ),
    )


def _last(transcript: Transcript) -> float:
    """The last whole millisecond in it, in seconds."""
    # The small push undoes binary fractions such as 0.29 * 1000 = 289.99...
    return math.floor(transcript.duration * 1000 + 1e-6) / 1000


def as_dict(transcript: Transcript) -> dict[str, Any]:
    """A transcript as the ``asr-transcript/1`` JSON has it; what is not finite becomes null."""
    transcript = rounded(transcript)
    return _plain(
        {
            "schema": SCHEMA,
            "id": transcript.id,
            "audio": transcript.audio,
            "sample_rate": transcript.sample_rate,
            "duration": transcript.duration,
            "text": transcript.text,
            "score": transcript.score,
            "words": [dataclasses.asdict(word) for word in transcript.words],
            "segments": [segment._asdict() for segment in segments(transcript)],
            "nbest": [{"text": text, "score": score} for text, score in transcript.nbest],
            "model": transcript.model,
            "decoding": transcript.decoding,
            "attention": transcript.attention,
            "warnings": [dataclasses.asdict(warning) for warning in transcript.warnings],
        }
    )


def _plain(value: Any) -> Any:
    if isinstance(value, Mapping):
        return {str(key): _plain(each) for key, each in value.items()}
    if isinstance(value, list | tuple):
        return [_plain(each) for each in value]
    if isinstance(value, float):
        return value if math.isfinite(value) else None
    return value


def json_line(transcript: Transcript) -> str:
    """The JSON on one line, as standard output has it."""
    return json.dumps(as_dict(transcript), ensure_ascii=False, allow_nan=False)


def _json(transcript: Transcript, by_word: bool) -> str:
    return json.dumps(as_dict(transcript), ensure_ascii=False, allow_nan=False, indent=2) + "\n"


def _txt(transcript: Transcript, by_word: bool) -> str:
    return transcript.text + "\n"


def _cues(transcript: Transcript, by_word: bool) -> list[Segment]:
    if by_word:
        return [Segment(word.start, word.end, word.word) for word in transcript.words]
    return segments(transcript)


def _srt(transcript: Transcript, by_word: bool) -> str:
    blocks = (
        f"{number}\n{_clock(cue.start, ',')} --> {_clock(cue.end, ',')}\n{cue.text}\n"
        for number, cue in enumerate(_cues(transcript, by_word), start=1)
    )
    return "\n".join(blocks)


def _vtt(transcript: Transcript, by_word: bool) -> str:
    blocks = (
        f"{_clock(cue.start, '.')} --> {_clock(cue.end, '.')}\n{_vtt_text(cue.text)}\n"
        for cue in _cues(transcript, by_word)
    )
    return "\n".join(["WEBVTT\n", *blocks])


def _vtt_text(text: str) -> str:
    return text.replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")


def _tsv(transcript: Transcript, by_word: bool) -> str:
    """Milliseconds, as whisper's tsv has them."""
    rows = (
        f"{round(cue.start * 1000)}\t{round(cue.end * 1000)}\t{' '.join(cue.text.split())}\n"
        for cue in _cues(transcript, by_word)
    )
    return "".join(["start\tend\ttext\n", *rows])


def _textgrid(transcript: Transcript, by_word: bool) -> str:
    return timed.textgrid(transcript, segments(transcript))


def _ctm(transcript: Transcript, by_word: bool) -> str:
    return timed.ctm(transcript)


def _clock(seconds: float, point: str) -> str:
    whole, milliseconds = divmod(round(seconds * 1000), 1000)
    minutes, second = divmod(whole, 60)
    hour, minute = divmod(minutes, 60)
    return f"{hour:02d}:{minute:02d}:{second:02d}{point}{milliseconds:03d}"


FORMATS: Mapping[str, Callable[[Transcript, bool], str]] = {
    "txt": _txt,
    "json": _json,
    "srt": _srt,
    "vtt": _vtt,
    "tsv": _tsv,
    "textgrid": _textgrid,
    "ctm": _ctm,
}
TIMED = tuple(FORMATS)[1:]  # all but txt can show when a word was spoken


def write(path: Path, transcript: Transcript, format: str, *, by_word: bool = False) -> None:
    """Write one format, whole or not at all. Raises InputError that names the file."""
    # A file name's bytes that are not text come out as \udcXX, an escape that JSON knows too.
    content = FORMATS[format](rounded(transcript), by_word).encode("utf-8", "backslashreplace")
    # A name that fits wherever the file's own does; with the rights that any new file gets.
    partial = path.with_name(f".{secrets.token_hex(4)}")
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        try:
            with open(partial, "xb") as file:
                file.write(content)
            os.replace(partial, path)
        finally:
            partial.unlink(missing_ok=True)
    except OSError as error:
        raise InputError(f"{path}: cannot be written ({error.strerror})") from None


def probe_folder(folder: Path) -> None:
    """Make the output folder and try to write there. Raises UsageError if that fails."""
    try:
        folder.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryFile(dir=folder):
            pass
    except OSError as error:
        reason = os.strerror(error.errno) if error.errno else str(error)
        raise UsageError(f"{folder}: cannot be written to ({reason})") from error


def target(folder: Path, name: str, format: str) -> Path:
    """Where a format of an input goes."""
    return folder / f"{name}.{format}"
