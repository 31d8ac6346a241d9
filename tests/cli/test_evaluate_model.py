"""Decoding a manifest and scoring it is the same as transcribing first and scoring the files."""

from __future__ import annotations

import json
import random
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from asr.data import manifest
from asr.inference import bundle
from asr.inference.bundle import Settings
from asr.text import CharacterTokenizer
from tests.cli.fakes import Done, sound
from tests.inference.conftest import CARD, tiny

Run = Callable[..., Done]


@pytest.fixture(scope="module")
def model(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("bundle") / "noise"
    settings = Settings(language="en", search={"beam_size": 2, "max_tokens_per_frame": 0.25})
    bundle.save(path, tiny(), CharacterTokenizer(" abcdefgh'"), card=CARD, settings=settings)
    return path


@pytest.fixture
def corpus(tmp_path: Path) -> Path:
    """Sounds of many lengths, an empty one and a piece of a longer one among them, and one that
    cannot be read."""
    generator = random.Random(0)
    rows = []
    for index, size in enumerate([16000, 100, 0, 5000, 9000, 12000, 3000]):
        path = sound(tmp_path / f"{index}.wav", size)
        text = " ".join("".join(generator.choices("abcdefgh", k=3)) for _ in range(index))
        rows.append(
            {"id": f"u/{index}", "audio": path.name, "text": text, "speaker": f"s{index % 3}"}
        )
    rows[4] |= {"start": 0.1, "end": 0.4}
    (tmp_path / "broken.wav").write_bytes(b"RIFF")
    rows.append({"id": "broken", "audio": "broken.wav", "text": "a b", "speaker": "s0"})
    path = tmp_path / "manifest.jsonl"
    path.write_text("\n".join(map(json.dumps, rows)), encoding="utf-8")
    assert len(manifest.read(path, needs=("text",))) == 8
    return path


def report(path: Path) -> dict[str, object]:
    """What is scored, without where it came from."""
    content = json.loads(path.read_text(encoding="utf-8"))
    origin = ("references", "hypotheses", "model", "decoding", "failed")
    return {key: value for key, value in content.items() if key not in origin}


def close(one: Any, other: Any) -> bool:
    """The same but for the last decimals of numbers."""
    if isinstance(one, dict):
        return one.keys() == other.keys() and all(close(one[key], other[key]) for key in one)
    if isinstance(one, list):
        return len(one) == len(other) and all(map(close, one, other))
    return one == (pytest.approx(other, abs=1e-3) if isinstance(one, float) else other)


@pytest.mark.parametrize("written", ["folder", "stdout"])
@pytest.mark.parametrize("normalizer", ["none", "basic"])
def test_to_the_last_count(
    asr: Run, model: Path, corpus: Path, tmp_path: Path, written: str, normalizer: str
) -> None:
    flags = ["--normalizer", normalizer, "--group", "speaker", "--json"]
    at_once = asr("evaluate", corpus, "-m", model, *flags, tmp_path / "a.json")
    assert at_once.status == 1 and len(at_once.errors) == 1  # the broken one, counted as deleted
    hypotheses = tmp_path / "hyp"
    if written == "folder":
        done = asr("transcribe", corpus, "-m", model, "-o", hypotheses, "-f", "json,txt")
    else:
        done = asr("transcribe", corpus, "-m", model)
        hypotheses.write_text(done.out, encoding="utf-8")
    assert done.status == 1
    later = asr("evaluate", "--ref", corpus, "--hyp", hypotheses, *flags, tmp_path / "b.json")
    assert later.status == 0, later.err
    first, second = report(tmp_path / "a.json"), report(tmp_path / "b.json")
    calibrated = first.pop("calibration"), second.pop("calibration", None)
    if written == "folder":  # standard output has no confidences, JSON four decimals of them
        assert close(*calibrated)
    assert first["missing"] == ["broken"] and first["insertions"]
    assert first == second
    assert at_once.out == later.out
