"""Calibration against plain loops, closed forms and hand-made cases."""

from __future__ import annotations

import json
import math
import random

import pytest

from asr.errors import InputError
from asr.evaluation import Step, score
from asr.evaluation.calibration import FLOOR, Calibration, collect, measure, pairs

Pairs = list[tuple[float, bool]]


def drawn(seed: int, n: int, levels: int) -> Pairs:
    """Confidences on few levels, so that there are many ties."""
    generator = random.Random(seed)
    made = []
    for _ in range(n):
        confidence = generator.randrange(levels + 1) / levels
        made.append((confidence, generator.random() < 0.3 + 0.6 * confidence))
    return made


def auc_by_pairs(given: Pairs) -> float:
    right = [c for c, correct in given if correct]
    wrong = [c for c, correct in given if not correct]
    wins = sum((w < r) + 0.5 * (w == r) for w in wrong for r in right)
    return wins / (len(wrong) * len(right))


@pytest.mark.parametrize(("seed", "n", "levels"), [(0, 40, 4), (1, 300, 10), (2, 400, 10**6)])
def test_auc_is_the_share_of_pairs_in_order(seed: int, n: int, levels: int) -> None:
    given = drawn(seed, n, levels)
    found = measure(given)
    assert found.auc == pytest.approx(auc_by_pairs(given), abs=1e-12)
    assert measure(given[::-1]).auc == pytest.approx(found.auc, abs=1e-12)


def test_roc_rises_from_corner_to_corner_and_encloses_the_area() -> None:
    found = measure(drawn(3, 5000, 10**6))
    assert found.roc[0] == (0.0, 0.0) and found.roc[-1] == (1.0, 1.0)
    assert len(found.roc) <= 101
    steps = list(zip(found.roc, found.roc[1:], strict=False))
    assert all(a[0] <= b[0] and a[1] <= b[1] for a, b in steps)
    area = sum((b[0] - a[0]) * (a[1] + b[1]) / 2 for a, b in steps)
    assert area == pytest.approx(found.auc, abs=0.005)


def test_detection_at_its_extremes() -> None:
    assert measure([(0.1, False), (0.2, False), (0.9, True)]).auc == 1
    assert measure([(0.9, False), (0.1, True)]).auc == 0
    assert measure([(0.5, False), (0.5, True), (0.5, True)]).auc == 0.5


def test_nce_of_the_base_rate_is_zero_and_of_an_oracle_one() -> None:
    outcomes = [True] * 7 + [False] * 3
    assert measure([(0.7, o) for o in outcomes]).nce == pytest.approx(0, abs=1e-12)
    assert measure([(float(o), o) for o in outcomes]).nce == 1
    assert (measure([(0.3, o) for o in outcomes]).nce or 0) < 0


def test_nce_as_the_formula_reads() -> None:
    given = [(0.9, True), (0.6, True), (0.2, False), (0.7, False)]
    most = 4  # bits: two right, two wrong
    happened = math.log2(0.9) + math.log2(0.6) + math.log2(0.8) + math.log2(0.3)
    assert measure(given).nce == pytest.approx((most + happened) / most)


def test_one_certain_error_costs_much_but_not_everything() -> None:
    nce = measure([(1.0, True), (1.0, False)]).nce
    assert nce == pytest.approx((2 + math.log2(FLOOR)) / 2)


def test_ece_by_hand() -> None:
    # Two bins: [0, 0.5) holds 0.2 and 0.4 (mean 0.3, accuracy 0.5), the other 0.5 and 1.0.
    given = [(0.2, True), (0.4, False), (0.5, True), (1.0, True)]
    found = measure(given, bins=2)
    assert found.ece == pytest.approx((2 * 0.2 + 2 * 0.25) / 4)
    assert [(b.low, b.high, b.words) for b in found.bins] == [(0, 0.5, 2), (0.5, 1, 2)]
    assert found.bins[0].confidence == pytest.approx(0.3) and found.bins[0].accuracy == 0.5


