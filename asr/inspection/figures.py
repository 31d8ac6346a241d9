"""Attention under the spectrogram it listened to, on one axis in seconds.

Figures are made with matplotlib's objects and never registered with pyplot, so nothing piles up:
they are gone with their last reference.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, BinaryIO

import matplotlib as mpl
from matplotlib.axes import Axes
from matplotlib.colors import LinearSegmentedColormap, PowerNorm
from matplotlib.figure import Figure
from matplotlib.ticker import FixedLocator, FuncFormatter, MaxNLocator

from asr.glimpses.timing import frame_end
from asr.inspection.diagnostics import MEANINGS
from asr.inspection.fonts import MONO, SANS, drawable
from asr.inspection.spectrogram import RANGE_DB, Spectrogram
from asr.types import AttentionRecord, Word

MODES = {
    "free": "free-running: the model's own text",
    "forced": "FORCED: the text was dictated, not recognised",
}
INK, FAINT, RULE, ACCENT = "#1d1b26", "#7a7788", "#d9d6e0", "#0f9d94"
HEAT = LinearSegmentedColormap.from_list(
    "attention", ["#ffffff", "#fbd3bd", "#ee6a63", "#93298a", "#1d1147"]
)
STYLE: Any = {
    "font.family": SANS,
    "font.size": 8.5,
    "text.color": INK,
    "axes.edgecolor": RULE,
    "axes.labelcolor": FAINT,
    "axes.linewidth": 0.8,
    "xtick.color": FAINT,
    "ytick.color": FAINT,
    "xtick.major.size": 3,
    "ytick.major.size": 2,
    "svg.hashsalt": "asr",  # the same figure gives the same file
}
_LEFT, _RIGHT, _GAP = 0.85, 0.75, 0.07  # inches
_CHARACTER = 0.075  # inches a character takes, about, at the size of the word labels
_MOST_LANES = 4
_SHOWN = (
    "coverage",
    "monotonicity",
    "entropy",
    "backward_jumps",
    "unattended_tail",
    "ctc_agreement",
)


def draw(
    record: AttentionRecord,
    spectrogram: Spectrogram,
    *,
    words: Sequence[Word] = (),
    measures: Mapping[str, float] | None = None,
    head: int | None = None,
    width: float | None = None,
) -> Figure:
    """The whole picture: spectrogram, words, and the attention of every token as produced.

    Args:
        spectrogram: of the record's own piece of sound.
        words: with times in the file, as a Transcript has them.
        measures: of :func:`asr.inspection.diagnostics.measure`, for the line under the title.
        head: which attention head; the mean of all when None.
        width: inches; as long sound needs when None.
    """
    width = width or min(20.0, max(11.0, 0.5 * record.duration + _LEFT + _RIGHT))
    inner = width - _LEFT - _RIGHT
    lanes = _lanes(record, words, inner)
    word_height = 0.20 * max(lanes, default=0) + 0.20 if lanes else 0.0
    matrix_height = min(9.0, max(1.6, 0.135 * len(record.tokens)))
    parts = (0.72, 1.75, word_height, matrix_height, 0.50)
    height = sum(parts) + 2 * _GAP
    with mpl.rc_context(STYLE):
        figure = Figure((width, height), dpi=160, facecolor="white")

        def panel(top: float, tall: float, **kwargs: Any) -> Axes:
            return figure.add_axes(
                (_LEFT / width, 1 - (top + tall) / height, inner / width, tall / height), **kwargs
            )

        sound = panel(parts[0], parts[1])
        _draw_sound(sound, record, spectrogram)
        top = parts[0] + parts[1] + _GAP
        if words:
            _draw_words(panel(top, word_height, sharex=sound), words, lanes)
            top += word_height
        matrix = panel(top + _GAP, matrix_height, sharex=sound)
        image = _draw_matrix(matrix, record, head, matrix_height)
        for word in words:
            for axes, colour in ((sound, "#ffffff"), (matrix, ACCENT)):
                axes.axvline(word.start, color=colour, linewidth=0.5, alpha=0.5)
        sound.tick_params(labelbottom=False, bottom=False)
        matrix.set_xlabel("seconds")
        bar = figure.add_axes(
            (
                (width - _RIGHT + 0.12) / width,
                1 - (top + _GAP + min(matrix_height, 1.6)) / height,
                0.09 / width,
                min(matrix_height, 1.6) / height,
            )
        )
        figure.colorbar(image, bar, ticks=MaxNLocator(4), label="weight").outline.set_visible(False)
        _draw_title(figure, record, measures, head, width, height)
    return figure


def draw_small(record: AttentionRecord, spectrogram: Spectrogram | None = None) -> Figure:
    """The thumbnail that training logs: the same two panels without words, 6 by 4 inches."""
    with mpl.rc_context({**STYLE, "font.size": 7}):
        figure = Figure((6.0, 4.0), dpi=100, facecolor="white")
        matrix = figure.add_axes((0.12, 0.11, 0.85, 0.50 if spectrogram else 0.80))
        _draw_matrix(matrix, record, None, 2.0)
        matrix.set_xlabel("seconds")
        if spectrogram:
            sound = figure.add_axes((0.12, 0.63, 0.85, 0.28), sharex=matrix)
            _draw_sound(sound, record, spectrogram)
            sound.tick_params(labelbottom=False, bottom=False)
        colour = INK if record.mode == "free" else _mode_colour(record)
        heading(figure, 0.12, 0.94, f"{record.id} ({record.mode})", color=colour)
    return figure


def save(
    figure: Figure, file: str | Path | BinaryIO, form: str = "", *, dpi: float | None = None
) -> None:
    """Write a png or svg, ``form`` or what the suffix says; equal figures give equal files.

    ``dpi``: pixels an inch of a png; the figure's own when None.
    """
    form = form or Path(str(file)).suffix.removeprefix(".")
    metadata: dict[str, Any] = {"Date": None} if form == "svg" else {"Software": None}
    with mpl.rc_context(STYLE):
        figure.savefig(file, format=form, metadata=metadata, dpi=dpi or "figure")


def _draw_sound(axes: Axes, record: AttentionRecord, spectrogram: Spectrogram) -> None:
    frames, bins = spectrogram.decibels.shape
    end = record.start + frame_end(frames - 1, spectrogram.hop)
    if frames:
        axes.imshow(
            spectrogram.decibels.T.numpy(),
            origin="lower",
            aspect="auto",
            cmap="magma",
            vmin=-RANGE_DB,
            vmax=0,
            extent=(record.start, end, -0.5, bins - 0.5),
            interpolation="antialiased",
        )
    marks = [hz for hz in (250, 500, 1000, 2000, 4000, 8000) if hz <= spectrogram.frequencies[-1]]
    axes.yaxis.set_major_locator(FixedLocator([_bin(spectrogram.frequencies, hz) for hz in marks]))
    labels = iter(marks * 2)
    axes.set_yticklabels([_hertz(next(labels)) for _ in marks])
    axes.set_ylim(-0.5, bins - 0.5)
    axes.set_ylabel("mel bands, Hz")
    _time_axis(axes, record)


def _draw_matrix(axes: Axes, record: AttentionRecord, head: int | None, inches: float) -> Any:
    tokens, _, frames = record.weights.shape
    weights = record.weights.mean(1) if head is None else record.weights[:, head]
    strongest = float(weights.max()) if weights.numel() else 1.0
    image = axes.imshow(
        weights.numpy() if weights.numel() else [[0.0]],
        aspect="auto",
        cmap=HEAT,
        # The square root shows faint attention, where mistakes hide, without drowning the strong.
        norm=PowerNorm(0.5, 0.0, max(strongest, 1e-6)),
        extent=(
            record.start,
            record.start + frame_end(max(frames, 1) - 1, record.frame_shift),
            max(tokens, 1) - 0.5,
            -0.5,
        ),
        interpolation="nearest",
    )
    size = min(8.0, max(5.0, 60 * inches / max(tokens, 1)))
    labels = _labels(record.tokens, tokens * size / (72 * inches))
    axes.set_yticks(list(labels))
    texts, family, _ = drawable(list(labels.values()), MONO)
    axes.set_yticklabels(texts, family=family, fontsize=size, color=INK)
    for label in axes.get_yticklabels():
        label.set_parse_math(False)  # a token may well be a dollar sign
    axes.set_ylabel("tokens, as produced" if record.mode == "free" else "tokens, as dictated")
    _time_axis(axes, record)
    return image


def _draw_words(axes: Axes, words: Sequence[Word], lanes: Sequence[int]) -> None:
    height = max(lanes) + 1
    axes.set_ylim(height, -0.25)
    axes.set_axis_off()
    texts, family, _ = drawable([word.word for word in words])
    for word, text, lane in zip(words, texts, lanes, strict=True):
        # Where speech is too dense for every word, its line stays.
        axes.plot((word.start, word.end), (-0.12, -0.12), color=ACCENT, linewidth=2.2,
                  solid_capstyle="butt", alpha=0.35 + 0.65 * word.confidence)  # fmt: skip
        if lane < 0:
            continue
        axes.text(
            (word.start + word.end) / 2,
            lane + 0.5,
            text,
            ha="center",
            va="center",
            family=family,
            fontsize=8.5,
            parse_math=False,
            clip_on=False,
        )


def _draw_title(
    figure: Figure,
    record: AttentionRecord,
    measures: Mapping[str, float] | None,
    head: int | None,
    width: float,
    height: float,
) -> None:
    left, top = _LEFT / width, 1 - 0.28 / height
    heading(figure, left, top, record.id, fontsize=12, va="center")
    heads = record.weights.shape[1]
    which = f" · head {head + 1} of {heads}" if head is not None else ""
    which = which or (f" · mean of {heads} heads" if heads > 1 else "")
    figure.text(
        1 - _RIGHT / width,
        top,
        MODES[record.mode] + which,
        ha="right",
        va="center",
        color=_mode_colour(record),
        weight="bold" if record.mode == "forced" else "normal",
    )
    if measures:
        line = "   ".join(
            f"{MEANINGS[name].label.lower()} {show(name, measures[name])}"
            for name in _SHOWN
            if name in measures
        )
        figure.text(left, 1 - 0.53 / height, line, color=FAINT, va="center", fontsize=8)


def heading(figure: Figure, x: float, y: float, text: str, **style: Any) -> None:
    # A file name may hold bytes that are not text.
    named = text.encode(errors="backslashreplace").decode()
    (shown,), family, weight = drawable([named], weight="bold")
    figure.text(x, y, shown, family=family, weight=weight, parse_math=False, **style)


def show(name: str, value: float) -> str:
    """A figure of the diagnostics as people read it: ``97%``, ``0.84 nats``, ``1.20 s``, ``3``."""
    unit = MEANINGS[name].unit
    if unit == "%":
        return f"{100 * value:.0f}%"
    return f"{value:.2f} {unit}" if unit else f"{value:.0f}"


def _lanes(record: AttentionRecord, words: Sequence[Word], inches: float) -> list[int]:
    """A lane for each word's label, the highest where it does not run into its neighbour.

    -1 for a word that has no room in any of :data:`_MOST_LANES`.
    """
    scale = inches / max(record.duration, 1e-3)
    free: list[float] = []
    lanes = []
    for word in words:
        centre = scale * (word.start + word.end) / 2
        half = _CHARACTER * (len(word.word) + 1) / 2
        lane = next((i for i, end in enumerate(free) if end <= centre - half), len(free))
        if lane < _MOST_LANES:
            free[lane : lane + 1] = [centre + half]
        lanes.append(lane if lane < _MOST_LANES else -1)
    return lanes


def _labels(tokens: Sequence[str], apart: float) -> dict[int, str]:
    """Row to label, at least ``apart`` rows from each other.

    Where there is no room for every token, rows are labelled by the words that begin there.
    """
    if apart <= 1:
        return dict(enumerate(tokens))
    labels: dict[int, str] = {}
    word, last = -1, -math.inf  # the row whose word is being spelled, if any; the last label's row
    inside = False
    for row, token in enumerate(tokens):
        text = token.strip("␣▁")
        if token[:1] in ("␣", "▁") or token == "<eos>":
            inside = False
        if text and not inside:
            word = row if row - last >= apart else -1
            if word >= 0:
                labels[row], last = text, row
        elif text and word >= 0:
            labels[word] += text
        inside = bool(text) and token[-1:] not in ("␣", "▁")
    return labels


def _time_axis(axes: Axes, record: AttentionRecord) -> None:
    axes.set_xlim(record.start, record.start + max(record.duration, 1e-3))
    axes.xaxis.set_major_locator(MaxNLocator(12, steps=[1, 2, 5, 10]))
    axes.xaxis.set_major_formatter(FuncFormatter(lambda seconds, _: f"{seconds:g}"))


def _bin(frequencies: Sequence[float], hz: float) -> float:
    """Where a frequency lies between the centres of the bins."""
    above = next((i for i, f in enumerate(frequencies) if f >= hz), len(frequencies) - 1)
    if above == 0:
        return 0.0
    low, high = frequencies[above - 1], frequencies[above]
    return above - 1 + (hz - low) / max(high - low, 1e-6)


def _hertz(hz: float) -> str:
    return f"{hz / 1000:g}k" if hz >= 1000 else f"{hz:g}"


def _mode_colour(record: AttentionRecord) -> str:
    return FAINT if record.mode == "free" else "#c2410c"
