"""Scores by hand, the reported failures of other tools, and what must not matter."""

from __future__ import annotations

import json
import random
import subprocess
import sys
from pathlib import Path

import kaldialign
import pytest

from asr.errors import InputError
from asr.evaluation import Counts, read, score

REFERENCES = {
    "u1": "the cat sat",
    "u2": "I",
    "u3": "hello world again my friend",
    "u4": "",
    "u5": "Yes, SIR!",
    "u6": "gone",
}
HYPOTHESES = {
    "u1": "the cat cat sat",  # 1 insertion
    "u2": "",  # blank: 1 deletion
    "u3": "hello word again friend",  # 1 substitution, 1 deletion
    "u4": "um er",  # 2 insertions into an empty reference
    "u5": "yes sir",  # raw: 2 substitutions; basic: right
}  # u6 is missing: 1 deletion
SPEAKERS = {"u1": "s1", "u2": "s1", "u3": "s2", "u4": "s2", "u5": "s3"}


def test_by_hand() -> None:
    report = score(REFERENCES, HYPOTHESES)
    assert report.reference_words == 3 + 1 + 5 + 0 + 2 + 1
    assert report.summary.words == Counts(hits=6, substitutions=3, deletions=3, insertions=3)
    assert report.wer == 9 / 12
    assert (report.substitutions, report.deletions, report.insertions, report.hits) == (3, 3, 3, 6)
    assert report.ser == 1.0
    assert report.missing == ("u6",)
    assert report.empty_references == ("u4",)
    assert report.empty_reference_insertions == 2
    wrong = {u.id: u.words.errors for u in report.utterances}
    assert wrong == {"u1": 1, "u2": 1, "u3": 2, "u4": 2, "u5": 2, "u6": 1}
    assert {u.id: u.hypothesis for u in report.utterances}["u2"] == ""
    assert {u.id: u.hypothesis for u in report.utterances}["u6"] is None


def test_characters_by_hand() -> None:
    report = score({"a": "ab  cd", "b": "x"}, {"a": "ab xd", "b": "xyz"})
    # "ab cd" has five characters with its one space; c became x, and y, z were inserted.
    assert report.summary.characters == Counts(hits=5, substitutions=1, deletions=0, insertions=2)
    assert report.cer == 3 / 6


def test_sentence_errors_count_words_only() -> None:
    assert score({"a": "x  y", "b": "z", "c": ""}, {"a": "x y", "b": "w", "c": ""}).ser == 1 / 3


def test_raw_and_normalised_are_both_there_whichever_leads() -> None:
    raw, basic = score(REFERENCES, HYPOTHESES), score(REFERENCES, HYPOTHESES, normalizer="basic")
    assert raw.raw == basic.raw == raw.summary
    assert raw.normalised == basic.normalised
    assert basic.summary == basic.normalised.summary
    assert basic.wer == 7 / 12
    assert raw.wer == 9 / 12
    english = score(REFERENCES, HYPOTHESES, normalizer="english")
    assert english.raw == raw.raw
    assert english.normalizer["name"] == "english"
    assert english.normalizer["version"]
    assert english.insertions == 2  # "cat" and "er"; "um" is a filler to this normaliser


def test_number_words_stay_the_same_number() -> None:
    report = score({"a": "thirty six people"}, {"a": "36 people"}, normalizer="english")
    assert report.wer == 0
    assert report.raw.wer == 2 / 3


def test_groups_micro_and_macro() -> None:
    report = score(REFERENCES, HYPOTHESES, groups=SPEAKERS, group_by="speaker")
    assert list(report.groups) == ["s1", "s2", "s3", "unknown"]
    assert {name: s.wer for name, s in report.groups.items()} == {
        "s1": 2 / 4, "s2": 4 / 5, "s3": 1.0, "unknown": 1.0,
    }  # fmt: skip
    assert report.macro_wer == pytest.approx((0.5 + 0.8 + 1 + 1) / 4)
    assert sum((s.words for s in report.groups.values()), Counts()) == report.summary.words
    assert score(REFERENCES, HYPOTHESES).macro_wer is None


