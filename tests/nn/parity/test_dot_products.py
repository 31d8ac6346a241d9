"""Mechanisms that torch has too, and the short ones, against it or a plain loop."""

from __future__ import annotations

import math

import pytest
import torch
from torch import Tensor, nn

from asr.nn.attention import (
    Attention,
    Cosine,
    Dot,
    General,
    LocalM,
    LocalP,
    LocationBased,
    MultiHead,
    NoAttention,
    ScaledDot,
)
from tests.nn.conftest import encoded

C, LENGTHS = 8, [7, 3]


def whole(mechanism: Attention, queries: Tensor, states) -> tuple[Tensor, Tensor]:
    attended = mechanism.sequence(queries, mechanism.prepare(states), mode="decode")
    return attended.context, attended.weights


@torch.no_grad()
def test_scaled_dot_equals_torchs() -> None:
    states, queries = encoded(LENGTHS, C), torch.randn(2, 4, C)
    context, _ = whole(ScaledDot(C, C), queries, states)
    mask = torch.arange(7) < states.lengths[:, None]
    wanted = nn.functional.scaled_dot_product_attention(
        queries, states.states, states.states, attn_mask=mask[:, None, :]
    )
    torch.testing.assert_close(context, wanted, atol=1e-5, rtol=1e-4)


@torch.no_grad()
def test_multi_head_equals_torchs() -> None:
    heads, dim = 4, 12
    states, queries = encoded(LENGTHS, C), torch.randn(2, 5, dim)
    mechanism = MultiHead(C, dim, dim=dim, heads=heads)
    theirs = nn.MultiheadAttention(dim, heads, kdim=C, vdim=C, batch_first=True)
    theirs.q_proj_weight.copy_(mechanism.query.weight)
    theirs.k_proj_weight.copy_(mechanism.key.weight)
    theirs.v_proj_weight.copy_(mechanism.value.weight)
    biases = [mechanism.query.bias, mechanism.key.bias, mechanism.value.bias]
    theirs.in_proj_bias.copy_(torch.cat(biases))
    theirs.out_proj.load_state_dict(mechanism.output.state_dict())
    padding = torch.arange(7) >= states.lengths[:, None]
    wanted, weights = theirs(
        queries, states.states, states.states, padding, average_attn_weights=False
    )
    context, ours = whole(mechanism, queries, states)
    torch.testing.assert_close(context, wanted, atol=1e-5, rtol=1e-4)
    torch.testing.assert_close(ours, weights.transpose(1, 2), atol=1e-5, rtol=1e-4)


def softmax(scores: list[float]) -> list[float]:
    top = max(scores)
    exps = [math.exp(score - top) for score in scores]
    return [e / sum(exps) for e in exps]


def cosine(a: Tensor, b: Tensor) -> float:
    return float(a @ b) / math.sqrt(float(a @ a) * float(b @ b))


SCORES = {
    Dot: lambda m, s, h: float(s @ h),
    General: lambda m, s, h: float(s @ (m.key.weight @ h)),
    Cosine: lambda m, s, h: float(m.beta) * cosine(m.query.weight @ s, h),
}


@torch.no_grad()
@pytest.mark.parametrize("made", SCORES, ids=lambda made: made.name)
def test_scores_equal_a_loop(made: type[Attention]) -> None:
    mechanism, states, queries = made(C, C), encoded(LENGTHS, C), torch.randn(2, 4, C)
    context, weights = whole(mechanism, queries, states)
    for row, length in enumerate(LENGTHS):
        for u in range(4):
            h = states.states[row]
            wanted = softmax(
                [SCORES[made](mechanism, queries[row, u], h[j]) for j in range(length)]
            )
            torch.testing.assert_close(
                weights[row, u, 0, :length], torch.tensor(wanted), atol=1e-5, rtol=1e-4
            )
            mixed = sum(w * h[j] for j, w in enumerate(wanted))
            torch.testing.assert_close(context[row, u], mixed, atol=1e-5, rtol=1e-4)


@pytest.mark.parametrize("beta", [1e-3, 0.5, 10.0, 500.0])
def test_cosine_begins_at_its_beta_and_stays_above_zero(beta: float) -> None:
    mechanism = Cosine(C, C, beta=beta)
    assert float(mechanism.beta.detach()) == pytest.approx(beta, rel=1e-4)
    with torch.no_grad():
        mechanism.raw_beta -= 50.0
    assert float(mechanism.beta.detach()) > 0


@torch.no_grad()
def test_without_attention_the_vector_is_fixed() -> None:
    states, queries = encoded(LENGTHS, C), torch.randn(2, 4, C)
    mean, _ = whole(NoAttention(C, C), queries, states)
    last, _ = whole(NoAttention(C, C, pool="last"), queries, states)
    for row, length in enumerate(LENGTHS):
        real = states.states[row, :length]
        torch.testing.assert_close(mean[row], real.mean(0).expand(4, -1))
        torch.testing.assert_close(last[row], real[-1].expand(4, -1))


