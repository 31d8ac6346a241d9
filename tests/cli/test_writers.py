"""Formats, read back by readers that share nothing with the writers."""

from __future__ import annotations

import dataclasses
import json
import math
import os
import re
from itertools import pairwise
from pathlib import Path
from urllib.parse import unquote

import pytest

from asr.cli import writers
from asr.cli.timed import Interval, tiled
from asr.errors import InputError
from asr.types import Transcript, TranscriptWarning, Word


def transcript(
    *words: tuple[str, float, float], duration: float = 10.0, id: str = "a b"
) -> Transcript:
    return Transcript(
        id,
        " ".join(word for word, _, _ in words),
        tuple(Word(word, start, end, 0.9) for word, start, end in words),
        duration,
    )


SPOKEN = transcript(
    ('say "hi"', 0.5, 1.0), ("to", 1.0, 1.0), ("<b>", 1.0, 1.25), ("após", 3661.5, 3662.0),
    duration=3662.25,
)  # fmt: skip
NOTHING = transcript(duration=0.0)


def read_textgrid(text: str) -> dict[str, list[tuple[float, float, str]]]:
    """Praat's long format, strictly: sizes as declared, intervals without gaps."""
    head, *tiers = re.split(r"^    item \[\d+\]:\n", text, flags=re.M)
    assert head.startswith('File type = "ooTextFile"\nObject class = "TextGrid"\n\nxmin = 0\n')
    total = float(re.search(r"^xmax = (.*)$", head, re.M)[1])
    assert int(re.search(r"^size = (\d+)$", head, re.M)[1]) == len(tiers)
    found = {}
    for tier in tiers:
        name = re.search(r'^        name = "(.*)"$', tier, re.M)[1]
        rows = re.findall(
            r'intervals \[(\d+)\]:\n +xmin = (.+)\n +xmax = (.+)\n +text = "((?:[^"]|"")*)"\n', tier
        )
        assert int(re.search(r"intervals: size = (\d+)$", tier, re.M)[1]) == len(rows)
        assert [int(row[0]) for row in rows] == list(range(1, len(rows) + 1))
        spans = [(float(a), float(b), label.replace('""', '"')) for _, a, b, label in rows]
        assert spans[0][0] == 0 and spans[-1][1] == total
        assert all(start < end for start, end, _ in spans)
        assert all(a[1] == b[0] for a, b in pairwise(spans))
        found[name] = spans
    return found


def seconds(clock: str) -> float:
    hours, minutes, rest = clock.replace(",", ".").split(":")
    return int(hours) * 3600 + int(minutes) * 60 + float(rest)


@pytest.mark.parametrize("by_word", [False, True])
@pytest.mark.parametrize("format", ["srt", "vtt"])
def test_subtitles(format: str, by_word: bool) -> None:
    text = writers.FORMATS[format](SPOKEN, by_word)
    cues = [
        (seconds(start), seconds(end), words)
        for start, end, words in re.findall(r"(\S+) --> (\S+)\n(.*)\n(?:\n|$)", text)
    ]
    shown = "&lt;b&gt;" if format == "vtt" else "<b>"
    assert cues == (
        [(0.5, 1.0, 'say "hi"'), (1.0, 1.0, "to"), (1.0, 1.25, shown), (3661.5, 3662, "após")]
        if by_word
        else [(0.5, 1.25, f'say "hi" to {shown}'), (3661.5, 3662, "após")]
    )
    separator = "." if format == "vtt" else ","
    assert f"01:01:01{separator}500 --> 01:01:02{separator}000" in text
    assert text.startswith("WEBVTT\n\n") == (format == "vtt")


def test_a_cue_is_short_enough_to_read() -> None:
    words = [("word" * 3, index * 0.5, index * 0.5 + 0.5) for index in range(100)]
    cues = writers.segments(transcript(*words, duration=50))
    assert all(cue.end - cue.start <= 6 and len(cue.text) <= 84 for cue in cues)
    assert " ".join(cue.text for cue in cues).split() == [word for word, _, _ in words]
    assert all(a.end <= b.start for a, b in pairwise(cues))


def test_text_without_words_is_one_segment() -> None:
    assert writers.segments(Transcript("a", "hello", (), 2.0)) == [(0.0, 2.0, "hello")]
    assert writers.segments(Transcript("a", "", (), 2.0)) == []


def test_clocks_carry() -> None:
    text = writers.FORMATS["srt"](transcript(("a", 59.9996, 3599.9999), duration=4000), True)
    assert "00:01:00,000 --> 01:00:00,000" in text


def test_textgrid() -> None:
    tiers = read_textgrid(writers.FORMATS["textgrid"](SPOKEN, False))
    assert tiers["words"] == [
        (0, 0.5, ""), (0.5, 1.0, 'say "hi"'), (1.0, 1.25, "to <b>"), (1.25, 3661.5, ""),
        (3661.5, 3662.0, "após"), (3662.0, 3662.25, ""),
    ]  # fmt: skip
    assert [label for _, _, label in tiers["segments"] if label] == ['say "hi" to <b>', "após"]
    assert read_textgrid(writers.FORMATS["textgrid"](NOTHING, False))["words"] == [(0, 0.001, "")]


