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
SAME_WIDTH = {"dot", "scaled_dot"}  # as wide a query as a glimpse
NAMES = sorted(Attention.registry)
VARIANTS = [(name, {}) for name in NAMES] + [
    ("location_aware", {"convolve": "previous"}),
    ("location_aware", {"convolve": "accumulated"}),
    ("location_aware", {"smoothing": True}),
    ("location_aware", {"sharpening": 2.0}),
    ("location_aware", {"window": 2}),
    ("multi_head_location", {"convolve": "previous", "heads": 2, "sharpening": 2.0}),
    ("multi_head_location", {"convolve": "accumulated", "kernel": 1}),
    ("none", {"pool": "last"}),
    ("location_based", {"form": "table"}),
    ("location_based", {"form": "table", "longest": 3}),
    ("location_based", {"components": 1, "stride": 0.5}),
    ("local_m", {"reach": 1, "tokens_per_frame": 1.5}),
    ("local_p", {"reach": 1}),
    ("monotonic", {"offset": 1.0, "noise": 0.0}),
    ("mochunk", {"offset": 1.0, "width": 1}),
    ("mochunk", {"offset": 0.5, "width": 12}),
    ("memory", {"slots": 1, "shift": 0}),
    ("memory", {"slots": 5, "shift": 2}),
    ("coverage", {"loss_weight": 0.0}),
    ("hard", {"discount": 0.0}),
]
every = pytest.mark.parametrize(("name", "options"), VARIANTS)


def width(name: str) -> int:
    return C if name in SAME_WIDTH else H


def make(name: str, options: dict) -> Attention:
    return Attention.build({"name": name, **options}, C, width(name)).eval()


def asked(name: str, rows: int, tokens: int) -> torch.Tensor:
    """Queries (N,U,H)."""
    return torch.randn(rows, tokens, width(name))


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
    assert set(NAMES) == {
        "none", "dot", "general", "scaled_dot", "multi_head", "cosine", "additive",
        "location_based", "location_aware", "multi_head_location", "coverage", "local_m", "local_p",
        "hard", "monotonic", "mochunk", "memory",
    }  # fmt: skip


@every
def test_rank_sum_and_padding(name: str, options: dict) -> None:
    mechanism, states = make(name, options), encoded([9, 4, 1])
    steps, _ = run(mechanism, states, asked(name, 6, 3))
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
    states, queries = encoded(lengths), asked(name, 3, 4)
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
    queries = asked(name, 2, 5)
    for mode in ("train", "decode"):
        torch.manual_seed(3)  # what is drawn at random is drawn again
        steps, _ = run(mechanism, states, queries, mode)
        torch.manual_seed(3)
        whole = mechanism.sequence(queries, mechanism.prepare(states), mode=mode)
        torch.testing.assert_close(torch.stack([s.weights for s in steps], 1), whole.weights)
        torch.testing.assert_close(torch.stack([s.context for s in steps], 1), whole.context)
        for term, value in whole.terms.items():
            torch.testing.assert_close(torch.stack([s.terms[term] for s in steps], 1), value)


@every
def test_reordered_state_equals_a_fresh_run(name: str, options: dict) -> None:
    mechanism, states = make(name, options), encoded([9, 7])
    first, second = asked(name, 4, 3), asked(name, 4, 2)
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
    queries = (asked(name, 2, 3) * 1e4).requires_grad_()
    with torch.autocast("cpu", torch.bfloat16, enabled=bf16):
        attended = mechanism.sequence(queries, mechanism.prepare(states), mode="train")
    assert attended.weights.dtype == torch.float32
    (attended.context.float().square().mean() + attended.weights.square().sum()).backward()
    for gradient in [queries.grad, states.states.grad, *(p.grad for p in mechanism.parameters())]:
        assert gradient is None or torch.isfinite(gradient).all()


@every
@pytest.mark.parametrize("mode", ["train", "decode"])
def test_no_frames_is_no_crash(name: str, options: dict, mode: str) -> None:
    mechanism = make(name, options)
    for lengths in ([0, 3], [0, 0]):
        states, queries = encoded(lengths), asked(name, 2, 2).requires_grad_()
        steps, _ = run(mechanism, states, queries, mode)
        for step in steps:
            assert torch.isfinite(step.context).all() and not step.weights[0].any()
            assert step.weights.shape == (2, mechanism.heads, max(lengths))
            assert step.context.shape == (2, mechanism.context_dim)
            assert all(torch.isfinite(term).all() for term in step.terms.values())
        if steps[-1].context.requires_grad:
            steps[-1].context.sum().backward()
            assert queries.grad is None or torch.isfinite(queries.grad).all()


