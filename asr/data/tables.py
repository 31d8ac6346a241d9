"""Tables of recordings: TSV, CSV and JSON Lines whose columns say what they hold by their names."""

from __future__ import annotations

import csv
import json
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from asr.data.manifest import Utterance
from asr.errors import InputError

SUFFIXES = (".tsv", ".csv", ".jsonl")
#: What a table can tell, and what columns that tell it are usually called.
NAMES: Mapping[str, tuple[str, ...]] = {
    "audio": (
        "audio", "path", "file", "filename", "file_name", "wav", "audio_path", "audio_file",
        "audio_filepath", "audio_filename", "recording",
    ),
    "text": ("text", "sentence", "transcript", "transcription", "normalized_text", "prompt"),
    "id": ("id", "utt_id", "utterance_id", "utterance", "key"),
    "speaker": ("speaker", "speaker_id", "spk", "spk_id", "client_id", "reader"),
    "split": ("split", "set", "partition", "subset"),
    "start": ("start", "start_time", "offset"),
    "end": ("end", "end_time"),
}  # fmt: skip
_SPLITS = {
    "valid": ("valid", "validation", "val", "dev", "development"),
    "test": ("test", "eval", "evaluation"),
    "train": ("train", "training"),
}


def columns(given: Sequence[str]) -> dict[str, str]:
    """``key=name`` options as a mapping; InputError for a key that is none of NAMES."""
    named = {}
    for option in given:
        key, equals, name = option.partition("=")
        if key not in NAMES or not equals or not name:
            raise InputError(
                f"--column {option}: KEY=NAME is expected, KEY one of {', '.join(NAMES)}"
            )
        named[key] = name
    return named


def read(path: Path, named: Mapping[str, str]) -> tuple[list[Utterance], list[str]]:
    """The utterances of a table in its order, and what is broken about others.

    ``named`` columns come before the usual names. An utterance without an id is named by its audio
    file. Broken are rows without a transcript, and audio that is not there. InputError, with file
    and line, for a table that cannot be read, lacks a column, or has an id twice.
    """
    utterances: list[Utterance] = []
    broken: list[str] = []
    seen: dict[str, str] = {}
    keys: dict[str, str] = {}
    for where, row in _rows(path):
        if not keys or path.suffix.lower() == ".jsonl":
            keys = _keys(row, named, where)
        values = {key: _text(row.get(name)) for key, name in keys.items()}
        if not values["audio"]:
            raise InputError(f"{where}: no {keys['audio']!r}; a recording is expected")
        audio = path.parent / values["audio"]
        id = values.get("id") or Path(values["audio"]).with_suffix("").as_posix()
        if id in seen:
            raise InputError(
                f"{where}: the id {id!r} was there already ({seen[id]}); ids must differ"
            )
        seen[id] = where
        if not audio.is_file():
            broken.append(f"{where}: {audio}: no such file")
        elif not values["text"]:
            broken.append(f"{where}: {id}: no transcript")
        else:
            end = _seconds(values.get("end"), where)
            utterances.append(
                Utterance(
                    id,
                    audio,
                    0.0,
                    values["text"],
                    values.get("speaker", ""),
                    _split(values.get("split", "")),
                    start=_seconds(values.get("start"), where) or 0.0,
                    end=end,
                )
            )
    return utterances, broken


def _rows(path: Path) -> Iterator[tuple[str, dict[str, Any]]]:
    """Each row of a table with where it is, by column."""
    suffix = path.suffix.lower()
    if suffix not in SUFFIXES:
        raise InputError(f"{path}: a table is one of {', '.join(SUFFIXES)}")
    try:
        content = path.read_bytes().decode("utf-8-sig")
    except OSError as error:
        raise InputError(f"{path}: cannot be read ({error.strerror})") from None
    except UnicodeDecodeError as error:
        raise InputError(f"{path}: not UTF-8 (byte {error.start})") from None
    lines = content.replace("\r\n", "\n").split("\n")
    if suffix == ".jsonl":
        yield from _objects(path, lines)
        return
    # Quotation marks in a TSV are part of the text; in a CSV they hold commas together.
    reader = csv.DictReader(
        lines if suffix == ".tsv" else content.splitlines(keepends=True),
        delimiter="\t" if suffix == ".tsv" else ",",
        quoting=csv.QUOTE_NONE if suffix == ".tsv" else csv.QUOTE_MINIMAL,
        strict=True,
    )
    try:
        for row in reader:
            where = f"{path}:{reader.line_num}"
            if None in row or None in row.values():
                have = sum(value is not None for key, value in row.items() if key is not None)
                have += len(row.get(None) or ())
                raise InputError(
                    f"{where}: {have} columns, the header has {len(reader.fieldnames or ())}"
                )
            yield where, row
    except csv.Error as error:
        raise InputError(f"{path}:{reader.line_num}: {error}") from None


def _objects(path: Path, lines: Sequence[str]) -> Iterator[tuple[str, dict[str, Any]]]:
    for number, line in enumerate(lines, start=1):
        if not line.strip():
            continue
        try:
            row = json.loads(line)
        except json.JSONDecodeError as error:
            raise InputError(
                f"{path}:{number}: not JSON ({error.msg} at column {error.colno})"
            ) from None
        if not isinstance(row, dict):
            raise InputError(f"{path}:{number}: a JSON object is expected")
        yield f"{path}:{number}", row


def _keys(row: Mapping[str, Any], named: Mapping[str, str], where: str) -> dict[str, str]:
    """Which column of this row holds what."""
    lower = {name.lower(): name for name in reversed(list(row))}
    found = {
        key: next(lower[name] for name in names if name in lower)
        for key, names in NAMES.items()
        if any(name in lower for name in names)
    }
    for key, name in named.items():
        if name not in row:
            raise InputError(
                f"{where}: --column {key}={name}: no such column; there are {', '.join(row)}"
            )
        found[key] = name
    for key in ("audio", "text"):
        if key not in found:
            raise InputError(
                f"{where}: no column for the {key} among {', '.join(row)}; say which with "
                f"--column {key}=NAME"
            )
    return found


def _text(value: Any) -> str:
    return "" if value is None else " ".join(str(value).split())


def _seconds(value: str | None, where: str) -> float | None:
    if not value:
        return None
    try:
        seconds = float(value)
    except ValueError:
        seconds = -1.0
    if not 0 <= seconds < float("inf"):
        raise InputError(f"{where}: {value!r} is not a number of seconds from 0")
    return seconds


def _split(value: str) -> str:
    """One of train, valid, test where that is what is meant."""
    meant = value.lower()
    return next((name for name, said in _SPLITS.items() if meant in said), value)
