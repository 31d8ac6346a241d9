"""FSDD's preparation, on generated recordings in both layouts."""

from __future__ import annotations

import shutil
from collections import Counter
from pathlib import Path

import numpy as np
import pytest
import soundfile

from asr.data import manifest
from asr.data.corpora import fsdd
from asr.data.manifest import Utterance
from asr.data.pool import StringPool
from asr.errors import InputError

from .conftest import SPEAKERS, planted_span


def contents(folder: Path) -> dict[str, bytes]:
    return {
        str(path.relative_to(folder)): path.read_bytes()
        for path in sorted(folder.rglob("*"))
        if path.is_file()
    }


def read(out: Path) -> dict[str, list[Utterance]]:
    return {path.stem: manifest.read(path) for path in sorted(out.glob("*.jsonl"))}


@pytest.fixture(scope="module")
def prepared(tmp_path_factory: pytest.TempPathFactory, public_layout: Path) -> Path:
    out = tmp_path_factory.mktemp("prepared")
    written = fsdd.prepare(public_layout, out)
    assert sorted(written) == sorted(out.glob("*.jsonl"))
    return out


def test_the_official_split_and_what_is_held_apart(prepared: Path) -> None:
    parts = read(prepared)
    takes = {name: {int(u.id.rsplit("_", 1)[1]) for u in parts[name]}
             for name in ("pool-train", "pool-valid", "test-isolated")}  # fmt: skip
    assert takes == {"pool-train": {8, 11}, "pool-valid": {5, 6, 7}, "test-isolated": {0, 4}}
    assert [len(parts[name]) for name in takes] == [60, 90, 60]
    assert {u.split for u in parts["pool-train"]} == {"train"}
    assert {u.split for u in parts["pool-valid"]} == {"valid"}


def test_words_are_heard_where_planted(prepared: Path, public_layout: Path) -> None:
    parts = read(prepared)
    for utterance in parts["pool-train"] + parts["test-isolated"]:
        digit, _, take = utterance.id.split("_")
        (word,) = utterance.words
        assert (word.start, word.end) == pytest.approx(planted_span(int(digit), int(take)))
        assert word.word == utterance.text == fsdd.WORDS[int(digit)]
    sound, rate = soundfile.read(parts["pool-train"][0].audio, dtype="int16")
    original, _ = soundfile.read(
        public_layout / "recordings" / f"{parts['pool-train'][0].id}.wav", dtype="int16"
    )
    assert rate == 8000 and np.array_equal(sound, original)


def test_heard_span_between_frames() -> None:
    sound = np.full(1000, 1e-3, np.float32)
    sound[333:777] = 0.5
    assert fsdd.heard_span(sound, 8000) == (320, 800)
    sound[80:160] = 0.5 * 10 ** (-34 / 20)  # within 35 dB of the loudest
    sound[880:960] = 0.5 * 10 ** (-36 / 20)  # not
    assert fsdd.heard_span(sound, 8000) == (80, 800)
    for nothing in (np.zeros(1000, np.float32), np.ones(79, np.float32)):
        with pytest.raises(ValueError, match="no sound"):
            fsdd.heard_span(nothing, 8000)


