"""python recipes/speechocean762/digits.py MANIFEST... -m BUNDLE -o pool.jsonl

The words of the utterances that consist of digits alone, each as an utterance of its own, where a
model of digits hears it: a pool that training strings of many more real voices can be made of.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import torch
from torchaudio.functional import forced_align, merge_tokens

from asr import audio
from asr.data import manifest
from asr.data.manifest import Utterance, WordTime
from asr.errors import InputError
from asr.inference import bundle
from asr.text import BLANK
from asr.text.normalise import normalise

DIGITS = {"zero", "one", "two", "three", "four", "five", "six", "seven", "eight", "nine"}
MARGIN = 0.15  # seconds of the pause beside a word that go with it, at most
SHORTEST = 0.15  # seconds: what is shorter was not found


@torch.no_grad()
def words_of(utterance: Utterance, model: bundle.Bundle) -> Iterator[Utterance]:
    """The words of one utterance of digits, as its CTC output aligns them (Graves et al. 2006).

    Between neighbours the cut is in the middle of the pause, but no further than MARGIN away.
    InputError where the sound cannot be decoded.
    """
    rate = model.model.sample_rate
    wave = audio.load(utterance.audio, rate).samples
    text = normalise(utterance.text)
    encoded = model.model.encode(wave[None], torch.tensor([len(wave)]))
    ids = model.tokenizer.encode(text)
    if encoded.lengths[0] < 2 * len(ids):
        return
    path, scores = forced_align(
        model.model.ctc_log_probs(encoded), torch.tensor([ids], dtype=torch.int32), blank=BLANK
    )
    tokens = merge_tokens(path[0], scores[0], blank=BLANK)
    shift = model.model.frame_shift
    heard = [
        (word, tokens[first].start * shift, tokens[last - 1].end * shift)
        for word, first, last in model.tokenizer.words(ids)
    ]
    duration = len(wave) / rate
    for index, (word, start, end) in enumerate(heard):
        before = heard[index - 1][2] if index else 0.0
        after = heard[index + 1][1] if index + 1 < len(heard) else duration
        first = max(start - MARGIN, (before + start) / 2)
        last = min(end + MARGIN, (end + after) / 2, duration)
        if end - start >= SHORTEST:
            yield replace(
                utterance,
                id=f"{utterance.id}-{index}",
                text=word,
                start=round(first, 3),
                end=round(last, 3),
                duration=round(last - first, 3),
                words=(WordTime(word, round(start - first, 3), round(end - first, 3)),),
            )


def main(arguments: list[str]) -> int:
    """Read, align, write; exit status 0, or 1 with a line that says what does not fit."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("manifests", nargs="+", type=Path)
    parser.add_argument("-m", "--model", type=Path, required=True, metavar="BUNDLE")
    parser.add_argument("-o", "--output", type=Path, required=True)
    told = parser.parse_args(arguments)
    try:
        model = bundle.load(told.model)
        digits = [
            utterance
            for path in told.manifests
            for utterance in manifest.read(path)
            if (words := normalise(utterance.text).split()) and DIGITS.issuperset(words)
        ]
        pool = [word for utterance in digits for word in words_of(utterance, model)]
        if not pool:
            raise InputError(f"{told.manifests[0]}: no utterance consists of digits alone")
        manifest.write(told.output, pool)
    except InputError as error:
        print("asr: error:", error, file=sys.stderr)
        return 1
    speakers = len({word.speaker for word in pool})
    print(f"{told.output}: {len(pool)} words of {len(digits)} utterances, {speakers} speakers")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
