"""Two systems: segments by hand and by a plain walk, tests against truth that is known."""

from __future__ import annotations

import random
import statistics

import numpy as np
import pytest

from asr.errors import InputError
from asr.evaluation import compare, score
from asr.evaluation.aligners import levenshtein
from asr.evaluation.significance import matched_pairs, paired_bootstrap, segments


def of(reference: str, first: str, second: str) -> list[tuple[int, int]]:
    said = reference.split()
    return segments(levenshtein(said, first.split()), levenshtein(said, second.split()))


@pytest.mark.parametrize(
    ("reference", "first", "second", "expected"),
    [
        ("a b c d", "a b c d", "a b c d", []),
        ("a b c d", "x b c d", "a b c x", [(1, 0), (0, 1)]),  # two right words part them
        ("a b c", "x b c", "a b x", [(1, 1)]),  # one does not
        ("a b c d e", "a x c d e", "a x c d x", [(1, 1), (0, 1)]),
        ("a b", "a b", "x y", [(0, 2)]),
        ("a b", "", "a b", [(2, 0)]),
        ("a b c d", "x b y c d", "a b c d", [(2, 0)]),  # an insertion between the two right words
        ("a b c d", "x b c y d", "a b c d", [(1, 0), (1, 0)]),
        ("a b c", "y a b c", "a b c y", [(1, 0), (0, 1)]),
        ("a b", "a b y z", "a b", [(2, 0)]),
        ("", "y", "y z", [(1, 2)]),
    ],
)
def test_segments_by_hand(
    reference: str, first: str, second: str, expected: list[tuple[int, int]]
) -> None:
    assert of(reference, first, second) == expected
    assert of(reference, second, first) == [(b, a) for a, b in expected]


def walked(said: list[str], first: list[str], second: list[str]) -> list[tuple[int, int]]:
    """The same segments, by walking over the reference a slot at a time."""
    slots = [[0, 0] for _ in range(2 * len(said) + 1)]  # gap, word, gap, word, ... gap
    for which, heard in enumerate((first, second)):
        for op, place, _ in levenshtein(said, heard):
            slots[2 * place + (op != "I")][which] += 1
    found: list[list[int]] = []
    right, open_ = 0, False
    for slot, errors in enumerate(slots):
        if any(errors):
            if not open_:
                found.append([0, 0])
            found[-1][0] += errors[0]
            found[-1][1] += errors[1]
            right, open_ = 0, True
        elif slot % 2:
            right += 1
            open_ = open_ and right < 2
    return [(a, b) for a, b in found]


def spoiled(generator: random.Random, words: list[str], rate: float) -> list[str]:
    kept = []
    for word in words:
        draw = generator.random() / rate
        if draw > 1 / 3:
            kept.append("?" if draw < 2 / 3 else word)
        if 2 / 3 < draw < 1:
            kept.append("!")
    return kept


def test_segments_of_many_random_pairs() -> None:
    generator = random.Random(5)
    count = 0
    for _ in range(500):
        said = [f"w{generator.randrange(50)}" for _ in range(generator.randrange(20))]
        first, second = spoiled(generator, said, 0.3), spoiled(generator, said, 0.3)
        found = segments(levenshtein(said, first), levenshtein(said, second))
        assert found == walked(said, first, second)
        assert sum(a for a, _ in found) == len(levenshtein(said, first))
        assert sum(b for _, b in found) == len(levenshtein(said, second))
        count += len(found)
    assert count > 1000


def test_statistic_by_hand() -> None:
    """Differences 1, 1, -1, 2: mean 0.75, deviation sqrt(4.75 / 3)."""
    found = matched_pairs([(1, 0), (2, 1), (0, 1), (2, 0)])
    assert (found.segments, found.mean) == (4, 0.75)
    assert found.deviation == pytest.approx((4.75 / 3) ** 0.5)
    assert found.z == pytest.approx(0.75 / ((4.75 / 3) ** 0.5 / 2))
    assert found.p == pytest.approx(2 * (1 - statistics.NormalDist().cdf(found.z)))
    assert "only 4 segments" in found.warning


def test_statistic_where_nothing_varies() -> None:
    none = matched_pairs([])
    assert (none.segments, none.z, none.p) == (0, 0.0, 1.0)
    assert matched_pairs([(1, 1), (2, 2)]).p == 1.0
    same = matched_pairs([(1, 0)] * 60)
    assert (same.z, same.p, same.mean) == (None, None, 1.0)
    assert "not defined" in same.warning


