"""The report says what is broken, and the exit status with it."""

from __future__ import annotations

import json
from collections.abc import Callable

import pytest
import soundfile

from tests.cli.fakes import Done, FakeTranscriber

Run = Callable[..., Done]


def test_all_is_well(asr: Run, fake: type[FakeTranscriber]) -> None:
    done = asr("doctor")
    lines = done.out.splitlines()
    assert done.status == 0 and lines[-1] == "everything works"
    assert all(line.startswith("ok ") for line in lines[:-1])
    shown = " ".join(done.out.split())
    for part in ("python 3.", "torch 2.", "mp4 aac decodes", "ogg opus decodes", "devices cpu",
                 "threads torch uses", "float32", "starter model fake: loads in"):  # fmt: skip
        assert part in shown


def test_what_is_broken_is_named(
    asr: Run, fake: type[FakeTranscriber], monkeypatch: pytest.MonkeyPatch
) -> None:
    def broken(*arguments: object, **keywords: object) -> None:
        raise RuntimeError("libsndfile\nis damaged")

    monkeypatch.setattr(soundfile, "write", broken)
    monkeypatch.setattr(fake, "__call__", broken)
    done = asr("doctor", "--json")
    report = json.loads(done.out)
    assert done.status == 1 and report["ok"] is False
    failed = {check["name"]: check["detail"] for check in report["checks"] if not check["ok"]}
    assert failed.keys() == {
        "wav pcm_16", "flac pcm_16", "ogg vorbis", "ogg opus", "mp3 mpeg_layer_iii", "starter model"
    }  # fmt: skip
    assert set(failed.values()) == {"libsndfile is damaged"}
    assert "broken: wav pcm_16, " in asr("doctor").out


def test_a_starter_model_that_is_missing(asr: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("asr.inference.transcriber.STARTER", "/nowhere/starter")
    done = asr("doctor")
    assert done.status == 1
    assert "FAIL  starter model" in done.out and "/nowhere/starter" in done.out
