"""Strings of words, made of one speaker's isolated words: by a seed, or on the fly in training."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import NamedTuple

import numpy as np
import soxr
import torch
from numpy.typing import NDArray
from torch.utils.data import Dataset

from asr.data.augment import USUAL, Augmentation, Sound, Spoiler
from asr.data.batching import batch
from asr.data.manifest import WordTime
from asr.data.pool import Clip, Draw, StringPool
from asr.text import Tokenizer
from asr.types import Batch, Seconds

_OVERSAMPLING = 2  # linear interpolation loses next to nothing of a sound at twice its rate
_CHOICE = 8  # strings drawn for each word of a batch; those of like length make the batch
_FIRST_LENGTH = 2  # words, where the curriculum begins


@dataclass(frozen=True)
class Spacing:
    """Silence around words, seconds (shortest, longest), each drawn uniformly.

    ``edges`` before the first and after the last word. Each gap within a string is of one of
    ``gaps``, all equally likely.
    """

    edges: tuple[Seconds, Seconds] = (0.0, 0.6)
    gaps: tuple[tuple[Seconds, Seconds], ...] = ((0.0, 0.03), (0.03, 0.3), (0.1, 0.5), (0.4, 1.2))

    def __post_init__(self) -> None:
        for low, high in (self.edges, *self.gaps):
            if not 0 <= low <= high:
                raise ValueError(f"silences must be 0 <= shortest <= longest, not {(low, high)}")
        if not self.gaps:
            raise ValueError("gaps must have at least one (shortest, longest)")

    def draw(
        self, rng: np.random.Generator, words: NDArray[np.int64], rate: int
    ) -> NDArray[np.int64]:
        """Samples of silence (M,W+1) before each word and after the last; beyond that, zeros."""
        columns = np.arange(int(words.max(initial=1)) + 1)
        shape = (len(words), len(columns))
        edge = (columns == 0) | (columns == words[:, None])
        kind = np.where(edge, len(self.gaps), (rng.random(shape) * len(self.gaps)).astype(np.int64))
        low, high = np.array([*self.gaps, self.edges]).T
        seconds = low[kind] + rng.random(shape) * (high - low)[kind]
        return np.where(columns <= words[:, None], np.rint(seconds * rate), 0).astype(np.int64)


EVEN = Spacing(edges=(0.1, 0.4), gaps=((0.05, 0.5),))


class Rendered(NamedTuple):
    """A string as made: ``samples`` (L,) float32 and where its words are."""

    samples: Sound
    words: tuple[WordTime, ...]

    @property
    def text(self) -> str:
        return " ".join(word.word for word in self.words)


def render(
    pool: StringPool, seed: Sequence[int], words: int, *, speaker: str, spacing: Spacing = EVEN
) -> Rendered:
    """A string of ``words`` words by ``speaker``, unspoilt: the same ``seed`` gives the same."""
    rng = np.random.default_rng(list(seed))
    draw = pool.draw(rng, np.array([words]), speaker)
    gaps = spacing.draw(rng, draw.words, pool.sample_rate)[0]
    clips = [pool.clips[number] for number in draw.clips[0]]
    samples = np.zeros(int(gaps.sum()) + sum(len(clip.samples) for clip in clips), np.float32)
    return Rendered(
        samples, _lay(samples, clips, gaps, [clip.samples for clip in clips], pool.sample_rate)
    )


def _lay(
    wave: Sound, clips: Sequence[Clip], gaps: NDArray[np.int64], sounds: Sequence[Sound], rate: int
) -> tuple[WordTime, ...]:
    """Put ``sounds``, the clips at some pace, into ``wave`` with ``gaps`` before them."""
    position, words = 0, []
    for clip, gap, sound in zip(clips, gaps, sounds, strict=False):  # one gap more, after them
        position += int(gap)
        wave[position : position + len(sound)] = sound
        pace = len(sound) / len(clip.samples) / rate
        words.append(
            WordTime(
                clip.word, position / rate + clip.onset * pace, position / rate + clip.offset * pace
            )
        )
        position += len(sound)
    return tuple(words)


def _silenced(clip: Clip, sound: Sound, first: int, last: int) -> Clip:
    """Silences the ``first`` and ``last`` samples of ``sound``, the clip at some pace, in place.

    No more than a quarter of the word on either side. The clip, with what is left of its word.
    """
    pace = len(sound) / len(clip.samples)
    onset, offset = round(clip.onset * pace), round(clip.offset * pace)
    most = (offset - onset) // 4
    start, end = onset + min(first, most), offset - min(last, most)
    if first:
        sound[:start] = 0.0
    if last:
        sound[end:] = 0.0
    return replace(clip, onset=round(start / pace), offset=round(end / pace))


class StringDataset(Dataset[Batch]):
    """Batches of strings of words, each by one speaker, made on the fly; an item is a whole batch.

    An item depends on ``seed`` and its index alone, so any number of workers (``DataLoader(...,
    batch_size=None, collate_fn=as_is)``), and a run resumed at any index, get the same.
    ``batches`` is the length of the run. Strings have 1 to ``max_words`` words; at first up to 2,
    growing to ``max_words`` over the first ``curriculum`` (share) of the run. A batch holds about
    ``words_per_batch`` words in strings of nearly one length. Of a share ``wordless`` the words are
    left out again, so that a model learns to write nothing where there is noise or silence alone.
    ``spacing`` None is ``Spacing()``; ``augmentation`` None leaves the recordings as they are.
    Raises ValueError for parameters out of range.
    """

    def __init__(
        self,
        pool: StringPool,
        tokenizer: Tokenizer,
        *,
        batches: int,
        words_per_batch: int = 60,
        max_words: int = 8,
        wordless: float = 0.0,
        curriculum: float = 0.3,
        spacing: Spacing | None = None,
        augmentation: Augmentation | None = USUAL,
        seed: int = 0,
    ) -> None:
        for name, value in (
            ("batches", batches),
            ("words_per_batch", words_per_batch),
            ("max_words", max_words),
        ):
            if value < 1:
                raise ValueError(f"{name} must be 1 or more, not {value}")
        if seed < 0:
            raise ValueError(f"seed must be 0 or more, not {seed}")
        for name, share in (("wordless", wordless), ("curriculum", curriculum)):
            if not 0 <= share <= 1:
                raise ValueError(f"{name} must be a share from 0 to 1, not {share}")
        self.pool, self.tokenizer, self.batches, self.seed = pool, tokenizer, batches, seed
        self.words_per_batch, self.max_words = words_per_batch, max_words
        self.wordless, self.curriculum = wordless, curriculum
        self.spacing = spacing or Spacing()
        self.augmentation = augmentation
        if augmentation is not None:
            sounds = [clip.samples for clip in pool.clips]
            self._spoiler = Spoiler(augmentation, pool.sample_rate, sounds, seed)
            self._fine = [soxr.resample(sound, 1, _OVERSAMPLING) for sound in sounds]

    def __len__(self) -> int:
        return self.batches

    def longest(self, index: int) -> int:
        """The most words that a string of batch ``index`` may have."""
        first = min(_FIRST_LENGTH, self.max_words)
        growth = self.curriculum * self.batches
        if index >= growth:
            return self.max_words
        return first + int((self.max_words - first + 1) * index / growth)

    def __getitem__(self, index: int) -> Batch:
        if not 0 <= index < self.batches:
            raise IndexError(f"batch {index} of {self.batches}")
        rng = np.random.default_rng([self.seed, index])
        drawn = self._choose(rng, self.longest(index))
        lengths = drawn.lengths.sum(axis=1) + drawn.gaps.sum(axis=1)
        waves = np.zeros((len(lengths), int(lengths.max())), np.float32)
        words = [
            self._fill(waves[row, : lengths[row]], drawn, row, rng) for row in range(len(lengths))
        ]
        return batch(
            [f"{index}-{row}" for row in range(len(words))],
            torch.from_numpy(waves),
            torch.from_numpy(lengths),
            [" ".join(word.word for word in row) for row in words],
            words,
            self.tokenizer,
        )

    def _choose(self, rng: np.random.Generator, longest: int) -> _Plan:
        """Draw many strings; keep a run of them, in the order of length, that fills a batch.

        Where the run lies is uniform over the words drawn, so that strings of every number of
        words come equally often.
        """
        many = _CHOICE * self.words_per_batch
        draw = self.pool.draw(rng, 1 + (rng.random(many) * longest).astype(np.int64))
        gaps = self.spacing.draw(rng, draw.words, self.pool.sample_rate)
        speeds = self._speeds(rng, draw)
        present = np.arange(draw.clips.shape[1]) < draw.words[:, None]
        lengths = np.where(present, np.maximum(1, self.pool.lengths[draw.clips] // speeds), 0)
        order = np.argsort(lengths.sum(axis=1) + gaps.sum(axis=1), kind="stable")
        total = np.cumsum(draw.words[order])
        start = rng.random() * max(0, total[-1] - self.words_per_batch)
        first = int(np.searchsorted(total, start, side="right"))
        before = total[first] - draw.words[order[first]]
        last = int(np.searchsorted(total, before + self.words_per_batch, side="right"))
        rows = order[first : max(first + 1, last)]
        return _Plan(
            Draw(draw.clips[rows], draw.words[rows]),
            gaps[rows],
            speeds[rows],
            lengths[rows].astype(np.int64),
        )

    def _speeds(self, rng: np.random.Generator, draw: Draw) -> NDArray[np.float64]:
        """How much faster than recorded each word is (M,W); 1 throughout for many strings."""
        shape = draw.clips.shape
        if self.augmentation is None:
            return np.ones(shape)
        slowest, fastest = np.log(self.augmentation.speed)
        speeds = np.exp(slowest + rng.random((shape[0], 1)) * (fastest - slowest))
        speeds = speeds * (1 + self.augmentation.word_speed * (2 * rng.random(shape) - 1))
        return np.where(rng.random((shape[0], 1)) < self.augmentation.speed_share, speeds, 1.0)

    def _fill(
        self,
        wave: Sound,
        plan: _Plan,
        row: int,
        rng: np.random.Generator,
    ) -> tuple[WordTime, ...]:
        count = int(plan.draw.words[row])
        numbers = plan.draw.clips[row, :count].tolist()
        clips = [self.pool.clips[number] for number in numbers]
        sounds = [clip.samples for clip in clips]
        if self.augmentation is not None:
            decibels = self.augmentation.word_gain * (2 * rng.random(count) - 1)
            gains = (10 ** (decibels / 20)).astype(np.float32)
            lengths, speeds = plan.lengths[row].tolist(), plan.speeds[row].tolist()
            sounds = [
                gain * self._paced(*given)
                for gain, *given in zip(gains, numbers, lengths, speeds, strict=False)
            ]
            if self.augmentation.word_cut:
                lost = self.augmentation.word_cut * self.pool.sample_rate
                cuts = lost * (2 * rng.random((count, 2)) - 1).clip(min=0)
                clips = [
                    _silenced(clip, sound, *cut.astype(int).tolist())
                    for clip, sound, cut in zip(clips, sounds, cuts, strict=True)
                ]
        words = _lay(wave, clips, plan.gaps[row], sounds, self.pool.sample_rate)
        if self.wordless and rng.random() < self.wordless:
            wave[:], words = 0.0, ()
        if self.augmentation is not None:
            # Not a dot product: BLAS would start threads beside those of the other workers.
            energy = sum(float(np.square(sound).sum()) for sound in sounds)
            loudness = (energy / sum(len(sound) for sound in sounds)) ** 0.5
            self._spoiler(wave, rng, loudness)
        return words

    def _paced(self, number: int, length: int, speed: float) -> Sound:
        """Clip ``number`` at another pace (and pitch), by linear interpolation: (``length``,)."""
        if speed == 1.0:
            return self.pool.clips[number].samples
        fine = self._fine[number]
        exact = np.arange(length, dtype=np.float32) * np.float32(_OVERSAMPLING * speed)
        whole = np.minimum(exact.astype(np.int32), len(fine) - 2)
        part = exact - whole
        below = fine[whole]
        return below + part * (fine[whole + 1] - below)


class _Plan(NamedTuple):
    """Strings before they sound: lengths (M,W) and gaps (M,W+1) in samples, speeds (M,W)."""

    draw: Draw
    gaps: NDArray[np.int64]
    speeds: NDArray[np.float64]
    lengths: NDArray[np.int64]
