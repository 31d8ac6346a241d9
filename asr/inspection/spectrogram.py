"""The picture of the sound that attention is shown over."""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache

import torch
from torch import Tensor

from asr.glimpses import LogMel
from asr.glimpses.timing import shift_of
from asr.types import Seconds, Waveform

#: What lies further below the loudest point is drawn as silence.
RANGE_DB = 70.0


@dataclass(frozen=True)
class Spectrogram:
    """``decibels`` (T,F), 0 at the loudest point and ``-RANGE_DB`` at the floor.

    Frame t stands for ``[t hop, (t + 1) hop)`` seconds; ``frequencies`` (F,) are the centres of
    the mel bins in Hz, rising.
    """

    decibels: Tensor
    hop: Seconds
    frequencies: tuple[float, ...]


def spectrogram_of(wave: Waveform) -> Spectrogram:
    """The log-mel spectrogram of a wave (L,), for the eye: no per-utterance normalisation."""
    frontend = _frontend(wave.sample_rate)
    with torch.no_grad():
        frames, _ = frontend.frames(wave.samples[None], torch.tensor([wave.samples.shape[-1]]))
    decibels = frames[0] * (10 / torch.log(torch.tensor(10.0)))  # from the logarithm of power
    if decibels.numel():
        decibels = (decibels - decibels.max()).clamp_min(-RANGE_DB)
    filters = frontend.get_buffer("filters")
    hertz = torch.arange(filters.shape[0]) * wave.sample_rate / frontend.n_fft
    centres = (hertz[:, None] * filters).sum(0) / filters.sum(0).clamp_min(1e-12)
    hop = shift_of(frontend.hop, wave.sample_rate)
    return Spectrogram(decibels, hop, tuple(round(float(hz), 1) for hz in centres))


@lru_cache(maxsize=4)
def _frontend(sample_rate: int) -> LogMel:
    return LogMel(sample_rate, normalise="none")
