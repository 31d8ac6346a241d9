"""Is this attention healthy? Pure functions from weights to numbers.

Batched functions take ``weights`` (B,U,A,S), padding exactly 0, ``token_mask`` (B,U) and
``frame_mask`` (B,S), True on real ones, and return (B,). None of them ever returns NaN: an
utterance without tokens has entropy 0, monotonicity 1 and coverage 0. ``<eos>`` is not counted by
:func:`measure`: what it listens to is the end, whether or not the text got there.

Sources: entropy of attention as in Ghader & Monz 2017 (What does attention in NMT pay attention
to?), sect. 5; coverage as in Chorowski & Jaitly 2016 (Towards better decoding and language model
integration), eq. 11, which counts the frames whose attention, summed over the tokens, passes a
threshold. Our deviation there: attention is summed over a neighbourhood of :data:`REACH` first,
since a healthy alignment of long tokens may touch one frame in ten.
"""

from __future__ import annotations

from typing import NamedTuple

import torch
from torch import Tensor
from torch.nn import functional

from asr.glimpses.timing import frame_end, frame_start
from asr.text.tokenizer import EOS, SPECIALS
from asr.types import AttentionRecord, Seconds

#: A step back of no more than this is jitter, not a jump.
TOLERANCE: Seconds = 0.1
#: A frame counts as attended when this much attention fell within REACH on either side of it ...
REACH: Seconds = 0.3
#: ... in tokens' worth of attention.
ENOUGH = 0.25


class Meaning(NamedTuple):
    """How to show a figure to people: a name, a unit, and what it tells in one sentence."""

    label: str
    unit: str
    text: str


MEANINGS: dict[str, Meaning] = {
    "entropy": Meaning(
        "Spread",
        "nats",
        "How widely a token listens: 0 is a single frame, 1.1 about three, 2.3 about ten. "
        "High figures mean that it listens to everything at once.",
    ),
    "relative_entropy": Meaning(
        "Relative spread",
        "%",
        "The same on a scale where 100% is listening everywhere alike: no alignment has formed.",
    ),
    "monotonicity": Meaning(
        "Left to right",
        "%",
        "How many steps from one token to the next move forward in time or stay. "
        "Speech is written down in order, so 100% is right.",
    ),
    "coverage": Meaning(
        "Heard",
        "%",
        "How much of the sound some token listened to. Low figures mean that words may be missing.",
    ),
    "backward_jumps": Meaning(
        "Jumps back",
        "",
        f"Steps back by more than {TOLERANCE} s. Text that repeats itself shows here.",
    ),
    "longest_backward_jump": Meaning("Longest jump back", "s", "The largest step back in time."),
    "longest_skip": Meaning(
        "Longest skip",
        "s",
        "The largest step forward between two tokens: a pause in the speech, or words left out.",
    ),
    "unattended_tail": Meaning(
        "Unheard end",
        "s",
        "Sound after the last thing that was listened to: silence, or a text that stopped early.",
    ),
    "ctc_agreement": Meaning(
        "Agrees with CTC",
        "%",
        "How many words the CTC output, which has no attention, hears in the same place. "
        "Low figures mean that attention got lost: the text may be right, its times are not.",
    ),
}


def entropy(weights: Tensor, token_mask: Tensor) -> Tensor:
    """Mean over tokens and heads of ``-sum_s a_s log a_s``, in nats (B,). exp of it: frames."""
    each = torch.special.entr(weights.float()).sum(-1).mean(-1)
    return _mean(each, token_mask)


def relative_entropy(weights: Tensor, token_mask: Tensor, frame_mask: Tensor) -> Tensor:
    """:func:`entropy` over its largest possible value, ``log S``: 0 sharp, 1 uniform (B,)."""
    most = frame_mask.sum(-1).clamp_min(2).log()
    return (entropy(weights, token_mask) / most).clamp(0, 1)


def centres(weights: Tensor) -> Tensor:
    """The frame at which half of a token's attention lies behind it: (...,A,S) -> (...), float.

    The median, over the mean of the heads: unlike the centre of mass it stays at the peak when
    a little attention strays far away, and unlike the peak it does not flicker between equals.
    """
    mass = weights.float().mean(-2).cumsum(-1)
    if mass.shape[-1] == 0:
        return mass.new_zeros(mass.shape[:-1])
    return (mass < mass[..., -1:] / 2).sum(-1).float()


def steps(weights: Tensor, token_mask: Tensor) -> tuple[Tensor, Tensor]:
    """Frames that the centre moves from each token to the next (B,U-1), and which are real.

    A token that heard nothing (of attention that may reach the end without stopping) has no place:
    no step leads to it or from it.
    """
    placed = token_mask & (weights > 0).any(-1).any(-1)
    return centres(weights).diff(dim=-1), placed[..., 1:] & placed[..., :-1]


