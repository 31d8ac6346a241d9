"""Inputs -> transcripts, in batches of like length, with a window of sounds in memory at a time."""

from __future__ import annotations

import logging
import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Literal, TypeAlias, cast

from asr.cli.inputs import Input
from asr.errors import InputError

if TYPE_CHECKING:
    from asr.audio import Recording
    from asr.inference.transcriber import Transcriber
    from asr.types import Transcript, Waveform

_SOUNDS, _BATCHES = 256, 8  # a window closes at that many sounds, or batches' worth of seconds
_log = logging.getLogger(__name__)

Channel: TypeAlias = Literal["mix", "split"] | int
Fail: TypeAlias = Callable[[Input, Exception], None]


@dataclass
class _Sound:
    """One sound on its way: of which input, and its place among that input's channels."""

    index: int
    place: int
    input: Input
    sound: Waveform | Recording


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
            found = read_sounds(each, transcriber.sample_rate, channel)
        except InputError as error:
            fail(each, error)
            yield index, []
            continue
        window += [_Sound(index, place, each, sound) for place, sound in enumerate(found)]
        seconds += sum(sound.duration for sound in found)
        if len(window) >= _SOUNDS or seconds >= _BATCHES * batch_seconds:
            yield from _window(window, transcriber, fail, batch_seconds, record)
            window, seconds = [], 0.0
    yield from _window(window, transcriber, fail, batch_seconds, record)


def read_waves(each: Input, rate: int, channel: str | int) -> list[Waveform]:
    """The sounds of an input at ``rate``, whole, one a channel with "split". Raises InputError."""
    return cast("list[Waveform]", read_sounds(each, rate, channel, longest=math.inf))


def read_sounds(
    each: Input, rate: int, channel: str | int, **bound: float
) -> list[Waveform | Recording]:
    """The same, but long ones as recordings; ``longest`` says what is long, in seconds."""
    from asr.audio import sounds

    found = sounds(
        each.open(),
        rate,
        channel=cast("Literal['mix', 'split'] | int", channel),
        id=each.id,
        start=each.start,
        end=each.end,
        **bound,
    )
    if channel != "split":
        return found
    return [replace(sound, id=f"{each.id}.ch{place}") for place, sound in enumerate(found)]


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
    for sound in sorted(sounds, key=lambda sound: -sound.sound.duration):
        # The first is the longest: what a batch holds, padding counted, is its length times size.
        if batch and batch[0].sound.duration * (len(batch) + 1) > batch_seconds:
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
        results = transcriber([sound.sound for sound in batch], record=record)
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
                id=sound.sound.id,
                audio=sound.sound.path or "-",
                sample_rate=sound.sound.source_rate,
            ),
        )
