"""What every listener is to the rest of the project."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Collection

from torch import Tensor

from asr.nn.registry import Component
from asr.types import Encoded


class Encoder(Component, family=True):
    """Relates glimpses to one another; takes ``(input_dim, *, ...)``.

    ``output_dim`` is C and ``subsampling`` how many feature frames one encoder frame stands for.
    """

    output_dim: int
    subsampling: int = 1

    @abstractmethod
    def forward(self, frames: Tensor, lengths: Tensor, *, inspect: Collection[str] = ()) -> Encoded:
        """frames (B,T,F), lengths (B,) -> states (B,S,C); ``inspect``: layers to see inside."""

    @abstractmethod
    def output_lengths(self, lengths: Tensor) -> Tensor:
        """Feature frames (B,) -> encoder frames (B,)."""

    @property
    def inspectable(self) -> tuple[str, ...]:
        """Names of the layers whose attention matrices can be asked for."""
        return ()