@torch.no_grad()
def test_local_m_equals_a_loop_and_counts_the_rate_of_its_training() -> None:
    reach = 2
    mechanism = LocalM(C, C, reach=reach, tokens_per_frame=0.5)
    states, queries = encoded([9, 3], C), torch.randn(2, 4, C)
    _, weights = whole(mechanism, queries, states)
    for row, length in enumerate([9, 3]):
        for u in range(4):
            centre = min(u / 0.5, length - 1)
            near = [j for j in range(length) if abs(j - centre) <= reach]
            h, s = states.states[row], queries[row, u]
            shares = softmax([float(s @ (mechanism.key.weight @ h[j])) for j in near])
            wanted = torch.zeros(9)
            wanted[near] = torch.tensor(shares)
            torch.testing.assert_close(weights[row, u, 0], wanted, atol=1e-5, rtol=1e-4)
    terms = mechanism.sequence(queries, mechanism.prepare(states), mode="train").terms
    mask = torch.tensor([[True] * 4, [True, True, False, False]])
    assert mechanism.loss(terms, mask, torch.zeros(2, 4)) is None
    assert float(mechanism.tokens_per_frame) == 0.5  # not training: gradients are off
    with torch.enable_grad():
        assert mechanism.loss(terms, mask, torch.zeros(2, 4)) is None
    assert float(mechanism.tokens_per_frame) == pytest.approx(6 / 12)
    with torch.enable_grad():
        mechanism.loss(terms, torch.ones(2, 4, dtype=torch.bool), torch.zeros(2, 4))
    assert float(mechanism.tokens_per_frame) == pytest.approx(14 / 24)
    again = LocalM(C, C)
    again.load_state_dict(mechanism.state_dict())
    assert torch.equal(again.tokens_per_frame, mechanism.tokens_per_frame)


@torch.no_grad()
def test_local_p_equals_a_loop() -> None:
    reach = 3
    mechanism = LocalP(C, C, reach=reach, dim=4)
    states, queries = encoded(LENGTHS, C), 3 * torch.randn(2, 4, C)
    attended = mechanism.sequence(queries, mechanism.prepare(states), mode="decode")
    for row, length in enumerate(LENGTHS):
        for u in range(4):
            s, h = queries[row, u], states.states[row]
            inner = float(mechanism.position.weight[0] @ torch.tanh(mechanism.inner.weight @ s))
            centre = length / (1 + math.exp(-inner))
            assert float(attended.terms["centres"][row, u, 0]) == pytest.approx(centre, abs=1e-4)
            near = [j for j in range(length) if abs(j - centre) <= reach]
            shares = softmax([float(s @ (mechanism.key.weight @ h[j])) for j in near])
            raw = [
                a * math.exp(-((j - centre) ** 2) / (2 * (reach / 2) ** 2))
                for j, a in zip(near, shares, strict=True)
            ]
            wanted = torch.zeros(7)
            wanted[near] = torch.tensor([r / sum(raw) for r in raw])
            torch.testing.assert_close(attended.weights[row, u, 0], wanted, atol=1e-5, rtol=1e-4)


@torch.no_grad()
def test_mixture_equals_a_loop_and_moves_forward() -> None:
    components = 3
    mechanism = LocationBased(C, C, components=components, stride=1.5)
    states, queries = encoded([9], C), torch.randn(1, 4, C)
    attended = mechanism.sequence(queries, mechanism.prepare(states), mode="decode")
    means = [0.0] * components
    for u in range(4):
        said = mechanism.form.parameters_of(queries[0, u]).tolist()
        alpha, beta, step = (said[i * components : (i + 1) * components] for i in range(3))
        before = means
        means = [k + math.log1p(math.exp(s)) for k, s in zip(means, step, strict=True)]
        assert all(new > old for new, old in zip(means, before, strict=True))
        phi = [
            sum(
                math.exp(a) * math.exp(-math.log1p(math.exp(b)) * (k - j) ** 2)
                for a, b, k in zip(alpha, beta, means, strict=True)
            )
            for j in range(9)
        ]
        wanted = torch.tensor([value / sum(phi) for value in phi])
        torch.testing.assert_close(attended.weights[0, u, 0], wanted, atol=1e-5, rtol=1e-4)
        torch.testing.assert_close(attended.terms["centres"][0, u], torch.tensor(means))


@torch.no_grad()
def test_table_is_a_softmax_that_never_hears_past_its_end() -> None:
    mechanism = LocationBased(C, C, form="table", longest=4)
    states, queries = encoded([6, 2], C), torch.randn(2, 3, C)
    _, weights = whole(mechanism, queries, states)
    scores = queries @ mechanism.form.scores.weight.T
    torch.testing.assert_close(weights[0, :, 0, :4], scores[0].softmax(-1))
    torch.testing.assert_close(weights[1, :, 0, :2], scores[1, :, :2].softmax(-1))
    assert not weights[0, ..., 4:].any() and not weights[1, ..., 2:].any()
