"""Counts against examples by hand, plain dynamic programmes, and kaldialign."""

from __future__ import annotations

import random
import tracemalloc

import jiwer
import kaldialign
import pytest

from asr.evaluation.aligners import describe, sclite
from asr.evaluation.counts import Counts, Step, Tally, characters, steps, words


def distance(
    reference: list[str], hypothesis: list[str], *, substitution: int = 1, gap: int = 1
) -> int:
    """Least cost of an alignment, row by row: independent of what is under test."""
    row = [gap * j for j in range(len(hypothesis) + 1)]
    for i, a in enumerate(reference, start=1):
        previous, row[0] = row[0], gap * i
        for j, b in enumerate(hypothesis, start=1):
            diagonal = previous + substitution * (a != b)
            previous, row[j] = row[j], min(row[j] + gap, row[j - 1] + gap, diagonal)
    return row[-1]


def random_pairs(count: int, seed: int, most: int = 9) -> list[tuple[list[str], list[str]]]:
    generator = random.Random(seed)
    vocabulary = ["a", "b", "c", "the", "I"]
    return [
        (
            generator.choices(vocabulary, k=generator.randrange(most)),
            generator.choices(vocabulary, k=generator.randrange(most)),
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
    assert Counts.total(Tally.of([(reference, hypothesis)]).words) == expected
    assert expected.reference == len(reference.split())


def test_alignment_by_hand() -> None:
    assert steps(words("a b c"), words("a x c d")) == (
        Step("=", "a", "a"), Step("S", "b", "x"), Step("=", "c", "c"), Step("I", None, "d"),
    )  # fmt: skip


def tallied(pairs: list[tuple[list[str], list[str]]], aligner: str) -> list[Counts]:
    tally = Tally.of(((" ".join(a), " ".join(b)) for a, b in pairs), aligner=aligner)
    return [Counts(*row) for row in tally.words.tolist()]


@pytest.mark.parametrize("aligner", ["levenshtein", "sclite"])
def test_alignments_spell_the_pair_and_are_what_is_counted(aligner: str) -> None:
    pairs = random_pairs(400, seed=1)
    found = tallied(pairs, aligner)
    assert len(found) == 400
    for (reference, hypothesis), counts in zip(pairs, found, strict=True):
        taken = steps(reference, hypothesis, aligner=aligner)
        assert [s.reference for s in taken if s.reference is not None] == reference
        assert [s.hypothesis for s in taken if s.hypothesis is not None] == hypothesis
        assert all((s.op == "=") == (s.reference == s.hypothesis) for s in taken)
        assert Counts(*(sum(s.op == op for s in taken) for op in "=SDI")) == counts


def test_errors_equal_two_independent_counts() -> None:
    pairs = random_pairs(400, seed=1)
    for (reference, hypothesis), counts in zip(pairs, tallied(pairs, "levenshtein"), strict=True):
        assert counts.errors == distance(reference, hypothesis)
        assert counts.errors == kaldialign.edit_distance(reference, hypothesis)["total"]


def test_the_cost_of_sclite_is_least() -> None:
    pairs = random_pairs(200, seed=3, most=40)
    differ = 0
    for (reference, hypothesis), counts in zip(pairs, tallied(pairs, "sclite"), strict=True):
        cost = 4 * counts.substitutions + 3 * (counts.deletions + counts.insertions)
        assert cost == distance(reference, hypothesis, substitution=4, gap=3)
        differ += counts.errors != distance(reference, hypothesis)
    assert differ  # the two aligners are two


def test_sclite_prefers_a_substitution_then_an_insertion() -> None:
    """Three substitutions cost what two insertions and two deletions do."""
    assert [op for op, *_ in sclite("abc", "yza")] == ["S", "S", "S"]
    assert [op for op, *_ in sclite("ab", "bc")] == ["D", "I"]


def test_characters_and_repeats() -> None:
    tally = Tally.of([("a b", "a c"), ("", "x")])
    assert tally.characters.tolist() == [[2, 1, 0, 0], [0, 0, 0, 1]]
    tally.repeat(tally)
    assert len(tally) == 3
    assert tally.words.tolist() == [[1, 1, 0, 0], [0, 0, 0, 1], [0, 0, 0, 1]]


def test_totals_are_those_of_jiwer() -> None:
    pairs = random_pairs(100, seed=2)
    total = sum(tallied(pairs, "levenshtein"), Counts())
    theirs = jiwer.process_words([" ".join(a) for a, _ in pairs], [" ".join(b) for _, b in pairs])
    assert total == Counts(theirs.hits, theirs.substitutions, theirs.deletions, theirs.insertions)
    assert total.rate == theirs.wer


def test_memory_is_that_of_the_counts() -> None:
    """Texts and alignments of a stream are not kept."""
    count = 20_000
    tracemalloc.start()
    tally = Tally.of((f"the cat sat on mat {i}", f"the cat sat mat {i} b") for i in range(count))
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert len(tally) == count
    assert peak < 60 * count  # eight numbers of four bytes, and room to grow


def test_aligners_are_described() -> None:
    assert describe("levenshtein")["library"].startswith("rapidfuzz ")
    assert describe("sclite")["costs"] == "S 4, D 3, I 3"
    with pytest.raises(ValueError, match="levenshtein, sclite, not 'kaldi'"):
        describe("kaldi")


def test_units() -> None:
    assert words(" a\tb\u00a0c\u2028 ") == ["a", "b", "c"]
    assert characters(" a  b\n") == "a b"
    assert characters("") == ""


def test_no_pairs_and_no_reference() -> None:
    assert Counts.total(Tally.of([]).words) == Counts()
    assert Counts(insertions=3).rate is None
    assert Counts(1, 1, 0, 3).rate == 2.0
