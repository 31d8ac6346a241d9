"""Attention with a known answer: token u listens to frames ``[u gap, u gap + width)``."""

from __future__ import annotations

import torch
from torch import Tensor

from asr.types import AttentionRecord, Transcript, Waveform, Word

SHIFT = 0.04


def rows(*spans: tuple[int, int], frames: int, heads: int = 1) -> Tensor:
    """Weights (U,A,S): each row uniform over its span of frames."""
    weights = torch.zeros(len(spans), heads, frames)
    for row, (first, past) in zip(weights, spans, strict=True):
        row[:, first:past] = 1 / (past - first)
    return weights


def record(weights: Tensor, tokens: str | tuple[str, ...] = "", **fields) -> AttentionRecord:
    names = tuple(tokens) or tuple(chr(97 + u % 26) for u in range(len(weights)))
    values = {
        "id": "example",
        "mode": "free",
        "start": 0.0,
        "frame_shift": SHIFT,
        "duration": weights.shape[-1] * SHIFT,
    }
    return AttentionRecord(tokens=names, weights=weights, **{**values, **fields})


def wave(duration: float, rate: int = 16000) -> Waveform:
    time = torch.arange(round(duration * rate)) / rate
    return Waveform(0.3 * torch.sin(2 * torch.pi * 1000 * time), rate, "example")


def transcript(made: AttentionRecord, *words: tuple[str, float, float], **fields) -> Transcript:
    found = tuple(Word(*word, 0.9) for word in words)
    values = {"text": " ".join(word.word for word in found), "duration": made.duration}
    return Transcript(id=made.id, words=found, record=made, records=(made,), **{**values, **fields})
