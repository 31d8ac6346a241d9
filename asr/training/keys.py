"""Every key that a configuration may hold, and what each takes: read from the constructors."""

from __future__ import annotations

import collections.abc
import difflib
import inspect
import types
import typing
from collections.abc import Callable, Iterable, Mapping
from typing import Any

from lightning.pytorch import Trainer

from asr.errors import InputError
from asr.glimpses import Frontend
from asr.nn.attention import Attention
from asr.nn.decoders import Speller
from asr.nn.encoders import Encoder
from asr.training.average import Average
from asr.training.data import DATA_MODULES
from asr.training.module import LASModule
from asr.training.reporting import Figures

#: keys that belong to the run as a whole, and their types
TOP: dict[str, Any] = {
    "name": str,
    "runs": str,
    "resume": str | None,
    "ckpt_path": str | None,
    "init_from": str | None,
    "threads": int,
    "seed_everything": bool | int,
}

#: where a short name may stand, and what it may be there
FAMILIES: dict[str, Mapping[str, type]] = {
    "model.frontend": Frontend.registry,
    "model.encoder": Encoder.registry,
    "model.attention": Attention.registry,
    "model.speller": Speller.registry,
    "data": DATA_MODULES,
}

#: groups of keys, and what is constructed with them
_GROUPS: dict[str, type] = {
    "model": LASModule,
    "trainer": Trainer,
    "average": Average,
    "figures": Figures,
}

#: arguments that come from elsewhere
_LINKED = {"model": {"tokenizer", "sample_rate", "seed"}, "data": {"seed"}}

_WORDS: dict[Any, str] = {
    type(None): "null",
    bool: "true or false",
    int: "a whole number",
    float: "a number",
    str: "a text",
}


def check(keys: Iterable[str]) -> None:
    """InputError for a dotted key that nothing takes, with the nearest that exist.

    jsonargparse would say less, and would take ``--trainer.max_step`` for what it abbreviates.
    Which component takes which argument, and what lies within those of others, is left to it.
    """
    for key in keys:
        parts = [part for part in key.split(".") if part not in ("init_args", "class_path", "name")]
        for depth, name in enumerate(parts):
            above = ".".join(parts[:depth])
            valid = takes(above)
            if not valid:
                break
            if name not in valid:
                raise InputError(f"unknown key {key!r}; {_nearest(name, above, valid)}")


def takes(group: str) -> dict[str, Any]:
    """Names and types of what a group of keys holds; empty where it is none that is known."""
    if not group:
        return {**TOP, **_GROUPS, "data": object}
    found: dict[str, Any] = {}
    for made in _made(group):
        found |= _parameters(made)
    return {name: kind for name, kind in found.items() if name not in _LINKED.get(group, ())}


def accepted(key: str) -> str:
    """In words, what a dotted key takes; empty where that is not known."""
    if key in FAMILIES:
        return ", ".join(sorted(FAMILIES[key]))
    above, _, name = key.rpartition(".")
    kind = takes(above).get(name)
    return "" if kind is None else _in_words(kind)


def _made(group: str) -> list[type]:
    """What is constructed with a group: several classes where it depends on a name."""
    if group in FAMILIES:
        return list(FAMILIES[group].values())
    if group in _GROUPS:
        return [_GROUPS[group]]
    above, _, name = group.rpartition(".")
    kinds = _alternatives(takes(above).get(name)) if above else []
    return [kind for kind in kinds if _ours(kind)]


def _parameters(made: type) -> dict[str, Any]:
    construct: Callable[..., Any] = made.__init__  # type: ignore[misc]
    names = set(inspect.signature(made).parameters) - {"args", "kwargs"}
    try:
        kinds = typing.get_type_hints(construct)
    except NameError:  # imported for a type checker alone
        kinds = {}
    return {name: kinds.get(name, object) for name in names}


def _alternatives(kind: Any) -> list[Any]:
    if typing.get_origin(kind) in (typing.Union, types.UnionType):
        return [inner for part in typing.get_args(kind) for inner in _alternatives(part)]
    return [kind]


def _ours(kind: Any) -> bool:
    return inspect.isclass(kind) and kind.__module__.startswith("asr.")


def _in_words(kind: Any) -> str:
    said = [_one(alternative) for alternative in _alternatives(kind)]
    return ", ".join(dict.fromkeys(word for word in said if word))


def _one(kind: Any) -> str:
    origin = typing.get_origin(kind)
    if kind in _WORDS:
        return _WORDS[kind]
    if origin is typing.Literal:
        return ", ".join(str(value) for value in typing.get_args(kind))
    if origin in (list, tuple, collections.abc.Sequence, collections.abc.Iterable):
        return f"a list (each {_in_words(typing.get_args(kind)[0])})"
    if _ours(kind):
        return f"a mapping of {', '.join(sorted(_parameters(kind)))}"
    return getattr(kind, "__name__", "")


def _nearest(name: str, above: str, valid: Mapping[str, Any]) -> str:
    near = [f"{above}.{m}".lstrip(".") for m in difflib.get_close_matches(name, valid, 1)]
    near += [
        f"{group}.{m}".lstrip(".")
        for group in ("", *_GROUPS, *FAMILIES)
        if group != above
        for m in difflib.get_close_matches(name, takes(group), 1, 0.8)
    ]
    if near:
        return f"did you mean {' or '.join(near[:2])}?"
    return f"valid{f' in {above}' if above else ''}: {', '.join(sorted(valid))}"
