"""The same attention computed in the ways that keep memory linear in S.

queries, keys (B,A,S,D'), whose dot product is the score; values (B,A,S,D); real (B,S) bool.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import NamedTuple, Protocol

import torch
from torch import Tensor
from torch.utils.checkpoint import checkpoint

#: queries of one chunk: the fewer, the less memory; the more, the less overhead
CHUNK = 128


class Reach(NamedTuple):
    """How many glimpses before and after its own each may see; None for all of them."""

    before: int | None
    after: int | None

    def columns(self, rows: slice, size: int) -> slice:
        """All that the rows of a chunk may see between them."""
        first = 0 if self.before is None else max(0, rows.start - self.before)
        last = size if self.after is None else min(size, rows.stop + self.after)
        return slice(first, last)

    def allows(self, distances: Tensor) -> Tensor:
        """distances (I,J) = j - i -> bool."""
        allowed = torch.ones_like(distances, dtype=torch.bool)
        if self.before is not None:
            allowed &= distances >= -self.before
        if self.after is not None:
            allowed &= distances <= self.after
        return allowed


class Explicit(Protocol):
    """What a position kind adds to scores and values, by distance."""

    def bias(self, queries: Tensor, distances: Tensor) -> Tensor: ...

    def recall(self, weights: Tensor, distances: Tensor) -> Tensor: ...


def fused(queries: Tensor, keys: Tensor, values: Tensor, real: Tensor, reach: Reach) -> Tensor:
    """By torch's own kernel: (B,A,S,D)."""
    attend = torch.nn.functional.scaled_dot_product_attention
    size, width = queries.shape[2], values.shape[3]
    # The kernels whose memory is linear want values as wide as keys; the others build the matrix.
    values = torch.nn.functional.pad(values, (0, queries.shape[3] - width))
    if reach == Reach(None, None):
        mixed = attend(queries, keys, values, attn_mask=real[:, None, None, :], scale=1.0)
    elif reach == Reach(None, 0):
        # Padding lies in the future of every real row, so the mask of lengths is not needed.
        mixed = attend(queries, keys, values, is_causal=True, scale=1.0)
    else:
        parts = []
        for rows, columns in chunks(size, reach):
            allowed = pattern(real, reach, rows, columns)
            key, value = keys[:, :, columns], values[:, :, columns]
            parts.append(attend(queries[:, :, rows], key, value, attn_mask=allowed, scale=1.0))
        mixed = torch.cat(parts, 2)
    return mixed[..., :width]


def explicit(
    queries: Tensor, keys: Tensor, values: Tensor, real: Tensor, reach: Reach, position: Explicit
) -> Tensor:
    """Chunk by chunk of queries; the backward pass computes each again: (B,A,S,D)."""

    def chunk(queries: Tensor, keys: Tensor, values: Tensor, rows: slice, columns: slice) -> Tensor:
        weights = matrix(queries, keys, real, reach, rows, columns, position.bias)
        with torch.autocast(values.device.type, enabled=False):
            mixed = weights @ values[:, :, columns].float()
            mixed = mixed + position.recall(weights, distances(rows, columns, values.device))
        return mixed.to(values.dtype)

    mixed = []
    for rows, columns in chunks(queries.shape[2], reach):
        if torch.is_grad_enabled():
            made = checkpoint(chunk, queries, keys, values, rows, columns, use_reentrant=False)
        else:
            made = chunk(queries, keys, values, rows, columns)
        mixed.append(made)
    return torch.cat(mixed, 2)


def matrix(
    queries: Tensor,
    keys: Tensor,
    real: Tensor,
    reach: Reach,
    rows: slice,
    columns: slice,
    bias: Callable[[Tensor, Tensor], Tensor] | None,
) -> Tensor:
    """The weights of some rows over some columns, (B,A,I,J) float32."""
    with torch.autocast(queries.device.type, enabled=False):
        some = queries[:, :, rows].float()
        scores = some @ keys[:, :, columns].float().transpose(-1, -2)
        if bias is not None:
            scores = scores + bias(some, distances(rows, columns, queries.device))
        allowed = pattern(real, reach, rows, columns)
        return torch.softmax(scores.masked_fill(~allowed, float("-inf")), -1)


def pattern(real: Tensor, reach: Reach, rows: slice, columns: slice) -> Tensor:
    """(B,1,I,J) bool, or (B,1,1,J): which columns the rows may see; each row at least itself."""
    allowed = real[:, None, None, columns]
    if reach == Reach(None, None):
        return allowed
    away = distances(rows, columns, real.device)
    # So that padded rows of a narrow pattern find something too: themselves.
    return (allowed & reach.allows(away)) | (away == 0)


def distances(rows: slice, columns: slice, device: torch.device) -> Tensor:
    """(I,J): j - i."""
    i = torch.arange(rows.start, rows.stop, device=device)
    j = torch.arange(columns.start, columns.stop, device=device)
    return j - i.unsqueeze(1)


def chunks(size: int, reach: Reach) -> Iterator[tuple[slice, slice]]:
    """Rows of each chunk and the columns that they may see."""
    for start in range(0, size, CHUNK):
        rows = slice(start, min(size, start + CHUNK))
        yield rows, reach.columns(rows, size)