def monotonicity(weights: Tensor, token_mask: Tensor, *, tolerance: float = 1.0) -> Tensor:
    """Share of steps that go back by no more than ``tolerance`` frames (B,)."""
    moved, real = steps(weights, token_mask)
    return _mean((moved >= -tolerance).float(), real, empty=1.0)


def attended(weights: Tensor, token_mask: Tensor, *, reach: int) -> Tensor:
    """(B,S) True on frames with ENOUGH attention within ``reach`` frames on either side."""
    total = (weights.float().mean(-2) * token_mask.unsqueeze(-1)).sum(-2)
    if total.shape[-1] == 0:
        return total.bool()
    window = 2 * reach + 1
    near = functional.avg_pool1d(total.unsqueeze(1), window, 1, reach).squeeze(1) * window
    return near >= ENOUGH


def coverage(weights: Tensor, token_mask: Tensor, frame_mask: Tensor, *, reach: int = 8) -> Tensor:
    """Share of the real frames that were :func:`attended` (B,); 1 where there is no frame."""
    return _mean(attended(weights, token_mask, reach=reach).float(), frame_mask, empty=1.0)


def measure(record: AttentionRecord, speech: Tensor | None = None) -> dict[str, float]:
    """Every figure of :data:`MEANINGS` for one record; ``ctc_agreement`` where it is known.

    Args:
        speech: (S,) True where someone speaks (see :func:`loud`); coverage and the unheard end
            then leave the other frames out.
    """
    weights = record.weights.unsqueeze(0)
    frames, shift = weights.shape[-1], record.frame_shift
    spoken = torch.ones(1, len(record.tokens), dtype=torch.bool)
    if record.tokens and record.tokens[-1] == SPECIALS[EOS]:
        spoken[0, -1] = False
    heard = torch.ones(frames, dtype=torch.bool)
    if speech is not None:  # a listener may leave out a last frame that is not full
        heard = functional.pad(speech.bool(), (0, max(0, frames - len(speech))))[:frames]
    moved, real = steps(weights, spoken)
    moved = frame_start(moved[real], shift)
    back, skip = (-moved).clamp_min(0), moved.clamp_min(0)
    # Rounded, so that a step of exactly the tolerance is one on every machine.
    jumps = int((back > TOLERANCE + 1e-6).sum())
    reach = max(1, round(REACH / shift))
    touched = attended(weights, spoken, reach=reach)[0]
    agreement = record.ctc_agreement
    return {
        "entropy": float(entropy(weights, spoken)),
        "relative_entropy": float(relative_entropy(weights, spoken, torch.ones(1, frames))),
        "monotonicity": 1.0 - jumps / len(moved) if len(moved) else 1.0,
        "coverage": float(_mean(touched.float(), heard, empty=1.0)),
        "backward_jumps": float(jumps),
        "longest_backward_jump": float(back.max()) if jumps else 0.0,
        "longest_skip": float(skip.max()) if len(skip) else 0.0,
        "unattended_tail": _tail(touched & heard, heard, record),
        **({} if agreement is None else {"ctc_agreement": agreement}),
    }


def _tail(touched: Tensor, heard: Tensor, record: AttentionRecord) -> Seconds:
    """Seconds from the end of the last touched frame to the end of the last one worth hearing."""

    def end(frames: Tensor) -> Seconds:
        last = int(frames.nonzero().max()) if frames.any() else -1
        return min(frame_end(last, record.frame_shift), record.duration)

    return max(0.0, end(heard) - end(touched))


def loud(
    samples: Tensor, sample_rate: int, frame_shift: Seconds, *, below_db: float = 35.0
) -> Tensor:
    """(S,) True on encoder frames within ``below_db`` of the loud parts of ``samples`` (L,).

    Loud is the 95th percentile of the frames' energy, so one click does not hide the speech. Far
    simpler than a voice-activity detector: it only keeps silence out of coverage.
    """
    cell = max(1, round(frame_shift * sample_rate))
    padded = functional.pad(samples.float(), (0, -samples.shape[-1] % cell))
    energy = padded.view(-1, cell).square().mean(-1)
    if len(energy) == 0 or not energy.any():
        return torch.zeros(len(energy), dtype=torch.bool)
    return energy > torch.quantile(energy, 0.95) * 10 ** (-below_db / 10)


def _mean(values: Tensor, mask: Tensor, *, empty: float = 0.0) -> Tensor:
    """Mean over the last axis where ``mask``, ``empty`` where it is nowhere True."""
    count = mask.sum(-1)
    mean = (values * mask).sum(-1) / count.clamp_min(1)
    return torch.where(count > 0, mean, torch.full_like(mean, empty))
