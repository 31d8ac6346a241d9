"""Position kinds and masks of the listener, and its kernels, against plain loops."""

from __future__ import annotations

import itertools
import math

import pytest
import torch
from torch import Tensor

from asr.nn.encoders.selfattention import (
    Absolute,
    Banded,
    Causal,
    Full,
    Mask,
    Position,
    RelativeShaw,
    Rotary,
    SelfAttention,
    kernels,
)

DIM, HEADS, WIDTH = 8, 2, 4
MASKS = [Full(), Causal(), Banded(before=2, after=1), Banded(before=3, after=0)]
KINDS = sorted(Position.registry)
masks = pytest.mark.parametrize("mask", MASKS, ids=lambda m: f"{m.name}-{m.before}-{m.after}")
kinds = pytest.mark.parametrize("kind", KINDS)


def seen(mask: Mask, i: int, j: int) -> bool:
    before = mask.before is None or i - j <= mask.before
    return before and (mask.after is None or j - i <= mask.after)


def test_there_are_kinds() -> None:
    assert set(KINDS) == {"absolute", "relative", "relative_shaw", "rotary"}
    assert set(Mask.registry) == {"full", "causal", "banded"}


def test_absolute_adds_a_sinusoid_to_the_input() -> None:
    states = torch.randn(1, 6, 7)
    added = (Absolute(7, 1).encode(states) - states)[0]
    for i, column in itertools.product(range(6), range(7)):
        angle = i / 10_000 ** (2 * (column // 2) / 7)
        wanted = math.cos(angle) if column % 2 else math.sin(angle)
        assert float(added[i, column]) == pytest.approx(wanted, abs=1e-5)


def test_rotary_scores_equal_rotation_matrices() -> None:
    queries, keys = torch.randn(2, 1, HEADS, 6, WIDTH).unbind(0)
    q, k = Rotary(DIM, HEADS)(queries, keys)
    made = q @ k.transpose(-1, -2)

    def turned(vector: Tensor, position: int) -> Tensor:
        out = torch.zeros(WIDTH)
        for m in range(WIDTH // 2):
            angle = position * 10_000 ** (-2 * m / WIDTH)
            x, y = float(vector[2 * m]), float(vector[2 * m + 1])
            out[2 * m] = x * math.cos(angle) - y * math.sin(angle)
            out[2 * m + 1] = x * math.sin(angle) + y * math.cos(angle)
        return out

    for head, i, j in itertools.product(range(HEADS), range(6), range(6)):
        # R_i^T R_j = R_{j-i}: the distance alone
        straight = queries[0, head, i] @ turned(keys[0, head, j], j - i) / math.sqrt(WIDTH)
        torch.testing.assert_close(made[0, head, i, j], straight, atol=1e-5, rtol=1e-4)


@torch.no_grad()
@masks
@pytest.mark.parametrize("values", [True, False])
def test_shaw_equals_a_triple_loop(mask: Mask, values: bool, monkeypatch) -> None:
    """Shaw et al. 2018, eq. 3-5, over more than one chunk of queries."""
    monkeypatch.setattr(kernels, "CHUNK", 3)
    size, clip = 7, 2
    position = RelativeShaw(DIM, HEADS, clip=clip, values=values)
    attention = SelfAttention(DIM, HEADS, position=position, mask=mask)
    states = torch.randn(1, size, DIM)
    made, _ = attention(states, torch.tensor([size]))
    split = attention.project(states).view(size, 3, HEADS, WIDTH)
    mixed = torch.zeros(size, HEADS, WIDTH)
    for head, i in itertools.product(range(HEADS), range(size)):
        near = [j for j in range(size) if seen(mask, i, j)]
        index = [max(-clip, min(clip, j - i)) + clip for j in near]
        scores = [
            split[i, 0, head] @ (split[j, 1, head] + position.for_keys[d]) / math.sqrt(WIDTH)
            for j, d in zip(near, index, strict=True)
        ]
        for j, d, share in zip(near, index, torch.stack(scores).softmax(0), strict=True):
            value = split[j, 2, head]
            mixed[i, head] += share * (value + position.for_values[d] if values else value)
    wanted = attention.output(mixed.view(size, DIM))
    torch.testing.assert_close(made[0], wanted, atol=1e-5, rtol=1e-4)


@kinds
@masks
def test_chunks_change_nothing_and_neither_does_recomputing(
    kind: str, mask: Mask, monkeypatch
) -> None:
    attention = SelfAttention(DIM, HEADS, position=Position.build({"name": kind}, DIM, HEADS),
                              mask=mask)  # fmt: skip
    states, lengths = torch.randn(3, 11, DIM), torch.tensor([11, 4, 0])
    real = torch.arange(11) < lengths[:, None]
    outcomes = []
    for chunk in (128, 4):
        monkeypatch.setattr(kernels, "CHUNK", chunk)
        attention.zero_grad()
        made, _ = attention(states, lengths)
        made[real].square().sum().backward()
        outcomes.append([made[real], *(p.grad.clone() for p in attention.parameters())])
        with torch.no_grad():
            torch.testing.assert_close(attention(states, lengths)[0][real], made[real])
    for a, b in zip(*outcomes, strict=True):
        assert torch.isfinite(a).all()
        torch.testing.assert_close(a, b, atol=1e-5, rtol=1e-4)


@torch.no_grad()
@kinds
@masks
def test_the_inspected_matrix_is_what_was_used(kind: str, mask: Mask) -> None:
    position = Position.build({"name": kind}, DIM, HEADS)
    attention = SelfAttention(DIM, HEADS, position=position, mask=mask)
    states, lengths = torch.randn(2, 6, DIM), torch.tensor([6, 4])
    output, matrix = attention(states, lengths, inspect=True)
    assert matrix.shape == (2, HEADS, 6, 6) and matrix.dtype == torch.float32
    torch.testing.assert_close(matrix[0].sum(-1), torch.ones(HEADS, 6))
    for i, j in itertools.product(range(6), range(6)):
        assert bool((matrix[0, :, i, j] > 0).all()) == seen(mask, i, j)
    assert not matrix[1, :, :, 4:].any() and not matrix[1, :, 4:].any()
    values = attention.project(states).view(2, 6, 3, HEADS, WIDTH)[:, :, 2].permute(0, 2, 1, 3)
    mixed = matrix @ values
    if position.explicit:
        away = torch.arange(6) - torch.arange(6).unsqueeze(1)
        mixed = mixed + position.recall(matrix, away)
    wanted = attention.output(mixed.transpose(1, 2).reshape(2, 6, DIM))
    real = torch.arange(6) < lengths[:, None]
    torch.testing.assert_close(wanted[real], output[real], atol=1e-5, rtol=1e-4)


@pytest.mark.parametrize("kind", ["relative", "relative_shaw", "rotary"])
def test_relative_kinds_know_distances_alone(kind: str) -> None:
    position = Position.build({"name": kind}, DIM, HEADS)
    queries, keys = (torch.randn(1, HEADS, 1, WIDTH).expand(1, HEADS, 60, WIDTH) for _ in "qk")
    q, k = position(queries, keys)
    scores = q @ k.transpose(-1, -2)
    if position.explicit:
        scores = scores + position.bias(q, torch.arange(60) - torch.arange(60).unsqueeze(1))
    for distance in (-30, -1, 0, 5):
        diagonal = scores[0, 0].diagonal(distance)
        torch.testing.assert_close(diagonal, diagonal[:1].expand_as(diagonal), atol=1e-4, rtol=1e-4)
    ahead, behind = (float(scores[0, 0].diagonal(d).mean().detach()) for d in (3, -3))
    assert ahead != pytest.approx(behind, abs=1e-6)


@kinds
def test_what_is_kept_grows_linearly_with_the_length(kind: str) -> None:
    """Twice the frames, twice the bytes that the backward pass is given."""

    def kept(size: int, mask: Mask) -> int:
        position = Position.build({"name": kind}, DIM, HEADS)
        attention = SelfAttention(DIM, HEADS, position=position, mask=mask)
        storages = {}

        def count(tensor: Tensor) -> Tensor:
            storage = tensor.untyped_storage()
            storages[storage.data_ptr()] = (storage, tensor)  # alive, so that none is used twice
            return tensor

        with torch.autograd.graph.saved_tensors_hooks(count, lambda tensor: tensor):
            attention(torch.randn(1, size, DIM), torch.tensor([size]))
        return sum(storage.nbytes() for storage, _ in storages.values())

    for mask in (Full(), Causal(), Banded(before=8, after=8)):
        assert kept(1024, mask) < 2.2 * kept(512, mask)
