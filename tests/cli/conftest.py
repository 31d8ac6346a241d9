"""The command run inside this process, with a recogniser that answers at once."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from asr.cli.main import main
from tests.cli.fakes import Done, FakeTranscriber


@pytest.fixture
def fake(monkeypatch: pytest.MonkeyPatch) -> type[FakeTranscriber]:
    """The recogniser that every command of this test loads."""
    monkeypatch.setattr("asr.inference.transcriber.Transcriber", FakeTranscriber)
    monkeypatch.setattr(FakeTranscriber, "built", {})
    monkeypatch.setattr(FakeTranscriber, "calls", [])
    return FakeTranscriber


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
