"""Mechanisms that remember what they attended to, against plain loops."""

from __future__ import annotations

import pytest
import torch

from asr.nn.attention import Coverage, Introspective, MultiHeadLocation
from asr.nn.attention.introspective import address
from tests.nn.conftest import encoded
from tests.nn.parity.loops import C, H, additive, softmax


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
