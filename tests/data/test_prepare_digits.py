from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest
import soundfile

from asr.data import manifest
from asr.data.corpora import digits
from asr.data.pool import StringPool
from asr.errors import InputError

RATE = 8000


@pytest.fixture
def corpus(tmp_path: Path) -> Path:
    """Strings whose samples are 0.1 x the word's number, at known times."""
    folder = tmp_path / "corpus"
    rows = []
    for split in ("train", "valid", "test"):
        (folder / split).mkdir(parents=True)
        sound = np.zeros(RATE)
        sound[800:2400], sound[2480:4000] = 0.1, 0.2
        soundfile.write(folder / split / "a.wav", sound, RATE, subtype="FLOAT")
        times = [("one", 0.1, 0.3), ("two", 0.31, 0.5)]
        words = [{"word": word, "start": start, "end": end} for word, start, end in times]
        row = {"id": split, "audio": f"{split}/a.wav", "duration": 1.0, "text": "one two"}
        rows.append(row | {"speaker": "ann", "split": split, "words": words, "engine": "flite"})
    (folder / "manifest.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    return folder


def test_words_become_a_pool(corpus: Path, tmp_path: Path) -> None:
    out = tmp_path / "out"
    written = digits.prepare(corpus, out)
    assert [path.name for path in written] == [
        "pool-train.jsonl", "pool-train-flite.jsonl", "test.jsonl", "train.jsonl", "valid.jsonl",
    ]  # fmt: skip
    pieces = manifest.read(out / "pool-train.jsonl")
    assert [u.id for u in pieces] == ["train-0", "train-1"] and pieces[0].extra["engine"] == "flite"
    # 20 ms on either side, but only half of the 10 ms between the two.
    spans = [time for u in pieces for time in (u.start, u.end)]
    assert spans == pytest.approx([0.08, 0.305, 0.305, 0.52])
    pool = StringPool(out / "pool-train.jsonl", RATE)
    for clip, value in zip(pool.clips, (0.1, 0.2), strict=True):
        assert np.abs(clip.samples[clip.onset : clip.offset] - value).max() < 1e-4
        assert clip.samples[clip.onset - 1] == 0 and clip.samples[clip.offset] == 0


def test_strings_stay_as_they_are(corpus: Path, tmp_path: Path) -> None:
    digits.prepare(corpus, tmp_path / "out")
    (given,) = [u for u in manifest.read(corpus / "manifest.jsonl") if u.split == "test"]
    assert manifest.read(tmp_path / "out" / "test.jsonl") == [given]


def test_twice_gives_the_same(corpus: Path, tmp_path: Path) -> None:
    written = digits.prepare(corpus, tmp_path / "out")
    before = [path.read_bytes() for path in written]
    assert [path.read_bytes() for path in digits.prepare(corpus, tmp_path / "out")] == before


def test_bad_sources(corpus: Path, tmp_path: Path) -> None:
    with pytest.raises(InputError, match=r"manifest\.jsonl: cannot be read"):
        digits.prepare(tmp_path, tmp_path / "out")
    lines = (corpus / "manifest.jsonl").read_text().splitlines()
    (corpus / "manifest.jsonl").write_text("\n".join(lines[:2]))
    with pytest.raises(InputError, match="no utterances with the split 'test'"):
        digits.prepare(corpus, tmp_path / "out")
    (corpus / "manifest.jsonl").write_text(
        "\n".join(lines).replace('"two", "start"', '"to", "start"')
    )
    with pytest.raises(InputError, match="train: 'words' must be the words of 'text'"):
        digits.prepare(corpus, tmp_path / "out")
    (corpus / "valid" / "a.wav").unlink()
    with pytest.raises(InputError, match=r"valid/a\.wav: no such file"):
        digits.prepare(corpus, tmp_path / "out")
