"""What preparation of recordings has in common: how long each is, and which are broken."""

from __future__ import annotations

import logging
import os
import sys
from collections.abc import Iterable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from asr.data import manifest
from asr.errors import InputError

_log = logging.getLogger(__name__)
_SHOWN = 3  # broken things that one error names


@dataclass(frozen=True)
class Heard:
    """A file that decodes to its end: ``duration`` in seconds, its own ``rate`` in Hz."""

    duration: float
    rate: int


def hear(
    paths: Iterable[Path], *, known: Mapping[Path, float] | None = None, quiet: bool = False
) -> tuple[dict[Path, Heard], dict[Path, str]]:
    """Decode every file: what they are, and the reason of each that cannot be decoded.

    ``known`` durations are taken as they are (their rate is 0).
    """
    known = known or {}
    every = list(dict.fromkeys(paths))
    heard = {path: Heard(known[path], 0) for path in every if path in known}
    broken: dict[Path, str] = {}
    rest = [path for path in every if path not in heard]
    # libsndfile and soxr work without Python's lock, so threads are enough.
    with ThreadPoolExecutor(os.cpu_count()) as pool, _bar(len(rest), quiet) as advance:
        try:
            for path, found in zip(rest, pool.map(_hear, rest), strict=True):
                if isinstance(found, Heard):
                    heard[path] = found
                else:
                    broken[path] = found
                advance(1)
        except BaseException:  # an interrupt must not wait for all that is queued
            pool.shutdown(cancel_futures=True)
            raise
    return heard, broken


def durations_of(path: Path) -> dict[Path, float]:
    """Durations by file as an earlier run wrote them, of files that have not changed since."""
    try:
        written = path.stat().st_mtime
        before = manifest.read(path)
    except (OSError, InputError):
        return {}
    return {
        u.audio: u.duration
        for u in before
        if u.audio.is_file() and u.audio.stat().st_mtime < written
    }


def refuse(broken: Sequence[str], *, skip: bool) -> None:
    """InputError that names what is broken; with ``skip`` a warning for each instead."""
    if skip:
        for reason in broken:
            _log.warning("left out: %s", reason)
    elif broken:
        more = f" (and {len(broken) - _SHOWN} more)" if len(broken) > _SHOWN else ""
        raise InputError(
            f"{'; '.join(broken[:_SHOWN])}{more}; --skip-broken leaves out what is broken"
        )


def _hear(path: Path) -> Heard | str:
    from asr import audio

    try:
        rate = audio.probe(path).sample_rate
        sound = audio.load(path, rate)
    except InputError as error:
        return str(error)
    return Heard(sound.duration, rate)


@contextmanager
def _bar(total: int, quiet: bool) -> Iterator[Any]:
    """Progress in files on standard error, if that is a terminal."""
    if quiet or not sys.stderr.isatty():
        yield lambda count: None
        return
    from rich.console import Console
    from rich.progress import Progress

    with Progress(console=Console(stderr=True)) as progress:
        task = progress.add_task("listening", total=total)
        yield lambda count: progress.advance(task, count)
