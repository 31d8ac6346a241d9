"""Word times found, and sentences cut by them: against strings whose word times are known."""

import builtins
import itertools
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import soundfile

from asr import audio
from asr.data import manifest
from asr.data.manifest import Utterance
from asr.data.pool import StringPool
from recipes.aligning import align, pieces, words

CORPUS = Path(__file__).parents[2] / "recipes" / "digits" / "corpus" / "manifest.jsonl"
FEW = slice(3, None, 90)


def known() -> list[Utterance]:
    return [u for u in manifest.read(CORPUS) if u.split == "train" and len(u.words) > 1][FEW]


def samples_of(utterance: Utterance, rate: int) -> np.ndarray:
    return audio.load(utterance.audio, rate).samples.numpy()


def test_words_are_found_where_they_are() -> None:
    pytest.importorskip("pocketsphinx")
    find, off = align.Aligner(), []
    for utterance in known():
        found = find(samples_of(utterance, align.RATE), [word.word for word in utterance.words])
        assert all(a.end <= b.start for a, b in itertools.pairwise(found))
        for word, true in zip(found, utterance.words, strict=False):
            assert word.word == true.word and 0 <= word.start < word.end
            off += [abs(word.start - true.start), abs(word.end - true.end)]
    assert len(off) > 40 and np.median(off) < 0.05 and np.mean(np.array(off) < 0.15) > 0.9


def test_words_that_do_not_fit_the_sound() -> None:
    pytest.importorskip("pocketsphinx")
    find = align.Aligner()
    assert find(np.zeros(1600, np.float32), ["nine"] * 9) == ()
    assert find(np.zeros(0, np.float32), ["nine"]) == find(np.zeros(800, np.float32), []) == ()
    # The next one is heard as if nothing had been.
    utterance = known()[0]
    said = [word.word for word in utterance.words]
    assert [word.word for word in find(samples_of(utterance, align.RATE), said)] == said


