"""Compiled, every part gives what it gives as it is: with the trace alone (aot_eager), and, where
time does not matter, through the compiler too (inductor)."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import pytest
import torch
import torch._inductor.config
from torch import Tensor

from asr.nn.attention import Attention
from asr.nn.encoders import Conformer, Encoder, Pyramidal
from asr.nn.encoders.selfattention import Mask, Position
from asr.types import Encoded

from .conftest import encoded, small_las
from .test_attention import NAMES, asked, make

#: every position and every mask, as few listeners as there can be
KINDS = [
    {"position": "absolute", "mask": "full"},
    {"position": "relative", "mask": "banded"},
    {"position": "relative_shaw", "mask": "causal"},
    {"position": "rotary", "mask": "full"},
]
backends = pytest.mark.parametrize(
    "backend", ["aot_eager", pytest.param("inductor", marks=pytest.mark.slow)]
)


@pytest.fixture(autouse=True)
def _anew() -> Iterator[None]:
    torch._dynamo.reset()
    # What is drawn at random is drawn by torch's own generator, not by one of the compiler's.
    with torch._inductor.config.patch(fallback_random=True):
        yield


def same(run: Callable[..., Tensor], compiled: Callable[..., Tensor], parts: list[Tensor]) -> None:
    """Values and gradients, drawn from the same seed."""
    results = []
    for call in (run, compiled):
        torch.manual_seed(3)
        value = call()
        wanted = [part for part in parts if part.requires_grad]
        gradients = torch.autograd.grad(value.square().sum(), wanted, allow_unused=True)
        results.append((value.detach(), gradients))
    (value, gradients), (other, others) = results
    torch.testing.assert_close(other, value, atol=1e-5, rtol=1e-4)
    largest = max(float(g.abs().max()) for g in gradients if g is not None and g.numel())
    assert largest > 0
    # Sums in another order, on processors that round in their own ways: an error has the size of
    # what was summed, also where the sum itself is next to nothing.
    atol = 1e-5 * max(1.0, largest)
    for a, b in zip(gradients, others, strict=True):
        assert (a is None) == (b is None)
        if a is not None and b is not None:
            torch.testing.assert_close(b, a, atol=atol, rtol=1e-4)


@backends
@pytest.mark.parametrize("name", NAMES)
def test_mechanisms(name: str, backend: str) -> None:
    """Two tokens in training mode: the second sees the state of the first."""
    mechanism = make(name, {}).train()
    heard, queries = encoded([7, 4]), asked(name, 2, 2).requires_grad_()
    states = Encoded(heard.states.requires_grad_(), heard.lengths)

    def run() -> Tensor:
        attended = mechanism.sequence(queries, mechanism.prepare(states), mode="train")
        return torch.cat([attended.context.flatten(), attended.weights.flatten()])

    same(
        run, torch.compile(run, backend=backend), [queries, states.states, *mechanism.parameters()]
    )


@backends
@pytest.mark.parametrize(
    "made",
    [lambda kind=kind: Conformer(8, dim=8, blocks=1, heads=2, kernel=3, channels=2, **kind)
     for kind in KINDS] + [lambda: Pyramidal(8, dim=8, layers=1)],
    ids=[*map(str, KINDS), "pyramidal"],
)  # fmt: skip
def test_listeners(made: Callable[[], Encoder], backend: str) -> None:
    listener = made().eval()
    frames, lengths = torch.randn(2, 14, 8), torch.tensor([14, 9])

    def run() -> Tensor:
        return listener(frames, lengths).states

    same(run, torch.compile(run, backend=backend), list(listener.parameters()))


@backends
def test_a_step_of_the_whole_speller(backend: str) -> None:
    """As decoding goes, without gradients."""
    model = small_las()
    states = model.encode(0.1 * torch.randn(2, 2400), torch.tensor([2400, 1600]))
    step = torch.compile(model.speller.step, backend=backend)
    with torch.no_grad():
        memory, state = model.speller.start(states, 4)
        other = state
        for token in (1, 4):
            previous = torch.full((4,), token)
            plain, fast = model.speller.step(previous, memory, state), step(previous, memory, other)
            torch.testing.assert_close(fast.logits, plain.logits, atol=1e-5, rtol=1e-4)
            torch.testing.assert_close(fast.weights, plain.weights, atol=1e-5, rtol=1e-4)
            state, other = plain.state, fast.state


def test_all_mechanisms_are_there() -> None:
    assert set(NAMES) == set(Attention.registry)
    assert {kind["position"] for kind in KINDS} == set(Position.registry)
    assert {kind["mask"] for kind in KINDS} == set(Mask.registry)
