"""The public layout of speechocean762, made up, and a manifest.tsv of the same."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
import soundfile

from asr.cli.main import main
from asr.data import manifest
from asr.data.corpora.speechocean762 import prepare
from asr.errors import InputError

SPEAKERS = {"train": ("0001", "0005", "0006"), "test": ("0003", "0024")}


@pytest.fixture
def source(tmp_path: Path) -> Path:
    """Two utterances a speaker of half a second."""
    folder = tmp_path / "speechocean762"
    sound = 0.3 * np.sin(np.arange(8000) / 8)
    for split, speakers in SPEAKERS.items():
        files: dict[str, list[str]] = {}
        for speaker in speakers:
            (folder / "WAVE" / f"SPEAKER{speaker}").mkdir(parents=True)
            files.setdefault("spk2age", []).append(f"{speaker}\t{int(speaker) + 5}")
            files.setdefault("spk2gender", []).append(f"{speaker} m")
            for number in range(2):
                id = f"{speaker}{number:05d}"
                audio = f"WAVE/SPEAKER{speaker}/{id}.WAV"
                soundfile.write(folder / audio, sound, 16000, format="WAV")
                files.setdefault("wav.scp", []).append(f"{id}\t{audio}")
                files.setdefault("text", []).append(f"{id}\tTOM LIKES  {number} PEAS")
                files.setdefault("utt2spk", []).append(f"{id} {speaker}")
        (folder / split).mkdir()
        for name, lines in files.items():
            (folder / split / name).write_text("\n".join(lines) + "\n\n")
    return folder


def parts(out: Path) -> dict[str, list[manifest.Utterance]]:
    return {path.stem: manifest.read(path) for path in sorted(out.glob("*.jsonl"))}


def test_the_public_layout(source: Path, tmp_path: Path) -> None:
    out = tmp_path / "out"
    assert main(["prepare", "speechocean762", str(source), "-o", str(out), "--valid=0.2"]) == 0
    found = parts(out)
    assert {name: len(part) for name, part in found.items()} == {"test": 4, "train": 4, "valid": 2}
    heard = {name: {u.speaker for u in part} for name, part in found.items()}
    assert heard["test"] == set(SPEAKERS["test"]) and not heard["train"] & heard["valid"]
    first = found["test"][0]
    assert (first.id, first.text, first.duration) == ("000300000", "TOM LIKES  0 PEAS", 0.5)
    assert first.audio.samefile(source / "WAVE" / "SPEAKER0003" / "000300000.WAV")
    assert first.extra == {"age": "8", "gender": "m"} and first.split == "test"
    before = {path: path.read_bytes() for path in out.iterdir()}
    prepare(source, out, valid=0.2, quiet=True)
    assert {path: path.read_bytes() for path in out.iterdir()} == before


def test_a_manifest_gives_the_same(source: Path, tmp_path: Path) -> None:
    prepare(source, tmp_path / "a", quiet=True)
    rows = ["id\taudio\tduration_s\tspeaker\tsplit\ttranscript"]
    for name, part in parts(tmp_path / "a").items():
        split = "test" if name == "test" else "train"
        rows += [f"{u.id}\t{u.audio}\t9\t{u.speaker}\t{split}\t{u.text}" for u in part]
    (tmp_path / "manifest.tsv").write_text("\n".join(rows) + "\n")
    prepare(tmp_path, tmp_path / "b", quiet=True)
    for name, part in parts(tmp_path / "a").items():
        same = [(u.id, u.text, u.speaker, u.duration) for u in parts(tmp_path / "b")[name]]
        assert sorted(same) == sorted((u.id, u.text, u.speaker, u.duration) for u in part)


def test_what_is_not_whole_is_named(
    source: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (source / "WAVE" / "SPEAKER0001" / "000100001.WAV").unlink()
    text = source / "test" / "text"
    text.write_text(text.read_text().replace("000300000\tTOM LIKES  0 PEAS\n", ""))
    argv = ["prepare", "speechocean762", str(source), "-o", str(tmp_path / "out")]
    assert main(argv) == 1
    err = capsys.readouterr().err
    assert err.startswith("asr: error: ") and err.count("\n") == 1
    assert "test/text: 000300000: no transcript" in err and "000100001.WAV" in err
    assert main([*argv, "--skip-broken", "--quiet"]) == 0
    assert sum(map(len, parts(tmp_path / "out").values())) == 8


def test_another_folder_is_refused(source: Path, tmp_path: Path) -> None:
    with pytest.raises(InputError, match="neither train/wav.scp and test/wav.scp nor a manifest"):
        prepare(source / "WAVE", tmp_path / "out")
    for name, content, told in (
        ("wav.scp", "a cat a.wav |\n", "wav.scp: a: a command; it is not run"),
        ("utt2spk", "a 1\na 2\n", "utt2spk:2: 'a' was there already"),
    ):
        before = (source / "train" / name).read_text()
        (source / "train" / name).write_text(content)
        with pytest.raises(InputError, match=told):
            prepare(source, tmp_path / "out")
        (source / "train" / name).write_text(before)
    (source / "test" / "text").unlink()
    with pytest.raises(InputError, match="test/text: cannot be read"):
        prepare(source, tmp_path / "out")
