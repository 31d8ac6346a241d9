"""Long audio in pieces: cut where it is quietest, nothing lost, put together again in order."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
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

#: Pieces may not be asked to be shorter: they would be cut within words.
SHORTEST_PIECE: Seconds = 1.0
_CELL: Seconds = 0.01  # energy is measured in cells of this
_HALF = 15  # and the quietest stretch of that many cells on either side, 0.3 s, is looked for


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
        return list(cut(self.source, [self.samples], self.sample_rate, longest, self.start))


def cut(
    source: int,
    blocks: Iterable[Tensor],
    sample_rate: int,
    longest: Seconds,
    start: Seconds = 0.0,
) -> Iterator[Piece]:
    """Sound that comes in ``blocks`` (L,) of any size as pieces of at most ``longest`` seconds.

    They make up the whole, and how the sound came in blocks makes no difference to them. Each
    border is the middle of the quietest 0.3 s that it could be, the latest such; no piece is
    shorter than a third of ``longest``, unless the whole is. No more is waited for than four thirds
    of ``longest``, and a block.
    """
    cell = max(1, round(_CELL * sample_rate))
    most = max(3, int(longest * sample_rate) // cell)  # cells
    least = most // 3
    # What a cut depends on: the pieces before and behind it, and what the loudness there does.
    enough = (most + max(least, _HALF) + 1) * cell
    waiting: list[Tensor] = []
    size, at = 0, 0

    def until(needed: int) -> Iterator[Piece]:
        nonlocal waiting, size, at
        if size <= needed:
            return
        sound = torch.cat(waiting)
        # Counted in whole cells, so that a last cell that is not full cannot make one too long.
        while len(sound) > needed:
            border = _border(sound[:enough], cell, most, least)
            yield Piece(source, sound[:border].clone(), sample_rate, start + at / sample_rate)
            sound, at = sound[border:], at + border
        waiting, size = [sound], len(sound)

    for block in blocks:
        waiting.append(block)
        size += len(block)
        yield from until(enough)
    yield from until(most * cell)
    if size:
        yield Piece(source, torch.cat(waiting), sample_rate, start + at / sample_rate)


def _border(samples: Tensor, cell: int, most: int, least: int) -> int:
    """Where to cut what is longer than ``most`` cells: the last quietest place, in samples."""
    loudness = _loudness(samples, cell)
    last = min(most, len(loudness) - least)
    return (last - int(loudness[least : last + 1].flip(0).argmin())) * cell


def _loudness(samples: Tensor, cell: int) -> Tensor:
    """(cells,) mean square of the 0.3 s around each cell, float64."""
    padding = functional.pad(samples.double(), (0, -len(samples) % cell))
    energy = padding.view(1, -1, cell).square().mean(-1)
    return functional.avg_pool1d(energy, 2 * _HALF + 1, 1, _HALF, count_include_pad=False)[0]


def windows(pieces: Iterable[SoundT], seconds: Seconds) -> Iterator[list[SoundT]]:
    """Pieces in their order, as many at a time as come to so many seconds."""
    window: list[SoundT] = []
    total = 0.0
    for piece in pieces:
        window.append(piece)
        total += piece.duration
        if total >= seconds:
            yield window
            window, total = [], 0.0
    if window:
        yield window


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
