"""Isolated spoken words in memory, by speaker and word."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import groupby
from pathlib import Path
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from asr import audio
from asr.data import manifest
from asr.data.manifest import Utterance
from asr.errors import InputError


@dataclass(frozen=True)
class Clip:
    """One recording of one word: ``samples`` (L,) float32, the word in [``onset``, ``offset``)."""

    word: str
    speaker: str
    samples: NDArray[np.float32]
    onset: int
    offset: int


class Draw(NamedTuple):
    """M strings drawn: ``clips`` (M,W) numbers in the pool; only the first ``words`` (M,) count."""

    clips: NDArray[np.int64]
    words: NDArray[np.int64]


class StringPool:
    """All words of some manifests, loaded once at ``sample_rate`` Hz.

    Each utterance of a manifest is one word by one speaker, a whole file or the span from
    ``start`` to ``end`` of a longer one; its ``words`` entry, if it has one, says where in it the
    word is heard. ``clips`` are in the order of speaker and word. ``shares``, one a manifest, say
    how often strings come from each (its speakers equally likely); None makes all speakers of all
    manifests equally likely. Raises InputError for utterances that are not one word, that name no
    speaker, or whose sound is empty; ValueError for shares that are not one a manifest above 0.
    """

    def __init__(
        self,
        manifests: Sequence[Path | str] | Path | str,
        sample_rate: int,
        *,
        shares: Sequence[float] | None = None,
    ) -> None:
        paths = [manifests] if isinstance(manifests, (str, Path)) else manifests
        if shares is not None and (len(shares) != len(paths) or min(shares) <= 0):
            raise ValueError(
                f"shares={list(shares)}: one above 0 for each of {len(paths)} manifests"
            )
        utterances = [manifest.read(path) for path in paths]
        self._set(
            _load([u for own in utterances for u in own], sample_rate),
            sample_rate,
            ", ".join(str(path) for path in paths),
        )
        if shares is not None:
            for own, share in zip(utterances, shares, strict=True):
                speakers = {u.speaker for u in own}
                for speaker in speakers:
                    self._often[self.speakers.index(speaker)] += share / len(speakers)

    @classmethod
    def of(cls, clips: Iterable[Clip], sample_rate: int) -> StringPool:
        """A pool of clips that are in memory."""
        pool = cls.__new__(cls)
        pool._set(clips, sample_rate, "the pool")
        return pool

    def _set(self, clips: Iterable[Clip], sample_rate: int, name: str) -> None:
        self.sample_rate = sample_rate
        self.clips = tuple(sorted(clips, key=lambda clip: (clip.speaker, clip.word)))
        if not self.clips:
            raise InputError(f"{name}: no words to make strings of")
        self.speakers = tuple(sorted({clip.speaker for clip in self.clips}))
        self.words = tuple(sorted({clip.word for clip in self.clips}))
        self.lengths = np.array([len(clip.samples) for clip in self.clips])
        # A speaker's k-th word is clips first[speaker, k] to first + count; not all know all words.
        shape = (len(self.speakers), len(self.words))
        self._known = np.zeros(len(self.speakers), dtype=np.int64)
        self._often = np.zeros(len(self.speakers))  # all zero: equally often
        self._first, self._count = np.zeros(shape, np.int64), np.zeros(shape, np.int64)
        position = 0
        for (speaker, _), group in groupby(self.clips, key=lambda clip: (clip.speaker, clip.word)):
            row = self.speakers.index(speaker)
            size = sum(1 for _ in group)
            self._first[row, self._known[row]] = position
            self._count[row, self._known[row]] = size
            self._known[row] += 1
            position += size

    def __len__(self) -> int:
        return len(self.clips)

    def draw(
        self, rng: np.random.Generator, words: NDArray[np.int64], speaker: str | None = None
    ) -> Draw:
        """Strings of ``words`` (M,) words, each by one speaker (any, or the one named).

        Speakers (but for ``shares``), then words, then recordings are equally likely.
        """
        # Uniform doubles alone are drawn: they are NumPy's stream least likely to change.
        shape = (len(words), int(words.max(initial=1)))
        if speaker is None and self._often.any():
            bounds = np.cumsum(self._often) / self._often.sum()
            rows = np.searchsorted(bounds[:-1], rng.random(len(words)), side="right")
        elif speaker is None:
            rows = (rng.random(len(words)) * len(self.speakers)).astype(np.int64)
        else:
            rows = np.full(len(words), self.speakers.index(speaker))
        picks = (rng.random(shape) * self._known[rows, None]).astype(np.int64)
        first, count = self._first[rows[:, None], picks], self._count[rows[:, None], picks]
        return Draw(first + (rng.random(shape) * count).astype(np.int64), words)


def _load(utterances: Iterable[Utterance], rate: int) -> Iterator[Clip]:
    for path, pieces in groupby(utterances, key=lambda utterance: utterance.audio):
        samples = audio.load(path, rate).samples.numpy()
        for piece in pieces:
            yield _cut(piece, samples, rate)


def _cut(piece: Utterance, samples: NDArray[np.float32], rate: int) -> Clip:
    where = f"{piece.audio}: {piece.id}"
    if len(piece.text.split()) != 1 or len(piece.words) > 1:
        raise InputError(f"{where}: one word is expected, not {piece.text!r}")
    if not piece.speaker:
        raise InputError(f"{where}: no speaker; strings are made of one speaker's words")
    end = len(samples) if piece.end is None else round(piece.end * rate)
    samples = samples[round(piece.start * rate) : end]
    if not len(samples):
        raise InputError(f"{where}: no sound between {piece.start} s and {piece.end or 'the end'}")
    onset, offset = 0, len(samples)
    if piece.words:
        onset = min(round(piece.words[0].start * rate), offset - 1)
        offset = max(onset + 1, min(round(piece.words[0].end * rate), offset))
    return Clip(piece.text.strip(), piece.speaker, np.ascontiguousarray(samples), onset, offset)