def test_a_group_without_reference_words_does_not_enter_the_mean() -> None:
    report = score({"a": "x", "b": ""}, {"a": "y", "b": "z"}, groups={"a": "g", "b": "h"})
    assert report.groups["h"].wer is None
    assert report.macro_wer == 1.0


@pytest.mark.parametrize("line_order", [1, -1])
def test_one_word_lines_are_matched_by_id(tmp_path: Path, line_order: int) -> None:
    """E1: `I / hello world` against `hello world / I` once scored 0."""
    references, hypotheses = tmp_path / "r", tmp_path / "h"
    references.write_text("\n".join(["a\tI", "b\thello world"][::line_order]))
    hypotheses.write_text("\n".join(["a\thello world", "b\tI"]))
    report = score(read(references).texts, read(hypotheses).texts)
    assert report.reference_words == 3
    assert report.wer == 4 / 3


@pytest.mark.parametrize("heard", ["", "um", "um er"])
def test_nothing_but_empty_references(heard: str) -> None:
    """E2: no exception, nan or inf; the insertions count."""
    report = score({"a": "", "b": " "}, {"a": heard, "b": ""})
    words = len(heard.split())
    assert (report.wer, report.cer, report.insertions) == (None, None, words)
    assert report.empty_references == ("a", "b")
    assert report.intervals["wer"] is None
    text = json.dumps(report.to_json(), allow_nan=False)
    assert json.loads(text)["wer"] is None
    assert json.loads(text)["empty_references"] == {"ids": ["a", "b"], "insertions": words}


def test_references_that_normalisation_empties_are_listed() -> None:
    report = score({"a": "...", "b": "x"}, {"a": "y", "b": "x"}, normalizer="basic")
    assert report.empty_references == ("a",)
    assert report.wer == 1.0


def test_missing_hypotheses_are_deleted() -> None:
    """E3: leaving them out would lower the rate."""
    references = {"a": "one two", "b": "three four five"}
    assert score(references, {"a": "one two"}).wer == 3 / 5
    report = score(references, {})
    assert (report.wer, report.deletions, report.missing) == (1.0, 5, ("a", "b"))


def test_unknown_ids_are_an_error_unless_allowed() -> None:
    """E3."""
    references, hypotheses = {"a": "x"}, {"a": "x", "zz": "y\n", "b\n": "z"}
    with pytest.raises(InputError, match=r"2 of 3 hypotheses have no reference: 'b\\n', 'zz'"):
        score(references, hypotheses)
    report = score(references, hypotheses, allow_unknown=True)
    assert (report.wer, report.unknown) == (0.0, ("b\n", "zz"))


@pytest.mark.parametrize("blank", ["", "   ", "\t", "\r"])
@pytest.mark.parametrize("where", [0, 1, 2, 3])
def test_a_blank_line_shifts_nothing(tmp_path: Path, blank: str, where: int) -> None:
    """E6."""
    lines = [json.dumps({"id": id, "text": text}) for id, text in zip("abc", "xyz", strict=True)]
    (tmp_path / "h").write_text("\n".join(lines))
    (tmp_path / "r").write_text("\n".join([*lines[:where], blank, *lines[where:]]))
    for first, second in (("r", "h"), ("h", "r")):
        report = score(read(tmp_path / first).texts, read(tmp_path / second).texts)
        assert (report.wer, report.reference_words) == (0.0, 3)


def random_texts(seed: int, count: int) -> tuple[dict[str, str], dict[str, str]]:
    generator = random.Random(seed)
    vocabulary = ["I", "a", "the", "Cat", "sat,", "don't"]
    references, hypotheses = {}, {}
    for index in range(count):
        words = generator.choices(vocabulary, k=generator.randrange(8))
        references[f"u{index}"] = " ".join(words)
        heard = [w if generator.random() > 0.3 else generator.choice(vocabulary) for w in words]
        if generator.random() > 0.1:
            hypotheses[f"u{index}"] = " ".join(w for w in heard if generator.random() > 0.1)
    return references, hypotheses


