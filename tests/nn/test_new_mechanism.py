"""One class is all it takes: a mechanism written here is found by name, built, and conforms."""

from __future__ import annotations

import inspect
from collections.abc import Iterator

import pytest
import torch
from torch import Tensor, nn

from asr.errors import InputError
from asr.nn.about import About
from asr.nn.attention import Attention, Memory
from asr.nn.attention.base import memory_mask
from asr.nn.attention.parts import Stateless, Weighed, dot_scores, per_row
from asr.nn.las import LAS
from asr.nn.masking import masked_softmax
from asr.types import Encoded
from tests.nn import test_attention as conformance

from .conftest import small_las

#: what a mechanism adds to the loss is its own affair
OTHERS = "test_what_it_adds_to_the_loss_is_finite_and_reaches_what_it_trains"
CHECKS = [
    check
    for name, check in vars(conformance).items()
    if any(mark.args[1] is conformance.VARIANTS for mark in getattr(check, "pytestmark", []))
    and name != OTHERS
]
MORE = {"mode": ("train", "decode"), "bf16": (False, True), "size": (1, 6)}


@pytest.fixture(autouse=True)
def newcomer(monkeypatch: pytest.MonkeyPatch) -> Iterator[type[Attention]]:
    """Known while a test runs."""
    monkeypatch.setattr(Attention, "registry", dict(Attention.registry))

    class Bilinear(Stateless):
        """score(s, h_j) = W s · h_j / tau."""

        name = "bilinear"
        about = About("W s · h_j / tau", "this test")

        def __init__(self, encoder_dim: int, query_dim: int, *, tau: float = 2.0) -> None:
            super().__init__()
            self.context_dim, self.tau = encoder_dim, tau
            self.query = nn.Linear(query_dim, encoder_dim)

        def prepare(self, encoded: Encoded) -> Memory:
            return Memory(encoded.states, encoded.states, memory_mask(encoded))

        def weigh(self, query: Tensor, memory: Memory) -> Weighed:
            scores = dot_scores(self.query(query).unsqueeze(1), memory.keys) / self.tau
            return Weighed(masked_softmax(scores, per_row(memory.mask, len(query)).unsqueeze(1)))

    yield Bilinear


@pytest.mark.parametrize("check", CHECKS, ids=lambda check: check.__name__)
def test_it_conforms(check) -> None:
    assert len(CHECKS) >= 7
    extra = [name for name in inspect.signature(check).parameters if name in MORE]
    for values in zip(*(MORE[name] for name in extra), strict=True) if extra else [()]:
        check(name="bilinear", options={"tau": 3.0}, **dict(zip(extra, values, strict=True)))


def test_its_name_builds_a_whole_model_and_what_is_unknown_lists_it() -> None:
    model = small_las("bilinear", tau=1.5)
    again = LAS.from_spec(model.spec())
    assert again.spec()["attention"] == {"name": "bilinear", "tau": 1.5}
    again.load_state_dict(model.state_dict())
    encoded = model.encode(torch.randn(1, 4000), torch.tensor([4000]))
    targets = torch.tensor([[1, 3]]), torch.tensor([2])
    assert torch.equal(
        model.speller(encoded, *targets).logits, again.eval().speller(encoded, *targets).logits
    )
    with pytest.raises(InputError, match="valid: additive, bilinear, "):
        Attention.resolve("bilinearr")


def test_a_taken_name_is_refused(newcomer: type[Attention]) -> None:
    with pytest.raises(TypeError, match="'bilinear' is taken"):
        type("Other", (newcomer,), {"name": "bilinear"})
