"""The default listener: convolutional subsampling and conformer blocks."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import Any

from torch import Tensor, nn

from asr.nn.encoders.base import Encoder
from asr.nn.encoders.selfattention import Mask, Position, SelfAttention
from asr.nn.encoders.subsampling import ConvSubsampling
from asr.nn.masking import length_mask
from asr.types import Encoded


def _feed_forward(dim: int, inner: int, dropout: float) -> nn.Sequential:
    return nn.Sequential(
        nn.LayerNorm(dim),
        nn.Linear(dim, inner),
        nn.SiLU(),
        nn.Dropout(dropout),
        nn.Linear(inner, dim),
    )


class ConvolutionModule(nn.Module):
    """Gated pointwise, depthwise over time, pointwise (Gulati et al. 2020, sect. 2.2).

    Deviation: layer normalisation in place of batch normalisation, so that neither padding nor
    batch-mates can change a result. ``causal``: the kernel ends at its frame instead of being
    centred on it.
    """

    def __init__(self, dim: int, kernel: int, *, causal: bool = False) -> None:
        super().__init__()
        self.norm = nn.LayerNorm(dim)
        self.expand = nn.Linear(dim, 2 * dim)
        padding = kernel - 1 if causal else kernel // 2
        self.depthwise = nn.Conv1d(dim, dim, kernel, padding=padding, groups=dim)
        self.inner_norm = nn.LayerNorm(dim)
        self.output = nn.Linear(dim, dim)

    def forward(self, states: Tensor, mask: Tensor) -> Tensor:
        """states (B,S,C), mask (B,S,1) True on real frames -> (B,S,C)."""
        gated = nn.functional.glu(self.expand(self.norm(states)), -1) * mask
        # Padded by as much on the right, a causal kernel gives more frames than there are.
        mixed = self.depthwise(gated.transpose(1, 2))[..., : states.shape[1]].transpose(1, 2)
        return self.output(nn.functional.silu(self.inner_norm(mixed)))


class ConformerBlock(nn.Module):
    """Half a feed-forward, self-attention, convolution, the other half (Gulati et al. 2020)."""

    def __init__(
        self, dim: int, attention: SelfAttention, *, inner: int, kernel: int, dropout: float
    ) -> None:
        super().__init__()
        self.before = _feed_forward(dim, inner, dropout)
        self.attention_norm = nn.LayerNorm(dim)
        self.attention = attention
        self.convolution = ConvolutionModule(dim, kernel, causal=attention.mask.causal)
        self.after = _feed_forward(dim, inner, dropout)
        self.norm = nn.LayerNorm(dim)
        self.dropout = nn.Dropout(dropout)

    def forward(
        self, states: Tensor, lengths: Tensor, *, inspect: bool = False
    ) -> tuple[Tensor, Tensor | None]:
        """states (B,S,C), lengths (B,) -> (B,S,C) and the attention matrix when inspected."""
        mask = length_mask(lengths, states.shape[1]).unsqueeze(-1)
        states = states + 0.5 * self.dropout(self.before(states))
        attended, matrix = self.attention(self.attention_norm(states), lengths, inspect=inspect)
        states = states + self.dropout(attended)
        states = states + self.dropout(self.convolution(states, mask))
        states = states + 0.5 * self.dropout(self.after(states))
        return self.norm(states), matrix


class Conformer(Encoder):
    """Relative-position self-attention listener.

    With a causal mask its convolutions look back alone too. Subsampling needs no change: an encoder
    frame never sees past the feature frames that it stands for.

    Args:
        input_dim: F.
        dim: C.
        blocks, heads: depth and attention heads.
        feed_forward: inner width as a multiple of ``dim``.
        kernel: of the depthwise convolution, in encoder frames; odd.
        dropout: inside blocks.
        subsampling: feature frames an encoder frame; a power of two.
        channels: of the subsampling convolutions.
        position, mask: short names, or ``{"name": ..., options}``, of the kinds of
            :class:`~asr.nn.encoders.selfattention.SelfAttention`.
    """

    name = "conformer"

    def __init__(
        self,
        input_dim: int,
        *,
        dim: int = 256,
        blocks: int = 12,
        heads: int = 4,
        feed_forward: float = 4.0,
        kernel: int = 15,
        dropout: float = 0.1,
        subsampling: int = 4,
        channels: int = 32,
        position: str | dict[str, Any] = "relative",
        mask: str | dict[str, Any] = "full",
    ) -> None:
        super().__init__()
        if heads < 1 or dim % heads:
            raise ValueError(f"heads={heads}: must divide dim={dim}")
        if blocks < 1:
            raise ValueError(f"blocks={blocks}: at least 1 is needed")
        if kernel < 1 or kernel % 2 == 0:
            raise ValueError(f"kernel={kernel}: must be odd, so that a frame is its centre")
        if not 0 <= dropout < 1:
            raise ValueError(f"dropout={dropout}: needs 0 <= dropout < 1")
        self.output_dim = dim
        self.front = ConvSubsampling(input_dim, dim, factor=subsampling, channels=channels)
        self.subsampling = subsampling
        self.dropout = nn.Dropout(dropout)
        positions = [Position.build(_named(position), dim, heads) for _ in range(blocks)]
        self.encode_positions = positions[0].encode
        self.blocks = nn.ModuleList(
            ConformerBlock(
                dim,
                SelfAttention(
                    dim,
                    heads,
                    position=kind,
                    mask=Mask.build(_named(mask)),
                ),
                inner=round(dim * feed_forward),
                kernel=kernel,
                dropout=dropout,
            )
            for kind in positions
        )

    def output_lengths(self, lengths: Tensor) -> Tensor:
        return self.front.output_lengths(lengths)

    @property
    def inspectable(self) -> tuple[str, ...]:
        return tuple(f"block{index}" for index in range(len(self.blocks)))

    def forward(self, frames: Tensor, lengths: Tensor, *, inspect: Collection[str] = ()) -> Encoded:
        unknown = set(inspect) - set(self.inspectable)
        if unknown:
            raise ValueError(
                f"inspect={sorted(unknown)}: no such layer; valid: {', '.join(self.inspectable)}"
            )
        states, lengths = self.front(frames, lengths)
        if states.shape[1] == 0:
            return Encoded(states, lengths)
        states = self.dropout(self.encode_positions(states))
        matrices: dict[str, Tensor] = {}
        for layer, block in zip(self.inspectable, self.blocks, strict=True):
            states, matrix = block(states, lengths, inspect=layer in inspect)
            if matrix is not None:
                matrices[layer] = matrix
        return Encoded(
            states * length_mask(lengths, states.shape[1]).unsqueeze(-1), lengths, matrices
        )


def _named(kind: str | Mapping[str, Any]) -> Mapping[str, Any]:
    return {"name": kind} if isinstance(kind, str) else kind


__all__ = ["Conformer", "ConformerBlock", "ConvolutionModule"]
