"""One tiny model, saved once; tests that damage a bundle work on a copy of it."""

from __future__ import annotations

import shutil
from functools import partial
from pathlib import Path
from typing import Any

import pytest
import torch

from asr.glimpses import LogMel
from asr.inference import bundle
from asr.inference.bundle import Settings
from asr.inference.transcriber import Transcriber
from asr.nn.attention import LocationAware
from asr.nn.decoders import Recurrent
from asr.nn.encoders import Conformer
from asr.nn.las import LAS
from asr.text import CharacterTokenizer

CARD = {
    "summary": "A model of noise.",
    "data": ["noise | 1 minute"],
    "licence": "CC0",
    "hours": 0.5,
    "results": [{"set": "test", "wer": 0.125, "substitutions": 1, "reference_words": 8}],
    "cannot": "Anything.",
}


def tiny(**parts: Any) -> LAS:
    """A model of a few thousand weights over 13 tokens, its parts replaced by name."""
    torch.manual_seed(1)
    made: dict[str, Any] = {
        "frontend": partial(LogMel, bins=12),
        "encoder": partial(Conformer, dim=16, heads=2, blocks=1, channels=4, kernel=3),
        "attention": LocationAware,
        "speller": partial(Recurrent, dim=16),
    }
    return LAS(16000, 13, **{**made, **parts}).eval()


@pytest.fixture(scope="session")
def tokenizer() -> CharacterTokenizer:
    return CharacterTokenizer(" abcdefgh'")


@pytest.fixture(scope="session")
def model() -> LAS:
    return tiny()


@pytest.fixture(scope="session")
def saved(model, tokenizer, tmp_path_factory) -> Path:
    """A bundle that nobody changes."""
    path = tmp_path_factory.mktemp("bundles") / "noise"
    settings = Settings(language="en", search={"beam_size": 3, "max_tokens_per_frame": 0.25})
    bundle.save(path, model, tokenizer, card=CARD, settings=settings)
    return path


@pytest.fixture
def copy(saved, tmp_path) -> Path:
    """A copy to damage."""
    return Path(shutil.copytree(saved, tmp_path / "copy"))


@pytest.fixture(scope="module")
def listen(saved) -> Transcriber:
    return Transcriber.from_bundle(saved, device="cpu")
