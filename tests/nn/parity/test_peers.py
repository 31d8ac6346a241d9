"""The same weights in another toolkit's class give the same; skipped where it is not installed.

pip install --no-deps speechbrain==1.1.2 hyperpyyaml ruamel.yaml joblib
pip install --no-deps espnet==202511 typeguard humanfriendly
"""

from __future__ import annotations

import math

import pytest
import torch
from torch import Tensor

from asr.nn.attention import LocationAware
from asr.nn.attention.location_aware import LocationState
from asr.nn.encoders.selfattention import Causal, Full, Mask, Relative, SelfAttention
from asr.types import Encoded
from recipes.benchmark.attention_step import speechbrains

DIM, HEADS, SIZE = 16, 4, 9
WIDTH = DIM // HEADS


def ours(mask: Mask) -> SelfAttention:
    """With as many position features as the peers have, all of it random."""
    position = Relative(DIM, HEADS, frequencies=DIM // 2)
    attention = SelfAttention(DIM, HEADS, position=position, mask=mask)
    for parameter in attention.parameters():
        torch.nn.init.normal_(parameter, std=0.4)
    return attention


def positions_of(position: Relative) -> Tensor:
    """(D, D) from their sinusoids, sines and cosines in turn, to what a head compares with."""
    sines, cosines = position.distance.flatten(0, 1).chunk(2, -1)
    return torch.stack([sines, cosines], -1).flatten(1)


@torch.no_grad()
def test_relative_equals_espnets() -> None:
    pytest.importorskip("espnet", reason="ESPnet is not installed")
    from espnet.nets.pytorch_backend.transformer.attention import RelPositionMultiHeadedAttention
    from espnet.nets.pytorch_backend.transformer.embedding import RelPositionalEncoding

    attention = ours(Full())
    position = attention.position
    assert isinstance(position, Relative)
    theirs = RelPositionMultiHeadedAttention(HEADS, DIM, 0.0).eval()
    parts = zip(attention.project.weight.chunk(3), attention.project.bias.chunk(3), strict=True)
    for linear, (weight, bias) in zip(
        (theirs.linear_q, theirs.linear_k, theirs.linear_v), parts, strict=True
    ):
        linear.weight.copy_(weight)
        linear.bias.copy_(bias)
    theirs.linear_out.load_state_dict(attention.output.state_dict())
    theirs.linear_pos.weight.copy_(positions_of(position))
    theirs.pos_bias_u.copy_(position.content_bias.squeeze(1))
    theirs.pos_bias_v.copy_(position.distance_bias.squeeze(1))
    states, lengths = torch.randn(2, SIZE, DIM), torch.tensor([SIZE, 5])
    mask = torch.arange(SIZE) < lengths[:, None]
    encode = RelPositionalEncoding(DIM, 0.0)
    expected = theirs(states, states, states, encode(states)[1], mask.unsqueeze(1))
    found, _ = attention(states, lengths)
    torch.testing.assert_close(found[mask], expected[mask], atol=1e-4, rtol=1e-4)


@torch.no_grad()
def test_relative_equals_speechbrains() -> None:
    """Looking back alone: ahead, its sines have the sign that they have behind."""
    pytest.importorskip("speechbrain", reason="SpeechBrain is not installed")
    from speechbrain.nnet.attention import RelPosEncXL, RelPosMHAXL

    attention = ours(Causal())
    position = attention.position
    assert isinstance(position, Relative)
    attention.project.bias.zero_()  # theirs have none
    position.scale = 1 / math.sqrt(DIM)  # theirs: by the width of all heads
    theirs = RelPosMHAXL(DIM, HEADS).eval()
    by_head = attention.project.weight.view(3, HEADS, WIDTH, DIM).transpose(0, 1)
    theirs.in_proj_weight.copy_(by_head.reshape(3 * DIM, DIM))
    theirs.out_proj.load_state_dict(attention.output.state_dict())
    theirs.linear_pos.weight.copy_(positions_of(position))
    theirs.pos_bias_u.copy_(position.content_bias.view(WIDTH, HEADS))
    theirs.pos_bias_v.copy_(position.distance_bias.view(WIDTH, HEADS))
    states = torch.randn(2, SIZE, DIM)
    future = torch.ones(SIZE, SIZE, dtype=torch.bool).triu(1)
    encoded = RelPosEncXL(DIM)(states)
    expected, weights = theirs(states, states, states, encoded, attn_mask=future)
    found, matrix = attention(states, torch.tensor([SIZE, SIZE]), inspect=True)
    torch.testing.assert_close(matrix, weights, atol=1e-4, rtol=1e-4)
    torch.testing.assert_close(found, expected, atol=1e-4, rtol=1e-4)


@torch.no_grad()
@pytest.mark.parametrize("sharpening", [1.0, 2.0])
def test_location_aware_equals_speechbrains(sharpening: float) -> None:
    """Its first vector is uniform, ours nothing; from then on a run of steps is the same."""
    pytest.importorskip("speechbrain", reason="SpeechBrain is not installed")
    mechanism = LocationAware(DIM, 10, dim=8, channels=3, kernel=5, convolve="previous",
                              sharpening=sharpening)  # fmt: skip
    states, queries = torch.randn(2, SIZE, DIM), torch.randn(6, 4, 10)
    uniform = torch.full((6, SIZE), 1 / SIZE)
    memory = mechanism.prepare(Encoded(states, torch.tensor([SIZE, SIZE])))
    state, previous = LocationState(uniform, uniform), uniform
    for query in queries.unbind(1):
        attended, state = mechanism.step(query, memory, state, mode="decode")
        step = speechbrains(states, query, previous, mechanism)
        previous = step()
        torch.testing.assert_close(attended.weights[:, 0], previous, atol=1e-5, rtol=1e-4)
