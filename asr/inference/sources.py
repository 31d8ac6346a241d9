"""What a transcriber is handed: blocks at the model's rate, and why they may be worth nothing."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import TypeAlias

import soxr
import torch
from torch import Tensor

from asr.audio import Meter, Recording
from asr.inference.pieces import Piece, cut
from asr.inference.silence import Level, level
from asr.types import Seconds, TranscriptWarning, Waveform

Sound: TypeAlias = Waveform | Recording

_BLOCK: Seconds = 10.0  # of a waveform that is copied at a time


@dataclass(frozen=True)
class Source:
    """One input, at ``sample_rate``; ``doubt`` says why it is not worth hearing, where it is not.

    ``number`` is its place among the inputs of the call.
    """

    number: int
    sound: Sound
    sample_rate: int
    level: Level
    doubt: TranscriptWarning | None

    @property
    def silent(self) -> TranscriptWarning:
        """The doubt about an input in which nothing was found to listen to."""
        return TranscriptWarning("silent-audio", "there is only silence", 0.0, self.sound.duration)

    def whole(self) -> Piece:
        """All of it, in memory."""
        samples = torch.cat([torch.zeros(0), *blocks(self.sound, self.sample_rate)])
        return Piece(self.number, samples, self.sample_rate)

    def pieces(self, longest: Seconds) -> Iterator[Piece]:
        """In order, of at most ``longest`` seconds, as they are read; none where there is a doubt.

        Raises InputError where a recording cannot be read any more.
        """
        if self.doubt is None:
            found = blocks(self.sound, self.sample_rate)
            yield from cut(self.number, found, self.sample_rate, longest)


def source(number: int, sound: Sound, sample_rate: int, frame_shift: Seconds) -> Source:
    """Raises ValueError, naming the sound, for samples that are no sound."""
    if isinstance(sound, Waveform):
        samples = sound.samples
        if samples.ndim != 1 or not samples.is_floating_point():
            raise ValueError(
                f"{sound.id or number}: samples are {tuple(samples.shape)} {samples.dtype}; "
                "(L,) floating point in [-1, 1] is needed"
            )
    duration = sound.duration
    reason = None
    if not duration:
        reason = ("empty-audio", "there are no samples")
    elif duration < frame_shift:
        reason = ("too-short", f"{1000 * duration:.1f} ms are too short to hear anything")
    doubt = reason and TranscriptWarning(*reason, 0.0, duration)
    return Source(number, sound, sample_rate, _level(sound, sample_rate), doubt)


def _level(sound: Sound, sample_rate: int) -> Level:
    if isinstance(sound, Recording) and sound.sample_rate == sample_rate:
        return level(sound.energies)
    meter = Meter(sample_rate)
    for block in blocks(sound, sample_rate):
        meter.add(block[:, None].numpy())
    return level(meter.energies()[0])


def blocks(sound: Sound, sample_rate: int) -> Iterator[Tensor]:
    """Samples (L,) float32 on the CPU at ``sample_rate``; what is no finite number is silence."""
    if isinstance(sound, Waveform):
        found: Iterator[Tensor] = iter(sound.samples.split(round(_BLOCK * sound.sample_rate)))
    else:
        found = sound.blocks()
    found = (block.detach().cpu().float().nan_to_num(0.0, 0.0, 0.0) for block in found)
    if sound.sample_rate == sample_rate:
        yield from found
        return
    stream = soxr.ResampleStream(sound.sample_rate, sample_rate, 1, dtype="float32", quality="HQ")
    for block in found:
        yield torch.from_numpy(stream.resample_chunk(block.numpy()))
    yield torch.from_numpy(stream.resample_chunk(torch.zeros(0).numpy(), last=True))
