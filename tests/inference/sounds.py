"""Noise of any length, and what it is for two transcripts of it to be the same."""

from __future__ import annotations

import math

import torch

from asr.types import Waveform

RATE = 16000


def noise(samples: int, seed: int = 0, rate: int = RATE, id: str = "") -> Waveform:
    drawn = torch.randn(samples, generator=torch.Generator().manual_seed(seed + samples))
    return Waveform(drawn * 0.1, rate, id=id or str(samples))


def same(one, other) -> bool:
    """Texts to the letter; times and confidences up to float32 noise of another batch shape."""
    return (
        one.text == other.text
        and [w.code for w in one.warnings] == [w.code for w in other.warnings]
        and len(one.words) == len(other.words)
        and all(
            a.word == b.word
            and math.isclose(a.start, b.start, abs_tol=1e-6)
            and math.isclose(a.end, b.end, abs_tol=1e-6)
            and math.isclose(a.confidence, b.confidence, abs_tol=1e-4)
            for a, b in zip(one.words, other.words, strict=True)
        )
    )
