"""`asr transcribe` from arguments to files, with a recogniser that answers at once."""

from __future__ import annotations

import io
import json
import os
import sys
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
import soundfile

from asr.cli import writers
from tests.cli.fakes import RATE, Done, FakeTranscriber, sound, text_of

Run = Callable[..., Done]
pytestmark = pytest.mark.usefixtures("fake")


@pytest.fixture
def there(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The current folder."""
    monkeypatch.chdir(tmp_path)
    return tmp_path


def files(folder: Path) -> list[str]:
    return sorted(str(path.relative_to(folder)) for path in folder.rglob("*") if path.is_file())


def never_loaded(fake: type[FakeTranscriber]) -> bool:
    return not fake.built and not fake.calls


# Standard output


def test_one_input_goes_out_bare(asr: Run, there: Path) -> None:
    sound(there / "a.wav")
    assert asr("transcribe", "a.wav").out == text_of(1600) + "\n"


def test_several_go_out_in_their_order_with_their_paths(asr: Run, there: Path) -> None:
    sizes = {"b.wav": 900, "a.flac": 3000, "c.wav": 100, "d.wav": 0}
    for name, size in sizes.items():
        sound(there / name, size)
    done = asr("transcribe", *sizes, "--batch-seconds", "0.1")
    texts = [text_of(size) if size else "" for size in sizes.values()]
    assert done.out.splitlines() == [
        f"{name}\t{text}" for name, text in zip(sizes, texts, strict=True)
    ]
    assert done.status == 0  # empty sound is no failure, but is told of
    assert "asr: warning: d.wav: there are no samples" in done.err


def test_a_folder_of_one_goes_out_with_its_path(asr: Run, there: Path) -> None:
    sound(there / "in/a.wav")
    assert asr("transcribe", "in").out == f"{Path('in/a.wav')}\t{text_of(1600)}\n"


def test_a_manifest_goes_out_by_id(asr: Run, there: Path) -> None:
    sound(there / "in/a.wav")
    rows = [
        {"id": "whole one", "audio": "a.wav"},
        {"id": "piece", "audio": "a.wav", "start": 0.025, "end": 0.05},
        {"id": "rest", "audio": "a.wav", "start": 0.05},
        {"id": "beyond", "audio": "a.wav", "start": 7},
        {"id": "gone", "audio": "b.wav"},
        {"id": "turned", "audio": "a.wav", "start": 0.05, "end": 0.02},
    ]
    (there / "in/m.jsonl").write_text("\n".join(map(json.dumps, rows)))
    done = asr("transcribe", "in/m.jsonl")
    assert done.out == (
        f"whole one\t{text_of(1600)}\npiece\t{text_of(400)}\nrest\t{text_of(800)}\n"
    )
    assert done.status == 1 and len(done.errors) == 3
    assert done.errors[0].startswith("asr: error: beyond: in/a.wav: is over after 0.10 s")
    assert done.errors[1].startswith("asr: error: gone: in/b.wav: No such file")
    assert "turned: in/a.wav: the end, 0.02 s, lies before the start, 0.05 s" in done.errors[2]
    assert done.err.endswith("asr: 3 of 6 inputs failed\n")


def test_json_goes_out_one_object_a_line(asr: Run, there: Path) -> None:
    sound(there / "a.wav", 800), sound(there / "b.wav", 1600)
    lines = asr("transcribe", "a.wav", "b.wav", "-f", "json").out.splitlines()
    assert [json.loads(line)["text"] for line in lines] == [text_of(800), text_of(1600)]


def test_names_of_bad_files_are_shown_once_and_steer_no_terminal(asr: Run, there: Path) -> None:
    (there / "two  spaces.wav").write_bytes(b"no")
    (there / "red\x1b[31m.wav").write_bytes(b"no")
    done = asr("transcribe", ".")
    assert [line.split(": not audio")[0] for line in done.errors] == [
        "asr: error: red\\x1b[31m.wav", "asr: error: two  spaces.wav"
    ]  # fmt: skip
    assert "\x1b" not in done.err


def test_a_name_never_breaks_the_line(asr: Run, there: Path) -> None:
    sound(there / "a\tb\nc.wav"), sound(there / "d.wav")
    first, _ = asr("transcribe", "a\tb\nc.wav", "d.wav").out.splitlines()
    assert first == f"a\\tb\\nc.wav\t{text_of(1600)}"


def test_standard_input(asr: Run, there: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    data = sound(there / "a.flac").read_bytes()
    monkeypatch.setattr(sys, "stdin", SimpleNamespace(buffer=io.BytesIO(data)))
    assert asr("transcribe", "-").out == text_of(1600) + "\n"
    monkeypatch.setattr(sys, "stdin", SimpleNamespace(buffer=io.BytesIO(data)))
    assert asr("transcribe", "-", "-o", "out").status == 0
    assert files(there / "out") == ["stdin.json", "stdin.txt"]
    monkeypatch.setattr(sys, "stdin", SimpleNamespace(buffer=io.BytesIO(b"not sound")))
    done = asr("transcribe", "-")
    assert done.status == 1 and done.errors[0].startswith("asr: error: stdin: not audio")


# Bad inputs


def test_a_bad_file_harms_no_other(asr: Run, there: Path) -> None:
    for index in range(6):
        sound(there / f"in/{index}.wav", 100 * (index + 1))
    (there / "in/3.wav").write_bytes(b"RIFF but not really")
    (there / "in/4.m4a").write_bytes(b"\0\0\0\x20ftypM4A " + bytes(1000))
    done = asr("transcribe", "in", "gone.wav", "-o", "out", "-f", "txt")
    assert done.status == 1 and done.out == ""
    assert [line.split(":")[2].strip() for line in done.errors] == [
        "gone.wav", str(Path("in/3.wav")), str(Path("in/4.m4a"))
    ]  # fmt: skip
    assert files(there / "out") == ["0.txt", "1.txt", "2.txt", "4.wav.txt", "5.txt"]
    assert done.err.endswith("asr: 3 of 8 inputs failed\n")


def test_a_file_that_is_cut_short_is_transcribed_as_far_as_it_goes(asr: Run, there: Path) -> None:
    path = sound(there / "a.wav", 8000)
    path.write_bytes(path.read_bytes()[:-8000])
    done = asr("transcribe", "a.wav")
    assert (done.status, done.out) == (0, text_of(4000) + "\n")


def test_a_lone_bad_file_is_one_line(asr: Run, there: Path) -> None:
    (there / "bad.m4a").write_bytes(b"\0\0\0\x20ftypM4A " + bytes(1000))
    done = asr("transcribe", "bad.m4a", "--quiet")
    assert (done.status, done.out, len(done.err.splitlines())) == (1, "", 1)
    assert done.err.startswith("asr: error: bad.m4a: ")


def test_a_sound_that_the_model_cannot_do_harms_no_batch_mate(
    asr: Run, there: Path, fake: type[FakeTranscriber]
) -> None:
    for name in ("a", "poison", "c"):
        sound(there / f"{name}.wav")
    done = asr("transcribe", "a.wav", "poison.wav", "c.wav")
    assert done.out == f"a.wav\t{text_of(1600)}\nc.wav\t{text_of(1600)}\n"
    assert done.errors == ["asr: error: poison.wav: out of memory: not enough of it"]
    assert done.status == 1 and len(fake.calls[0]) == 3


def test_fail_fast(asr: Run, there: Path, fake: type[FakeTranscriber]) -> None:
    sound(there / "a.wav"), sound(there / "c.wav")
    (there / "b.wav").write_bytes(b"no")
    done = asr("transcribe", "a.wav", "b.wav", "c.wav", "-o", "out", "--fail-fast")
    assert done.status == 1 and len(done.errors) == 1
    assert "--fail-fast" in done.err and "c.txt" not in files(there / "out")
    done = asr("transcribe", "gone.wav", "a.wav", "--fail-fast")
    assert done.status == 1 and done.out == ""


def test_results_are_there_as_soon_as_their_batch_is_done(
    asr: Run, there: Path, fake: type[FakeTranscriber], monkeypatch: pytest.MonkeyPatch
) -> None:
    for index in range(4):
        sound(there / f"{index}.wav", 1600)
    seen: list[list[str]] = []

    def spying(self: FakeTranscriber, waves: Any, *, record: bool = False) -> Any:
        seen.append(files(there / "out"))
        if len(seen) == 3:
            raise KeyboardInterrupt
        return [self.transcript(wave) for wave in waves]

    monkeypatch.setattr(fake, "__call__", spying)
    arguments = [f"{index}.wav" for index in range(4)]
    done = asr("transcribe", *arguments, "-o", "out", "-f", "txt", "--batch-seconds", "0.1")
    assert done.status == 130 and done.err.endswith("asr: interrupted\n")
    assert seen == [[], ["0.txt"], ["0.txt", "1.txt"]]
    assert files(there / "out") == ["0.txt", "1.txt"]  # and no half-written ones


def test_batches_are_bounded_with_their_padding(
    asr: Run, there: Path, fake: type[FakeTranscriber]
) -> None:
    sizes = [160, 4800, 320, 1600, 1600, 8000]
    for index, size in enumerate(sizes):
        sound(there / f"{index}.wav", size)
    asr("transcribe", "[0-9].wav", "--batch-seconds", "0.3")
    lengths = [[len(wave.samples) for wave in call] for call in fake.calls]
    assert sorted(length for call in lengths for length in call) == sorted(sizes)
    assert [8000] in lengths  # longer than a batch: by itself
    assert all(len(call) == 1 or len(call) * max(call) <= 0.3 * RATE for call in lengths)
    fake.calls.clear()
    asr("transcribe", "[0-9].wav", "--batch-seconds", "100")
    assert [len(call) for call in fake.calls] == [6]


# Output files


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


# Every flag does something


def test_flags_reach_the_recogniser(asr: Run, there: Path, fake: type[FakeTranscriber]) -> None:
    import torch

    sound(there / "a.wav")
    asr("transcribe", "a.wav")
    plain = {"path": None, "search": None, "device": "auto", "dtype": "auto", "threads": None}
    assert fake.built == {**plain, "batch_seconds": 60.0}
    for flags, key, value in [
        (["-m", "bundle.zip"], "path", Path("bundle.zip")),
        (["--device", "cuda:1"], "device", "cuda:1"),
        (["--dtype", "bfloat16"], "dtype", "bfloat16"),
        (["--threads", "1"], "threads", 1),
        (["--batch-seconds", "7.5"], "batch_seconds", 7.5),
        (["--chunk-length", "12"], "max_piece_seconds", 12.0),
        (["--beam-size", "3"], "search", {"beam_size": 3}),
        (["--ctc-weight", "0"], "search", {"ctc_weight": 0.0}),
        (["--length-bonus", "-0.5"], "search", {"length_bonus": -0.5}),
        (["--nbest", "4", "-f", "json"], "search", {"nbest": 4}),
    ]:
        assert asr("transcribe", "a.wav", *flags).status == 0
        assert fake.built[key] == value
    assert f"{torch.get_num_threads()} threads" in asr("transcribe", "a.wav").err


def test_options_that_do_not_go_together(asr: Run, there: Path) -> None:
    sound(there / "a.wav")
    done = asr("transcribe", "a.wav", "--nbest", "9", "-f", "json")
    assert done.status == 2 and done.errors == [
        "asr: error: nbest=9: must not be above beam_size=8"
    ]
    for flags, missing in [
        (["-f", "srt"], "-o DIR"),
        (["-f", "txt,json"], "-o DIR"),
        (["--word-timestamps"], "-f"),
        (["--nbest", "3"], "-f json"),
        (["--nbest", "3", "-o", "out", "-f", "txt,srt"], "-f json"),
        (["--on-exists", "skip"], "-o DIR"),
        (["--on-exists", "error"], "-o DIR"),
    ]:
        done = asr("transcribe", "a.wav", *flags)
        assert done.status == 2 and len(done.err.splitlines()) == 1
        assert missing in done.err and not (there / "out").exists()


@pytest.mark.parametrize(
    ("flag", "wrong", "wanted"),
    [
        ("--beam-size", ("0", "-1", "x", "2.5", "nan", "inf", ""), "a whole number above 0"),
        ("--threads", ("0", "many"), "a whole number above 0"),
        ("--ctc-weight", ("1.1", "-0.1", "half"), "a number from 0 to 1"),
        ("--length-bonus", ("inf", "nan", "x"), "a number"),
        ("--batch-seconds", ("0", "-3", "x"), "a number above 0"),
        ("--chunk-length", ("0.1", "0.99", "0", "x"), "at least 1 second"),
    ],
)
def test_wrong_numbers_are_told_what_would_be_right(
    asr: Run, there: Path, fake: type[FakeTranscriber], flag: str, wrong: tuple[str, ...],
    wanted: str,
) -> None:  # fmt: skip
    sound(there / "a.wav")
    for value in wrong:
        done = asr("transcribe", "a.wav", f"{flag}={value}")
        assert done.status == 2 and never_loaded(fake)
        assert f"argument {flag}: must be {wanted}, not {value!r}" in done.err


def test_the_shortest_chunks_are_as_long_as_a_transcriber_takes(asr: Run, there: Path) -> None:
    from asr.inference.pieces import SHORTEST_PIECE

    sound(there / "a.wav")
    assert asr("transcribe", "a.wav", "--chunk-length", str(SHORTEST_PIECE)).status == 0
    below = str(SHORTEST_PIECE - 0.01)
    assert asr("transcribe", "a.wav", "--chunk-length", below).status == 2


def test_what_follows_two_dashes_is_an_input(asr: Run, there: Path) -> None:
    for name in ("a.wav", "-x.wav", "--y_z.wav"):
        sound(there / name)
    for words in (
        ["a.wav", "-o", "out", "-f", "txt", "--", "-x.wav", "--y_z.wav"],
        ["-o", "out", "-f", "txt", "--", "a.wav", "-x.wav", "--y_z.wav"],
        ["a.wav", "--on-exists=overwrite", "-o", "out", "-f", "txt", "--", "./-x.wav", "--y_z.wav"],
    ):
        done = asr("transcribe", *words)
        assert done.status == 0, done.err
        assert files(there / "out") == ["--y_z.txt", "-x.txt", "a.txt"]
        for name in files(there / "out"):
            (there / "out" / name).unlink()
    assert asr("transcribe", "--", "-x.wav", "a.wav").out.startswith("-x.wav\t")
    assert asr("transcribe", "a.wav", "-x.wav").status == 2


# Progress


class _Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


@pytest.mark.parametrize(
    ("terminal", "flags", "shown"),
    [
        (True, ["-o", "out"], True),
        (True, ["-o", "out", "--quiet"], False),
        (False, ["-o", "out"], False),
        (True, [], True),  # text goes to a pipe
    ],
)
def test_a_bar_only_where_somebody_looks(
    asr: Run, there: Path, monkeypatch: pytest.MonkeyPatch, terminal: bool, flags: list[str],
    shown: bool,
) -> None:  # fmt: skip
    monkeypatch.setenv("TERM", "xterm")
    monkeypatch.delenv("NO_COLOR", raising=False)
    sound(there / "a.wav"), sound(there / "b.wav")
    (there / "c.wav").write_bytes(b"no")
    stream = _Terminal() if terminal else io.StringIO()
    monkeypatch.setattr(sys, "stderr", stream)
    done = asr("transcribe", "a.wav", "b.wav", "c.wav", *flags)
    assert done.status == 1
    assert ("transcribing" in stream.getvalue()) == shown
    assert ("\x1b" in stream.getvalue()) == shown
    assert "asr: error: c.wav: not audio" in stream.getvalue()
    if not flags:
        assert done.out == f"a.wav\t{text_of(1600)}\nb.wav\t{text_of(1600)}\n"
