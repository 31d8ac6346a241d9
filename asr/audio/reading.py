"""Decoded blocks -> mono sound at the rate that is asked for, held whole or read time and again.

Blocks are mixed down and resampled one by one. What is long is never held: it is a
:class:`Recording`, which is decoded anew by whoever listens to it.
"""

from __future__ import annotations

import logging
import math
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal

import numpy as np
import torch
from torch import Tensor

from asr.audio.columns import Channel, Meter, columns, stretch, warn_narrow
from asr.audio.decoders import (
    AudioInfo,
    Incomplete,
    Source,
    name_of,
    opened,
    repeatable,
)
from asr.errors import InputError
from asr.types import Seconds, TranscriptWarning, Waveform

LOWEST_RATE, HIGHEST_RATE = 1_000, 384_000
#: What is longer than this is not held in memory.
LONG: Seconds = 600.0
_LOUDEST = 8.0  # above this, float samples are not in [-1, 1] but in units of their own
_log = logging.getLogger(__name__)


@dataclass(frozen=True)
class Recording:
    """Sound that is too long to be held: like a :class:`Waveform` whose samples come in blocks.

    ``length`` L samples at ``sample_rate`` Hz; ``energies`` (L // cell,) are the mean squares of
    its stretches of :data:`METER`.
    """

    read: Callable[[], Iterator[Tensor]] = field(repr=False)
    length: int
    energies: Tensor
    sample_rate: int
    id: str = ""
    path: str = ""
    source_rate: int = 0
    source_channels: int = 1
    warnings: tuple[TranscriptWarning, ...] = ()

    @property
    def duration(self) -> Seconds:
        return self.length / self.sample_rate

    def blocks(self) -> Iterator[Tensor]:
        """The samples (L,) float32 in pieces, in order. Raises InputError as reading does."""
        return self.read()


def load(source: Source, rate: int, *, channel: Channel = "mix", id: str = "") -> Waveform:
    """One mono :class:`Waveform` (L,) at ``rate`` Hz; ``channel`` "mix" (the mean) or an index.

    A file of zero samples gives an empty waveform. Raises :class:`InputError`, one line that names
    the file and the reason, for anything that cannot be decoded to its end.
    """
    return _whole(_sounds(source, rate, channel, id, longest=math.inf, partial=False))[0]


def load_channels(source: Source, rate: int, *, id: str = "") -> list[Waveform]:
    """Every channel of a file by itself, each (L,) at ``rate`` Hz. Raises :class:`InputError`."""
    return _whole(_sounds(source, rate, "split", id, longest=math.inf, partial=False))


def sounds(
    source: Source,
    rate: int,
    *,
    channel: Channel | Literal["split"] = "mix",
    id: str = "",
    start: Seconds = 0.0,
    end: Seconds | None = None,
    longest: Seconds = LONG,
) -> list[Waveform | Recording]:
    """What can be heard of a file from ``start`` to ``end``; one for each channel with "split".

    Unlike :func:`load` it takes what is there of a file that is cut short or breaks half-way, with
    a warning in the result, as players do. What is longer than ``longest`` is a
    :class:`Recording`. Raises :class:`InputError` where nothing can be decoded.
    """
    return _sounds(source, rate, channel, id, start=start, end=end, longest=longest, partial=True)


def probe(source: Source) -> AudioInfo:
    """Rate, channels and duration as the header has them. Raises :class:`InputError`.

    Nothing is decoded, so a file that probes well may still be damaged further in.
    """
    with opened(source, name_of(source)) as decoder:
        return decoder.info


def _sounds(
    source: Source,
    rate: int,
    channel: Channel | Literal["split"],
    id: str,
    *,
    start: Seconds = 0.0,
    end: Seconds | None = None,
    longest: Seconds,
    partial: bool,
) -> list[Waveform | Recording]:
    name = name_of(source, id)
    if end is not None and end < start:
        raise InputError(f"{name}: the end, {end:g} s, lies before the start, {start:g} s")
    path = str(source) if isinstance(source, str | Path) else ""
    first, last = round(start * rate), None if end is None else round(end * rate)
    warnings: tuple[TranscriptWarning, ...] = ()
    held: list[np.ndarray] | None = []
    length, peak = 0, 0.0
    source = repeatable(source, name)
    with opened(source, name) as decoder:
        info = decoder.info
        picks = _picks(info, channel, rate, name)
        meter = Meter(rate)
        try:
            for part in stretch(columns(decoder, picks, rate, name), first, last, rate, name):
                length += len(part)
                peak = max(peak, float(np.abs(part).max(initial=0.0)))
                meter.add(part)
                if held is not None:
                    held.append(part)
                    if length > longest * rate:
                        held = None
        except Incomplete as error:
            if not partial or not length:
                raise
            moment = length / rate
            said = f"{error.reason}; what is there was taken"
            warnings = (TranscriptWarning("cut-short", said, moment, moment),)
    scale = 1.0
    if peak > _LOUDEST:
        _log.warning("%s: samples reach %.3g instead of 1, scaled down", name, peak)
        scale = 1 / peak
    about: dict[str, Any] = {
        "sample_rate": rate,
        "id": id or (Path(path).stem if path else name),
        "path": path,
        "source_rate": info.sample_rate,
        "source_channels": info.channels,
        "warnings": warnings,
    }
    if held is None:
        energies = [own * scale**2 for own in meter.energies()]
        return [
            Recording(_reader(source, pick, rate, name, first, last, scale), length, own, **about)
            for pick, own in zip(picks, energies, strict=True)
        ]
    sound = np.concatenate([np.zeros((0, len(picks)), np.float32), *held])
    if scale != 1.0:
        sound *= np.float32(scale)
    apart = (np.ascontiguousarray(column) for column in sound.T)
    return [Waveform(torch.from_numpy(column), **about) for column in apart]


def _whole(found: Iterable[Waveform | Recording]) -> list[Waveform]:
    return [wave for wave in found if isinstance(wave, Waveform)]


def _picks(
    info: AudioInfo, channel: Channel | Literal["split"], rate: int, name: str
) -> list[Channel]:
    """The columns that are asked for. InputError where the file has none such, or no such rate."""
    channels = info.channels
    if not LOWEST_RATE <= info.sample_rate <= HIGHEST_RATE:
        raise InputError(
            f"{name}: sample rate {info.sample_rate} Hz is not one of sound "
            f"({LOWEST_RATE} to {HIGHEST_RATE} Hz)"
        )
    if info.sample_rate < rate:
        warn_narrow(info.sample_rate, rate)
    if channel == "split":
        return list(range(channels))
    if channel == "mix":
        if channels > 1:
            _log.info("%s: %d channels mixed to one", name, channels)
    elif not 0 <= channel < channels:
        raise InputError(f"{name}: has no channel {channel} (it has {channels}, counted from 0)")
    return [channel]


def _reader(
    source: Source,
    pick: Channel,
    rate: int,
    name: str,
    first: int,
    last: int | None,
    scale: float,
) -> Callable[[], Iterator[Tensor]]:
    """What reads a stretch of one channel again, as often as it is called."""

    def read() -> Iterator[Tensor]:
        with opened(source, name) as decoder:
            blocks = columns(decoder, [pick], rate, name, quiet=True)
            try:
                for part in stretch(blocks, first, last, rate, name):
                    samples = torch.from_numpy(np.ascontiguousarray(part[:, 0]))
                    yield samples * scale if scale != 1.0 else samples
            except Incomplete:
                return  # told of when it was read first

    return read
