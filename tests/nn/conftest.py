"""Small parts for the tests of the network."""

from __future__ import annotations

from functools import partial
from inspect import signature

import pytest
import torch

from asr.glimpses import LogMel
from asr.nn.attention import Attention, Dot
from asr.nn.decoders import Recurrent
from asr.nn.encoders import Conformer
from asr.nn.las import LAS
from asr.types import Encoded


@pytest.fixture(autouse=True)
def _seeded() -> None:
    torch.manual_seed(7)


def small_las(attention: str = "location_aware", **options: object) -> LAS:
    """A whole model of a few thousand parameters, in eval mode."""
    made = Attention.resolve(attention)
    if "dim" in signature(made.__init__).parameters:
        options = {"dim": 12, **options}
    width = 16 if issubclass(made, Dot) else 20  # as wide as the listener, where it must be
    return LAS(
        8000,
        9,
        frontend=partial(LogMel, bins=16),
        encoder=partial(Conformer, dim=16, blocks=2, heads=2, kernel=5, channels=4),
        attention=partial(made, **options),
        speller=partial(Recurrent, dim=width, embedding=6, layers=2),
    ).eval()


def encoded(lengths: list[int], width: int = 16) -> Encoded:
    """Random states, with rubbish in the padding."""
    return Encoded(torch.randn(len(lengths), max(lengths), width), torch.tensor(lengths))
