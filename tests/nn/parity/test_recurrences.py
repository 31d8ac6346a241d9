"""Mechanisms that remember what they attended to, against plain loops."""

from __future__ import annotations

import math

import pytest
import torch
from torch import Tensor

from asr.nn.attention import Coverage, Hard, Introspective, MoChunk, Monotonic, MultiHeadLocation
from asr.nn.attention.introspective import address
from asr.nn.attention.monotonic import (
    expected_place,
    expected_stops,
    first_stop,
    linear_scan,
    spread,
)
from tests.nn.conftest import encoded

C, H = 8, 6


def additive(score, s: Tensor, h: Tensor, feature: Tensor | float = 0.0) -> float:
    inner = score.query.weight @ s + score.key.weight @ h + score.key.bias + feature
    return float(score.energy.weight[0] @ torch.tanh(inner))


def softmax(scores: list[float]) -> list[float]:
    exps = [math.exp(score - max(scores)) for score in scores]
    return [e / sum(exps) for e in exps]


@torch.no_grad()
@pytest.mark.parametrize("convolve", ["previous", "accumulated", "both"])
def test_multi_head_location_equals_a_loop(convolve: str) -> None:
    size, heads, kernel, channels, dim = 7, 2, 3, 4, 6
    mechanism = MultiHeadLocation(
        C, H, dim=dim, heads=heads, kernel=kernel, channels=channels, convolve=convolve,
        sharpening=1.5,
    )  # fmt: skip
    states, queries = encoded([size], C), torch.randn(1, 3, H)
    attended = mechanism.sequence(queries, mechanism.prepare(states), mode="decode")
    h, width = states.states[0], dim // heads
    previous = torch.zeros(heads, size)
    total = torch.zeros(heads, size)
    for u in range(3):
        now, context = torch.zeros(heads, size), []
        for a in range(heads):
            part = slice(a * width, (a + 1) * width)
            seen = {
                "previous": [previous[a]],
                "accumulated": [total[a]],
                "both": [previous[a], total[a]],
            }[convolve]
            scores = []
            for j in range(size):
                feature = torch.zeros(channels)
                for i, vector in enumerate(seen):
                    for k in range(kernel):
                        frame = j + k - kernel // 2
                        if 0 <= frame < size:
                            feature += mechanism.filters[a, i * kernel + k] * vector[frame]
                inner = (
                    (mechanism.query.weight @ queries[0, u])[part]
                    + (mechanism.key.weight @ h[j] + mechanism.key.bias)[part]
                    + feature @ mechanism.location[a]
                )
                scores.append(1.5 * float(mechanism.energy[a] @ torch.tanh(inner)))
            now[a] = torch.tensor(softmax(scores))
            values = h @ mechanism.value.weight.T + mechanism.value.bias
            context.append(now[a] @ values[:, part])
        torch.testing.assert_close(attended.weights[0, u], now, atol=1e-5, rtol=1e-4)
        wanted = mechanism.output(torch.cat(context))
        torch.testing.assert_close(attended.context[0, u], wanted, atol=1e-5, rtol=1e-4)
        previous, total = now, total + now


@torch.no_grad()
def test_coverage_and_its_loss_equal_a_loop() -> None:
    size = 6
    mechanism = Coverage(C, H, dim=5, loss_weight=0.7)
    states, queries = encoded([size], C), torch.randn(1, 4, H)
    attended = mechanism.sequence(queries, mechanism.prepare(states), mode="train")
    covered, overlaps = [0.0] * size, []
    for u in range(4):
        scores = [
            additive(
                mechanism.score,
                queries[0, u],
                states.states[0, j],
                mechanism.coverage.weight[:, 0] * covered[j],
            )
            for j in range(size)
        ]
        weights = softmax(scores)
        torch.testing.assert_close(
            attended.weights[0, u, 0], torch.tensor(weights), atol=1e-5, rtol=1e-4
        )
        overlaps.append(sum(min(a, c) for a, c in zip(weights, covered, strict=True)))
        covered = [a + c for a, c in zip(weights, covered, strict=True)]
    mask = torch.tensor([[True, True, True, False]])
    loss = mechanism.loss(attended.terms, mask, torch.zeros(1, 4))
    assert float(loss) == pytest.approx(0.7 * sum(overlaps[:3]) / 3, abs=1e-5)


