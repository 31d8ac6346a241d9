"""Reading transcripts of any common shape, told apart by content and never by suffix.

A file is JSON Lines when its first line opens an object (or one transcript of
``asr transcribe -f json``, when the whole file is that); ``id<TAB>text`` without a header when
every line has a tab (or is an id alone, a blank text whose tab an editor removed); NIST trn
(``text (id)``) when every line ends with an id in round brackets; NIST ctm when every line has its
columns, times with a decimal point among them; otherwise Kaldi text (``id text``). A folder is what
``asr transcribe -o`` wrote.

Lines end with LF, CRLF or CR and nothing else: other characters that Unicode counts as line
breaks are white space within a text. Blank lines carry no id and say nothing. Ids are compared in
Unicode's composed form, since some file systems decompose names.
"""

from __future__ import annotations

import codecs
import json
import re
import unicodedata
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, NamedTuple
from urllib.parse import unquote

from asr.errors import InputError
from asr.evaluation import ctm

_TRN = re.compile(r"(?P<text>.*)\((?P<id>[^()\s]+)\)\s*", re.DOTALL)
_TRANSCRIPT_SCHEMA = "asr-transcript/"
_SPACES = "\t\n\v\f\r\x1c\x1d\x1e\x1f\x85"  # control characters that part words
_CONTROL = re.compile(f"[^{_SPACES}\\x20-\\x7e\\xa0-\U0010ffff]")


@dataclass(frozen=True)
class Transcripts:
    """Texts by id, in the order they stood; ``fields`` are the other strings and numbers of a JSON
    line (speaker, duration ...) by id; ``words`` are recognised words with their confidences where
    a transcript or ctm has them; ``format`` names what was recognised."""

    path: Path
    format: str
    texts: Mapping[str, str]
    fields: Mapping[str, Mapping[str, str | float]] = field(default_factory=dict)
    words: Mapping[str, Sequence[tuple[str, float]]] = field(default_factory=dict)


class _Entry(NamedTuple):
    where: str  # as messages name it: "line 3"
    id: str
    text: str
    fields: Mapping[str, str | float] = {}
    words: Sequence[tuple[str, float]] = ()


def read(path: str | Path) -> Transcripts:
    """Transcripts of a file or folder.

    Raises InputError, naming file and line, for what cannot be read, is not UTF-8, has an id twice
    or none, or does not fit the format that the rest of the file has.
    """
    path = Path(path)
    if path.is_dir():
        return _collect(path, "folder", _folder(path))
    lines = list(_lines(path))
    if not lines:
        return Transcripts(path, "empty", {})
    if (found := _transcript(path, lines)) is not None:
        return _collect(path, "transcript", iter([found]))
    if ctm.is_ctm(lines):
        try:
            texts = [
                _Entry(where, id, text, {}, heard) for where, id, text, heard in ctm.texts(lines)
            ]
        except InputError as error:
            raise InputError(f"{path}: {error}") from None
        return _collect(path, "ctm", iter(texts))
    name, parse = _recognise(path, lines)
    return _collect(path, name, (parse(path, number, line) for number, line in lines))


def _collect(path: Path, name: str, entries: Iterator[_Entry]) -> Transcripts:
    texts: dict[str, str] = {}
    fields: dict[str, Mapping[str, str | float]] = {}
    words: dict[str, Sequence[tuple[str, float]]] = {}
    seen: dict[str, str] = {}
    for entry in entries:
        id = unicodedata.normalize("NFC", entry.id)
        if not id.strip():
            raise _bad(path, entry.where, "no utterance id")
        if _CONTROL.search(id) or any(character in _SPACES for character in id):
            raise _bad(path, entry.where, f"control character in the id {id!r}")
        if control := _CONTROL.search(entry.text):
            raise _bad(path, entry.where, f"control character {control[0]!r} in the text of {id!r}")
        if id in texts:
            raise _bad(path, entry.where, f"id {id!r} is that of {seen[id]} too; ids must differ")
        texts[id] = entry.text
        seen[id] = entry.where
        if entry.fields:
            fields[id] = entry.fields
        if entry.words:
            words[id] = entry.words
    return Transcripts(path, name, texts, fields, words)


def _recognise(
    path: Path, lines: list[tuple[int, str]]
) -> tuple[str, Callable[[Path, int, str], _Entry]]:
    first = lines[0][1].lstrip()
    if first.startswith("{"):
        return "jsonl", _json_line
    if all("\t" in line or len(line.split()) == 1 for _, line in lines) and any(
        "\t" in line for _, line in lines
    ):
        return "tsv", _tab_line
    if all(_TRN.fullmatch(line) for _, line in lines):
        return "trn", _trn_line
    if ctm.is_stm(lines):
        raise _bad(path, f"line {lines[0][0]}", "NIST stm; id<TAB>text or trn is expected")
    if first in ("[", "[]") or first.startswith("[{"):
        raise _bad(path, f"line {lines[0][0]}", "a JSON list; one JSON object a line is expected")
    return "kaldi", _kaldi_line


def _transcript(path: Path, lines: list[tuple[int, str]]) -> _Entry | None:
    """The one transcript that the file is, laid out over several lines."""
    if lines[0][1].strip() != "{":
        return None
    try:
        row = json.loads("\n".join(line for _, line in lines))
    except ValueError:
        return None
    where = f"line {lines[0][0]}"
    if not str(row.get("schema", "")).startswith(_TRANSCRIPT_SCHEMA):
        raise _bad(path, where, "a JSON object that is no transcript of asr transcribe")
    return _json_entry(path, where, row, id="")


