"""Words of aligned utterances, written as recordings of their own."""

from __future__ import annotations

import argparse
import io
from collections.abc import Callable, Iterable, Iterator
from dataclasses import replace
from itertools import groupby
from pathlib import Path

import numpy as np
import soundfile
from numpy.typing import NDArray

from asr import audio
from asr.data import manifest
from asr.data.manifest import Utterance, WordTime
from asr.errors import InputError
from asr.types import Seconds

Sound = NDArray[np.float32]


def other_than(given: Iterable[Path], path: Path) -> Path:
    """The path to write to. InputError where that is one of the manifests that were given."""
    if any(path.resolve() == one.resolve() for one in given):
        raise InputError(f"{path}: would be overwritten; -o must name another folder")
    return path


def between(low: float, high: float, kind: Callable[[str], float]) -> Callable[[str], float]:
    """For an option: a number of this kind from ``low`` to ``high``."""

    def number(text: str) -> float:
        if not low <= (value := kind(text)) <= high:
            raise argparse.ArgumentTypeError(f"{text}: from {low:g} to {high:g} is expected")
        return value

    number.__name__ = "number"
    return number


def cut(
    utterances: Iterable[Utterance],
    parts: Callable[[Utterance], Iterator[tuple[int, int, Seconds, Seconds]]],
    folder: Path,
    rate: int,
    shape: Callable[[Sound], Sound] = lambda samples: samples,
) -> list[Utterance]:
    """Each part of each utterance, its sound written to ``folder`` as FLAC at ``rate`` Hz.

    ``parts`` tells of an utterance that has word times which parts it has: words from the first up
    to the last (excluded), from a start to an end in its seconds. ``shape`` changes the samples
    (L,) of a part. What is written has the name of the cut, so that another cut of the same
    utterance leaves it alone; where not all can be written, nothing new stays. Raises InputError
    for sound that cannot be decoded and for word times that are not in order or not in the sound.
    """
    folder.mkdir(parents=True, exist_ok=True)
    done, new = [], []
    try:
        for path, group in groupby(utterances, key=lambda utterance: utterance.audio):
            own = [(utterance, part) for utterance in group for part in parts(checked(utterance))]
            if not own:
                continue
            whole = audio.load(path, rate).samples.numpy()
            for utterance, part in own:
                name = f"{utterance.id}-{part[0]}-{part[2]:.2f}-{part[3]:.2f}".replace("/", "_")
                to = folder / f"{name}.flac"
                if not to.exists():
                    new.append(to)
                done.append(_written(utterance, whole, part, to, rate, shape))
    except BaseException:
        for to in new:
            to.unlink(missing_ok=True)
        raise
    return done


def checked(utterance: Utterance) -> Utterance:
    """The utterance. InputError where its word times cannot be."""
    at = 0.0
    for word in utterance.words:
        if word.start < at - 0.005 or word.end > utterance.duration + 0.05:
            raise InputError(
                f"{utterance.audio}: {utterance.id}: {word.word!r} is said to be heard from "
                f"{word.start:g} to {word.end:g} s, out of order or beyond the end"
            )
        at = word.end
    return utterance


def _written(
    utterance: Utterance,
    whole: Sound,
    part: tuple[int, int, Seconds, Seconds],
    to: Path,
    rate: int,
    shape: Callable[[Sound], Sound],
) -> Utterance:
    first, last, start, end = part
    place = (round((utterance.start + when) * rate) for when in (start, end))
    samples = shape(whole[slice(*place)].copy())
    duration = len(samples) / rate
    if not duration:
        raise InputError(f"{utterance.audio}: {utterance.id}: over before {start:g} s")
    stream = io.BytesIO()
    integers = (np.clip(samples, -1, 1) * 32767).astype("int16")
    soundfile.write(stream, integers, rate, format="FLAC")
    manifest.write_bytes(to, stream.getvalue())
    words = tuple(
        WordTime(w.word, max(0.0, w.start - start), min(w.end - start, duration))
        for w in utterance.words[first:last]
    )
    return replace(
        utterance,
        id=to.stem,
        audio=to,
        text=" ".join(word.word for word in words),
        words=words,
        start=0.0,
        end=None,
        duration=duration,
    )


def gaps(utterance: Utterance) -> list[tuple[Seconds, Seconds]]:
    """Before, between and after the words: where each of these W + 1 stretches begins and ends."""
    ends = [0.0, *(word.end for word in utterance.words)]
    starts = [*(word.start for word in utterance.words), utterance.duration]
    return [(end, max(end, start)) for end, start in zip(ends, starts, strict=True)]
