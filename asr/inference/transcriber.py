"""From sound to text: the one object behind every command that listens."""

from __future__ import annotations

import dataclasses
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Literal, Self

import soxr
import torch

from asr.errors import InputError
from asr.inference import bundle as bundles
from asr.inference.bundle import Bundle
from asr.inference.pieces import Piece, batches, padded
from asr.inference.results import SILENCE, Heard, heard, transcript
from asr.search import SearchOptions, forced, search
from asr.text import normalise
from asr.types import Encoded, Hypothesis, Seconds, Transcript, TranscriptWarning, Waveform

STARTER = Path(__file__).parent / "starter"
_DTYPES = {"auto": torch.float32, "float32": torch.float32, "bfloat16": torch.bfloat16}
_DIVISIBLE: Seconds = 6.0  # a doubtful piece of at least this is tried again in halves,
_HALF = 0.6  # each of at most this much of it


class Transcriber:
    """A model with everything around it: sound goes in, transcripts come out.

    A result never depends on what else is in the call. Audio longer than ``max_piece_seconds`` is
    cut at quiet places, and memory is bounded by ``batch_seconds`` of padded sound, whatever the
    length of the inputs.

    Args:
        bundle: model, tokenizer and settings.
        search: all options of the search, or those that differ from the bundle's.
        device: where to compute: ``auto`` is CUDA where there is one, else the CPU.
        dtype: ``auto`` is float32; ``bfloat16`` computes under autocast.
        threads: CPU threads of torch, for the whole process; None leaves them alone.
        batch_seconds: of sound that is decoded at once.
        max_piece_seconds: None takes the bundle's.

    Raises:
        InputError: a search that the model cannot do, a device that cannot be used.
        ValueError: names an argument that is out of range.
    """

    def __init__(
        self,
        bundle: Bundle,
        *,
        search: SearchOptions | Mapping[str, Any] | None = None,
        device: str = "auto",
        dtype: str = "auto",
        threads: int | None = None,
        batch_seconds: Seconds = 120.0,
        max_piece_seconds: Seconds | None = None,
    ) -> None:
        if dtype not in _DTYPES:
            raise ValueError(f"dtype={dtype!r}: valid are {', '.join(_DTYPES)}")
        if max_piece_seconds is None:
            max_piece_seconds = bundle.settings.max_piece_seconds
        for key, value in (
            ("batch_seconds", batch_seconds),
            ("max_piece_seconds", max_piece_seconds),
        ):
            if not value > 0:
                raise ValueError(f"{key}={value}: must be above 0 seconds")
        if threads is not None:
            if threads < 1:
                raise ValueError(f"threads={threads}: at least 1 is needed")
            torch.set_num_threads(threads)
        self.bundle = bundle
        self.name, self.fingerprint = bundle.name, bundle.fingerprint
        self.search = _options(search, bundle)
        self.search.resolve(has_ctc=bundle.model.ctc is not None)
        self.device = _device(device)
        self.dtype = _DTYPES[dtype]
        self.batch_seconds, self.max_piece_seconds = batch_seconds, max_piece_seconds
        self.model = bundle.model.to(self.device).eval()

    @classmethod
    def from_bundle(cls, path: str | Path | None = None, **options: Any) -> Self:
        """With the bundle at ``path``, or the starter model that comes along; options as above."""
        return cls(bundles.load(STARTER if path is None else path), **options)

    @property
    def sample_rate(self) -> int:
        """Hz that the model listens at; other waveforms are resampled."""
        return self.model.sample_rate

    def __call__(
        self, waves: Sequence[Waveform], *, record: bool = False, inspect: Collection[str] = ()
    ) -> list[Transcript]:
        """One transcript a waveform, in order.

        Sound without anything to hear gives an empty text and a warning. ``record`` keeps the
        attention, ``inspect`` names the listener's layers whose matrices are kept with it.
        """
        options = self.search.resolve(has_ctc=self.model.ctc is not None)
        ready = [self._prepare(index, wave) for index, wave in enumerate(waves)]
        pieces = [
            part
            for whole, doubt in ready
            if doubt is None
            for part in _audible(whole.split(self.max_piece_seconds))
        ]

        def listen(pieces: Sequence[Piece]) -> list[Heard]:
            found = []
            for batch in batches(pieces, self.batch_seconds):
                encoded = self._encode(batch, inspect)
                with self._computing():
                    hypotheses = search(self.model, encoded, options)
                found += self._heard(batch, hypotheses, encoded, waves, mode="free")
            return found

        found = listen(pieces)
        # Text that loops or stops early mostly does so because the piece is long: halves go better.
        again = [
            half
            for part in found
            if part.warnings and part.piece.duration >= _DIVISIBLE
            for half in _audible(part.piece.split(_HALF * part.piece.duration))
        ]
        found = _healthier(found, listen(again))
        return self._transcripts(waves, ready, found, dataclasses.asdict(options), record=record)

    def force(
        self, waves: Sequence[Waveform], texts: Sequence[str], *, inspect: Collection[str] = ()
    ) -> list[Transcript]:
        """Where the model listens when it is made to write the given texts; records are kept.

        Texts are normalised as the model's training texts were; characters that it does not know
        are named in a warning. Nothing is cut, however long. ValueError unless there is one text a
        waveform.
        """
        if len(waves) != len(texts):
            raise ValueError(f"{len(texts)} texts for {len(waves)} waveforms: one each is needed")
        ready = [self._prepare(index, wave) for index, wave in enumerate(waves)]
        spoken = [normalise(text, self.bundle.settings.normalisation) for text in texts]
        ids = [self.bundle.tokenizer.encode(text) for text in spoken]
        found: list[Heard] = []
        for batch in batches((w for w, doubt in ready if doubt is None), self.batch_seconds):
            encoded = self._encode(batch, inspect)
            rows = [torch.tensor(ids[piece.source], dtype=torch.long) for piece in batch]
            targets = torch.nn.utils.rnn.pad_sequence(rows, batch_first=True).to(self.device)
            lengths = torch.tensor([len(row) for row in rows], device=self.device)
            with self._computing():
                hypotheses = forced(self.model, encoded, targets, lengths)
            nbest = [[hypothesis] for hypothesis in hypotheses]
            found += self._heard(batch, nbest, encoded, waves, mode="forced")
        done = self._transcripts(waves, ready, found, {"mode": "forced"}, record=True)
        return [self._with_unknown(t, s) for t, s in zip(done, spoken, strict=True)]

    def _prepare(self, index: int, wave: Waveform) -> tuple[Piece, TranscriptWarning | None]:
        """Samples at the model's rate, and why they are not worth decoding (None if they are)."""
        samples = wave.samples.detach().cpu()
        if samples.ndim != 1 or not samples.is_floating_point():
            raise ValueError(
                f"{wave.id or index}: samples are {tuple(samples.shape)} {samples.dtype}; "
                "(L,) floating point in [-1, 1] is needed"
            )
        samples = samples.float().nan_to_num(0.0, 0.0, 0.0)
        if wave.sample_rate != self.sample_rate:
            resampled = soxr.resample(samples.numpy(), wave.sample_rate, self.sample_rate)
            samples = torch.from_numpy(resampled)
        whole = Piece(index, samples, self.sample_rate)
        reason = None
        if not len(samples):
            reason = ("empty-audio", "there are no samples")
        elif whole.duration < self.model.frame_shift:
            reason = ("too-short", f"{1000 * whole.duration:.1f} ms are too short to hear anything")
        elif not _audible([whole]):
            reason = ("silent-audio", "there is only silence")
        return whole, reason and TranscriptWarning(*reason, 0.0, wave.duration)

    def _encode(self, batch: Sequence[Piece], inspect: Collection[str]) -> Encoded:
        waves, lengths = padded(batch)
        with self._computing():
            return self.model.encode(
                waves.to(self.device), lengths.to(self.device), inspect=inspect
            )

    @contextmanager
    def _computing(self) -> Iterator[None]:
        half = self.dtype != torch.float32
        with torch.inference_mode(), torch.autocast(self.device.type, self.dtype, enabled=half):
            yield

    def _heard(
        self,
        batch: Sequence[Piece],
        hypotheses: Sequence[Sequence[Hypothesis]],
        encoded: Encoded,
        waves: Sequence[Waveform],
        *,
        mode: Literal["free", "forced"],
    ) -> list[Heard]:
        frames = encoded.lengths.tolist()
        return [
            heard(
                piece,
                nbest,
                self.bundle,
                waves[piece.source].id,
                mode=mode,
                listener={
                    name: matrices[row, :, :size, :size]
                    for name, matrices in encoded.attention.items()
                },
            )
            for row, (piece, nbest, size) in enumerate(zip(batch, hypotheses, frames, strict=True))
        ]

    def _transcripts(
        self,
        waves: Sequence[Waveform],
        ready: Sequence[tuple[Piece, TranscriptWarning | None]],
        found: Sequence[Heard],
        decoding: Mapping[str, Any],
        *,
        record: bool,
    ) -> list[Transcript]:
        parts: list[list[Heard]] = [[] for _ in waves]
        for part in sorted(found, key=lambda part: part.piece.start):
            parts[part.piece.source].append(part)
        decoding = {
            **decoding,
            "device": str(self.device),
            "dtype": str(self.dtype).removeprefix("torch."),
            "max_piece_seconds": self.max_piece_seconds,
        }
        return [
            transcript(
                wave,
                own,
                [] if doubt is None else [doubt],
                nbest=decoding.get("nbest", 1),
                record=record,
                decoding=decoding,
                model={"name": self.name, "fingerprint": self.fingerprint},
            )
            for wave, own, (_, doubt) in zip(waves, parts, ready, strict=True)
        ]

    def _with_unknown(self, done: Transcript, text: str) -> Transcript:
        missing = "".join(self.bundle.tokenizer.missing([text]))
        if not missing:
            return done
        warning = TranscriptWarning(
            "unknown-characters", f"the model cannot write {missing!r}", 0.0, done.duration
        )
        return dataclasses.replace(done, warnings=(*done.warnings, warning))


