"""Listener self-attention: a kind of position and a kind of mask, chosen apart.

A position kind turns the queries and keys of every head into vectors whose plain dot product is
the whole score, distance term included. So whatever the kind, torch's fused kernel does the rest
and memory grows linearly with S; the matrix of a head exists only while it is inspected.
"""

from __future__ import annotations

from abc import abstractmethod

import torch
from torch import Tensor, nn

from asr.nn.masking import length_mask
from asr.nn.registry import Component


class Position(Component, family=True):
    """How distance enters the score; takes ``(dim, heads, *, ...)``."""

    def encode(self, states: Tensor) -> Tensor:
        """A change to the encoder's input, once before the first block: (B,S,C) -> (B,S,C)."""
        return states

    @abstractmethod
    def forward(self, queries: Tensor, keys: Tensor) -> tuple[Tensor, Tensor]:
        """(B,A,S,D) each -> (B,A,S,D') each, whose dot product, unscaled, is the score."""


class Mask(Component, family=True):
    """Which glimpses may see which; takes ``(*, ...)``."""

    @abstractmethod
    def forward(self, size: int, device: torch.device) -> Tensor | None:
        """(S,S) bool, True where row may look at column; None where everything may."""


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
        allowed = (length_mask(lengths, size) | (lengths == 0).unsqueeze(1))[:, None, None, :]
        pattern = self.mask(size, states.device)
        if pattern is not None:
            # So that padded rows of a narrow pattern find something too: themselves.
            itself = torch.eye(size, dtype=torch.bool, device=states.device)
            allowed = (allowed & pattern) | itself
        mixed = nn.functional.scaled_dot_product_attention(
            queries, keys, values, attn_mask=allowed, scale=1.0
        )
        matrix = None
        if inspect:
            scores = (queries.float() @ keys.float().transpose(-1, -2)).masked_fill(
                ~allowed, float("-inf")
            )
            matrix = torch.softmax(scores, -1) * length_mask(lengths, size)[:, None, :, None]
        mixed = mixed.transpose(1, 2).reshape(batch, size, dim)
        return self.output(mixed), matrix
