"""The listener's self-attention: which moments of the sound listened to which, layer by layer."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import matplotlib as mpl
from matplotlib.colors import PowerNorm
from matplotlib.figure import Figure
from matplotlib.ticker import MaxNLocator
from torch import Tensor
from torch.nn import functional

from asr.glimpses.timing import frame_end
from asr.inspection.figures import FAINT, HEAT, STYLE, heading
from asr.types import AttentionRecord, Transcript

#: Cells on a side of what is shown; a matrix of more frames is shown by its strongest weights.
MOST_CELLS = 256
_CELL, _LEFT, _TOP, _GAP, _MARGIN = 2.1, 0.75, 0.75, 0.32, 0.5  # inches


def pick(transcript: Transcript, heads: Sequence[int]) -> Transcript:
    """A transcript whose records keep only some heads of their listener matrices, in this order.

    Raises IndexError for a head that there is not.
    """
    records = tuple(
        replace(
            record,
            listener={name: matrix[list(heads)] for name, matrix in record.listener.items()},
        )
        for record in transcript.records
    )
    return replace(transcript, records=records, record=records[0] if len(records) == 1 else None)


def pooled(matrix: Tensor, most: int = MOST_CELLS) -> tuple[Tensor, int]:
    """(A,S,S) -> (A,n,n) with n <= ``most``, and how many frames a cell is on a side.

    A cell is the largest of its weights, so that a sharp line stays one.
    """
    size = matrix.shape[-1]
    frames = max(1, -(-size // most))
    if frames == 1:
        return matrix, 1
    beyond = -size % frames
    return functional.max_pool2d(functional.pad(matrix, (0, beyond, 0, beyond)), frames), frames


def draw(record: AttentionRecord, heads: Sequence[int] = ()) -> Figure:
    """All of ``record.listener``: a row for each layer, a column for each head.

    Args:
        heads: the numbers of the heads that the record kept; they count from 0 when not given.

    Raises:
        ValueError: no matrix was kept.
    """
    if not record.listener:
        raise ValueError(f"{record.id}: no listener matrix was kept: transcribe with inspect=")
    rows = len(record.listener)
    columns = max(len(matrix) for matrix in record.listener.values())
    width = max(6.0, _LEFT + columns * (_CELL + _GAP) + _MARGIN)
    height = _TOP + rows * (_CELL + _GAP) + _MARGIN
    with mpl.rc_context(STYLE):
        figure = Figure((width, height), dpi=160, facecolor="white")
        for row, (name, matrix) in enumerate(record.listener.items()):
            for column, weights in enumerate(pooled(matrix)[0]):
                left = _LEFT + column * (_CELL + _GAP)
                bottom = height - _TOP - row * (_CELL + _GAP) - _CELL
                axes = figure.add_axes(
                    (left / width, bottom / height, _CELL / width, _CELL / height)
                )
                head = heads[column] if heads else column
                _panel(axes, record, weights, f"{name}, head {head}")
                axes.tick_params(labelleft=column == 0, labelbottom=row == rows - 1)
        heading(figure, _LEFT / width, 1 - 0.22 / height, record.id, fontsize=11, va="center")
        figure.text(
            _LEFT / width,
            0.16 / height,
            "across: seconds that are listened to; down: seconds that listen",
            color=FAINT,
            va="center",
        )
    return figure


def _panel(axes: Any, record: AttentionRecord, weights: Tensor, title: str) -> None:
    strongest = float(weights.max()) if weights.numel() else 0.0
    frames = next(iter(record.listener.values())).shape[-1]
    end = record.start + max(frame_end(frames - 1, record.frame_shift), 1e-3)
    axes.imshow(
        weights.numpy() if weights.numel() else [[0.0]],
        cmap=HEAT,
        norm=PowerNorm(0.5, 0.0, max(strongest, 1e-6)),
        extent=(record.start, end, end, record.start),
        interpolation="nearest",
    )
    axes.set_title(f"{title} (to {strongest:.2f})", fontsize=7.5, color=FAINT, pad=3)
    for axis in (axes.xaxis, axes.yaxis):
        axis.set_major_locator(MaxNLocator(4))
