"""TextGrids as a reader of others' making finds them, whatever the words and their times."""

from __future__ import annotations

import random
from pathlib import Path
from urllib.parse import unquote

import pytest

from asr.cli import writers
from asr.types import Transcript, Word

textgrid = pytest.importorskip("praatio.textgrid", reason="praatio reads what Praat reads")

TEXTS = ("a", '"quoted"', '"', "it's", "<b>", "après", "你好", "a\nb", "nul\0", "\u2028", "", " ")


def spoken(seed: int) -> Transcript:
    """Words without order to their lengths: of nothing, of microseconds, back to back, apart."""
    chance = random.Random(seed)
    duration = chance.choice([0.0, 1e-5, 4e-4, 1e-3, 0.3, 5.0, 3600.123456789])
    at, words = 0.0, []
    for _ in range(chance.choice([0, 1, 3, 20])):
        start = min(duration, at + chance.choice([0.0, 0.0, 1e-7, 1e-5, 0.2 * chance.random()]))
        at = min(duration, start + chance.choice([0.0, 1e-6, 5e-4, 0.3 * chance.random()]))
        words.append(Word(chance.choice(TEXTS), start, at, chance.random()))
    return Transcript("a b", " ".join(w.word for w in words), tuple(words), duration)


@pytest.mark.parametrize("seed", range(40))
def test_praatio_reads_every_textgrid(tmp_path: Path, seed: int) -> None:
    said = spoken(seed)
    writers.write(tmp_path / "x.textgrid", said, "textgrid")
    read = textgrid.openTextgrid(
        str(tmp_path / "x.textgrid"), includeEmptyIntervals=True, reportingMode="error"
    )
    assert read.tierNames == ("segments", "words")
    for tier in map(read.getTier, read.tierNames):
        assert tier.minTimestamp == 0
        assert tier.maxTimestamp == pytest.approx(max(said.duration, 1e-3), abs=1e-6)
        assert all(entry.start < entry.end for entry in tier.entries)
    found = " ".join(entry.label for entry in read.getTier("words").entries).split()
    assert found == " ".join(word.word for word in said.words).replace("\0", "").split()


@pytest.mark.parametrize("seed", range(40))
def test_every_row_of_a_ctm_has_its_columns(seed: int) -> None:
    said = spoken(seed)
    rows = writers.FORMATS["ctm"](said, False).split("\n")
    assert rows.pop() == "" and len(rows) == len(said.words)
    assert all(len(row.split()) == 6 for row in rows)
    assert {unquote(row.split()[0]) for row in rows} <= {said.id}