@pytest.mark.parametrize(
    ("spans", "intervals"),
    [
        ([], [(0, 2, "")]),
        ([(0, 2, "a")], [(0, 2, "a")]),
        ([(0, 1, "a"), (0.5, 3, "b")], [(0, 1, "a"), (1, 2, "b")]),
        ([(0, 1, "a"), (1, 1, "b")], [(0, 1, "a b"), (1, 2, "")]),
        ([(1, 1, "a"), (1, 1, "b")], [(0, 2, "a b")]),
        ([(1, 1.5, "a"), (2, 2, "b")], [(0, 1, ""), (1, 1.5, "a b"), (1.5, 2, "")]),
    ],
)
def test_intervals_fill_the_tier(
    spans: list[tuple[float, float, str]], intervals: list[tuple[float, float, str]]
) -> None:
    assert tiled(spans, 2.0) == [Interval(*each) for each in intervals]


def test_ctm() -> None:
    lines = writers.FORMATS["ctm"](transcript(("it's", 0.5, 0.75), ("x", 1, 1)), False).splitlines()
    assert lines == ["a%20b 1 0.500 0.250 it's 0.900", "a%20b 1 1.000 0.000 x 0.900"]
    assert all(len(line.split()) == 6 for line in lines)


@pytest.mark.parametrize(
    "id", ["a b", "a\tb\nc", "100%", "50%20off", "été　日本", "a\0b\x85c", "a_b", "%"]
)
def test_an_id_is_one_column_of_a_ctm_and_found_again(id: str) -> None:
    said = dataclasses.replace(transcript(("x", 0, 1)), id=id)
    column, *rest = writers.FORMATS["ctm"](said, False).split()
    assert len(rest) == 5 and unquote(column) == id


def test_times_are_milliseconds_within_the_sound_and_figures_short() -> None:
    said = dataclasses.replace(
        transcript(("x", 1 / 3, 2 / 3), ("y", 0.99961, 0.9999)),
        duration=0.9999,
        score=-1 / 3,
        nbest=(("x", -2 / 3), ("y", float("-inf"))),
        attention={"coverage": 1 / 3},
        warnings=(TranscriptWarning("c", "m", 1 / 3, 0.9999), TranscriptWarning("d", "n")),
    )
    said = dataclasses.replace(
        said, words=tuple(dataclasses.replace(w, confidence=2 / 3) for w in said.words)
    )
    found = writers.as_dict(said)
    assert found["words"] == [
        {"word": "x", "start": 0.333, "end": 0.667, "confidence": 0.6667},
        {"word": "y", "start": 0.999, "end": 0.999, "confidence": 0.6667},
    ]
    assert found["duration"] == 0.9999
    assert [(each["start"], each["end"]) for each in found["segments"]] == [(0.333, 0.999)]
    assert found["score"] == -0.3333 and found["attention"] == {"coverage": 0.3333}
    assert [each["score"] for each in found["nbest"]] == [-0.6667, None]
    assert [(each["start"], each["end"]) for each in found["warnings"]] == [
        (0.333, 0.999), (None, None)
    ]  # fmt: skip


@pytest.mark.parametrize("format", writers.TIMED)
def test_no_format_has_a_time_beyond_the_end(tmp_path: Path, format: str) -> None:
    said = dataclasses.replace(transcript(("x", 0.5, 0.9998)), duration=0.9998)
    writers.write(tmp_path / "a", said, format, by_word=True)
    assert not re.search(r"1[.,]000\b|\b1000\b", (tmp_path / "a").read_text())


def test_files_get_the_rights_that_new_files_get(tmp_path: Path) -> None:
    before = os.umask(0o027)
    try:
        writers.write(tmp_path / "a.txt", SPOKEN, "txt")
    finally:
        os.umask(before)
    assert (tmp_path / "a.txt").stat().st_mode & 0o777 == 0o640


def test_the_longest_name_that_a_file_can_have(tmp_path: Path) -> None:
    path = tmp_path / ("x" * 251 + ".txt")
    writers.write(path, SPOKEN, "txt")
    assert [each.name for each in tmp_path.iterdir()] == [path.name]
    with pytest.raises(InputError, match="too long"):
        writers.write(tmp_path / ("x" * 252 + ".txt"), SPOKEN, "txt")


@pytest.mark.parametrize("format", writers.FORMATS)
@pytest.mark.parametrize("said", [SPOKEN, NOTHING], ids=["spoken", "nothing"])
def test_every_format_is_written_whole(tmp_path: Path, format: str, said: Transcript) -> None:
    path = tmp_path / f"a.{format}"
    path.write_text("old")
    writers.write(path, said, format)
    assert path.read_text(encoding="utf-8") == writers.FORMATS[format](said, False)
    assert [each.name for each in tmp_path.iterdir()] == [path.name]


def test_a_failed_write_leaves_what_was_there(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "a.txt"
    path.write_text("old")

    def full(*arguments: object) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("os.replace", full)
    with pytest.raises(InputError, match="a.txt: cannot be written .No space left"):
        writers.write(path, SPOKEN, "txt")
    assert path.read_text() == "old" and len(list(tmp_path.iterdir())) == 1


def test_no_number_in_the_json_that_json_does_not_know() -> None:
    said = Transcript(
        "a",
        "x",
        (Word("x", 0.0, math.nan, math.inf),),
        1.0,
        score=-math.inf,
        attention={"coverage": math.nan},
        decoding={"deep": [{"er": math.inf}]},
    )
    for text in (writers.json_line(said), writers.FORMATS["json"](said, False)):

        def refuse(name: str) -> None:
            raise AssertionError(name)

        found = json.loads(text, parse_constant=refuse)
        assert found["score"] is None and found["words"][0]["end"] is None
        assert found["decoding"] == {"deep": [{"er": None}]}
