"""Word onsets: measured for the same words only."""

from __future__ import annotations

import pytest

from asr.evaluation.onsets import onset_errors


def test_by_hand() -> None:
    found = onset_errors(
        {
            "right": [("one", 0.1), ("two", 0.5), ("three", 1.0)],
            "wrong": [("four", 0.0)],
            "missing": [("five", 0.0)],
            "untimed": [],
        },
        {
            "right": [("one", 0.15), ("two", 0.4), ("three", 1.4)],
            "wrong": [("for", 0.0)],
            "untimed": [("six", 0.0)],
        },
    )
    assert found.median == pytest.approx(0.1)
    assert found.within == pytest.approx(2 / 3)  # exactly 100 ms off is within 100 ms
    assert (found.words, found.utterances, found.timed) == (3, 1, 3)


def test_normaliser_decides_what_is_the_same_word() -> None:
    reference, hypothesis = {"a": [("Hello,", 1.0), ("-", 1.2)]}, {"a": [("hello", 1.02)]}
    assert onset_errors(reference, hypothesis).words == 0
    found = onset_errors(reference, hypothesis, normalizer="basic")
    assert (found.words, found.within) == (1, 1.0)
    assert found.median == pytest.approx(0.02)


def test_tolerance_counts() -> None:
    pair = {"a": [("x", 0.0)]}, {"a": [("x", 0.2)]}
    assert onset_errors(*pair).within == 0.0
    assert onset_errors(*pair, tolerance=0.25).within == 1.0


def test_nothing_to_measure() -> None:
    found = onset_errors({}, {})
    assert (found.median, found.within, found.words) == (None, None, 0)
