"""CTC prefix scores of all extensions of all hypotheses at once.

Watanabe et al. 2017 ("Hybrid CTC/attention architecture for end-to-end speech recognition",
algorithm 2; Hori et al. 2017), after the prefix probabilities of Graves 2008. In their
notation, for a prefix g and a token c, with p_t the CTC output:

    r_n(g.c, t) = (r_n(g.c, t-1) + phi(t-1)) p_t(c)          paths that end in c
    r_b(g.c, t) = (r_b(g.c, t-1) + r_n(g.c, t-1)) p_t(blank) paths that end in blank
    psi(g.c)    = sum over t of phi(t-1) p_t(c)              all texts that begin with g.c
    phi(t)      = r_b(g, t)  if c repeats the last token of g, else  r_b(g, t) + r_n(g, t)

psi is linear in p, so psi of the whole vocabulary is one matrix product over time; the
column of the repeated token is put right afterwards. Only the survivors need r, and r is a
first-order linear recurrence x_t = a_t x_{t-1} + u_t, which has a closed form:
log x_t = A_t + logcumsumexp(log u - A)_t with A = cumsum(log a). A reaches minus thousands and
cancels, which costs its rounding error: about 1e-10 in float64 (and a useless 1e-2 in float32).
So no Python loop runs over time, tokens or hypotheses.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import torch
from torch import Tensor
from torch.nn.functional import pad

from asr.nn.masking import length_mask
from asr.search.scorers import Scores
from asr.search.tree import survive
from asr.text import BLANK, EOS
from asr.types import Encoded

#: log of the smallest factor in A: keeps it finite, far below anything that could matter
_FLOOR = -690.0


class CTCState(NamedTuple):
    """All float64 logarithms but ``probs``; time has S+1 places, the first before any frame."""

    probs: Tensor  # (B,V,S) p_t(c); padding is blank for certain
    blank_decay: Tensor  # (B,S) cumulative log p_t(blank)
    total: Tensor  # (N,S+1) r_n + r_b
    blank: Tensor  # (N,S+1) r_b
    last: Tensor  # (N,) last token; <eos> stands for none
    prefix: Tensor  # (N,) psi of the hypothesis
    extended: Tensor  # (N,V) psi of its extensions, once scored; <eos>: p of the text itself


class CTCPrefixScorer:
    """Scores log psi(g.c) - log psi(g); ``<eos>`` gets log p(g) - log psi(g), blank is forbidden.

    ``log_probs`` gives (B,S,V) log-softmaxed CTC outputs of an Encoded. The scores of a text
    and its ``<eos>`` add up to its CTC log-probability.
    """

    def __init__(self, log_probs: Callable[[Encoded], Tensor]) -> None:
        self.log_probs = log_probs

    def start(self, encoded: Encoded, beam: int) -> CTCState:
        log_probs = self.log_probs(encoded).transpose(1, 2)
        probs = log_probs.to(torch.float64, memory_format=torch.contiguous_format).exp_()
        utterances, _, frames = probs.shape
        # Padding that is blank for certain carries every sum to the last frame unchanged:
        # from here on lengths do not matter, and no token can start there.
        padding = ~length_mask(encoded.lengths, frames)
        probs.masked_fill_(padding.unsqueeze(1), 0.0)
        probs[:, BLANK].masked_fill_(padding, 1.0)
        decay = probs[:, BLANK].log().clamp(min=_FLOOR).cumsum(-1)
        empty = pad(decay, (1, 0)).repeat_interleave(beam, 0)
        rows = utterances * beam
        return CTCState(
            probs,
            decay,
            total=empty,
            blank=empty,
            last=torch.full((rows,), EOS, device=probs.device),
            prefix=probs.new_zeros(rows),
            extended=probs.new_zeros(rows, 1),
        )

    def score(
        self, last: Tensor, state: CTCState, heard: Tensor | None = None
    ) -> tuple[Scores, CTCState]:
        utterances = state.probs.shape[0]
        # Divided by its largest element, a row has room for e^-745 of what matters most.
        peak = _finite(state.total.amax(-1, keepdim=True))
        phi = (state.total[:, :-1] - peak).exp()
        every = torch.bmm(
            phi.view(utterances, -1, phi.shape[-1]), state.probs.transpose(1, 2)
        ).flatten(0, 1)
        repeated = ((state.blank[:, :-1] - peak).exp() * _of(state.probs, state.last)).sum(-1)
        every.scatter_(1, state.last.unsqueeze(1), repeated.unsqueeze(1))
        extended = every.log_().add_(peak)
        extended[:, BLANK] = -torch.inf
        extended[:, EOS] = state.total[:, -1]
        gained = extended - _finite(state.prefix).unsqueeze(1)
        return Scores(gained.float()), state._replace(extended=extended)

    def select(self, state: CTCState, rows: Tensor, tokens: Tensor) -> CTCState:
        prefix = state.extended[rows, tokens]
        utterances = state.probs.shape[0]
        (probs, decay), (total, blank, last) = survive(
            (state.probs, state.blank_decay),
            (state.total, state.blank, state.last),
            rows,
            utterances=utterances,
            beam=state.last.shape[0] // utterances,
        )
        log_p = _of(probs, tokens).log()
        phi = torch.where((tokens == last).unsqueeze(1), blank, total)[:, :-1]
        token_decay = log_p.clamp(min=_FLOOR).cumsum(-1)
        ends_in_token = _recur(token_decay, phi + log_p)
        rows_decay = decay.repeat_interleave(rows.shape[0] // decay.shape[0], 0)
        log_blank = rows_decay.diff(dim=-1, prepend=rows_decay.new_zeros(len(rows_decay), 1))
        earlier = pad(ends_in_token, (1, -1), value=-torch.inf)
        ends_in_blank = _recur(rows_decay, earlier + log_blank)
        before = (1, 0)
        return CTCState(
            probs,
            decay,
            total=pad(torch.logaddexp(ends_in_token, ends_in_blank), before, value=-torch.inf),
            blank=pad(ends_in_blank, before, value=-torch.inf),
            last=tokens,
            prefix=prefix,
            extended=prefix.unsqueeze(1),
        )

    def final(self, state: CTCState) -> Tensor:
        return (state.total[:, -1] - _finite(state.prefix)).float()


def _recur(decay: Tensor, added: Tensor) -> Tensor:
    """log x_t of x_t = a_t x_{t-1} + u_t from cumsum(log a) and log u, both (N,S)."""
    return decay + torch.logcumsumexp(added - decay, -1)


def _of(probs: Tensor, tokens: Tensor) -> Tensor:
    """(B,V,S) and one token a row (N,) -> (N,S): that token's probability over time."""
    utterances, vocabulary, frames = probs.shape
    row = torch.arange(tokens.shape[0], device=tokens.device)
    utterance = row // (tokens.shape[0] // utterances)
    return probs.view(-1, frames).index_select(0, utterance * vocabulary + tokens)


def _finite(log: Tensor) -> Tensor:
    """0 for -inf, so that subtracting it leaves -inf rather than NaN."""
    return log.masked_fill(log == -torch.inf, 0.0)
