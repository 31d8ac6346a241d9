"""Monotonic attention and its chunks, against plain loops over frames and draws."""

from __future__ import annotations

import math

import pytest
import torch
from torch import Tensor

from asr.nn.attention import MoChunk, Monotonic
from asr.nn.attention.monotonic import (
    expected_place,
    expected_stops,
    first_stop,
    linear_scan,
    spread,
)
from tests.nn.conftest import encoded
from tests.nn.parity.loops import C, H, additive, softmax


def stops_by_loop(p: list[float], before: list[float]) -> list[float]:
    """Raffel et al. 2017, eq. 9: all pairs (k, j), nothing shared between them."""
    return [
        p[j] * sum(before[k] * math.prod(1 - p[m] for m in range(k, j)) for k in range(j + 1))
        for j in range(len(p))
    ]


def test_expected_stops_equal_a_triple_loop() -> None:
    scores = torch.randn(2, 4, 9)
    before = torch.zeros(2, 9)
    before[:, 0] = 1.0
    loops = before.tolist()
    for u in range(4):
        before = expected_stops(scores[:, u], before)
        loops = [
            stops_by_loop(torch.sigmoid(scores[row, u]).tolist(), loops[row]) for row in range(2)
        ]
        torch.testing.assert_close(before, torch.tensor(loops), atol=1e-6, rtol=1e-4)


@pytest.mark.parametrize("size", [0, 1, 2, 5, 8, 33])
def test_scan_equals_a_loop(size: int) -> None:
    decay, inputs = torch.rand(3, size), torch.randn(3, size)
    wanted, y = [], torch.zeros(3)
    for j in range(size):
        y = decay[:, j] * y + inputs[:, j]
        wanted.append(y)
    made = linear_scan(decay, inputs)
    torch.testing.assert_close(made, torch.stack(wanted, 1) if wanted else inputs)


@pytest.mark.parametrize("offset", [-8.0, 0.0, 8.0])
def test_expected_stops_are_exact_over_two_thousand_frames(offset: float) -> None:
    scores = (3 * torch.randn(1, 30, 2000) + offset).requires_grad_()
    before = torch.zeros(1, 2000)
    before[:, 0] = 1.0
    exact = before.double()
    for u in range(30):
        before = expected_stops(scores[:, u], before)
        p = torch.sigmoid(scores[:, u].detach().double())[0].tolist()
        arrived, wanted = 0.0, []
        for j in range(2000):
            arrived = arrived * (1 - p[j - 1] if j else 0.0) + float(exact[0, j])
            wanted.append(p[j] * arrived)
        exact = torch.tensor([wanted], dtype=torch.double)
        assert (before >= 0).all() and float(before.detach().sum()) <= 1 + 1e-5
    torch.testing.assert_close(before.detach(), exact.float(), atol=1e-6, rtol=1e-3)
    before.square().sum().backward()
    assert torch.isfinite(scores.grad).all()


@torch.no_grad()
def test_monotonic_energy_equals_a_loop() -> None:
    mechanism = Monotonic(C, H, dim=4, offset=0.3, noise=0.0)
    states, queries = encoded([6], C), torch.randn(1, 3, H)
    whole = mechanism.sequence(queries, mechanism.prepare(states), mode="train")
    place = [1.0] + [0.0] * 5
    norm = math.sqrt(float(mechanism.score.energy.weight.square().sum()))
    for u in range(3):
        p = []
        for j in range(6):
            score = additive(mechanism.score, queries[0, u], states.states[0, j])
            energy = 2 * float(mechanism.rms) * score / norm + 0.3
            p.append(1 / (1 + math.exp(-energy)))
        stops = stops_by_loop(p, place)
        torch.testing.assert_close(
            whole.weights[0, u, 0], torch.tensor(stops), atol=1e-5, rtol=1e-4
        )
        place = [stops[j] + place[j] * math.prod(1 - p[k] for k in range(j, 6)) for j in range(6)]


def test_gain_grows_as_fast_as_a_vector_would() -> None:
    """Or a thousand steps are too few for a stop to become sure."""
    size, rate = 64, 1e-2
    mechanism = Monotonic(C, H, dim=size, noise=0.0)
    direction = mechanism.score.energy.weight
    states, queries = encoded([5], C), torch.randn(1, 1, H)
    place = torch.tensor([[1.0, 0, 0, 0, 0]])
    raw = mechanism.score(queries[0], mechanism.prepare(states).keys)[0, 0].detach()

    def gain() -> float:
        stops, _ = mechanism.stops(queries[0], mechanism.prepare(states), place, "train")
        energy = torch.logit(stops[0, 0]) - mechanism.offset
        return abs(float((energy / (raw / direction.norm())).detach()))

    before = gain()
    assert before == pytest.approx(size**-0.5, rel=1e-3)
    mechanism.rms.grad = -torch.ones_like(mechanism.rms)
    torch.optim.Adam([mechanism.rms], lr=rate).step()
    assert gain() - before == pytest.approx(rate * size**0.5, rel=1e-3)


