"""The command with a real (tiny, untrained) model: the fake of the other tests tells no lies."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import pytest

from asr.inference import bundle
from asr.inference.bundle import Settings
from asr.text import CharacterTokenizer
from tests.cli.fakes import Done, sound
from tests.inference.conftest import CARD, tiny

Run = Callable[..., Done]
FORMATS = "txt,json,srt,vtt,tsv,textgrid,ctm"


@pytest.fixture(scope="module")
def model(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("bundle") / "noise"
    settings = Settings(language="en", search={"beam_size": 3, "max_tokens_per_frame": 0.25})
    bundle.save(path, tiny(), CharacterTokenizer(" abcdefgh'"), card=CARD, settings=settings)
    return path


def decoded(folder: Path, name: str) -> dict:
    return json.loads((folder / f"{name}.json").read_bytes())


def test_from_sound_to_files(asr: Run, model: Path, tmp_path: Path) -> None:
    """Loud, short, empty and broken sounds in one batch; nothing depends on the company."""
    sizes = {"long": 16000, "short": 100, "one": 1, "empty": 0}
    for name, size in sizes.items():
        sound(tmp_path / "in" / f"{name}.wav", size)
    (tmp_path / "in/broken.wav").write_bytes(b"RIFF")
    done = asr("transcribe", tmp_path / "in", "-m", model, "-o", tmp_path / "out", "-f", FORMATS)
    assert done.status == 1 and len(done.errors) == 1 and "broken.wav" in done.errors[0]
    assert "asr: noise on cpu, float32" in done.err
    assert len(list((tmp_path / "out").iterdir())) == len(sizes) * len(FORMATS.split(","))
    for name, size in sizes.items():
        found = decoded(tmp_path / "out", name)
        assert found["duration"] == round(size / 16000, 6) and found["model"]["name"] == "noise"
        assert bool(found["text"]) == bool(found["words"])
        assert all(
            0 <= word["start"] <= word["end"] <= found["duration"] for word in found["words"]
        )
        alone = tmp_path / "alone"
        asr("transcribe", tmp_path / "in" / f"{name}.wav", "-m", model, "-o", alone, "-f", "json")
        assert decoded(alone, name)["text"] == found["text"]
    assert decoded(tmp_path / "out", "long")["text"]
    assert decoded(tmp_path / "out", "empty")["warnings"][0]["code"] == "empty-audio"


def test_flags_are_what_was_really_used(asr: Run, model: Path, tmp_path: Path) -> None:
    path = sound(tmp_path / "a.wav", 32000)
    flags = ["--beam-size", "4", "--nbest", "2", "--ctc-weight", "0", "--length-bonus", "0.5",
             "--dtype", "bfloat16", "--device", "cpu", "--chunk-length", "1.25"]  # fmt: skip
    done = asr("transcribe", path, "-m", model, "-o", tmp_path / "out", *flags)
    assert done.status == 0, done.err
    found = decoded(tmp_path / "out", "a")
    wanted = {"beam_size": 4, "nbest": 2, "ctc_weight": 0.0, "length_bonus": 0.5,
              "dtype": "bfloat16", "device": "cpu", "max_piece_seconds": 1.25}  # fmt: skip
    assert found["decoding"].items() >= wanted.items()
    assert "bfloat16" in done.err


@pytest.mark.parametrize(
    ("flags", "status"),
    [
        (["-f", "json", "--nbest", "9"], 2),
        (["--device", "quantum"], 2),
        (["--device", "cuda:99"], 2),
        (["-m", "nowhere"], 1),
    ],
)
def test_what_the_model_cannot_do(
    asr: Run, model: Path, tmp_path: Path, flags: list[str], status: int
) -> None:
    path = sound(tmp_path / "a.wav")
    done = asr("transcribe", path, "-m", model, *flags)
    assert (done.status, done.out, len(done.err.splitlines())) == (status, "", 1)
    assert done.errors and flags[-1] in done.err
    if "--device" in flags:
        assert "asr: error: --device" in done.err and "auto, cpu" in done.err
