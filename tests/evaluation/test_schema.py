"""The published schema: what is written fits it, every key is in it, and it refuses what is not."""

from __future__ import annotations

import copy
import json
from collections.abc import Iterator
from dataclasses import replace
from importlib.resources import files
from pathlib import Path
from typing import Any

import jsonschema
import pytest

from asr.cli.main import main
from asr.evaluation import Report, compare, score

from .test_scoring import HYPOTHESES, REFERENCES, SPEAKERS

SCHEMA = json.loads(files("asr.evaluation").joinpath("report.schema.json").read_text())
VALIDATOR = jsonschema.Draft202012Validator(SCHEMA)


def reports() -> Iterator[tuple[str, Report]]:
    plain = score(REFERENCES, HYPOTHESES)
    options: dict[str, Any] = {"speakers": SPEAKERS, "groups": SPEAKERS, "group_by": "speaker"}
    grouped = score(REFERENCES, HYPOTHESES, normalizer="english", aligner="sclite", **options)
    other = score(REFERENCES, {**HYPOTHESES, "u2": "I"})
    yield "plain", plain
    yield "grouped", grouped
    yield "no interval", score({"a": "x"}, {"a": "x"}, ci=None)
    yield "no words", score({"a": ""}, {"b": "x"}, allow_unknown=True)
    yield "two", replace(plain, comparison=compare(plain, other))
    yield "two, untested", replace(plain, comparison=compare(plain, other, significance=False))
    yield (
        "two, undefined",
        replace(plain, comparison=compare(score({"a": "x"}, {}), score({"a": "x"}, {"a": "x"}))),
    )


@pytest.mark.parametrize(("name", "report"), list(reports()), ids=lambda value: str(value)[:20])
def test_reports_fit(name: str, report: Report) -> None:
    VALIDATOR.validate(report.to_json())


def test_the_schema_itself_and_the_golden_report() -> None:
    VALIDATOR.check_schema(SCHEMA)
    golden = Path(__file__).parent / "golden" / "report.json"
    VALIDATOR.validate(json.loads(golden.read_text(encoding="utf-8")))


def test_every_key_is_described(tmp_path: Path) -> None:
    rows = [{"id": id, "text": text, "speaker": id} for id, text in REFERENCES.items()]
    (tmp_path / "ref").write_text("\n".join(map(json.dumps, rows)))
    words = [{"word": "I", "confidence": 0.5}]
    rows = [{"id": id, "text": text} for id, text in HYPOTHESES.items()]
    rows[1] |= {"text": "I", "words": words}
    (tmp_path / "hyp").write_text("\n".join(map(json.dumps, rows)))
    flags = ["--ref", "--hyp", "--hyp2", "--json"]
    paths = [str(tmp_path / name) for name in ("ref", "hyp", "hyp", "out")]
    argv = [part for pair in zip(flags, paths, strict=True) for part in pair]
    assert main(["evaluate", *argv, "--significance", "--group", "speaker"]) == 0
    found = json.loads((tmp_path / "out").read_text(encoding="utf-8"))
    VALIDATOR.validate(found)
    defined = SCHEMA["$defs"]
    summary = {*defined["words"]["properties"], *defined["summary"]["properties"]}
    assert found.keys() <= {*SCHEMA["properties"], *summary}
    assert found["utterances"][0].keys() <= {
        *defined["words"]["properties"], *defined["utterance"]["properties"]
    }  # fmt: skip
    assert found["comparison"].keys() == defined["comparison"]["properties"].keys()
    assert "calibration" in found


@pytest.mark.parametrize(
    ("path", "value"),
    [
        (("wer",), "0.5"),
        (("errors",), -1),
        (("schema",), "asr-evaluation/2"),
        (("aligner", "name"), "jiwer"),
        (("intervals", "wer", "unit"), "word"),
        (("raw", "characters", "hits"), 0.5),
        (("utterances", 0, "alignment", 0, 0), "X"),
        (("utterances", 0, "id"), 3),
        (("missing",), ["a", "a"]),
    ],
)
def test_what_does_not_fit_is_refused(path: tuple[Any, ...], value: object) -> None:
    content = copy.deepcopy(score(REFERENCES, HYPOTHESES).to_json())
    target: Any = content
    for key in path[:-1]:
        target = target[key]
    target[path[-1]] = value
    assert not VALIDATOR.is_valid(content)