@every
def test_what_it_adds_to_the_loss_is_finite_and_reaches_what_it_trains(
    name: str, options: dict
) -> None:
    mechanism, states = make(name, options).train(), encoded([9, 1, 0])
    attended = mechanism.sequence(asked(name, 3, 4), mechanism.prepare(states), mode="train")
    mask = torch.tensor([[True] * 4, [True] * 2 + [False] * 2, [True] + [False] * 3])
    loss = mechanism.loss(attended.terms, mask, -torch.rand(3, 4))
    has_one = name == "hard" or (name == "coverage" and mechanism.spec()["loss_weight"] > 0)
    assert (loss is not None) == has_one
    if loss is not None:
        loss.backward()
        gradients = [p.grad for p in mechanism.parameters() if p.grad is not None]
        assert torch.isfinite(loss) and gradients
        assert all(torch.isfinite(gradient).all() for gradient in gradients)


@every
def test_a_guide_of_attention_reaches_it(name: str, options: dict) -> None:
    mechanism, states = make(name, options).train(), encoded([9, 5])
    queries = asked(name, 2, 4).requires_grad_()
    attended = mechanism.sequence(queries, mechanism.prepare(states), mode="train")
    guided = mechanism.guided(attended.weights, attended.terms)
    assert guided.shape == attended.weights.shape and not guided[1, ..., 5:].any()
    if name != "none":  # its weights are the same whatever is asked
        (guided * torch.randn(guided.shape)).sum().backward()
        assert queries.grad.any() and torch.isfinite(queries.grad).all()


@every
def test_description_builds_the_same(name: str, options: dict) -> None:
    mechanism = make(name, options)
    spec = mechanism.spec()
    assert spec["name"] == name and options.items() <= spec.items()
    again = Attention.build(spec, C, width(name)).eval()
    again.load_state_dict(mechanism.state_dict())
    states, queries = encoded([5]), asked(name, 1, 2)
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
        ("none", {"pool": "max"}, "pool='max': valid are mean, last"),
        ("cosine", {"beta": 0.0}, "beta=0.0: must be above 0"),
        ("multi_head", {"dim": 10, "heads": 3}, "heads=3: must divide dim=10"),
        ("multi_head", {"dim": 0}, "dim=0"),
        ("multi_head_location", {"heads": 0}, "heads=0"),
        ("multi_head_location", {"kernel": 4}, "kernel=4: must be odd"),
        ("multi_head_location", {"channels": 0}, "channels=0"),
        ("multi_head_location", {"convolve": "all"}, "convolve='all': valid are previous"),
        ("multi_head_location", {"sharpening": -1.0}, "sharpening=-1.0"),
        ("location_based", {"form": "box"}, "form='box': valid are mixture, table"),
        ("location_based", {"components": 0}, "components=0"),
        ("location_based", {"stride": 0.0}, "stride=0.0"),
        ("location_based", {"form": "table", "longest": 0}, "longest=0"),
        ("coverage", {"loss_weight": -0.1}, "loss_weight=-0.1"),
        ("local_m", {"reach": 0}, "reach=0"),
        ("local_m", {"tokens_per_frame": 0.0}, "tokens_per_frame=0.0"),
        ("local_p", {"reach": 0}, "reach=0"),
        ("local_p", {"dim": 0}, "dim=0"),
        ("hard", {"discount": 1.5}, "discount=1.5"),
        ("hard", {"decay": 1.0}, "decay=1.0"),
        ("hard", {"expected": 1.5}, "expected=1.5"),
        ("hard", {"entropy_weight": -1.0}, "entropy_weight=-1.0"),
        ("hard", {"reward_weight": -1.0}, "reward_weight=-1.0"),
        ("monotonic", {"noise": -1.0}, "noise=-1.0"),
        ("monotonic", {"dim": 0}, "dim=0"),
        ("mochunk", {"width": 0}, "width=0"),
        ("memory", {"slots": 0}, "slots=0"),
        ("memory", {"width": 0}, "width=0"),
        ("memory", {"slots": 4, "shift": 2}, "shift=2"),
    ],
)
def test_refuses(name: str, options: dict, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        make(name, options)


@pytest.mark.parametrize("name", sorted(SAME_WIDTH))
def test_refuses_queries_of_another_width(name: str) -> None:
    with pytest.raises(ValueError, match="query_dim=10.*must equal encoder_dim=16"):
        Attention.build({"name": name}, C, H)


def test_unknown_names_and_arguments_list_what_is_valid() -> None:
    with pytest.raises(
        InputError, match="unknown attention 'location'; valid: additive, .*location_aware"
    ):
        make("location", {})
    with pytest.raises(InputError, match="additive: .*widht"):
        make("additive", {"widht": 3})
    with pytest.raises(InputError, match=r"unknown attention 'os\.system'"):
        make("os.system", {})
