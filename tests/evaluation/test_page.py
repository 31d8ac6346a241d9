"""The page: true to the report, safe whatever the text, small, and complete in itself."""

from __future__ import annotations

import base64
import random
import re
from collections import Counter
from dataclasses import replace
from itertools import islice, pairwise
from pathlib import Path
from typing import Any

import pytest
from scipy.stats import binomtest

from asr import html
from asr.errors import InputError
from asr.evaluation import Counts, Report, Step, page, plots, score
from asr.evaluation.breakdown import confusions, spans
from asr.evaluation.entries import fitting
from asr.evaluation.significance import compare
from asr.evaluation.sounds import gather
from tests.html_page import Parsed

EVIL = '</script><script>alert(1)</script><img src=x onerror="alert(2)">&\'"'
HOSTILE = [
    EVIL,
    "\u202eevil",
    "nul\x00l",
    "e\u0301te\u0301",
    "שלום",
    "x" * 3000,
    "half\ud800",
    "~a",
    "+b",
]
WORDS = ["one", "two", "three", "four", "five", "six", "seven", "eight", "nine", "zero"]


def drawn(n: int, seed: int, *, rate: float = 0.2) -> tuple[dict[str, str], dict[str, str]]:
    """References that depend on n alone, and hypotheses with errors of every kind."""
    said, heard = random.Random(n), random.Random(seed)
    references, hypotheses = {}, {}
    for index in range(n):
        words = said.choices(WORDS, k=said.randrange(1, 15))
        found = []
        for word in words:
            chance = heard.random() / rate
            found += [] if chance < 0.3 else [heard.choice(WORDS) if chance < 0.7 else word]
            found += [heard.choice(WORDS)] if heard.random() < rate / 4 else []
        references[f"u{index:04d}"] = " ".join(words)
        hypotheses[f"u{index:04d}"] = " ".join(found)
    return references, hypotheses


def speakers_of(references: dict[str, str]) -> dict[str, str]:
    return {id: f"speaker {index % 4}" for index, id in enumerate(references)}


@pytest.fixture(scope="module")
def reports() -> tuple[Report, Report]:
    made = []
    for seed in (1, 2):
        references, hypotheses = drawn(60, seed)
        references["u0000"] = references["u0000"].upper()
        named = speakers_of(references)
        made.append(
            score(
                references, hypotheses, normalizer="basic", speakers=named, groups=named,
                group_by="speaker", replicates=50,
            )
        )  # fmt: skip
    return made[0], made[1]


def shown(parsed: Parsed, tag: str) -> list[str]:
    return [text for name, text in parsed.text if name == tag]


def unpacked(entry: dict[str, Any], system: int) -> list[Step]:
    """As the page's script reads it."""
    said, steps = iter(entry.get("said", [])), []
    for item in entry["heard"][system]:
        if item == 0:
            steps.append(Step("D", next(said), None))
        elif isinstance(item, int):
            steps += [Step("=", word, word) for word in islice(said, item)]
        elif item[0] == "~":
            steps.append(Step("S", next(said), item[1:]))
        else:
            steps.append(Step("I", None, item[1:]))
    return steps


def test_complete_in_itself_and_locked(reports: tuple[Report, Report]) -> None:
    text = page.render(reports[0], second=reports[1])
    parsed = Parsed(text)
    for _, attributes in parsed.elements:
        assert not {"src", "href", "action", "srcset", "style"} & attributes.keys()
        assert not any(name.startswith("on") for name in attributes)
    assert not re.search(r"https?://|@import|fetch\(|XMLHttpRequest|innerHTML", text)
    (policy,) = [m["content"] for m in parsed.all("meta") if "http-equiv" in m]
    assert "default-src 'none'" in policy and "unsafe" not in policy and "media" not in policy
    for tag in ("style", "script"):
        (content,) = re.findall(rf"<{tag}>(.*?)</{tag}>", text, re.DOTALL)
        assert f"'{html.digest(content)}'" in policy, tag


def test_the_scores_are_there(reports: tuple[Report, Report]) -> None:
    report = reports[0]
    parsed = Parsed(page.render(report))
    assert shown(parsed, "strong") == [plots.percent(report.wer)]
    interval = report.intervals["wer"]
    assert interval is not None
    line = f"95 % interval {plots.percent(interval.low)} to {plots.percent(interval.high)} %"
    assert line in shown(parsed, "p")
    assert shown(parsed, "b") == [
        str(number) for number in (report.substitutions, report.deletions, report.insertions)
    ]
    cells = shown(parsed, "td")
    for summary in (report.raw, report.normalised.summary):
        row = [plots.percent(summary.wer), str(summary.words.errors)]
        assert any(cells[i : i + 2] == row for i in range(len(cells)))
    assert report.raw.wer != report.wer
    for name, summary in report.groups.items():
        assert name in shown(parsed, "th") and plots.percent(summary.wer) in cells


