"""What every speller attention must do, and each mechanism against a plain loop.

The conformance tests run over every mechanism that is exported: a new one is covered by being
imported in ``asr.nn.attention``.
"""

from __future__ import annotations

import math

import pytest
import torch

from asr.errors import InputError
from asr.nn.attention import Additive, Attention, LocationAware
from asr.types import Encoded

from .conftest import encoded

C, H = 16, 10
NAMES = sorted(Attention.registry)
VARIANTS = [(name, {}) for name in NAMES] + [
    ("location_aware", {"convolve": "previous"}),
    ("location_aware", {"convolve": "accumulated"}),
    ("location_aware", {"smoothing": True}),
    ("location_aware", {"sharpening": 2.0}),
    ("location_aware", {"window": 2}),
]
every = pytest.mark.parametrize(("name", "options"), VARIANTS)


def make(name: str, options: dict) -> Attention:
    return Attention.build({"name": name, **options}, C, H).eval()


def run(mechanism: Attention, states: Encoded, queries: torch.Tensor, mode: str = "decode"):
    """queries (N,U,H) by steps."""
    memory = mechanism.prepare(states)
    state = mechanism.initial_state(memory, len(queries))
    steps = []
    for query in queries.unbind(1):
        attended, state = mechanism.step(query, memory, state, mode=mode)
        steps.append(attended)
    return steps, state


def test_there_are_mechanisms() -> None:
    assert {"additive", "location_aware"} <= set(NAMES)


@every
def test_rank_sum_and_padding(name: str, options: dict) -> None:
    mechanism, states = make(name, options), encoded([9, 4, 1])
    steps, _ = run(mechanism, states, torch.randn(6, 3, H))
    for step in steps:
        assert step.weights.shape == (6, mechanism.heads, 9)
        assert step.weights.dtype == torch.float32
        assert step.context.shape == (6, mechanism.context_dim)
        sums = step.weights.sum(-1)
        if mechanism.normalised:
            torch.testing.assert_close(sums, torch.ones_like(sums))
        assert (sums <= 1 + 1e-5).all() and (step.weights >= 0).all()
        assert not step.weights[2:4, :, 4:].any() and not step.weights[4:, :, 1:].any()


@every
def test_one_alone_equals_one_in_company(name: str, options: dict) -> None:
    mechanism, lengths = make(name, options), [9, 4, 1]
    states, queries = encoded(lengths), torch.randn(3, 4, H)
    together, _ = run(mechanism, states, queries)
    for row, length in enumerate(lengths):
        alone, _ = run(
            mechanism,
            Encoded(states.states[row : row + 1, :length], torch.tensor([length])),
            queries[row : row + 1],
        )
        for a, b in zip(together, alone, strict=True):
            torch.testing.assert_close(a.weights[row, :, :length], b.weights[0])
            torch.testing.assert_close(a.context[row], b.context[0])


@every
def test_steps_equal_the_sequence(name: str, options: dict) -> None:
    mechanism, states = make(name, options), encoded([9, 4])
    queries = torch.randn(2, 5, H)
    for mode in ("train", "decode"):
        steps, _ = run(mechanism, states, queries, mode)
        whole = mechanism.sequence(queries, mechanism.prepare(states), mode=mode)
        torch.testing.assert_close(torch.stack([s.weights for s in steps], 1), whole.weights)
        torch.testing.assert_close(torch.stack([s.context for s in steps], 1), whole.context)


@every
def test_reordered_state_equals_a_fresh_run(name: str, options: dict) -> None:
    mechanism, states = make(name, options), encoded([9, 7])
    first, second = torch.randn(4, 3, H), torch.randn(4, 2, H)
    order = torch.tensor([1, 0, 3, 3])
    memory = mechanism.prepare(states)
    _, state = run(mechanism, states, first)
    state = type(state)(*(leaf.index_select(0, order) for leaf in state))
    reordered = []
    for query in second.unbind(1):
        attended, state = mechanism.step(query, memory, state, mode="decode")
        reordered.append(attended.weights)
    fresh, _ = run(mechanism, states, torch.cat([first[order], second], 1))
    for a, b in zip(reordered, fresh[3:], strict=True):
        torch.testing.assert_close(a, b.weights)


@every
@pytest.mark.parametrize("bf16", [False, True])
@pytest.mark.parametrize("size", [1, 6])
def test_gradients_are_finite_even_for_wild_scores(
    name: str, options: dict, bf16: bool, size: int
) -> None:
    mechanism = make(name, options).train()
    states = encoded([size, 1])
    states = Encoded((states.states * 1e4).requires_grad_(), states.lengths)
    queries = (torch.randn(2, 3, H) * 1e4).requires_grad_()
    with torch.autocast("cpu", torch.bfloat16, enabled=bf16):
        attended = mechanism.sequence(queries, mechanism.prepare(states), mode="train")
    assert attended.weights.dtype == torch.float32
    (attended.context.float().square().mean() + attended.weights.square().sum()).backward()
    for gradient in [queries.grad, states.states.grad, *(p.grad for p in mechanism.parameters())]:
        assert gradient is None or torch.isfinite(gradient).all()


