"""`asr transcribe` from arguments to text, with a recogniser that answers at once."""

from __future__ import annotations

import io
import json
import sys
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from tests.cli.fakes import RATE, Done, FakeTranscriber, files, never_loaded, sound, text_of

Run = Callable[..., Done]
pytestmark = pytest.mark.usefixtures("fake")


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
