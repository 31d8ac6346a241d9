"""The files that `asr transcribe` writes: names, contents, and what is there already."""

from __future__ import annotations

import json
import os
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
import soundfile

from asr.cli import writers
from tests.cli.fakes import RATE, Done, FakeTranscriber, files, never_loaded, sound, text_of

Run = Callable[..., Done]
pytestmark = pytest.mark.usefixtures("fake")


def test_formats(asr: Run, there: Path) -> None:
    sound(there / "a.wav", 4800)
    assert asr("transcribe", "a.wav", "-o", "out", "-f", "txt,json,srt,vtt,tsv").out == ""
    read = {path.suffix[1:]: path.read_text(encoding="utf-8") for path in (there / "out").iterdir()}
    assert read["txt"] == "it's 4800 <é>\n"
    assert read["srt"] == "1\n00:00:00,000 --> 00:00:00,300\nit's 4800 <é>\n"
    assert read["vtt"] == "WEBVTT\n\n00:00:00.000 --> 00:00:00.300\nit's 4800 &lt;é&gt;\n"
    assert read["tsv"] == "start\tend\ttext\n0\t300\tit's 4800 <é>\n"
    assert "é" in read["json"] and "NaN" not in read["json"] and "Infinity" not in read["json"]


def test_one_cue_a_word(asr: Run, there: Path) -> None:
    sound(there / "a.wav", 4800)
    asr("transcribe", "a.wav", "-o", "out", "-f", "srt,vtt,tsv", "--word-timestamps")
    assert (there / "out/a.srt").read_text("utf-8") == (
        "1\n00:00:00,000 --> 00:00:00,100\nit's\n\n"
        "2\n00:00:00,100 --> 00:00:00,200\n4800\n\n"
        "3\n00:00:00,200 --> 00:00:00,300\n<é>\n"
    )
    assert (there / "out/a.vtt").read_text("utf-8").count("-->") == 3
    assert len((there / "out/a.tsv").read_text("utf-8").splitlines()) == 4


def test_the_json_contract(asr: Run, there: Path) -> None:
    sound(there / "in/a.wav", 48000, channels=2, rate=48000)
    asr("transcribe", "in", "-o", "out", "-f", "json")
    found = json.loads((there / "out/a.json").read_bytes())
    assert found == {
        "schema": "asr-transcript/1",
        "id": "a",
        "audio": str(Path("in/a.wav")),
        "sample_rate": 48000,
        "duration": 1.0,
        "text": text_of(16000),
        "score": -1.5,
        "words": [
            {"word": word, "start": round(at / 3, 3), "end": round((at + 1) / 3, 3),
             "confidence": 0.5}
            for at, word in enumerate(text_of(16000).split())
        ],
        "segments": [{"start": 0.0, "end": 1.0, "text": text_of(16000)}],
        "nbest": [{"text": text_of(16000), "score": -1.5}, {"text": "its", "score": None}],
        "model": {"name": "fake", "fingerprint": "0"},
        "decoding": {"beam_size": 8},
        "attention": {"coverage": None, "entropy": 1.0},
        "warnings": [],
    }  # fmt: skip


def test_nothing_said_in_every_format(asr: Run, there: Path) -> None:
    sound(there / "a.wav", 0)
    assert asr("transcribe", "a.wav", "-o", "out", "-f", ",".join(writers.FORMATS)).status == 0
    found = json.loads((there / "out/a.json").read_bytes())
    assert (found["text"], found["words"], found["segments"]) == ("", [], [])
    assert found["warnings"] == [
        {"code": "empty-audio", "message": "there are no samples", "start": 0.0, "end": 0.0}
    ]
    assert (there / "out/a.srt").read_text() == ""


def test_odd_names(asr: Run, there: Path) -> None:
    names = [
        "l'été d'Ann.wav",
        "日本 語.wav",
        "a b  c.wav",
        "-dash.wav",
        os.fsdecode(b"caf\xe9.wav"),
    ]
    for name in names:
        sound(there / "in" / name)
    assert asr("transcribe", "in", "-o", "out dir").status == 0
    assert len(files(there / "out dir")) == 2 * len(names)
    raw = (there / "out dir" / os.fsdecode(b"caf\xe9.json")).read_bytes()
    assert json.loads(raw.decode("utf-8"))["id"] == os.fsdecode(b"caf\xe9")


def test_the_tree_is_mirrored(asr: Run, there: Path) -> None:
    for name in ("x/a.wav", "y/a.wav", "y/b/a.wav"):
        sound(there / "in" / name)
    assert asr("transcribe", "in", "--recursive", "-o", "out", "-f", "txt").status == 0
    assert files(there / "out") == ["x/a.txt", "y/a.txt", "y/b/a.txt"]


