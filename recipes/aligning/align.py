"""python recipes/aligning/align.py MANIFEST... -o DIR

Where each word of English utterances was said. pocketsphinx, with the model it comes with, finds
that (Huggins-Daines et al. 2006); `pip install pocketsphinx` first. Writes a manifest of the same
name to DIR for each that is given: the same utterances, with their word times.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

sys.path.insert(0, str(Path(__file__).parents[2]))  # it runs as a script, and as a module

from asr import audio
from asr.cli.main import Parser, run
from asr.data import manifest
from asr.data.manifest import Utterance, WordTime
from asr.errors import InputError
from asr.text.normalise import normalise
from recipes.aligning.cutting import other_than

RATE = 16000  # Hz, of pocketsphinx's model
FRAME = 0.01  # seconds, likewise
#: a sound for each letter, for names that no dictionary has: they need only come near
SPELLED = {letter: letter.upper() for letter in "bdfgklmnprstvwyz"} | {
    "a": "AE", "c": "K", "e": "EH", "h": "HH", "i": "IH", "j": "JH", "o": "OW", "q": "K", "u": "AH",
    "x": "K",
}  # fmt: skip


class Aligner:
    """Where known words are in a recording. Raises InputError where pocketsphinx is missing."""

    def __init__(self) -> None:
        try:
            import pocketsphinx
        except ImportError:
            raise InputError("aligning needs pocketsphinx: pip install pocketsphinx") from None
        self._decoder: Any = pocketsphinx.Decoder(
            samprate=RATE, lm=None, bestpath=False, loglevel="FATAL"
        )

    def __call__(self, samples: NDArray[np.float32], words: Sequence[str]) -> tuple[WordTime, ...]:
        """When each of ``words`` is said in ``samples`` (L,) at RATE Hz; () if they do not fit."""
        if not len(samples) or not words or any(not set(word) & SPELLED.keys() for word in words):
            return ()
        decoder = self._decoder
        for word in words:
            if decoder.lookup_word(word) is None:
                sounds = [SPELLED[letter] for letter in word if letter in SPELLED]
                decoder.add_word(word, " ".join(sounds), True)
        level = 0.7 / max(1e-9, float(np.abs(samples).max()))
        decoder.set_align_text(" ".join(words))
        decoder.start_utt()
        try:
            decoder.process_raw((samples * level * 32767).astype("<i2").tobytes(), full_utt=True)
        finally:
            decoder.end_utt()
        # Fillers are <sil> and the like; another pronunciation of a word is word(2).
        heard = tuple(
            WordTime(
                part.word.split("(")[0],
                round(part.start_frame * FRAME, 2),
                round((part.end_frame + 1) * FRAME, 2),
            )
            for part in decoder.seg() or ()
            if part.word[0] not in "<["
        )
        return heard if [word.word for word in heard] == list(words) else ()


def aligned(utterance: Utterance, align: Aligner) -> Utterance:
    """The utterance with its words, normalised, or none. InputError for sound that is broken."""
    whole = audio.load(utterance.audio, RATE).samples.numpy()
    end = None if utterance.end is None else round(utterance.end * RATE)
    samples = whole[round(utterance.start * RATE) : end]
    return replace(utterance, words=align(samples, normalise(utterance.text).split()))


def main(argv: Sequence[str] | None = None) -> int:
    """Read, align, write; the exit status."""
    parser = Parser(description=(__doc__ or "").split("\n")[2])
    parser.add_argument("manifests", nargs="+", type=Path, help="utterances with their texts")
    parser.add_argument("-o", "--output", type=Path, required=True, metavar="DIR")

    def work() -> int:
        args = parser.parse_args(argv)
        align = Aligner()
        given = {
            other_than(args.manifests, args.output / path.name): manifest.read(path)
            for path in args.manifests
        }
        if len(given) < len(args.manifests):
            raise InputError(f"{args.output}: two of the manifests have the same name")
        args.output.mkdir(parents=True, exist_ok=True)
        done = {path: [aligned(u, align) for u in own] for path, own in given.items()}
        if not any(utterance.words for own in done.values() for utterance in own):
            raise InputError(f"{args.manifests[0]}: the words of no utterance fit its sound")
        for path, utterances in done.items():
            manifest.write(path, utterances)
            lost = [utterance.id for utterance in utterances if not utterance.words]
            known = len(utterances) - len(lost)
            print(f"{path}: {known} of {len(utterances)} utterances aligned")
            for id in lost:
                print(
                    f"asr: warning: {id}: not aligned: its words do not fit its sound, or are not "
                    "spelled with a to z",
                    file=sys.stderr,
                )
        return 0

    return run(work)


if __name__ == "__main__":
    sys.exit(main())
