"""The model bundle: what training hands to everybody else, and the only thing strangers exchange.

A folder or one zip of ``config.json`` (what the model is made of, how it is decoded), the weights
as safetensors, the tokenizer's files, ``card.json`` and its rendering ``README.md``. Nothing in it
is ever executed: no pickle is read, and only components that this package registers are built.
"""

from __future__ import annotations

import base64
import hashlib
import json
import math
import pickle
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field, fields, replace
from pathlib import Path
from typing import Any

import safetensors.torch
import torch

from asr import __version__
from asr.errors import InputError
from asr.inference import archive, weights
from asr.inference.archive import CARD, CONFIG, README, WEIGHTS, one_line
from asr.inference.card import render
from asr.inference.pieces import SHORTEST_PIECE
from asr.nn.las import LAS
from asr.search.options import SearchOptions
from asr.text import Tokenizer
from asr.text.normalise import NORMALIZERS
from asr.types import Seconds

FORMAT = 1
#: the key of a training checkpoint under which :func:`describe_for_checkpoint` is kept
CHECKPOINT_KEY = "asr"
_PREFIX = "model."  # of the model's tensors in a training checkpoint's state_dict
_OTHER_KEYS = {"format", "versions", "tokenizer", "tokenizer_files", "model", "card"}


@dataclass(frozen=True)
class Settings:
    """How a model is used, besides what it is.

    Args:
        name: shown in transcripts and reports; a bundle without one is named after its path.
        language: what it was trained on, as BCP 47 has it ("en").
        normalisation: how its training texts were normalised, for :func:`asr.text.normalise`.
        onset_shift: seconds to take off the times of words, because attention peaks that late.
        max_piece_seconds: longer audio is cut into pieces of at most this.
        least_confidence: where the mean confidence of a piece's words stays below this, what it
            says was probably not said, and a warning says so; 0 never warns. The default fits a
            model that was trained with label smoothing of 0.1 on what it hears.
        search: keyword arguments of :class:`asr.search.SearchOptions` that suit the model.
    """

    name: str = ""
    language: str = ""
    normalisation: str = "basic"
    onset_shift: Seconds = 0.0
    max_piece_seconds: Seconds = 40.0
    least_confidence: float = 0.78
    search: Mapping[str, Any] = field(default_factory=dict)

    def __post_init__(self) -> None:
        for key in ("name", "language", "normalisation"):
            value = getattr(self, key)
            if not isinstance(value, str) or not value.isprintable():
                raise ValueError(f"{key} must be a text of one line, not {value!r}")
        if self.normalisation not in NORMALIZERS:
            valid = ", ".join(NORMALIZERS)
            raise ValueError(f"normalisation must be one of {valid}, not {self.normalisation!r}")
        for key, low, high, unit in (
            ("onset_shift", -10.0, 10.0, " seconds"),
            ("max_piece_seconds", SHORTEST_PIECE, 3600.0, " seconds"),
            ("least_confidence", 0.0, 1.0, ""),
        ):
            value = getattr(self, key)
            number = isinstance(value, int | float) and math.isfinite(value)
            if not number or not low <= value <= high:
                raise ValueError(f"{key} must be {low:g} to {high:g}{unit}, not {value!r}")
        try:
            SearchOptions(**self.search)
        except TypeError as error:
            raise ValueError(f"search: {one_line(error)}") from None


@dataclass(frozen=True)
class Bundle:
    """A model ready to use (eval mode), its tokenizer, and what is known about it.

    ``fingerprint`` is the SHA-256 of all that decides results: weights, configuration, tokenizer;
    empty for one that is still a checkpoint. ``config`` is what ``config.json`` holds.
    """

    model: LAS
    tokenizer: Tokenizer
    settings: Settings
    card: Mapping[str, Any]
    name: str
    fingerprint: str
    config: Mapping[str, Any] = field(default_factory=dict)


def save(
    path: str | Path,
    model: LAS,
    tokenizer: Tokenizer,
    *,
    card: Mapping[str, Any],
    settings: Settings | None = None,
    overwrite: bool = False,
) -> None:
    """Write a bundle, all of it or nothing; a path ending in ``.zip`` makes one file.

    ``card`` is what :func:`asr.inference.card.render` knows. InputError where something is at
    ``path`` already (unless ``overwrite``, and it is a bundle), for weights that are not finite,
    and for a card that is no JSON.
    """
    path = Path(path)
    archive.check_target(path, overwrite=overwrite)
    _same_vocabulary(model, tokenizer, str(path))
    settings = settings or Settings()
    config = {
        "format": FORMAT,
        **asdict(replace(settings, name=settings.name or path.stem)),
        "versions": {"asr": __version__, "torch": torch.__version__},
        "tokenizer": tokenizer.fingerprint,
        "model": model.spec(),
    }
    try:
        contents = {
            CONFIG: _json(config),
            WEIGHTS: safetensors.torch.save(weights.stored(model)),
            CARD: _json(card),
            README: render(card, config).encode(),
            **tokenizer.files(),
        }
    except (TypeError, ValueError) as error:
        raise InputError(f"{path}: {one_line(error)}") from None
    archive.write(path, contents, overwrite=overwrite)


