"""The listener of listen, attend and spell: a pyramid of bidirectional LSTMs."""

from __future__ import annotations

from collections.abc import Collection

import torch
from torch import Tensor, nn

from asr.glimpses.timing import cells
from asr.nn.encoders.base import Encoder
from asr.nn.masking import length_mask
from asr.types import Encoded


class BLSTM(nn.Module):
    """h = [forward LSTM, backward LSTM] over real frames alone: (B,S,X) -> (B,S,dim).

    Two one-way LSTMs, the backward one over frames reversed by index within each utterance's own
    length: on a CPU this is some times faster than packed sequences, and gives the same.
    """

    def __init__(self, input_dim: int, dim: int) -> None:
        super().__init__()
        self.forwards = nn.LSTM(input_dim, dim // 2, batch_first=True)
        self.backwards = nn.LSTM(input_dim, dim // 2, batch_first=True)

    def forward(self, states: Tensor, lengths: Tensor) -> Tensor:
        """states (B,S,X), lengths (B,) -> (B,S,dim), padding exactly 0."""
        mask = length_mask(lengths, states.shape[1]).unsqueeze(-1)
        # What comes after the end reaches no real frame: it is the last that a direction sees.
        ahead, _ = self.forwards(states)
        behind, _ = self.backwards(_reversed(states, lengths))
        return torch.cat([ahead, _reversed(behind, lengths)], -1) * mask


class Pyramidal(Encoder):
    """A BLSTM, then ``layers`` that each join two neighbouring frames into one.

    h_i^j = BLSTM(h_{i-1}^j, [h_{2i}^{j-1}, h_{2i+1}^{j-1}]) (Chan et al. 2016, eq. 5 and sect.
    3.1). Of an odd number of frames the last is joined with zeros, so that ceil(T / 2^layers)
    frames come out and cover the whole sound.

    Args:
        input_dim: F.
        dim: C, both directions together; even.
        layers: of the pyramid, above the BLSTM at the bottom; the paper has 3.
        dropout: between layers.
    """

    name = "pyramidal"

    def __init__(
        self, input_dim: int, *, dim: int = 512, layers: int = 3, dropout: float = 0.1
    ) -> None:
        super().__init__()
        if dim < 2 or dim % 2:
            raise ValueError(f"dim={dim}: must be even, one half for each direction")
        if layers < 1:
            raise ValueError(f"layers={layers}: at least 1 is needed")
        if not 0 <= dropout < 1:
            raise ValueError(f"dropout={dropout}: needs 0 <= dropout < 1")
        self.output_dim, self.subsampling = dim, 2**layers
        self.bottom = BLSTM(input_dim, dim)
        self.pyramid = nn.ModuleList(BLSTM(2 * dim, dim) for _ in range(layers))
        self.dropout = nn.Dropout(dropout)

    def output_lengths(self, lengths: Tensor) -> Tensor:
        """ceil(lengths / 2^layers)."""
        return cells(lengths, self.subsampling)

    def forward(self, frames: Tensor, lengths: Tensor, *, inspect: Collection[str] = ()) -> Encoded:
        if inspect:
            raise ValueError(f"inspect={sorted(inspect)}: there is no self-attention to see inside")
        if frames.shape[1] == 0:
            return Encoded(frames.new_zeros(len(frames), 0, self.output_dim), lengths)
        states = self.bottom(frames, lengths)
        for layer in self.pyramid:
            states = self.dropout(states)
            if states.shape[1] % 2:
                states = nn.functional.pad(states, (0, 0, 0, 1))
            states = states.unflatten(1, (-1, 2)).flatten(2)
            lengths = cells(lengths, 2)
            states = layer(states, lengths)
        return Encoded(states, lengths)


def _reversed(states: Tensor, lengths: Tensor) -> Tensor:
    """Each utterance's real frames in reverse order; padding stays where it is."""
    frames = torch.arange(states.shape[1], device=states.device)
    back = lengths.unsqueeze(1) - 1 - frames
    index = torch.where(back >= 0, back, frames)
    return states.gather(1, index.unsqueeze(-1).expand_as(states))