@torch.no_grad()
def test_hard_draws_as_its_probabilities_say_and_takes_the_likeliest_when_decoding() -> None:
    size, draws = 5, 4000
    mechanism, states = Hard(C, H, dim=4, expected=0.0), encoded([size, 2], C)
    query = torch.randn(1, H)
    memory = mechanism.prepare(states)
    scores = [additive(mechanism.score, query[0], states.states[0, j]) for j in range(size)]
    shares = torch.tensor(softmax(scores))
    many = query.expand(2 * draws, H)
    state = mechanism.initial_state(memory, 2 * draws)
    attended, _ = mechanism.step(many, memory, state, mode="train")
    one = attended.weights[:, 0]
    assert torch.equal(one.sum(-1), torch.ones(2 * draws))
    torch.testing.assert_close(one[:draws].mean(0), shares, atol=0.03, rtol=0.0)
    assert not one[draws:, 2:].any()
    chosen = one[:draws].argmax(-1)
    torch.testing.assert_close(attended.terms["log_prob"][:draws], shares.log()[chosen])
    entropy = -(shares * shares.log()).sum()
    torch.testing.assert_close(attended.terms["entropy"][0], entropy)
    torch.testing.assert_close(attended.context[:draws], states.states[0][chosen])
    state = mechanism.initial_state(memory, 2)
    decoded, _ = mechanism.step(query.expand(2, H), memory, state, mode="decode")
    assert int(decoded.weights[0, 0].argmax()) == int(shares.argmax())


def test_a_share_of_the_utterances_hears_what_draws_are_on_average() -> None:
    """Xu et al. 2015, sect. 4.1: in training, whole utterances; when decoding, none."""
    rows, tokens = 400, 3
    mechanism, states = Hard(C, H, dim=4, expected=0.25), encoded([6], C)
    queries, memory = torch.randn(1, tokens, H).expand(rows, tokens, H), mechanism.prepare(states)
    attended = mechanism.sequence(queries, memory, mode="train")
    one = (attended.weights[:, :, 0].max(-1).values == 1.0).float()
    assert torch.equal(one, attended.terms["drawn"])
    assert torch.equal(one.min(1).values, one.max(1).values)
    assert 0.18 < 1 - float(one.mean()) < 0.32
    mixed = attended.weights[one[:, 0] == 0]
    torch.testing.assert_close(mixed, attended.terms["probabilities"][one[:, 0] == 0])
    torch.testing.assert_close(attended.context[one[:, 0] == 0], mixed[:, :, 0] @ states.states[0])
    decoded = mechanism.sequence(queries, memory, mode="decode")
    assert (decoded.weights.max(-1).values == 1.0).all()


def test_hard_follows_its_generator() -> None:
    mechanism, states = Hard(C, H, dim=4), encoded([40], C)
    queries, memory = torch.randn(1, 20, H), mechanism.prepare(states)
    drawn = []
    for seed in (1, 1, 2):
        torch.manual_seed(seed)
        drawn.append(mechanism.sequence(queries, memory, mode="train").weights)
    assert torch.equal(drawn[0], drawn[1]) and not torch.equal(drawn[0], drawn[2])


def test_the_hard_loss_equals_a_loop() -> None:
    mechanism = Hard(C, H, discount=0.5, entropy_weight=0.2, reward_weight=0.8, decay=0.9)
    mechanism.average.fill_(-1.5)
    log_prob, entropy, baseline = torch.randn(3, 2, 3).unbind(0)
    log_prob.requires_grad_()
    baseline.requires_grad_()
    given = -torch.rand(2, 3)
    mask = torch.tensor([[True, True, True], [True, True, False]])
    drawn = torch.tensor([[1.0] * 3, [0.0] * 3])
    terms = {"log_prob": log_prob, "entropy": entropy, "baseline": baseline, "drawn": drawn}
    loss = mechanism.loss(terms, mask, given)
    wanted, returns = 0.0, []
    for row, count in enumerate([3, 2]):
        for u in range(count):
            reward = sum(0.5 ** (v - u) * float(given[row, v]) for v in range(u, count))
            returns.append(reward)
            advantage = reward + 1.5 - baseline[row, u].item()
            wanted += -0.8 * advantage * log_prob[row, u].item() * (row == 0)
            wanted += advantage**2 - 0.2 * float(entropy[row, u])
    assert loss.item() == pytest.approx(wanted / 5, rel=1e-4)
    assert float(mechanism.average) == pytest.approx(0.9 * -1.5 + 0.1 * sum(returns) / 5, rel=1e-4)
    loss.backward()
    # The policy's gradient is the advantage alone; that of the baseline is its own error alone.
    reward = sum(0.5**v * float(given[0, v]) for v in range(3))
    advantage = reward + 1.5 - baseline[0, 0].item()
    assert float(log_prob.grad[0, 0]) == pytest.approx(-0.8 * advantage / 5, rel=1e-4)
    assert float(baseline.grad[0, 0]) == pytest.approx(-2 * advantage / 5, rel=1e-4)
    assert not log_prob.grad[1, 2] and not baseline.grad[1, 2]


