"""Scores that are one dot product of query and key, with a single head."""

from __future__ import annotations

import math

import torch
from torch import Tensor, nn

from asr.nn.about import About
from asr.nn.attention.base import Memory, memory_mask
from asr.nn.attention.parts import Stateless, Weighed, above_zero, dot_scores, per_row
from asr.nn.masking import masked_softmax
from asr.types import Encoded


class Dot(Stateless):
    """score(s, h_j) = s · h_j (Luong et al. 2015, sect. 3.1).

    Args:
        encoder_dim, query_dim: C, H; they must be equal.
    """

    name = "dot"
    about = About("s · h_j", "Luong et al. 2015, sect. 3.1")

    def __init__(self, encoder_dim: int, query_dim: int) -> None:
        super().__init__()
        if encoder_dim != query_dim:
            raise ValueError(
                f"query_dim={query_dim}: {self.name} compares query and glimpse as they are, so it "
                f"must equal encoder_dim={encoder_dim} (general has a matrix between them)"
            )
        self.context_dim = encoder_dim

    def prepare(self, encoded: Encoded) -> Memory:
        return Memory(encoded.states, encoded.states, memory_mask(encoded))

    def weigh(self, query: Tensor, memory: Memory) -> Weighed:
        scores = dot_scores(query.unsqueeze(1), memory.keys)
        return Weighed(masked_softmax(scores, per_row(memory.mask, len(query)).unsqueeze(1)))


class ScaledDot(Dot):
    """score(s, h_j) = s · h_j / sqrt(n), n their width (Vaswani et al. 2017, eq. 1).

    Args:
        encoder_dim, query_dim: C, H; they must be equal.
    """

    name = "scaled_dot"
    about = About("s · h_j / sqrt(n)", "Vaswani et al. 2017, eq. 1")

    def weigh(self, query: Tensor, memory: Memory) -> Weighed:
        return super().weigh(query.float() / math.sqrt(query.shape[-1]), memory)


class General(Stateless):
    """score(s, h_j) = s · W h_j (Luong et al. 2015, sect. 3.1); W h_j is computed once.

    Args:
        encoder_dim, query_dim: C, H.
    """

    name = "general"
    about = About("s · W h_j", "Luong et al. 2015, sect. 3.1")

    def __init__(self, encoder_dim: int, query_dim: int) -> None:
        super().__init__()
        self.context_dim = encoder_dim
        self.key = nn.Linear(encoder_dim, query_dim, bias=False)

    def prepare(self, encoded: Encoded) -> Memory:
        return Memory(encoded.states, self.key(encoded.states), memory_mask(encoded))

    def weigh(self, query: Tensor, memory: Memory) -> Weighed:
        scores = dot_scores(query.unsqueeze(1), memory.keys)
        return Weighed(masked_softmax(scores, per_row(memory.mask, len(query)).unsqueeze(1)))


class Cosine(Stateless):
    """score(s, h_j) = beta cos(W s, h_j), beta > 0 learned (Graves et al. 2014, eq. 5-6).

    W s is the key vector that the paper's controller emits. Deviation: beta is one learned number,
    where the paper's controller emits one at each step.

    Args:
        encoder_dim, query_dim: C, H.
        beta: what beta begins at; a cosine is at most 1, so it takes about 10 to single out a
            frame among a hundred.
    """

    name = "cosine"
    about = About("beta cos(W s, h_j), beta > 0", "Graves et al. 2014, eq. 5-6")

    def __init__(self, encoder_dim: int, query_dim: int, *, beta: float = 10.0) -> None:
        super().__init__()
        above_zero("beta", beta)
        self.context_dim = encoder_dim
        self.query = nn.Linear(query_dim, encoder_dim, bias=False)
        # The softplus of this is beta; its inverse, written so that it does not overflow.
        self.raw_beta = nn.Parameter(torch.tensor(beta + math.log(-math.expm1(-beta))))

    @property
    def beta(self) -> Tensor:
        """The sharpness as it is now, a scalar above 0."""
        return nn.functional.softplus(self.raw_beta.float())

    def prepare(self, encoded: Encoded) -> Memory:
        keys = nn.functional.normalize(encoded.states.float(), dim=-1)
        return Memory(encoded.states, keys, memory_mask(encoded))

    def weigh(self, query: Tensor, memory: Memory) -> Weighed:
        key = nn.functional.normalize(self.query(query).float(), dim=-1)
        scores = self.beta * dot_scores(key.unsqueeze(1), memory.keys)
        return Weighed(masked_softmax(scores, per_row(memory.mask, len(query)).unsqueeze(1)))
