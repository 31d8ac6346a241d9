"""What a transcriber is handed, at the model's rate, and why it may not be worth hearing."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import soxr
import torch
from torch import Tensor

from asr.inference.pieces import Piece
from asr.inference.silence import Level, measured
from asr.types import Seconds, TranscriptWarning, Waveform


@dataclass(frozen=True)
class Source:
    """One input: ``samples`` (L,) at the model's rate, and ``doubt`` where it is not worth hearing.

    ``number`` is its place among the inputs of the call.
    """

    number: int
    wave: Waveform
    samples: Tensor
    sample_rate: int
    level: Level
    doubt: TranscriptWarning | None

    @property
    def silent(self) -> TranscriptWarning:
        """The doubt about an input in which nothing was found to listen to."""
        return TranscriptWarning("silent-audio", "there is only silence", 0.0, self.wave.duration)

    def whole(self) -> Piece:
        return Piece(self.number, self.samples, self.sample_rate)

    def pieces(self, longest: Seconds) -> Iterator[Piece]:
        """In order, of at most ``longest`` seconds; none where there is a doubt."""
        if self.doubt is None:
            yield from self.whole().split(longest)


def source(number: int, wave: Waveform, sample_rate: int, frame_shift: Seconds) -> Source:
    """Raises ValueError, naming the waveform, for samples that are no sound.

    Numbers that are not finite count as silence, other rates are resampled.
    """
    samples = wave.samples.detach().cpu()
    if samples.ndim != 1 or not samples.is_floating_point():
        raise ValueError(
            f"{wave.id or number}: samples are {tuple(samples.shape)} {samples.dtype}; "
            "(L,) floating point in [-1, 1] is needed"
        )
    samples = samples.float().nan_to_num(0.0, 0.0, 0.0)
    if wave.sample_rate != sample_rate:
        samples = torch.from_numpy(soxr.resample(samples.numpy(), wave.sample_rate, sample_rate))
    duration = len(samples) / sample_rate
    reason = None
    if not len(samples):
        reason = ("empty-audio", "there are no samples")
    elif duration < frame_shift:
        reason = ("too-short", f"{1000 * duration:.1f} ms are too short to hear anything")
    doubt = reason and TranscriptWarning(*reason, 0.0, wave.duration)
    return Source(number, wave, samples, sample_rate, measured(samples, sample_rate), doubt)
