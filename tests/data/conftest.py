"""Small corpora of tones whose truth is planted."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
import soundfile

from asr.data.corpora import fsdd
from asr.text import CharacterTokenizer

SPEAKERS = ("ann", "bob", "cyd")
TAKES = (0, 4, 5, 6, 7, 8, 11)  # as many as make every part, 11 to sort after 8


def planted_span(digit: int, take: int) -> tuple[float, float]:
    """Where the recordings of :func:`public_layout` are heard, in seconds."""
    return 0.01 * (1 + take % 4), 0.01 * (1 + take % 4 + 5 + digit % 3)


@pytest.fixture(scope="session")
def public_layout(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The public repository's layout: tones at 8 kHz in a hiss 50 dB below them."""
    folder = tmp_path_factory.mktemp("public")
    (folder / "recordings").mkdir()
    rng = np.random.default_rng(5)
    for number, speaker in enumerate(SPEAKERS):
        for digit in range(10):
            for take in TAKES:
                start, end = planted_span(digit, take)
                times = np.arange(round((end + 0.03) * 8000)) / 8000
                heard = (times >= start) & (times < end)
                tone = np.sin(2 * np.pi * (300 + 100 * number + 40 * digit) * times)
                hiss = rng.standard_normal(len(times)) * 10 ** (-50 / 20) * 0.35
                path = folder / "recordings" / f"{digit}_{speaker}_{take}.wav"
                soundfile.write(path, 0.5 * (tone * heard + hiss), 8000)
    return folder


@pytest.fixture(scope="session")
def tsv_layout(tmp_path_factory: pytest.TempPathFactory, public_layout: Path) -> Path:
    """The same recordings, with a manifest.tsv that lists them in no special order."""
    folder = tmp_path_factory.mktemp("tsv")
    rows = ["id\taudio\tduration_s\tspeaker\tsplit\ttranscript"]
    for path in sorted((public_layout / "recordings").iterdir(), reverse=True):
        digit, speaker, take = path.stem.split("_")
        split = "test" if int(take) < 5 else "train"
        audio = f"{split}/{path.name}"
        (folder / split).mkdir(exist_ok=True)
        (folder / audio).write_bytes(path.read_bytes())
        word = fsdd.WORDS[int(digit)]
        rows.append(f"{path.stem}\t{audio}\t0.1\t{speaker}\t{split}\t{word}")
    (folder / "manifest.tsv").write_text("\n".join(rows) + "\n")
    return folder


@pytest.fixture
def few_strings(monkeypatch: pytest.MonkeyPatch) -> None:
    """Preparation in a moment: fewer strings of each set."""
    monkeypatch.setattr(fsdd, "_VALID", fsdd.Strings("valid", 6, 1, 8))
    monkeypatch.setattr(fsdd, "_TESTS", (fsdd.Strings("test", 12, 1, 8),))
    monkeypatch.setattr(fsdd, "_UNHEARD", fsdd.Strings("test-left-out", 8, 1, 8))


@pytest.fixture
def letters() -> CharacterTokenizer:
    return CharacterTokenizer(" abcdefghijklmnopqrstuvwxyz'")