def _audible(pieces: Iterable[Piece]) -> list[Piece]:
    return [piece for piece in pieces if piece.samples.abs().max() >= SILENCE]


def _healthier(found: Sequence[Heard], halves: Sequence[Heard]) -> list[Heard]:
    """Each piece, or its halves where fewer seconds of them are in doubt."""
    kept: list[Heard] = []
    for whole in found:
        start, end = whole.piece.start, whole.piece.start + whole.piece.duration
        parts = [
            half
            for half in halves
            if half.piece.source == whole.piece.source and start <= half.piece.start < end
        ]
        doubtful = sum(part.piece.duration for part in parts if part.warnings)
        # Halves of half the doubt only: a cut may fall into a word.
        kept += parts if parts and doubtful <= _HALF * whole.piece.duration else [whole]
    return kept


def _options(search: SearchOptions | Mapping[str, Any] | None, bundle: Bundle) -> SearchOptions:
    if isinstance(search, SearchOptions):
        return search
    try:
        return SearchOptions(**{**bundle.settings.search, **(search or {})})
    except TypeError as error:
        raise ValueError(f"search: {error}") from None


def _device(name: str) -> torch.device:
    if name == "auto":
        name = "cuda" if torch.cuda.is_available() else "cpu"
    try:
        return torch.empty(0, device=name).device
    except (RuntimeError, AssertionError) as error:
        reason = str(error).splitlines()[0]
        raise InputError(f"device {name!r} cannot be used: {reason}") from None