def test_alignments_survive_the_packing(reports: tuple[Report, Report]) -> None:
    (data,) = Parsed(page.render(reports[0], second=reports[1])).data()
    assert data["names"] == ["A", "B"]
    for system, report in enumerate(reports):
        for entry, utterance in zip(data["utterances"], report.utterances, strict=True):
            assert entry["id"] == utterance.id and entry["group"] == utterance.group
            assert unpacked(entry, system) == list(utterance.alignment)
    given = [entry["id"] for entry in data["utterances"] if "given" in entry]
    assert given == ["u0000"]  # the only one that normalising changed


def test_empty_and_missing() -> None:
    report = score({"a": "", "b": "x y", "c": ""}, {"a": "uh", "c": ""}, ci=None)
    parsed = Parsed(page.render(report))
    (data,) = parsed.data()
    assert [unpacked(entry, 0) for entry in data["utterances"]] == [
        [Step("I", None, "uh")], [Step("D", "x", None), Step("D", "y", None)], [],
    ]  # fmt: skip
    assert [entry.get("missing") for entry in data["utterances"]] == [None, [0], None]
    warnings = " ".join(shown(parsed, "p"))
    assert "1 utterance has no hypothesis and counts as all deleted" in warnings
    assert "2 references are empty; 1 word was inserted there" in warnings


def test_nothing_to_divide_by() -> None:
    assert shown(Parsed(page.render(score({"a": ""}, {"a": ""}))), "strong") == ["–"]


def test_whatever_the_text_it_is_only_text(tmp_path: Path) -> None:
    references = {f"{word}{i}": f"a {word} b" for i, word in enumerate(HOSTILE)}
    hypotheses = {id: f"a {HOSTILE[i - 1]} {HOSTILE[i - 2]}" for i, id in enumerate(references)}
    named = {id: f"{word} " for id, word in zip(references, HOSTILE, strict=True)}
    first = score(references, hypotheses, speakers=named, groups=named, group_by=EVIL)
    second = score(references, references, speakers=named, groups=named, group_by=EVIL)
    path = page.write(
        first, tmp_path / "evil.html", second=second, names=(EVIL, "\u202eb"), title=EVIL,
        about={EVIL: {"\x00": EVIL}}, durations=dict.fromkeys(references, 1.0),
        words={id: [(word, 0.5) for word in text.split()] for id, text in hypotheses.items()},
    )  # fmt: skip
    text = path.read_text(encoding="utf-8")
    parsed = Parsed(text)
    assert len(parsed.all("script")) == 2 and not parsed.all("img")
    for tag in ("title", "h1", "h2", "dt", "dd", "th"):
        assert any(EVIL in found for found in shown(parsed, tag)), tag
    assert EVIL.split()[0] in shown(parsed, "bdi")
    assert not re.search("[\x00\u202e\ud800]", text)
    (data,) = parsed.data()
    for entry, utterance in zip(data["utterances"], first.utterances, strict=True):
        assert entry["id"] == utterance.id and unpacked(entry, 0) == list(utterance.alignment)


def test_confusions_are_counted_by_system(reports: tuple[Report, Report]) -> None:
    systems = [tuple(report.utterances) for report in reports]
    for op, kind in (("S", "substitutions"), ("D", "deletions"), ("I", "insertions")):
        found = confusions(systems, op)  # type: ignore[arg-type]
        for system, report in enumerate(reports):
            assert sum(each.counts[system] for each in found) == getattr(report, kind)
        assert [max(each.counts) for each in found] == sorted(
            (max(each.counts) for each in found), reverse=True
        )
        assert len({(each.reference, each.hypothesis) for each in found}) == len(found)
    pairs = Counter(step[1:] for u in systems[0] for step in u.alignment if step.op == "S")
    (only, *_) = confusions(systems[:1], "S")
    assert pairs[only.reference, only.hypothesis] == only.counts[0] == max(pairs.values())


