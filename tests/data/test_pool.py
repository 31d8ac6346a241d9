from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
import soundfile

from asr.data import manifest
from asr.data.manifest import Utterance, WordTime
from asr.data.pool import Clip, StringPool
from asr.errors import InputError


def clip(word: str, speaker: str, value: float = 0.5, length: int = 100) -> Clip:
    return Clip(word, speaker, np.full(length, value, np.float32), 10, length - 10)


def test_words_are_cut_from_longer_files(tmp_path: Path) -> None:
    ramp = np.arange(800) / 1000
    soundfile.write(tmp_path / "long.wav", ramp, 8000, subtype="FLOAT")
    heard = (WordTime("two", 0.0025, 0.01),)
    manifest.write(
        tmp_path / "pool.jsonl",
        [
            Utterance(
                "b", tmp_path / "long.wav", 0.02, "two", "ann", words=heard, start=0.05, end=0.07
            ),
            Utterance("a", tmp_path / "long.wav", 0.1, "one", "ann"),
        ],
    )
    pool = StringPool(tmp_path / "pool.jsonl", 8000)
    assert [(c.word, c.onset, c.offset) for c in pool.clips] == [("one", 0, 800), ("two", 20, 80)]
    np.testing.assert_allclose(pool.clips[0].samples, ramp, atol=1e-6)
    np.testing.assert_allclose(pool.clips[1].samples, ramp[400:560], atol=1e-6)
    assert StringPool([tmp_path / "pool.jsonl"], 4000).lengths.tolist() == [400, 80]


@pytest.mark.parametrize(
    ("entry", "told"),
    [
        ({"text": "one two", "speaker": "ann"}, "one word is expected, not 'one two'"),
        ({"text": "", "speaker": "ann"}, "one word is expected"),
        ({"text": "one"}, "no speaker"),
        ({"text": "one", "speaker": "ann", "start": 5.0}, "no sound between"),
    ],
)
def test_what_is_no_word_is_named(tmp_path: Path, entry: dict, told: str) -> None:
    soundfile.write(tmp_path / "a.wav", np.ones(80), 8000)
    manifest.write(
        tmp_path / "pool.jsonl",
        [Utterance(id="a7", audio=tmp_path / "a.wav", duration=0.01, **entry)],
    )
    with pytest.raises(InputError, match=f"a7: .*{told}"):
        StringPool(tmp_path / "pool.jsonl", 8000)


def test_an_empty_pool_is_named(tmp_path: Path) -> None:
    manifest.write(tmp_path / "pool.jsonl", [])
    with pytest.raises(InputError, match=r"pool\.jsonl: no words"):
        StringPool(tmp_path / "pool.jsonl", 8000)


def test_a_drawn_string_is_one_speakers_words() -> None:
    # Speakers know unlike numbers of words, and have unlike numbers of recordings of them.
    clips = [clip("one", "ann")] * 1 + [clip("two", "ann")] * 9 + [clip("three", "bob")] * 40
    pool = StringPool.of(clips, 8000)
    rng = np.random.default_rng(0)
    counts = rng.integers(1, 6, 3000)
    draw = pool.draw(rng, counts)
    speakers, words = [], []
    for row, count in zip(draw.clips, draw.words, strict=True):
        said = [pool.clips[number] for number in row[:count]]
        assert len({c.speaker for c in said}) == 1
        speakers.append(said[0].speaker)
        words += [c.word for c in said if c.speaker == "ann"]
    assert draw.words.tolist() == counts.tolist()
    assert abs(speakers.count("ann") / 3000 - 0.5) < 0.05
    assert abs(words.count("one") / len(words) - 0.5) < 0.05
    assert {pool.clips[n].speaker for n in pool.draw(rng, counts, "bob").clips.flat} == {"bob"}


def test_shares_say_how_often_each_manifest_is_heard(tmp_path: Path) -> None:
    soundfile.write(tmp_path / "a.wav", np.ones(80), 8000)
    for name, speakers in (("few", ["ann"]), ("many", ["bob", "cyd", "dan", "eve"])):
        manifest.write(
            tmp_path / f"{name}.jsonl",
            [Utterance(s, tmp_path / "a.wav", 0.01, "one", s) for s in speakers],
        )
    paths = [tmp_path / "few.jsonl", tmp_path / "many.jsonl"]
    pool = StringPool(paths, 8000, shares=[2.0, 1.0])
    draw = pool.draw(np.random.default_rng(0), np.ones(6000, dtype=np.int64))
    heard = [pool.clips[number].speaker for number in draw.clips[:, 0]]
    assert heard.count("ann") == pytest.approx(4000, abs=150)
    for speaker in ("bob", "cyd", "dan", "eve"):
        assert heard.count(speaker) == pytest.approx(500, abs=100)
    for shares in ([1.0], [1.0, 0.0]):
        with pytest.raises(ValueError, match="shares="):
            StringPool(paths, 8000, shares=shares)
