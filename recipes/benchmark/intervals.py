"""Measure by simulation what the intervals and the matched-pair test deliver.

    python recipes/benchmark/intervals.py [--experiments 4000]

One JSON line each. *Coverage*: experiments of a known word error rate, with speakers that differ
in difficulty and in how much they said; the share of 95 % intervals that contain the true rate, by
number of speakers. *Paired*: the same for the interval of the difference between two systems that
share their speakers' difficulty. *False alarms*: two systems equally good, with errors drawn for
each word of texts that are aligned as always; the share of matched-pair tests with p below 0.05.
The true values are those of the distributions drawn from, not of any sample.
"""

from __future__ import annotations

import argparse
import json
import random
from collections.abc import Iterator

import numpy as np
from numpy.typing import NDArray

from asr.evaluation.aligners import levenshtein
from asr.evaluation.bootstrap import intervals
from asr.evaluation.significance import matched_pairs, paired_bootstrap, segments

SPEAKERS = (5, 12, 20, 30, 50, 100, 200)
RATE = 0.1


def experiment(
    generator: np.random.Generator, speakers: int
) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Errors (speakers,2) of two systems and words (speakers,), 20 utterances of about 18 words.

    Difficulty is Beta(2,18): mean 0.1, deviation 0.065; the second system's is its own, drawn
    around the first's. Words do not depend on difficulty, so that the true pooled rate is the mean.
    """
    words = generator.poisson(18 * 20, speakers)
    shared = generator.beta(2, 18, speakers)
    errors = [
        generator.binomial(words, np.clip(shared * factor, 0, 1))
        for factor in generator.uniform(0.8, 1.2, (2, speakers))
    ]
    return np.stack(errors, axis=1), words


def coverage(speakers: int, experiments: int, replicates: int) -> tuple[float, float]:
    """Shares of experiments whose interval holds the true rate, and the true difference (0)."""
    generator = np.random.default_rng(speakers)
    held = paired = 0
    for seed in range(experiments):
        errors, words = experiment(generator, speakers)
        [found] = intervals(
            errors[:, :1], words[:, None], unit="speaker", replicates=replicates, seed=seed
        )
        difference, _ = paired_bootstrap(errors, words, None, replicates=replicates, seed=seed)
        assert found is not None and difference is not None
        held += found.low <= RATE <= found.high
        paired += difference.low <= 0 <= difference.high
    return held / experiments, paired / experiments


def spoiled(generator: random.Random, words: list[str], rate: float) -> Iterator[str]:
    for word in words:
        draw = generator.random() / rate
        if draw >= 0.2:
            yield word if draw >= 0.8 else f"{word}?"
        if 0.8 <= draw < 1:
            yield f"{word}!"


def false_alarms(experiments: int, utterances: int = 100) -> float:
    """Share of tests at 5 % that tell two systems of the same rate apart.

    An utterance is as hard for both, so that their errors lie in the same utterances.
    """
    generator = random.Random(0)
    alarms = 0
    for _ in range(experiments):
        errors: list[tuple[int, int]] = []
        for _ in range(utterances):
            said = [f"w{generator.randrange(2000)}" for _ in range(generator.randrange(5, 30))]
            rate = generator.betavariate(2, 18)
            first, second = (levenshtein(said, list(spoiled(generator, said, rate))) for _ in "12")
            errors += segments(first, second)
        p = matched_pairs(errors).p
        alarms += p is not None and p < 0.05
    return alarms / experiments


def show(metric: str, value: float, **more: int) -> None:
    line = {"name": "asr", "metric": metric, "value": round(value, 4), "unit": "share"} | more
    print(json.dumps(line), flush=True)


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n")[0])
    parser.add_argument("--experiments", type=int, default=4000)
    parser.add_argument("--replicates", type=int, default=1000)
    args = parser.parse_args()
    common = {"experiments": args.experiments}
    for speakers in SPEAKERS:
        rate, difference = coverage(speakers, args.experiments, args.replicates)
        more = {"speakers": speakers, "replicates": args.replicates, **common}
        show("coverage_wer_95", rate, **more)
        show("coverage_difference_95", difference, **more)
    show("matched_pairs_false_alarms_5", false_alarms(args.experiments), utterances=100, **common)


if __name__ == "__main__":
    main()
