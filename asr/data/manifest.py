"""Manifests: JSON Lines, one utterance a line, audio relative to the manifest's own folder."""

from __future__ import annotations

import csv
import json
import math
import os
import tempfile
from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, TypeAlias

from asr.errors import InputError

Seconds: TypeAlias = float  # asr.types has it too, but imports torch

_KNOWN = ("id", "audio", "duration", "text", "speaker", "split", "start", "end", "words")
_TSV = ("id", "audio", "duration_s", "transcript")


@dataclass(frozen=True)
class WordTime:
    """A spoken word; ``start`` and ``end`` in seconds from the utterance's own start."""

    word: str
    start: Seconds
    end: Seconds


@dataclass(frozen=True)
class Utterance:
    """What is known of one utterance.

    ``duration`` in seconds, 0 where a manifest that need not tell does not. An utterance that is
    a piece of a longer file says where: ``start`` and ``end`` in seconds of the file, ``end`` None
    for the file's end. ``extra`` keeps a manifest's other keys.
    """

    id: str
    audio: Path
    duration: Seconds
    text: str
    speaker: str = ""
    split: str = ""
    words: tuple[WordTime, ...] = ()
    start: Seconds = 0.0
    end: Seconds | None = None
    extra: Mapping[str, Any] = field(default_factory=dict)


def read(path: Path | str, *, needs: Collection[str] = ("duration", "text")) -> list[Utterance]:
    """The utterances of a manifest, in its order; ``audio`` is resolved, not looked for.

    ``id`` and ``audio`` must be there, and the keys in ``needs``. Blank lines, a byte order mark
    and CRLF are fine. Raises InputError with file and line for anything else that is not.
    """
    path = Path(path)
    rows: list[tuple[str, Utterance]] = []
    for number, line in _lines(path):
        where = f"{path}:{number}"
        try:
            row = json.loads(line)
        except json.JSONDecodeError as error:
            raise InputError(f"{where}: not JSON ({error.msg} at column {error.colno})") from None
        if not isinstance(row, dict):
            raise InputError(f"{where}: a JSON object is expected, not {_kind(row)}")
        missing = [key for key in ("id", "audio", *needs) if row.get(key) is None]
        if missing:
            raise InputError(
                f"{where}: no {_quoted(missing)}; an utterance needs "
                f"{_quoted(('id', 'audio', *needs))}"
            )
        rows.append((where, _from_row(row, path.parent, where)))
    return _distinct(rows)


def write(path: Path | str, utterances: Iterable[Utterance]) -> None:
    """Write a manifest at once or not at all; the same utterances give the same bytes.

    Audio is written relative to the manifest's folder, wherever it is. Times are rounded
    to microseconds. Raises InputError where two utterances have one id.
    """
    path = Path(path)
    rows = _distinct([(str(path), utterance) for utterance in utterances])
    lines = (
        json.dumps(_to_row(utterance, path.parent), ensure_ascii=False, allow_nan=False) + "\n"
        for utterance in rows
    )
    write_bytes(path, "".join(lines).encode())


def write_bytes(path: Path, content: bytes) -> bool:
    """Make ``path`` hold ``content``, atomically; False where it already does.

    Raises InputError where the folder cannot be written.
    """
    try:
        if path.is_file() and path.read_bytes() == content:
            return False
        path.parent.mkdir(parents=True, exist_ok=True)
        handle, temporary = tempfile.mkstemp(dir=path.parent, prefix=f".{path.name}.")
        try:
            with os.fdopen(handle, "wb") as stream:
                stream.write(content)
            os.chmod(temporary, 0o644)
            os.replace(temporary, path)
        except BaseException:
            os.unlink(temporary)
            raise
    except OSError as error:
        raise InputError(f"{path}: cannot be written ({error.strerror})") from None
    return True


def read_tsv(folder: Path | str) -> list[Utterance]:
    """The utterances of a folder with a ``manifest.tsv``.

    Its columns are id, audio (relative to the folder), duration_s, speaker, split, transcript;
    speaker and split may be absent, others are kept in ``extra``. Raises InputError as
    :func:`read` does.
    """
    path = Path(folder) / "manifest.tsv"
    lines = list(_lines(path))
    if not lines:
        raise InputError(f"{path}: empty; a header with the columns {', '.join(_TSV)} is expected")
    header = _cells(lines[0][1])
    missing = [name for name in _TSV if name not in header]
    if missing:
        raise InputError(
            f"{path}:{lines[0][0]}: no column {_quoted(missing)} among {_quoted(header)}"
        )
    rows: list[tuple[str, Utterance]] = []
    for number, line in lines[1:]:
        where = f"{path}:{number}"
        cells = _cells(line)
        if len(cells) != len(header):
            raise InputError(f"{where}: {len(cells)} columns, the header has {len(header)}")
        row: dict[str, Any] = dict(zip(header, cells, strict=True))
        row["text"] = row.pop("transcript")
        try:
            row["duration"] = float(row.pop("duration_s"))
        except ValueError:
            raise InputError(f"{where}: duration_s is not a number of seconds") from None
        row = {key: value for key, value in row.items() if key not in ("words", "start", "end")}
        rows.append((where, _from_row(row, path.parent, where)))
    return _distinct(rows)


