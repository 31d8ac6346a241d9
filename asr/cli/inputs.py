"""INPUT arguments -> the sounds to work on, and the name of what is written for each.

An INPUT is a file, a folder, a glob, ``-`` (standard input), ``@list.txt`` or a ``.jsonl``
manifest. Expanding them reads no sound and imports no torch.
"""

from __future__ import annotations

import glob
import os
import re
import sys
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from io import BytesIO
from pathlib import Path, PurePath
from typing import BinaryIO
from urllib.parse import quote

from asr.cli.options import UsageError
from asr.errors import InputError

NOT_SOUND = frozenset({".txt", ".tsv", ".csv", ".json", ".jsonl", ".md"})  # skipped in folders
STDIN = "stdin"


@dataclass(frozen=True)
class Input:
    """One sound to work on.

    ``name`` is the output path below the output folder, without format: the input's own relative
    path without ``suffix``, or a manifest's id, percent-encoded. ``id`` names the result inside
    it, ``label`` on standard output (None for a lone file, whose text goes out bare). ``start``
    and ``end`` (seconds, None for the file's end) cut a piece out of the file.
    """

    path: Path | None  # None: standard input
    name: str
    id: str
    label: str | None
    suffix: str = ""
    start: float = 0.0
    end: float | None = None
    text: str = ""  # what is said, where a manifest tells

    @property
    def shown(self) -> str:
        """The input as messages name it."""
        return self.label or str(self.path or STDIN)

    def open(self) -> Path | BinaryIO:
        """What :func:`asr.audio.load` takes."""
        return self.path if self.path is not None else BytesIO(sys.stdin.buffer.read())


@dataclass(frozen=True)
class Expanded:
    """``inputs`` in the order given, and one line for each argument that stands for nothing."""

    inputs: tuple[Input, ...]
    errors: tuple[str, ...]


def expand(arguments: Sequence[str], *, recursive: bool = False) -> Expanded:
    """All sounds that the arguments stand for.

    What does not exist, or cannot be listed, becomes an error line and the rest goes on. Raises
    UsageError where ``-`` is given twice.
    """
    inputs: list[Input] = []
    errors: list[str] = []
    alone = len(arguments) == 1
    if arguments.count("-") > 1:
        raise UsageError("- : standard input can be read only once")
    for argument in arguments:
        try:
            if argument == "-":
                inputs.append(Input(None, STDIN, STDIN, None if alone else STDIN))
            elif argument.startswith("@") and not os.path.lexists(argument):
                for line in _lines(Path(argument[1:])):
                    inputs += _listed(line, Path(argument[1:]).parent, recursive, errors)
            elif argument.lower().endswith(".jsonl") and os.path.isfile(argument):
                inputs += listed(Path(argument))
            else:
                found = _expand_path(argument, recursive, errors)
                if alone and len(found) == 1 and os.path.isfile(argument):
                    found = [replace(found[0], label=None)]
                inputs += found
        except InputError as error:
            errors.append(str(error))
    return Expanded(tuple(inputs), tuple(errors))


def name_outputs(inputs: Sequence[Input]) -> list[Input]:
    """The inputs with names that differ: those that would coincide keep their suffix.

    Raises UsageError that names two inputs which even so would be written to one place.
    """
    counts = Counter(each.name for each in inputs)
    named = [
        replace(each, name=each.name + each.suffix, id=each.id + each.suffix)
        if counts[each.name] > 1 and each.suffix
        else each
        for each in inputs
    ]
    first: dict[str, Input] = {}
    for each in named:
        other = first.setdefault(each.name, each)
        if other is not each:
            raise UsageError(
                f"{other.shown} and {each.shown} would both be written as {each.name!r}; "
                "give them names that differ, or transcribe them into different folders"
            )
    return named