@pytest.mark.parametrize("n", [1, 4, 5, 37, 400])
def test_bins_hold_everyone_once(n: int) -> None:
    generator = random.Random(n)
    values = [float(generator.randrange(1, 12)) for _ in range(n)]
    counts = [(Counts(hits=1, deletions=generator.randrange(3)),) for _ in range(n)]
    found = spans(values, counts)
    assert 1 <= len(found) <= 8
    assert sum(span.utterances for span in found) == n
    assert sum((span.counts[0] for span in found), Counts()) == sum(
        (c for (c,) in counts), Counts()
    )
    assert all(a.high < b.low for a, b in pairwise(found))
    assert all(span.utterances >= min(5, n) for span in found)
    for span in found:
        inside = [
            c for value, (c,) in zip(values, counts, strict=True) if span.low <= value <= span.high
        ]
        assert sum(inside, Counts()) == span.counts[0]


def test_bars_are_as_high_as_their_rates() -> None:
    counts = [(Counts(50, 20, 20, 10), Counts(90, 10)), (Counts(10, 0, 0, 0), Counts(0, 10, 0, 15))]
    drawn = plots.bars(
        spans([1.0] * 5 + [2.0] * 5, [c for c in counts for _ in range(5)]), ["A", "B"], whole=True
    )
    heights = [sum(box.height for box in bar.boxes) for slot in drawn.slots for bar in slot.bars]
    rates = [each.rate or 0 for pair in counts for each in pair]
    assert [h / max(heights) for h in heights] == pytest.approx([r / max(rates) for r in rates])
    assert [box.kind for box in drawn.slots[0].bars[0].boxes] == ["S", "D", "I"]
    assert drawn.slots[1].bars[1].rate == "250"
    assert drawn.ticks[0].at == drawn.base and drawn.ticks[-1].at <= drawn.slots[1].bars[1].y
    assert [slot.label for slot in drawn.slots] == ["1", "2"]


@pytest.mark.parametrize(("right", "n"), [(0, 3), (7, 10), (40, 40), (1, 1000)])
def test_wilson_intervals(right: int, n: int) -> None:
    expected = binomtest(right, n).proportion_ci(method="wilson")
    assert plots.wilson(right / n, n) == pytest.approx((expected.low, expected.high), abs=1e-6)


def test_confidences_are_drawn_and_explained(reports: tuple[Report, Report]) -> None:
    report = reports[0]
    words = {
        u.id: [(w, 0.9 if w == "one" else 0.4) for w in (u.hypothesis or "").split()]
        for u in report.utterances
    }
    text = page.render(report, words=words)
    parsed = Parsed(text)
    assert {"Reliability", "Finding errors by low confidence"} <= set(shown(parsed, "figcaption"))
    assert len(parsed.all("circle")) == 1 + 2  # of the dotted pattern, and a bin each
    (data,) = parsed.data()
    heard = data["utterances"][3]
    assert len(heard["sure"][0]) == len(words[heard["id"]])
    assert "Reliability" not in page.render(report)
    assert "sure" not in Parsed(page.render(report)).data()[0]["utterances"][3]


def test_two_systems_and_their_difference(reports: tuple[Report, Report]) -> None:
    first, second = reports
    parsed = Parsed(page.render(first, second=second, names=("old", "new")))
    points = 100 * ((second.wer or 0) - (first.wer or 0))
    assert shown(parsed, "strong") == [
        plots.percent(first.wer), plots.percent(second.wer), plots.signed(points),
    ]  # fmt: skip
    gaps = [
        v.words.errors - u.words.errors
        for u, v in zip(*(r.utterances for r in reports), strict=True)
    ]
    numbers = [
        str(sum(test))
        for test in ([g < 0 for g in gaps], [g > 0 for g in gaps], [not g for g in gaps])
    ]
    assert shown(parsed, "b")[-3:] == numbers
    assert not any("Matched pairs" in text for text in shown(parsed, "p"))
    tested = replace(first, comparison=compare(first, second, replicates=50))
    lines = " ".join(shown(Parsed(page.render(tested, second=second)), "p"))
    assert "Matched pairs: p" in lines and "% of bootstrap samples" in lines


