"""Time scoring beside other tools on the same pairs, in turn, one JSON line a measurement.

    python recipes/benchmark/score.py [--pairs 2620] [--repeats 9] [--million]

The pairs are made as long as LibriSpeech test-clean's are (20 words in the mean) with 8 % of words
wrong, from a fixed seed. jiwer, kaldialign and SpeechBrain are timed where they are installed; each
gets the texts as it wants them, is called as its documentation says, and has to find the same
number of errors. `ratio` is the median over rounds of this product's time over the other's.

Ours is timed twice: `asr_counts` finds S, D and I of words and characters; `asr_score` is the whole
`score()` without intervals - matching by id, words and characters, raw and normalised.
"""

from __future__ import annotations

import argparse
import importlib.util
import json
import platform
import random
import resource
import statistics
import time
from collections.abc import Callable, Iterator
from typing import Any

from asr.evaluation import score
from asr.evaluation.bootstrap import intervals
from asr.evaluation.counts import Tally

Scorer = Callable[[], int]  # gives the number of word errors


def pairs(count: int, seed: int = 3) -> Iterator[tuple[str, str]]:
    """(reference, hypothesis), words drawn from 5,000 of which the first are the most frequent."""
    generator = random.Random(seed)
    vocabulary = [f"w{index}" for index in range(5000)]
    for _ in range(count):
        length = max(3, round(generator.gauss(20, 7)))
        said = [vocabulary[min(4999, int(generator.expovariate(1 / 400)))] for _ in range(length)]
        heard: list[str] = []
        for word in said:
            draw = generator.random()
            if draw >= 0.02:
                heard.append(generator.choice(vocabulary) if draw < 0.07 else word)
            if draw > 0.985:
                heard.append(generator.choice(vocabulary))
        yield " ".join(said), " ".join(heard)


def scorers(said: list[str], heard: list[str]) -> dict[str, Scorer]:
    """Every tool that is installed, ours first."""
    references = {f"u{index}": text for index, text in enumerate(said)}
    hypotheses = {f"u{index}": text for index, text in enumerate(heard)}
    found: dict[str, Scorer] = {
        "asr_score": lambda: score(references, hypotheses, ci=None).summary.words.errors,
        "asr_counts": lambda: int(Tally.of(zip(said, heard, strict=True)).words[:, 1:].sum()),
    }
    if installed("kaldialign"):
        import kaldialign

        found["kaldialign"] = lambda: sum(
            kaldialign.edit_distance(a.split(), b.split())["total"]
            for a, b in zip(said, heard, strict=True)
        )
    if installed("jiwer"):
        import jiwer

        def with_jiwer() -> int:
            output = jiwer.process_words(said, heard)
            return output.substitutions + output.deletions + output.insertions

        found["jiwer"] = with_jiwer
    if installed("speechbrain"):
        from speechbrain.utils.metric_stats import ErrorRateStats

        def with_speechbrain() -> int:
            stats = ErrorRateStats()
            stats.append(
                list(references), [text.split() for text in heard], [text.split() for text in said]
            )
            summary = stats.summarize()
            return int(summary["insertions"] + summary["deletions"] + summary["substitutions"])

        found["speechbrain"] = with_speechbrain
    return found


def installed(name: str) -> bool:
    return importlib.util.find_spec(name) is not None


def interleaved(scorers: dict[str, Scorer], repeats: int) -> dict[str, list[float]]:
    """Seconds of each in each round; the first round is thrown away."""
    times: dict[str, list[float]] = {name: [] for name in scorers}
    errors = {name: call() for name, call in scorers.items()}
    if len(set(errors.values())) != 1:
        raise SystemExit(f"the tools do not agree on the number of errors: {errors}")
    for _ in range(repeats):
        for name, call in scorers.items():
            start = time.perf_counter()
            call()
            times[name].append(time.perf_counter() - start)
    return times


def show(name: str, metric: str, value: float, unit: str, **more: Any) -> None:
    line = {"name": name, "metric": metric, "value": round(value, 4), "unit": unit} | more
    print(json.dumps(line), flush=True)


def bootstrapped(said: list[str], heard: list[str], repeats: int) -> float:
    """Median seconds of 1,000 bootstrap samples over utterances."""
    words = Tally.of(zip(said, heard, strict=True)).words
    errors, lengths = words[:, 1:].sum(axis=1)[:, None], words[:, :3].sum(axis=1)[:, None]
    times = []
    for seed in range(repeats):
        start = time.perf_counter()
        intervals(errors, lengths, unit="utterance", replicates=1000, seed=seed)
        times.append(time.perf_counter() - start)
    return statistics.median(times)


def million() -> None:
    """Counts of a million pairs as they come, none of them kept."""
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    start = time.perf_counter()
    tally = Tally.of(pairs(1_000_000))
    seconds = time.perf_counter() - start
    grown = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before
    show("asr_counts", "million_pairs_s", seconds, "s", errors=int(tally.words[:, 1:].sum()),
         note="making the pairs included")  # fmt: skip
    show("asr_counts", "million_pairs_memory", grown / 1024, "MiB")


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n")[0])
    parser.add_argument("--pairs", type=int, default=2620)
    parser.add_argument("--repeats", type=int, default=9)
    parser.add_argument("--million", action="store_true", help="a million pairs too (a minute)")
    args = parser.parse_args()
    if args.million:  # first, for memory that was used once stays
        million()
    said, heard = map(list, zip(*pairs(args.pairs), strict=True))
    machine = {"pairs": args.pairs, "repeats": args.repeats, "python": platform.python_version()}
    times = interleaved(scorers(said, heard), args.repeats)
    metric = f"wer_{args.pairs}_pairs"
    for name, seconds in times.items():
        show(name, metric, 1000 * statistics.median(seconds), "ms", **machine)
    ours_of = ("asr_score", "asr_counts")
    for ours in ours_of:
        for name in (name for name in times if name not in ours_of):
            ratios = [a / b for a, b in zip(times[ours], times[name], strict=True)]
            show(f"{ours}/{name}", metric, statistics.median(ratios), "ratio", **machine)
    show("asr", "bootstrap_1000", bootstrapped(said, heard, args.repeats), "s", **machine)


if __name__ == "__main__":
    main()
