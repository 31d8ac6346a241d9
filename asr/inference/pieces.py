"""Long audio in pieces: cut where it is quietest, nothing lost, put together again in order."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Protocol, TypeVar

import torch
from torch import Tensor
from torch.nn import functional

from asr.types import Seconds


class Sound(Protocol):
    """Samples (L,), and how long they last."""

    @property
    def samples(self) -> Tensor: ...
    @property
    def duration(self) -> Seconds: ...


SoundT = TypeVar("SoundT", bound=Sound)

_CELL: Seconds = 0.01  # energy is measured in cells of this
_PAUSE: Seconds = 0.3  # and the quietest stretch of this length is looked for


@dataclass(frozen=True)
class Piece:
    """A stretch of one input: ``samples`` (L,) float32 that begin ``start`` seconds into it."""

    source: int
    samples: Tensor
    sample_rate: int
    start: Seconds = 0.0

    @property
    def duration(self) -> Seconds:
        return len(self.samples) / self.sample_rate

    def split(self, longest: Seconds) -> list[Piece]:
        """Pieces of at most ``longest`` seconds that make up this one, in order."""
        borders = cuts(self.samples, self.sample_rate, longest)
        return [
            Piece(
                self.source,
                self.samples[first:end],
                self.sample_rate,
                self.start + first / self.sample_rate,
            )
            for first, end in pairwise(borders)
        ]


def cuts(samples: Tensor, sample_rate: int, longest: Seconds) -> list[int]:
    """Borders 0 = b0 < b1 < ... = L of stretches of at most ``longest`` seconds.

    Each border is the middle of the quietest 0.3 s that it could be, the latest such; no stretch
    is shorter than a third of ``longest``, unless the whole is.
    """
    if not len(samples):
        return [0]
    cell = max(1, round(_CELL * sample_rate))
    most = max(3, int(longest * sample_rate) // cell)  # cells
    least = most // 3
    loudness = _loudness(samples, cell)
    borders, start = [0], 0
    # Counted in whole cells, so that a last cell that is not full cannot make a piece too long.
    while (left := len(loudness) - start) > most:
        first, last = start + least, start + min(most, left - least)
        quietest = loudness[first : last + 1].flip(0).argmin()
        start = last - int(quietest)
        borders.append(start * cell)
    return [*borders, len(samples)]


def _loudness(samples: Tensor, cell: int) -> Tensor:
    """(cells,) mean square of the 0.3 s around each cell, float64."""
    padding = functional.pad(samples.double(), (0, -len(samples) % cell))
    energy = padding.view(1, -1, cell).square().mean(-1)
    half = round(_PAUSE / _CELL / 2)
    return functional.avg_pool1d(energy, 2 * half + 1, 1, half, count_include_pad=False)[0]


def batches(pieces: Iterable[SoundT], seconds: Seconds) -> list[list[SoundT]]:
    """Pieces of like length together, each batch of at most so many seconds with its padding.

    A piece longer than that is a batch by itself.
    """
    made: list[list[SoundT]] = []
    for piece in sorted(pieces, key=lambda piece: -len(piece.samples)):
        if made and made[-1][0].duration * (len(made[-1]) + 1) <= seconds:
            made[-1].append(piece)
        else:
            made.append([piece])
    return made


def padded(pieces: Sequence[Sound]) -> tuple[Tensor, Tensor]:
    """waves (B,L) padded with zeros, lengths (B,) samples."""
    waves = torch.nn.utils.rnn.pad_sequence([piece.samples for piece in pieces], batch_first=True)
    return waves, torch.tensor([len(piece.samples) for piece in pieces])
