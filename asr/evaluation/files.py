"""Writing reports: readable, whole or absent, and without holding them in memory."""

from __future__ import annotations

import json
import os
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any

from asr.errors import InputError


def laid_out(content: Mapping[str, Any], last: str, rows: Iterable[Any]) -> Iterator[str]:
    """JSON for people and ``diff``: a key a line, and of a list of objects one object a line.

    ``rows`` come under the key ``last``, one at a time.
    """
    yield "{\n"
    for key, value in content.items():
        if isinstance(value, list) and value and isinstance(value[0], dict):
            yield from _list(key, value)
            yield ",\n"
        else:
            yield f" {_dumped(key)}: {_dumped(value)},\n"
    yield from _list(last, rows)
    yield "\n}\n"


def write(path: Path, parts: Iterable[str]) -> None:
    """Write beside ``path`` and rename, so that a report is whole or absent.

    Raises InputError when the place cannot be written.
    """
    try:
        # Links and devices (/dev/stdout is both) are written through, never replaced.
        if path.is_symlink() or (path.exists() and not path.is_file()):
            with path.open("w", encoding="utf-8") as file:
                file.writelines(parts)
            return
        partial = path.with_name(f".{path.name}.partial")
        with partial.open("w", encoding="utf-8") as file:
            file.writelines(parts)
        os.replace(partial, path)
    except OSError as error:
        raise InputError(f"cannot write {path}: {error.strerror or error}") from error


def _list(key: str, rows: Iterable[Any]) -> Iterator[str]:
    yield f" {_dumped(key)}: ["
    mark = "\n  "
    for row in rows:
        yield mark + _dumped(row)
        mark = ",\n  "
    yield "]" if mark == "\n  " else "\n ]"


def _dumped(value: Any) -> str:
    return json.dumps(value, ensure_ascii=False, allow_nan=False)
