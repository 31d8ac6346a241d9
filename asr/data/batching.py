"""Sounds and texts -> a padded :class:`asr.types.Batch`."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import torch
from torch import Tensor

from asr.data.manifest import WordTime
from asr.text import Tokenizer
from asr.types import Batch, Seconds

_UNKNOWN = (math.nan, math.nan)


def pad(waves: Sequence[Tensor]) -> tuple[Tensor, Tensor]:
    """Sounds (L,) each -> (B,L) padded with zeros, and their lengths (B,)."""
    lengths = torch.tensor([len(wave) for wave in waves])
    padded = torch.zeros(len(waves), int(lengths.max()))
    for row, wave in zip(padded, waves, strict=True):
        row[: len(wave)] = wave
    return padded, lengths


def batch(
    ids: Sequence[str],
    waves: Tensor,
    wave_lengths: Tensor,
    texts: Sequence[str],
    words: Sequence[Sequence[WordTime]],
    tokenizer: Tokenizer,
) -> Batch:
    """Put sounds (B,L), lengths (B,), normalised texts and true word times together.

    ``token_times`` is None where no utterance has ``words``; see :func:`token_times` for what
    stands where some are unknown. Its padding is 0.
    """
    tokens = [tokenizer.encode(text) for text in texts]
    lengths = torch.tensor([len(row) for row in tokens])
    targets = torch.zeros(len(tokens), int(lengths.max()), dtype=torch.long)
    for row, values in zip(targets, tokens, strict=True):
        row[: len(values)] = torch.tensor(values, dtype=torch.long)
    times = None
    if any(words):
        times = torch.zeros(*targets.shape, 2)
        for table, values, known in zip(times, tokens, words, strict=True):
            if values:
                table[: len(values)] = torch.tensor(token_times(values, known, tokenizer))
    return Batch(tuple(ids), waves, wave_lengths, targets, lengths, tuple(texts), times)


def as_is(made: Any) -> Batch:
    """``collate_fn`` of loaders whose items are whole batches: torch's own makes tuples lists."""
    return made


def token_times(
    tokens: Sequence[int], words: Sequence[WordTime], tokenizer: Tokenizer
) -> list[tuple[Seconds, Seconds]]:
    """Where each token's word starts and ends; a space has the pause between its neighbours.

    NaN where that is not known: no ``words``, or not the words of the tokens.
    """
    spans = tokenizer.words(list(tokens))
    if [word for word, _, _ in spans] != [word.word for word in words]:
        return [_UNKNOWN] * len(tokens)
    times = [_UNKNOWN] * len(tokens)
    for index, ((_, first, last), word) in enumerate(zip(spans, words, strict=True)):
        times[first:last] = [(word.start, word.end)] * (last - first)
        if index + 1 < len(spans):
            after = spans[index + 1][1]
            times[last:after] = [(word.end, words[index + 1].start)] * (after - last)
    return times
