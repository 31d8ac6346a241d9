"""Blocks as a decoder gives them -> columns of sound at another rate, block by block."""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import cache
from typing import Literal, TypeAlias

import numpy as np
import soxr
import torch
from torch import Tensor

from asr.audio.decoders import Decoder, Incomplete
from asr.errors import InputError
from asr.types import Seconds

Channel: TypeAlias = Literal["mix"] | int

#: A recording's loudness is known in stretches of this.
METER: Seconds = 0.05
_log = logging.getLogger(__name__)


def columns(
    decoder: Decoder, picks: Sequence[Channel], rate: int, name: str, *, quiet: bool = False
) -> Iterator[np.ndarray]:
    """Blocks (frames, picks) at ``rate`` Hz; what is odd about them is logged at their end.

    Raises :class:`Incomplete` after the last block of a file that is.
    """
    info, unusable, incomplete = decoder.info, 0, None
    # Packed together these are the columns of one stream (frames, picks), resampled along time.
    stream = _resampler(info.sample_rate, rate, len(picks))
    energy, mixed = np.zeros(info.channels), 0.0
    try:
        for block in decoder.blocks:
            finite = np.isfinite(block)
            if not finite.all():
                unusable += int(finite.size - finite.sum())
                block = np.where(finite, block, np.float32(0))
            # Beyond +-2^16 squares and sums would overflow float32; 16-bit integers fit.
            block = np.clip(block, -65536, 65536)
            if picks == ["mix"]:
                heard = block.mean(axis=1, keepdims=True)
                energy += np.square(block).sum(axis=0, dtype=np.float64)
                mixed += float(np.square(heard).sum(dtype=np.float64))
            else:
                heard = block[:, list(picks)]
            yield stream(heard, False)
    except Incomplete as error:
        incomplete = error
    yield stream(np.zeros((0, len(picks)), np.float32), True)
    if unusable and not quiet:
        _log.warning("%s: %d samples are not finite numbers, taken as silence", name, unusable)
    if picks == ["mix"] and mixed < 0.001 * energy.max() and not quiet:
        _log.warning("%s: the channels cancel one another when mixed; choose one instead", name)
    if incomplete is not None:
        raise incomplete


def stretch(
    blocks: Iterable[np.ndarray], first: int, last: int | None, rate: int, name: str
) -> Iterator[np.ndarray]:
    """Of blocks (frames, picks), frames ``first`` to ``last``; no more is read than that needs."""
    at = 0
    for block in blocks:
        begins, at = at, at + len(block)
        if last is not None and at >= last:
            yield block[max(0, first - begins) : last - begins]
            return
        yield block[max(0, first - begins) :]
    if at < first:
        raise InputError(f"{name}: is over after {at / rate:.2f} s, before {first / rate:g} s")


class Meter:
    """Mean squares of every :data:`METER` of columns that come in blocks (frames, picks)."""

    def __init__(self, rate: int) -> None:
        self._cell = max(1, round(METER * rate))
        self._rest: np.ndarray | None = None
        self._cells: list[np.ndarray] = []

    def add(self, block: np.ndarray) -> None:
        if self._rest is not None:
            block = np.concatenate([self._rest, block])
        whole = len(block) // self._cell * self._cell
        cells = block[:whole].reshape(-1, self._cell, block.shape[1])
        self._cells.append(np.square(cells).mean(axis=1))
        self._rest = block[whole:].copy()

    def energies(self) -> list[Tensor]:
        """(n,) for each column; a last stretch that is not full counts only where it is all."""
        cells = self._cells
        if self._rest is not None and len(self._rest) and not any(len(each) for each in cells):
            cells = [np.square(self._rest).mean(axis=0, keepdims=True)]
        return [torch.from_numpy(column.copy()) for column in np.concatenate(cells).T]


def _resampler(source_rate: int, rate: int, width: int) -> Callable[[np.ndarray, bool], np.ndarray]:
    """Band-limited resampling of (frames, columns) along time, block after block."""
    if source_rate == rate:
        return lambda block, last: block
    stream = soxr.ResampleStream(source_rate, rate, width, dtype="float32", quality="HQ")
    return lambda block, last: stream.resample_chunk(block, last=last)


@cache
def warn_narrow(source_rate: int, rate: int) -> None:
    _log.warning(
        "audio at %d Hz holds nothing above %d Hz, where the model (%d Hz) also listens: "
        "expect more errors",
        source_rate, source_rate // 2, rate,
    )  # fmt: skip
