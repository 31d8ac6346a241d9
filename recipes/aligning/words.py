"""python recipes/aligning/words.py MANIFEST... -o DIR --name NAME

The digits in sentences with word times (align.py), cut out: a pool of words by many real voices,
of which training strings can be made as of the words of FSDD. Writes DIR/pool-NAME.jsonl and the
words, equally loud, in DIR/NAME. All are by one speaker, NAME: few voices have said all ten digits.
"""

from __future__ import annotations

import argparse
import re
import sys
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path

import numpy as np

sys.path.insert(0, str(Path(__file__).parents[2]))  # it runs as a script, and as a module

from asr.cli.main import Parser, run
from asr.data import manifest
from asr.data.manifest import Utterance
from asr.errors import InputError
from asr.types import Seconds
from recipes.aligning.cutting import Sound, between, cut, gaps, other_than

DIGITS = ("zero", "one", "two", "three", "four", "five", "six", "seven", "eight", "nine")
MARGIN = 0.12  # seconds of a pause beside a word that go with it, at most
EDGE = 0.01  # seconds of a neighbour that go with it: alignments are not exact
FADE = 0.012  # seconds
LOUDNESS = 0.08  # root mean square
LETTER = 0.06  # seconds a letter: words spoken faster than that cannot be spelled frame by frame
LONGEST = 1.2  # seconds: what is longer was not found


def digits(utterance: Utterance) -> Iterator[tuple[int, int, Seconds, Seconds]]:
    """The digits that are neither too short nor too long, with what silence is around them."""
    around = gaps(utterance)
    for index, word in enumerate(utterance.words):
        if (
            word.word in DIGITS
            and LETTER * len(word.word) <= round(word.end - word.start, 6) <= LONGEST
        ):
            before, after = (end - start for start, end in around[index : index + 2])
            start = word.start - min(MARGIN, EDGE + before / 2)
            end = word.end + min(MARGIN, EDGE + after / 2)
            yield index, index + 1, max(0.0, start), min(utterance.duration, end)


def shaped(samples: Sound, rate: int) -> Sound:
    """Faded in and out, and as loud as all others."""
    ramp = np.sin(np.linspace(0, np.pi / 2, round(FADE * rate), dtype=np.float32)) ** 2
    samples[: len(ramp)] *= ramp
    samples[-len(ramp) :] *= ramp[::-1]
    return samples * (LOUDNESS / max(1e-9, float(np.sqrt(np.mean(np.square(samples))))))


def plain(name: str) -> str:
    """For an option: a name that is nothing but a name."""
    if not re.fullmatch(r"\w[\w.-]{0,99}", name):
        raise argparse.ArgumentTypeError(f"{name!r}: letters, digits, '-' and '.' are expected")
    return name


def main(argv: Sequence[str] | None = None) -> int:
    """Read, cut, write; the exit status."""
    parser = Parser(description=(__doc__ or "").split("\n")[2])
    parser.add_argument("manifests", nargs="+", type=Path, help="utterances with word times")
    parser.add_argument("-o", "--output", type=Path, required=True, metavar="DIR")
    parser.add_argument("--name", type=plain, required=True, help="of the pool and its one speaker")
    parser.add_argument(
        "--rate", type=between(4000, 192000, int), default=8000, metavar="HZ", help="default: 8000"
    )

    def work() -> int:
        args = parser.parse_args(argv)
        pool = other_than(args.manifests, args.output / f"pool-{args.name}.jsonl")
        utterances = [u for path in args.manifests for u in manifest.read(path)]
        if not any(word.word in DIGITS for u in utterances for word in u.words):
            raise InputError(f"{args.manifests[0]}: no digit with its time; align.py finds them")
        shape = partial(shaped, rate=args.rate)
        cuts = cut(utterances, digits, args.output / args.name, args.rate, shape)
        found = [replace(word, speaker=args.name) for word in cuts]
        manifest.write(pool, sorted(found, key=lambda word: word.id))
        counts = Counter(word.text for word in found)
        each = ", ".join(f"{word} {counts[word]}" for word in DIGITS)
        print(f"{pool}: {len(found)} words; {each}")
        return 0

    return run(work)


if __name__ == "__main__":
    sys.exit(main())
