"""From the hypotheses of pieces to the transcript of an input, with what to be wary of."""

from __future__ import annotations

import heapq
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from types import MappingProxyType
from typing import Any, Literal

from torch import Tensor

from asr.audio import Recording
from asr.inference.bundle import Bundle
from asr.inference.pieces import Piece
from asr.inference.silence import Given
from asr.inspection import ctc_times, diagnostics
from asr.inspection.records import record_of
from asr.inspection.timing import word_times
from asr.types import (
    AttentionRecord,
    Hypothesis,
    Seconds,
    Transcript,
    TranscriptWarning,
    Waveform,
    Word,
)

#: A jump back of this much is no jitter of the alignment: something is being read twice.
_LONG_JUMP: Seconds = 1.0
#: So much sound after the last thing that was listened to is no breath.
_LONG_TAIL: Seconds = 2.0
#: So little of what sounds is listened to where there are no words in it, or none were found.
_LOW_COVERAGE = 0.4
#: So few words heard by CTC where attention hears them: not one stray word, but attention lost.
_LOW_AGREEMENT = 0.9

_MEANS = ("entropy", "relative_entropy", "monotonicity", "coverage", "ctc_agreement")
_SUMS = ("backward_jumps",)


@dataclass(frozen=True)
class Heard:
    """What was made of one piece, of which input and of where in it; times are those of its file.

    ``record`` is there where it was asked for.
    """

    source: int
    start: Seconds
    duration: Seconds
    texts: tuple[tuple[str, float], ...]
    words: tuple[Word, ...]
    record: AttentionRecord | None
    figures: Mapping[str, float]
    warnings: tuple[TranscriptWarning, ...]

    @property
    def end(self) -> Seconds:
        return self.start + self.duration

    def unsure(self, least: float) -> list[TranscriptWarning]:
        """The warning where the words' mean confidence is below ``least``."""
        confidence = sum(w.confidence for w in self.words) / max(1, len(self.words))
        if not self.words or confidence >= least:
            return []
        message = f"the mean confidence is {confidence:.2f}: this was probably not said"
        return [TranscriptWarning("low-confidence", message, self.start, self.end)]


def heard(
    given: Given,
    hypotheses: Sequence[Hypothesis],
    bundle: Bundle,
    id: str,
    *,
    mode: Literal["free", "forced"] = "free",
    keep: bool = True,
    listener: Mapping[str, Tensor] = MappingProxyType({}),
    ctc: Tensor | None = None,
) -> Heard:
    """Words, times and diagnostics of what the model made of a piece, best hypothesis first.

    ``keep`` keeps the record of its attention. ``ctc`` (S',V): the log-probabilities of the CTC
    output at every frame that the model was given, on the CPU; None where the model has none.
    """
    tokenizer, piece, best = bundle.tokenizer, given.piece, hypotheses[0]
    record = record_of(
        id,
        given.placed(best),
        tokenizer,
        bundle.model,
        piece.duration,
        start=piece.start,
        mode=mode,
        listener={name: given.matrix(matrix) for name, matrix in listener.items()},
    )
    spans = tokenizer.words(best.tokens)
    # Read off what the model was given: frames that it never saw belong to no word.
    found = word_times(
        record_of(id, best, tokenizer, bundle.model, given.duration, mode=mode),
        spans,
        best.log_probs,
        onset_shift=bundle.settings.onset_shift,
    )
    words = [
        replace(
            word,
            start=piece.start + given.when(word.start, record.frame_shift),
            end=piece.start + given.when(word.end, record.frame_shift, ends=True),
        )
        for word in found
    ]
    if ctc is not None:
        frames = ctc_times.token_frames(ctc, best.tokens)
        share = ctc_times.agreement(found, spans, frames, record.frame_shift)
        record = replace(record, ctc_agreement=share)
    loud = diagnostics.loud(piece.samples, piece.sample_rate, record.frame_shift)
    # In a piece that is mostly background, that is among the louder half, too.
    figures = diagnostics.measure(record, loud[: given.size] & given.sounding)
    return Heard(
        piece.source,
        piece.start,
        piece.duration,
        tuple((_text(bundle, h), h.score) for h in hypotheses),
        tuple(replace(word, end=max(word.start, word.end)) for word in words),
        replace(record, listened=given.listened) if keep else None,
        figures,
        tuple(_doubts(piece, best, figures)),
    )