def _expand_path(
    argument: str, recursive: bool, errors: list[str], listed_in: Path | None = None
) -> list[Input]:
    """A file, folder or glob; in a list, relative to the list's folder ``listed_in``."""
    path = (listed_in or Path()) / argument
    if path.is_dir():
        return _folder(path, recursive, errors)
    if path.exists():
        # A list's relative path is mirrored in the output; any other file lands at its top.
        mirrored = listed_in is not None and not os.path.isabs(argument)
        return [_file(path, argument if mirrored else path.name)]
    if not glob.has_magic(argument):
        raise InputError(f"{path}: no such file or folder")
    matches = sorted(glob.glob(str(path), recursive=True))
    if not matches:
        raise InputError(f"{path}: no file matches")
    root = _fixed_part(str(path))
    inputs: list[Input] = []
    for match in map(Path, matches):
        if not match.is_dir():
            inputs.append(_file(match, os.path.relpath(match, root)))
        elif recursive:
            inputs += _folder(match, recursive, errors, root=root)
    if not inputs:
        raise InputError(f"{path}: only folders match; --recursive goes into them")
    return inputs


def _file(path: Path, below: str) -> Input:
    """``below`` is the path to be mirrored in the output folder; it never climbs out of it."""
    parts = [part for part in PurePath(below).parts if part not in ("..", os.sep)]
    stem = str(PurePath(*parts).with_suffix("")) if parts else path.stem
    return Input(path, stem, PurePath(stem).as_posix(), str(path), path.suffix)


def _folder(
    folder: Path, recursive: bool, errors: list[str], root: Path | None = None
) -> list[Input]:
    def unreadable(error: OSError) -> None:
        errors.append(f"{error.filename}: {error.strerror}")

    files: list[Path] = []
    for where, folders, names in os.walk(folder, onerror=unreadable):
        kept = sorted(name for name in folders if not name.startswith("."))
        folders[:] = kept if recursive else []
        files += [
            Path(where, name)
            for name in sorted(names)
            if not name.startswith(".") and PurePath(name).suffix.lower() not in NOT_SOUND
        ]
    if not files:
        hint = "" if recursive else "; --recursive looks below it too"
        errors.append(f"{folder}: no files to transcribe in this folder{hint}")
    return [_file(path, os.path.relpath(path, root or folder)) for path in files]


def _fixed_part(pattern: str) -> Path:
    """The folders of a glob before its first wildcard."""
    parts = PurePath(pattern).parts[:-1]
    wild = next((i for i, part in enumerate(parts) if glob.has_magic(part)), len(parts))
    return Path(*parts[:wild])


def _lines(path: Path) -> Iterator[str]:
    try:
        text = path.read_bytes().decode("utf-8-sig", errors="surrogateescape")
    except OSError as error:
        raise InputError(f"{path}: the list cannot be read ({error.strerror})") from error
    lines = [line.rstrip("\r") for line in text.split("\n") if line.strip()]
    if not lines:
        raise InputError(f"{path}: the list is empty")
    yield from lines


def _listed(line: str, base: Path, recursive: bool, errors: list[str]) -> list[Input]:
    try:
        return _expand_path(line, recursive, errors, base)
    except InputError as error:
        errors.append(str(error))
        return []


def listed(path: Path) -> list[Input]:
    """The utterances of a manifest. Raises InputError."""
    from asr.data import manifest

    utterances = manifest.read(path, needs=())
    if not utterances:
        raise InputError(f"{path}: the manifest is empty")
    return [
        Input(
            utterance.audio, file_name(utterance.id), utterance.id, utterance.id,
            start=utterance.start, end=utterance.end, text=utterance.text,
        )
        for utterance in utterances
    ]  # fmt: skip


def channel_names(each: Input, channel: str | int) -> list[str]:
    """The output names of an input: with ``channel`` "split" its header must be read for that."""
    if channel != "split" or each.path is None:
        return [each.name]
    from asr.audio import probe

    try:
        return [f"{each.name}.ch{index}" for index in range(probe(each.path).channels)]
    except InputError:
        return [each.name]  # named as an error when its turn comes


def file_name(id: str) -> str:
    """An id as one file name: what such a name cannot hold is percent-encoded."""
    unfit = r"[\x00-\x1f\x7f\ud800-\udfff/" + (r'\\:*?"<>|]' if os.name == "nt" else "]")
    name = re.sub(unfit, lambda found: quote(found[0], safe="", errors="surrogatepass"), id)
    return name if name.strip(".") else name.replace(".", "%2E")
