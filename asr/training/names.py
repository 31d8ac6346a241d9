"""Configuration files and short names: what a user writes, made into what jsonargparse reads.

A file may open with ``include: [base.yaml, attention/dot.yaml]`` (relative to itself); each is
applied before the file's own keys. Wherever a component is expected, three forms say the same:
``attention: location_aware``, ``attention: {name: location_aware, kernel: 15}``, and jsonargparse's
``{class_path: location_aware, init_args: {kernel: 15}}``.
"""

from __future__ import annotations

import difflib
import json
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import yaml

from asr.errors import InputError
from asr.training.keys import FAMILIES, check

#: options of jsonargparse itself
OWN = ("--help", "--print_config", "--print_shtab", "--config", "--model.help", "--data.help")


def arguments(given: Sequence[str]) -> list[str]:
    """Command-line arguments with files read, includes followed and short names resolved.

    Raises InputError, which names file and key, for a file that cannot be read or a name that is
    not known.
    """
    done: list[str] = []
    rest = iter(given)
    for argument in rest:
        key, equals, value = argument.partition("=")
        if key in ("--config", "-c") or key.lstrip("-") in FAMILIES:
            if not equals:
                value = next(rest, "")
                if not value:
                    raise InputError(f"{key}: a value is expected")
            if key in ("--config", "-c"):
                done += [inline(content) for content in _contents(value)]
            else:
                done.append(f"{key}={_argument(value, key.lstrip('-'))}")
        else:
            if key.startswith("--") and not key.startswith(OWN):
                check([key[2:].rstrip("+")])
            done.append(argument)
    return done


def _contents(value: str) -> list[dict[str, Any]]:
    if value.lstrip().startswith("{"):
        return [resolved(json.loads(value))]
    return list(read(Path(value)))


def read(path: Path, *, _above: tuple[Path, ...] = ()) -> Iterator[dict[str, Any]]:
    """The contents of a configuration file, those it includes first, short names resolved."""
    if path.resolve() in _above:
        raise InputError(f"{path}: includes itself")
    try:
        content = yaml.safe_load(path.read_text(encoding="utf-8"))
    except OSError as error:
        raise InputError(f"{path}: cannot be read ({error.strerror})") from None
    except (yaml.YAMLError, UnicodeDecodeError) as error:
        raise InputError(f"{path}: not YAML ({' '.join(str(error).split())})") from None
    if content is None:
        content = {}
    if not isinstance(content, dict):
        raise InputError(f"{path}: keys and values are expected")
    included = content.pop("include", [])
    if isinstance(included, str):
        included = [included]
    if not isinstance(included, list) or not all(isinstance(name, str) for name in included):
        raise InputError(f"{path}: include: a list of files is expected")
    for name in included:
        yield from read(path.parent / name, _above=(*_above, path.resolve()))
    try:
        check(flat(content))
        yield resolved(content)
    except InputError as error:
        raise InputError(f"{path}: {error}") from None


def resolved(content: Mapping[str, Any]) -> dict[str, Any]:
    """A configuration with every short name as the class path that jsonargparse wants."""
    made = dict(content)
    for key in FAMILIES:
        *above, last = key.split(".")
        place: Any = made
        for name in above:
            if isinstance(place.get(name), dict):
                place[name] = dict(place[name])  # what was handed over stays as it is
            place = place.get(name)
            if not isinstance(place, dict):
                break
        if isinstance(place, dict) and place.get(last) is not None:
            place[last] = _component(place[last], key)
    return made


def _component(value: Any, key: str) -> Any:
    if isinstance(value, str):
        return {"class_path": class_path(value, key)}
    if not isinstance(value, dict):
        raise InputError(f"{key}: a name, or a mapping with a name, is expected, not {value!r}")
    if "name" in value:
        arguments = {k: v for k, v in value.items() if k != "name"}
        return {"class_path": class_path(value["name"], key), "init_args": arguments}
    if "class_path" in value:
        return {**value, "class_path": class_path(value["class_path"], key)}
    if set(value) <= {"init_args"}:
        return value
    return {"init_args": value}  # of the class named by an earlier file


def _argument(value: str, key: str) -> str:
    """As :func:`_component`, for a value from the command line: a name, or JSON."""
    if not value.lstrip().startswith("{"):
        return class_path(value, key)
    try:
        return json.dumps(_component(yaml.safe_load(value), key))
    except yaml.YAMLError as error:
        raise InputError(f"--{key}: not YAML ({' '.join(str(error).split())})") from None


def class_path(name: Any, key: str) -> str:
    """The class path of a short name, or of a class path of that family, however it is written."""
    family = FAMILIES[key]
    found = family.get(_short(str(name), key))
    if found is not None:
        return f"{found.__module__}.{found.__qualname__}"
    near = difflib.get_close_matches(str(name), family, 1)
    hint = f"; did you mean {near[0]}?" if near else ""
    raise InputError(f"{key}: unknown name {name!r}; valid: {', '.join(sorted(family))}{hint}")


def _short(path: str, key: str) -> str:
    """The short name of a class path; jsonargparse writes the shortest path that imports."""
    if not path.startswith("asr."):
        return path
    own = path.rpartition(".")[2]
    return next((short for short, made in FAMILIES[key].items() if made.__name__ == own), path)


def listed() -> str:
    """Every short name, by the option that takes it."""
    return "; ".join(f"--{key}: {', '.join(sorted(family))}" for key, family in FAMILIES.items())


def shortened(content: Mapping[str, Any]) -> dict[str, Any]:
    """Undo :func:`resolved`: ``{name: ..., argument: ...}`` for each component."""
    made = json.loads(json.dumps(content, default=str))
    for key in FAMILIES:
        *above, last = key.split(".")
        place = made
        for name in above:
            place = place.get(name) or {}
        value = place.get(last)
        if isinstance(value, dict) and "class_path" in value:
            name = _short(value["class_path"], key)
            place[last] = {"name": name, **(value.get("init_args") or {})}
    return made


def inline(content: Mapping[str, Any]) -> str:
    """A configuration as one argument."""
    return f"--config={json.dumps(content)}"


def flat(content: Any, above: str = "") -> dict[str, Any]:
    """Nested mappings to dotted keys."""
    if not isinstance(content, Mapping) or (above and not content):
        return {above: content}
    return {
        key: value
        for name, inner in content.items()
        for key, value in flat(inner, f"{above}.{name}" if above else str(name)).items()
    }
