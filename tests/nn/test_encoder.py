"""The listener: distances against a loop, padding, lengths, inspection."""

from __future__ import annotations

import math

import pytest
import torch

from asr.nn.encoders import Conformer, Encoder
from asr.nn.encoders.selfattention import Full, Mask, Position, Relative, SelfAttention


def test_relative_scores_equal_a_loop_over_distances() -> None:
    """Dai et al. 2019: (q + u) · k + (q + v) · W r_{i-j}, with r a sinusoid of the distance."""
    dim, heads, size, frequencies = 8, 2, 7, 3
    position = Relative(dim, heads, frequencies=frequencies)
    for parameter in position.parameters():
        torch.nn.init.normal_(parameter)
    queries, keys = torch.randn(2, 1, heads, size, dim // heads).unbind(0)
    q, k = position(queries, keys)
    got = (q @ k.transpose(-1, -2))[0]
    width = dim // heads
    for head in range(heads):
        u, v = position.content_bias[head, 0], position.distance_bias[head, 0]
        for i in range(size):
            for j in range(size):
                angles = [(i - j) * 10_000 ** (-f / frequencies) for f in range(frequencies)]
                r = torch.tensor([math.sin(a) for a in angles] + [math.cos(a) for a in angles])
                content = (queries[0, head, i] + u) @ keys[0, head, j]
                straight = (queries[0, head, i] + v) @ (position.distance[head] @ r)
                expected = (content + straight) / math.sqrt(width)
                torch.testing.assert_close(got[head, i, j], expected, atol=1e-4, rtol=1e-4)


def test_relative_scores_do_not_depend_on_where_the_pair_stands() -> None:
    position = Relative(8, 2)
    queries = torch.randn(1, 2, 1, 4).expand(1, 2, 300, 4)
    keys = torch.randn(1, 2, 1, 4).expand(1, 2, 300, 4)
    q, k = position(queries, keys)
    scores = (q @ k.transpose(-1, -2))[0, 0]
    for distance in (-40, -1, 0, 3, 100):
        diagonal = scores.diagonal(distance)
        torch.testing.assert_close(diagonal, diagonal[:1].expand_as(diagonal), atol=1e-3, rtol=1e-3)
    ahead, behind = (scores.diagonal(d).mean().item() for d in (3, -3))
    assert ahead != pytest.approx(behind)


def test_inspected_matrix_is_what_was_used() -> None:
    attention = SelfAttention(8, 2, position=Relative(8, 2), mask=Full())
    states, lengths = torch.randn(2, 6, 8), torch.tensor([6, 4])
    output, matrix = attention(states, lengths, inspect=True)
    assert matrix is not None and matrix.shape == (2, 2, 6, 6)
    torch.testing.assert_close(matrix[0].sum(-1), torch.ones(2, 6))
    assert not matrix[1, :, :, 4:].any() and not matrix[1, :, 4:].any()
    values = attention.project(states).view(2, 6, 3, 2, 4)[:, :, 2].permute(0, 2, 1, 3)
    mixed = (matrix @ values).transpose(1, 2).reshape(2, 6, 8)
    real = torch.tensor([[True] * 6, [True] * 4 + [False] * 2])
    torch.testing.assert_close(attention.output(mixed)[real], output[real], atol=1e-5, rtol=1e-4)
    assert attention(states, lengths)[1] is None


def small(**options: object) -> Encoder:
    return Conformer(12, dim=16, blocks=2, heads=2, kernel=5, channels=4, **options).eval()


KINDS = [
    {"position": position, "mask": mask}
    for position in sorted(Position.registry)
    for mask in (*sorted(Mask.registry), {"name": "banded", "before": 2, "after": 0})
]


@pytest.mark.parametrize(
    "options", [{"subsampling": 2}, {"subsampling": 8}, *KINDS], ids=lambda options: str(options)
)
def test_one_alone_equals_one_in_company(options: dict) -> None:
    encoder = small(**options)
    subsampling = encoder.subsampling
    lengths = torch.tensor([50, 1, 0, 33])
    frames = torch.randn(4, 50, 12)
    frames *= (torch.arange(50) < lengths[:, None]).unsqueeze(-1)
    together = encoder(frames, lengths)
    assert together.lengths.tolist() == [math.ceil(n / subsampling) for n in lengths.tolist()]
    assert torch.equal(together.lengths, encoder.output_lengths(lengths))
    assert together.states.shape == (4, int(together.lengths.max()), encoder.output_dim)
    assert torch.isfinite(together.states).all()
    for row, length in enumerate(lengths.tolist()):
        alone = encoder(frames[row : row + 1, :length], torch.tensor([length]))
        count = int(alone.lengths)
        torch.testing.assert_close(
            together.states[row, :count], alone.states[0], atol=1e-5, rtol=1e-4
        )
        assert not together.states[row, count:].any()


def changed_by(encoder: Encoder, first: int, last: int, size: int = 64) -> list[bool]:
    """Which encoder frames notice that feature frames ``first`` to ``last`` became others."""
    frames, lengths = torch.randn(1, size, 12), torch.tensor([size])
    other = frames.clone()
    other[:, first:last] = torch.randn(1, last - first, 12)
    before, after = (encoder(each, lengths).states[0] for each in (frames, other))
    return (before != after).any(-1).tolist()


@pytest.mark.parametrize("position", sorted(Position.registry))
@pytest.mark.parametrize("mask", ["causal", {"name": "banded", "before": 3, "after": 0}], ids=str)
@pytest.mark.parametrize("subsampling", [2, 4])
def test_a_causal_listener_never_sees_the_future(position: str, mask: object, subsampling: int):
    encoder = small(position=position, mask=mask, subsampling=subsampling)
    for first in (0, 8, 24, 60):
        changed = changed_by(encoder, first, 64)
        assert not any(changed[: first // subsampling]) and changed[first // subsampling]
    assert any(changed_by(small(position=position), 24, 64)[:6])  # and others do


@pytest.mark.parametrize("position", sorted(Position.registry))
def test_outside_the_band_nothing_matters_through_the_attention(position: str) -> None:
    # A kernel of one frame: what crosses frames is attention, three to a side in each of 2 blocks,
    # and the subsampling, which sees one feature frame to either side.
    options = {"position": position, "mask": {"name": "banded", "before": 3, "after": 3}}
    encoder = Conformer(12, dim=16, blocks=2, heads=2, kernel=1, channels=4, **options).eval()
    changed = changed_by(encoder, 64, 68, size=128)  # encoder frame 16, and 17 by subsampling
    assert changed[16] and changed[11] and not any(changed[:10]) and not any(changed[24:])


def test_only_layers_asked_for_keep_their_matrices() -> None:
    encoder = small()
    frames, lengths = torch.randn(1, 20, 12), torch.tensor([20])
    assert encoder.inspectable == ("block0", "block1")
    assert set(encoder(frames, lengths, inspect=("block1",)).attention) == {"block1"}
    plain, seen = encoder(frames, lengths), encoder(frames, lengths, inspect=encoder.inspectable)
    assert torch.equal(plain.states, seen.states)
    with pytest.raises(ValueError, match="block7.*valid: block0, block1"):
        encoder(frames, lengths, inspect=("block7",))


def test_gradients_are_finite_with_an_empty_utterance_in_the_batch() -> None:
    encoder = small(dropout=0.0).train()
    frames, lengths = torch.randn(3, 30, 12), torch.tensor([30, 0, 5])
    encoder(frames, lengths).states.square().sum().backward()
    assert all(torch.isfinite(p.grad).all() for p in encoder.parameters() if p.grad is not None)


@pytest.mark.parametrize(
    ("options", "named"),
    [
        ({"heads": 3}, "heads=3"),
        ({"kernel": 4}, "kernel=4"),
        ({"blocks": 0}, "blocks=0"),
        ({"subsampling": 3}, "factor=3"),
        ({"dropout": 1.0}, "dropout=1.0"),
        ({"position": "sinus"}, "unknown position 'sinus'; valid: .*relative"),
        ({"mask": "half"}, "unknown mask 'half'; valid: .*full"),
        ({"position": {"name": "relative", "frequencies": 0}}, "frequencies=0"),
        ({"position": {"name": "absolute", "longest": 1.0}}, "longest=1.0"),
        ({"position": {"name": "rotary", "longest": 0.5}}, "longest=0.5"),
        ({"position": "rotary", "dim": 6, "heads": 2}, "heads=2: rotary turns pairs"),
        ({"position": {"name": "relative_shaw", "clip": 0}}, "clip=0"),
        ({"mask": {"name": "banded", "before": -1}}, "before=-1"),
        ({"mask": {"name": "banded", "after": -2}}, "after=-2"),
    ],
)
def test_refuses(options: dict, named: str) -> None:
    with pytest.raises(ValueError, match=named):
        Conformer(12, **{"dim": 16, **options})
