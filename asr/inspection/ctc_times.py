"""Where CTC hears the words that attention wrote: a second witness of when they were said."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise

import torch
from torch import Tensor
from torchaudio.functional import forced_align, merge_tokens

from asr.glimpses.timing import frame_start
from asr.text import BLANK
from asr.types import Seconds, Word

#: CTC hears a word elsewhere where this much lies between its stretch and that of attention. What
#: a listener shifts is less: CTC may spell a word up to half a second before or after it is said.
APART: Seconds = 0.5


def token_frames(log_probs: Tensor, tokens: Sequence[int]) -> Tensor | None:
    """The first frame of each token, and the one past its last, on the best path that spells them.

    The Viterbi alignment of the text (Graves et al. 2006, sect. 3-4, with the maximum in place of
    the sum). log_probs (S,V) float32 on the CPU, U tokens without ``<eos>`` -> (U,2) long; None
    where no path of S frames spells them.
    """
    repeats = sum(a == b for a, b in pairwise(tokens))
    if len(log_probs) < len(tokens) + repeats:
        return None
    if not tokens:
        return torch.zeros(0, 2, dtype=torch.long)
    path, scores = forced_align(log_probs.unsqueeze(0), torch.tensor([tokens]), blank=BLANK)
    spans = merge_tokens(path[0], scores[0], blank=BLANK)
    return torch.tensor([(span.start, span.end) for span in spans])


def agreement(
    words: Sequence[Word],
    spans: Sequence[tuple[str, int, int]],
    frames: Tensor | None,
    shift: Seconds,
) -> float:
    """Share of the words that CTC hears where attention does, no more than :data:`APART` from it.

    Args:
        words: as :func:`asr.inspection.timing.word_times` finds them.
        spans: (word, first token, one past the last) of each, as it was given them.
        frames: (U,2) of :func:`token_frames`; where CTC cannot spell the text, it hears no word.
        shift: seconds of a frame.

    Returns:
        In [0, 1]; 1 where there are no words.
    """
    if not words:
        return 1.0
    if frames is None:
        return 0.0
    times = frame_start(frames, shift)
    near = 0
    for word, (_, first, past) in zip(words, spans, strict=True):
        start, end = float(times[first, 0]), float(times[past - 1, 1])
        near += max(start - word.end, word.start - end) <= APART
    return near / len(words)
