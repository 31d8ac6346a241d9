"""A recogniser that answers at once, and sounds for it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
import soundfile
import torch

from asr.types import Transcript, TranscriptWarning, Waveform, Word

RATE = 16000


class FakeTranscriber:
    """Writes how long a sound is, in words whose times are known; fails where the id says so."""

    built: ClassVar[dict[str, Any]] = {}
    calls: ClassVar[list[list[Waveform]]] = []
    sample_rate = RATE
    name = "fake"
    device = torch.device("cpu")
    dtype = torch.float32

    @classmethod
    def from_bundle(cls, path: Path | None = None, **options: Any) -> FakeTranscriber:
        if (options.get("search") or {}).get("nbest", 1) > 8:
            raise ValueError("nbest=9: must not be above beam_size=8")
        cls.built = {"path": path, **options}
        return cls()

    def __call__(self, waves: Sequence[Waveform], *, record: bool = False) -> list[Transcript]:
        type(self).calls.append(list(waves))
        if any("poison" in wave.id for wave in waves):
            raise RuntimeError("out of memory:\n  not enough of it")
        return [self.transcript(wave) for wave in waves]

    def transcript(self, wave: Waveform) -> Transcript:
        if not len(wave.samples):
            warning = TranscriptWarning("empty-audio", "there are no samples", 0.0, 0.0)
            return Transcript(wave.id, "", (), 0.0, warnings=(warning,))
        texts = ["it's", str(len(wave.samples)), "<é>"]
        step = wave.duration / 3
        words = tuple(
            Word(text, step * place, step * (place + 1), 0.5) for place, text in enumerate(texts)
        )
        return Transcript(
            wave.id,
            " ".join(texts),
            words,
            wave.duration,
            score=-1.5,
            nbest=((" ".join(texts), -1.5), ("its", float("-inf"))),
            attention={"coverage": float("nan"), "entropy": 1.0},
            decoding={"beam_size": 8},
            model={"name": "fake", "fingerprint": "0"},
        )


@dataclass(frozen=True)
class Done:
    """What a command left behind."""

    status: int
    out: str
    err: str

    @property
    def errors(self) -> list[str]:
        return [line for line in self.err.splitlines() if line.startswith("asr: error:")]


def sound(path: Path, samples: int = 1600, channels: int = 1, rate: int = RATE) -> Path:
    """A file of quiet noise; the suffix says which format."""
    path.parent.mkdir(parents=True, exist_ok=True)
    noise = np.random.default_rng(0).normal(0, 0.01, (samples, channels))
    with open(path, "wb") as file:
        soundfile.write(file, noise, rate, format=path.suffix[1:].upper() or "WAV")
    return path


def text_of(samples: int) -> str:
    """What the recogniser above makes of that many samples."""
    return f"it's {samples} <é>"


def files(folder: Path) -> list[str]:
    return sorted(str(path.relative_to(folder)) for path in folder.rglob("*") if path.is_file())


def never_loaded(fake: type[FakeTranscriber]) -> bool:
    return not fake.built and not fake.calls
