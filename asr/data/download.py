"""Large files over HTTP: resumed where a connection was cut, and checked before they are used."""

from __future__ import annotations

import hashlib
import http.client
import os
import shutil
import sys
import tarfile
import time
import urllib.error
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from asr import __version__
from asr.errors import InputError

_BLOCK = 1 << 20
_TIMEOUT = 60.0  # seconds without a byte
_ATTEMPTS = 5  # in a row that bring nothing new
_PATIENCE = 1.0  # seconds before the second attempt; doubled for each further one
_MARGIN = 100 << 20  # bytes of disk that are left free
_PASSING = (408, 429, 500, 502, 503, 504)  # HTTP statuses that may be gone in a moment
_MD5SUM = "md5sum.txt"


@dataclass(frozen=True)
class Archive:
    """A file to download: ``checksum`` is ``md5:`` or ``sha256:`` and the digits in hexadecimal."""

    url: str
    checksum: str

    @property
    def name(self) -> str:
        return self.url.rpartition("/")[2]


def fetch(archive: Archive, folder: Path, *, unpacked: float = 0.0, quiet: bool = False) -> Path:
    """The archive as a file in ``folder``, checked; nothing is transferred if it is there already.

    What was transferred before a cut is kept as ``<name>.part`` and gone on from, by this call as
    long as anything comes, or by the next one. ``unpacked`` is how much room its content will
    take, as a multiple of its own size. Raises InputError where the server does not have it or
    stops sending, where the disk has no room for both, and where the checksum is wrong (what came
    is then removed: resuming it would never make it right).
    """
    done = folder / archive.name
    if done.is_file():
        _check(archive, done)
        return done
    folder.mkdir(parents=True, exist_ok=True)
    part = folder / f"{archive.name}.part"
    idle = 0
    while True:
        before = _size(part)
        try:
            if _transfer(archive.url, part, unpacked, quiet):
                break
            reason = "the connection was cut"
        except urllib.error.HTTPError as error:
            if error.code not in _PASSING:
                raise InputError(
                    f"{archive.url}: the server says {error.code} {error.reason}"
                ) from None
            reason = f"the server says {error.code} {error.reason}"
        except InputError:
            raise
        except (OSError, http.client.HTTPException) as error:
            reason = str(getattr(error, "reason", error)) or type(error).__name__
        except ValueError as error:
            raise InputError(f"{archive.url}: not an address to download from ({error})") from None
        idle = 0 if _size(part) > before else idle + 1
        if idle >= _ATTEMPTS:
            raise InputError(
                f"{archive.url}: {reason}, with {_size(part):,} bytes there; the same command "
                "goes on from them"
            )
        time.sleep(_PATIENCE * 2**idle if idle else 0.0)
    try:
        _check(archive, part)
    except InputError:
        part.unlink()
        raise
    os.replace(part, done)
    return done


def published(archive: Archive) -> Archive:
    """The archive with the checksum that ``md5sum.txt`` beside it gives, where there is one."""
    address = f"{archive.url.rpartition('/')[0]}/{_MD5SUM}"
    try:
        with _open(address) as response:
            lines = response.read(_BLOCK).decode("utf-8", "replace").splitlines()
    except (OSError, http.client.HTTPException, ValueError):
        return archive
    for line in lines:
        digits, _, name = line.partition(" ")
        if name.strip().lstrip("*").rpartition("/")[2] == archive.name:
            return Archive(archive.url, f"md5:{digits.strip().lower()}")
    return archive


def unpack(archive: Path, folder: Path) -> None:
    """Everything in a tar file, below ``folder``; InputError for one that is damaged or unsafe."""
    try:
        with tarfile.open(archive) as content:
            content.extractall(folder, filter="data")
    except (tarfile.TarError, EOFError, OSError) as error:
        if isinstance(error, OSError) and error.errno is not None:
            raise InputError(f"{folder}: {error.strerror}") from None
        raise InputError(
            f"{archive}: cannot be unpacked ({error}); remove it and try again"
        ) from None


def _transfer(url: str, part: Path, unpacked: float, quiet: bool) -> bool:
    """Go on with ``part`` as far as the server sends; whether it is all there now."""
    start = _size(part)
    with _open(url, start) as response:
        if start and response.status != 206:  # the server sends the whole again
            start = 0
        length = response.headers.get("Content-Length")
        total = start + int(length) if length else None
        _make_room(part.parent, total, start, unpacked)
        with part.open("ab" if start else "wb") as file, _bar(url, total, start, quiet) as advance:
            while True:
                try:
                    block = response.read(_BLOCK)
                except http.client.IncompleteRead as cut:
                    file.write(cut.partial)
                    return False
                if not block:
                    break
                file.write(block)
                advance(len(block))
    return total is None or _size(part) >= total


@contextmanager
def _open(url: str, start: int = 0) -> Iterator[Any]:
    headers = {"User-Agent": f"asr/{__version__}"}
    if start:
        headers["Range"] = f"bytes={start}-"
    request = urllib.request.Request(url, headers=headers)
    try:
        with urllib.request.urlopen(request, timeout=_TIMEOUT) as response:
            yield response
    except urllib.error.HTTPError as error:
        if start and error.code == 416:  # nothing lies beyond: the checksum tells whether it is all
            yield _Nothing()
        else:
            raise


class _Nothing:
    """The answer of a server that has no more."""

    status = 206

    def __init__(self) -> None:
        self.headers: dict[str, str] = {}

    def read(self, size: int) -> bytes:
        return b""


def _make_room(folder: Path, total: int | None, there: int, unpacked: float) -> None:
    if total is None:
        return
    needed = total - there + round(total * unpacked) + _MARGIN
    free = shutil.disk_usage(folder).free
    if free < needed:
        raise InputError(
            f"{folder}: {needed / 1e9:.1f} GB are needed, {free / 1e9:.1f} GB are free on its disk"
        )


def _check(archive: Archive, path: Path) -> None:
    kind, _, expected = archive.checksum.partition(":")
    with path.open("rb") as file:
        found = hashlib.file_digest(file, kind).hexdigest()
    if found != expected:
        raise InputError(
            f"{path}: its {kind} is {found}, but {expected} was published: not what "
            f"{archive.url} should be; try again"
        )


def _size(path: Path) -> int:
    return path.stat().st_size if path.is_file() else 0


@contextmanager
def _bar(url: str, total: int | None, start: int, quiet: bool) -> Iterator[Any]:
    """Progress in bytes on standard error, if that is a terminal."""
    if quiet or not sys.stderr.isatty():
        yield lambda size: None
        return
    from rich.console import Console
    from rich.progress import (
        BarColumn,
        DownloadColumn,
        Progress,
        TimeRemainingColumn,
        TransferSpeedColumn,
    )

    columns = (BarColumn(), DownloadColumn(), TransferSpeedColumn(), TimeRemainingColumn())
    with Progress("{task.description}", *columns, console=Console(stderr=True)) as progress:
        task = progress.add_task(url.rpartition("/")[2], total=total, completed=start)
        yield lambda size: progress.advance(task, size)
