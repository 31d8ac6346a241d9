"""What a report that is there already holds, read off its pages. Imports no torch."""

from __future__ import annotations

import re
from collections.abc import Mapping
from html import unescape
from pathlib import Path
from typing import NamedTuple
from urllib.parse import unquote

_LINK = r'<a href="([^"]+)" rel="{}">'
_ENTRY = re.compile(r'<article class="entry" data-name="([^"]*)" data-piece="(\d+)">')


class Contents(NamedTuple):
    """``pages`` as they link to one another, also those that are gone; ``pieces`` by the name of
    what each shows: how many pieces it was listened to in, 0 where nothing was heard."""

    pages: tuple[Path, ...]
    pieces: Mapping[str, int]

    @property
    def whole(self) -> bool:
        """Whether all pages are there."""
        return all(page.is_file() for page in self.pages)


def contents(path: Path) -> Contents | None:
    """Of the report that begins at ``path``; None where no report of ours does."""
    pages: list[Path] = []
    pieces: dict[str, int] = {}
    while path not in pages:
        pages.append(path)
        try:
            text = path.read_text(encoding="utf-8", errors="replace")
        except OSError:
            break
        for name, piece in _ENTRY.findall(text):
            pieces[unescape(name)] = max(int(piece), pieces.get(unescape(name), 0))
        path = _linked(path, text, "next") or path
    return Contents(tuple(pages), pieces) if pieces else None


def continues(path: Path, first: Path) -> bool:
    """Whether a page is a later one of the report that begins, or began, at ``first``."""
    seen: list[Path] = []
    while path not in seen and path != first:
        seen.append(path)
        try:
            text = path.read_text(encoding="utf-8", errors="replace")
        except OSError:
            break  # a page between that is gone
        previous = _linked(path, text, "prev") if _ENTRY.search(text) else None
        if previous is None:
            return False
        path = previous
    return bool(seen)


def _linked(page: Path, text: str, way: str) -> Path | None:
    link = re.search(_LINK.format(way), text)
    name = link and Path(unquote(unescape(link[1]))).name
    return page.with_name(name) if name else None


def piece_name(name: str, piece: int) -> str:
    """What a piece's files are called: ``name``, ``name-2``, ``name-3`` ..."""
    return name if piece <= 1 else f"{name}-{piece}"
