"""One HTML file in which attention can be seen and heard, with the network off.

Sound, spectrogram and weights are embedded; the page's content security policy forbids it to load
or send anything, and lets no script run but its own. Text comes from files and models, so it is
never trusted: jinja2 escapes it in the markup and in the embedded data alike.
"""

from __future__ import annotations

import base64
import hashlib
import io
import os
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Any

import jinja2
import soundfile
import torch
from markupsafe import Markup
from torch import Tensor

from asr.inspection.diagnostics import MEANINGS, loud, measure
from asr.inspection.figures import show
from asr.inspection.records import sound_of
from asr.inspection.spectrogram import RANGE_DB, spectrogram_of
from asr.types import AttentionRecord, Transcript, Waveform

#: Bytes above which a report goes on in another page.
PAGE_LIMIT = 20_000_000
SCRIPTS = ("player.js", "view.js", "control.js")


@dataclass(frozen=True)
class Entry:
    """One recording of a report.

    ``transcript`` has its ``record`` (see :func:`asr.inspection.records.by_piece`) unless it is
    empty; ``wave`` is the sound, of which the record's part is taken. ``reference`` is shown
    beside the text, where there is one.
    """

    transcript: Transcript
    wave: Waveform
    reference: str = ""


def render(
    entries: Iterable[Entry], *, title: str = "Attention", previous: str = "", following: str = ""
) -> str:
    """A whole page for some recordings; ``previous`` and ``following`` name its neighbours."""
    return _assemble([_fragment(entry) for entry in entries], title, previous, following)


def write(
    entries: Iterable[Entry],
    path: str | Path,
    *,
    title: str = "Attention",
    limit: int = PAGE_LIMIT,
) -> list[Path]:
    """Write ``report.html``, and ``report-2.html`` ... where one page would pass ``limit`` bytes.

    Neighbouring pages are linked. Entries are taken one at a time and a page is written as soon as
    it is full, each in one step, so that a reader never sees half of one. A recording that passes
    the limit alone gets a page of its own.

    Returns:
        The pages, in order. There is one, which says so, even where there was nothing to show.
    """
    path = Path(path)
    pages: list[Path] = []
    waiting: list[str] = []
    size = 0

    def name(number: int) -> Path:
        return path if number == 1 else path.with_stem(f"{path.stem}-{number}")

    def flush(*, more: bool) -> None:
        number = len(pages) + 1
        page = _assemble(
            waiting,
            title if number == 1 else f"{title} ({number})",
            name(number - 1).name if number > 1 else "",
            name(number + 1).name if more else "",
        )
        _replace(name(number), page)
        pages.append(name(number))
        waiting.clear()

    for entry in entries:
        fragment = _fragment(entry)
        bytes_ = len(fragment.encode(errors="replace"))
        if waiting and size + bytes_ > limit - _overhead():
            flush(more=True)
            size = 0
        waiting.append(fragment)
        size += bytes_
    flush(more=False)
    return pages


def _replace(path: Path, text: str) -> None:
    partial = path.with_name(f".{path.name}.partial")
    try:
        # A file name's bytes that are not text are shown as escapes.
        partial.write_text(text, encoding="utf-8", errors="backslashreplace")
        os.replace(partial, path)
    finally:
        partial.unlink(missing_ok=True)


def _assemble(fragments: Sequence[str], title: str, previous: str, following: str) -> str:
    style, script = _asset("report.css"), "".join(map(_asset, SCRIPTS))
    return (
        _templates()
        .get_template("report.html")
        .render(
            fragments=[Markup(fragment) for fragment in fragments],
            title=title,
            previous=previous,
            following=following,
            style=Markup(style),
            script=Markup(script),
            style_hash=_hash(style),
            script_hash=_hash(script),
        )
    )


