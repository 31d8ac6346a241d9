"""Every configuration in conf/ and recipes/ parses, and says how it is run."""

from __future__ import annotations

import shlex
from pathlib import Path
from typing import Any

import pytest
import yaml

from asr.training import names
from asr.training.cli import TrainCLI
from asr.training.data import DATA_MODULES

ROOT = Path(__file__).parents[1]
FILES = sorted(path for folder in ("conf", "recipes") for path in (ROOT / folder).rglob("*.yaml"))


class ParseOnly(TrainCLI):
    """Stops short of building anything: the data need not be there."""

    def before_instantiate_classes(self) -> None: ...

    def instantiate_classes(self) -> None: ...


def parsed(*files: Path, more: tuple[str, ...] = ()) -> Any:
    given = [f"--config={path}" for path in files]
    return ParseOnly(names.arguments([*given, *more])).config


def header(path: Path) -> str:
    lines = path.read_text().splitlines()
    return " ".join(x.removeprefix("#").strip() for x in lines if x.startswith("#"))


def test_there_are_configurations() -> None:
    found = {path.relative_to(ROOT / "conf").as_posix() for path in FILES if "conf" in path.parts}
    assert {"base.yaml", "digits.yaml", "fsdd.yaml"} <= found
    assert {Path(name).parent.name for name in found} >= {"attention", "encoder", "size", "data"}


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.relative_to(ROOT).as_posix())
def test_the_command_it_opens_with_parses(path: Path) -> None:
    assert path.read_text().startswith("#")
    words = shlex.split(header(path))
    files = [ROOT / words[i + 1] for i, word in enumerate(words) if word == "--config"]
    assert files and (path in files or path.name == "base.yaml")
    overrides = tuple(word for word in words if word.startswith("--") and "=" in word)
    config = parsed(*files, more=overrides)
    assert config.data.class_path in {
        f"{made.__module__}.{made.__name__}" for made in DATA_MODULES.values()
    }
    assert config.trainer.max_steps > 0 or config.trainer.max_epochs


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.relative_to(ROOT).as_posix())
def test_it_states_only_its_difference(path: Path) -> None:
    """Nothing that an included file says already in the same words."""
    *included, own = names.read(path)
    above: dict[str, Any] = {}
    for content in included:
        above |= names.flat(content)
    same = {key for key, value in names.flat(own).items() if above.get(key, object()) == value}
    assert not {key for key in same if not key.endswith("class_path")}, same
    assert isinstance(yaml.safe_load(path.read_text()), dict)


def test_later_files_override_earlier_ones(tmp_path: Path) -> None:
    (tmp_path / "a.yaml").write_text("model: {attention: {name: location_aware, kernel: 15}}\n")
    (tmp_path / "b.yaml").write_text("include: a.yaml\nmodel: {attention: {dim: 7}}\n")
    digits = ROOT / "conf" / "digits.yaml"
    attention = parsed(digits, tmp_path / "b.yaml").model.attention
    assert attention.class_path.endswith("LocationAware")
    assert (attention.init_args.kernel, attention.init_args.dim) == (15, 7)
    changed = parsed(digits, tmp_path / "b.yaml", more=("--model.attention", "additive"))
    assert changed.model.attention.class_path.endswith("Additive")
    last = parsed(digits, more=("--model.attention.kernel=9",)).model.attention
    assert last.init_args.kernel == 9


@pytest.mark.parametrize(
    "written",
    [
        "additive",
        "{name: additive, dim: 9}",
        "{class_path: additive, init_args: {dim: 9}}",
        "{class_path: asr.nn.attention.Additive, init_args: {dim: 9}}",
    ],
)
def test_the_forms_of_a_component(tmp_path: Path, written: str) -> None:
    (tmp_path / "x.yaml").write_text(f"model: {{attention: {written}}}\n")
    attention = parsed(ROOT / "conf" / "digits.yaml", tmp_path / "x.yaml").model.attention
    assert attention.class_path == "asr.nn.attention.Additive"
    assert attention.init_args.dim == (9 if "9" in written else attention.init_args.dim)
