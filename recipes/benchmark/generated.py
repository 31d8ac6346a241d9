"""Speech-like batches made up on the spot, as long as LibriSpeech's utterances are.

Needs nothing but torch: what is measured on them (steps, loading, memory) depends on lengths, not
on what is said.
"""

from __future__ import annotations

import random
from collections.abc import Sequence

import torch
from torch import Tensor

from asr.data.batching import batch, pad
from asr.text import Tokenizer
from asr.types import Batch, Seconds

LETTERS = "abcdefghijklmnopqrstuvwxyz"
_WORDS_A_SECOND = 2.7  # of LibriSpeech's readers


def lengths(count: int, seed: int = 0) -> list[Seconds]:
    """Durations like train-clean-100's: most of 12 to 16 s, some of 1 to 12, none over 25."""
    generator = random.Random(seed)
    return [
        round(
            generator.uniform(1.5, 12.0)
            if generator.random() < 0.27
            else min(24.5, max(12.0, generator.gauss(14.3, 1.2))),
            2,
        )
        for _ in range(count)
    ]


def text(seconds: Seconds, generator: random.Random) -> str:
    """Words of invented letters, as many as are read in that time."""
    words = max(1, round(_WORDS_A_SECOND * seconds))
    return " ".join(
        "".join(
            generator.choice(LETTERS) for _ in range(min(12, 1 + int(generator.expovariate(0.3))))
        )
        for _ in range(words)
    )


def sound(seconds: Seconds, rate: int, seed: int) -> Tensor:
    """(L,): noise that swells and fades about as often as syllables do."""
    generator = torch.Generator().manual_seed(seed)
    size = round(seconds * rate)
    time = torch.arange(size) / rate
    swell = 0.55 + 0.45 * torch.sin(2 * torch.pi * 4.0 * time)
    return 0.1 * swell * torch.randn(size, generator=generator)


def batches(
    tokenizer: Tokenizer, rate: int, *, seconds: Seconds, count: int, seed: int = 0
) -> list[Batch]:
    """``count`` batches of utterances of like length, of up to ``seconds`` padded seconds each."""
    generator = random.Random(seed)
    drawn = sorted(lengths(max(200, 50 * count), seed))
    made = []
    for number in range(count):
        # Spread over all lengths, longest first: memory peaks in the first step.
        longest = drawn[-1 - number * len(drawn) // count]
        longest = min(longest, seconds)
        size = max(1, int(seconds / longest))
        durations = [longest * (1 - 0.02 * generator.random()) for _ in range(size)]
        made.append(of(durations, tokenizer, rate, generator, f"{seed}-{number}"))
    return made


def of(
    durations: Sequence[Seconds], tokenizer: Tokenizer, rate: int, generator: random.Random, id: str
) -> Batch:
    """One batch of utterances of these durations."""
    waves = [sound(seconds, rate, generator.randrange(2**31)) for seconds in durations]
    texts = [text(seconds, generator) for seconds in durations]
    ids = [f"{id}-{row}" for row in range(len(waves))]
    return batch(ids, *pad(waves), texts, [()] * len(texts), tokenizer)
