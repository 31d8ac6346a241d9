"""Whole utterances of manifests, in batches of like length bounded by padded seconds."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import pairwise

import numpy as np
import torch
from torch import Tensor
from torch.utils.data import Dataset

from asr import audio
from asr.data.augment import Perturbation, Spoiler, paced
from asr.data.batching import batch, pad
from asr.data.manifest import Utterance, WordTime
from asr.errors import InputError
from asr.text import UNK, Tokenizer
from asr.text.normalise import normalise
from asr.types import Batch, Seconds

_ALIKE = 1.15  # longest : shortest of a bucket, where it has enough utterances for a batch
_TOLERANCE = (0.5, 1.1)  # a file may outlast its manifest's duration by so many seconds, or times


@dataclass(frozen=True)
class Example:
    """One utterance made ready: ``wave`` (L,) float32, ``text`` normalised."""

    id: str
    wave: Tensor
    text: str
    words: tuple[WordTime, ...]


@dataclass(frozen=True)
class Rejected:
    """An utterance that cannot be trained on, and why."""

    id: str
    reason: str

    def __str__(self) -> str:
        return f"{self.id}: {self.reason}"


def sift(
    utterances: Iterable[Utterance],
    tokenizer: Tokenizer,
    *,
    frame_shift: Seconds,
    shortest: Seconds = 0.1,
    longest: Seconds = 30.0,
    normaliser: str = "basic",
    fastest: float = 1.0,
) -> tuple[list[Utterance], list[Rejected]]:
    """What can be trained on, and what cannot with the reason, both in the order given.

    Out are utterances below ``shortest`` or above ``longest``, those without text or with
    characters that the tokenizer lacks, and those that CTC cannot align even at ``fastest`` times
    their pace: each token needs an encoder frame of ``frame_shift`` seconds, and a token after its
    like one more (Graves et al. 2006, sec. 3).
    """
    kept: list[Utterance] = []
    rejected: list[Rejected] = []
    for utterance in utterances:
        text = normalise(utterance.text, normaliser)
        tokens = tokenizer.encode(text)
        needed = len(tokens) + sum(a == b for a, b in pairwise(tokens))
        frames = math.ceil(utterance.duration / fastest / frame_shift - 1e-6)
        if utterance.duration < shortest:
            reason = f"too short ({utterance.duration:.2f} s, at least {shortest:g} s)"
        elif utterance.duration > longest:
            reason = f"too long ({utterance.duration:.2f} s, at most {longest:g} s)"
        elif not tokens:
            reason = "no text"
        elif UNK in tokens:
            lacking = ", ".join(repr(character) for character in tokenizer.missing([text]))
            reason = f"the tokenizer lacks {lacking}"
        elif needed > frames:
            reason = f"infeasible for CTC ({needed} frames needed, {frames} there)"
        else:
            kept.append(utterance)
            continue
        rejected.append(Rejected(utterance.id, reason))
    return kept, rejected


class ManifestDataset(Dataset[Example]):
    """The utterances of a manifest, decoded when asked for, at ``sample_rate`` Hz.

    With a ``perturbation``, :meth:`perturbed` gives an item changed in pace and sound; ``seed``
    fixes its banks of noises and rooms. An item raises InputError with the utterance's file where
    its sound cannot be decoded, or is much longer than the manifest says: batches are bounded by
    what it says.
    """

    def __init__(
        self,
        utterances: Sequence[Utterance],
        tokenizer: Tokenizer,
        sample_rate: int,
        *,
        normaliser: str = "basic",
        perturbation: Perturbation | None = None,
        seed: int = 0,
    ) -> None:
        self.utterances = tuple(utterances)
        self.tokenizer = tokenizer
        self.sample_rate = sample_rate
        self.normaliser = normaliser
        self.perturbation = perturbation
        if perturbation is not None:
            self._spoiler = Spoiler(perturbation, sample_rate, seed=seed)

    def __len__(self) -> int:
        return len(self.utterances)

    def __getitem__(self, index: int) -> Example:
        utterance = self.utterances[index]
        wave = audio.load(utterance.audio, self.sample_rate).samples
        first = round(utterance.start * self.sample_rate)
        last = None if utterance.end is None else round(utterance.end * self.sample_rate)
        wave = wave[first:last]
        seconds, claimed = len(wave) / self.sample_rate, utterance.duration
        if seconds > max(claimed + _TOLERANCE[0], claimed * _TOLERANCE[1]):
            raise InputError(
                f"{utterance.audio}: {utterance.id} lasts {seconds:.2f} s, its "
                f"manifest says {claimed:.2f} s"
            )
        words = tuple(
            WordTime(normalise(word.word, self.normaliser), word.start, word.end)
            for word in utterance.words
        )
        return Example(utterance.id, wave, normalise(utterance.text, self.normaliser), words)

    def perturbed(self, index: int, rng: np.random.Generator) -> Example:
        """Item ``index`` as ``rng`` changes it; unchanged where there is no perturbation."""
        example, plan = self[index], self.perturbation
        if plan is None or not len(example.wave):
            return example
        slowest, fastest = np.log(plan.speed)
        chance, where = rng.random(2)
        speed = 1.0
        if chance < plan.speed_share:
            speed = round(float(np.exp(slowest + where * (fastest - slowest))), 3)
        sound = paced(example.wave.numpy(), speed).copy()
        # Not a dot product: BLAS would start threads beside those of the other workers.
        self._spoiler(sound, rng, float(np.square(sound).mean()) ** 0.5)
        words = tuple(
            WordTime(word.word, word.start / speed, word.end / speed) for word in example.words
        )
        return Example(example.id, torch.from_numpy(sound), example.text, words)

    def collate(self, examples: Sequence[Example]) -> Batch:
        """Examples -> one padded batch."""
        waves, lengths = pad([example.wave for example in examples])
        return batch(
            [example.id for example in examples],
            waves,
            lengths,
            [example.text for example in examples],
            [example.words for example in examples],
            self.tokenizer,
        )

    def batches(
        self, seconds: Seconds, *, seed: int | None = None, short_first: bool = False
    ) -> Batches:
        """Itself in batches of at most ``seconds`` each, padding counted; see :class:`Batches`."""
        return Batches(self, seconds, seed=seed, short_first=short_first)


class Batches(Dataset[Batch]):
    """A :class:`ManifestDataset` whose items are whole batches.

    For ``DataLoader(..., batch_size=None, collate_fn=as_is)``.
    With ``seed`` None they go from the longest utterances to the shortest. With a seed, epoch e has
    items e * len to (e + 1) * len - 1: utterances change their batch-mates, batches their order,
    and what the dataset's perturbation does to them from epoch to epoch, by seed and index alone,
    and each utterance comes once in an epoch. With ``short_first`` the batches of the first epoch
    come from the shortest to the longest, which helps an alignment to form (SortaGrad of Amodei et
    al. 2016, sect. 3.2). ``seconds`` holds for the slowest pace that they may get; without a seed
    nothing is perturbed. An utterance longer than ``seconds`` is a batch by itself. InputError
    where there are none.
    """

    def __init__(
        self,
        dataset: ManifestDataset,
        seconds: Seconds,
        *,
        seed: int | None = None,
        short_first: bool = False,
    ) -> None:
        if seconds <= 0:
            raise ValueError(f"seconds must be above 0, not {seconds}")
        if not len(dataset):
            raise InputError("the manifest has no utterances")
        self.dataset, self.seed, self.short_first = dataset, seed, short_first
        plan = dataset.perturbation if seed is not None else None
        slowest = plan.slowest if plan else 1.0
        self._buckets = _buckets([u.duration / slowest for u in dataset.utterances], seconds)
        self._length = sum(-(-len(bucket) // size) for bucket, size in self._buckets)
        self._epoch: tuple[int, list[list[int]]] = (-1, [])

    def __len__(self) -> int:
        return self._length

    def members(self, index: int) -> list[int]:
        """Which utterances, by their place in the dataset, batch ``index`` of the run holds."""
        epoch, place = divmod(index, self._length)
        if index < 0 or (self.seed is None and epoch):
            raise IndexError(f"batch {index} of {self._length}")
        if self._epoch[0] != epoch:
            self._epoch = (epoch, self._arrange(epoch))
        return self._epoch[1][place]

    def __getitem__(self, index: int) -> Batch:
        members = self.members(index)
        if self.seed is None:
            return self.dataset.collate([self.dataset[member] for member in members])
        draws = (np.random.default_rng([self.seed, index, member]) for member in members)
        return self.dataset.collate(
            [self.dataset.perturbed(*given) for given in zip(members, draws, strict=True)]
        )

    def _arrange(self, epoch: int) -> list[list[int]]:
        rng = None if self.seed is None else np.random.default_rng([self.seed, epoch])
        batches = []
        for bucket, size in self._buckets:
            order = bucket if rng is None else rng.permutation(bucket).tolist()
            batches += [order[start : start + size] for start in range(0, len(order), size)]
        if rng is None:
            return batches
        if self.short_first and epoch == 0:
            return batches[::-1]  # the buckets go from the longest to the shortest
        return [batches[i] for i in rng.permutation(len(batches))]


def _buckets(durations: Sequence[Seconds], seconds: Seconds) -> list[tuple[list[int], int]]:
    """Utterances of like length, and how many of them make a batch.

    The batch size follows from a bucket's longest utterance, so that any of a bucket may go
    together and every epoch has as many batches.
    """
    order = sorted(range(len(durations)), key=lambda index: (-durations[index], index))
    buckets: list[tuple[list[int], int]] = []
    start = 0
    while start < len(order):
        longest = max(durations[order[start]], 1e-3)
        size = max(1, int(seconds / longest))
        end = start
        while end < len(order) and (end - start < size or durations[order[end]] * _ALIKE > longest):
            end += 1
        buckets.append((order[start:end], size))
        start = end
    return buckets
