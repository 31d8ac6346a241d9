"""Two models on one sound: the same seconds at the same place, and figures set side by side."""

from __future__ import annotations

import pytest
import torch

from asr.inspection import page
from asr.inspection.comparison import Comparison, compare, difference
from asr.inspection.diagnostics import measure
from asr.inspection.page import Entry
from tests.html_page import Parsed
from tests.inspection.planted import SHIFT, record, rows, transcript, wave
from tests.inspection.test_page import EVIL

NAMES = ("one", "other")


def entry(start: float, end: float, *, whole: float = 10.0, **fields: object) -> Entry:
    """A piece from ``start`` to ``end`` of a recording of ``whole`` seconds."""
    frames = round((end - start) / SHIFT)
    made = record(rows((0, 5), (5, frames), frames=frames), "ab", start=start, **fields)
    return Entry(transcript(made, ("w", start + 0.1, start + 0.2), duration=whole), wave(whole))


def silent(whole: float = 10.0) -> Entry:
    nothing = transcript(record(torch.zeros(0, 1, 0)), duration=whole, text="")
    return Entry(
        type(nothing)(id="example", text="", words=(), duration=whole), wave(whole), piece=0
    )


def spans(found: list[Comparison]) -> list[tuple[float, float, int, int]]:
    return [(each.start, each.end, *map(len, each.sides)) for each in found]


@pytest.mark.parametrize(
    ("first", "second", "stretches"),
    [
        ([(0, 10)], [(0, 10)], [(0, 10, 1, 1)]),
        ([(0, 4), (4, 10)], [(0, 4), (4, 10)], [(0, 4, 1, 1), (4, 10, 1, 1)]),
        ([(0, 4), (4, 10)], [(0, 10)], [(0, 10, 2, 1)]),
        ([(0, 4), (4, 6), (6, 10)], [(0, 2), (2, 6), (6, 10)], [(0, 6, 2, 2), (6, 10, 1, 1)]),
        ([(0, 4), (4, 10)], [(0, 6), (6, 10)], [(0, 10, 2, 2)]),
    ],
)
def test_stretches_end_where_both_do(first, second, stretches) -> None:
    found = list(
        compare(NAMES, [entry(*s) for s in first], [entry(*s) for s in second], ({"a": 1}, {}))
    )
    assert spans(found) == [tuple(map(pytest.approx, each)) for each in stretches]
    assert [each.figures for each in found] == [({"a": 1}, {})] + [({}, {})] * (len(found) - 1)
    assert sum(len(each.sides[0]) for each in found) == len(first)


def test_one_heard_nothing() -> None:
    (found,) = compare(NAMES, [entry(0, 4), entry(4, 10)], [silent()], ({}, {}))
    assert spans([found]) == [(0, 10, 2, 1)]
    assert "(no words)" in found.fragment()


def test_a_side_that_lacks_a_stretch_says_so() -> None:
    found = list(compare(NAMES, [entry(0, 4), entry(4, 10)], [entry(0, 4)], ({}, {})))
    assert spans(found) == [(0, 4, 1, 1), (4, 10, 1, 0)]
    (late,) = compare(NAMES, [], [entry(0, 4)], ({}, {}))
    for lacking, label in ((found[1], "B: other"), (late, "A: one")):
        texts = [text for _, text in Parsed(page.render([lacking])).text]
        assert texts[texts.index(label) + 1] == "Nothing was heard here."


def test_all_views_have_one_axis_of_seconds() -> None:
    parsed = Parsed(
        page.render(compare(NAMES, [entry(2, 5), entry(5, 8)], [entry(2, 8)], ({}, {})))
    )
    views = parsed.data()
    assert [(v["start"], v["duration"]) for v in views] == [(2.0, 6.0)] * 3
    assert [v["offset"] for v in views] == [0.0, 3.0, 0.0]
    assert [v["words"][0][1] for v in views] == [pytest.approx(t) for t in (0.1, 3.1, 0.1)]
    assert len({v["spectrogram"] for v in views}) == 1
    for view in views:
        assert view["offset"] + view["frames"] * view["shift"] <= 6.0 + view["shift"]
    assert len(parsed.all("audio")) == 1
    labels = [text for tag, text in parsed.text if tag == "h3"]
    assert labels == ["A: one", "A: one", "B: other"]
    assert [text for tag, text in parsed.text if tag == "h2"] == ["example"]


def test_figures_stand_beside_one_another() -> None:
    one, other = entry(0, 10), entry(0, 10)
    figures = measure(one.record), {**measure(one.record), "coverage": 0.25, "entropy": 9.0}
    parsed = Parsed(page.render(compare(NAMES, [one], [other], figures)))
    assert len(parsed.all("table")) == 1
    cells = [text for tag, text in parsed.text if tag in ("td", "th")]
    at = cells.index("Heard")
    assert figures[0]["coverage"] == pytest.approx(0.052)
    assert cells[at + 1 : at + 4] == ["5%", "25%", "+20 points"]
    assert cells[cells.index("Jumps back") + 1 :][:3] == ["0", "0", "0"]
    assert "A: one" in cells and "B − A" in cells


@pytest.mark.parametrize(
    ("name", "values", "shown"),
    [
        ("coverage", (0.5, 0.62), "+12 points"),
        ("entropy", (1.5, 1.25), "−0.25 nats"),
        ("entropy", (1.0, 1.001), "0.00 nats"),
        ("backward_jumps", (0.0, 2.0), "+2"),
        ("unattended_tail", (1.0, 0.0), "−1.00 s"),
    ],
)
def test_differences_are_signed(name: str, values: tuple[float, float], shown: str) -> None:
    assert difference(name, *values) == shown


def test_whatever_the_name_it_is_only_text() -> None:
    (found,) = compare((EVIL, EVIL), [entry(0, 1)], [entry(0, 1)], ({"entropy": 1.0}, {}))
    parsed = Parsed(page.render([found]))
    assert len(parsed.all("script")) == 3 and not parsed.all("img")
    assert [text for tag, text in parsed.text if tag == "h3"] == [f"A: {EVIL}", f"B: {EVIL}"]