@pytest.mark.parametrize("how", ["tsv", "trn", "kaldi", "jsonl"])
def test_the_order_of_lines_changes_nothing(tmp_path: Path, how: str) -> None:
    line = {
        "tsv": "{0}\t{1}",
        "trn": "{1} ({0})",
        "kaldi": "{0} {1}",
        "jsonl": '{{"id": "{0}", "text": "{1}"}}',
    }[how]
    references, hypotheses = random_texts(3, 30)
    speakers = {id: f"s{int(id[1:]) % 4}" for id in references}
    reports = []
    for seed in range(3):
        generator = random.Random(seed)
        found = []
        for name, texts in (("r", references), ("h", hypotheses)):
            lines = [line.format(id, text) for id, text in texts.items()]
            if seed:
                generator.shuffle(lines)
            (tmp_path / name).write_text("\n".join(lines))
            found.append(read(tmp_path / name).texts)
        report = score(*found, speakers=speakers, groups=speakers, replicates=200, seed=1)
        reports.append(json.dumps(report.to_json()))
    assert len(set(reports)) == 1


def test_rate_equals_kaldialign_on_many_pairs() -> None:
    references, hypotheses = random_texts(7, 300)
    report = score(references, hypotheses, normalizer="none", ci=None)
    errors = sum(
        kaldialign.edit_distance(text.split(), hypotheses.get(id, "").split())["total"]
        for id, text in references.items()
    )
    characters = sum(
        kaldialign.edit_distance(
            list(" ".join(text.split())), list(" ".join(hypotheses.get(id, "").split()))
        )["total"]
        for id, text in references.items()
    )
    assert report.wer == errors / sum(len(text.split()) for text in references.values())
    assert report.cer == characters / sum(len(" ".join(t.split())) for t in references.values())


def test_intervals_are_over_speakers_where_there_are_some() -> None:
    references, hypotheses = random_texts(9, 40)
    speakers = {id: f"s{int(id[1:]) % 4}" for id in references}

    def wer_interval(**options):  # type: ignore[no-untyped-def]
        return score(references, hypotheses, replicates=100, **options).intervals["wer"]

    assert (wer_interval().unit, wer_interval().units) == ("utterance", 40)
    by_speaker = wer_interval(speakers=speakers)
    assert (by_speaker.unit, by_speaker.units) == ("speaker", 4)
    # Of those that are not known each utterance stands for itself, even under a speaker's name.
    some = {id: name for id, name in speakers.items() if name == "s0"} | {"u1": "u2"}
    assert wer_interval(speakers=some).units == 2 + 29
    assert wer_interval(speakers=dict.fromkeys(references, "alone")).unit == "utterance"
    narrow, wide = wer_interval(ci=0.5), wer_interval(ci=0.99)
    assert wide.low < narrow.low <= narrow.high < wide.high
    assert wer_interval(seed=2) != wer_interval(seed=1) == wer_interval(seed=1)
    assert score(references, hypotheses, ci=None).intervals == {}


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"normalizer": "german"}, "none, basic, english"),
        ({"ci": 1.0}, "ci must lie between 0 and 1"),
        ({"ci": 0.0}, "ci must lie between 0 and 1"),
        ({"ci": float("nan")}, "ci must lie between 0 and 1"),
        ({"replicates": 0}, "replicates must be 1 or more"),
    ],
)
def test_options_out_of_range(options: dict[str, object], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        score({"a": "x"}, {"a": "x"}, **options)  # type: ignore[arg-type]


def test_no_references() -> None:
    with pytest.raises(InputError, match="no references"):
        score({}, {})


def test_scoring_imports_no_torch() -> None:
    code = (
        "import sys; from asr.evaluation import score; score({'a': 'x'}, {'a': 'y'});"
        "assert 'torch' not in sys.modules"
    )
    subprocess.run([sys.executable, "-c", code], check=True)
