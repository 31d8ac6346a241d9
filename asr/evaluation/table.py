"""A report as plain text, the same on a terminal and in a file."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from asr.evaluation.counts import Counts
from asr.evaluation.onsets import OnsetReport
from asr.evaluation.report import Report, Summary
from asr.evaluation.scoring import listed
from asr.evaluation.significance import Comparison


def render(report: Report, *, cer: bool = False, onsets: OnsetReport | None = None) -> str:
    """The headline first, then the other normalisation, intervals, groups and what needs saying.

    ``cer`` adds the character error rate and its counts. Rates are percentages here.
    """
    normalised = report.normalised
    rows = {named(normalised.normalizer): normalised.summary, "raw": report.raw}
    if report.normalizer["name"] == "none":
        rows = dict(reversed(rows.items()))
    parts = ["\n".join(_table("words", rows, "words"))]
    if cer:
        parts.append("\n".join(_table("characters", rows, "characters")))
    if report.comparison is not None:
        parts.append("\n".join(_compared(report.comparison)))
    parts.append("\n".join(_notes(report, cer, onsets)))
    if report.groups:
        parts.append("\n".join(_groups(report, cer)))
    return "\n\n".join(part for part in parts if part) + "\n"


def _compared(found: Comparison) -> list[str]:
    """The second system against the first: a table, then a sentence each."""
    lines = _table("words", {"first": found.first, "second": found.second}, "words")
    change = "-" if found.difference is None else f"{100 * found.difference:+.2f}"
    lines.append(f"WER of the second minus the first: {change}")
    if (interval := found.interval) is not None and found.improvement is not None:
        lines.append(
            f"{100 * interval.level:g} % interval of the difference: {100 * interval.low:+.2f} to "
            f"{100 * interval.high:+.2f} (paired bootstrap over {interval.units} {interval.unit}s, "
            f"{interval.replicates} samples, seed {interval.seed}); "
            f"the second is better in {_percent(found.improvement)} % of samples"
        )
    if (pairs := found.matched_pairs) is not None:
        value = "not defined" if pairs.z is None else f"z {pairs.z:.3f}, p {pairs.p:.4g}"
        lines.append(f"matched pairs (MAPSSWE): {pairs.segments} segments, {value}")
    if found.missing:
        lines.append(
            f"without a hypothesis of the second, counted as deleted: {len(found.missing)} "
            f"({listed(found.missing)})"
        )
    return lines


def named(normalizer: Mapping[str, str]) -> str:
    """A normaliser for people: "basic, version 1", "english (whisper-normalizer 0.1.12)"."""
    name, version = normalizer["name"], normalizer["version"]
    if library := normalizer.get("library"):
        return f"{name} ({library} {version})"
    return f"{name}, version {version}" if version else name


def _table(of: str, rows: Mapping[str, Summary], label: str) -> list[str]:
    rate = "WER %" if of == "words" else "CER %"
    head = ["", rate, "errors", "S", "D", "I", label]
    if of == "words":
        head += ["SER %", "utterances"]
    body = []
    for name, summary in rows.items():
        counts = summary.words if of == "words" else summary.characters
        cells = [name, *_cells(counts)]
        if of == "words":
            cells += [_percent(summary.ser), str(summary.utterances)]
        body.append(cells)
    return _aligned([head, *body])


def _cells(counts: Counts) -> list[str]:
    return [
        _percent(counts.rate),
        str(counts.errors),
        str(counts.substitutions),
        str(counts.deletions),
        str(counts.insertions),
        str(counts.reference),
    ]


def _groups(report: Report, cer: bool) -> list[str]:
    head = [report.group_by, "WER %", "errors", "S", "D", "I", "words"]
    head += ["CER %"] if cer else []
    body = [
        [_printable(name), *_cells(summary.words), *([_percent(summary.cer)] if cer else [])]
        for name, summary in report.groups.items()
    ]
    macro = f"mean over groups: {_percent(report.macro_wer)}"
    return [*_aligned([head, *body]), macro]


def _notes(report: Report, cer: bool, onsets: OnsetReport | None) -> list[str]:
    lines = []
    for name in ("wer", "cer") if cer else ("wer",):
        if interval := report.intervals.get(name):
            lines.append(
                f"{name.upper()} {100 * interval.level:g} % interval: "
                f"{_percent(interval.low)} to {_percent(interval.high)} (bootstrap over "
                f"{interval.units} {interval.unit}s, {interval.replicates} samples, "
                f"seed {interval.seed})"
            )
        elif name in report.intervals:
            lines.append(f"{name.upper()} interval: none (two units with reference are needed)")
    if report.missing:
        lines.append(
            f"without a hypothesis, counted as deleted: {len(report.missing)} "
            f"({listed(report.missing)})"
        )
    if report.empty_references:
        lines.append(
            f"empty references: {len(report.empty_references)} "
            f"({listed(report.empty_references)}), "
            f"{report.empty_reference_insertions} words inserted into them"
        )
    if report.unknown:
        lines.append(
            f"hypotheses without a reference, left out: {len(report.unknown)} "
            f"({listed(report.unknown)})"
        )
    if onsets is not None:
        lines.append(_onset_line(onsets))
    aligner = report.aligner
    lines.append(f"aligned by {aligner['name']} ({aligner['costs']}; {aligner['library']})")
    lines += [f"warning: {warning}" for warning in report.warnings]
    return lines


def _onset_line(onsets: OnsetReport) -> str:
    base = f"{onsets.utterances} of {onsets.timed} timed utterances recognised without an error"
    if onsets.median is None or onsets.within is None:
        return f"word onsets: none to measure ({base})"
    return (
        f"word onsets: median error {1000 * onsets.median:.0f} ms, {_percent(onsets.within)} % "
        f"within {1000 * onsets.tolerance:.0f} ms ({onsets.words} words, {base})"
    )


def _percent(rate: float | None) -> str:
    return "-" if rate is None else f"{100 * rate:.2f}"


def _printable(name: str) -> str:
    """Names come from files: what could steer a terminal is shown escaped."""
    return name if name.isprintable() else repr(name)


def _aligned(rows: Sequence[Sequence[str]]) -> list[str]:
    widths = [max(len(row[column]) for row in rows) for column in range(len(rows[0]))]
    return [_row(row, widths) for row in rows]


def _row(row: Sequence[str], widths: Iterable[int]) -> str:
    cells = [
        cell.rjust(width) if column else cell.ljust(width)
        for column, (cell, width) in enumerate(zip(row, widths, strict=True))
    ]
    return "  ".join(cells).rstrip()
