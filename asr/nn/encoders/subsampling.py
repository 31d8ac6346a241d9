"""Fewer, richer frames before self-attention."""

from __future__ import annotations

from torch import Tensor, nn

from asr.glimpses.timing import cells
from asr.nn.masking import length_mask


class ConvSubsampling(nn.Module):
    """Two-dimensional convolutions of stride 2 (Dong et al. 2018), one for each halving.

    (B,T,F) -> (B,ceil(T/factor),dim). Frames beyond an utterance's length are zeroed after every
    layer, so an utterance's output does not depend on how far it was padded.
    """

    def __init__(self, input_dim: int, dim: int, *, factor: int = 4, channels: int = 32) -> None:
        super().__init__()
        if factor < 2 or factor & (factor - 1):
            raise ValueError(f"factor={factor}: must be a power of two, at least 2")
        if channels < 1:
            raise ValueError(f"channels={channels}: at least 1 is needed")
        self.factor = factor
        layers, bins, wide = [], input_dim, 1
        for _ in range(factor.bit_length() - 1):
            layers.append(nn.Conv2d(wide, channels, 3, stride=2, padding=1))
            bins, wide = cells(bins, 2), channels
        self.layers = nn.ModuleList(layers)
        self.output = nn.Linear(bins * channels, dim)

    def output_lengths(self, lengths: Tensor) -> Tensor:
        """ceil(lengths / factor)."""
        return cells(lengths, self.factor)

    def forward(self, frames: Tensor, lengths: Tensor) -> tuple[Tensor, Tensor]:
        # Layers want at least one frame; a batch without any has nothing to compute.
        if frames.shape[1] == 0:
            return frames.new_zeros(frames.shape[0], 0, self.output.out_features), lengths
        states = frames.unsqueeze(1)
        for layer in self.layers:
            states = nn.functional.relu(layer(states))
            lengths = cells(lengths, 2)
            states = states * length_mask(lengths, states.shape[2])[:, None, :, None]
        states = states.permute(0, 2, 1, 3).flatten(2)
        return self.output(states), lengths