def test_ece_against_a_plain_loop() -> None:
    given = drawn(5, 500, 1000)
    expected = 0.0
    for index in range(10):
        inside = [p for p in given if min(int(p[0] * 10), 9) == index]
        if inside:
            confidence = sum(c for c, _ in inside) / len(inside)
            accuracy = sum(o for _, o in inside) / len(inside)
            expected += len(inside) / len(given) * abs(confidence - accuracy)
    found = measure(given)
    assert found.ece == pytest.approx(expected)
    assert sum(b.words for b in found.bins) == found.words == 500


@pytest.mark.parametrize("given", [[], [(0.5, True)], [(0.5, False), (0.1, False)]])
def test_what_is_not_defined_is_none(given: Pairs) -> None:
    found = measure(given)
    assert found.nce is None and found.auc is None and found.roc == ()
    assert (found.ece is None) == (not given)
    json.dumps(found.to_json(), allow_nan=False)


def test_json_has_all_of_it() -> None:
    content = json.loads(json.dumps(measure(drawn(0, 50, 5)).to_json(), allow_nan=False))
    assert set(content) == {"words", "correct", "accuracy", "nce", "auc", "ece", "bins", "roc"}
    assert content["accuracy"] == content["correct"] / 50
    assert set(content["bins"][0]) == {"low", "high", "words", "confidence", "accuracy"}


def test_a_confidence_that_is_no_number() -> None:
    with pytest.raises(InputError, match="must be a number from 0 to 1, not '0.9'"):
        collect(score({"u": "b"}, {"u": "b"}), {"u": [("b", "0.9")]})  # type: ignore[list-item]


@pytest.mark.parametrize("bad", [-0.1, 1.01, float("nan"), float("inf")])
def test_confidences_out_of_range(bad: float) -> None:
    with pytest.raises(ValueError, match=r"\[0, 1\]"):
        measure([(0.5, True), (bad, False)])
    with pytest.raises(InputError, match="'u'.*'b'.*from 0 to 1"):
        collect(score({"u": "b"}, {"u": "b"}), {"u": [("b", bad)]})


def test_bins_out_of_range() -> None:
    with pytest.raises(ValueError, match="bins"):
        measure([(0.5, True)], bins=0)


def test_pairs_of_an_alignment() -> None:
    alignment = [
        Step("=", "a", "a"), Step("S", "b", "x"), Step("D", "c", None), Step("I", None, "d"),
    ]  # fmt: skip
    assert pairs(alignment, [0.9, 0.2, 0.1]) == [(0.9, True), (0.2, False), (0.1, False)]
    with pytest.raises(ValueError, match="3 words recognised, not 2"):
        pairs(alignment, [0.9, 0.2])


def test_words_hand_their_confidence_to_what_they_become() -> None:
    report = score(
        {"u": "well known", "v": "yes", "w": "a"},
        {"u": "Well-known -", "v": "YES!", "w": "a"},
        normalizer="basic",
    )
    found = collect(report, {"u": [("Well-known", 0.8), ("-", 0.1)], "v": [("YES!", 0.6)]})
    assert found.confidences == {"u": [0.8, 0.8], "v": [0.6]}
    assert found.pairs == [(0.8, True), (0.8, True), (0.6, True)]
    assert found.skipped == ()


def test_where_words_merge_the_utterance_is_skipped() -> None:
    report = score({"u": "25", "v": "x"}, {"u": "twenty five", "v": "x"}, normalizer="english")
    found = collect(report, {"u": [("twenty", 0.9), ("five", 0.8)], "v": [("x", 0.7)]})
    assert found.skipped == ("u",) and found.pairs == [(0.7, True)]


def test_missing_hypotheses_have_no_words() -> None:
    found = collect(score({"u": "a b"}, {}), {"u": []})
    assert found.pairs == [] and isinstance(measure(found.pairs), Calibration)
