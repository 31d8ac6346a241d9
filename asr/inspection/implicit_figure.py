"""Implicit attention over the spectrogram, and beside the explicit one of the same tokens."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import matplotlib as mpl
from matplotlib.axes import Axes
from matplotlib.colors import LinearSegmentedColormap
from matplotlib.figure import Figure
from torch import Tensor

from asr.inspection import figures
from asr.inspection.saliency import implicit
from asr.inspection.spectrogram import Spectrogram
from asr.types import AttentionRecord, Word

#: over a grey spectrogram: nothing, then ever stronger
_GLOW = LinearSegmentedColormap.from_list(
    "saliency", [(0.08, 0.72, 0.65, 0.0), (0.37, 0.92, 0.83, 0.7), (0.94, 1.0, 0.4, 1.0)]
)
_BRIGHTEST = 0.998  # the share of glimpses that are not lit as strongly as can be
_LEFT, _RIGHT, _GAP = 0.85, 0.25, 0.12  # inches


def draw(
    record: AttentionRecord, spectrogram: Spectrogram, *, words: Sequence[Word] = ()
) -> Figure:
    """Spectrogram with what the text depended on, then explicit and implicit attention by token.

    Over the spectrogram, saliency of all tokens together, each with the same say
    (:func:`overlay`). ``spectrogram`` is of the record's own piece of sound; ``words`` have times
    in the file. ValueError for a record without saliency.
    """
    implied = replace(record, weights=implicit(record).unsqueeze(1))
    width = min(20.0, max(11.0, 0.5 * record.duration + _LEFT + _RIGHT))
    tall = min(6.0, max(1.2, 0.11 * len(record.tokens)))
    parts = (0.55, 1.9, tall, tall, 0.45)
    height = sum(parts) + 2 * _GAP
    with mpl.rc_context(figures.STYLE):
        figure = Figure((width, height), dpi=160, facecolor="white")
        top = parts[0]
        panels: list[Axes] = []
        for part in parts[1:4]:
            left, across = _LEFT / width, 1 - (_LEFT + _RIGHT) / width
            box = (left, 1 - (top + part) / height, across, part / height)
            panels.append(figure.add_axes(box, sharex=panels[0] if panels else None))
            top += part + _GAP
        sound, explicit, implicitly = panels
        figures._draw_sound(sound, record, spectrogram)
        _glow(sound, record, spectrogram)
        for axes, shown, name in (
            (explicit, record, "explicit: its attention"),
            (implicitly, implied, "implicit: derivatives of log p(token)"),
        ):
            figures._draw_matrix(axes, shown, None, tall)
            _note(axes, name)
        _note(sound, "lit: where derivatives are largest", color="white")
        for word in words:
            for axes in panels:
                colour = "#ffffff" if axes is sound else figures.ACCENT
                axes.axvline(word.start, color=colour, linewidth=0.5, alpha=0.5)
        for axes in (sound, explicit):
            axes.tick_params(labelbottom=False, bottom=False)
        implicitly.set_xlabel("seconds")
        figures.heading(figure, _LEFT / width, 1 - 0.28 / height, record.id, fontsize=12,
                        va="center")  # fmt: skip
        figure.text(
            1 - _RIGHT / width, 1 - 0.28 / height, figures.MODES[record.mode], ha="right",
            va="center", color=figures.FAINT,
        )  # fmt: skip
    return figure


def overlay(record: AttentionRecord) -> Tensor:
    """(T,F) in [0, 1]: the root mean square of the tokens' derivatives, each token's scaled to one.

    A sure token has small derivatives everywhere, so each is taken relative to its own.
    """
    if record.saliency is None:
        raise ValueError(f"{record.id}: there is no saliency in this record")
    power = record.saliency.jacobian.float().square()
    if not power.numel():
        return power.sum(0)
    total = power.sum((1, 2), keepdim=True)
    seen = (power / total.clamp_min(1e-30)).mean(0).sqrt()
    return seen / seen.max().clamp_min(1e-30)


def _glow(axes: Axes, record: AttentionRecord, spectrogram: Spectrogram) -> None:
    lit = overlay(record)
    if not lit.any() or record.saliency is None:
        return
    bins = spectrogram.decibels.shape[1]
    axes.images[0].set_cmap("gray")
    brightest = float(lit.flatten().sort().values[int(_BRIGHTEST * (lit.numel() - 1))])
    # Both axes are mel, so bins of the model lie beside those of the picture by their share.
    axes.imshow(
        lit.T.numpy(),
        origin="lower",
        aspect="auto",
        cmap=_GLOW,
        vmin=0.0,
        vmax=max(brightest, 1e-6),
        extent=(record.start, record.start + len(lit) * record.saliency.hop, -0.5, bins - 0.5),
        interpolation="antialiased",
    )
    axes.set_ylim(-0.5, bins - 0.5)
    figures._time_axis(axes, record)


def _note(axes: Axes, text: str, **style: Any) -> None:
    axes.text(0.995, 0.97, text, transform=axes.transAxes, ha="right", va="top", fontsize=8,
              **{"color": figures.FAINT, **style})  # fmt: skip
