"""Words of aligned utterances, written as recordings of their own."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import replace
from itertools import groupby
from pathlib import Path

import numpy as np
import soundfile
from numpy.typing import NDArray

from asr import audio
from asr.data.manifest import Utterance, WordTime
from asr.errors import InputError
from asr.types import Seconds

Sound = NDArray[np.float32]


def other_than(given: Iterable[Path], path: Path) -> Path:
    """The path to write to. InputError where that is one of the manifests that were given."""
    if any(path.resolve() == manifest.resolve() for manifest in given):
        raise InputError(f"{path}: would be overwritten; -o must name another folder")
    return path


def cut(
    utterances: Iterable[Utterance],
    parts: Callable[[Utterance], Iterator[tuple[int, int, Seconds, Seconds]]],
    folder: Path,
    rate: int,
    shape: Callable[[Sound], Sound] = lambda samples: samples,
) -> Iterator[Utterance]:
    """Each part of each utterance, its sound written to ``folder`` as FLAC at ``rate`` Hz.

    ``parts`` tells of an utterance that has word times which parts it has: words from the first up
    to the last (excluded), from a start to an end in its seconds. ``shape`` changes the samples
    (L,) of a part. Raises InputError for sound that cannot be decoded.
    """
    folder.mkdir(parents=True, exist_ok=True)
    for path, group in groupby(utterances, key=lambda utterance: utterance.audio):
        own = [(utterance, part) for utterance in group for part in parts(utterance)]
        if not own:
            continue
        whole = audio.load(path, rate).samples.numpy()
        for utterance, (first, last, start, end) in own:
            begin = utterance.start + start
            samples = shape(
                whole[round(begin * rate) : round((utterance.start + end) * rate)].copy()
            )
            name = f"{utterance.id}-{first}".replace("/", "_")
            soundfile.write(
                folder / f"{name}.flac",
                (np.clip(samples, -1, 1) * 32767).astype("int16"),
                rate,
                format="FLAC",
            )
            duration = len(samples) / rate
            words = tuple(
                WordTime(w.word, max(0.0, w.start - start), min(w.end - start, duration))
                for w in utterance.words[first:last]
            )
            yield replace(
                utterance,
                id=name,
                audio=folder / f"{name}.flac",
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
