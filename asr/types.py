"""Value objects that cross rooms.

Letters used for shapes all over the project: B utterances, N hypothesis rows (B x beam),
L samples, T feature frames, S encoder frames, U output tokens, F mel bins, C encoder width,
K key width, H query width, A attention heads, V vocabulary.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Any, Literal, NamedTuple, TypeAlias

from torch import Tensor

Seconds: TypeAlias = float

_EMPTY: Mapping[str, Tensor] = MappingProxyType({})


@dataclass(frozen=True)
class Waveform:
    """Mono sound at a model's rate, and where it came from.

    ``samples`` (L,) float32 in [-1, 1] at ``sample_rate`` Hz. ``source_rate`` and
    ``source_channels`` describe the file before resampling and mixing down, ``warnings`` what was
    wrong with it; its transcript repeats them.
    """

    samples: Tensor
    sample_rate: int
    id: str = ""
    path: str = ""
    source_rate: int = 0
    source_channels: int = 1
    warnings: tuple[TranscriptWarning, ...] = ()

    @property
    def duration(self) -> Seconds:
        return self.samples.shape[-1] / self.sample_rate


class Batch(NamedTuple):
    """Utterances of one training or decoding step, padded with zeros.

    ``waves`` (B,L) float32, ``wave_lengths`` (B,) samples, ``targets`` (B,U) token ids without
    ``<sos>``/``<eos>``, ``target_lengths`` (B,). ``references`` are the normalised texts.
    ``token_times`` (B,U,2), seconds, where each token's word starts and ends; None where unknown.
    """

    ids: tuple[str, ...]
    waves: Tensor
    wave_lengths: Tensor
    targets: Tensor
    target_lengths: Tensor
    references: tuple[str, ...]
    token_times: Tensor | None = None


class Encoded(NamedTuple):
    """What a listener hands on: ``states`` (B,S,C), ``lengths`` (B,).

    ``attention`` holds the self-attention matrices that were asked for by name, each (B,A,S,S).
    """

    states: Tensor
    lengths: Tensor
    attention: Mapping[str, Tensor] = _EMPTY


@dataclass(frozen=True)
class Word:
    """A word as produced: ``start`` and ``end`` in seconds, ``confidence`` in [0, 1]."""

    word: str
    start: Seconds
    end: Seconds
    confidence: float


@dataclass(frozen=True)
class Hypothesis:
    """One finished output sequence of a search.

    ``tokens`` (ids, ``<eos>`` excluded), ``score`` (what the search ranked by),
    ``log_probs`` of each token under the speller (``<eos>`` last, when it was produced), and the
    ``weights`` (U,A,S) with one row a produced token, the ``<eos>`` row kept.
    """

    tokens: tuple[int, ...]
    score: float
    log_probs: tuple[float, ...]
    weights: Tensor | None = None
    ended: bool = True
    terms: Mapping[str, Tensor] = field(default_factory=dict)


class Saliency(NamedTuple):
    """``jacobian`` (U,T,F): d log p(token u) / d glimpse (t, f); ``hop`` seconds a glimpse.

    See :mod:`asr.inspection.saliency`.
    """

    jacobian: Tensor
    hop: Seconds


class Listened(NamedTuple):
    """What of a piece a model was given: ``samples`` (L') at its rate.

    ``frames`` (S') says which frame of the piece each encoder frame of them is, -1 for silence
    that was put around it; frames of the piece that are not among them were left out.
    """

    samples: Tensor
    frames: Tensor


@dataclass(frozen=True)
class AttentionRecord:
    """The contract of everything that draws or measures attention.

    ``tokens`` as produced, the ``<eos>`` row kept; ``weights`` (U,A,S) float32 on the CPU, from the
    winning hypothesis; ``start`` of this piece in its file, ``frame_shift`` of one encoder frame
    after all subsampling and ``duration`` of the piece, in seconds. ``terms`` and ``listener``
    hold what a mechanism gives besides, and the listener's own matrices (A,S,S) by layer name.
    ``ids`` are the tokens' numbers; ``listened`` is there where the model was given anything but
    the piece as it is, ``saliency`` only where it was asked for. ``ctc_agreement`` is the share of
    the words that CTC hears in the same place (:mod:`asr.inspection.ctc_times`), None without CTC.
    """

    id: str
    mode: Literal["free", "forced"]
    tokens: tuple[str, ...]
    weights: Tensor
    start: Seconds
    frame_shift: Seconds
    duration: Seconds
    terms: Mapping[str, Tensor] = field(default_factory=dict)
    listener: Mapping[str, Tensor] = field(default_factory=dict)
    ids: tuple[int, ...] = ()
    listened: Listened | None = None
    saliency: Saliency | None = None
    ctc_agreement: float | None = None


@dataclass(frozen=True)
class TranscriptWarning:
    """Something the user should know about a result; ``start`` and ``end`` in seconds."""

    code: str
    message: str
    start: Seconds | None = None
    end: Seconds | None = None


@dataclass(frozen=True)
class Transcript:
    """The result for one input, and everything needed to judge it.

    ``score`` is the search's score of the winner; ``attention`` the health figures of
    :mod:`asr.inspection.diagnostics`. ``records`` are there only where they were asked for, one
    for each piece that long audio was cut into; ``record`` where there is exactly one.
    """

    id: str
    text: str
    words: tuple[Word, ...]
    duration: Seconds
    score: float = 0.0
    audio: str = ""
    sample_rate: int = 0
    nbest: tuple[tuple[str, float], ...] = ()
    attention: Mapping[str, float] = field(default_factory=dict)
    warnings: tuple[TranscriptWarning, ...] = ()
    decoding: Mapping[str, Any] = field(default_factory=dict)
    model: Mapping[str, str] = field(default_factory=dict)
    record: AttentionRecord | None = None
    records: tuple[AttentionRecord, ...] = ()
