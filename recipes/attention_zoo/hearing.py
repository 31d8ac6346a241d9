"""What a trained model makes of the test sets by its attention, and how well it listens."""

from __future__ import annotations

import statistics
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, NamedTuple

import torch
from torch import Tensor

from asr import evaluation
from asr.data import manifest
from asr.data.dataset import ManifestDataset
from asr.data.manifest import Utterance
from asr.glimpses.timing import frame_centre
from asr.inference.bundle import Bundle
from asr.inspection import diagnostics
from asr.inspection.records import record_of
from asr.inspection.saliency import implicit, overlap, with_saliency
from asr.inspection.timing import word_times
from asr.nn.attention import LocationAware
from asr.nn.las import LAS
from asr.search import SearchOptions, search
from asr.text import EOS
from asr.types import AttentionRecord, Seconds, Waveform, Word

#: length group -> its manifest, in the order of the table
GROUPS = {"1-8": "test.jsonl", "9-15": "test-9-15.jsonl", "16-25": "test-16-25.jsonl"}
#: by attention alone, and as the product decodes by default; digits have 0.3 tokens a frame
DECODINGS = {
    "attention": SearchOptions(ctc_weight=0.0, max_tokens_per_frame=0.6),
    "with_ctc": SearchOptions(max_tokens_per_frame=0.6),
}
#: how far from the last place a mechanism that can be held back may look, where it is
WINDOW: Seconds = 1.0
#: utterances of which derivatives are taken
EXPLAINED = 20
#: how far outside its word a letter may listen
MARGIN: Seconds = 0.05


class Sound(NamedTuple):
    """An utterance, its text as scored, and its samples."""

    utterance: Utterance
    text: str
    wave: Waveform


class Attempt(NamedTuple):
    """What a model made of a sound, with its attention and the figures of it."""

    text: str
    words: tuple[Word, ...]
    record: AttentionRecord
    figures: Mapping[str, float]


def sounds(path: Path, bundle: Bundle, seconds: Seconds) -> Iterator[list[Sound]]:
    """The utterances of a manifest in batches of ``seconds`` each, longest first."""
    utterances = manifest.read(path)
    by_id = {utterance.id: utterance for utterance in utterances}
    rate = bundle.model.sample_rate
    batches = ManifestDataset(utterances, bundle.tokenizer, rate).batches(seconds)
    for index in range(len(batches)):
        batch = batches[index]
        each = zip(batch.ids, batch.references, batch.waves, batch.wave_lengths, strict=True)
        yield [
            Sound(by_id[id], text, Waveform(wave[: int(length)], rate, id))
            for id, text, wave, length in each
        ]


@torch.inference_mode()
def decode(bundle: Bundle, batch: Sequence[Sound], options: SearchOptions) -> list[Attempt]:
    """As the whole of a recording is heard: in one piece, whatever its attention looks like."""
    waves = [sound.wave.samples for sound in batch]
    lengths = torch.tensor([len(wave) for wave in waves])
    encoded = bundle.model.encode(torch.nn.utils.rnn.pad_sequence(waves, True), lengths)
    found = search(bundle.model, encoded, options.resolve(has_ctc=bundle.model.ctc is not None))
    attempts = []
    for (best, *_), wave, sound in zip(found, waves, batch, strict=True):
        model, tokenizer = bundle.model, bundle.tokenizer
        duration = sound.wave.duration
        record = record_of(sound.wave.id, best, tokenizer, model, duration)
        spans = tokenizer.words(best.tokens)
        shift = bundle.settings.onset_shift
        words = word_times(record, spans, best.log_probs, onset_shift=shift)
        loud = diagnostics.loud(wave, model.sample_rate, record.frame_shift)
        figures = diagnostics.measure(record, loud)
        attempts.append(Attempt(" ".join(w.word for w in words), words, record, figures))
    return attempts


@contextmanager
def held_back(model: LAS) -> Iterator[bool]:
    """A model whose attention looks no further than :data:`WINDOW` from where it was before; False
    where the mechanism has no such option. It holds in decoding alone, so nothing is trained anew.
    """
    attention = model.speller.attention
    if not isinstance(attention, LocationAware):
        yield False
        return
    kept, attention.window = attention.window, round(WINDOW / model.frame_shift)
    try:
        yield True
    finally:
        attention.window = kept


