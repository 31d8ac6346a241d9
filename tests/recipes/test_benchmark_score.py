"""The scripts that measure scoring run, agree with one another, and print what they promise."""

from __future__ import annotations

import json
import statistics
import sys
from types import ModuleType

import pytest

from recipes.benchmark import intervals as simulated
from recipes.benchmark import score as timed


def lines(module: ModuleType, argv: list[str], capsys, monkeypatch) -> list[dict]:
    monkeypatch.setattr(sys, "argv", [f"{module.__name__}.py", *argv])
    module.main()
    return [json.loads(line) for line in capsys.readouterr().out.splitlines()]


def test_score(capsys, monkeypatch) -> None:
    found = lines(timed, ["--pairs", "30", "--repeats", "2"], capsys, monkeypatch)
    assert all({"name", "metric", "value", "unit"} <= line.keys() for line in found)
    names = {line["name"] for line in found}
    assert {"asr_score", "asr_counts", "jiwer", "kaldialign", "asr_score/kaldialign"} <= names
    assert all(line["value"] > 0 for line in found)


def test_pairs_are_as_long_as_they_should_be_and_always_the_same() -> None:
    made = list(timed.pairs(500))
    assert made == list(timed.pairs(500))
    assert statistics.mean(len(said.split()) for said, _ in made) == pytest.approx(20, abs=1)


def test_tools_that_disagree_are_not_timed() -> None:
    with pytest.raises(SystemExit, match="do not agree"):
        timed.interleaved({"a": lambda: 1, "b": lambda: 2}, 1)


def test_intervals(capsys, monkeypatch) -> None:
    monkeypatch.setattr(simulated, "SPEAKERS", (12, 100))
    found = lines(simulated, ["--experiments", "60", "--replicates", "200"], capsys, monkeypatch)
    few, _, many, _, alarms = [line["value"] for line in found]
    assert few <= many
    assert many > 0.85
    assert alarms < 0.15
    assert [line.get("speakers") for line in found] == [12, 12, 100, 100, None]


@pytest.mark.slow
@pytest.mark.parametrize("speakers", [100, 200])
def test_coverage_is_what_is_claimed(speakers: int) -> None:
    """95 % intervals of 100 speakers or more hold the truth in 93 to 97 % of 4,000 experiments."""
    for share in simulated.coverage(speakers, 4000, 500):
        assert 0.93 < share < 0.97


@pytest.mark.slow
def test_false_alarms_are_what_is_claimed() -> None:
    assert 0.035 < simulated.false_alarms(4000, utterances=60) < 0.065