def test_a_manifest_with_word_times(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """A piece of a longer file, a word that no dictionary has, a text that was not said."""
    pytest.importorskip("pocketsphinx")
    first, second, third = known()[:3]
    begin = first.words[1].start - 0.05
    rows = [
        replace(first, start=begin, text=first.text.split(" ", 1)[1]),
        replace(second, text=f"Xqvz-{second.text}!"),
        replace(third, end=0.2, text="nine " * 9),
    ]
    source = tmp_path / "some.jsonl"
    manifest.write(source, [replace(row, words=()) for row in rows])
    assert align.main([str(source), "-o", str(tmp_path / "out")]) == 0
    told = capsys.readouterr()
    assert "2 of 3 utterances aligned" in told.out and third.id in told.err
    found = manifest.read(tmp_path / "out" / "some.jsonl")
    assert [replace(u, words=()) for u in found] == manifest.read(source)
    assert found[0].words[0].start == pytest.approx(0.05, abs=0.1)
    assert [word.word for word in found[1].words] == ["xqvz", *second.text.split()]
    assert found[2].words == ()


@pytest.mark.parametrize("rate", [8000, 16000])
def test_digits_cut_out(tmp_path: Path, capsys: pytest.CaptureFixture[str], rate: int) -> None:
    rows = known()[:3]
    begin = rows[0].words[1].start - 0.05
    rest = [
        replace(word, start=word.start - begin, end=word.end - begin) for word in rows[0].words[1:]
    ]
    rows[0] = replace(rows[0], start=begin, words=tuple(rest))
    rows[1] = replace(rows[1], words=tuple(replace(w, word="house") for w in rows[1].words))
    source = tmp_path / "in.jsonl"
    manifest.write(source, rows)
    argv = [str(source), "-o", str(tmp_path), "--name", "some", "--rate", str(rate)]
    assert words.main(argv) == 0
    pool = manifest.read(tmp_path / "pool-some.jsonl")
    assert f"{len(pool)} words" in capsys.readouterr().out
    true = {f"{u.id}-{n}": (u, word) for u in rows for n, word in enumerate(u.words)}
    long = {
        id
        for id, (_, word) in true.items()
        if word.word != "house"
        and words.LETTER * len(word.word) <= round(word.end - word.start, 6) <= words.LONGEST
    }
    cuts = {word.id.rsplit("-", 2)[0]: word for word in pool}  # the rest says from when to when
    assert len(pool) > 4 and cuts.keys() == long
    for id, word in cuts.items():
        utterance, expected = true[id]
        (heard,) = word.words
        assert word.text == heard.word == expected.word and word.speaker == "some"
        sound, found = soundfile.read(word.audio, dtype="float32")
        assert found == rate and word.duration == pytest.approx(len(sound) / rate, abs=1e-5)
        assert abs(sound[[0, -1]]).max() < 1e-3
        # The cut is that stretch of the original, but for its loudness.
        whole = samples_of(utterance, rate)
        size = round((expected.end - expected.start) * rate)
        inside = sound[round(heard.start * rate) :][200 : size - 200]
        at = round((utterance.start + expected.start) * rate) + 200
        alike = [np.corrcoef(inside, whole[at + n :][: len(inside)])[0, 1] for n in (-1, 0, 1)]
        assert max(alike) > 0.98
    assert len(StringPool(tmp_path / "pool-some.jsonl", rate)) == len(pool)
    again = (tmp_path / "pool-some.jsonl").read_bytes()
    assert words.main(argv) == 0 and (tmp_path / "pool-some.jsonl").read_bytes() == again


def test_pieces(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    rows = [u for u in manifest.read(CORPUS) if len(u.words) > 4][::150][:4]
    source = tmp_path / "in.jsonl"
    manifest.write(source, [*rows, replace(rows[0], id="unknown", words=())])
    assert pieces.main([str(source), "-o", str(tmp_path), "--longest", "1.5"]) == 0
    found = manifest.read(tmp_path / "pieces.jsonl")
    assert f"{len(found)} pieces" in capsys.readouterr().out
    for utterance in rows:
        own = [piece for piece in found if piece.id.rsplit("-", 3)[0] == utterance.id]
        assert len(own) > 1 and " ".join(piece.text for piece in own) == utterance.text
        assert sum(piece.duration for piece in own) == pytest.approx(utterance.duration, abs=1e-3)
        assert all(piece.duration <= 1.5 or len(piece.words) == 1 for piece in own)
        assert {piece.speaker for piece in own} == {utterance.speaker}
        start, at = 0.0, 0
        whole = samples_of(utterance, 16000)
        for piece in own:
            for word in piece.words:
                true = utterance.words[at]
                assert word.word == true.word
                assert start + word.start == pytest.approx(true.start, abs=1e-3)
                at += 1
            sound, _ = soundfile.read(piece.audio, dtype="float32")
            begin = round(start * 16000)
            same = whole[begin : begin + len(sound)]
            assert np.abs(sound[: len(same)] - same).max() < 1e-3
            start += piece.duration


def test_a_piece_ends_where_the_longest_pause_is() -> None:
    times = [(0.0, 0.4), (0.5, 0.9), (1.2, 1.6), (1.65, 2.0), (2.0, 5.0)]
    utterance = replace(
        known()[0],
        duration=5.2,
        words=tuple(manifest.WordTime("one", *time) for time in times),
    )
    found = list(pieces.pieces(utterance, 2.0))
    assert found == [
        (0, 2, 0.0, pytest.approx(1.05)),
        (2, 3, pytest.approx(1.05), pytest.approx(1.625)),
        (3, 4, pytest.approx(1.625), 2.0),
        (4, 5, 2.0, 5.2),  # one word, however long
    ]


@pytest.mark.parametrize(
    ("tool", "more"), [(pieces, []), (words, ["--name", "some"])], ids=["pieces", "words"]
)
def test_no_word_times(
    tool, more: list[str], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    source = tmp_path / "in.jsonl"
    manifest.write(source, [replace(known()[0], words=())])
    assert tool.main([str(source), "-o", str(tmp_path), *more]) == 1
    told = capsys.readouterr().err
    assert told.startswith(f"asr: error: {source}: no ") and "align.py" in told
    assert [path.name for path in tmp_path.glob("*.jsonl")] == ["in.jsonl"]


@pytest.mark.parametrize(
    ("tool", "name", "more"),
    [(pieces, "pieces.jsonl", []), (words, "pool-some.jsonl", ["--name", "some"])],
    ids=["pieces", "words"],
)
def test_what_is_cut_is_not_overwritten(
    tool, name: str, more: list[str], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    source = tmp_path / name
    manifest.write(source, known()[:1])
    before = source.read_bytes()
    assert tool.main([str(source), "-o", f"{tmp_path}/../{tmp_path.name}", *more]) == 1
    assert "would be overwritten" in capsys.readouterr().err and source.read_bytes() == before
    assert [path.name for path in tmp_path.iterdir()] == [name]


def test_nothing_new_stays_where_not_all_can_be_cut(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    first, second = known()[:2]
    source, gone = tmp_path / "in.jsonl", tmp_path / "gone.wav"
    manifest.write(source, [first])
    assert pieces.main([str(source), "-o", str(tmp_path), "--longest", "2"]) == 0
    before = {path: path.read_bytes() for path in tmp_path.rglob("*") if path.is_file()}
    manifest.write(tmp_path / "more.jsonl", [first, replace(second, audio=gone)])
    before[tmp_path / "more.jsonl"] = (tmp_path / "more.jsonl").read_bytes()
    again = [str(tmp_path / "more.jsonl"), "-o", str(tmp_path), "--longest", "1"]
    capsys.readouterr()
    assert pieces.main(again) == 1
    assert "gone.wav" in capsys.readouterr().err
    assert {path: path.read_bytes() for path in tmp_path.rglob("*") if path.is_file()} == before


@pytest.mark.parametrize(
    "times", [[(50.0, 50.5)], [(0.5, 0.6), (0.1, 0.2)]], ids=["beyond the end", "out of order"]
)
@pytest.mark.parametrize(
    ("tool", "more"), [(pieces, []), (words, ["--name", "some"])], ids=["pieces", "words"]
)
def test_word_times_that_cannot_be(
    tool, more: list[str], times: list, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    utterance = replace(known()[0], words=tuple(manifest.WordTime("one", *time) for time in times))
    manifest.write(tmp_path / "in.jsonl", [utterance])
    assert tool.main([str(tmp_path / "in.jsonl"), "-o", str(tmp_path), *more]) == 1
    told = capsys.readouterr().err
    assert told.count("\n") == 1 and utterance.id in told and "beyond the end" in told


@pytest.mark.parametrize(
    ("tool", "options"),
    [
        (pieces, ["--longest", "0"]),
        (pieces, ["--longest", "nan"]),
        (pieces, ["--rate", "0"]),
        (pieces, ["--rate", "1000000"]),
        (words, ["--name", "a", "--rate", "10"]),
        (words, ["--name", "../up"]),
        (words, ["--name", ""]),
        (words, ["--name", ".."]),
        (words, []),
        (align, ["--rate", "8000"]),
    ],
    ids=str,
)
def test_usage(
    tool, options: list[str], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    source = tmp_path / "in.jsonl"
    manifest.write(source, known()[:1])
    assert tool.main([str(source), "-o", str(tmp_path / "out"), *options]) == 2
    told = capsys.readouterr().err
    assert told.startswith("asr: error: ") and told.count("\n") == 1
    assert not (tmp_path / "out").exists()


@pytest.mark.parametrize(
    ("tool", "more"), [(pieces, []), (words, ["--name", "some"])], ids=["pieces", "words"]
)
def test_output_that_cannot_be(
    tool, more: list[str], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    source, taken = tmp_path / "in.jsonl", tmp_path / "file"
    manifest.write(source, known()[:1])
    taken.touch()
    assert tool.main([str(source), "-o", str(taken), *more]) == 1
    told = capsys.readouterr().err
    assert told.startswith("asr: error: ") and str(taken) in told and told.count("\n") == 1


def test_interrupted(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    source = tmp_path / "in.jsonl"
    manifest.write(source, known()[:2])

    def stop(samples: np.ndarray, rate: int) -> np.ndarray:
        raise KeyboardInterrupt

    monkeypatch.setattr(words, "shaped", stop)
    assert words.main([str(source), "-o", str(tmp_path), "--name", "some"]) == 130
    assert capsys.readouterr().err == "asr: interrupted\n"
    assert [path.name for path in tmp_path.rglob("*") if path.is_file()] == ["in.jsonl"]


@pytest.mark.parametrize("text", ["你好 世界", "1984", "", "nine " * 40])
def test_texts_that_cannot_be_aligned(
    text: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    pytest.importorskip("pocketsphinx")
    source = tmp_path / "in.jsonl"
    manifest.write(source, [replace(known()[0], text=text, words=())])
    assert align.main([str(source), "-o", str(tmp_path / "out")]) == 1
    told = capsys.readouterr().err
    assert told == f"asr: error: {source}: the words of no utterance fit its sound\n"
    assert not list((tmp_path / "out").iterdir())


def test_manifests_are_not_overwritten(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    pytest.importorskip("pocketsphinx")
    source = tmp_path / "in.jsonl"
    manifest.write(source, known()[:1])
    before = source.read_bytes()
    assert align.main([str(source), "-o", str(tmp_path)]) == 1
    assert "would be overwritten" in capsys.readouterr().err and source.read_bytes() == before
    assert align.main([str(source), str(source), "-o", str(tmp_path / "out")]) == 1
    assert "the same name" in capsys.readouterr().err


def test_the_aligner_is_asked_for_by_name(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    real = builtins.__import__

    def without(name, *args, **kwargs):
        if name == "pocketsphinx":
            raise ImportError(name)
        return real(name, *args, **kwargs)

    monkeypatch.setattr(builtins, "__import__", without)
    assert align.main([str(CORPUS), "-o", str(tmp_path / "out")]) == 1
    assert "pip install pocketsphinx" in capsys.readouterr().err
    assert not (tmp_path / "out").exists()
