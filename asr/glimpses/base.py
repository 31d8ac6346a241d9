"""What every front end is to the rest of the project."""

from __future__ import annotations

from abc import abstractmethod

from torch import Tensor

from asr.nn.registry import Component


class Frontend(Component, family=True):
    """Turns sound into glimpses; takes ``(sample_rate, *, ...)``.

    ``dim`` is F and ``hop`` the samples between frames; T = ceil(L / hop).
    """

    dim: int
    hop: int
    sample_rate: int

    @abstractmethod
    def forward(self, waves: Tensor, lengths: Tensor) -> tuple[Tensor, Tensor]:
        """waves (B,L), lengths (B,) samples -> frames (B,T,F), zero beyond their lengths, (B,)."""
