"""What a run is fed with: LightningDataModules over :mod:`asr.data`."""

from __future__ import annotations

import sys
from abc import abstractmethod
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any, cast

import torch
from lightning.pytorch import LightningDataModule
from torch.utils.data import DataLoader, Sampler

from asr.data import manifest
from asr.data.augment import Augmentation, Perturbation
from asr.data.batching import as_is
from asr.data.dataset import ManifestDataset, Rejected, sift
from asr.data.pool import StringPool
from asr.data.strings import Spacing, StringDataset
from asr.errors import InputError
from asr.inference import archive
from asr.nn.las import LAS
from asr.text import CharacterTokenizer, SentencePieceTokenizer, Tokenizer
from asr.text.normalise import normalise
from asr.types import Seconds


class Consecutive(Sampler[int]):
    """Items of a run that is one sequence, cut into epochs of ``items``: the rest of this epoch.

    ``position`` tells how many items were trained on. It, not an epoch's number, says where to go
    on, so that a run resumed anywhere neither repeats nor skips anything.
    """

    def __init__(self, items: int, position: Callable[[], int]) -> None:
        self.items = items
        self.position = position

    def __len__(self) -> int:
        return self.items

    def __iter__(self) -> Iterator[int]:
        start = self.position()
        return iter(range(start, (start // self.items + 1) * self.items))


class SpeechData(LightningDataModule):
    """What every source of training data has: a tokenizer, a rate, validation and test sets."""

    tokenizer: Tokenizer
    sample_rate: int
    normaliser: str = "basic"

    def __init__(
        self,
        *,
        sample_rate: int,
        validation: Sequence[str],
        test: Sequence[str],
        batch_seconds: Seconds,
        workers: int,
        seed: int,
    ) -> None:
        super().__init__()
        if sample_rate < 4000:
            raise ValueError(f"sample_rate={sample_rate}: at least 4000 Hz is needed")
        if batch_seconds <= 0:
            raise ValueError(f"batch_seconds={batch_seconds}: must be above 0")
        if workers < 0:
            raise ValueError(f"workers={workers}: at least 0 is needed")
        self.sample_rate = sample_rate
        self.validation = _files("validation", validation)
        self.test = _files("test", test) if test else ()
        self.batch_seconds = batch_seconds
        self.workers = workers
        self.seed = seed
        #: training batches that were used so far, in this run and those it resumes
        self.position = 0

    def state_dict(self) -> dict[str, int]:
        return {"position": self.position}

    def load_state_dict(self, state_dict: dict[str, int]) -> None:
        self.position = state_dict["position"]

    @abstractmethod
    def train_dataloader(self) -> DataLoader:
        """Batches of an epoch; which ones depends on seed and epoch alone."""

    @abstractmethod
    def describe(self) -> dict[str, Any]:
        """For the model card: what was trained on, with ``hours`` where that is a number."""

    def val_dataloader(self) -> DataLoader:
        return self._whole(self.validation)

    def test_dataloader(self) -> list[DataLoader]:
        """One loader a test manifest, in the order given."""
        return [self._whole([path]) for path in self.test]

    def _whole(self, paths: Sequence[str]) -> DataLoader:
        utterances = [u for path in paths for u in manifest.read(path)]
        dataset = ManifestDataset(
            utterances, self.tokenizer, self.sample_rate, normaliser=self.normaliser
        )
        return self._loader(dataset.batches(self.batch_seconds), None)

    def _loader(self, dataset: Any, sampler: Sampler[int] | None) -> DataLoader:
        """Items of ``dataset`` are whole batches; one generator of its own, so that making an
        iterator takes no draw away from the model."""
        return DataLoader(
            dataset,
            batch_size=None,
            collate_fn=as_is,
            sampler=sampler,
            num_workers=self.workers if sampler is not None else 0,
            persistent_workers=self.workers > 0 and sampler is not None,
            pin_memory=torch.cuda.is_available(),
            generator=torch.Generator().manual_seed(self.seed),
        )


class StringsData(SpeechData):
    """Strings of isolated words, made on the fly from the words of ``pool`` (see StringDataset).

    Args:
        pool: manifests of single words (each by one speaker) that strings are made of.
        shares: how often strings come from each of them; see StringPool.
        validation, test: manifests of whole utterances, for validation and for the final report.
        steps_per_epoch: batches between validations.
        words_per_batch, max_words, wordless, curriculum, spacing, augmentation: see StringDataset.
        batch_seconds: padded seconds of a validation batch.
        workers: processes that make batches beside the training process.
    """

    def __init__(
        self,
        *,
        pool: list[str],
        validation: list[str],
        test: list[str] = [],  # noqa: B006 (a list for the command line; never changed)
        shares: list[float] | None = None,
        sample_rate: int = 8000,
        steps_per_epoch: int = 100,
        words_per_batch: int = 60,
        max_words: int = 8,
        wordless: float = 0.0,
        curriculum: float = 0.3,
        spacing: Spacing | None = None,
        augmentation: Augmentation | None = None,
        batch_seconds: Seconds = 120.0,
        workers: int = 1,
        seed: int = 1,
    ) -> None:
        super().__init__(
            sample_rate=sample_rate,
            validation=validation,
            test=test,
            batch_seconds=batch_seconds,
            workers=workers,
            seed=seed,
        )
        if steps_per_epoch < 1:
            raise ValueError(f"steps_per_epoch={steps_per_epoch}: at least 1 is needed")
        self.pool_paths = _files("pool", pool)
        self.pool = StringPool(list(pool), sample_rate, shares=shares)
        # Digits have few letters: a space for between the words, and what the words are made of.
        self.tokenizer = CharacterTokenizer.train([" ", *self.pool.words])
        self.steps_per_epoch = steps_per_epoch
        self.words_per_batch = words_per_batch
        self.max_words = max_words
        self.wordless = wordless
        self.curriculum = curriculum
        self.spacing = spacing
        self.augmentation = augmentation

    def train_dataloader(self) -> DataLoader:
        dataset = StringDataset(
            self.pool,
            self.tokenizer,
            batches=self._batches(),
            words_per_batch=self.words_per_batch,
            max_words=self.max_words,
            wordless=self.wordless,
            curriculum=self.curriculum,
            spacing=self.spacing,
            augmentation=self.augmentation,
            seed=self.seed,
        )
        return self._loader(dataset, Consecutive(self.steps_per_epoch, lambda: self.position))

    def _batches(self) -> int:
        trainer = self.trainer
        if trainer is not None and trainer.max_steps > 0:
            steps = trainer.max_steps
        elif trainer is not None and trainer.max_epochs and trainer.max_epochs > 0:
            return trainer.max_epochs * self.steps_per_epoch
        else:
            raise InputError("strings are made for a run of known length: --trainer.max_steps=N")
        batches = steps * trainer.accumulate_grad_batches
        return -(-batches // self.steps_per_epoch) * self.steps_per_epoch

    def describe(self) -> dict[str, Any]:
        seconds = sum(len(clip.samples) for clip in self.pool.clips) / self.sample_rate
        return {
            "kind": "strings of isolated words, made on the fly",
            "manifests": list(self.pool_paths),
            "recordings": len(self.pool),
            "speakers": len(self.pool.speakers),
            "hours": round(seconds / 3600, 4),
        }


class ManifestData(SpeechData):
    """Whole utterances of manifests, in batches of like length that change from epoch to epoch.

    Args:
        train, validation, test: manifests.
        tokenizer: ``characters`` (those of the training texts), ``subwords`` (SentencePiece
            trained on them, with ``vocabulary_size`` pieces), the folder of a saved one, or a
            bundle, whose own it then is.
        normaliser: of all texts, references among them.
        shortest, longest: seconds; training utterances beyond, those that CTC cannot align, and
            those with a character that the tokenizer lacks are named on standard error and left
            out.
        perturbation: of pace and sound, drawn anew for each utterance in each epoch.
        short_first: the first epoch goes from short utterances to long ones.
        batch_seconds: padded seconds of a batch, which is what bounds memory.
        workers: processes that make batches beside the training process.
    """

    def __init__(
        self,
        *,
        train: list[str],
        validation: list[str],
        test: list[str] = [],  # noqa: B006 (a list for the command line; never changed)
        sample_rate: int = 16000,
        tokenizer: str = "characters",
        vocabulary_size: int = 500,
        normaliser: str = "basic",
        shortest: Seconds = 0.1,
        longest: Seconds = 30.0,
        perturbation: Perturbation | None = None,
        short_first: bool = False,
        batch_seconds: Seconds = 120.0,
        workers: int = 1,
        seed: int = 1,
    ) -> None:
        super().__init__(
            sample_rate=sample_rate,
            validation=validation,
            test=test,
            batch_seconds=batch_seconds,
            workers=workers,
            seed=seed,
        )
        if not 0 <= shortest <= longest:
            raise ValueError(f"need 0 <= shortest ({shortest}) <= longest ({longest})")
        self.train_paths = _files("train", train)
        self.normaliser = normaliser
        self.shortest, self.longest = shortest, longest
        self.perturbation = perturbation
        self.short_first = short_first
        self.utterances = [u for path in self.train_paths for u in manifest.read(path)]
        self.tokenizer = self._tokenizer(tokenizer, vocabulary_size)
        self.rejected: list[Rejected] = []

    def _tokenizer(self, kind: str, size: int) -> Tokenizer:
        texts = [normalise(u.text, self.normaliser) for u in self.utterances]
        if kind == "characters":
            return CharacterTokenizer.train(texts)
        if kind == "subwords":
            return SentencePieceTokenizer.train(texts, size)
        if Path(kind).is_dir():
            return Tokenizer.load(kind)
        if Path(kind).is_file():
            with archive.opened(Path(kind)) as folder:
                return Tokenizer.load(folder)
        raise InputError(
            f"data.tokenizer: {kind!r}; valid: characters, subwords, the folder of a saved one, "
            "or a bundle"
        )

    def setup(self, stage: str) -> None:
        """Leave out, by name, what cannot be trained on; that depends on the model's frames."""
        if stage != "fit" or self.trainer is None:
            return
        self.utterances, self.rejected = sift(
            self.utterances,
            self.tokenizer,
            frame_shift=cast(LAS, self.trainer.lightning_module.model).frame_shift,
            shortest=self.shortest,
            longest=self.longest,
            normaliser=self.normaliser,
            fastest=self.perturbation.fastest if self.perturbation else 1.0,
        )
        for rejected in self.rejected:
            print(f"asr: warning: not trained on: {rejected}", file=sys.stderr)
        if not self.utterances:
            raise InputError(
                f"{', '.join(self.train_paths)}: no utterance can be trained on, for example "
                f"{self.rejected[0]}"
            )

    def train_dataloader(self) -> DataLoader:
        dataset = ManifestDataset(
            self.utterances,
            self.tokenizer,
            self.sample_rate,
            normaliser=self.normaliser,
            perturbation=self.perturbation,
            seed=self.seed,
        )
        batches = dataset.batches(self.batch_seconds, seed=self.seed, short_first=self.short_first)
        return self._loader(batches, Consecutive(len(batches), lambda: self.position))

    def describe(self) -> dict[str, Any]:
        return {
            "kind": "utterances of manifests",
            "manifests": list(self.train_paths),
            "utterances": len(self.utterances),
            "speakers": len({u.speaker for u in self.utterances if u.speaker}),
            "hours": round(sum(u.duration for u in self.utterances) / 3600, 4),
        }


def _files(key: str, paths: Sequence[str]) -> tuple[str, ...]:
    if isinstance(paths, str) or not paths:
        raise InputError(f"data.{key}: a list of one or more manifests is expected, not {paths!r}")
    for path in paths:
        if not Path(path).is_file():
            raise InputError(f"data.{key}: {path}: no such file; a manifest is expected")
    return tuple(paths)


#: what ``data.name`` may be
DATA_MODULES: dict[str, type[SpeechData]] = {"strings": StringsData, "manifests": ManifestData}
