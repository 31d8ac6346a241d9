"""The JSON against a golden file, and the plain table."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest

from asr.errors import InputError
from asr.evaluation import OnsetReport, Report, score
from asr.evaluation.table import render

from .test_scoring import HYPOTHESES, REFERENCES, SPEAKERS

GOLDEN = Path(__file__).parent / "golden"
ABOUT = {"references": {"path": "r.jsonl", "format": "jsonl"}}


@pytest.fixture(scope="module")
def report() -> Report:
    return score(
        REFERENCES,
        {**HYPOTHESES, "stray": "x"},
        normalizer="basic",
        speakers=SPEAKERS,
        groups=SPEAKERS,
        group_by="speaker",
        replicates=200,
        seed=5,
        allow_unknown=True,
    )


def without_versions(text: str) -> dict[str, object]:
    content = json.loads(text)
    for name in ("aligner", "versions"):
        content[name] = sorted(content[name])
    return content  # type: ignore[no-any-return]


def test_json_equals_the_golden_file(report: Report, tmp_path: Path) -> None:
    """Checked by hand, but for the percentiles; after a wanted change: save() over it, and read."""
    report.save(tmp_path / "report.json", **ABOUT)
    found = without_versions((tmp_path / "report.json").read_text(encoding="utf-8"))
    golden = without_versions((GOLDEN / "report.json").read_text(encoding="utf-8"))
    assert list(found) == list(golden)
    # How a random generator turns a seed into draws is numpy's to change; the rest is ours.
    for kind in ("wer", "cer", "ser"):
        ours, theirs = found["intervals"][kind], golden["intervals"][kind]  # type: ignore[index]
        for end in ("low", "high"):
            assert ours.pop(end) == pytest.approx(theirs.pop(end), abs=0.05)
    assert found == golden


def test_json_is_what_the_report_holds(report: Report) -> None:
    content = report.to_json()
    for key in ("wer", "cer", "ser", "substitutions", "deletions", "insertions", "reference_words"):
        assert content[key] == getattr(report, key)
    assert sum(u["errors"] for u in content["utterances"]) == content["errors"]
    assert content["wer"] == content["errors"] / content["reference_words"]


def test_saving_is_whole_or_not_at_all(report: Report, tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="wer"):
        report.save(tmp_path / "x.json", wer=0.0)
    with pytest.raises(InputError, match=r"nowhere/x\.json"):
        report.save(tmp_path / "nowhere" / "x.json")
    assert not list(tmp_path.iterdir())
    report.save(tmp_path / "x.json")
    report.save(tmp_path / "x.json", more={"a": 1})
    assert [path.name for path in tmp_path.iterdir()] == ["x.json"]
    assert json.loads((tmp_path / "x.json").read_text())["more"] == {"a": 1}


def test_saving_to_what_is_no_file(report: Report) -> None:
    report.save("/dev/null")
    assert Path("/dev/null").is_char_device()


def test_table(report: Report) -> None:
    text = render(report)
    lines = text.splitlines()
    assert [" ".join(line.split()) for line in lines[:3]] == [
        "WER % errors S D I words SER % utterances",
        "basic, version 1 58.33 7 1 3 3 12 83.33 6",
        "raw 75.00 9 3 3 3 12 100.00 6",
    ]
    assert "WER 95 % interval" in text
    assert "(bootstrap over 4 speakers, 200 samples, seed 5)" in text
    assert "without a hypothesis, counted as deleted: 1 ('u6')" in text
    assert "empty references: 1 ('u4'), 2 words inserted into them" in text
    assert "without a reference, left out: 1 ('stray')" in text
    assert "mean over groups: 57.50" in text
    assert "CER" not in text
    assert "CER %" in render(report, cer=True)
    assert text.isascii()


def test_a_library_that_normalises_is_named() -> None:
    line = render(score({"a": "x"}, {"a": "x"}, normalizer="english", ci=None)).splitlines()[1]
    assert re.match(r"english \(whisper-normalizer \d+\.\d+\.\d+\) ", line)


def test_raw_leads_when_it_is_asked_for() -> None:
    text = render(score({"a": "X"}, {"a": "x"}, ci=None))
    assert [line.split()[0] for line in text.splitlines()[1:3]] == ["raw", "basic,"]
    assert "interval" not in text
    assert "hypothesis" not in text


def test_table_without_reference_words() -> None:
    text = render(score({"a": ""}, {"a": "x"}))
    assert "-" in text.splitlines()[1].split()
    assert "interval: none" in text


def test_names_cannot_steer_the_terminal() -> None:
    text = render(score({"a\x1b[31m": "x"}, {}, groups={"a\x1b[31m": "g\x1b[2J"}))
    assert "\x1b" not in text


def test_onsets_in_words() -> None:
    report = score({"a": "x"}, {"a": "x"})
    text = render(report, onsets=OnsetReport(0.042, 0.75, 0.1, 8, 2, 3))
    assert "median error 42 ms, 75.00 % within 100 ms (8 words, 2 of 3 timed" in text
    assert "none to measure" in render(report, onsets=OnsetReport(None, None, 0.1, 0, 0, 3))