def test_strings_are_balanced_and_true(prepared: Path) -> None:
    parts = read(prepared)
    for name, least, lengths in (
        ("valid", 100, range(1, 9)),
        ("test", 500, range(1, 9)),
        ("test-9-15", 100, range(9, 16)),
        ("test-16-25", 100, range(16, 26)),
    ):
        strings = parts[name]
        assert len(strings) >= least
        speakers = Counter(u.speaker for u in strings)
        counts = Counter(len(u.text.split()) for u in strings)
        assert set(speakers) == set(SPEAKERS) and len(set(speakers.values())) == 1
        assert set(counts) == set(lengths)
        assert max(counts.values()) - min(counts.values()) <= len(SPEAKERS)
        assert len({u.text for u in strings if len(u.text.split()) > 6}) > 1
    for utterance in parts["test"][::25] + parts["test-16-25"][::40]:
        sound, _ = soundfile.read(utterance.audio)
        assert utterance.duration == pytest.approx(len(sound) / 8000)
        assert [w.word for w in utterance.words] == utterance.text.split()
        frames = np.abs(sound[: len(sound) // 80 * 80]).reshape(-1, 80).max(axis=1) > 0.2
        heard = np.flatnonzero(np.diff(np.concatenate([[False], frames, [False]])))
        planted = [t for w in utterance.words for t in (w.start, w.end)]
        np.testing.assert_allclose(heard * 0.01, planted, atol=0.0101)
        for word in utterance.words:  # the tone tells digit and speaker
            tone = sound[round(word.start * 8000) : round(word.end * 8000)]
            peak = np.abs(np.fft.rfft(tone, 8000)).argmax()
            digit, number = fsdd.WORDS.index(word.word), SPEAKERS.index(utterance.speaker)
            assert abs(peak - (300 + 100 * number + 40 * digit)) < 12


def test_the_pool_is_ready_for_training(prepared: Path) -> None:
    pool = StringPool([prepared / "pool-train.jsonl"], 8000)
    assert len(pool) == 60 and pool.speakers == SPEAKERS and set(pool.words) == set(fsdd.WORDS)


@pytest.mark.usefixtures("few_strings")
class TestAgain:
    def test_both_layouts_give_the_same(
        self, tmp_path: Path, public_layout: Path, tsv_layout: Path
    ) -> None:
        fsdd.prepare(public_layout, tmp_path / "a")
        fsdd.prepare(tsv_layout, tmp_path / "b")
        assert contents(tmp_path / "a") == contents(tmp_path / "b")

    def test_twice_changes_nothing(self, tmp_path: Path, public_layout: Path) -> None:
        fsdd.prepare(public_layout, tmp_path)
        before = contents(tmp_path)
        stamps = {path: path.stat().st_mtime_ns for path in tmp_path.rglob("*.*")}
        fsdd.prepare(public_layout, tmp_path)
        assert contents(tmp_path) == before
        assert stamps == {path: path.stat().st_mtime_ns for path in tmp_path.rglob("*.*")}

    def test_an_interrupted_run_is_finished(
        self, tmp_path: Path, public_layout: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        fsdd.prepare(public_layout, tmp_path / "whole")
        write, left = manifest.write_bytes, iter(range(220))

        def interrupted(path: Path, content: bytes) -> bool:
            if next(left, None) is None:
                raise KeyboardInterrupt
            return write(path, content)

        monkeypatch.setattr(manifest, "write_bytes", interrupted)
        with pytest.raises(KeyboardInterrupt):
            fsdd.prepare(public_layout, tmp_path / "part")
        monkeypatch.setattr(manifest, "write_bytes", write)
        assert not list((tmp_path / "part").glob("*.jsonl"))
        damaged = next((tmp_path / "part" / "audio").iterdir())
        damaged.write_bytes(damaged.read_bytes()[:50])
        fsdd.prepare(public_layout, tmp_path / "part")
        assert contents(tmp_path / "part") == contents(tmp_path / "whole")

    def test_a_left_out_speaker_is_nowhere_else(self, tmp_path: Path, public_layout: Path) -> None:
        fsdd.prepare(public_layout, tmp_path)
        usual = read(tmp_path)
        assert "test-left-out" not in usual
        fsdd.prepare(public_layout, tmp_path, leave_out=["bob"])
        parts = read(tmp_path)
        unheard = parts.pop("test-left-out")
        assert {u.speaker for u in unheard} == {"bob"} and len(unheard) == 8
        assert {u.speaker for part in parts.values() for u in part} == {"ann", "cyd"}
        # A speaker's strings do not depend on the others.
        texts = {u.id: u.text for u in usual["test"]}
        assert all(texts.get(u.id, u.text) == u.text for u in parts["test"])
        fsdd.prepare(public_layout, tmp_path)
        assert read(tmp_path) == usual  # no stale strings of a speaker who is trained on again
        fsdd.prepare(public_layout, tmp_path, leave_out=["bob", "ann"])
        assert {u.speaker for u in read(tmp_path)["test-left-out"]} == {"ann", "bob"}

    def test_too_few_test_takes_are_made_up_for(self, tmp_path: Path, public_layout: Path) -> None:
        source = tmp_path / "source"
        shutil.copytree(public_layout, source)
        for path in (source / "recordings").glob("7_bob_[04].wav"):
            path.unlink()
        fsdd.prepare(source, tmp_path / "out", leave_out=["bob"])
        texts = " ".join(u.text for u in read(tmp_path / "out")["test-left-out"])
        assert "seven" in texts.split()

    def test_a_source_of_test_recordings_alone(
        self, tmp_path: Path, public_layout: Path, caplog: pytest.LogCaptureFixture
    ) -> None:
        (tmp_path / "source" / "recordings").mkdir(parents=True)
        for path in (public_layout / "recordings").glob("*_ann_[04].wav"):
            shutil.copy(path, tmp_path / "source" / "recordings")
        written = fsdd.prepare(tmp_path / "source", tmp_path / "out")
        assert [path.stem for path in written] == ["test-isolated", "test"]
        assert "pool-train.jsonl: the source has no recordings for it" in caplog.text

    def test_broken_recordings_are_all_named(self, tmp_path: Path, public_layout: Path) -> None:
        source = tmp_path / "source"
        shutil.copytree(public_layout, source)
        for name, content in (("3_ann_4", b"RIFF"), ("4_bob_0", b""), ("5_cyd_8", b"x" * 99)):
            (source / "recordings" / f"{name}.wav").write_bytes(content)
        soundfile.write(source / "recordings" / "6_ann_0.wav", np.zeros(4000), 8000)
        with pytest.raises(InputError) as caught:
            fsdd.prepare(source, tmp_path / "out")
        for told in ("3_ann_4.wav", "6_ann_0.wav: silent", "4_bob_0.wav", "and 1 more"):
            assert told in str(caught.value)
        assert not list((tmp_path / "out").glob("*.jsonl"))


def test_sources_that_are_none(tmp_path: Path, tsv_layout: Path) -> None:
    with pytest.raises(InputError, match="neither recordings/"):
        fsdd.prepare(tmp_path, tmp_path / "out")
    (tmp_path / "recordings").mkdir()
    with pytest.raises(InputError, match="no recordings"):
        fsdd.prepare(tmp_path, tmp_path / "out")
    (tmp_path / "recordings" / "nine-ann.wav").write_bytes(b"")
    with pytest.raises(
        InputError, match=r"nine-ann\.wav: the name must be <digit>_<speaker>_<take>"
    ):
        fsdd.prepare(tmp_path, tmp_path / "out")
    with pytest.raises(
        InputError, match="no speaker dan to leave out; the speakers are ann, bob, cyd"
    ):
        fsdd.prepare(tsv_layout, tmp_path / "out", leave_out=["dan"])
    (tmp_path / "manifest.tsv").write_text(
        "id\taudio\tduration_s\tspeaker\tsplit\ttranscript\nx\tx.wav\t1\tann\ttest\tten\n"
    )
    with pytest.raises(
        InputError, match=r"manifest\.tsv: x: the transcript must be one of zero, one"
    ):
        fsdd.prepare(tmp_path, tmp_path / "out")
