"""A corpus of tones: three 'words', two 'speakers', small enough to train on in a test."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import soundfile
import torch

from asr.data import manifest
from asr.data.manifest import Utterance
from asr.training.cli import main

RATE = 8000
WORDS = {"ab": (400.0, 900.0), "ba": (900.0, 400.0), "cc": (1500.0, 1500.0)}


@pytest.fixture(autouse=True)
def one_thread() -> None:
    torch.set_num_threads(1)


def tone(word: str, pitch: float) -> np.ndarray:
    time = np.arange(int(0.12 * RATE)) / RATE
    shape = 0.3 * np.hanning(len(time))
    parts = [shape * np.sin(2 * np.pi * f * pitch * time) for f in WORDS[word]]
    return np.concatenate(parts).astype(np.float32)


@pytest.fixture(scope="session")
def corpus(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """``pool.jsonl`` of single words and ``strings.jsonl`` of four utterances."""
    folder = tmp_path_factory.mktemp("tones")
    pool = []
    for speaker, pitch in (("low", 1.0), ("high", 1.1)):
        for word in WORDS:
            path = folder / f"{speaker}-{word}.wav"
            soundfile.write(path, tone(word, pitch), RATE)
            pool.append(Utterance(path.stem, path, 0.24, word, speaker))
    manifest.write(folder / "pool.jsonl", pool)
    strings = []
    for number, text in enumerate(("ab ba", "cc", "ba cc ab", "cc ab")):
        silence = np.zeros(int(0.1 * RATE), np.float32)
        sound = [silence, *(x for word in text.split() for x in (tone(word, 1.0), silence))]
        path = folder / f"string{number}.wav"
        soundfile.write(path, np.concatenate(sound), RATE)
        seconds = sum(map(len, sound)) / RATE
        strings.append(Utterance(path.stem, path, seconds, text, "low"))
    manifest.write(folder / "strings.jsonl", strings)
    return folder


@pytest.fixture
def tiny() -> dict[str, Any]:
    """The smallest model that learns, as a configuration has it."""
    return {
        "frontend": {"name": "log_mel", "bins": 16},
        "encoder": {
            "name": "conformer",
            "dim": 32,
            "blocks": 1,
            "heads": 2,
            "kernel": 5,
            "channels": 8,
            "subsampling": 4,
            "dropout": 0.0,
        },
        "attention": {"name": "location_aware"},
        "speller": {"name": "recurrent", "dim": 32, "embedding": 8, "dropout": 0.0},
    }


@pytest.fixture
def config(corpus: Path, tiny: dict[str, Any], tmp_path: Path) -> dict[str, Any]:
    """A whole run on the tones: strings, three epochs of four steps."""
    return {
        "name": "tones",
        "runs": str(tmp_path / "runs"),
        "threads": 1,
        "trainer": {"max_steps": 12, "accelerator": "cpu", "log_every_n_steps": 2},
        "model": {**tiny, "warmup_steps": 2},
        "data": {
            "name": "strings",
            "pool": [str(corpus / "pool.jsonl")],
            "validation": [str(corpus / "strings.jsonl")],
            "steps_per_epoch": 4,
            "words_per_batch": 8,
            "max_words": 3,
            "workers": 0,
        },
    }


@pytest.fixture
def utterances(corpus: Path) -> dict[str, Any]:
    """Data of a run on whole utterances, in four batches an epoch."""
    return {
        "name": "manifests",
        "train": [str(corpus / "strings.jsonl")],
        "validation": [str(corpus / "strings.jsonl")],
        "sample_rate": 8000,
        "batch_seconds": 0.4,
        "workers": 0,
    }


def write(path: Path, config: dict[str, Any]) -> str:
    """A configuration as a file; YAML holds JSON."""
    path.write_text(json.dumps(config))
    return f"--config={path}"


def run(path: Path, config: dict[str, Any], *more: str) -> int:
    """``asr train`` with a configuration; its exit status."""
    return main([write(path / "run.yaml", config), *more])
