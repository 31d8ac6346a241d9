"""Any folder of recordings: three shapes, what is reported, and what is refused."""

from __future__ import annotations

import csv
import json
import os
from pathlib import Path

import numpy as np
import pytest
import soundfile

from asr.cli.main import main
from asr.data import manifest
from asr.data.corpora.folder import prepare
from asr.errors import InputError
from asr.text import CharacterTokenizer, Tokenizer

RATE = 8000
SPEAKERS = [f"s{number:02d}" for number in range(10)]


def sounds(folder: Path) -> list[tuple[str, str, str]]:
    """Two utterances a speaker: (path within the folder, text, speaker)."""
    made = []
    for speaker in SPEAKERS:
        (folder / speaker).mkdir(parents=True)
        for number in range(2):
            path = f"{speaker}/u{number}.wav"
            times = np.arange(RATE) / RATE
            soundfile.write(folder / path, 0.3 * np.sin(2 * np.pi * 300 * times), RATE)
            made.append((path, f"Well, number {number}!", speaker))
    return made


@pytest.fixture
def beside(tmp_path: Path) -> Path:
    folder = tmp_path / "beside"
    for path, text, _ in sounds(folder):
        (folder / path).with_suffix(".txt").write_text(text + "\n")
    return folder


def table(folder: Path, suffix: str) -> Path:
    rows = sounds(folder)[::-1]  # in no order that matters
    path = folder / f"list{suffix}"
    if suffix == ".jsonl":
        keys = ("audio_filepath", "text", "speaker")
        path.write_text(
            "".join(json.dumps(dict(zip(keys, row, strict=True))) + "\n" for row in rows)
        )
        return path
    with path.open("w", newline="") as file:
        writer = csv.writer(file, delimiter="\t" if suffix == ".tsv" else ",")
        writer.writerows([("Path", "Sentence", "client_id"), *rows])
    return path


def parts(out: Path) -> dict[str, list[manifest.Utterance]]:
    return {path.stem: manifest.read(path) for path in sorted(out.glob("*.jsonl"))}


def test_three_shapes_give_the_same(beside: Path, tmp_path: Path) -> None:
    prepare(beside, tmp_path / "out", folders_are_speakers=True, quiet=True)
    expected = parts(tmp_path / "out")
    assert {name: len(part) for name, part in expected.items()} == {
        "test": 2, "train": 16, "valid": 2,
    }  # fmt: skip
    heard = [{u.speaker for u in part} for part in expected.values()]
    assert set().union(*heard) == set(SPEAKERS) and sum(map(len, heard)) == len(SPEAKERS)
    for suffix in (".csv", ".tsv", ".jsonl"):
        path = table(tmp_path / suffix[1:], suffix)
        source = path if suffix == ".csv" else path.parent
        prepare(source, tmp_path / f"out{suffix}", quiet=True)
        found = parts(tmp_path / f"out{suffix}")
        for name, part in expected.items():
            assert [(u.id, u.text, u.speaker, u.duration) for u in found[name]] == [
                (u.id, u.text, u.speaker, u.duration) for u in part
            ]
    before = {p: (p.read_bytes(), p.stat().st_mtime_ns) for p in (tmp_path / "out").iterdir()}
    prepare(beside, tmp_path / "out", folders_are_speakers=True, quiet=True)
    assert before == {p: (p.read_bytes(), p.stat().st_mtime_ns) for p in before}


def test_without_speakers_utterances_are_split(beside: Path, tmp_path: Path) -> None:
    prepare(beside, tmp_path / "out", valid=0.2, test=0.0, quiet=True)
    assert {name: len(part) for name, part in parts(tmp_path / "out").items()} == {
        "train": 16, "valid": 4,
    }  # fmt: skip


def test_a_tables_own_splits_and_pieces(tmp_path: Path) -> None:
    rows = sounds(tmp_path)
    names = ["dev", "train", "Test", "train"]
    lines = ["wav,words,set,start,end,utt_id"]
    lines += [f'{rows[0][0]},"a, b",{split},0.25,0.75,i{n}' for n, split in enumerate(names)]
    (tmp_path / "x.csv").write_text("\n".join(lines) + "\n")
    prepare(tmp_path, tmp_path / "out", column=["text=words"], quiet=True)
    found = parts(tmp_path / "out")
    assert {name: [u.id for u in part] for name, part in found.items()} == {
        "test": ["i2"], "train": ["i1", "i3"], "valid": ["i0"],
    }  # fmt: skip
    first = found["train"][0]
    assert (first.text, first.start, first.end, first.duration) == ("a, b", 0.25, 0.75, 0.5)
    assert first.split == "train"


