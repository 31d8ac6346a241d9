"""Where frames become seconds: the only module that does this arithmetic.

Frame ``t`` of shift ``d`` stands for the cell ``[t d, (t + 1) d)`` of its audio, at every level
(log-mel frames and encoder frames alike), so ``ceil(samples / hop)`` frames cover the whole audio
and the last cell ends less than one shift after it.
"""

from __future__ import annotations

from typing import TypeVar, overload

from torch import Tensor

from asr.types import Seconds

Size = TypeVar("Size", int, Tensor)


def cells(size: Size, per_cell: int) -> Size:
    """How many cells of ``per_cell`` units cover ``size`` units: the ceiling, 0 for 0."""
    return (size + per_cell - 1) // per_cell


@overload
def frame_start(index: float, shift: Seconds) -> Seconds: ...
@overload
def frame_start(index: Tensor, shift: Seconds) -> Tensor: ...
def frame_start(index: float | Tensor, shift: Seconds) -> Seconds | Tensor:
    """Seconds at which the cell begins."""
    return index * shift


@overload
def frame_end(index: float, shift: Seconds) -> Seconds: ...
@overload
def frame_end(index: Tensor, shift: Seconds) -> Tensor: ...
def frame_end(index: float | Tensor, shift: Seconds) -> Seconds | Tensor:
    """Seconds at which the cell ends."""
    return (index + 1) * shift


@overload
def frame_centre(index: float, shift: Seconds) -> Seconds: ...
@overload
def frame_centre(index: Tensor, shift: Seconds) -> Tensor: ...
def frame_centre(index: float | Tensor, shift: Seconds) -> Seconds | Tensor:
    """Seconds at the middle of the cell."""
    return (index + 0.5) * shift


def frame_at(seconds: Seconds, shift: Seconds) -> int:
    """The index of the cell that holds this moment (a boundary belongs to the later cell)."""
    # The small push undoes binary fractions such as 0.29 / 0.01 = 28.999...
    return int(seconds / shift + 1e-6)


def shift_of(hop_samples: int, sample_rate: int, subsampling: int = 1) -> Seconds:
    """The length of one cell after all subsampling, in seconds."""
    return hop_samples * subsampling / sample_rate
