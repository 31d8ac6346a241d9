"""Single digits cut out of utterances: against strings whose word times are known."""

from dataclasses import replace
from pathlib import Path

import pytest

from asr.data import manifest
from asr.inference.transcriber import STARTER
from recipes.speechocean762 import digits

CORPUS = Path(__file__).parents[2] / "recipes" / "digits" / "corpus" / "manifest.jsonl"
FEW = slice(3, None, 90)


def test_words_are_cut_where_they_are(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    known = [u for u in manifest.read(CORPUS) if u.split == "train" and len(u.words) > 1][FEW]
    assert len(known) > 4
    other = replace(known[0], id="other", text="one house")
    source, out = tmp_path / "in.jsonl", tmp_path / "pool.jsonl"
    manifest.write(source, [*(replace(u, words=()) for u in known), other])
    assert digits.main([str(source), "-m", str(STARTER), "-o", str(out)]) == 0
    pool = manifest.read(out)
    true = {f"{u.id}-{n}": word for u in known for n, word in enumerate(u.words)}
    assert {word.id for word in pool} <= true.keys() and len(pool) > 0.9 * len(true)
    near = 0
    for word in pool:
        expected, (heard,) = true[word.id], word.words
        assert word.text == heard.word == expected.word and word.speaker
        assert 0 <= word.start < word.end and word.duration == pytest.approx(
            word.end - word.start, abs=0.002
        )
        middle = (expected.start + expected.end) / 2
        near += word.start < middle < word.end
        near += word.start < expected.start + 0.2 and word.end > expected.end - 0.2
    assert near > 1.9 * len(pool)
    assert f"{len(pool)} words of {len(known)} utterances" in capsys.readouterr().out


def test_nothing_to_cut(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    source = tmp_path / "in.jsonl"
    manifest.write(source, [replace(manifest.read(CORPUS)[0], text="a house", words=())])
    argv = [str(source), "-m", str(STARTER), "-o", str(tmp_path / "pool.jsonl")]
    assert digits.main(argv) == 1
    assert "no utterance consists of digits alone" in capsys.readouterr().err
    assert not (tmp_path / "pool.jsonl").exists()
