"""The pyramidal listener against torch's own bidirectional LSTM over packed sequences."""

from __future__ import annotations

import math

import pytest
import torch
from torch import nn

from asr.nn.encoders import Pyramidal
from asr.nn.encoders.pyramidal import BLSTM


@torch.no_grad()
def test_a_layer_equals_torchs_bidirectional_lstm() -> None:
    ours, theirs = BLSTM(5, 6), nn.LSTM(5, 3, batch_first=True, bidirectional=True)
    for suffix, one_way in (("", ours.forwards), ("_reverse", ours.backwards)):
        for name, weight in one_way.named_parameters():
            getattr(theirs, name + suffix).copy_(weight)
    states, lengths = torch.randn(3, 9, 5), torch.tensor([9, 4, 1])
    packed = nn.utils.rnn.pack_padded_sequence(states, lengths, batch_first=True)
    wanted, _ = nn.utils.rnn.pad_packed_sequence(theirs(packed)[0], batch_first=True)
    torch.testing.assert_close(ours(states, lengths), wanted)


@pytest.mark.parametrize("layers", [1, 2, 3])
def test_one_alone_equals_one_in_company(layers: int) -> None:
    encoder = Pyramidal(12, dim=8, layers=layers).eval()
    lengths = torch.tensor([29, 1, 0, 18])
    frames = torch.randn(4, 29, 12)
    together = encoder(frames, lengths)
    assert encoder.subsampling == 2**layers and together.states.shape[2] == encoder.output_dim
    assert together.lengths.tolist() == [math.ceil(n / 2**layers) for n in lengths.tolist()]
    assert torch.equal(together.lengths, encoder.output_lengths(lengths))
    for row, length in enumerate(lengths.tolist()):
        alone = encoder(frames[row : row + 1, :length], torch.tensor([length]))
        count = int(alone.lengths)
        torch.testing.assert_close(together.states[row, :count], alone.states[0])
        assert not together.states[row, count:].any()


@torch.no_grad()
def test_neighbours_are_joined_and_the_odd_one_out_with_nothing() -> None:
    """Chan et al. 2016, eq. 5."""
    encoder = Pyramidal(12, dim=8, layers=1).eval()
    frames, length = torch.randn(1, 5, 12), torch.tensor([5])
    bottom = encoder.bottom(frames, length)[0]
    pairs = [torch.cat([bottom[0], bottom[1]]), torch.cat([bottom[2], bottom[3]])]
    pairs.append(torch.cat([bottom[4], torch.zeros(8)]))
    wanted = encoder.pyramid[0](torch.stack(pairs).unsqueeze(0), torch.tensor([3]))
    torch.testing.assert_close(encoder(frames, length).states, wanted)


def test_gradients_are_finite_with_an_empty_utterance_in_the_batch() -> None:
    encoder = Pyramidal(12, dim=8).train()
    encoder(torch.randn(3, 30, 12), torch.tensor([30, 0, 5])).states.square().sum().backward()
    assert all(torch.isfinite(p.grad).all() for p in encoder.parameters())
    assert encoder(torch.randn(2, 0, 12), torch.tensor([0, 0])).states.shape == (2, 0, 8)


@pytest.mark.parametrize(
    ("options", "named"),
    [({"dim": 7}, "dim=7"), ({"layers": 0}, "layers=0"), ({"dropout": 1.0}, "dropout=1.0")],
)
def test_refuses(options: dict, named: str) -> None:
    with pytest.raises(ValueError, match=named):
        Pyramidal(12, **options)


def test_there_is_nothing_to_inspect() -> None:
    encoder = Pyramidal(12, dim=8)
    assert encoder.inspectable == ()
    with pytest.raises(ValueError, match="no self-attention"):
        encoder(torch.randn(1, 8, 12), torch.tensor([8]), inspect=("block0",))