def test_reinforce_finds_the_frame_that_pays() -> None:
    """One frame of four gives the right token; the draw has no gradient, so only reward says so."""
    mechanism = Hard(4, 2, dim=8, entropy_weight=0.0, expected=0.0)
    states = encoded([4], 4)._replace(states=torch.eye(4).unsqueeze(0))
    queries, mask = torch.ones(1, 32, 2), torch.ones(1, 32, dtype=torch.bool)
    optimiser = torch.optim.Adam(mechanism.parameters(), 0.05)
    for _ in range(60):
        memory = mechanism.prepare(states)
        attended = mechanism.sequence(queries, memory, mode="train")
        right = attended.weights[:, :, 0, 2].detach()
        loss = mechanism.loss(attended.terms, mask, (right - 1) * 2.0)
        optimiser.zero_grad()
        loss.backward()
        optimiser.step()
    decoded = mechanism.sequence(queries[:, :1], mechanism.prepare(states), mode="decode")
    assert int(decoded.weights[0, 0, 0].argmax()) == 2


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
            energy = float(mechanism.gain) * score / norm + 0.3
            p.append(1 / (1 + math.exp(-energy)))
        stops = stops_by_loop(p, place)
        torch.testing.assert_close(
            whole.weights[0, u, 0], torch.tensor(stops), atol=1e-5, rtol=1e-4
        )
        place = [stops[j] + place[j] * math.prod(1 - p[k] for k in range(j, 6)) for j in range(6)]


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
            float(mechanism.gain) * additive(mechanism.score, queries[0, u], h) / norm
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


def test_addressing_equals_a_triple_loop() -> None:
    """Graves et al. 2014, eq. 5-9."""
    slots, width = 5, 3
    content, previous = torch.randn(2, slots, width), torch.rand(2, slots).softmax(-1)
    key, beta, gate = torch.randn(2, width), 3 * torch.rand(2, 1), torch.rand(2, 1)
    shifts, gamma = torch.randn(2, 3).softmax(-1), 1 + 2 * torch.rand(2, 1)
    made = address(content, previous, key, beta, gate, shifts, gamma)
    for n in range(2):
        likeness = []
        for m in range(slots):
            dot = sum(float(key[n, d] * content[n, m, d]) for d in range(width))
            norms = float(key[n].norm()) * float(content[n, m].norm())
            likeness.append(float(beta[n]) * dot / norms)
        by_content, g = softmax(likeness), float(gate[n])
        focus = [g * by_content[m] + (1 - g) * float(previous[n, m]) for m in range(slots)]
        # w~(i) = sum_j w(j) s(i - j), indices modulo the number of slots
        moved = [
            sum(focus[j] * float(shifts[n, r + 1]) for j in range(slots) for r in (-1, 0, 1)
                if (j + r) % slots == i)
            for i in range(slots)
        ]  # fmt: skip
        powers = [value ** float(gamma[n]) for value in moved]
        wanted = torch.tensor([value / sum(powers) for value in powers])
        torch.testing.assert_close(made[n], wanted, atol=1e-5, rtol=1e-4)


@torch.no_grad()
def test_slots_are_erased_added_to_and_read() -> None:
    """Graves et al. 2014, eq. 2-4, slot by slot."""
    mechanism = Introspective(C, H, dim=4, slots=4, width=3)
    states, query = encoded([5], C), torch.randn(1, H)
    memory = mechanism.prepare(states)
    state = mechanism.initial_state(memory, 1)
    for _ in range(2):
        attended, after = mechanism.step(query, memory, state, mode="decode")
        scores = [additive(mechanism.score, query[0], h) for h in states.states[0]]
        torch.testing.assert_close(attended.weights[0, 0], torch.tensor(softmax(scores)))
        heard = attended.weights[0, 0] @ states.states[0]
        controller = torch.cat([query[0], heard])
        erase, add = mechanism.erase_and_add(controller).chunk(2)
        content = state.content[0].clone()
        for m in range(4):
            for d in range(3):
                w = float(after.write[0, m])
                content[m, d] *= 1 - w * float(torch.sigmoid(erase[d]))
                content[m, d] += w * float(torch.tanh(add[d]))
        torch.testing.assert_close(after.content[0], content, atol=1e-5, rtol=1e-4)
        recalled = sum(after.read[0, m] * content[m] for m in range(4))
        torch.testing.assert_close(attended.context[0], torch.cat([heard, recalled]))
        assert set(attended.terms) == {"read", "write"}
        state = after
