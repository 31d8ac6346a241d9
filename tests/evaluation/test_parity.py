"""The same numbers as jiwer, kaldialign and NIST's sclite and sc_stats, on thousands of pairs."""

from __future__ import annotations

import csv
import random
import re
import shutil
import subprocess
from pathlib import Path
from typing import NamedTuple, TypeAlias

import jiwer
import kaldialign
import pytest

from asr.evaluation import Report, compare, score
from asr.evaluation.aligners import levenshtein, sclite
from asr.evaluation.significance import matched_pairs, segments
from asr.text.normalise import normalise

Texts: TypeAlias = dict[str, str]


class Case(NamedTuple):
    """References, and what two systems made of them."""

    references: Texts
    first: Texts
    second: Texts


def spoiled(generator: random.Random, text: str, rate: float, vocabulary: list[str]) -> str:
    words: list[str] = []
    for word in text.split():
        draw = generator.random() / rate
        if draw < 0.2:
            words += [generator.choice(vocabulary), word]
        elif draw < 0.4:
            words += [word, word]
        elif draw < 0.7:
            words.append(generator.choice(vocabulary))
        elif draw >= 1:
            words.append(word)
    return " ".join(words)


def case(texts: list[str], seed: int) -> Case:
    generator = random.Random(seed)
    vocabulary = sorted({word for text in texts for word in text.split()})
    references = {f"s{n % 9}-{n:05d}": text for n, text in enumerate(texts)}
    systems = [
        {id: spoiled(generator, text, rate, vocabulary) for id, text in references.items()}
        for rate in (0.3, 0.33)
    ]
    return Case(references, *systems)


def random_case() -> Case:
    """Few words, so that alignments are full of ties."""
    generator = random.Random(8)
    texts = [
        " ".join(generator.choices("abcde", k=generator.randrange(1, 25))) for _ in range(2000)
    ]
    return case(texts, seed=1)


def real_case(folder: Path) -> Case:
    texts = []
    for path in sorted(folder.glob("corpora/*/manifest.tsv")):
        with path.open(encoding="utf-8", newline="") as file:
            rows = csv.DictReader(file, delimiter="\t", quoting=csv.QUOTE_NONE)
            # sclite reads some punctuation as its own notation, so words alone.
            texts += [text for row in rows if (text := normalise(row["transcript"])).isascii()]
    texts = [text for text in texts if len(text.split()) > 1]
    random.Random(4).shuffle(texts)
    assert len(texts) >= 2000, "manifests with 2,000 transcripts are expected there"
    return case(texts[:2500], seed=2)


@pytest.fixture(
    scope="module",
    params=[
        pytest.param("random"),
        pytest.param("real", marks=pytest.mark.real_speech),
    ],
)
def pairs(request: pytest.FixtureRequest) -> Case:
    if request.param == "random":
        return random_case()
    return real_case(request.getfixturevalue("speech_folder"))


def test_rate_and_counts_are_those_of_jiwer(pairs: Case) -> None:
    report = score(pairs.references, pairs.first, ci=None)
    ids = sorted(pairs.references)
    texts = [pairs.references[id] for id in ids], [pairs.first[id] for id in ids]
    theirs = jiwer.process_words(*map(list, texts))
    ours = report.summary.words
    assert report.wer == theirs.wer
    assert (ours.hits, ours.substitutions, ours.deletions, ours.insertions) == (
        theirs.hits, theirs.substitutions, theirs.deletions, theirs.insertions
    )  # fmt: skip
    assert report.cer == jiwer.cer(*map(list, texts))


def test_rate_is_that_of_kaldialign(pairs: Case) -> None:
    report = score(pairs.references, pairs.first, ci=None)
    for utterance in report.utterances:
        said, heard = pairs.references[utterance.id].split(), pairs.first[utterance.id].split()
        assert utterance.words.errors == kaldialign.edit_distance(said, heard)["total"]


def nist(*names: str) -> list[str]:
    """How to run a tool of NIST's SCTK; Debian has all of them behind one command."""
    for command in (names, ("sctk", *names)):
        if shutil.which(command[0]):
            return list(command)
    pytest.skip(f"{names[0]} of NIST's SCTK is not installed (Debian: apt-get install sctk)")


def sgml(folder: Path, references: Texts, hypotheses: Texts, name: str) -> str:
    """sclite's alignment of one system."""
    for stem, texts in (("ref", references), (name, hypotheses)):
        lines = [f"{text} ({id})\n" for id, text in texts.items()]
        (folder / f"{stem}.trn").write_text("".join(lines), encoding="utf-8")
    command = f"-s -r ref.trn trn -h {name}.trn trn -i rm -o sgml -O . -n {name}"
    subprocess.run([*nist("sclite"), *command.split()], cwd=folder, check=True, capture_output=True)
    return (folder / f"{name}.sgml").read_text(encoding="utf-8")


def test_counts_are_those_of_sclite(pairs: Case, tmp_path: Path) -> None:
    """Utterance by utterance; the rate of the other aligner is never above sclite's."""
    text = sgml(tmp_path, pairs.references, pairs.first, "first")
    theirs = {
        match[1]: [len(re.findall(rf"(?:^|:){op},", match[2])) for op in "CSDI"]
        for match in re.finditer(r'<PATH id="\((.+?)\)".*?>\n(.*?)\n</PATH>', text, re.DOTALL)
    }
    report = score(pairs.references, pairs.first, aligner="sclite", ci=None)
    ours = {
        u.id: [u.words.hits, u.words.substitutions, u.words.deletions, u.words.insertions]
        for u in report.utterances
    }
    assert ours == theirs
    fewest = score(pairs.references, pairs.first, ci=None)
    assert fewest.summary.words.errors <= report.summary.words.errors


def test_matched_pairs_are_those_of_sc_stats(pairs: Case, tmp_path: Path) -> None:
    systems = {"first": pairs.first, "second": pairs.second}
    text = "".join(sgml(tmp_path, pairs.references, texts, n) for n, texts in systems.items())
    subprocess.run(
        [*nist("sc_stats"), *["-p", "-t", "mapsswe", "-v", "-n", "out", "-O", "."]],
        cwd=tmp_path, input=text, text=True, check=True, capture_output=True,
    )  # fmt: skip
    output = (tmp_path / "out.stats.mapsswe").read_text(encoding="utf-8")
    line = re.search(
        r"# segs: (\d+)\).*\(mean: ([-.\d]+)\) \(std dev: ([-.\d]+)\) \(Z Stat: ([-.\d]+)\)", output
    )
    assert line is not None
    reports: list[Report] = [
        score(pairs.references, texts, aligner="sclite", ci=None) for texts in systems.values()
    ]
    ours = compare(*reports, ci=None).matched_pairs
    assert ours is not None and ours.z is not None
    assert ours.segments == int(line[1])
    found = (ours.mean, ours.deviation, ours.z)
    assert [f"{value:.3f}" for value in found] == [line[2], line[3], line[4]]


def test_the_two_aligners_give_the_same_test_in_all_but_name(pairs: Case) -> None:
    """Which of the best alignments is taken hardly moves the segments."""
    found = []
    for align in (levenshtein, sclite):
        errors = [
            pair
            for id, text in pairs.references.items()
            for pair in segments(
                *(align(text.split(), hyp[id].split()) for hyp in (pairs.first, pairs.second))
            )
        ]
        found.append(matched_pairs(errors))
    assert found[0].z == pytest.approx(found[1].z, abs=0.5)
