"""One HTML file in which attention can be seen and heard, with the network off.

Sound, spectrogram and weights are embedded; the page's content security policy forbids it to load
or send anything, and lets no script run but its own (see :mod:`asr.html`).
"""

from __future__ import annotations

import base64
import io
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from pathlib import Path
from typing import Any, Protocol

import soundfile
import torch
from markupsafe import Markup
from torch import Tensor

from asr import html
from asr.glimpses.timing import cells
from asr.inspection.diagnostics import MEANINGS, loud, measure
from asr.inspection.figures import show
from asr.inspection.listener import pooled
from asr.inspection.records import sound_of
from asr.inspection.saliency import cell_power
from asr.inspection.spectrogram import RANGE_DB, spectrogram_of
from asr.types import AttentionRecord, Seconds, Transcript, Waveform

#: Bytes above which a report goes on in another page.
PAGE_LIMIT = 20_000_000
#: Bands of frequency in which implicit attention is shown, at most.
_BANDS = 16


_SCRIPTS = (
    "theme.js", "player.js", "listener.js", "implicit.js", "view.js", "control.js", "start.js",
)  # fmt: skip


@dataclass(frozen=True)
class Entry:
    """One recording of a report.

    ``transcript`` has its ``record`` (see :func:`asr.inspection.records.by_piece`) unless it is
    empty; ``wave`` is the sound, of which the record's part is taken. ``reference`` is shown
    beside the text, where there is one. ``name`` and ``piece`` (from 1; 0 where nothing was heard)
    are not shown: :func:`asr.inspection.contents.contents` reads them. ``heads`` are the numbers
    of those that the record's listener matrices hold.
    """

    transcript: Transcript
    wave: Waveform
    reference: str = ""
    name: str = ""
    piece: int = 1
    heads: tuple[int, ...] = ()

    @property
    def record(self) -> AttentionRecord:
        """The transcript's, or an empty one where there was nothing to hear."""
        return self.transcript.record or _nothing(self.transcript)

    def fragment(self) -> str:
        """Its part of a page."""
        return fragment(self)


class Shown(Protocol):
    """What stands on a page: an :class:`Entry`, or a comparison of some."""

    def fragment(self) -> str: ...


def render(
    entries: Iterable[Shown], *, title: str = "Attention", previous: str = "", following: str = ""
) -> str:
    """A whole page for some recordings; ``previous`` and ``following`` name its neighbours."""
    return _assemble([entry.fragment() for entry in entries], title, previous, following)


