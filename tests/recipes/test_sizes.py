"""Every configuration of whole utterances: built, counted, and taken one step."""

from __future__ import annotations

import random
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
import torch

from asr.nn.attention import Attention
from asr.nn.decoders import Speller
from asr.nn.encoders import Encoder
from asr.text import CharacterTokenizer, Tokenizer
from asr.training import names
from asr.training.module import LASModule
from recipes.benchmark import generated

CONF = Path(__file__).parents[2] / "conf"
RATE = 16000
MILLIONS = {"small": 12, "medium": 35, "large": 100}
#: configuration -> its size, and its subwords (0: characters)
RUNS = {
    "librispeech-10min": ("small", 0),
    "librispeech-1h": ("small", 0),
    "librispeech-10h": ("small", 150),
    "librispeech-cpu": ("small", 0),
    "librispeech-mini": ("small", 150),
    "librispeech-100": ("medium", 1000),
    "librispeech-460": ("medium", 1000),
    "librispeech-960": ("large", 5000),
    "folder": ("small", 0),
}
LARGE = {name for name, (size, _) in RUNS.items() if size == "large"}


def merged(name: str) -> dict[str, Any]:
    """A configuration with its includes, by dotted key."""
    flat: dict[str, Any] = {}
    for content in names.read(CONF / f"{name}.yaml"):
        flat |= names.flat(content)
    return {key.replace(".init_args", ""): value for key, value in flat.items()}


def module(flat: dict[str, Any], tokenizer: Tokenizer) -> LASModule:
    def of(part: str) -> dict[str, Any]:
        above = f"model.{part}."
        given = {key.removeprefix(above): v for key, v in flat.items() if key.startswith(above)}
        return {key: value for key, value in given.items() if key != "class_path"}

    return LASModule(
        tokenizer,
        RATE,
        encoder=lambda dim: Encoder.build({"name": "conformer", **of("encoder")}, dim),
        attention=lambda *dims: Attention.build(
            {"name": "location_aware", **of("attention")}, *dims
        ),
        speller=lambda size, made, dim: Speller.resolve("recurrent")(
            size, made, dim, **of("speller")
        ),
    )


def of_size(vocabulary: int) -> Any:
    """All of a tokenizer that building a model needs."""
    return SimpleNamespace(vocabulary_size=vocabulary)


def test_every_configuration_is_here() -> None:
    found = {path.stem for path in CONF.glob("*.yaml") if path.stem.startswith(("libri", "folder"))}
    assert found == {*RUNS, "folder-finetune"}  # which takes its size from a bundle


@pytest.mark.parametrize(
    "name", [pytest.param(n, marks=[pytest.mark.slow] * (n in LARGE)) for n in RUNS]
)
def test_it_is_as_large_as_it_says(name: str) -> None:
    size, subwords = RUNS[name]
    flat = merged(name)
    assert flat.get("data.sample_rate", RATE) == RATE and flat["name"] == name
    made = module(flat, of_size(subwords or 30))
    count = sum(p.numel() for p in made.model.parameters())
    assert abs(count / 1e6 / MILLIONS[size] - 1) < 0.15, f"{count:,}"
    assert made.model.frontend.dim == 80


@pytest.mark.parametrize(
    "name",
    [
        "librispeech-10min",
        "librispeech-100",
        pytest.param("librispeech-960", marks=pytest.mark.slow),
    ],
)
def test_it_takes_a_step(name: str) -> None:
    torch.manual_seed(1)
    tokenizer = CharacterTokenizer(f" {generated.LETTERS}")
    made = module(merged(name), tokenizer).train()
    batch = generated.of([1.5, 1.2], tokenizer, RATE, random.Random(1), "x")
    optimizer = made.configure_optimizers()
    losses = []
    for _ in range(2):
        loss = made.losses(batch, 0.5)["loss"]
        loss.backward()
        optimizer.step()
        optimizer.zero_grad()
        losses.append(float(loss.detach()))
    assert all(map(torch.isfinite, torch.tensor(losses))) and losses[0] != losses[1]
