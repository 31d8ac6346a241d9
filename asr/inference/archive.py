"""Bundles on disk: a folder, or one zip that holds what the folder would.

Everything here may have come from a stranger. Nothing in a zip is unpacked but the few files of a
bundle, under their own names, in a folder of ours and within a bounded size.
"""

from __future__ import annotations

import json
import math
import secrets
import shutil
import stat
import tempfile
import zipfile
import zlib
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path, PurePosixPath
from typing import Any

from asr.errors import InputError

CONFIG = "config.json"
WEIGHTS = "model.safetensors"
CARD = "card.json"
README = "README.md"
NEEDED = (CONFIG, WEIGHTS, CARD, "tokenizer.json")
_READ = (*NEEDED, "tokenizer.model")

_CHECKPOINTS = (".ckpt", ".pt", ".pth", ".bin")
_PLAIN_LIMIT = 16 * 2**20  # bytes of a JSON file
_MEMBERS = 1000
_EXPANSION = 20  # weights hardly compress: a zip that unpacks to more than this is a trap
_SLACK = 2**20


@contextmanager
def opened(path: Path) -> Iterator[Path]:
    """The folder of a bundle; a zip's is a temporary one. InputError for what is no bundle."""
    if path.is_dir():
        _require(path, path)
        yield path
    elif path.is_file():
        with tempfile.TemporaryDirectory(prefix="asr-bundle-") as made:
            _unpack(path, Path(made))
            _require(Path(made), path)
            yield Path(made)
    else:
        raise InputError(f"{path}: no such bundle (a folder or a .zip)")


def _require(folder: Path, where: Path) -> None:
    missing = [name for name in NEEDED if not (folder / name).is_file()]
    if not missing:
        return
    if (folder / CONFIG).is_file():
        config = read_json(folder / CONFIG, where)
        if "architectures" in config or "model_type" in config or "transformers_version" in config:
            raise InputError(f"{where}: a model folder of another library, not an asr bundle")
    hint = f"a bundle holds {', '.join(NEEDED)}"
    checkpoint = next(iter(sorted(folder.glob("*.ckpt"))), None)
    if (folder / "bundle" / CONFIG).is_file():
        hint = f"did you mean {where / 'bundle'}?"
    elif checkpoint is not None:
        hint = f"make a bundle of its checkpoint: asr bundle {where / checkpoint.name} -o DIR"
    raise InputError(f"{where}: {missing[0]} is missing; {hint}")


def read_json(file: Path, where: Path) -> dict[str, Any]:
    """A JSON object without NaN or infinity; InputError names the bundle and the file."""
    if file.stat().st_size > _PLAIN_LIMIT:
        raise InputError(f"{where}: {file.name}: over {_PLAIN_LIMIT >> 20} MiB")
    try:
        content = json.loads(
            file.read_bytes().decode(), parse_constant=_finite, parse_float=_finite
        )
    except (ValueError, RecursionError) as error:
        raise InputError(f"{where}: {file.name}: not valid JSON ({one_line(error)})") from None
    if not isinstance(content, dict):
        raise InputError(f"{where}: {file.name}: must hold a JSON object")
    return content


def _finite(text: str) -> float:
    if not math.isfinite(value := float(text)):
        raise ValueError(f"{text} is not a finite number")
    return value


def one_line(error: object) -> str:
    """What an exception says, on one line of bounded length, safe to show in a terminal."""
    text = printable(" ".join(str(error).split())) or type(error).__name__
    return text if len(text) <= 300 else text[:297] + "..."


def printable(text: str) -> str:
    """Without what would steer a terminal; line breaks stay."""
    return "".join(c if c.isprintable() or c == "\n" else "?" for c in text)


def _unpack(path: Path, folder: Path) -> None:
    with path.open("rb") as file:
        start = file.read(4)
    zipped = start == b"PK\x03\x04" and zipfile.is_zipfile(path)
    if not zipped:
        if path.suffix in _CHECKPOINTS or start[:1] == b"\x80":
            raise _checkpoint(path)
        raise InputError(f"{path}: neither a bundle's folder nor a complete .zip of one")
    try:
        with zipfile.ZipFile(path) as archive:
            for info, target in _chosen(archive, path).items():
                with archive.open(info) as packed, (folder / target).open("wb") as out:
                    shutil.copyfileobj(packed, out)
    except (zipfile.BadZipFile, zlib.error, EOFError, OSError) as error:
        raise InputError(f"{path}: cannot be unpacked ({one_line(error)})") from None
    except (RuntimeError, NotImplementedError) as error:  # encrypted; an unknown compression
        raise InputError(f"{path}: cannot be unpacked ({one_line(error)})") from None


