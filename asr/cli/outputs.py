"""The files one call writes: nothing that it reads, nothing twice, nothing unasked that is there.

What can be known before the long work is refused then; see :func:`probe` and :class:`Outputs`.
Imports no torch.
"""

from __future__ import annotations

import errno
import os
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from pathlib import Path

from asr.cli.options import UsageError
from asr.errors import InputError

POLICIES = ("error", "skip", "overwrite")


def probe(path: Path, what: str) -> None:
    """Try whether a file can be written, by writing one of no bytes beside it.

    Raises UsageError that opens with ``what``, for example ``--json out/x.json``.
    """
    if path.is_dir():
        raise UsageError(f"{what}: is a folder; a file name is expected")
    try:
        # Links and devices are written through, /dev/stdout that leads to a pipe among them.
        if path.exists() and (path.is_symlink() or not path.is_file()):
            if not os.access(path, os.W_OK):
                raise PermissionError(errno.EACCES, os.strerror(errno.EACCES))
            return
        target = Path(os.path.realpath(path)) if path.is_symlink() else path
        if not target.parent.is_dir():
            raise UsageError(f"{what}: the folder {target.parent} does not exist")
        # The name that it is written under before it is whole: the longest there will be.
        trial = target.with_name(f".{target.name}.partial")
        descriptor = os.open(trial, os.O_WRONLY | os.O_CREAT)
        os.close(descriptor)
        trial.unlink()
    except UsageError:
        raise
    except (OSError, ValueError) as error:  # ValueError: no file name
        reason = getattr(error, "strerror", None) or error
        raise UsageError(f"{what}: cannot be written ({reason})") from error


@dataclass
class Outputs:
    """Who has which file of this call, and what to do where one is there already.

    ``on_exists``: ``error`` refuses it, ``skip`` leaves it as it is, ``overwrite`` replaces it,
    but never a file that this call reads or has written.
    """

    on_exists: str
    _taken: dict[str, str] = field(default_factory=dict)

    def reads(self, path: Path, what: str) -> None:
        """A file, or a folder's files, that this call reads: nothing may be written there."""
        for each in (path, *_files(path)):
            self._taken.setdefault(os.path.realpath(each), what)

    def claim(self, path: Path, what: str) -> None:
        """Keep a place for ``what``. Raises InputError where something else has it."""
        other = self._taken.setdefault(os.path.realpath(path), what)
        if other != what:
            raise InputError(
                f"{path}: cannot be both {other} and {what}; choose another name or folder"
            )

    def plan(self, wanted: Iterable[tuple[Path, str]]) -> None:
        """Claim all that is known beforehand. Raises UsageError where one cannot be had."""
        there = []
        try:
            for path, what in wanted:
                self.claim(path, what)
                if self.on_exists == "overwrite" and path.is_dir():
                    raise UsageError(f"{path}: is a folder, and would be {what}")
                if self.on_exists == "error" and os.path.lexists(path):
                    there.append(path)
        except InputError as error:
            raise UsageError(str(error)) from None
        if there:
            more = f" and {len(there) - 1} more" if len(there) > 1 else ""
            raise UsageError(
                f"{there[0]}{more}: there already; --on-exists skip or overwrite says what to do"
            )

    def open_to(self, path: Path, what: str) -> bool:
        """Whether to write a file now; False where it is there and is to be left as it is.

        Raises InputError where it must not be written.
        """
        self.claim(path, what)
        if self.on_exists == "overwrite" or not os.path.lexists(path):
            return True
        if self.on_exists == "skip":
            return False
        raise InputError(
            f"{path}: there already, and would be {what}; not written: "
            "--on-exists overwrite replaces it"
        )


def _files(path: Path) -> Iterator[Path]:
    try:
        yield from path.iterdir() if path.is_dir() else ()
    except OSError:
        return  # its own reader says what is wrong
