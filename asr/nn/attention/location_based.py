"""Where, whatever is there: attention by position alone."""

from __future__ import annotations

import math
from typing import Literal, NamedTuple

import torch
from torch import Tensor, nn

from asr.nn.about import About
from asr.nn.attention.base import Attended, Attention, Memory, Mode, memory_mask
from asr.nn.attention.parts import above_zero, at_least, mix, per_row
from asr.nn.masking import masked_softmax
from asr.types import Encoded


class Centres(NamedTuple):
    """means (N,M): where each Gaussian stands, in frames; no columns where there is none."""

    means: Tensor


class Table(nn.Module):
    """A score for each frame number up to ``longest``: W s (Luong et al. 2015, eq. 8)."""

    def __init__(self, query_dim: int, longest: int) -> None:
        super().__init__()
        at_least("longest", longest, 1)
        self.components, self.longest = 0, longest
        self.scores = nn.Linear(query_dim, longest, bias=False)

    def forward(self, query: Tensor, means: Tensor, size: int) -> tuple[Tensor, Tensor]:
        """query (N,H), means (N,0) -> scores (N,S), minus infinity past ``longest``; means."""
        scores = self.scores(query).float()[:, :size]
        beyond = (0, max(0, size - self.longest))
        return nn.functional.pad(scores, beyond, value=-torch.inf), means


class Mixture(nn.Module):
    """Gaussians whose means only move forward (Graves 2013, eq. 46-51).

    phi(j) = sum_m alpha_m exp(-beta_m (kappa_m - j)^2), kappa_m = kappa_m' + step_m. Deviations:
    beta and step are softplus rather than exp of what the query says, so that no score
    overflows; and the weights are divided by their sum, so that a context is a mean of glimpses.
    """

    def __init__(self, query_dim: int, components: int, stride: float) -> None:
        super().__init__()
        at_least("components", components, 1)
        above_zero("stride", stride)
        self.components = components
        self.parameters_of = nn.Linear(query_dim, 3 * components)
        with torch.no_grad():
            # softplus of this is the stride, so that means set out at the pace of speech
            self.parameters_of.bias[2 * components :] = stride + math.log(-math.expm1(-stride))

    def forward(self, query: Tensor, means: Tensor, size: int) -> tuple[Tensor, Tensor]:
        """query (N,H), means (N,M) before -> scores (N,S), the logarithm of phi; means after."""
        alpha, beta, step = self.parameters_of(query).float().chunk(3, -1)
        means = means + nn.functional.softplus(step)
        away = torch.arange(size, device=query.device) - means.unsqueeze(-1)
        each = alpha.unsqueeze(-1) - nn.functional.softplus(beta).unsqueeze(-1) * away.square()
        return torch.logsumexp(each, 1), means


class LocationBased(Attention):
    """The position alone decides, and the query says which: what is there is never looked at.

    Args:
        encoder_dim, query_dim: C, H.
        form: ``mixture`` of Gaussians that move forward (Graves 2013, eq. 46-51), or ``table``,
            softmax(W s) over frame numbers (Luong et al. 2015, eq. 8).
        components: Gaussians of the mixture.
        stride: frames that they move a token when training begins.
        longest: frames that the table has scores for; those past it get weight 0.
    """

    name = "location_based"
    about = About(
        "softmax(W s); or sum_m alpha_m exp(-beta_m (kappa_m - j)^2), kappa moving forward",
        "Luong et al. 2015, eq. 8; Graves 2013, eq. 46-51",
        looks_at="location",
    )

    def __init__(
        self,
        encoder_dim: int,
        query_dim: int,
        *,
        form: Literal["mixture", "table"] = "mixture",
        components: int = 5,
        stride: float = 4.0,
        longest: int = 1000,
    ) -> None:
        super().__init__()
        if form not in ("mixture", "table"):
            raise ValueError(f"form={form!r}: valid are mixture, table")
        self.context_dim = encoder_dim
        self.form: Mixture | Table = (
            Mixture(query_dim, components, stride)
            if form == "mixture"
            else Table(query_dim, longest)
        )

    def prepare(self, encoded: Encoded) -> Memory:
        # Nothing is compared: keys of no width.
        return Memory(encoded.states, encoded.states[..., :0], memory_mask(encoded))

    def initial_state(self, memory: Memory, rows: int) -> Centres:
        columns = self.form.components
        return Centres(memory.values.new_zeros(rows, columns, dtype=torch.float32))

    def step(
        self, query: Tensor, memory: Memory, state: Centres, *, mode: Mode
    ) -> tuple[Attended, Centres]:
        size = memory.mask.shape[1]
        scores, means = self.form(query, state.means, size)
        allowed = per_row(memory.mask, len(query)) & (scores > -torch.inf)
        weights = masked_softmax(scores, allowed).unsqueeze(1)
        return Attended(mix(weights, memory.values), weights, {"centres": means}), Centres(means)