def _text(bundle: Bundle, hypothesis: Hypothesis) -> str:
    return " ".join(word for word, _, _ in bundle.tokenizer.words(hypothesis.tokens))


def _doubts(
    piece: Piece, best: Hypothesis, figures: Mapping[str, float]
) -> list[TranscriptWarning]:
    found = []
    if not best.ended:
        found.append(("unfinished", "the text reached its length limit and may repeat itself"))
    if (jump := figures["longest_backward_jump"]) >= _LONG_JUMP:
        found.append(
            ("attention-not-monotonic", f"attention jumped back by {jump:.1f} s: text may repeat")
        )
    if (tail := figures["unattended_tail"]) >= _LONG_TAIL:
        found.append(
            ("unheard-end", f"the last {tail:.1f} s were not listened to: text may be missing")
        )
    if best.tokens and (share := figures["coverage"]) < _LOW_COVERAGE:
        found.append(
            ("low-coverage", f"only {share:.0%} of what sounds was listened to: text may be wrong")
        )
    if (share := figures.get("ctc_agreement", 1.0)) < _LOW_AGREEMENT:
        found.append(
            (
                "attention-astray",
                f"CTC hears {1 - share:.0%} of the words elsewhere: their times may be wrong",
            )
        )
    end = piece.start + piece.duration
    return [TranscriptWarning(code, message, piece.start, end) for code, message in found]


def healthier(found: Sequence[Heard], halves: Sequence[Heard]) -> list[Heard]:
    """Each piece, or its halves where at most half as many seconds of them are in doubt.

    Not wherever they are better: a cut may fall into a word.
    """
    kept: list[Heard] = []
    for whole in found:
        parts = [
            half
            for half in halves
            if half.source == whole.source and whole.start <= half.start < whole.end
        ]
        doubtful = sum(part.duration for part in parts if part.warnings)
        kept += parts if parts and doubtful <= 0.5 * whole.duration else [whole]
    return kept


def transcript(
    sound: Waveform | Recording,
    parts: Sequence[Heard],
    warnings: Sequence[TranscriptWarning],
    *,
    nbest: int,
    least_confidence: float,
    decoding: Mapping[str, Any],
    model: Mapping[str, str],
) -> Transcript:
    """The pieces of one input, in order, as one result.

    Text is joined by spaces; scores add up, and so the n best texts of the whole are the n
    best sums over the pieces. Pieces whose words are less sure than ``least_confidence`` in the
    mean are warned of.
    """
    duration = sound.duration
    texts: list[tuple[str, float]] = [("", 0.0)]
    for part in parts:
        sums = ((_joined(t, u), s + v) for t, s in texts for u, v in part.texts)
        texts = heapq.nlargest(nbest, sums, key=lambda item: item[1])
    records = tuple(part.record for part in parts if part.record is not None)
    # A resampled piece may end a sample later than its source did.
    words = (
        replace(w, start=min(w.start, duration), end=min(w.end, duration))
        for part in parts
        for w in part.words
    )
    return Transcript(
        id=sound.id,
        # The words', not the best sum's: they are the same unless the search ranked two alike.
        text=" ".join(part.texts[0][0] for part in parts if part.texts[0][0]),
        words=tuple(words),
        duration=duration,
        score=sum(part.texts[0][1] for part in parts),
        audio=sound.path,
        sample_rate=sound.source_rate or sound.sample_rate,
        nbest=tuple(texts) if nbest > 1 and parts else (),
        attention=_overall(parts),
        warnings=(
            *sound.warnings,
            *warnings,
            *(w for part in parts for w in (*part.warnings, *part.unsure(least_confidence))),
        ),
        decoding={**decoding, "pieces": len(parts)},
        model=model,
        record=records[0] if len(records) == 1 else None,
        records=records,
    )


def _joined(first: str, second: str) -> str:
    return f"{first} {second}" if first and second else first or second


def _overall(parts: Sequence[Heard]) -> dict[str, float]:
    """Of the whole: shares as their mean over time, counts added, the worst of the rest."""
    if not parts:
        return {}
    total = sum(part.duration for part in parts)

    def mean(key: str) -> float:
        return sum(part.figures[key] * part.duration for part in parts) / total

    rules: dict[str, Callable[[str], float]] = {key: mean for key in _MEANS}
    rules |= {key: lambda key: sum(part.figures[key] for part in parts) for key in _SUMS}

    def worst(key: str) -> float:
        return max(part.figures[key] for part in parts)

    return {key: rules.get(key, worst)(key) for key in parts[0].figures}