def write(
    entries: Iterable[Shown],
    path: str | Path,
    *,
    title: str = "Attention",
    limit: int = PAGE_LIMIT,
    reserve: Callable[[Path], object] = lambda page: None,
) -> list[Path]:
    """Write ``report.html``, and ``report-2.html`` ... where one page would pass ``limit`` bytes.

    Neighbouring pages are linked. Entries are taken one at a time and a page is written as soon as
    it is full, each in one step, so that a reader never sees half of one. A recording that passes
    the limit alone gets a page of its own. ``reserve`` is told of every page but the first before
    the one that links to it is written, and may raise.

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
        html.write(name(number), page)
        pages.append(name(number))
        waiting.clear()

    for entry in entries:
        fragment = entry.fragment()
        bytes_ = len(fragment.encode(errors="replace"))
        if waiting and size + bytes_ > limit - _overhead():
            reserve(name(len(pages) + 2))
            flush(more=True)
            size = 0
        waiting.append(fragment)
        size += bytes_
    flush(more=False)
    return pages


def _assemble(fragments: Sequence[str], title: str, previous: str, following: str) -> str:
    return html.render(
        "asr.inspection",
        "report.html",
        styles=("base.css", "report.css"),
        scripts=_SCRIPTS,
        fragments=[Markup(fragment) for fragment in fragments],
        title=title,
        previous=previous,
        following=following,
    )


def fragment(
    entry: Entry,
    *,
    window: tuple[Seconds, Seconds] | None = None,
    label: str = "",
    sound: bool = True,
    table: bool = True,
) -> str:
    """An entry's part of a page.

    Args:
        window: start and end, in seconds of the file, of what the picture shows; the record's own
            when None.
        label: heads it in place of its id.
        sound: whether the recording can be heard: elsewhere on the page it is, if not here.
        table: whether the figures of its attention are shown.
    """
    transcript, record = entry.transcript, entry.record
    wave = sound_of(record, entry.wave)
    measures = transcript.attention if table else {}
    if table and record.tokens and not measures:
        measures = measure(record, loud(wave.samples, wave.sample_rate, record.frame_shift))
    start, duration = record.start, record.duration
    if window is not None:
        start, duration = window[0], window[1] - window[0]
        first, last = (round(second * wave.sample_rate) for second in window)
        wave = replace(wave, samples=entry.wave.samples[first:last])
    data = _data(record, transcript, wave, start, duration)
    data |= _listener(record, entry.heads) | _implicit(record)
    return (
        html.environment("asr.inspection")
        .get_template("entry.html")
        .render(
            transcript=transcript,
            record=record,
            label=label,
            reference=entry.reference,
            name=entry.name,
            piece=entry.piece,
            sound=_sound(wave) if sound else "",
            data=data,
            cell=round(data.get("cell", 0.0) / record.frame_shift),
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


def _data(
    record: AttentionRecord,
    transcript: Transcript,
    wave: Waveform,
    start: Seconds,
    duration: Seconds,
) -> dict[str, Any]:
    """What the page's script draws from; times in seconds from ``start``, that of ``wave``."""
    spectrogram = spectrogram_of(wave)
    levels = 255 * (1 + spectrogram.decibels / RANGE_DB)
    # Head first, so that one head is one image; a scale a row, and the root of what is left, keep
    # sharp and flat rows, strong and faint weights as good as exact.
    weights = record.weights.transpose(0, 1)
    scales = weights.amax(-1) if weights.shape[-1] else weights.new_zeros(weights.shape[:2])
    return {
        "start": start,
        "offset": record.start - start,
        "duration": duration,
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
        "words": [[word.word, word.start - start, word.end - start] for word in transcript.words],
    }


def _listener(record: AttentionRecord, heads: Sequence[int]) -> dict[str, Any]:
    """The listener's matrices as the script draws them, each head by itself."""
    shown: list[dict[str, Any]] = []
    frames = 1
    for name, matrix in record.listener.items():
        cells, frames = pooled(matrix)
        for place, weights in enumerate(cells):
            most = max(float(weights.max()) if weights.numel() else 0.0, 1e-12)
            shown.append(
                {
                    "name": f"{name}, head {heads[place] if heads else place}",
                    "size": weights.shape[-1],
                    "most": round(most, 6),
                    "weights": _bytes(255 * (weights / most).sqrt()),
                }
            )
    return {"listener": shown, "cell": frames * record.frame_shift} if shown else {}


def _implicit(record: AttentionRecord) -> dict[str, Any]:
    """Implicit attention: the root of the power in each encoder frame and band, low bands first.

    Each token's greatest is its scale; ``wide`` is the share of the mel axis that a band takes.
    """
    if record.saliency is None:
        return {}
    bins = record.saliency.jacobian.shape[2]
    wide = cells(bins, _BANDS)
    roots = cell_power(record, wide).sqrt()
    most = roots.amax((1, 2), keepdim=True) if roots.numel() else roots.new_ones(len(roots), 1, 1)
    levels = _bytes(255 * roots / most.clamp_min(1e-30))
    return {"implicit": {"bands": roots.shape[2], "wide": wide / bins, "roots": levels}}


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


@lru_cache(maxsize=1)
def _overhead() -> int:
    """Bytes of a page without recordings, names of its neighbours aside."""
    return len(_assemble([], "", "", "").encode()) + 2000
