"""What training minimises. All of it is computed in float32, whatever the precision of the rest."""

from __future__ import annotations

from typing import NamedTuple

import torch
from torch import Tensor
from torch.nn import functional as F

from asr.glimpses.timing import frame_centre
from asr.nn.masking import length_mask
from asr.text import BLANK, EOS
from asr.types import Seconds


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


def guided_attention(
    weights: Tensor,
    lengths: Tensor,
    mask: Tensor,
    width: float = 0.2,
    *,
    token_times: Tensor | None = None,
    seconds: float = 0.06,
    frame_shift: Seconds = 0.04,
) -> Tensor:
    """How far from where it should the speller listens; guides an alignment that has not formed.

    weights (B,U,A,S), lengths (B,) encoder frames, mask (B,U) real rows -> scalar in [0, 1]: the
    penalty ``1 - exp(-z^2 / 2)`` expected under each row's weights, mean over rows and heads. What
    a row lacks of a sum of one (it may, where attention can reach the end without stopping) is as
    bad as listening in the wrong place: else never to stop would be the easiest way to obey.

    Where nothing is known, z is the distance from the diagonal, ``(u/U - s/S) / width``
    (Tachibana et al. 2018, eq. 6). The paper takes the mean over frames as well, which makes the
    term vanish as utterances grow; a mean over rows alone does not. Where ``token_times`` (B,U-1,2)
    say when each token's word is heard (NaN: not known), z is the distance from the token's part
    of it, in units of ``seconds``: supervised attention (Mi et al. 2016, sect. 3).
    """
    rows = mask.sum(1, keepdim=True).clamp(min=1)
    u = torch.arange(mask.shape[1], device=mask.device) / rows
    frames = torch.arange(weights.shape[-1], device=mask.device)
    s = frames / lengths.clamp(min=1).unsqueeze(1)
    distance = (u.unsqueeze(2) - s.unsqueeze(1)) / width
    if token_times is not None:
        centres = token_centres(token_times, rows.squeeze(1) - 1)
        known = (frame_centre(frames, frame_shift) - centres.unsqueeze(2)) / seconds
        distance = torch.where(known.isnan(), distance, known)
    near = torch.exp(-distance.square() / 2).unsqueeze(2)
    per_row = 1 - (weights.float() * near).sum(-1).mean(-1)
    return (per_row * mask).sum() / mask.sum().clamp(min=1)


def token_centres(token_times: Tensor, lengths: Tensor) -> Tensor:
    """When each token is heard: (B,U,2) start and end of its word, lengths (B,) -> (B,U+1) seconds.

    The k tokens of a word have equal parts of it, and a token's moment is the middle of its part.
    ``<eos>``, the row after the last token, is heard as the last word ends. NaN where not known.
    """
    start, end = token_times.unbind(-1)
    if start.shape[1] == 0:
        return start.new_full((len(start), 1), float("nan"))
    count = start.shape[1]
    index = torch.arange(count, device=start.device).expand_as(start)
    # Tokens of a word have one span; where the span changes, the next word begins.
    first = torch.ones_like(start, dtype=torch.bool)
    first[:, 1:] = (start[:, 1:] != start[:, :-1]) | (end[:, 1:] != end[:, :-1])
    word = first.cumsum(1) - 1
    begins = torch.where(first, index, 0).cummax(1).values
    real = length_mask(lengths, count)
    sizes = torch.zeros_like(word).scatter_add(1, word, real.long()).gather(1, word)
    centres = start + (end - start) * (index - begins + 0.5) / sizes.clamp(min=1)
    last = end.gather(1, (lengths - 1).clamp(min=0).unsqueeze(1))
    centres = F.pad(centres, (0, 1)).scatter(1, lengths.unsqueeze(1), last)
    return torch.where((lengths == 0).unsqueeze(1), float("nan"), centres)