def _json_line(path: Path, number: int, line: str) -> _Entry:
    where = f"line {number}"
    try:
        row = json.loads(line)
    except ValueError as error:
        reason = error.msg if isinstance(error, json.JSONDecodeError) else str(error)
        raise _bad(path, where, f"not JSON ({reason}); one object a line is expected") from None
    if not isinstance(row, dict):
        raise _bad(path, where, "one JSON object with 'id' and 'text' is expected")
    return _json_entry(path, where, row, id="")


def _json_entry(path: Path, where: str, row: Mapping[str, Any], *, id: str) -> _Entry:
    """``id`` stands in where the object has none."""
    named = row.get("id", id)
    if isinstance(named, int) and not isinstance(named, bool):
        named = str(named)
    if not isinstance(named, str):
        raise _bad(path, where, f"'id' must be a string, not {named!r:.40}")
    text = row.get("text")
    if not isinstance(text, str):
        problem = "no 'text'" if text is None else f"'text' must be a string, not {text!r:.40}"
        raise _bad(path, where, f"{problem} (id {named!r})")
    rest = {
        key: value
        for key, value in row.items()
        if key not in ("id", "text") and isinstance(value, str | int | float)
    }
    return _Entry(where, named, text, rest, _confident(row.get("words")))


def _confident(words: Any) -> list[tuple[str, float]]:
    """Words with their confidences, where every one has its own from 0 to 1; other lists say
    nothing."""
    if not isinstance(words, list):
        return []
    try:
        found = [(str(word["word"]), float(word["confidence"])) for word in words]
    except (KeyError, TypeError, ValueError):
        return []
    return found if all(0 <= confidence <= 1 for _, confidence in found) else []


def _tab_line(path: Path, number: int, line: str) -> _Entry:
    where = f"line {number}"
    cells = line.split("\t")
    if len(cells) > 2 and any(cell.strip() for cell in cells[2:]):
        raise _bad(path, where, f"{len(cells)} columns; id<TAB>text is expected")
    if number == 1 and [cell.strip().lower() for cell in cells[:2]] == ["id", "text"]:
        raise _bad(path, where, "a header; id<TAB>text without one is expected")
    return _Entry(where, cells[0].strip(), cells[1] if len(cells) > 1 else "")


def _trn_line(path: Path, number: int, line: str) -> _Entry:
    match = _TRN.fullmatch(line)
    assert match is not None  # the format was chosen because every line matches
    return _Entry(f"line {number}", match["id"], match["text"].strip())


def _kaldi_line(path: Path, number: int, line: str) -> _Entry:
    id, *text = line.split(maxsplit=1)
    return _Entry(f"line {number}", id, text[0] if text else "")


def _folder(path: Path) -> Iterator[_Entry]:
    """JSON where a transcript has it (it names its id), else plain text named after the file."""
    stems: dict[str, Path] = {}
    for file in sorted(path.rglob("*")):
        relative = file.relative_to(path)
        if file.suffix not in (".json", ".txt") or not file.is_file():
            continue
        if any(part.startswith(".") for part in relative.parts):  # half-written, or not ours
            continue
        # Sorted order brings x.json before x.txt.
        stems.setdefault(relative.with_suffix("").as_posix(), file)
    found = False
    for stem, file in stems.items():
        where = file.relative_to(path).as_posix()
        id = unquote(stem)  # what a file name cannot hold was percent-encoded
        if file.suffix == ".txt":
            found = True
            yield _Entry(where, id, _decode(file))
            continue
        try:
            row = json.loads(_decode(file))
        except ValueError as error:
            if isinstance(error, InputError):
                raise
            raise _bad(path, where, "not JSON; a transcript is expected") from None
        if not isinstance(row, dict):
            raise _bad(path, where, "a JSON object with 'text' is expected")
        if not str(row.get("schema", _TRANSCRIPT_SCHEMA)).startswith(_TRANSCRIPT_SCHEMA):
            continue  # a report left beside the transcripts
        found = True
        yield _json_entry(path, where, row, id=id)
    if not found:
        raise InputError(f"{path}: no .json or .txt transcript in this folder")


def _lines(path: Path) -> Iterator[tuple[int, str]]:
    """Numbered lines that are not blank."""
    for number, line in enumerate(re.split("\r\n|\n|\r", _decode(path)), start=1):
        if line.strip():
            yield number, line


def _decode(path: Path) -> str:
    try:
        content = path.read_bytes()
    except OSError as error:
        raise InputError(f"{path}: cannot be read ({error.strerror or error})") from None
    if content.startswith((codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)):
        raise _bad(path, "line 1", "UTF-16 text; UTF-8 is expected")
    if (nul := content.find(0)) >= 0:
        raise _bad(path, _line_of(content, nul), "NUL byte, as in UTF-16 text; UTF-8 is expected")
    try:
        return content.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        where = _line_of(content, error.start)
        raise _bad(path, where, f"byte 0x{content[error.start]:02x} is not UTF-8") from None


def _line_of(content: bytes, position: int) -> str:
    ends = re.findall(b"\r\n|\n|\r", content[:position])
    return f"line {len(ends) + 1}"


def _bad(path: Path, where: str, problem: str) -> InputError:
    return InputError(f"{path}: {where}: {problem}")
