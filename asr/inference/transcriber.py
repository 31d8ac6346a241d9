"""From sound to text: the one object behind every command that listens."""

from __future__ import annotations

import dataclasses
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Literal, Self

import torch

from asr.inference import bundle as bundles
from asr.inference import devices
from asr.inference.bundle import Bundle
from asr.inference.pieces import SHORTEST_PIECE, Piece, batches, padded, windows
from asr.inference.results import Heard, healthier, heard, transcript
from asr.inference.silence import Given, given
from asr.inference.sources import Sound, Source, source
from asr.search import SearchOptions, forced, search
from asr.text import normalise
from asr.types import Encoded, Hypothesis, Seconds, Transcript, TranscriptWarning

STARTER = Path(__file__).parent / "starter"
_DTYPES = {"auto": torch.float32, "float32": torch.float32, "bfloat16": torch.bfloat16}
MARGIN: Seconds = 0.3
_DIVISIBLE: Seconds = 6.0  # a doubtful piece of at least this is tried again in halves,
_HALF = 0.6  # each of at most this much of it
_WINDOW = 8  # batches' worth of pieces are sorted by length, so that batches hold little padding


class Transcriber:
    """A model with everything around it: sound goes in, transcripts come out.

    A result never depends on what else is in the call. Audio longer than ``max_piece_seconds`` is
    cut at quiet places as it is read, and a few ``batch_seconds`` of sound are all that is held
    beside the waveforms handed over: a :class:`asr.audio.Recording` may be of any length.

    Args:
        bundle: model, tokenizer and settings.
        search: all options of the search, or those that differ from the bundle's.
        device: where to compute: ``auto`` is CUDA where there is one, else the CPU.
        dtype: ``auto`` is float32; ``bfloat16`` computes under autocast.
        threads: CPU threads of torch, for the whole process; None leaves them alone.
        batch_seconds: of sound that is decoded at once.
        max_piece_seconds: None takes the bundle's.
        margin_seconds: silence around what sounds in a piece that the model is given: longer
            silence is left out, and what a recording cut tightly around the words lacks is made
            up (see :mod:`asr.inference.silence`). Times stay those of the recording. 0 gives the
            model every piece as it is.

    Raises:
        InputError: a search that the model cannot do, a device that there is not.
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
        margin_seconds: Seconds = MARGIN,
    ) -> None:
        if dtype not in _DTYPES:
            raise ValueError(f"dtype={dtype!r}: valid are {', '.join(_DTYPES)}")
        if max_piece_seconds is None:
            max_piece_seconds = bundle.settings.max_piece_seconds
        if not batch_seconds > 0:
            raise ValueError(f"batch_seconds={batch_seconds}: must be above 0 seconds")
        if not max_piece_seconds >= SHORTEST_PIECE:
            raise ValueError(
                f"max_piece_seconds={max_piece_seconds}: must be at least {SHORTEST_PIECE:g} s"
            )
        if not 0 <= margin_seconds <= 10:
            raise ValueError(f"margin_seconds={margin_seconds}: must be 0 to 10 seconds")
        if threads is not None:
            if threads < 1:
                raise ValueError(f"threads={threads}: at least 1 is needed")
            torch.set_num_threads(threads)
        self.bundle = bundle
        self.name, self.fingerprint = bundle.name, bundle.fingerprint
        self.search = _options(search, bundle)
        self.search.resolve(has_ctc=bundle.model.ctc is not None)
        self.device = devices.device(device)
        self.dtype = _DTYPES[dtype]
        self.batch_seconds, self.max_piece_seconds = batch_seconds, max_piece_seconds
        self.margin_seconds = margin_seconds
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
        self, sounds: Sequence[Sound], *, record: bool = False, inspect: Collection[str] = ()
    ) -> list[Transcript]:
        """One transcript for each waveform or recording, in order.

        Sound without anything to hear gives an empty text and a warning. ``record`` keeps the
        attention, ``inspect`` names the listener's layers whose matrices are kept with it.
        """
        options = self.search.resolve(has_ctc=self.model.ctc is not None)
        sources = self._sources(sounds)
        pieces = (p for each in sources for p in each.pieces(self.max_piece_seconds))

        def listen(parts: Iterable[Given]) -> Iterator[tuple[Given, Heard]]:
            for batch in batches(parts, self.batch_seconds):
                encoded = self._encode(batch, inspect)
                with self._computing():
                    hypotheses = search(self.model, encoded, options)
                found = self._heard(batch, hypotheses, encoded, sources, mode="free", keep=record)
                yield from zip(batch, found, strict=True)

        found: list[Heard] = []
        for window in windows(self._given(pieces, sources), _WINDOW * self.batch_seconds):
            heard = list(listen(window))
            # Text that loops or stops early mostly does so because the piece is long.
            again = (
                half
                for part, made in heard
                if made.warnings and part.duration >= _DIVISIBLE
                for half in part.piece.split(_HALF * part.piece.duration)
            )
            halves = [made for _, made in listen(self._given(again, sources))]
            found += healthier([made for _, made in heard], halves)
        return self._transcripts(sources, found, dataclasses.asdict(options))

    def force(
        self, sounds: Sequence[Sound], texts: Sequence[str], *, inspect: Collection[str] = ()
    ) -> list[Transcript]:
        """Where the model listens when it is made to write the given texts; records are kept.

        Texts are normalised as the model's training texts were; characters that it does not know
        are named in a warning. Nothing is cut, however long. ValueError unless there is one text a
        sound.
        """
        if len(sounds) != len(texts):
            raise ValueError(f"{len(texts)} texts for {len(sounds)} waveforms: one each is needed")
        sources = self._sources(sounds)
        spoken = [normalise(text, self.bundle.settings.normalisation) for text in texts]
        ids = [self.bundle.tokenizer.encode(text) for text in spoken]
        whole = (each.whole() for each in sources if each.doubt is None)
        found: list[Heard] = []
        for batch in batches(self._given(whole, sources), self.batch_seconds):
            encoded = self._encode(batch, inspect)
            rows = [torch.tensor(ids[each.piece.source], dtype=torch.long) for each in batch]
            targets = torch.nn.utils.rnn.pad_sequence(rows, batch_first=True).to(self.device)
            lengths = torch.tensor([len(row) for row in rows], device=self.device)
            with self._computing():
                hypotheses = forced(self.model, encoded, targets, lengths)
            nbest = [[hypothesis] for hypothesis in hypotheses]
            found += self._heard(batch, nbest, encoded, sources, mode="forced", keep=True)
        done = self._transcripts(sources, found, {"mode": "forced"})
        return [self._with_unknown(t, s) for t, s in zip(done, spoken, strict=True)]

    def _sources(self, sounds: Sequence[Sound]) -> list[Source]:
        return [
            source(number, sound, self.sample_rate, self.model.frame_shift)
            for number, sound in enumerate(sounds)
        ]

    def _given(self, pieces: Iterable[Piece], sources: Sequence[Source]) -> Iterator[Given]:
        """What there is to listen to; nothing of a piece that is silent."""
        frame = self.model.frontend.hop * self.model.encoder.subsampling
        for piece in pieces:
            part = given(piece, sources[piece.source].level, frame, self.margin_seconds)
            if part is not None:
                yield part

    def _encode(self, batch: Sequence[Given], inspect: Collection[str]) -> Encoded:
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
        batch: Sequence[Given],
        hypotheses: Sequence[Sequence[Hypothesis]],
        encoded: Encoded,
        sources: Sequence[Source],
        *,
        mode: Literal["free", "forced"],
        keep: bool,
    ) -> list[Heard]:
        frames = encoded.lengths.tolist()
        ctc = None
        if self.model.ctc is not None:
            with self._computing():
                ctc = self.model.ctc_log_probs(encoded).cpu()
        return [
            heard(
                each,
                nbest,
                self.bundle,
                sources[each.piece.source].sound.id,
                mode=mode,
                keep=keep,
                listener={
                    name: matrices[row, :, :size, :size]
                    for name, matrices in encoded.attention.items()
                },
                ctc=None if ctc is None else ctc[row, :size],
            )
            for row, (each, nbest, size) in enumerate(zip(batch, hypotheses, frames, strict=True))
        ]

    def _transcripts(
        self, sources: Sequence[Source], found: Sequence[Heard], decoding: Mapping[str, Any]
    ) -> list[Transcript]:
        parts: list[list[Heard]] = [[] for _ in sources]
        for part in sorted(found, key=lambda part: part.start):
            parts[part.source].append(part)
        decoding = {
            **decoding,
            "device": str(self.device),
            "dtype": str(self.dtype).removeprefix("torch."),
            "max_piece_seconds": self.max_piece_seconds,
            "margin_seconds": self.margin_seconds,
        }
        return [
            transcript(
                each.sound,
                own,
                [] if doubt is None else [doubt],
                nbest=decoding.get("nbest", 1),
                least_confidence=self.bundle.settings.least_confidence,
                decoding=decoding,
                model={"name": self.name, "fingerprint": self.fingerprint},
            )
            for each, own in zip(sources, parts, strict=True)
            for doubt in [each.doubt if own or each.doubt else each.silent]
        ]

    def _with_unknown(self, done: Transcript, text: str) -> Transcript:
        missing = "".join(self.bundle.tokenizer.missing([text]))
        if not missing:
            return done
        warning = TranscriptWarning(
            "unknown-characters", f"the model cannot write {missing!r}", 0.0, done.duration
        )
        return dataclasses.replace(done, warnings=(*done.warnings, warning))


def _options(search: SearchOptions | Mapping[str, Any] | None, bundle: Bundle) -> SearchOptions:
    if isinstance(search, SearchOptions):
        return search
    try:
        return SearchOptions(**{**bundle.settings.search, **(search or {})})
    except TypeError as error:
        raise ValueError(f"search: {error}") from None
