"""What training minimises. All of it is computed in float32, whatever the precision of the rest."""

from __future__ import annotations

from typing import NamedTuple

import torch
from torch import Tensor
from torch.nn import functional as F

from asr.nn.masking import length_mask
from asr.text import BLANK, EOS


def teacher(targets: Tensor, lengths: Tensor) -> tuple[Tensor, Tensor, Tensor]:
    """What the speller is fed and what it must answer.

    targets (B,U) without ends, lengths (B,) -> inputs (B,U+1) opening with ``<sos>``, outputs
    (B,U+1) closing with ``<eos>``, mask (B,U+1) True on real rows, the ``<eos>`` row among them.
    """
    inputs = F.pad(targets, (1, 0), value=EOS)
    outputs = F.pad(targets, (0, 1), value=EOS)
    outputs = outputs.scatter(1, lengths.unsqueeze(1), EOS)
    return inputs, outputs, length_mask(lengths + 1, outputs.shape[1])


def token_log_probs(logits: Tensor, outputs: Tensor) -> Tensor:
    """logits (B,U,V), outputs (B,U) -> (B,U) float32, what each right token was given."""
    return F.log_softmax(logits.float(), -1).gather(-1, outputs.unsqueeze(-1)).squeeze(-1)


def cross_entropy(logits: Tensor, outputs: Tensor, mask: Tensor, smoothing: float = 0.0) -> Tensor:
    """Label-smoothed cross entropy, mean over real tokens (Szegedy et al. 2016, sect. 7).

    logits (B,U,V), outputs (B,U), mask (B,U) -> scalar, in nats a token. The smoothing mass is
    spread over the whole vocabulary, the right token included.
    """
    # ignore_index rather than logits[mask], whose size a GPU would have to report back.
    wanted = outputs.masked_fill(~mask, -100)
    return F.cross_entropy(logits.float().transpose(1, 2), wanted, label_smoothing=smoothing)


class CTC(NamedTuple):
    """``loss``: scalar, nats a token; ``infeasible``: how many utterances no path can spell."""

    loss: Tensor
    infeasible: Tensor


def ctc(log_probs: Tensor, lengths: Tensor, targets: Tensor, target_lengths: Tensor) -> CTC:
    """CTC loss (Graves et al. 2006, eq. 8) of those utterances that have a path at all.

    log_probs (B,S,V) float32, lengths (B,), targets (B,U), target_lengths (B,). A path needs one
    frame a token and one more between equal neighbours; where S is shorter, the utterance counts
    as ``infeasible`` and adds nothing. Each loss is divided by its utterance's token count.
    """
    if 0 in log_probs.shape:
        return CTC(log_probs.float().sum(), target_lengths.new_tensor(len(lengths)))
    pairs = targets[:, 1:] == targets[:, :-1]
    repeats = pairs & length_mask(target_lengths - 1, pairs.shape[1])
    infeasible = (lengths < target_lengths + repeats.sum(1)) | (lengths == 0)
    each = F.ctc_loss(
        log_probs.float().transpose(0, 1),
        targets,
        lengths.clamp(min=1),
        target_lengths,
        blank=BLANK,
        reduction="none",
        zero_infinity=True,
    )
    # where, not a product: an infeasible utterance may carry what a product would turn into NaN.
    each = torch.where(infeasible, 0.0, each / target_lengths.clamp(min=1))
    return CTC(each.sum() / (~infeasible).sum().clamp(min=1), infeasible.sum())


def guided_attention(weights: Tensor, lengths: Tensor, mask: Tensor, width: float = 0.2) -> Tensor:
    """How far from the diagonal the speller listens (Tachibana et al. 2018, eq. 6).

    weights (B,U,A,S), lengths (B,) encoder frames, mask (B,U) real rows -> scalar in [0, 1]: the
    penalty ``1 - exp(-(u/U - s/S)^2 / (2 width^2))`` expected under each row's weights, mean over
    rows and heads. The paper takes the mean over frames as well, which makes the term vanish as
    utterances grow; a mean over rows alone does not.
    """
    rows = mask.sum(1, keepdim=True).clamp(min=1)
    u = torch.arange(mask.shape[1], device=mask.device) / rows
    s = torch.arange(weights.shape[-1], device=mask.device) / lengths.clamp(min=1).unsqueeze(1)
    penalty = 1 - torch.exp(-((u.unsqueeze(2) - s.unsqueeze(1)) ** 2) / (2 * width**2))
    per_row = (weights.float() * penalty.unsqueeze(2)).sum(-1).mean(-1)
    return (per_row * mask).sum() / mask.sum().clamp(min=1)
