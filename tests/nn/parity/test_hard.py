"""Hard attention: its draws, its reward, and what it hears instead of a draw."""

from __future__ import annotations

import pytest
import torch

from asr.nn.attention import Hard
from tests.nn.conftest import encoded
from tests.nn.parity.loops import C, H, additive, softmax


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
