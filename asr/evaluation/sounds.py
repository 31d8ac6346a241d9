"""The recordings of a page: inside it where they are small enough, else linked from beside it."""

from __future__ import annotations

import base64
import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Literal
from urllib.parse import quote


@dataclass(frozen=True)
class Sounds:
    """``sources`` by utterance id, as an audio element takes them: data URIs when ``how`` is
    embedded, relative addresses when linked. Of ``unplayable`` there is no file that browsers
    know how to play."""

    how: Literal["embedded", "linked", "none"] = "none"
    sources: Mapping[str, str] = field(default_factory=dict)
    unplayable: tuple[str, ...] = ()


def gather(
    audio: Mapping[str, str | Path], ids: Sequence[str], folder: Path, *, room: int
) -> Sounds:
    """The recordings of ``ids`` for a page in ``folder``.

    Embedded as they are when all of them fit ``room`` bytes, otherwise all linked.
    """
    kinds = {id: _kind(Path(audio[id])) for id in ids if id in audio}
    files = {id: (Path(audio[id]), kind) for id, kind in kinds.items() if kind}
    unplayable = tuple(id for id, kind in kinds.items() if not kind)
    if not files:
        return Sounds(unplayable=unplayable)
    if sum(4 * path.stat().st_size / 3 + 100 for path, _ in files.values()) > room:
        linked = {id: _address(path, folder) for id, (path, _) in files.items()}
        return Sounds("linked", linked, unplayable)
    return Sounds(
        "embedded", {id: _uri(path, kind) for id, (path, kind) in files.items()}, unplayable
    )


def _kind(path: Path) -> str:
    """The media type by content, for what browsers play; empty for the rest and for no file."""
    try:
        with path.open("rb") as file:
            head = file.read(12)
    except OSError:
        return ""
    if head[:4] == b"RIFF" and head[8:] == b"WAVE":
        return "audio/wav"
    if head[4:8] == b"ftyp":
        return "audio/mp4"
    starts = {b"fLaC": "flac", b"OggS": "ogg", b"ID3": "mpeg", b"\x1aE\xdf\xa3": "webm"}
    for start, name in starts.items():
        if head.startswith(start):
            return f"audio/{name}"
    # The eleven bits that an MPEG frame begins with, layer I to III.
    mpeg = len(head) > 1 and head[0] == 0xFF and head[1] & 0xE0 == 0xE0 and head[1] & 0x06
    return "audio/mpeg" if mpeg else ""


def _uri(path: Path, kind: str) -> str:
    return f"data:{kind};base64," + base64.b64encode(path.read_bytes()).decode()


def _address(path: Path, folder: Path) -> str:
    """Relative, with forward slashes; ``./`` in front keeps a colon from reading as a scheme."""
    relative = Path(os.path.relpath(path.resolve(), folder.resolve())).as_posix()
    return quote(os.fsencode(relative if relative.startswith("../") else f"./{relative}"))