def test_training_expects_what_reading_on_does() -> None:
    """The rule of decoding, over many draws of which frames say stop, is on average training's."""
    draws, tokens, size, real = 20_000, 5, 6, 5
    scores = torch.randn(tokens, size) - 1.5
    mask = torch.arange(size).expand(1, size) < real
    expected = torch.eye(size)[:1]
    place = expected.expand(draws, size)
    for u in range(tokens):
        stops = expected_stops(scores[u : u + 1], expected) * mask
        expected = expected_place(scores[u : u + 1], mask, expected, stops)
        chosen = (torch.rand(draws, size) < torch.sigmoid(scores[u])) & mask
        drawn = first_stop(chosen, place)
        place = torch.where(drawn.any(-1, keepdim=True), drawn, place)
        torch.testing.assert_close(drawn.mean(0), stops[0], atol=0.015, rtol=0.0)
        torch.testing.assert_close(place.mean(0), expected[0], atol=0.015, rtol=0.0)
        assert float(1 - stops.sum()) > 0.05, "where every token stops, nothing is shown"
    assert float(expected.sum()) == pytest.approx(1.0, abs=1e-5)


@torch.no_grad()
@pytest.mark.parametrize("kind", [Monotonic, MoChunk])
def test_a_token_that_stops_nowhere_hears_nothing_and_silences_no_other(kind) -> None:
    mechanism, states = kind(C, C, dim=C, offset=0.0), encoded([6], C)
    # Scores that are the query's own: v tanh(s + 0) has its sign, at every frame.
    score = mechanism.score
    score.query.weight.copy_(torch.eye(C))
    score.key.weight.zero_()
    score.key.bias.zero_()
    score.energy.weight.fill_(1.0)
    queries = torch.tensor([1.0, -1.0, 1.0]).view(1, 3, 1).expand(1, 3, C)
    heard = mechanism.sequence(queries, mechanism.prepare(states), mode="decode").weights
    assert heard.sum(-1).flatten().tolist() == [1.0, 0.0, 1.0]
    assert torch.equal(heard[0, 0], heard[0, 2])  # from where the first one stopped


def test_noise_is_in_training_alone() -> None:
    mechanism, states = Monotonic(C, H), encoded([6], C)
    queries, memory = torch.randn(1, 3, H), mechanism.prepare(states)

    def twice(mode) -> list[Tensor]:
        return [mechanism.sequence(queries, memory, mode=mode).weights for _ in range(2)]

    assert not torch.equal(*twice("train")) and torch.equal(*twice("decode"))


def test_decoding_stops_at_the_first_frame_from_the_last_stop_on() -> None:
    p = torch.tensor([[0.1, 0.7, 0.2, 0.9, 0.8], [0.6, 0.6, 0.1, 0.1, 0.1]])
    start = torch.tensor([[1.0, 0, 0, 0, 0]] * 2)
    first = first_stop(p > 0.5, start)
    assert first.tolist() == [[0, 1, 0, 0, 0], [1, 0, 0, 0, 0]]
    later = torch.tensor([[0.9, 0.1, 0.1, 0.1, 0.6], [0.4, 0.4, 0.1, 0.1, 0.1]])
    second = first_stop(later > 0.5, first)
    assert second.tolist() == [[0, 0, 0, 0, 1], [0, 0, 0, 0, 0]]  # one has read to the end
    assert first_stop(later > -1.0, second).tolist() == [[0, 0, 0, 0, 1], [0, 0, 0, 0, 0]]


@pytest.mark.parametrize("width", [1, 3, 12])
def test_chunks_equal_a_triple_loop(width: int) -> None:
    """Chiu & Raffel 2018, eq. 18-19."""
    size = 7
    stops, scores = torch.rand(1, size) / size, 3 * torch.randn(1, size)
    made = spread(stops, scores, width)
    exps = [math.exp(float(score)) for score in scores[0]]
    wanted = []
    for j in range(size):
        total = 0.0
        for k in range(j, min(size, j + width)):
            window = sum(exps[m] for m in range(max(0, k - width + 1), k + 1))
            total += float(stops[0, k]) * exps[j] / window
        wanted.append(total)
    torch.testing.assert_close(made, torch.tensor([wanted]), atol=1e-6, rtol=1e-4)
    torch.testing.assert_close(made.sum(), stops.sum())


def test_a_chunk_of_low_scores_beside_high_ones_is_still_shared_out() -> None:
    scores = torch.tensor([[0.0, 0.0, 0.0, 500.0, 500.0]], requires_grad=True)
    made = spread(torch.tensor([[0.0, 1.0, 0.0, 0.0, 0.0]]), scores, 2)
    torch.testing.assert_close(made, torch.tensor([[0.5, 0.5, 0.0, 0.0, 0.0]]))
    made.square().sum().backward()
    assert torch.isfinite(scores.grad).all()


@torch.no_grad()
def test_mochunk_is_a_softmax_over_the_frames_up_to_the_stop() -> None:
    width = 3
    mechanism = MoChunk(C, H, dim=4, width=width, offset=0.0)
    states, queries = encoded([12], C), 2 * torch.randn(1, 5, H)
    whole = mechanism.sequence(queries, mechanism.prepare(states), mode="decode")
    last, norm, stopped = 0, float(mechanism.score.energy.weight.norm()), 0
    for u in range(5):
        energies = [
            2 * float(mechanism.rms) * additive(mechanism.score, queries[0, u], h) / norm
            + float(mechanism.offset)
            for h in states.states[0]
        ]
        stop = next((j for j in range(last, 12) if energies[j] > 0), None)
        wanted = torch.zeros(12)
        if stop is not None:
            frames = list(range(max(0, stop - width + 1), stop + 1))
            scores = [additive(mechanism.chunk, queries[0, u], states.states[0, j]) for j in frames]
            wanted[frames] = torch.tensor(softmax(scores))
        torch.testing.assert_close(whole.weights[0, u, 0], wanted, atol=1e-5, rtol=1e-4)
        last = 12 if stop is None else stop
        stopped += stop is not None
    assert stopped
