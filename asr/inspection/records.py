"""From the winner of a search to the record that everything here draws or measures."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, BinaryIO, Literal

import numpy as np
import torch
from torch import Tensor

from asr.glimpses.timing import frame_end
from asr.text import EOS, Tokenizer
from asr.types import AttentionRecord, Hypothesis, Seconds, Transcript, Waveform

if TYPE_CHECKING:
    from asr.nn.las import LAS

#: how far from one a row of float32 weights may sum (they may have been computed in half precision)
SUM_TOLERANCE = 1e-3


def record_of(
    id: str,
    hypothesis: Hypothesis,
    tokenizer: Tokenizer,
    model: LAS,
    duration: Seconds,
    *,
    start: Seconds = 0.0,
    mode: Literal["free", "forced"] = "free",
    listener: Mapping[str, Tensor] = MappingProxyType({}),
) -> AttentionRecord:
    """The attention of a hypothesis as it was produced, checked by :func:`validate`.

    ``hypothesis.weights`` (U,A,S) may carry the padding of its batch: frames past the end of the
    audio are cut off, after making sure that nothing was attended there.

    Args:
        duration: of the piece, in seconds; ``start``: where the piece begins in its file.
        mode: ``forced`` where the tokens were dictated rather than chosen by the model.
        listener: self-attention matrices (A,S,S) by layer name.

    Raises:
        ValueError: no weights were kept, or :func:`validate` finds them wrong.
    """
    if hypothesis.weights is None:
        raise ValueError(f"{id}: this hypothesis was searched without keeping its weights")
    ids = (*hypothesis.tokens, EOS) if hypothesis.ended else tuple(hypothesis.tokens)
    tokens = tuple(tokenizer.token(token) for token in ids)
    weights = hypothesis.weights.detach().to("cpu", torch.float32)
    real = frames_within(duration, model.frame_shift)
    if weights.shape[-1] > real and not weights[..., real:].any():
        weights = weights[..., :real]
    record = AttentionRecord(
        id=id,
        mode=mode,
        tokens=tokens,
        weights=weights,
        start=start,
        frame_shift=model.frame_shift,
        duration=duration,
        terms={name: term.detach().cpu() for name, term in hypothesis.terms.items()},
        listener={name: matrix.detach().cpu() for name, matrix in listener.items()},
        ids=ids,
    )
    return validate(record, normalised=model.speller.attention.normalised)


def frames_within(duration: Seconds, shift: Seconds) -> int:
    """How many frames it takes to cover the audio: the last one ends less than a shift after it."""
    # The small pull undoes binary fractions such as 0.29 / 0.01 = 29.000...04
    return -int(-(duration / shift - 1e-6) // 1) if duration > 0 else 0


def validate(record: AttentionRecord, *, normalised: bool = True) -> AttentionRecord:
    """The record itself, if it can be believed; a picture of wrong weights is worse than none.

    Args:
        normalised: whether each row must sum to one. Monotonic mechanisms (Raffel et al. 2017)
            may stop before they chose a frame, so theirs may sum to less, never to more.

    Raises:
        ValueError: names the record and what does not hold.
    """
    weights, name = record.weights, record.id or "record"
    if weights.ndim != 3:
        raise ValueError(f"{name}: weights have shape {tuple(weights.shape)}; (U,A,S) is needed")
    rows, _, frames = weights.shape
    if rows != len(record.tokens):
        raise ValueError(f"{name}: {rows} rows of weights for {len(record.tokens)} tokens")
    if not torch.isfinite(weights).all() or (weights < 0).any():
        raise ValueError(f"{name}: weights must be finite and not negative")
    sums = weights.sum(-1)
    if frames and (sums > 1 + SUM_TOLERANCE).any():
        raise ValueError(f"{name}: a row sums to {float(sums.max()):.4f}; at most 1 is right")
    if frames and normalised and (sums < 1 - SUM_TOLERANCE).any():
        raise ValueError(f"{name}: a row sums to {float(sums.min()):.4f}; 1 is right")
    end = frame_end(frames - 1, record.frame_shift)
    if abs(end - record.duration) > record.frame_shift + 1e-6:
        raise ValueError(
            f"{name}: {frames} frames of {record.frame_shift} s end at {end:.3f} s, "
            f"more than a frame away from the audio's end at {record.duration:.3f} s"
        )
    return record


def by_piece(transcript: Transcript) -> list[Transcript]:
    """One transcript for each piece that was listened to by itself, with its own record.

    Long sound is transcribed in pieces, each with an attention of its own; a transcript of one
    piece comes back as it is. The others' figures are left empty: those of the whole say nothing
    about a part. Times stay those of the file.
    """
    if len(transcript.records) <= 1:
        return [transcript]
    pieces = []
    for record in transcript.records:
        start, end = record.start, record.start + record.duration
        words = tuple(word for word in transcript.words if start <= word.start < end)
        warnings = tuple(
            warning
            for warning in transcript.warnings
            if warning.start is None or start <= warning.start < end
        )
        pieces.append(
            replace(
                transcript,
                text=" ".join(word.word for word in words),
                words=words,
                warnings=warnings,
                attention={},
                record=record,
                records=(record,),
            )
        )
    return pieces


def sound_of(record: AttentionRecord, wave: Waveform) -> Waveform:
    """The part of a wave that a record is about; a wave no longer than the record is that part."""
    length = round(record.duration * wave.sample_rate)
    if wave.samples.shape[-1] <= length:
        return wave
    first = round(record.start * wave.sample_rate)
    return replace(wave, samples=wave.samples[first : first + length])


def save(
    record: AttentionRecord, file: str | Path | BinaryIO, *, heads: Sequence[int] = ()
) -> None:
    """Write a record as a compressed ``.npz`` of plain arrays, which numpy reads without pickle.

    ``weights`` (U,A,S), ``tokens`` (U,), ``id``, ``mode``, and in seconds ``start``,
    ``frame_shift`` and ``duration``; further ``terms/NAME`` and ``listener/NAME`` (A,S,S), with
    ``listener_heads`` (A,), the numbers of those heads, where ``heads`` tells. Where it was asked
    for, ``saliency`` (U,T,F), in half precision, and the seconds of its frames, ``saliency_shift``.
    """
    arrays: dict[str, Any] = {
        "id": np.array(record.id),
        "mode": np.array(record.mode),
        "tokens": np.array(record.tokens, dtype=np.str_),
        "weights": record.weights.numpy(),
        "start": np.array(record.start),
        "frame_shift": np.array(record.frame_shift),
        "duration": np.array(record.duration),
    }
    for group in ("terms", "listener"):
        for name, tensor in getattr(record, group).items():
            arrays[f"{group}/{name}"] = tensor.float().numpy()
    if record.saliency is not None:
        arrays["saliency"] = record.saliency.jacobian.half().numpy()
        arrays["saliency_shift"] = np.array(record.saliency.hop)
    if record.listener and heads:
        arrays["listener_heads"] = np.array(heads)
    if isinstance(file, str | Path):  # by itself numpy would add a suffix that is not there
        with open(file, "wb") as opened:
            np.savez_compressed(opened, **arrays)
    else:
        np.savez_compressed(file, **arrays)
