"""Listener self-attention: a kind of position and a kind of mask, chosen apart.

Most position kinds turn the queries and keys of every head into vectors whose plain dot product is
the whole score, distance term included, so torch's fused kernel does the rest. One that cannot
says so by ``explicit`` and is computed in chunks of queries, again in the backward pass. Either
way memory grows linearly with S; the matrix of a head exists only while it is inspected.
"""

from __future__ import annotations

from typing import ClassVar

from torch import Tensor, nn

from asr.nn.about import About
from asr.nn.encoders.selfattention import kernels
from asr.nn.masking import length_mask
from asr.nn.registry import Component


class Position(Component, family=True):
    """How distance enters the score; takes ``(dim, heads, *, ...)``.

    Sets ``scale``, by which content scores are multiplied.
    """

    about: ClassVar[About]
    #: whether :meth:`bias` or :meth:`recall` add what no dot product of vectors can say
    explicit: ClassVar[bool] = False
    scale: float

    def encode(self, states: Tensor) -> Tensor:
        """A change to the encoder's input, once before the first block: (B,S,C) -> (B,S,C)."""
        return states

    def forward(self, queries: Tensor, keys: Tensor) -> tuple[Tensor, Tensor]:
        """(B,A,S,D) each -> (B,A,S,D') each, whose dot product, unscaled, is the score."""
        return queries * self.scale, keys

    def bias(self, queries: Tensor, distances: Tensor) -> Tensor:
        """queries (B,A,I,D') as made by forward, distances (I,J) = j - i -> (B,A,I,J)."""
        raise NotImplementedError

    def recall(self, weights: Tensor, distances: Tensor) -> Tensor:
        """What distances add to the values: weights (B,A,I,J), distances (I,J) -> (B,A,I,D)."""
        raise NotImplementedError


class Mask(Component, family=True):
    """Which glimpses may see which; takes ``(*, ...)``.

    ``before`` and ``after``: how many glimpses on either side are seen; None for all of them.
    """

    about: ClassVar[About]
    before: int | None = None
    after: int | None = None

    @property
    def causal(self) -> bool:
        """Whether no glimpse sees a later one."""
        return self.after == 0


class SelfAttention(nn.Module):
    """Multi-head self-attention over glimpses (Vaswani et al. 2017, sect. 3.2.2)."""

    def __init__(self, dim: int, heads: int, *, position: Position, mask: Mask) -> None:
        super().__init__()
        if heads < 1 or dim % heads:
            raise ValueError(f"heads={heads}: must divide the width {dim}")
        self.heads = heads
        self.project = nn.Linear(dim, 3 * dim)
        self.output = nn.Linear(dim, dim)
        self.position = position
        self.mask = mask

    def forward(
        self, states: Tensor, lengths: Tensor, *, inspect: bool = False
    ) -> tuple[Tensor, Tensor | None]:
        """states (B,S,C), lengths (B,) -> (B,S,C), and (B,A,S,S) float32 when inspected.

        Padding is masked before the softmax; a padded row's own output is finite and meaningless.
        """
        batch, size, dim = states.shape
        split = self.project(states).view(batch, size, 3, self.heads, dim // self.heads)
        queries, keys, values = split.permute(2, 0, 3, 1, 4)
        queries, keys = self.position(queries, keys)
        # An utterance of no frames looks at its own padding: no softmax may be empty.
        real = length_mask(lengths, size) | (lengths == 0).unsqueeze(1)
        reach = kernels.Reach(self.mask.before, self.mask.after)
        if self.position.explicit:
            mixed = kernels.explicit(queries, keys, values, real, reach, self.position)
        else:
            mixed = kernels.fused(queries, keys, values, real, reach)
        matrix = None
        if inspect:
            everything = slice(0, size)
            added = self.position.bias if self.position.explicit else None
            matrix = kernels.matrix(queries, keys, real, reach, everything, everything, added)
            matrix = matrix * length_mask(lengths, size)[:, None, :, None]
        mixed = mixed.transpose(1, 2).reshape(batch, size, dim)
        return self.output(mixed), matrix


__all__ = ["Mask", "Position", "SelfAttention"]
