"""A report as one HTML file: the scores, where the errors are, and every utterance's alignment.

It opens with the network off. The alignments are embedded as JSON and drawn as they come into
view, so that thousands open at once. Texts come from files and are never trusted: see
:mod:`asr.html`.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

from asr import html
from asr.errors import InputError
from asr.evaluation import plots
from asr.evaluation.breakdown import Confusion, confusions, spans
from asr.evaluation.calibration import Calibration, Collected, collect, measure
from asr.evaluation.entries import LIMIT, entry, fitting, said
from asr.evaluation.report import Report, UtteranceScore
from asr.evaluation.sounds import gather
from asr.evaluation.table import named

#: Confidences of recognised words, by utterance id: (word, confidence) in order.
Words = Mapping[str, Sequence[tuple[str, float]]]
#: Rows of each table of confusions that the page shows.
MOST = 25
_OPS: tuple[Literal["S", "D", "I"], ...] = ("S", "D", "I")


@dataclass(frozen=True)
class _System:
    letter: str  # what it is called where room is short
    name: str
    report: Report
    utterances: tuple[UtteranceScore, ...]  # in the report each is made when it is looked at
    collected: Collected | None
    calibration: Calibration | None

    @classmethod
    def of(cls, letter: str, name: str, report: Report, words: Words | None) -> _System:
        collected = collect(report, words) if words else None
        found = measure(collected.pairs) if collected and collected.pairs else None
        return cls(letter, name, report, tuple(report.utterances), collected, found)


def render(
    report: Report,
    *,
    second: Report | None = None,
    names: tuple[str, str] = ("A", "B"),
    title: str = "Word errors",
    audio: Mapping[str, str | Path] | None = None,
    durations: Mapping[str, float] | None = None,
    words: Words | None = None,
    second_words: Words | None = None,
    about: Mapping[str, Any] | None = None,
    folder: str | Path = ".",
) -> str:
    """The page of one report, or of two systems' on the same references, beside one another.

    Args:
        second: another system's report, ``names`` what the two are called. What ``report`` has
            for a ``comparison`` is shown with it.
        audio: recordings by utterance id. Embedded when the page stays below 20 MB with them,
            otherwise linked relative to ``folder``, where the page will lie; the page says which.
        durations: seconds by utterance id, for the plot of errors against them.
        words: what was recognised with its confidences, for calibration (``second_words``: by the
            second system); see :func:`asr.evaluation.calibration.collect`.
        about: what was scored and how it was decoded, as :meth:`Report.save` takes it.

    Raises InputError for reports of other references or normalisers, and as ``collect`` does.
    """
    systems = [_System.of("A", names[0], report, words)]
    if second is not None:
        systems.append(_System.of("B", names[1], second, second_words))
        _check_same(*systems)
    common: dict[str, list[Confusion]] = {
        op: confusions([system.utterances for system in systems], op) for op in _OPS
    }
    sure = [system.collected.confidences if system.collected else {} for system in systems]
    entries, size = fitting(
        entry(list(scores), sure, durations or {})
        for scores in zip(*(system.utterances for system in systems), strict=True)
    )
    sounds = gather(audio or {}, [e["id"] for e in entries], Path(folder), room=LIMIT - size)
    for each in entries:
        if each["id"] in sounds.sources:
            each["sound"] = True
    # What the page's scripts draw from.
    data = {
        "names": [system.letter for system in systems],
        "common": {op: [row[:2] for row in rows[:MOST]] for op, rows in common.items()},
        "utterances": entries,
    }
    return html.render(
        "asr.evaluation",
        "report.html",
        styles=("base.css", "report.css"),
        scripts=("theme.js", "alignment.js", "sound.js", "list.js", "tables.js"),
        title=title,
        systems=systems,
        rows=list(_rows(systems)),
        groups=(groups := _groups(systems)),
        widest=max((s.wer or 0 for _, row in groups for s in row), default=0),
        outcome=_outcome(systems) if second else None,
        comparison=report.comparison,
        charts_data=list(_charts(systems, durations or {})),
        curves=[
            (system, plots.curves(system.calibration))
            for system in systems
            if system.calibration is not None
        ],
        common={op: (rows[:MOST], len(rows)) for op, rows in common.items()},
        facts=[*_facts(report), *_flat(about or {})],
        sounds=sounds,
        data=data,
        left_out=len(report.utterances) - len(entries),
        percent=plots.percent,
        signed=plots.signed,
        plural=plots.plural,
        plots=plots,
    )


def write(report: Report, path: str | Path, **options: Any) -> Path:
    """Write :func:`render`'s page in one step; ``options`` are its own, but for ``folder``.

    Raises InputError when the place cannot be written, and as ``render`` does.
    """
    path = Path(path)
    page = render(report, **options, folder=path.parent)
    try:
        html.write(path, page)
    except OSError as error:
        raise InputError(f"cannot write {path}: {error.strerror or error}") from error
    return path


def _check_same(first: _System, second: _System) -> None:
    for of in ("normalizer", "aligner"):
        ours, theirs = (getattr(system.report, of) for system in (first, second))
        if ours != theirs:
            raise InputError(
                f"two reports are compared under one {of}, not {ours['name']} and {theirs['name']}"
            )
    before, after = ({u.id: said(u) for u in s.utterances} for s in (first, second))
    for id in sorted(before.keys() | after.keys()):
        if before.get(id) != after.get(id):
            raise InputError(f"two reports are compared on the same references; {id!r} differs")


def _rows(systems: Sequence[_System]) -> Iterator[tuple[str, Any, bool]]:
    """Of the table of scores: name, summary, and whether it is the headline."""
    for system in systems:
        report = system.report
        prefix = f"{system.letter}: " if len(systems) > 1 else ""
        raw_leads = report.normalizer["name"] == "none"
        normalised = report.normalised
        yield f"{prefix}as given", report.raw, raw_leads
        yield (
            f"{prefix}normalised ({normalised.normalizer['name']})",
            normalised.summary,
            not raw_leads,
        )


def _groups(systems: Sequence[_System]) -> list[tuple[str, list[Any]]]:
    first, *others = (system.report.groups for system in systems)
    return [
        (name, [summary, *(other[name] for other in others if name in other)])
        for name, summary in first.items()
    ]


def _outcome(systems: Sequence[_System]) -> dict[str, Any]:
    """How the second system compares with the first."""
    first, second = systems
    errors = {u.id: u.words.errors for u in second.utterances}
    differences = [errors[u.id] - u.words.errors for u in first.utterances]
    was, now = first.report.wer, second.report.wer
    return {
        "points": 100 * (now - was) if was is not None and now is not None else None,
        "relative": 100 * (now / was - 1) if was and now is not None else None,
        "fewer": sum(d < 0 for d in differences),
        "more": sum(d > 0 for d in differences),
        "same": sum(d == 0 for d in differences),
    }


def _charts(
    systems: Sequence[_System], durations: Mapping[str, float]
) -> Iterator[tuple[str, str, plots.Bars]]:
    names = [system.letter if len(systems) > 1 else "" for system in systems]
    by_id = [{u.id: u.words for u in system.utterances} for system in systems]
    ids = [u.id for u in systems[0].utterances if u.words.reference]
    for title, unit, known, value in (
        ("WER by length of the reference", "words", ids, lambda id: by_id[0][id].reference),
        ("WER by duration", "s", [id for id in ids if id in durations], durations.get),
    ):
        if known:
            found = spans(
                [value(id) for id in known],  # type: ignore[misc]
                [tuple(counts[id] for counts in by_id) for id in known],
            )
            yield title, unit, plots.bars(found, names, whole=unit == "words")


def _facts(report: Report) -> Iterator[tuple[str, str]]:
    yield "normaliser", named(report.normalizer)
    yield "aligner", ", ".join(report.aligner.values())
    if interval := report.intervals.get("wer"):
        yield (
            "intervals",
            f"{100 * interval.level:g} %, bootstrap over {interval.units} {interval.unit}s, "
            f"{interval.replicates} samples, seed {interval.seed}",
        )
    yield from report.versions.items()


def _flat(content: Mapping[str, Any], prefix: str = "") -> Iterator[tuple[str, str]]:
    """Nested mappings as (path of keys, value)."""
    for key, value in content.items():
        name = f"{prefix}{key}".replace("_", " ")
        if isinstance(value, Mapping):
            yield from _flat(value, f"{name} ")
        else:
            yield name, f"{value:g}" if isinstance(value, float) else str(value)
