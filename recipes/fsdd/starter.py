"""python recipes/fsdd/starter.py runs/starter/bundle [--also score.json ...]

Puts a bundle trained with conf/starter.yaml into the package, with a card that says just what it
can and cannot hear. Each ``--also`` is a report of ``asr evaluate --json`` on a set that training
did not know of; it joins the card's results.
"""

from __future__ import annotations

import argparse
import json
from dataclasses import replace
from pathlib import Path

from asr.inference import bundle
from asr.inference.transcriber import STARTER

CARD = {
    "summary": "Spoken English digits, real and synthetic: a small model to try the commands with.",
    "hears": [
        '"zero", "one" ... "nine", one after another, in any order and number, close to the '
        "microphone, at telephone quality (8 kHz) or better",
    ],
    "cannot": [
        "any other word: whatever sounds, music and some noise too, it writes digits or parts of "
        'them, mostly with a warning of low confidence; "oh" for zero too',
        "accents and ages far from its training: five men recorded at home, free synthesisers, and "
        "digits cut out of sentences that Americans, and Chinese adults and children, have read",
        "several speakers at once, music, far microphones",
    ],
    "licence": [
        "model: Apache-2.0",
        "Free Spoken Digit Dataset: CC BY-SA 4.0",
        "LibriSpeech: CC BY 4.0",
        "speechocean762: Apache-2.0",
        "CMU Arctic prompts read by kathleen: CC0",
        "Asterisk's prompts: CC BY-SA 3.0",
        "synthetic digits: free voices of Debian, see recipes/digits/README.md",
    ],
}
NAMES = {
    "data/fsdd/test.jsonl": "FSDD, strings of 1-8 digits of takes 0-4",
    "data/fsdd/test-9-15.jsonl": "FSDD, 9-15 digits",
    "data/fsdd/test-16-25.jsonl": "FSDD, 16-25 digits",
    "data/digits/test.jsonl": "synthetic digits, held-out voices",
}


def main() -> None:
    """Read, complete the card, write; InputError says what does not fit."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("bundle", type=Path)
    parser.add_argument("--also", type=Path, action="append", default=[], metavar="JSON")
    arguments = parser.parse_args()
    trained = bundle.load(arguments.bundle)
    results = [{**one, "set": NAMES.get(one["set"], one["set"])} for one in trained.card["results"]]
    for path in arguments.also:
        results.append({"set": path.stem, **json.loads(path.read_text(encoding="utf-8"))})
    kept = ("set", "wer", "substitutions", "deletions", "insertions", "reference_words")
    bundle.save(
        STARTER,
        trained.model,
        trained.tokenizer,
        card={**trained.card, **CARD, "results": [{k: r[k] for k in kept} for r in results]},
        settings=replace(trained.settings, name="starter-digits", language="en"),
        overwrite=True,
    )
    print(STARTER)


if __name__ == "__main__":
    main()
