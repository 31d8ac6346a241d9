from __future__ import annotations

import math

import torch

from asr.data.batching import batch, pad, token_times
from asr.data.manifest import WordTime
from asr.text import CharacterTokenizer, SentencePieceTokenizer

WORDS = (WordTime("one", 0.5, 1.0), WordTime("two", 1.25, 1.5))


def test_tokens_have_their_words_times(letters: CharacterTokenizer) -> None:
    times = token_times(letters.encode("one two"), WORDS, letters)
    assert times == [(0.5, 1.0)] * 3 + [(1.0, 1.25)] + [(1.25, 1.5)] * 3


def test_subwords_too() -> None:
    pieces = SentencePieceTokenizer.train(["one two three four"] * 20, 15)
    ids = pieces.encode("one two")
    times = token_times(ids, WORDS, pieces)
    spans = {word: (first, end) for word, first, end in pieces.words(ids)}
    first, end = spans["two"]
    assert times[first:end] == [(1.25, 1.5)] * (end - first) and end == len(ids)


def test_other_words_are_unknown(letters: CharacterTokenizer) -> None:
    for words in ((), WORDS[:1], WORDS[::-1]):
        times = token_times(letters.encode("one two"), words, letters)
        assert len(times) == 7 and all(math.isnan(t) for pair in times for t in pair)


def test_batch(letters: CharacterTokenizer) -> None:
    waves, lengths = pad([torch.ones(3), torch.ones(0), torch.ones(5)])
    assert waves.tolist()[0] == [1, 1, 1, 0, 0] and lengths.tolist() == [3, 0, 5]
    made = batch("abc", waves, lengths, ["one two", "", "x"], [WORDS, (), ()], letters)
    assert made.ids == ("a", "b", "c") and made.target_lengths.tolist() == [7, 0, 1]
    assert letters.decode(made.targets[0].tolist()) == "one two"
    assert made.targets[1].tolist() == [0] * 7 and made.targets.dtype == torch.long
    assert made.token_times is not None and made.token_times.shape == (3, 7, 2)
    assert made.token_times[0, 4].tolist() == [1.25, 1.5]
    assert made.token_times[2, 0].isnan().all() and not made.token_times[2, 1:].any()
    assert batch("abc", waves, lengths, ["a"] * 3, [()] * 3, letters).token_times is None
