"""Validation as the model will be used: free-running, greedy, in batches."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import NamedTuple

import torch

from asr.evaluation import score
from asr.inspection import diagnostics
from asr.inspection.records import record_of
from asr.nn.las import LAS
from asr.search import greedy
from asr.text import Tokenizer
from asr.types import AttentionRecord, Batch, Encoded, Hypothesis

#: attention figures that are logged, of those :func:`asr.inspection.diagnostics.measure` gives
HEALTH = ("relative_entropy", "monotonicity", "coverage")


class Decoded(NamedTuple):
    """One validation utterance: what was said, what was written, and where it was heard."""

    id: str
    reference: str
    text: str
    record: AttentionRecord


@torch.no_grad()
def decode(model: LAS, tokenizer: Tokenizer, batch: Batch, encoded: Encoded) -> list[Decoded]:
    """Greedy transcripts of a batch, each with the attention that wrote it."""
    return decoded(model, tokenizer, batch, greedy(model, encoded))


def decoded(
    model: LAS, tokenizer: Tokenizer, batch: Batch, hypotheses: Sequence[Hypothesis]
) -> list[Decoded]:
    """Hypotheses of a batch with what is needed to score and to draw them."""
    durations = (batch.wave_lengths / model.sample_rate).tolist()
    return [
        Decoded(
            id,
            reference,
            tokenizer.decode(hypothesis.tokens),
            record_of(id, hypothesis, tokenizer, model, duration),
        )
        for id, reference, hypothesis, duration in zip(
            batch.ids, batch.references, hypotheses, durations, strict=True
        )
    ]


def summarise(decoded: Iterable[Decoded]) -> dict[str, float]:
    """``wer`` and ``cer`` (fractions, of all words together), and the mean of each of HEALTH."""
    decoded = list(decoded)
    if not decoded:
        return {}
    report = score({d.id: d.reference for d in decoded}, {d.id: d.text for d in decoded}, ci=None)
    measured = [diagnostics.measure(d.record) for d in decoded if len(d.record.tokens) > 1]
    health = {
        name: sum(m[name] for m in measured) / len(measured) if measured else 0.0 for name in HEALTH
    }
    # Without a single reference word there is no rate; inserted words still must not look perfect.
    wrong = float(report.insertions > 0)
    wer = report.wer if report.wer is not None else wrong
    cer = report.cer if report.cer is not None else wrong
    return {"wer": wer, "cer": cer, **health}


def alignment_warning(metrics: dict[str, float], progress: float) -> str | None:
    """A line that names the remedy where attention should have formed by now and has not.

    A fifth of the run is what is granted. The alignment counts as unformed while WER is above one
    half and the speller either listens everywhere at once or jumps about.
    """
    if progress < 0.2 or metrics.get("wer", 0.0) <= 0.5:
        return None
    blurred = metrics["relative_entropy"] > 0.8
    if not blurred and metrics["monotonicity"] >= 0.7:
        return None
    seen = (
        f"spread over the whole utterance (relative entropy {metrics['relative_entropy']:.2f})"
        if blurred
        else f"jumping back and forth (monotonicity {metrics['monotonicity']:.2f})"
    )
    return (
        f"the attention has not aligned after {progress:.0%} of the run: it is {seen}. Try a "
        "higher --model.guided_attention or a longer --model.guided_share, "
        "--model.ctc_weight=0.3, shorter training utterances first, or a lower "
        "--model.learning_rate"
    )