def _fragment(entry: Entry) -> str:
    transcript = entry.transcript
    record = transcript.record or _nothing(transcript)
    wave = sound_of(record, entry.wave)
    measures = transcript.attention
    if record.tokens and not measures:
        measures = measure(record, loud(wave.samples, wave.sample_rate, record.frame_shift))
    return (
        _templates()
        .get_template("entry.html")
        .render(
            transcript=transcript,
            record=record,
            reference=entry.reference,
            sound=_sound(wave),
            data=_data(record, transcript, wave),
            measures=[
                (MEANINGS[name].label, show(name, value), MEANINGS[name].text)
                for name, value in measures.items()
                if name in MEANINGS
            ],
            facts=list(_facts(transcript, record)),
        )
    )


def _nothing(transcript: Transcript) -> AttentionRecord:
    """The record of sound in which there was nothing to hear, and nothing was written."""
    if transcript.text:
        raise ValueError(f"{transcript.id}: transcribe with record=True, each piece by itself")
    weights = torch.zeros(0, 1, 0)
    return AttentionRecord(transcript.id, "free", (), weights, 0.0, 0.04, transcript.duration)


def _facts(transcript: Transcript, record: AttentionRecord) -> Iterator[tuple[str, str]]:
    yield "length", f"{record.duration:.2f} s"
    yield "tokens", str(len(record.tokens))
    if record.tokens:
        yield "one frame", f"{1000 * record.frame_shift:.0f} ms"
    if transcript.model:
        yield "model", " ".join(str(value)[:16] for value in transcript.model.values())
    for key, value in transcript.decoding.items():
        yield key.replace("_", " "), f"{value:g}" if isinstance(value, float) else str(value)


def _data(record: AttentionRecord, transcript: Transcript, wave: Waveform) -> dict[str, Any]:
    """What the page's script draws from; times in seconds within the piece."""
    spectrogram = spectrogram_of(wave)
    levels = 255 * (1 + spectrogram.decibels / RANGE_DB)
    # Head first, so that one head is one image; a scale a row, and the root of what is left, keep
    # sharp and flat rows, strong and faint weights as good as exact.
    weights = record.weights.transpose(0, 1)
    scales = weights.amax(-1) if weights.shape[-1] else weights.new_zeros(weights.shape[:2])
    return {
        "start": record.start,
        "duration": record.duration,
        "shift": record.frame_shift,
        "hop": spectrogram.hop,
        "hertz": spectrogram.frequencies,
        "decibels": RANGE_DB,
        "spectrogram": _bytes(levels),
        "tokens": record.tokens,
        "heads": weights.shape[0],
        "frames": weights.shape[-1],
        "weights": _bytes(255 * (weights / scales.clamp_min(1e-12).unsqueeze(-1)).sqrt()),
        "scales": [[round(scale, 6) for scale in head] for head in scales.tolist()],
        "words": [
            [word.word, word.start - record.start, word.end - record.start]
            for word in transcript.words
        ],
    }


def _bytes(levels: Tensor) -> str:
    numbers = levels.round().clamp(0, 255).to(torch.uint8).contiguous().numpy()
    return base64.b64encode(numbers.tobytes()).decode()


def _sound(wave: Waveform) -> str:
    """FLAC, which every browser plays, as a data URI; empty where there is no sound."""
    if wave.samples.numel() == 0:
        return ""
    file = io.BytesIO()
    samples = wave.samples.clamp(-1, 1).numpy()
    soundfile.write(file, samples, wave.sample_rate, format="FLAC", subtype="PCM_16")
    return "data:audio/flac;base64," + base64.b64encode(file.getvalue()).decode()


def _hash(text: str) -> str:
    return "sha256-" + base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()


@lru_cache(maxsize=1)
def _overhead() -> int:
    """Bytes of a page without recordings, names of its neighbours aside."""
    return len(_assemble([], "", "", "").encode()) + 2000


@lru_cache(maxsize=1)
def _templates() -> jinja2.Environment:
    return jinja2.Environment(
        loader=jinja2.PackageLoader("asr.inspection"),
        autoescape=True,
        trim_blocks=True,
        lstrip_blocks=True,
        undefined=jinja2.StrictUndefined,
    )


@lru_cache(maxsize=4)
def _asset(name: str) -> str:
    loader = _templates().loader
    assert loader is not None
    return loader.get_source(_templates(), name)[0]
