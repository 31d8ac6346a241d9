"""Counts against examples by hand, a plain dynamic programme, and kaldialign."""

from __future__ import annotations

import random

import jiwer
import kaldialign
import pytest

from asr.evaluation.counts import Counts, Step, align, characters, words


def distance(reference: list[str], hypothesis: list[str]) -> int:
    """Levenshtein distance, row by row: independent of the library that is under test."""
    row = list(range(len(hypothesis) + 1))
    for i, a in enumerate(reference, start=1):
        previous, row[0] = row[0], i
        for j, b in enumerate(hypothesis, start=1):
            previous, row[j] = row[j], min(row[j] + 1, row[j - 1] + 1, previous + (a != b))
    return row[-1]


def random_pairs(count: int, seed: int) -> list[tuple[list[str], list[str]]]:
    generator = random.Random(seed)
    vocabulary = ["a", "b", "c", "the", "I"]
    return [
        (
            generator.choices(vocabulary, k=generator.randrange(9)),
            generator.choices(vocabulary, k=generator.randrange(9)),
        )
        for _ in range(count)
    ]


@pytest.mark.parametrize(
    ("reference", "hypothesis", "expected"),
    [
        ("the cat sat", "the cat sat", Counts(3, 0, 0, 0)),
        ("the cat sat", "the mat sat", Counts(2, 1, 0, 0)),
        ("the cat sat", "the sat", Counts(2, 0, 1, 0)),
        ("the cat sat", "the big cat sat", Counts(3, 0, 0, 1)),
        ("the cat sat", "", Counts(0, 0, 3, 0)),
        ("", "um er", Counts(0, 0, 0, 2)),
        ("", "", Counts(0, 0, 0, 0)),
        ("a b c d e f", "x b d e f g", Counts(4, 1, 1, 1)),
    ],
)
def test_by_hand(reference: str, hypothesis: str, expected: Counts) -> None:
    [aligned] = align([words(reference)], [words(hypothesis)])
    assert aligned.counts == expected
    assert expected.reference == len(reference.split())


def test_alignment_by_hand() -> None:
    [aligned] = align([words("a b c")], [words("a x c d")])
    assert aligned.steps == (
        Step("=", "a", "a"), Step("S", "b", "x"), Step("=", "c", "c"), Step("I", None, "d"),
    )  # fmt: skip


def test_errors_equal_two_independent_counts_and_alignments_spell_the_pair() -> None:
    pairs = random_pairs(400, seed=1)
    found = align([a for a, _ in pairs], [b for _, b in pairs])
    assert len(found) == 400
    for (reference, hypothesis), (counts, steps) in zip(pairs, found, strict=True):
        assert counts.errors == distance(reference, hypothesis)
        assert counts.errors == kaldialign.edit_distance(reference, hypothesis)["total"]
        assert [s.reference for s in steps if s.reference is not None] == reference
        assert [s.hypothesis for s in steps if s.hypothesis is not None] == hypothesis
        by_op = [sum(s.op == op for s in steps) for op in "=SDI"]
        assert Counts(*by_op) == counts
        assert counts.insertions - counts.deletions == len(hypothesis) - len(reference)


def test_totals_are_those_of_jiwer() -> None:
    pairs = random_pairs(100, seed=2)
    total = sum((a.counts for a in align(*map(list, zip(*pairs, strict=True)))), Counts())
    theirs = jiwer.process_words([" ".join(a) for a, _ in pairs], [" ".join(b) for _, b in pairs])
    assert total == Counts(
        theirs.hits, theirs.substitutions, theirs.deletions, theirs.insertions
    )
    assert total.rate == theirs.wer


def test_units() -> None:
    assert words(" a\tb\u00a0c\u2028 ") == ["a", "b", "c"]
    assert characters(" a  b\n") == ["a", " ", "b"]
    assert characters("") == []


def test_no_pairs_and_no_reference() -> None:
    assert align([], []) == []
    assert Counts(insertions=3).rate is None
    assert Counts(1, 1, 0, 3).rate == 2.0
    assert align([["a"]], [["a"]], steps=False)[0].steps == ()
