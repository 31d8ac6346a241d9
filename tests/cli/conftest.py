"""The command run inside this process, with a recogniser that answers at once."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
import soundfile

from asr.cli.main import main
from asr.inference import bundle
from asr.inference.bundle import Settings
from asr.text import CharacterTokenizer
from tests.cli.fakes import Done, FakeTranscriber
from tests.inference.conftest import CARD, tiny


@pytest.fixture
def fake(monkeypatch: pytest.MonkeyPatch) -> type[FakeTranscriber]:
    """The recogniser that every command of this test loads."""
    monkeypatch.setattr("asr.inference.transcriber.Transcriber", FakeTranscriber)
    monkeypatch.setattr(FakeTranscriber, "built", {})
    monkeypatch.setattr(FakeTranscriber, "calls", [])
    return FakeTranscriber


@pytest.fixture
def there(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The current folder."""
    monkeypatch.chdir(tmp_path)
    return tmp_path


@pytest.fixture
def asr(capsys: pytest.CaptureFixture[str]) -> Callable[..., Done]:
    """Run ``asr`` with the given arguments; never a traceback."""

    def run(*arguments: str | Path) -> Done:
        capsys.readouterr()
        status = main([str(each) for each in arguments])
        out, err = capsys.readouterr()
        assert "Traceback" not in err
        return Done(status, out, err)

    return run


@pytest.fixture(scope="session")
def noise_model(tmp_path_factory: pytest.TempPathFactory) -> str:
    """A bundle that listens in pieces of at most 2 seconds."""
    path = tmp_path_factory.mktemp("bundle") / "noise"
    settings = Settings(search={"beam_size": 2, "max_tokens_per_frame": 0.4}, max_piece_seconds=2.0)
    bundle.save(path, tiny(), CharacterTokenizer(" abcdefgh'"), card=CARD, settings=settings)
    return str(path)


@pytest.fixture
def sounds(tmp_path: Path) -> Path:
    """Two recordings of noise, and a manifest of both."""
    folder = tmp_path / "sounds"
    folder.mkdir()
    generator = np.random.default_rng(0)
    for name, seconds in (("one", 0.8), ("two", 0.5)):
        samples = 0.1 * generator.standard_normal(int(16000 * seconds))
        soundfile.write(folder / f"{name}.wav", samples, 16000)
    rows = [
        {"id": "u/1", "audio": "one.wav", "text": "a bad cab"},
        {"id": "u/2", "audio": "two.wav", "text": ""},
    ]
    (folder / "m.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    return folder


@pytest.fixture
def ask(
    noise_model: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> Callable[..., tuple[int, str, str]]:
    """Runs inspect in an empty folder; returns (status, stdout, stderr)."""
    (tmp_path / "out").mkdir()
    monkeypatch.chdir(tmp_path / "out")

    def run(*words: object) -> tuple[int, str, str]:
        status = main(["inspect", "-m", noise_model, *map(str, words)])
        out, err = capsys.readouterr()
        assert "Traceback" not in err
        return status, out, err

    return run