def measure(bundle: Bundle, data: Path, *, seconds: Seconds = 60.0) -> dict[str, Any]:
    """Everything about one model, JSON-ready: by length group and decoding, and in detail.

    Decodings are those of :data:`DECODINGS`, and ``windowed`` where :func:`held_back` can do it.

    Errors; word onsets against the truth (of utterances without an error); the share of steps
    forward (``monotonicity``) and of the sound that was heard (``coverage``), mean over utterances;
    of the first group also :func:`explain`.
    """
    groups: dict[str, Any] = {}
    for group, name in GROUPS.items():
        truth: dict[str, list[tuple[str, Seconds]]] = {}
        references: dict[str, str] = {}
        found: dict[str, dict[str, Attempt]] = {decoding: {} for decoding in DECODINGS}
        windowed: dict[str, Attempt] = {}
        explained: list[dict[str, float]] = []
        for batch in sounds(data / name, bundle, seconds):
            references |= {sound.utterance.id: sound.text for sound in batch}
            for sound in batch:
                words = sound.utterance.words
                truth[sound.utterance.id] = [(word.word, word.start) for word in words]
            for decoding, options in DECODINGS.items():
                done = decode(bundle, batch, options)
                found[decoding] |= {h.record.id: h for h in done}
            with held_back(bundle.model) as held:
                if held:
                    done = decode(bundle, batch, DECODINGS["attention"])
                    windowed |= {h.record.id: h for h in done}
            if group == next(iter(GROUPS)) and len(explained) < EXPLAINED:
                done = [found["attention"][sound.utterance.id] for sound in batch]
                rows = (explain(bundle, *pair) for pair in zip(batch, done, strict=True))
                explained += [row for row in rows if row][: EXPLAINED - len(explained)]
        if windowed:
            found["windowed"] = windowed
        groups[group] = {
            decoding: _figures(references, truth, attempts) for decoding, attempts in found.items()
        }
        if explained:
            groups[group]["explained"] = {
                key: statistics.mean(row[key] for row in explained) for key in explained[0]
            } | {"utterances": len(explained)}
    return groups


def _figures(
    references: Mapping[str, str],
    truth: Mapping[str, Sequence[tuple[str, Seconds]]],
    found: Mapping[str, Attempt],
) -> dict[str, Any]:
    texts = {id: attempt.text for id, attempt in found.items()}
    report = evaluation.score(references, texts, ci=None)
    words = {id: [(word.word, word.start) for word in h.words] for id, h in found.items()}
    onsets = evaluation.onset_errors(truth, words)
    names = ("wer", "substitutions", "deletions", "insertions", "reference_words")
    return {
        **{name: getattr(report, name) for name in names},
        "utterances": len(references),
        "onset_median": onsets.median,
        "onset_within": onsets.within,
        "onset_words": onsets.words,
        **{
            name: statistics.mean(h.figures[name] for h in found.values())
            for name in ("monotonicity", "coverage")
        },
    }


def explain(bundle: Bundle, sound: Sound, found: Attempt) -> dict[str, float] | None:
    """Explicit beside implicit attention of an utterance without an error; None with one.

    ``explicit_inside`` and ``implicit_inside``: how much of the attention of a word's letters lies
    within the word as it was really said, or :data:`MARGIN` from it; ``overlap``: how alike the two
    are (1 where they are the same), mean over letters.
    """
    words = sound.utterance.words
    if [word.word for word in words] != [word.word for word in found.words] or not words:
        return None
    record = with_saliency(found.record, bundle.model, sound.wave)
    explicit, implied = record.weights.mean(1), implicit(record)
    centres = frame_centre(torch.arange(explicit.shape[1]), record.frame_shift)
    inside: dict[str, list[Tensor]] = {"explicit": [], "implicit": []}
    rows: list[int] = []
    written = bundle.tokenizer.words([id for id in record.ids if id != EOS])
    for word, (_, first, past) in zip(words, written, strict=True):
        within = (centres >= word.start - MARGIN) & (centres <= word.end + MARGIN)
        inside["explicit"].append((explicit[first:past] * within).sum(1))
        inside["implicit"].append((implied[first:past] * within).sum(1))
        rows += range(first, past)
    return {
        **{f"{name}_inside": float(torch.cat(parts).mean()) for name, parts in inside.items()},
        "overlap": float(overlap(explicit, implied)[rows].mean()),
    }
