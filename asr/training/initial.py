"""Starting from a model that was trained before: fine-tuning."""

from __future__ import annotations

import json
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import torch

from asr.errors import InputError
from asr.inference import bundle
from asr.inference.bundle import Bundle
from asr.nn.las import LAS
from asr.text import Tokenizer
from asr.training import names

_PARTS = ("frontend", "encoder", "attention", "speller")
_SHOWN = 6


def with_parts_of(found: Bundle, arguments: list[str]) -> list[str]:
    """Arguments (resolved) that begin with the bundle's own model: what is told later replaces it.

    A part of another kind replaces the bundle's with its arguments, an argument only itself.
    """
    spec = found.model.spec()
    parts: dict[str, Any] = {part: spec[part] for part in _PARTS}
    if not spec["ctc"]:
        parts["ctc_weight"] = 0.0
    return [names.inline(names.resolved({"model": parts})), *arguments]


def told(arguments: Iterable[str], key: str) -> Any:
    """What resolved arguments say last about a dotted key; None where they say nothing."""
    found = None
    rest = iter(arguments)
    for argument in rest:
        name, equals, value = argument.partition("=")
        if name == f"--{key}":
            found = value if equals else next(rest, "")
        elif name == "--config":
            content = names.flat(json.loads(value)).items()
            found = {k.replace(".init_args", ""): v for k, v in content}.get(key, found)
    return found


def copy(found: Bundle, model: LAS, tokenizer: Tokenizer) -> list[str]:
    """Copy the bundle's weights where name and shape fit; the names of those of ``model`` left.

    What stands for tokens is copied only between equal tokenizers. Raises InputError where the
    two models hear at different rates, and where less than half of the listener fits.
    """
    if found.model.sample_rate != model.sample_rate:
        raise InputError(
            f"{found.name}: the bundle hears at {found.model.sample_rate} Hz, this model at "
            f"{model.sample_rate} Hz; valid: --data.sample_rate={found.model.sample_rate}"
        )
    theirs, own = found.model.state_dict(), model.state_dict()
    by_token: set[str] = set()
    if found.tokenizer.fingerprint != tokenizer.fingerprint:
        by_token = _by_token(found.model)
    copied = [
        name
        for name, tensor in own.items()
        if name in theirs and theirs[name].shape == tensor.shape and name not in by_token
    ]
    listener = {name: tensor.numel() for name, tensor in own.items() if name[:8] == "encoder."}
    fits = sum(size for name, size in listener.items() if name in copied)
    if fits < sum(listener.values()) / 2:
        raise InputError(
            f"{found.name}: the bundle does not fit: of this model's listener it has "
            f"{fits / sum(listener.values()):.0%}; its own is "
            f"{json.dumps(found.model.encoder.spec())}, and is taken where nothing else is told"
        )
    model.load_state_dict({name: theirs[name] for name in copied}, strict=False)
    return [name for name in own if name not in copied]


def said(found: Bundle, model: LAS, left: list[str]) -> str:
    """One line on what was copied and what was not."""
    total = len(model.state_dict())
    line = f"begins as {found.name}: {total - len(left)} of {total} tensors copied"
    if not left:
        return line
    more = ["..."] if len(left) > _SHOWN else []
    return f"{line}; not copied, so learnt anew: {', '.join([*left[:_SHOWN], *more])}"


def load(path: str) -> Bundle:
    """The bundle that ``--init_from`` names, on the CPU; InputError where it is none."""
    if not Path(path).exists():
        raise InputError(f"--init_from: {path}: no such bundle (a folder or a .zip)")
    return bundle.load(path)


def _by_token(model: LAS) -> set[str]:
    """The tensors whose shape depends on how many tokens there are."""
    spec = model.spec()
    with torch.random.fork_rng(devices=[]):
        other = LAS.from_spec({**spec, "vocabulary_size": model.vocabulary_size + 1})
    shapes = {name: tensor.shape for name, tensor in other.state_dict().items()}
    return {name for name, tensor in model.state_dict().items() if tensor.shape != shapes[name]}