def test_only_what_can_be_compared_is(reports: tuple[Report, Report]) -> None:
    with pytest.raises(InputError, match="same references; 'a' differs"):
        page.render(score({"a": "x"}, {}), second=score({"a": "y"}, {}))
    with pytest.raises(InputError, match="'b' differs"):
        page.render(score({"a": "x", "b": "y"}, {}), second=score({"a": "x"}, {}))
    with pytest.raises(InputError, match="one normalizer, not none and basic"):
        page.render(score({"a": "x"}, {}), second=score({"a": "x"}, {}, normalizer="basic"))
    with pytest.raises(InputError, match="one aligner"):
        page.render(score({"a": "x"}, {}), second=score({"a": "x"}, {}, aligner="sclite"))


@pytest.fixture
def recordings(tmp_path: Path) -> dict[str, Path]:
    heads = {
        "wav": b"RIFF\x00\x00\x00\x00WAVEfmt ", "flac": b"fLaC\x00", "mp3": b"\xff\xfb\x90\x00",
        "id3": b"ID3\x04\x00", "m4a": b"\x00\x00\x00\x20ftypM4A ", "ogg": b"OggS\x00",
        "sph": b"NIST_1A\n", "text": b"hello", "empty": b"",
    }  # fmt: skip
    folder = tmp_path / "a folder"
    folder.mkdir()
    for name, head in heads.items():
        (folder / f"{name}#1").write_bytes(head + b"\x01" * 50 if head else b"")
    return {name: folder / f"{name}#1" for name in heads} | {"gone": folder / "gone"}


def test_recordings_inside_or_beside(recordings: dict[str, Path], tmp_path: Path) -> None:
    ids = list(recordings)
    inside = gather(recordings, ids, tmp_path, room=10_000)
    assert inside.how == "embedded" and set(inside.unplayable) == {"sph", "text", "empty", "gone"}
    kinds = {id: uri.split(";")[0] for id, uri in inside.sources.items()}
    assert kinds == {
        "wav": "data:audio/wav", "flac": "data:audio/flac", "mp3": "data:audio/mpeg",
        "id3": "data:audio/mpeg", "m4a": "data:audio/mp4", "ogg": "data:audio/ogg",
    }  # fmt: skip
    content = base64.b64decode(inside.sources["wav"].split(",")[1])
    assert content == recordings["wav"].read_bytes()
    beside = gather(recordings, ids, tmp_path / "pages", room=100)
    assert beside.how == "linked"
    assert beside.sources["wav"] == "../a%20folder/wav%231"
    assert gather(recordings, ["sph", "unknown"], tmp_path, room=100).how == "none"


def test_the_page_says_where_its_sound_is(
    recordings: dict[str, Path], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    report = score(dict.fromkeys(["wav", "sph", "silent"], "x"), {})
    for limit, how, policy in (
        (10**6, "embedded", "media-src data:;"),
        (10, "linked", "media-src 'self' file:;"),
    ):
        monkeypatch.setattr(page, "LIMIT", limit)
        text = page.write(report, tmp_path / "p.html", audio=recordings).read_text()
        parsed = Parsed(text)
        data, sounds = parsed.data()
        assert [e.get("sound") for e in data["utterances"]] == [None, None, True]
        assert list(sounds) == ["wav"]
        assert any(how in line and line.startswith("1,") for line in shown(parsed, "dd"))
        assert any("1 recording is not there" in line for line in shown(parsed, "dd"))
        assert policy in text


def test_the_worst_are_listed_where_not_all_fit() -> None:
    entries = [{"id": str(i), "heard": [[3, *["~x"] * i]]} for i in range(10)]
    kept, size = fitting(entries, 270)
    assert [each["id"] for each in kept] == ["7", "8", "9"] and size <= 270
    assert fitting(entries)[0] == entries


def test_thousands_are_not_in_the_markup() -> None:
    references, hypotheses = drawn(5000, 7)
    text = page.render(
        score(references, hypotheses, ci=None), durations=dict.fromkeys(references, 1.0)
    )
    assert len(text) < 1_500_000
    parsed = Parsed(text)
    assert not parsed.all("article") and len(parsed.elements) < 1500
    assert len(parsed.data()[0]["utterances"]) == 5000


def test_files_are_whole_or_not_there(tmp_path: Path) -> None:
    report = score({"a": "x"}, {"a": "x"})
    with pytest.raises(InputError, match=r"cannot write .*nowhere.p\.html"):
        page.write(report, tmp_path / "nowhere" / "p.html")
    with pytest.raises(InputError, match="cannot write"):
        page.write(report, tmp_path)
    assert not list(tmp_path.iterdir())
    assert page.write(report, tmp_path / "p.html") == tmp_path / "p.html"
    assert [path.name for path in tmp_path.iterdir()] == ["p.html"]
