"""Implicit attention: what each token's probability depends on, whatever attends.

Any trained network already attends: the derivative of an output with respect to each part of the
input says how much it relies on it (Simonyan et al. 2014, sect. 3; of attention in general, Graves
2016). Here it is the Jacobian of log p(token | tokens before it, sound) with respect to the
glimpses, and can be laid beside the explicit attention of the same token.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

import torch
from torch import Tensor

from asr.glimpses.timing import cells, shift_of
from asr.inspection.records import sound_of
from asr.text import EOS
from asr.types import AttentionRecord, Saliency, Transcript, Waveform

if TYPE_CHECKING:
    from asr.nn.las import LAS

#: glimpse cells (T x F, times tokens) whose derivatives are computed at once; each takes about 50
#: bytes on the way through the listener, so this is some 100 MB
AT_ONCE = 2_000_000


def jacobian(
    model: LAS,
    samples: Tensor,
    tokens: Sequence[int],
    *,
    first: int = 0,
    last: int | None = None,
    at_once: int = AT_ONCE,
) -> Tensor:
    """d log p(tokens[u] | tokens[:u], sound) / d glimpse, for u from ``first`` up to ``last``.

    Args:
        model: in eval mode: nothing dropped, nothing drawn, the rule of decoding. Where that rule
            takes one glimpse (hard, monotonic) the choice itself has no derivative; what is left
            is what was heard there.
        samples: (L,) of one utterance at the model's rate.
        tokens: ids as written, ``<eos>`` included where it ended.
        first, last: the span of tokens; to the end when ``last`` is None.
        at_once: bounds memory: tokens are taken in chunks of ``at_once / (T F)``, each one
            batched backward pass through the graph of a single forward pass.

    Returns:
        (last - first, T, F) float32, or float64 of a model in float64, on the CPU. The glimpses
        are those that the listener is given: log-mel, normalised as the front end does.

    Raises:
        ValueError: the model is in training mode, or the span is not within the tokens.
    """
    last = len(tokens) if last is None else last
    if model.training:
        raise ValueError("the model is in training mode: derivatives of what it draws mean nothing")
    if not 0 <= first <= last <= len(tokens):
        raise ValueError(f"tokens {first} to {last}: there are {len(tokens)}")
    place = next(model.parameters())
    written = torch.tensor([tokens[:last]], dtype=torch.long, device=place.device)
    lengths = torch.tensor([samples.shape[-1]], device=place.device)
    with torch.no_grad():
        frames, sizes = model.frontend(samples[None].to(place.device), lengths)
    frames = frames.to(place.dtype)
    if first == last or not frames.shape[1]:
        return frames.new_zeros(last - first, *frames.shape[1:]).cpu()
    with torch.enable_grad():
        frames = frames.clone().requires_grad_()
        inputs = torch.cat([written.new_full((1, 1), EOS), written[:, :-1]], 1)
        encoded = model.encoder(frames, sizes)
        spelled = model.speller(encoded, inputs, torch.tensor([last], device=place.device))
        log_probs = torch.log_softmax(spelled.logits, -1).gather(-1, written.unsqueeze(-1))
        scores = log_probs[0, first:, 0]
        which = torch.eye(len(scores), dtype=scores.dtype, device=place.device)
        rows = max(1, at_once // frames[0].numel())
        done = [
            torch.autograd.grad(scores, frames, chunk, retain_graph=True, is_grads_batched=True)[0][
                :, 0
            ].cpu()
            for chunk in which.split(rows)
        ]
    return torch.cat(done)


def with_saliency(record: AttentionRecord, model: LAS, wave: Waveform) -> AttentionRecord:
    """The record with its ``saliency``: of all its tokens, each under the hypothesis' own prefix.

    ``wave`` is the record's own piece of sound (:func:`asr.inspection.records.sound_of`). Glimpses
    of it that the model was not given have derivative 0. ValueError where the record does not know
    its tokens' ids, or the wave has another rate.
    """
    if len(record.ids) != len(record.tokens):
        raise ValueError(f"{record.id}: {len(record.ids)} ids for {len(record.tokens)} tokens")
    if wave.sample_rate != model.sample_rate:
        raise ValueError(f"{record.id}: {wave.sample_rate} Hz; {model.sample_rate} Hz is needed")
    hop = shift_of(model.frontend.hop, model.sample_rate)
    if record.listened is None:
        return replace(record, saliency=Saliency(jacobian(model, wave.samples, record.ids), hop))
    found = jacobian(model, record.listened.samples, record.ids)
    # Encoder frames are blocks of as many glimpses in both; a last one may lack some.
    tall = model.encoder.subsampling
    inside = torch.arange(found.shape[1])
    frames = record.listened.frames[inside // tall]
    places = frames * tall + inside % tall
    size = cells(wave.samples.shape[-1], model.frontend.hop)
    own = (frames >= 0) & (places < size)
    placed = found.new_zeros(found.shape[0], size, found.shape[2])
    placed[:, places[own]] = found[:, own]
    return replace(record, saliency=Saliency(placed, hop))


def explained(transcript: Transcript, model: LAS, wave: Waveform) -> Transcript:
    """A transcript whose records have their saliency; ``wave`` is the whole sound."""
    records = tuple(
        with_saliency(record, model, sound_of(record, wave)) for record in transcript.records
    )
    return replace(transcript, records=records, record=records[0] if len(records) == 1 else None)


def implicit(record: AttentionRecord) -> Tensor:
    """The record's saliency as attention over encoder frames: (U,S), rows that sum to one.

    The weight of a frame is the root of the sum of squares over its cell: how far log p can move,
    to first order, when the glimpses move that the frame stands for. A row without any derivative
    is all zeros. ValueError for a record without saliency.
    """
    strength = cell_power(record).sum(2).sqrt()
    total = strength.sum(1, keepdim=True)
    return strength / torch.where(total > 0, total, 1.0)


def cell_power(record: AttentionRecord, wide: int = 1) -> Tensor:
    """The sum of squared derivatives in each encoder frame and band: (U,S,ceil(F / wide)).

    A band is ``wide`` neighbouring bins of the front end; the last may have fewer.
    """
    if record.saliency is None:
        raise ValueError(f"{record.id}: there is no saliency in this record")
    jacobian, hop = record.saliency
    tokens, size, bins = jacobian.shape
    frames = record.weights.shape[-1]
    bands = cells(bins, wide)
    if not size:
        return jacobian.new_zeros(tokens, frames, bands)
    tall = round(record.frame_shift / hop)
    margins = (0, wide * bands - bins, 0, tall * frames - size)
    power = torch.nn.functional.pad(jacobian.square(), margins)
    return power.reshape(tokens, frames, tall, bands, wide).sum((2, 4))


def overlap(explicit: Tensor, implied: Tensor) -> Tensor:
    """How alike two attentions (U,S) are: sum_s min(a_s, b_s), (U,); 1 where they are the same."""
    return torch.minimum(explicit, implied).sum(-1)
