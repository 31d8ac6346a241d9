"""The recipe's preparation as a user runs it, on generated and on real recordings."""

from __future__ import annotations

import os
import subprocess
import sys
from collections import Counter
from pathlib import Path

import numpy as np
import pytest
import soundfile

from asr.data import manifest
from asr.data.corpora.fsdd import WORDS
from asr.data.pool import StringPool
from asr.data.strings import StringDataset
from asr.text import CharacterTokenizer

REPOSITORY = Path(__file__).parents[2]


def run(*arguments: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, str(REPOSITORY / "recipes" / "fsdd" / "prepare.py"), *arguments],
        capture_output=True,
        text=True,
        check=False,
        env=os.environ | {"PYTHONPATH": str(REPOSITORY)},
    )


def test_a_clone_of_the_public_repository(tmp_path: Path) -> None:
    (tmp_path / "clone" / "recordings").mkdir(parents=True)
    times = np.arange(400) / 8000
    for digit in range(10):
        for take in (0, 5, 6, 7, 8):
            path = tmp_path / "clone" / "recordings" / f"{digit}_ann_{take}.wav"
            soundfile.write(path, 0.5 * np.sin(2 * np.pi * (300 + 50 * digit) * times), 8000)
    out = tmp_path / "out"
    done = run("--source", str(tmp_path / "clone"), "-o", str(out))
    assert done.returncode == 0, done.stderr
    assert [Path(line).stem for line in done.stdout.splitlines()] == [
        "pool-train", "pool-valid", "test-isolated", "valid", "test", "test-9-15", "test-16-25",
    ]  # fmt: skip
    assert len(manifest.read(out / "test.jsonl")) == 500
    wrong = run("--source", str(tmp_path / "none"), "-o", str(out))
    assert wrong.returncode == 1 and "Traceback" not in wrong.stderr
    assert "none: no such folder" in wrong.stderr
    assert run().returncode == 2


@pytest.mark.real_speech
def test_real_recordings(tmp_path: Path, speech_folder: Path) -> None:
    source = speech_folder / "corpora" / "fsdd"
    speakers = sorted({u.speaker for u in manifest.read_tsv(source)})
    done = run("--source", str(source), "-o", str(tmp_path), "--leave-out", speakers[0])
    assert done.returncode == 0, done.stderr
    parts = {path.stem: manifest.read(path) for path in tmp_path.glob("*.jsonl")}
    assert {u.speaker for u in parts.pop("test-left-out")} == set(speakers[:1])
    assert {u.speaker for part in parts.values() for u in part} == set(speakers[1:])
    assert len(parts["test"]) >= 500 and len(parts["pool-train"]) == 420 * (len(speakers) - 1)
    assert set(Counter(u.text for u in parts["test-isolated"])) == set(WORDS)
    for word in (u.words[0] for u in parts["pool-train"]):
        assert 0 <= word.start < word.end and word.end - word.start < 2.5
    pool = StringPool(tmp_path / "pool-train.jsonl", 8000)
    letters = CharacterTokenizer(" abcdefghijklmnopqrstuvwxyz")
    batch = StringDataset(pool, letters, batches=10)[9]
    assert batch.waves.isfinite().all() and batch.waves.abs().max() <= 1
    assert max(len(text.split()) for text in batch.references) <= 8
