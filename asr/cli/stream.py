"""Inputs -> transcripts, in batches of like length, with a window of sounds in memory at a time."""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Literal, TypeAlias, cast

from asr.cli.inputs import Input
from asr.errors import InputError

if TYPE_CHECKING:
    from asr.inference.transcriber import Transcriber
    from asr.types import Transcript, Waveform

_SOUNDS, _BATCHES = 256, 8  # a window closes at that many sounds, or batches' worth of seconds
_log = logging.getLogger(__name__)

Channel: TypeAlias = Literal["mix", "split"] | int
Fail: TypeAlias = Callable[[Input, Exception], None]


@dataclass
class _Sound:
    """One waveform on its way: of which input, and its place among that input's channels."""

    index: int
    place: int
    input: Input
    wave: Waveform


def transcripts(
    inputs: Sequence[Input],
    transcriber: Transcriber,
    *,
    fail: Fail,
    channel: Channel = "mix",
    batch_seconds: float = 60.0,
    record: bool = False,
) -> Iterator[tuple[int, list[Transcript]]]:
    """(index of the input, its transcripts) for every input, as soon as its batch is done.

    An input has one transcript, with ``channel`` "split" one a channel, and none where it failed,
    which ``fail`` is told first. Within a window of inputs the order is that of length.
    ``batch_seconds`` bounds a batch, padding counted; a longer sound is a batch of its own.
    """
    window: list[_Sound] = []
    seconds = 0.0
    for index, each in enumerate(inputs):
        try:
            waves = read_waves(each, transcriber.sample_rate, channel)
        except InputError as error:
            fail(each, error)
            yield index, []
            continue
        window += [_Sound(index, place, each, wave) for place, wave in enumerate(waves)]
        seconds += sum(wave.duration for wave in waves)
        if len(window) >= _SOUNDS or seconds >= _BATCHES * batch_seconds:
            yield from _window(window, transcriber, fail, batch_seconds, record)
            window, seconds = [], 0.0
    yield from _window(window, transcriber, fail, batch_seconds, record)


def read_waves(each: Input, rate: int, channel: str | int) -> list[Waveform]:
    """The sounds of an input at ``rate``, one a channel with "split". Raises InputError."""
    from asr.audio import load, load_channels

    source = each.open()
    if channel != "split":
        one = cast("Literal['mix'] | int", channel)
        return [_piece(load(source, rate, channel=one, id=each.id), each)]
    return [
        replace(_piece(wave, each), id=f"{each.id}.ch{place}")
        for place, wave in enumerate(load_channels(source, rate, id=each.id))
    ]


def _piece(wave: Waveform, each: Input) -> Waveform:
    """What of a file an input stands for."""
    if each.start == 0 and each.end is None:
        return wave
    if each.start > wave.duration:
        raise InputError(f"{wave.path}: is over after {wave.duration:.2f} s, before {each.start} s")
    first = round(each.start * wave.sample_rate)
    last = None if each.end is None else max(first, round(each.end * wave.sample_rate))
    return replace(wave, samples=wave.samples[first:last])


def _window(
    sounds: list[_Sound],
    transcriber: Transcriber,
    fail: Fail,
    batch_seconds: float,
    record: bool,
) -> Iterator[tuple[int, list[Transcript]]]:
    done: dict[int, dict[int, Transcript]] = {sound.index: {} for sound in sounds}
    left = {index: sum(sound.index == index for sound in sounds) for index in done}
    for batch in _batches(sounds, batch_seconds):
        for sound, transcript in _transcribed(batch, transcriber, fail, record):
            done[sound.index][sound.place] = transcript
        for sound in batch:
            left[sound.index] -= 1
            if not left[sound.index]:
                places = done.pop(sound.index)
                yield sound.index, [places[place] for place in sorted(places)]


def _batches(sounds: list[_Sound], batch_seconds: float) -> Iterator[list[_Sound]]:
    batch: list[_Sound] = []
    for sound in sorted(sounds, key=lambda sound: -sound.wave.duration):
        # The first is the longest: what a batch holds, padding counted, is its length times size.
        if batch and batch[0].wave.duration * (len(batch) + 1) > batch_seconds:
            yield batch
            batch = []
        batch.append(sound)
    if batch:
        yield batch


def _transcribed(
    batch: list[_Sound], transcriber: Transcriber, fail: Fail, record: bool
) -> Iterator[tuple[_Sound, Transcript]]:
    """Transcripts of a batch; one that fails is tried again sound by sound."""
    try:
        results = transcriber([sound.wave for sound in batch], record=record)
    except (InputError, RuntimeError, MemoryError) as error:  # torch's errors are RuntimeErrors
        _log.debug("a batch of %d failed", len(batch), exc_info=True)
        if len(batch) == 1:
            fail(batch[0].input, error)
            return
        for sound in batch:
            yield from _transcribed([sound], transcriber, fail, record)
        return
    for sound, transcript in zip(batch, results, strict=True):
        yield (
            sound,
            replace(
                transcript,
                id=sound.wave.id,
                audio=sound.wave.path or "-",
                sample_rate=sound.wave.source_rate,
            ),
        )
