"""Intervals against all samples there can be, and against simulated experiments."""

from __future__ import annotations

from itertools import product

import numpy as np
import pytest

from asr.evaluation.bootstrap import intervals, resampled_rates


def test_same_seed_same_interval_and_order_does_not_matter() -> None:
    generator = np.random.default_rng(0)
    errors = generator.integers(0, 4, (40, 1))
    lengths = generator.integers(4, 20, (40, 1))
    units = [f"s{i % 8}" for i in range(40)]
    [first] = intervals(errors, lengths, units, unit="speaker", seed=3)
    shuffled = generator.permutation(40)
    [second] = intervals(
        errors[shuffled], lengths[shuffled], [units[i] for i in shuffled], unit="speaker", seed=3
    )
    [other] = intervals(errors, lengths, units, unit="speaker", seed=4)
    assert first == second != other
    assert first is not None
    assert (first.units, first.unit, first.seed, first.level) == (8, "speaker", 3, 0.95)
    assert first.low < errors.sum() / lengths.sum() < first.high


def test_blocks_change_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    errors, lengths = np.arange(6).reshape(6, 1), np.full((6, 1), 7)
    whole = resampled_rates(errors, lengths, replicates=50, seed=1)
    monkeypatch.setattr("asr.evaluation.bootstrap._BLOCK", 13)
    assert np.array_equal(whole, resampled_rates(errors, lengths, replicates=50, seed=1))


def test_distribution_is_that_of_all_possible_samples() -> None:
    errors, lengths = [3, 0, 4, 1, 2], [19, 8, 9, 23, 5]
    every = np.sort(
        [
            sum(errors[i] for i in drawn) / sum(lengths[i] for i in drawn)
            for drawn in product(range(5), repeat=5)
        ]
    )
    replicates = 4000
    ours = np.sort(
        resampled_rates(
            np.array(errors)[:, None], np.array(lengths)[:, None], replicates=replicates, seed=0
        )[:, 0]
    )
    # Compared just above each step, since the two sums may round differently.
    between = np.unique(every.round(9)) + 1e-7
    exact = np.searchsorted(every, between) / len(every)
    found = np.searchsorted(ours, between) / replicates
    # Kolmogorov-Smirnov: one set of samples in a thousand would be further off.
    assert np.abs(exact - found).max() < 1.95 / replicates**0.5


def simulated(generator: np.random.Generator, speakers: int = 40) -> tuple[np.ndarray, np.ndarray]:
    """Speakers of differing difficulty, true WER 0.2, ten utterances of 12 words each."""
    difficulty = generator.beta(4, 16, speakers)
    errors = generator.binomial(12, np.repeat(difficulty, 10))
    return errors[:, None], np.full((speakers * 10, 1), 12)


@pytest.mark.parametrize("level", [0.95, 0.8])
def test_coverage_by_speaker(level: float) -> None:
    generator = np.random.default_rng(11)
    experiments = 300
    by_speaker = by_utterance = 0
    for seed in range(experiments):
        errors, lengths = simulated(generator)
        speakers = [f"s{i // 10}" for i in range(400)]
        for unit in ("speaker", "utterance"):
            names = speakers if unit == "speaker" else [str(i) for i in range(400)]
            [found] = intervals(
                errors, lengths, names, unit=unit, level=level, replicates=300, seed=seed
            )
            assert found is not None
            inside = found.low <= 0.2 <= found.high
            by_speaker += inside and unit == "speaker"
            by_utterance += inside and unit == "utterance"
    # Three standard errors of a binomial count, and the percentile method's known shortfall.
    slack = 3 * (level * (1 - level) / experiments) ** 0.5
    assert level - slack - 0.03 < by_speaker / experiments < level + slack
    # Taking utterances of one speaker for independent claims too much.
    assert by_utterance < by_speaker


def test_no_interval_where_none_can_be_had() -> None:
    assert intervals([[1]], [[4]], ["a"], unit="utterance") == [None]
    assert intervals([[1], [2]], [[0], [0]], ["a", "b"], unit="utterance") == [None]


def test_samples_without_reference_words_are_left_out() -> None:
    [found] = intervals([[1], [1]], [[0], [2]], ["a", "b"], unit="utterance")
    assert found is not None
    assert (found.low, found.high) == (0.5, 1.0)  # b twice: 2/4; a and b: 2/2; a twice: left out
