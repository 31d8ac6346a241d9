"""The card as people read it, in a browser and in a terminal."""

from __future__ import annotations

from typing import Any

import pytest

from asr.inference.card import render

CONFIG = {
    "name": "noise",
    "language": "en",
    "normalisation": "basic",
    "versions": {"asr": "1", "torch": "2.11"},
    "model": {"sample_rate": 16000, "attention": {"name": "location_aware"}},
}


def tables(text: str) -> list[list[str]]:
    """The lines of each table."""
    blocks = [block.splitlines() for block in text.split("\n\n")]
    return [block for block in blocks if block[0].startswith("|")]


def cells(line: str) -> list[str]:
    return [cell.strip() for cell in line.strip("|").split("|")]


def test_the_card_is_rendered_for_people(saved: Any) -> None:
    text = (saved / "README.md").read_text()
    assert text.startswith("# noise\n")
    for expected in ("A model of noise.", "CC0", "location_aware", "- noise | 1 minute"):
        assert expected in text
    errors, facts = tables(text)
    assert cells(errors[0])[:2] == ["set", "WER"]
    # Not measured: blank.
    assert cells(errors[2]) == ["test", "12.50%", "1", "", "", "8"]
    assert ["hours", "0.5"] in [cells(line) for line in facts]


def test_figures_line_up() -> None:
    results = [
        {"set": "a", "wer": 0.02171, "substitutions": 46, "deletions": 1, "insertions": 1,
         "reference_words": 2210},
        {"set": "a much longer name", "wer": 1.5, "substitutions": 7, "deletions": 0,
         "insertions": 16, "reference_words": 8},
    ]  # fmt: skip
    errors, facts = tables(render({"results": results, "seed": 1, "a_long_key": 2}, CONFIG))
    for lines in (errors, facts):
        bars = [[at for at, c in enumerate(line) if c == "|"] for line in lines]
        assert all(places == bars[0] for places in bars)
    assert errors[2].startswith("| a                  |   2.17% |            46 |")
    assert errors[3].startswith("| a much longer name | 150.00% |             7 |")
    assert set(errors[1]) == set("|-: ") and errors[1].count("-:") == 5


def test_nothing_is_said_twice() -> None:
    text = render({"name": "noise", "torch": "2.11", "python": "3.12", "skipped_steps": 0}, CONFIG)
    facts = [cells(line)[0] for line in tables(text)[0]]
    assert text.count("2.11") == 1 and text.count("noise") == 1
    assert {"torch version", "python", "skipped steps"} <= set(facts)


@pytest.mark.parametrize(
    "card",
    [
        {"results": "all good", "data": {"a": 1}},
        {"results": ["good", {"wer": "low", "set": None}], "hours": [1]},
        {"summary": "\x1b[2Jgone", "x\x9by": "\x07"},
    ],
)
def test_any_json_can_be_rendered_and_steers_no_terminal(card: dict[str, Any]) -> None:
    config = {"name": "n", "language": "", "normalisation": "none", "versions": {}, "model": {}}
    text = render(card, config)
    assert all(c.isprintable() or c == "\n" for c in text)