def test_the_report(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    folder = tmp_path / "in"
    for path, text, _ in sounds(folder):
        (folder / path).with_suffix(".txt").write_text(text)
    texts = {"s00/u0": "a very long sentence for a mere second of sound", "s01/u0": " ?! "}
    for id, text in texts.items():
        (folder / f"{id}.txt").write_text(text)
    soundfile.write(folder / "s02" / "u0.wav", np.zeros(80), RATE)
    soundfile.write(folder / "s03" / "u0.wav", np.zeros(3 * 16000), 16000)
    (folder / "s04" / "u0.txt").write_text("Ärger")
    CharacterTokenizer(" abcdefghijklmnopqrstuvwxyz0123456789").save(tmp_path / "tokenizer")
    argv = ["prepare", "folder", str(folder), "-o", str(tmp_path / "out")]
    argv += ["--tokenizer", str(tmp_path / "tokenizer"), "--longest", "2.5", "--shortest", "0.2"]
    assert main(argv) == 0
    shown = capsys.readouterr()
    assert [Path(line).stem for line in shown.out.splitlines()] == ["train", "valid", "test"]
    report = json.loads((tmp_path / "out" / "report.json").read_text())
    assert report["suspicious"] == {
        "s00/u0": ["more tokens than frames (47 needed, 25 there)"],
        "s01/u0": ["empty"],
        "s02/u0": ["too short (0.01 s)", "more tokens than frames (14 needed, 1 there)"],
        "s03/u0": ["too long (3.00 s)"],
        "s04/u0": ["the tokenizer lacks 'ä'"],
    }
    assert report["sample_rates"] == {"16000": 1, "8000": 19} and report["longest"] == 3.0
    assert sum(part["utterances"] for part in report["splits"].values()) == 20
    assert report["characters"]["ä"] == 1 and " " in report["characters"]
    for part in ("hours", "8000 Hz (19)", "suspicious: 5", "s04/u0: the tokenizer lacks 'ä'"):
        assert part in shown.err
    assert main([*argv, "--quiet"]) == 0
    assert capsys.readouterr().err == ""


def test_subwords(beside: Path, tmp_path: Path) -> None:
    prepare(beside, tmp_path / "out", subwords=15, quiet=True)
    tokenizer = Tokenizer.load(tmp_path / "out" / "tokenizer")
    assert tokenizer.vocabulary_size == 15 and not tokenizer.missing(["well number 1"])


def test_what_is_broken_is_named(
    beside: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (beside / "s00" / "u0.txt").unlink()
    (beside / "s01" / "u1.wav").write_bytes(b"no sound at all")
    argv = ["prepare", "folder", str(beside), "-o", str(tmp_path / "out")]
    assert main(argv) == 1
    error = capsys.readouterr().err
    assert error.startswith("asr: error: ") and error.count("\n") == 1
    assert "s00/u0.wav: no transcript u0.txt beside it" in error and "s01/u1.wav: " in error
    assert main([*argv, "--skip-broken"]) == 0
    assert sum(len(part) for part in parts(tmp_path / "out").values()) == 18
    assert capsys.readouterr().err.count("asr: warning: left out: ") == 2


@pytest.mark.parametrize(
    ("content", "told"),
    [
        ("audio,text\ns00/u0.wav,x\ns00/u0.wav,y\n", "x.csv:3: the id 's00/u0' was there already"),
        ("sound,text\ns00/u0.wav,x\n", "x.csv:2: no column for the audio among sound, text"),
        ("audio,text\ns00/u0.wav,x,y\n", "x.csv:2: 3 columns, the header has 2"),
        ("audio,text\ns00/u0.wav\n", "x.csv:2: 1 columns, the header has 2"),
        ("audio,text\nnowhere.wav,x\n", "nowhere.wav: no such file"),
        ("audio,text\ns00/u0.wav,\n", "x.csv:2: s00/u0: no transcript"),
        ("audio,text\n,x\n", "x.csv:2: no 'audio'"),
        ("audio,text,start\ns00/u0.wav,x,-1\n", "'-1' is not a number of seconds"),
        ("audio,text,start\ns00/u0.wav,x,7\n", "starts at 7 s, but the file lasts 1.00 s"),
        ("audio,text,split\ns00/u0.wav,x,mine\n", "the split 'mine' is none of train, valid, test"),
        ("audio,text,split\ns00/u0.wav,x,dev\n", "no utterance has the split 'train'"),
        ("", "no recordings"),
    ],
)
def test_mistakes_in_a_table(tmp_path: Path, content: str, told: str) -> None:
    sounds(tmp_path)
    (tmp_path / "x.csv").write_text(content)
    with pytest.raises(InputError) as refused:
        prepare(tmp_path, tmp_path / "out", quiet=True)
    assert told in str(refused.value) and "\n" not in str(refused.value)


def test_mistakes_in_json_lines(tmp_path: Path) -> None:
    (tmp_path / "x.jsonl").write_text("{}\n{")
    with pytest.raises(InputError, match="x.jsonl:1: no column for the audio"):
        prepare(tmp_path, tmp_path / "out")
    for wrong, told in (("{", "not JSON"), ("3", "a JSON object is expected")):
        (tmp_path / "x.jsonl").write_text(wrong)
        with pytest.raises(InputError, match=f"x.jsonl:1: {told}"):
            prepare(tmp_path, tmp_path / "out")


def test_mistakes_about_the_whole(beside: Path, tmp_path: Path) -> None:
    (tmp_path / "empty").mkdir()
    with pytest.raises(InputError, match="empty: no recordings; audio with a .txt beside each"):
        prepare(tmp_path / "empty", tmp_path / "out")
    with pytest.raises(InputError, match="--column is for tables"):
        prepare(beside, tmp_path / "out", column=["text=words"])
    with pytest.raises(InputError, match="together below 1"):
        prepare(beside, tmp_path / "out", valid=0.5, test=0.5)
    with pytest.raises(InputError, match="--tokenizer: .*no such folder"):
        prepare(beside, tmp_path / "out", tokenizer=str(tmp_path / "none"))
    for name in ("a.csv", "b.csv"):
        (beside / name).write_text("audio,text\n")
    with pytest.raises(InputError, match=r"which of a\.csv, b\.csv is meant"):
        prepare(beside, tmp_path / "out")
    with pytest.raises(InputError, match="--column x: KEY=NAME is expected"):
        prepare(beside / "a.csv", tmp_path / "out", column=["x"])
    with pytest.raises(InputError, match="--column text=words: no such column"):
        (beside / "a.csv").write_text("audio,text\ns00/u0.wav,x\n")
        prepare(beside / "a.csv", tmp_path / "out", column=["text=words"])


@pytest.mark.real_speech
def test_real_recordings(speech_folder: Path, tmp_path: Path) -> None:
    """Accented speech in the three shapes: every fiftieth utterance of speechocean762."""
    corpus = speech_folder / "corpora" / "speechocean762"
    utterances = manifest.read_tsv(corpus)[::50]
    assert len(utterances) > 50
    folder = tmp_path / "in"
    rows = []
    for u in utterances:
        (folder / u.speaker).mkdir(parents=True, exist_ok=True)
        os.symlink(u.audio, folder / u.speaker / u.audio.name)
        (folder / u.speaker / f"{u.id}.txt").write_text(u.text)
        rows.append((f"in/{u.speaker}/{u.audio.name}", u.text, u.speaker))
    prepare(folder, tmp_path / "out", folders_are_speakers=True, quiet=True)
    for suffix in (".tsv", ".jsonl"):
        lines = (
            ["\t".join(row) for row in [("audio", "text", "speaker"), *rows]]
            if suffix == ".tsv"
            else [json.dumps({"audio": a, "text": t, "speaker": s}) for a, t, s in rows]
        )
        (tmp_path / f"x{suffix}").write_text("\n".join(lines) + "\n")
        prepare(tmp_path / f"x{suffix}", tmp_path / f"out{suffix}", quiet=True)
        reports = [
            json.loads((tmp_path / name / "report.json").read_text())
            for name in ("out", f"out{suffix}")
        ]
        assert reports[0]["characters"] == reports[1]["characters"]
        assert reports[0]["longest"] == reports[1]["longest"]
    for u in (u for part in parts(tmp_path / "out").values() for u in part):
        claimed = next(x for x in utterances if x.id == u.audio.stem)
        assert u.duration == pytest.approx(claimed.duration, abs=0.05)


@pytest.mark.parametrize("name", ["train", "valid", "test"])
def test_the_source_is_not_overwritten(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    source = table(tmp_path / "own", ".jsonl").rename(tmp_path / "own" / f"{name}.jsonl")
    before = source.read_bytes()
    monkeypatch.chdir(source.parent)
    for out in (source.parent, Path("."), source.parent / ".." / "own"):
        with pytest.raises(InputError, match=f"{name}.jsonl: would be overwritten; -o must"):
            prepare(source, out, quiet=True)
    assert source.read_bytes() == before
    prepare(source, tmp_path / "out", quiet=True)


def test_something_is_left_to_train_on(beside: Path, tmp_path: Path) -> None:
    out = tmp_path / "out"
    prepare(beside, out, quiet=True)
    before = {path.name: path.read_bytes() for path in out.iterdir()}
    with pytest.raises(InputError, match="nothing is left to train on; hold out less"):
        prepare(beside, out, valid=0.9, test=0.099, quiet=True)
    assert {path.name: path.read_bytes() for path in out.iterdir()} == before
