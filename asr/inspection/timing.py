"""When was each word said? Read off the attention, in seconds."""

from __future__ import annotations

import math
from collections.abc import Sequence

import torch
from torch import Tensor

from asr.glimpses.timing import frame_end, frame_start
from asr.types import AttentionRecord, Seconds, Word

#: A token's stretch keeps the frames that get at least this much of its strongest one.
TRIM = 0.1


def monotonic_runs(weights: Tensor) -> Tensor:
    """The best way to give each token a run of frames of its own, in order.

    The dynamic programme of DTW and Viterbi alignment: of all ways to cut the S frames into U
    runs, one a token, left to right, it takes the one whose runs hold the most attention. Unlike
    each row's maximum it cannot go backwards, and one stray row cannot move its neighbours. With
    ``C[u,s]`` the attention of token u up to frame s,
    ``best[u,s] = C[u,s] + max_{r<=s} (best[u-1,r-1] - C[u,r-1])``: one cumulative maximum a token.

    Args:
        weights: (U,S), the mean of the heads.

    Returns:
        (U,2) float64: where each run starts and ends, in frames, the end excluded. Whole numbers
        unless there are more tokens than frames, which then share frames in equal parts.
    """
    tokens, frames = weights.shape
    if tokens == 0 or frames == 0:
        return torch.zeros(tokens, 2, dtype=torch.float64)
    parts = -(-tokens // frames)  # each frame is cut so that every token can have a part
    if parts > 1:
        weights = weights.repeat_interleave(parts, -1)
    rewards = weights.double()
    ahead = torch.nn.functional.pad(rewards.cumsum(-1), (1, 0))  # ahead[u,r] = C[u,r-1]
    best = torch.full((rewards.shape[1] + 1,), -math.inf, dtype=torch.float64)
    best[0] = 0.0  # best[r]: the earlier tokens have exactly the first r frames
    origins = []
    for sums in ahead:
        entry, origin = (best - sums).cummax(0)
        origins.append(origin)
        # A run has at least one frame: it starts at or before s and ends after it.
        best = torch.cat((best.new_full((1,), -math.inf), entry[:-1] + sums[1:]))
    runs = torch.zeros(tokens, 2, dtype=torch.float64)
    end = rewards.shape[1]
    for token in range(tokens - 1, -1, -1):
        start = int(origins[token][end - 1])
        run = rewards[token, start:end]
        strong = (run >= TRIM * run.max()).nonzero()
        runs[token] = torch.tensor([start + int(strong[0]), start + int(strong[-1]) + 1])
        end = start
    return runs / parts


def word_times(
    record: AttentionRecord,
    spans: Sequence[tuple[str, int, int]],
    log_probs: Sequence[float],
    *,
    onset_shift: Seconds = 0.0,
) -> tuple[Word, ...]:
    """Start, end and confidence of every word, in the order they were written.

    Always ``0 <= start <= end <= duration``, and no word starts before the one before it ended.
    Times are within the piece; add ``record.start`` for times in its file.

    Args:
        spans: (word, first token, one past the last) as :meth:`asr.text.Tokenizer.words` gives.
        log_probs: of each token under the speller; a word's confidence is the geometric mean of
            its tokens' probabilities.
        onset_shift: how much later than the sound this model attends, in seconds: a constant of
            the model, estimated on training data with known word times (:func:`estimate_shift`)
            and taken off every time. Listeners are free to move a sound to later frames, and do.
    """
    runs = monotonic_runs(record.weights.mean(1))
    # Frame r begins where frame r - 1 ends, so both borders of a run are starts of frames.
    borders = (frame_start(runs, record.frame_shift) - onset_shift).clamp(0.0, record.duration)
    words: list[Word] = []
    earliest = 0.0
    for word, first, past in spans:
        start = max(earliest, float(borders[first, 0]))
        earliest = end = max(start, float(borders[past - 1, 1]))
        mean = sum(log_probs[first:past]) / (past - first)
        words.append(Word(word, start, end, min(1.0, max(0.0, math.exp(min(0.0, mean))))))
    return tuple(words)


def estimate_shift(found: Sequence[Word], known: Sequence[Seconds]) -> Seconds:
    """The median of how much later the words were found than they are known to start."""
    if len(found) != len(known):
        raise ValueError(f"found {len(found)} words, known {len(known)}: one time a word is needed")
    if not found:
        return 0.0
    late = torch.tensor([word.start - start for word, start in zip(found, known, strict=True)])
    return float(late.double().quantile(0.5))


def stretch(row: Tensor, shift: Seconds) -> tuple[Seconds, Seconds]:
    """Start and end in seconds of what one token attended to, (S,): its peak and what adjoins it.

    Unlike the runs above it need not be in order: a token that jumps back is shown where it went.
    """
    if row.numel() == 0 or not row.any():
        return 0.0, 0.0
    peak = int(row.argmax())
    weak = (row < TRIM * row[peak]).nonzero().flatten().tolist()
    first = max((index for index in weak if index < peak), default=-1) + 1
    last = min((index for index in weak if index > peak), default=len(row)) - 1
    return frame_start(first, shift), frame_end(last, shift)
