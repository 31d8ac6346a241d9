"""What every speller is to the rest of the project."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Mapping
from types import MappingProxyType
from typing import Any, NamedTuple

from torch import Tensor

from asr.nn.attention.base import Attention, Memory
from asr.nn.registry import Component
from asr.types import Encoded


class SpellerStep(NamedTuple):
    """logits (N,V), weights (N,A,S) float32, the next state, and the attention's terms."""

    logits: Tensor
    weights: Tensor
    state: Any
    terms: Mapping[str, Tensor] = MappingProxyType({})


class Spelled(NamedTuple):
    """logits (B,U,V) and weights (B,U,A,S) float32 for every target position, and terms."""

    logits: Tensor
    weights: Tensor
    terms: Mapping[str, Tensor] = MappingProxyType({})


class Speller(Component, family=True):
    """Writes one token after another.

    Takes ``(vocabulary_size, attention factory, encoder_dim, *, ...)``.
    """

    attention: Attention

    @abstractmethod
    def start(self, encoded: Encoded, rows: int) -> tuple[Memory, Any]:
        """Memory, B-first, and the state before the first token for ``rows`` (N) rows."""

    @abstractmethod
    def step(self, previous: Tensor, memory: Memory, state: Any) -> SpellerStep:
        """previous (N,), the token just written (``<sos>`` first) -> the next token's scores."""

    @abstractmethod
    def forward(
        self, encoded: Encoded, targets: Tensor, lengths: Tensor, *, sampling: float = 0.0
    ) -> Spelled:
        """Teacher forcing: targets (B,U) *inputs*, ``<sos>`` first, (B,) lengths.

        ``sampling`` is the probability of feeding back the model's own choice instead
        (scheduled sampling, Bengio et al. 2015). Row u of the result predicts token u+1.
        """