def test_channels(asr: Run, there: Path, fake: type[FakeTranscriber]) -> None:
    left = np.full(1600, 0.1)
    soundfile.write(there / "a.wav", np.stack([left, -left / 2], axis=1), RATE)
    heard = []
    for channel in ("mix", "0", "1"):
        asr("transcribe", "a.wav", "--channel", channel)
        heard.append(round(float(fake.calls[-1][0].samples.mean()), 3))
    assert heard == [0.025, 0.1, -0.05]
    done = asr("transcribe", "a.wav", "--channel", "2")
    assert done.status == 1 and "no channel 2" in done.errors[0]

    done = asr("transcribe", "a.wav", "--channel", "split")
    assert done.out == f"a.wav.ch0\t{text_of(1600)}\na.wav.ch1\t{text_of(1600)}\n"
    assert asr("transcribe", "a.wav", "--channel", "split", "-o", "out", "-f", "json").status == 0
    assert files(there / "out") == ["a.ch0.json", "a.ch1.json"]
    assert json.loads((there / "out/a.ch1.json").read_bytes())["id"] == "a.ch1"
    assert asr("transcribe", "a.wav", "--channel", "split", "-o", "out", "-f", "json").status == 2
    (there / "out/a.ch0.json").unlink()
    skipping = ("--on-exists", "skip", "-f", "json", "-o", "out")
    assert asr("transcribe", "a.wav", "--channel", "split", *skipping).status == 0
    assert files(there / "out") == ["a.ch0.json", "a.ch1.json"]


def test_collisions_are_refused_first(asr: Run, there: Path, fake: type[FakeTranscriber]) -> None:
    sound(there / "x/a.wav"), sound(there / "y/a.wav")
    done = asr("transcribe", "x/a.wav", "y/a.wav", "-o", "out")
    assert done.status == 2 and len(done.errors) == 1 and never_loaded(fake)
    assert "x/a.wav" in done.err and "y/a.wav" in done.err
    assert asr("transcribe", "x/a.wav", "y/a.wav").status == 0  # nothing is written: no harm


def test_one_stem_twice_keeps_the_suffix(asr: Run, there: Path) -> None:
    sound(there / "jfk.mp3"), sound(there / "jfk.wav")
    assert asr("transcribe", "jfk.mp3", "jfk.wav", "-o", "out", "-f", "json").status == 0
    assert files(there / "out") == ["jfk.mp3.json", "jfk.wav.json"]


def test_what_exists_is_not_overwritten(asr: Run, there: Path, fake: type[FakeTranscriber]) -> None:
    sound(there / "a.wav"), sound(there / "b.wav")
    (there / "out").mkdir()
    (there / "out/b.json").write_text("precious")
    done = asr("transcribe", "a.wav", "b.wav", "-o", "out")
    assert done.status == 2 and never_loaded(fake)
    assert "b.json" in done.errors[0] and "--on-exists" in done.errors[0]
    assert asr("transcribe", "a.wav", "b.wav", "-o", "out", "-f", "txt").status == 0  # not asked
    assert (there / "out/b.json").read_text() == "precious"


def test_skip_looks_at_all_formats(asr: Run, there: Path, fake: type[FakeTranscriber]) -> None:
    for name in ("a", "b", "c"):
        sound(there / f"{name}.wav")
    (there / "out").mkdir()
    for name in ("a.txt", "a.json", "b.txt"):
        (there / "out" / name).write_text("old")
    done = asr("transcribe", "a.wav", "b.wav", "c.wav", "-o", "out", "--on-exists", "skip")
    assert done.status == 0 and "1 of 3 inputs skipped" in done.err
    assert {wave.id for call in fake.calls for wave in call} == {"b", "c"}
    assert (there / "out/a.txt").read_text() == "old" != (there / "out/b.txt").read_text()
    fake.built.clear()
    done = asr("transcribe", "a.wav", "b.wav", "c.wav", "-o", "out", "--on-exists", "skip")
    assert done.status == 0 and not fake.built  # nothing to do: nothing is loaded


def test_overwrite(asr: Run, there: Path) -> None:
    sound(there / "a.wav")
    (there / "out").mkdir()
    (there / "out/a.txt").write_text("old")
    assert asr("transcribe", "a.wav", "-o", "out", "--on-exists", "overwrite").status == 0
    assert (there / "out/a.txt").read_text("utf-8") == text_of(1600) + "\n"


@pytest.mark.parametrize("folder", ["file", "file/below"])
def test_a_folder_that_cannot_be_written_is_found_first(
    asr: Run, there: Path, fake: type[FakeTranscriber], folder: str
) -> None:
    sound(there / "a.wav")
    (there / "file").touch()
    done = asr("transcribe", "a.wav", "-o", folder)
    assert done.status == 2 and len(done.err.splitlines()) == 1 and never_loaded(fake)
    assert folder in done.err


def test_one_format_that_cannot_be_written_harms_no_other(asr: Run, there: Path) -> None:
    sound(there / "a.wav"), sound(there / "b.wav")
    (there / "out/a.json/in the way").mkdir(parents=True)
    arguments = ("a.wav", "b.wav", "-o", "out", "-f", "json,txt", "--on-exists", "overwrite")
    done = asr("transcribe", *arguments)
    assert done.status == 1 and len(done.errors) == 1 and "a.json" in done.errors[0]
    assert files(there / "out") == ["a.txt", "b.json", "b.txt"]
