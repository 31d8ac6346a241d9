"""Failures that people reported of tools like this one (E1 to E6), each with its whole kind."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from pathlib import Path

import pytest

from asr.errors import InputError
from asr.evaluation import Report, read, score

Texts = Mapping[str, str]


def tsv(texts: Texts) -> str:
    return "".join(f"{id}\t{text}\n" for id, text in texts.items())


def kaldi(texts: Texts) -> str:
    return "".join(f"{id} {text}\n" for id, text in texts.items())


def trn(texts: Texts) -> str:
    return "".join(f"{text} ({id})\n" for id, text in texts.items())


def jsonl(texts: Texts) -> str:
    return "".join(json.dumps({"id": id, "text": text}) + "\n" for id, text in texts.items())


def ctm(texts: Texts) -> str:
    return "".join(
        f"{id} 1 {place:.2f} 0.50 {word}\n"
        for id, text in texts.items()
        for place, word in enumerate(text.split())
    )


FORMATS = [tsv, kaldi, trn, jsonl, ctm]
Format = Callable[[Texts], str]


def scored(folder: Path, references: str, hypotheses: str, **options: object) -> Report:
    (folder / "ref").write_text(references, encoding="utf-8")
    (folder / "hyp").write_text(hypotheses, encoding="utf-8")
    said, heard = read(folder / "ref").texts, read(folder / "hyp").texts
    return score(said, heard, ci=None, **options)  # type: ignore[arg-type]


@pytest.mark.parametrize("written", FORMATS)
@pytest.mark.parametrize("reference", FORMATS)
def test_e1_short_texts_in_another_order(
    tmp_path: Path, reference: Format, written: Format
) -> None:
    """Texts of one character are texts, and the id says whose they are."""
    said = {"a": "I", "b": "hello world", "c": "x y", "d": "é"}
    right = dict(reversed(said.items()))
    assert scored(tmp_path, reference(said), written(right)).wer == 0.0
    swapped = {"a": "hello world", "b": "I", "c": "x y", "d": "é"}
    report = scored(tmp_path, reference(said), written(swapped))
    assert (report.summary.words.errors, report.reference_words) == (4, 6)


@pytest.mark.parametrize("written", FORMATS)
@pytest.mark.parametrize("aligner", ["levenshtein", "sclite"])
@pytest.mark.parametrize("normalizer", ["none", "basic", "english"])
def test_e2_empty_references(
    tmp_path: Path, written: Format, aligner: str, normalizer: str
) -> None:
    """Nothing was said: what is heard is inserted, listed apart, and divides nothing by zero."""
    heard = {"a": "one two", "b": "good"}
    options = {"aligner": aligner, "normalizer": normalizer}
    some = scored(tmp_path, tsv({"a": "", "b": "good"}), written(heard), **options)
    inserted = 1 if normalizer == "english" else 2  # which writes "12"
    assert (some.wer, some.insertions) == (inserted / 1, inserted)
    assert some.empty_references == ("a",)
    none = scored(tmp_path, tsv({"a": "", "b": ""}), written(heard), **options)
    assert (none.wer, none.cer, none.insertions) == (None, None, inserted + 1)
    json.dumps(none.to_json(), allow_nan=False)


@pytest.mark.parametrize("written", FORMATS)
def test_e3_missing_and_unknown(tmp_path: Path, written: Format) -> None:
    said = {"a": "one two three", "b": "four five", "c": "six"}
    report = scored(tmp_path, tsv(said), written({"b": "four five"}))
    assert (report.wer, report.deletions, report.missing) == (4 / 6, 4, ("a", "c"))
    for id in ("A", "a.wav", "aa", "b1"):  # near enough to a known one to be mistaken for it
        with pytest.raises(InputError, match=f"have no reference: '{id}'"):
            scored(tmp_path, tsv(said), written({"b": "four five", id: "one"}))
    extra = written({"b": "four five", "zz": "one"})
    assert scored(tmp_path, tsv(said), extra, allow_unknown=True).deletions == 4


@pytest.mark.parametrize(
    ("said", "heard"),
    [
        ("Hello, world!", "hello world"),
        ("HELLO WORLD", "Hello World"),
        ("hello , world .", "hello world"),  # punctuation as tokens of its own
        ("“Hello” — world…", "hello world"),
        ("hello - world", "hello world"),
        ("( hello ) world ?", "hello world"),
        ("it’s", "it's"),
        ("'hello'", "hello"),
        ("well-known", "well known"),
        ("ﬁne", "fine"),  # a ligature
        ("cafe\u0301", "café"),
        ("a\u00a0b", "a b"),
        ("«¿qué?»", "qué"),
    ],
)
@pytest.mark.parametrize("turned", [False, True])
def test_e4_writing_is_no_recognition_error(said: str, heard: str, turned: bool) -> None:
    """Both scores are there: as written, and as normalised; neither hides the other."""
    said, heard = (heard, said) if turned else (said, heard)
    report = score({"a": said}, {"a": heard}, ci=None)
    assert report.normalised.summary.words.errors == 0
    assert report.normalised.normalizer["name"] == "basic"
    assert report.raw.words.errors > 0 or said.split() == heard.split()
    assert report.summary == report.raw
    chosen = score({"a": said}, {"a": heard}, normalizer="basic", ci=None)
    assert (chosen.wer, chosen.raw) == (0.0, report.raw)


def test_e4_what_was_said_differently_stays_an_error() -> None:
    for said, heard in (("world", "word"), ("its", "it is"), ("can't", "can"), ("won't", "wont")):
        assert score({"a": said}, {"a": heard}, normalizer="basic", ci=None).wer != 0.0


@pytest.mark.parametrize(
    ("said", "written"),
    [
        ("thirty six", "36"),
        ("thirty-six", "36"),
        ("one hundred and one", "101"),
        ("three thousand six", "3006"),
        ("three thousand and six", "3,006"),
        ("two thousand and twenty four", "2024"),
        ("nineteen eighty four", "1984"),
        ("twenty twenty", "2020"),
        ("twenty first", "21st"),
        ("three point one four", "3.14"),
        ("ten percent", "10%"),
        ("five dollars", "$5"),
    ],
)
def test_e5_numbers(said: str, written: str) -> None:
    """A number is the same in words and digits, and in company of other words."""
    report = score(
        {"a": said, "b": f"about {said} people"},
        {"a": written, "b": f"about {written} people"},
        normalizer="english",
        ci=None,
    )
    assert report.wer == 0.0
    assert report.raw.words.errors > 0
    assert report.normalizer["library"] == "whisper-normalizer"


@pytest.mark.parametrize(
    ("said", "other"),
    [
        ("thirty six", "3006"),
        ("thirty six", "30 6"),
        ("thirty six", "thirty"),
        ("three thousand six", "36"),
        ("one hundred and one", "1001"),
        ("twenty one", "201"),
    ],
)
def test_e5_different_numbers_stay_different(said: str, other: str) -> None:
    assert score({"a": said}, {"a": other}, normalizer="english", ci=None).wer != 0.0


def test_e5_basic_leaves_numbers_alone() -> None:
    assert score({"a": "thirty six"}, {"a": "36"}, normalizer="basic", ci=None).wer == 1.0


@pytest.mark.parametrize(
    ("text", "becomes"),
    [("one two three", "123"), ("oh", "0"), ("it's 5 o'clock", "it is 50 clock")],
)
def test_e5_what_the_library_does_besides(text: str, becomes: str) -> None:
    """Spoken digits become one word and `oh` a zero, as docs/evaluation.md warns."""
    assert score({"a": becomes}, {"a": text}, normalizer="english", ci=None).wer == 0.0


@pytest.mark.parametrize("written", FORMATS)
@pytest.mark.parametrize("blank", ["", " ", "\t", "\r"])
def test_e6_blank_lines(tmp_path: Path, written: Format, blank: str) -> None:
    said = {"a": "x", "b": "y z", "c": "w"}
    lines = written(said).splitlines()
    for where in range(len(lines) + 1):
        shifted = "\n".join([*lines[:where], blank, *lines[where:]])
        for references, hypotheses in ((shifted, written(said)), (written(said), shifted)):
            report = scored(tmp_path, references, hypotheses)
            assert (report.wer, report.reference_words) == (0.0, 4)


@pytest.mark.parametrize("written", [tsv, kaldi, trn, jsonl])
def test_e6_blank_texts(tmp_path: Path, written: Format) -> None:
    """A hypothesis that is there but empty is no missing one, and shifts nothing."""
    report = scored(
        tmp_path, tsv({"a": "x", "b": "y", "c": "z"}), written({"a": "x", "b": "", "c": "z"})
    )
    assert (report.deletions, report.missing) == (1, ())