def _distinct(rows: Iterable[tuple[str, Utterance]]) -> list[Utterance]:
    """The utterances of (where from, utterance); InputError where two have one id."""
    seen: dict[str, str] = {}
    utterances = []
    for where, utterance in rows:
        if utterance.id in seen:
            raise InputError(
                f"{where}: the id {utterance.id!r} was there already "
                f"({seen[utterance.id]}); ids must differ"
            )
        seen[utterance.id] = where
        utterances.append(utterance)
    return utterances


def _lines(path: Path) -> Iterator[tuple[int, str]]:
    """Numbered lines that are not blank. Text may hold U+2028, so only newlines end a line."""
    try:
        text = path.read_bytes().decode("utf-8-sig")
    except OSError as error:
        raise InputError(f"{path}: cannot be read ({error.strerror})") from None
    except UnicodeDecodeError as error:
        raise InputError(f"{path}: not UTF-8 (byte {error.start})") from None
    for number, line in enumerate(text.split("\n"), start=1):
        if line.strip():
            yield number, line.rstrip("\r")


def _cells(line: str) -> list[str]:
    return next(csv.reader([line], delimiter="\t", quoting=csv.QUOTE_NONE))


def _from_row(row: Mapping[str, Any], folder: Path, where: str) -> Utterance:
    texts = {key: _text(row, key, where) for key in ("id", "audio", "text", "speaker", "split")}
    if not texts["id"] or not texts["audio"]:
        raise InputError(f"{where}: 'id' and 'audio' must not be empty")
    words = row.get("words") or ()
    if not isinstance(words, (list, tuple)):
        raise InputError(f"{where}: 'words' must be a list of word, start, end")
    return Utterance(
        id=texts["id"],
        audio=_resolved(folder, texts["audio"]),
        duration=_seconds(row, "duration", where),
        text=texts["text"],
        speaker=texts["speaker"],
        split=texts["split"],
        words=tuple(_word(word, where) for word in words),
        start=_seconds(row, "start", where),
        end=_seconds(row, "end", where) if row.get("end") is not None else None,
        extra={key: value for key, value in row.items() if key not in _KNOWN},
    )


def _resolved(folder: Path, audio: str) -> Path:
    """``..`` goes up from where a linked folder really is, as the system has it."""
    path = folder / audio
    return Path(os.path.realpath(path)) if ".." in path.parts else path


def _word(row: Any, where: str) -> WordTime:
    if not isinstance(row, dict) or not isinstance(row.get("word"), str):
        raise InputError(f"{where}: each of 'words' must be an object with word, start, end")
    word = WordTime(row["word"], _seconds(row, "start", where), _seconds(row, "end", where))
    if word.end < word.start:
        raise InputError(f"{where}: the word {word.word!r} ends before it starts")
    return word


def _text(row: Mapping[str, Any], key: str, where: str) -> str:
    value = row.get(key)
    if value is None:
        return ""
    if not isinstance(value, str):
        raise InputError(f"{where}: {key!r} must be a string, not {_kind(value)}")
    return value


def _seconds(row: Mapping[str, Any], key: str, where: str) -> Seconds:
    value = row.get(key, 0.0)
    number = isinstance(value, (int, float)) and not isinstance(value, bool)
    if not number or not math.isfinite(value) or value < 0:
        raise InputError(f"{where}: {key!r} must be a number of seconds from 0, not {value!r}")
    return float(value)


def _to_row(utterance: Utterance, folder: Path) -> dict[str, Any]:
    audio = Path(os.path.abspath(utterance.audio))
    if not audio.is_relative_to(os.path.abspath(folder)):
        audio, folder = Path(os.path.realpath(audio)), Path(os.path.realpath(folder))
    audio = Path(os.path.relpath(audio, folder))
    row: dict[str, Any] = {
        "id": utterance.id,
        "audio": audio.as_posix(),
        "duration": round(utterance.duration, 6),
        "text": utterance.text,
    }
    for key in ("speaker", "split"):
        if getattr(utterance, key):
            row[key] = getattr(utterance, key)
    if utterance.start:
        row["start"] = round(utterance.start, 6)
    if utterance.end is not None:
        row["end"] = round(utterance.end, 6)
    if utterance.words:
        row["words"] = [
            {"word": word.word, "start": round(word.start, 6), "end": round(word.end, 6)}
            for word in utterance.words
        ]
    return row | dict(utterance.extra)


def _kind(value: Any) -> str:
    return {
        dict: "an object",
        list: "a list",
        str: "a string",
        bool: "a boolean",
        type(None): "null",
    }.get(type(value), "a number")


def _quoted(names: Iterable[str]) -> str:
    return ", ".join(repr(name) for name in names)