def load(path: str | Path, device: str | torch.device = "cpu") -> Bundle:
    """The bundle in a folder or zip.

    Raises InputError, one line that names the file and key, for anything that is not a whole and
    consistent bundle of this or an older format; nothing in it is run and nothing large allocated
    before its parts are known to fit one another.
    """
    path = Path(path)
    where = str(path)
    with archive.opened(path) as folder:
        config = archive.read_json(folder / CONFIG, path)
        settings = _settings(config, where)
        tokenizer = Tokenizer.load(folder)
        if config["tokenizer"] != tokenizer.fingerprint:
            raise InputError(f"{where}: the tokenizer is not the one {CONFIG} names")
        card = archive.read_json(folder / CARD, path)
        model = weights.from_file(config["model"], folder / WEIGHTS, where)
        _same_vocabulary(model, tokenizer, where)
        fingerprint = _fingerprint(folder, tokenizer)
    try:
        model.to(device)
    except (RuntimeError, AssertionError) as error:
        raise InputError(f"device {str(device)!r} cannot be used: {one_line(error)}") from None
    name = settings.name or path.stem
    return Bundle(model, tokenizer, settings, card, name, fingerprint, config)


def describe_for_checkpoint(
    model: LAS,
    tokenizer: Tokenizer,
    *,
    card: Mapping[str, Any],
    settings: Settings | None = None,
) -> dict[str, Any]:
    """What a training checkpoint keeps as ``checkpoint["asr"]``, plain values only.

    With the tensors of ``model`` under ``state_dict`` as ``model.*`` it makes a bundle
    (:func:`from_checkpoint`), and tells a resumed run what the first one was.
    """
    files = {name: base64.b64encode(data).decode() for name, data in tokenizer.files().items()}
    return {
        "format": FORMAT,
        **asdict(settings or Settings()),
        "versions": {"asr": __version__, "torch": str(torch.__version__)},
        "tokenizer": tokenizer.fingerprint,
        "tokenizer_files": files,
        "model": model.spec(),
        "card": dict(card),
    }


def from_checkpoint(path: str | Path) -> Bundle:
    """The model of a training checkpoint, on the CPU; InputError where it holds none.

    The file is read with ``weights_only=True``: objects other than tensors and plain values are
    refused, not unpickled.
    """
    where = str(path)
    try:
        checkpoint = torch.load(path, map_location="cpu", weights_only=True)
    except FileNotFoundError:
        raise InputError(f"{where}: no such checkpoint") from None
    except pickle.UnpicklingError:
        raise InputError(
            f"{where}: not a checkpoint of tensors and plain values; nothing else is loaded"
        ) from None
    except Exception as error:  # torch's reader lets whatever damaged bytes lead to pass through
        raise InputError(f"{where}: not a readable checkpoint ({one_line(error)})") from None
    state = checkpoint.get(CHECKPOINT_KEY) if isinstance(checkpoint, dict) else None
    tensors = checkpoint.get("state_dict") if isinstance(checkpoint, dict) else None
    if not isinstance(state, dict) or not isinstance(tensors, dict):
        raise InputError(f"{where}: a checkpoint of something else: `asr train` did not write it")
    own = {
        key.removeprefix(_PREFIX): value
        for key, value in tensors.items()
        if isinstance(key, str) and key.startswith(_PREFIX) and isinstance(value, torch.Tensor)
    }
    settings = _settings(state, where)
    try:
        files = {name: base64.b64decode(data) for name, data in state["tokenizer_files"].items()}
        card = dict(state["card"])
    except (KeyError, TypeError, AttributeError, ValueError) as error:
        raise InputError(f"{where}: {CHECKPOINT_KEY}: incomplete ({one_line(error)})") from None
    tokenizer = Tokenizer.from_files(files, where=where)
    shapes = {key: tuple(tensor.shape) for key, tensor in own.items()}
    model = weights.restore(state["model"], shapes, lambda: own, where)
    _same_vocabulary(model, tokenizer, where)
    return Bundle(model, tokenizer, settings, card, settings.name, "", state)


def _settings(config: Mapping[str, Any], where: str) -> Settings:
    """The settings of a configuration whose outline is right."""
    version = config.get("format")
    if type(version) is not int or version < 1:
        raise InputError(f"{where}: {CONFIG}: not an asr bundle (format is {version!r})")
    if version > FORMAT:
        raise InputError(
            f"{where}: {CONFIG}: format {version} is newer than this asr {__version__} reads "
            f"({FORMAT}); upgrade asr"
        )
    for key, kind in (("tokenizer", str), ("model", dict), ("versions", dict), ("search", dict)):
        if not isinstance(config.get(key), kind):
            raise InputError(f"{where}: {CONFIG}: {key} is missing or not a {kind.__name__}")
    names = {own.name for own in fields(Settings)}
    unknown = sorted(config.keys() - names - _OTHER_KEYS)
    if unknown:
        raise InputError(
            f"{where}: {CONFIG}: unknown key {unknown[0]!r}; valid: "
            f"{', '.join(sorted(names | _OTHER_KEYS))}"
        )
    try:
        return Settings(**{key: value for key, value in config.items() if key in names})
    except (ValueError, TypeError) as error:
        raise InputError(f"{where}: {CONFIG}: {one_line(error)}") from None


def _same_vocabulary(model: LAS, tokenizer: Tokenizer, where: str) -> None:
    if model.vocabulary_size != tokenizer.vocabulary_size:
        raise InputError(
            f"{where}: the model writes {model.vocabulary_size} tokens, "
            f"its tokenizer has {tokenizer.vocabulary_size}"
        )


def _fingerprint(folder: Path, tokenizer: Tokenizer) -> str:
    digest = hashlib.sha256(tokenizer.fingerprint.encode())
    for name in (CONFIG, WEIGHTS):
        with (folder / name).open("rb") as file:
            digest.update(hashlib.file_digest(file, "sha256").digest())
    return digest.hexdigest()


def _json(content: Mapping[str, Any]) -> bytes:
    text = json.dumps(content, ensure_ascii=False, indent=2, allow_nan=False)
    return (text + "\n").encode()
