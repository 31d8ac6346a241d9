"""Where CTC hears words, against every path there is, and which of them it hears elsewhere."""

from __future__ import annotations

import itertools

import pytest
import torch

from asr.inspection import ctc_times
from asr.inspection.ctc_times import agreement, token_frames
from asr.text import BLANK
from asr.types import Word


def best_by_enumeration(log_probs: torch.Tensor, tokens: list[int]) -> list[list[int]] | None:
    """Of all labellings of all frames, the likeliest that collapses to ``tokens``."""
    frames, size = log_probs.shape
    best, found = -float("inf"), None
    for path in itertools.product(range(size), repeat=frames):
        runs, at = [], 0
        for label, group in itertools.groupby(path):
            length = len(list(group))
            if label != BLANK:
                runs.append((label, at, at + length))
            at += length
        score = float(sum(log_probs[frame, label] for frame, label in enumerate(path)))
        if [label for label, _, _ in runs] == tokens and score > best:
            best, found = score, [[first, past] for _, first, past in runs]
    return found


@pytest.mark.parametrize("tokens", [[1], [1, 2], [1, 1], [2, 1, 1], [1, 1, 1], [1, 2, 1, 2]])
def test_token_frames_are_those_of_the_best_path(tokens):
    torch.manual_seed(len(tokens))
    for _ in range(5):
        log_probs = torch.randn(5, 3).mul(2).log_softmax(-1)
        wanted = best_by_enumeration(log_probs, tokens)
        assert wanted is not None
        found = token_frames(log_probs, tokens)
        assert found is not None and found.tolist() == wanted


def test_what_no_path_can_spell_has_no_frames():
    log_probs = torch.zeros(3, 4).log_softmax(-1)
    assert token_frames(log_probs, [1, 2, 3]) is not None
    assert token_frames(log_probs, [1, 2, 3, 1]) is None
    assert token_frames(log_probs, [1, 1, 2]) is None  # a blank between equals
    assert token_frames(log_probs[:0], [1]) is None
    nothing = token_frames(log_probs[:0], [])
    assert nothing is not None and nothing.shape == (0, 2)


def test_a_word_is_heard_elsewhere_only_if_its_stretches_lie_apart():
    shift = 0.1
    words = [Word("ab", 1.0, 1.4, 0.9), Word("c", 3.0, 3.2, 0.9)]
    spans = [("ab", 0, 2), ("c", 3, 4)]  # token 2 is the space between them

    def share(first: int, second: int) -> float:
        frames = [[first, first + 1], [first + 2, first + 3], [first + 3, first + 4]]
        return agreement(words, spans, torch.tensor([*frames, [second, second + 1]]), shift)

    far = round(ctc_times.APART / shift)
    assert share(11, 31) == 1.0
    assert share(14 + far - 1, 31) == share(10 - far - 2, 31) == 1.0
    assert share(14 + far + 1, 31) == share(10 - far - 4, 31) == 0.5
    assert share(11, 60) == 0.5 and share(40, 60) == 0.0
    assert agreement(words, spans, None, shift) == 0.0
    assert agreement([], [], None, shift) == 1.0
