from __future__ import annotations

import json
import os
from dataclasses import replace
from pathlib import Path

import pytest

from asr.data import manifest
from asr.data.manifest import Utterance, WordTime
from asr.errors import InputError

GOOD = {"id": "a", "audio": "x/a.wav", "duration": 1.5, "text": "one two"}


def written(folder: Path, content: str | bytes, name: str = "m.jsonl") -> Path:
    path = folder / name
    path.write_bytes(content.encode() if isinstance(content, str) else content)
    return path


def test_what_is_written_is_read(tmp_path: Path) -> None:
    words = (WordTime("one", 0.25, 0.5), WordTime("zwölf", 0.5, 1.0))
    utterances = [
        Utterance("a", tmp_path / "x" / "a b.wav", 1.5, "one zwölf", "ann", "train", words),
        Utterance("b", tmp_path / "b.wav", 0.5, "", start=2.0, end=2.5, extra={"engine": [1]}),
    ]
    manifest.write(tmp_path / "m.jsonl", utterances)
    assert manifest.read(tmp_path / "m.jsonl") == utterances
    lines = [json.loads(line) for line in (tmp_path / "m.jsonl").read_text().splitlines()]
    assert lines[0]["audio"] == "x/a b.wav"
    assert "start" not in lines[0] and lines[1]["engine"] == [1]


def test_audio_outside_is_found_from_a_linked_folder(tmp_path: Path) -> None:
    (tmp_path / "deep" / "er").mkdir(parents=True)
    (tmp_path / "link").symlink_to(tmp_path / "deep" / "er")
    sound = written(tmp_path, b"sound", "a.wav")
    manifest.write(tmp_path / "link" / "m.jsonl", [Utterance("a", sound, 1.0, "")])
    row = json.loads((tmp_path / "link" / "m.jsonl").read_text())
    assert row["audio"] == "../../a.wav"
    assert manifest.read(tmp_path / "link" / "m.jsonl")[0].audio.read_bytes() == b"sound"


def test_windows_files_blank_lines_and_odd_separators(tmp_path: Path) -> None:
    odd = json.dumps(GOOD | {"id": "b", "text": "a\u2028b"}, ensure_ascii=False)
    text = "\ufeff" + json.dumps(GOOD) + "\r\n\r\n  \r\n" + odd + "\r\n"
    assert [u.text for u in manifest.read(written(tmp_path, text))] == ["one two", "a\u2028b"]


@pytest.mark.parametrize(
    ("line", "told"),
    [
        ('{"id": "b"', "not JSON"),
        ("[1]", "JSON object is expected, not a list"),
        (json.dumps({"id": "b", "audio": "b.wav", "duration": 1}), "no 'text'"),
        (json.dumps(GOOD | {"id": None}), "no 'id'"),
        (json.dumps(GOOD | {"id": 7}), "'id' must be a string, not a number"),
        (json.dumps(GOOD | {"id": ""}), "must not be empty"),
        (json.dumps(GOOD), "'a' was there already"),
        (json.dumps(GOOD | {"id": "b", "duration": "1 s"}), "'duration' must be a number"),
        (json.dumps(GOOD | {"id": "b", "duration": -1}), "'duration' must be a number"),
        (json.dumps(GOOD | {"id": "b", "duration": float("nan")}), "'duration' must be a number"),
        (json.dumps(GOOD | {"id": "b", "duration": True}), "'duration' must be a number"),
        (json.dumps(GOOD | {"id": "b", "words": "one"}), "'words' must be a list"),
        (json.dumps(GOOD | {"id": "b", "words": ["one"]}), "each of 'words'"),
        (
            json.dumps(GOOD | {"id": "b", "words": [{"word": "one", "start": 1, "end": 0.5}]}),
            "ends before it starts",
        ),
    ],
)
def test_a_bad_line_is_named(tmp_path: Path, line: str, told: str) -> None:
    path = written(tmp_path, json.dumps(GOOD) + "\n\n" + line + "\n")
    with pytest.raises(InputError) as caught:
        manifest.read(path)
    assert str(caught.value).startswith(f"{path}:3: ") and told in str(caught.value)
    assert "\n" not in str(caught.value)


def test_bad_files(tmp_path: Path) -> None:
    with pytest.raises(InputError, match=r"none\.jsonl: cannot be read"):
        manifest.read(tmp_path / "none.jsonl")
    with pytest.raises(InputError, match="not UTF-8"):
        manifest.read(written(tmp_path, b"\xff\xfe{}"))


def test_less_can_be_asked_for(tmp_path: Path) -> None:
    path = written(tmp_path, '{"id": "a", "audio": "a.wav"}')
    assert manifest.read(path, needs=()) == [Utterance("a", tmp_path / "a.wav", 0.0, "")]


def test_writing_is_all_or_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "new" / "m.jsonl"
    one = Utterance("a", tmp_path / "a.wav", 1 / 3, "one")
    manifest.write(path, [one])
    before, stamp = path.read_bytes(), path.stat().st_mtime_ns
    manifest.write(path, [one])
    assert path.stat().st_mtime_ns == stamp  # right already: left alone
    with pytest.raises(InputError, match="'a' was there already"):
        manifest.write(path, [one, one])

    def broken(*_: object) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "replace", broken)
    with pytest.raises(InputError, match="No space left"):
        manifest.write(path, [replace(one, text="two")])
    assert path.read_bytes() == before
    assert [p.name for p in path.parent.iterdir()] == ["m.jsonl"]


HEADER = "id\taudio\tduration_s\tspeaker\tsplit\ttranscript\n"


def test_tsv(tmp_path: Path) -> None:
    text = "\ufeff" + HEADER.replace("\n", "\tage\r\n") + 'a\ta.opus\t1.5\tann\ttest\tsay "x\t7\r\n'
    written(tmp_path, text, "manifest.tsv")
    assert manifest.read_tsv(tmp_path) == [
        Utterance("a", tmp_path / "a.opus", 1.5, 'say "x', "ann", "test", extra={"age": "7"})
    ]


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("", "manifest.tsv: empty"),
        ("id\taudio\n", "manifest.tsv:1: no column 'duration_s', 'transcript'"),
        (HEADER + "a\ta.wav\n", "manifest.tsv:2: 2 columns, the header has 6"),
        (HEADER + "a\ta.wav\tlong\tann\ttest\tone\n", "manifest.tsv:2: duration_s"),
        (HEADER + "a\ta.wav\t1\tann\ttest\tone\n" * 2, "manifest.tsv:3: the id 'a'"),
        (HEADER + "a\t\t1\tann\ttest\tone\n", "must not be empty"),
    ],
)
def test_a_bad_tsv_is_named(tmp_path: Path, text: str, told: str) -> None:
    written(tmp_path, text, "manifest.tsv")
    with pytest.raises(InputError) as caught:
        manifest.read_tsv(tmp_path)
    assert told in str(caught.value)
