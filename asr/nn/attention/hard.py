"""One glimpse is drawn, not mixed."""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

import torch
from torch import Tensor, nn

from asr.nn.about import About
from asr.nn.attention.base import Attended, Attention, Memory, Mode, memory_mask
from asr.nn.attention.parts import AdditiveScore, at_least, mix, per_row
from asr.nn.masking import masked_softmax
from asr.types import Encoded


class Mixed(NamedTuple):
    """expected (N,) bool: the rows that hear the mean of all draws, in training."""

    expected: Tensor


class Hard(Attention):
    """One frame, drawn from softmax(v · tanh(W s + V h_j + b)) in training, the likeliest after.

    The draw has no gradient. It is trained with REINFORCE (Williams 1992; Mnih et al. 2014,
    sect. 3.1; Xu et al. 2015, sect. 4.1, eq. 11-12): the reward of a draw is the log-probability
    of the right token, and of those after it at a discount; what is subtracted from it is a
    moving average of the reward and what a learned baseline expects from the query; an entropy
    bonus keeps it looking around. As in Xu et al., half of the utterances hear in training not a
    draw but its expectation, which has a gradient: reward alone is slow to find where things are. A
    guide of attention, while there is one, pushes at the distribution. Deviation from Xu et al.: a
    draw is rewarded for its own token and what follows, not for the whole sentence, which has far
    less variance.

    Args:
        encoder_dim, query_dim: C, H.
        dim: K.
        discount: in [0, 1], by which the reward of each further token counts less.
        entropy_weight: of the entropy bonus, in nats a token (lambda_e).
        reward_weight: of the REINFORCE term (lambda_r). At 1, before the speller can use what it
            hears, the term drives the draws to a few wrong frames, and no guide gets them away.
        expected: share of the utterances that hear the expectation; Xu et al. take 0.5.
        decay: of the moving average, in [0, 1); Xu et al. take 0.9.
    """

    name = "hard"
    about = About(
        "one j, drawn from softmax(v · tanh(W s + V h_j + b)); REINFORCE, argmax when transcribing",
        "Mnih et al. 2014, sect. 3.1; Xu et al. 2015, sect. 4.1, eq. 11-12",
        kind="hard",
    )
    average: Tensor

    def __init__(
        self,
        encoder_dim: int,
        query_dim: int,
        *,
        dim: int = 128,
        discount: float = 0.5,
        entropy_weight: float = 0.01,
        reward_weight: float = 0.1,
        expected: float = 0.5,
        decay: float = 0.9,
    ) -> None:
        super().__init__()
        if not 0 <= discount <= 1:
            raise ValueError(f"discount={discount}: needs 0 <= discount <= 1")
        if not 0 <= decay < 1:
            raise ValueError(f"decay={decay}: needs 0 <= decay < 1")
        if not 0 <= expected <= 1:
            raise ValueError(f"expected={expected}: needs 0 <= expected <= 1")
        at_least("entropy_weight", entropy_weight, 0)
        at_least("reward_weight", reward_weight, 0)
        self.context_dim = encoder_dim
        self.discount, self.decay, self.expected = discount, decay, expected
        self.entropy_weight, self.reward_weight = entropy_weight, reward_weight
        self.score = AdditiveScore(encoder_dim, query_dim, dim)
        self.baseline = nn.Linear(query_dim, 1)
        self.register_buffer("average", torch.zeros(()))

    def prepare(self, encoded: Encoded) -> Memory:
        return Memory(encoded.states, self.score.keys(encoded), memory_mask(encoded))

    def initial_state(self, memory: Memory, rows: int) -> Mixed:
        return Mixed(torch.rand(rows, device=memory.values.device) < self.expected)

    def step(
        self, query: Tensor, memory: Memory, state: Mixed, *, mode: Mode
    ) -> tuple[Attended, Mixed]:
        mask = per_row(memory.mask, len(query))
        scores = self.score(query, memory.keys)
        probabilities = masked_softmax(scores, mask)
        with torch.no_grad():
            chosen = _draw(probabilities) if mode == "train" else _likeliest(probabilities)
            weights = (_frames(probabilities) == chosen) & mask
        hidden = scores.masked_fill(~mask, torch.finfo(scores.dtype).min)
        log_probs = torch.log_softmax(hidden, -1)
        # A draw has no gradient of its own; the expectation, which training may hear instead, has.
        heard = weights.float()
        drawn = torch.ones_like(state.expected)
        if mode == "train":
            drawn = ~state.expected
            heard = torch.where(drawn.unsqueeze(-1), heard, probabilities)
        heard = heard.unsqueeze(1)
        terms = {
            "drawn": drawn.float(),
            "log_prob": (log_probs * weights).sum(-1),
            "entropy": -(log_probs * probabilities).sum(-1),
            # Guessing the reward must not shape the query.
            "baseline": self.baseline(query.detach()).float().squeeze(-1),
        }
        if mode == "train":
            terms["probabilities"] = probabilities.unsqueeze(1)
        return Attended(mix(heard, memory.values), heard, terms), state

    def loss(
        self, terms: Mapping[str, Tensor], mask: Tensor, token_log_probs: Tensor
    ) -> Tensor | None:
        """REINFORCE with its baseline's error and the entropy bonus, mean over real tokens."""
        count = mask.sum().clamp(min=1)
        reward = token_log_probs.detach().float() * mask
        # What is still to come, at a discount: a product with a triangle of powers.
        steps = torch.arange(mask.shape[1], device=mask.device)
        ahead = steps - steps.unsqueeze(1)
        powers = torch.where(ahead >= 0, float(self.discount) ** ahead.clamp(min=0), 0.0)
        surprise = reward @ powers.T - self.average
        advantage = (surprise - terms["baseline"]).detach()
        policy = -self.reward_weight * advantage * terms["log_prob"] * terms["drawn"]
        guess = (surprise.detach() - terms["baseline"]).square()
        bonus = self.entropy_weight * terms["entropy"]
        if torch.is_grad_enabled():
            with torch.no_grad():
                mean = ((surprise + self.average) * mask).sum() / count
                self.average.lerp_(mean, 1 - self.decay)
        return ((policy + guess - bonus) * mask).sum() / count

    def guided(self, weights: Tensor, terms: Mapping[str, Tensor]) -> Tensor:
        """The distribution, which has the gradient that its draws have not."""
        return terms.get("probabilities", weights)


def _frames(probabilities: Tensor) -> Tensor:
    return torch.arange(probabilities.shape[-1], device=probabilities.device)


def _draw(probabilities: Tensor) -> Tensor:
    """(N,S) -> (N,1) frames, by inverting the distribution: one random number a row.

    So a row's draw depends neither on the padding nor on how many frames its neighbours have.
    """
    if probabilities.shape[-1] == 0:
        return probabilities.new_zeros(len(probabilities), 1, dtype=torch.long)
    running = probabilities.cumsum(-1)
    total = running[:, -1:]
    threshold = torch.rand(len(running), 1, device=running.device) * total
    chosen = (running <= threshold).sum(-1, keepdim=True)
    # Rounding can lift the threshold to the very end, where no frame is left.
    return torch.minimum(chosen, (running < total).sum(-1, keepdim=True))


def _likeliest(probabilities: Tensor) -> Tensor:
    if probabilities.shape[-1] == 0:
        return probabilities.new_zeros(len(probabilities), 1, dtype=torch.long)
    return probabilities.argmax(-1, keepdim=True)