@every
def test_no_frames_is_no_crash(name: str, options: dict) -> None:
    mechanism = make(name, options)
    steps, _ = run(
        mechanism, Encoded(torch.randn(2, 3, C), torch.tensor([0, 3])), torch.randn(2, 2, H)
    )
    assert all(torch.isfinite(s.context).all() and not s.weights[0].any() for s in steps)


@every
def test_description_builds_the_same(name: str, options: dict) -> None:
    mechanism = make(name, options)
    spec = mechanism.spec()
    assert spec["name"] == name and options.items() <= spec.items()
    again = Attention.build(spec, C, H).eval()
    again.load_state_dict(mechanism.state_dict())
    states, queries = encoded([5]), torch.randn(1, 2, H)
    for a, b in zip(
        run(mechanism, states, queries)[0], run(again, states, queries)[0], strict=True
    ):
        assert torch.equal(a.weights, b.weights)


@torch.no_grad()
def test_additive_equals_a_loop() -> None:
    mechanism, states = Additive(C, H, dim=5), encoded([6, 3])
    queries = torch.randn(2, 4, H)
    whole = mechanism.sequence(queries, mechanism.prepare(states), mode="train")
    w, v, b = mechanism.query.weight, mechanism.key.weight, mechanism.key.bias
    for row, length in enumerate([6, 3]):
        for u in range(4):
            scores = [
                float(
                    mechanism.energy.weight[0]
                    @ torch.tanh(w @ queries[row, u] + v @ states.states[row, j] + b)
                )
                for j in range(length)
            ]
            top = max(scores)
            exps = [math.exp(s - top) for s in scores]
            for j in range(length):
                assert float(whole.weights[row, u, 0, j]) == pytest.approx(
                    exps[j] / sum(exps), abs=1e-5
                )
            context = sum(exps[j] / sum(exps) * states.states[row, j] for j in range(length))
            torch.testing.assert_close(whole.context[row, u], context, atol=1e-5, rtol=1e-4)


@torch.no_grad()
@pytest.mark.parametrize("convolve", ["previous", "accumulated", "both"])
@pytest.mark.parametrize(
    ("sharpening", "smoothing", "window"), [(1.0, False, 0), (2.5, True, 0), (1.5, False, 2)]
)
def test_location_aware_equals_a_loop(
    convolve: str, sharpening: float, smoothing: bool, window: int
) -> None:
    size, kernel, channels = 9, 5, 3
    mechanism = LocationAware(
        C, H, dim=5, channels=channels, kernel=kernel, convolve=convolve,
        sharpening=sharpening, smoothing=smoothing, window=window,
    )  # fmt: skip
    states, queries = encoded([size]), torch.randn(1, 4, H)
    steps, _ = run(mechanism, states, queries)
    h = states.states[0]
    previous, total = [0.0] * size, [0.0] * size
    for u, step in enumerate(steps):
        inputs = {"previous": [previous], "accumulated": [total], "both": [previous, total]}
        scores = []
        for j in range(size):
            feature = torch.zeros(channels)
            for i, vector in enumerate(inputs[convolve]):
                for k in range(kernel):
                    frame = j + k - kernel // 2
                    if 0 <= frame < size:
                        feature += mechanism.filters[i * kernel + k] * vector[frame]
            inner = (
                mechanism.query.weight @ queries[0, u]
                + mechanism.key.weight @ h[j]
                + mechanism.key.bias
                + mechanism.location.weight @ feature
            )
            scores.append(sharpening * float(mechanism.energy.weight[0] @ torch.tanh(inner)))
        raw = [1 / (1 + math.exp(-s)) if smoothing else math.exp(s) for s in scores]
        if window:
            running, median = 0.0, 0
            while median < size and running + previous[median] < 0.5 * sum(previous):
                running += previous[median]
                median += 1
            raw = [r if abs(j - median) <= window else 0.0 for j, r in enumerate(raw)]
        weights = [r / sum(raw) for r in raw]
        torch.testing.assert_close(step.weights[0, 0], torch.tensor(weights), atol=1e-5, rtol=1e-4)
        previous = weights
        total = [a + b for a, b in zip(total, weights, strict=True)]


def test_window_holds_only_when_decoding() -> None:
    mechanism, states = LocationAware(C, H, window=1), encoded([20])
    queries = torch.randn(1, 3, H)
    assert (run(mechanism, states, queries, "decode")[0][0].weights > 0).sum() == 2  # frames 0, 1
    assert (run(mechanism, states, queries, "train")[0][0].weights > 0).sum() == 20


@pytest.mark.parametrize(
    ("name", "options", "message"),
    [
        ("additive", {"dim": 0}, "dim=0"),
        ("location_aware", {"kernel": 4}, "kernel=4: must be odd"),
        ("location_aware", {"convolve": "next"}, "convolve='next': valid are previous"),
        ("location_aware", {"sharpening": 0.0}, "sharpening=0.0"),
        ("location_aware", {"window": -1}, "window=-1"),
    ],
)
def test_refuses(name: str, options: dict, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        make(name, options)


def test_unknown_names_and_arguments_list_what_is_valid() -> None:
    with pytest.raises(
        InputError, match="unknown attention 'location'; valid: additive, .*location_aware"
    ):
        make("location", {})
    with pytest.raises(InputError, match="additive: .*widht"):
        make("additive", {"widht": 3})
    with pytest.raises(InputError, match=r"unknown attention 'os\.system'"):
        make("os.system", {})
