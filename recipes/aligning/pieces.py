"""python recipes/aligning/pieces.py MANIFEST... -o DIR [--longest 3]

Utterances with word times (align.py), cut into short pieces where the speakers pause: a model that
begins with short ones learns to listen sooner. Writes DIR/pieces.jsonl and the sound in DIR/pieces.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator, Sequence
from functools import partial
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[2]))  # it runs as a script, and as a module

from asr.cli.main import Parser, run
from asr.data import manifest
from asr.data.manifest import Utterance
from asr.errors import InputError
from asr.types import Seconds
from recipes.aligning.cutting import between, cut, gaps, other_than

LONG = 0.02  # seconds of a pause that a second more of a piece is worth


def pieces(utterance: Utterance, longest: Seconds) -> Iterator[tuple[int, int, Seconds, Seconds]]:
    """Words from first to last (excluded), from a start to an end, one piece after another.

    Of all pieces of at most ``longest`` seconds that begin where the last one ended, the one with
    the longest pause after it; a single word may be longer. Cuts are in the middle of pauses.
    """
    around = gaps(utterance)
    first, start = 0, 0.0
    while first < len(utterance.words):
        found: list[tuple[float, int, Seconds]] = []
        for last in range(first + 1, len(around)):
            at_end = last == len(around) - 1
            begin, finish = around[last]
            end = finish if at_end else (begin + finish) / 2
            if found and end - start > longest:
                break
            pause = float("inf") if at_end else finish - begin
            found.append((pause + LONG * (end - start), last, end))
        _, last, end = max(found)
        yield first, last, start, end
        first, start = last, end


def main(argv: Sequence[str] | None = None) -> int:
    """Read, cut, write; the exit status."""
    parser = Parser(description=(__doc__ or "").split("\n")[2])
    parser.add_argument("manifests", nargs="+", type=Path, help="utterances with word times")
    parser.add_argument("-o", "--output", type=Path, required=True, metavar="DIR")
    parser.add_argument(
        "--longest", type=between(0.5, 60, float), default=3.0, metavar="S", help="default: 3 s"
    )
    parser.add_argument(
        "--rate", type=between(4000, 192000, int), default=16000, metavar="HZ",
        help="default: 16000",
    )  # fmt: skip

    def work() -> int:
        args = parser.parse_args(argv)
        written = other_than(args.manifests, args.output / "pieces.jsonl")
        known = [u for path in args.manifests for u in manifest.read(path) if u.words]
        if not known:
            raise InputError(f"{args.manifests[0]}: no word times; align.py finds them")
        parts = partial(pieces, longest=args.longest)
        found = cut(known, parts, args.output / "pieces", args.rate)
        manifest.write(written, found)
        hours = sum(piece.duration for piece in found) / 3600
        print(f"{written}: {len(found)} pieces, {hours:.2f} hours")
        return 0

    return run(work)


if __name__ == "__main__":
    sys.exit(main())