def systems(
    seed: int, rates: tuple[float, float], utterances: int = 200
) -> tuple[dict[str, str], dict[str, str], dict[str, str]]:
    generator = random.Random(seed)
    references, first, second = {}, {}, {}
    for index in range(utterances):
        said = [f"w{generator.randrange(300)}" for _ in range(15)]
        id = f"u{index:04d}"
        references[id] = " ".join(said)
        first[id] = " ".join(spoiled(generator, said, rates[0]))
        second[id] = " ".join(spoiled(generator, said, rates[1]))
    return references, first, second


def test_better_and_the_same() -> None:
    references, first, second = systems(1, (0.2, 0.1))
    before, after = score(references, first, ci=None), score(references, second, ci=None)
    found = compare(before, after, seed=3)
    assert found.difference == after.wer - before.wer < 0
    assert found.interval is not None and found.matched_pairs is not None
    assert found.interval.low < found.difference < found.interval.high < 0
    assert (found.improvement, found.interval.seed, found.interval.units) == (1.0, 3, 200)
    assert found.matched_pairs.p < 1e-6 and found.matched_pairs.z > 0
    turned = compare(after, before, seed=3)
    assert turned.matched_pairs.z == -found.matched_pairs.z
    assert turned.interval.low == pytest.approx(-found.interval.high)
    assert turned.improvement == 0.0
    itself = compare(before, before)
    assert (itself.difference, itself.improvement, itself.matched_pairs.p) == (0.0, 0.0, 1.0)
    short = compare(before, after, significance=False)
    assert (short.difference, short.interval, short.matched_pairs) == (found.difference, None, None)


def test_speakers_are_resampled_where_known() -> None:
    references, first, second = systems(2, (0.2, 0.15))
    speakers = {id: f"s{int(id[1:]) % 12}" for id in references}
    reports = [score(references, h, speakers=speakers, ci=None) for h in (first, second)]
    found = compare(*reports)
    assert (found.interval.unit, found.interval.units) == ("speaker", 12)
    assert any("only 12 speakers" in warning for warning in found.warnings)


def test_paired_samples_are_shared() -> None:
    """Where one system is always one error worse, every sample says so: no width at all."""
    errors = np.random.default_rng(0).integers(0, 5, 80)
    pairs = np.stack([errors, errors + 1], axis=1)
    interval, improvement = paired_bootstrap(pairs, np.full(80, 10), None)
    assert interval.low == pytest.approx(0.1) and interval.high == pytest.approx(0.1)
    assert improvement == 0.0
    assert paired_bootstrap([(1, 0)], [4], None) == (None, None)
    assert paired_bootstrap([(1, 0)] * 3, [0] * 3, None) == (None, None)


def test_false_alarms_are_as_rare_as_they_claim() -> None:
    """Systems of equal rate, independent of one another: 5 in a hundred differ at 5 %."""
    experiments = 300
    alarms = 0
    for seed in range(experiments):
        references, first, second = systems(seed, (0.15, 0.15), utterances=40)
        pairs = [
            pair for id, text in references.items() for pair in of(text, first[id], second[id])
        ]
        alarms += matched_pairs(pairs).p < 0.05
    # Three standard errors of a binomial count; docs/evaluation.md has the long run.
    assert abs(alarms / experiments - 0.05) < 3 * (0.05 * 0.95 / experiments) ** 0.5


def test_only_the_same_references_compare() -> None:
    with pytest.raises(InputError, match="different references"):
        compare(score({"a": "x"}, {}, ci=None), score({"a": "y"}, {}, ci=None))
    with pytest.raises(ValueError, match="must be the same"):
        compare(score({"a": "x"}, {}), score({"a": "x"}, {}, aligner="sclite"))
    one = score({"a": "x"}, {})
    with pytest.raises(ValueError, match="ci must lie"):
        compare(one, one, ci=1.0)
    with pytest.raises(ValueError, match="replicates must be"):
        compare(one, one, replicates=0)
    assert compare(one, one).interval is None  # one utterance alone cannot be resampled
    assert compare(score({"a": ""}, {}), score({"a": ""}, {})).difference is None