def _checkpoint(path: Path) -> InputError:
    return InputError(
        f"{path}: a training checkpoint; make a bundle of it: asr bundle {path} -o DIR"
    )


def _chosen(archive: zipfile.ZipFile, path: Path) -> dict[zipfile.ZipInfo, str]:
    """The members that make the bundle and their plain names, once all are found harmless."""
    members = archive.infolist()
    if len(members) > _MEMBERS:
        raise InputError(f"{path}: has {len(members)} members, where a bundle has under ten")
    for info in members:
        parts = PurePosixPath(info.filename).parts
        climbs = info.filename.startswith("/") or ".." in parts
        if climbs or "\\" in info.filename or ":" in info.filename:
            raise InputError(f"{path}: member {info.filename!r} points outside the bundle")
        if stat.S_ISLNK(info.external_attr >> 16):
            raise InputError(f"{path}: member {info.filename!r} is a link")
    names = [info.filename for info in members]
    if any(PurePosixPath(name).name == "data.pkl" for name in names):
        raise _checkpoint(path)
    # People zip a folder's content, or the folder itself.
    tops = sorted({PurePosixPath(n).parent for n in names if PurePosixPath(n).name == CONFIG})
    top = min(tops, key=lambda p: len(p.parts), default=PurePosixPath())
    wanted = {str(top / name): name for name in _READ}
    chosen = {info: wanted[info.filename] for info in members if info.filename in wanted}
    if len(set(chosen.values())) < len(chosen):
        raise InputError(f"{path}: holds two members of the same name")
    allowed = _EXPANSION * path.stat().st_size + _SLACK
    unpacked = sum(info.file_size for info in chosen)
    if unpacked > allowed:
        raise InputError(f"{path}: would unpack to {unpacked} bytes, {allowed} at most expected")
    return chosen


def write(path: Path, contents: Mapping[str, bytes], *, overwrite: bool) -> None:
    """All files or none: written beside ``path`` and renamed. A ``.zip`` suffix makes one file.

    InputError where something is at ``path``, unless it may be overwritten and is a bundle.
    """
    check_target(path, overwrite=overwrite)
    path.parent.mkdir(parents=True, exist_ok=True)
    draft = path.parent / f".{path.name}.{secrets.token_hex(4)}"
    try:
        if path.suffix == ".zip":
            _write_zip(draft, contents)
            draft.replace(path)
            return
        draft.mkdir()
        for name, content in contents.items():
            (draft / name).write_bytes(content)
        if path.is_dir():
            old = path.parent / f"{draft.name}.old"
            path.rename(old)
            draft.rename(path)
            shutil.rmtree(old)
        else:
            draft.rename(path)
    except OSError as error:
        raise InputError(f"{path}: cannot be written ({error.strerror or error})") from None
    finally:
        if draft.is_dir():
            shutil.rmtree(draft, ignore_errors=True)
        else:
            draft.unlink(missing_ok=True)


def check_target(path: Path, *, overwrite: bool) -> None:
    """InputError when :func:`write` would refuse this place."""
    if not path.exists() or (path.is_dir() and not any(path.iterdir())):
        return
    if not overwrite:
        raise InputError(f"{path}: exists already; overwrite (--overwrite) replaces a bundle")
    replaceable = zipfile.is_zipfile(path) if path.is_file() else (path / WEIGHTS).is_file()
    if not replaceable or path.is_dir() == (path.suffix == ".zip"):
        raise InputError(f"{path}: exists and is not a bundle, so it is not replaced")


def _write_zip(path: Path, contents: Mapping[str, bytes]) -> None:
    with zipfile.ZipFile(path, "w", zipfile.ZIP_STORED) as archive:
        for name, content in contents.items():
            # A fixed date, so that equal bundles are equal files.
            info = zipfile.ZipInfo(name, (1980, 1, 1, 0, 0, 0))
            info.external_attr = (stat.S_IFREG | 0o644) << 16
            archive.writestr(info, content)
