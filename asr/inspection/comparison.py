"""Two models on the same sound: their attention under one clock, and how far apart they are."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field

from markupsafe import Markup

from asr import html
from asr.inspection.diagnostics import MEANINGS
from asr.inspection.figures import show
from asr.inspection.page import Entry, fragment
from asr.types import Seconds

#: Pieces that meet within this much are neighbours and do not overlap.
_TOUCH: Seconds = 1e-3
LETTERS = ("A", "B")


@dataclass(frozen=True)
class Comparison:
    """A stretch of one recording as two models heard it.

    ``sides`` are what each made of it: one entry, or more where a model listened in shorter
    pieces. All are drawn from ``start`` to ``end``, seconds of the file. ``figures`` are those of
    the whole recording by each model, for the table of differences; it is left out without them.
    """

    names: tuple[str, str]
    sides: tuple[tuple[Entry, ...], tuple[Entry, ...]]
    start: Seconds
    end: Seconds
    figures: tuple[Mapping[str, float], Mapping[str, float]] = field(default=({}, {}))

    def fragment(self) -> str:
        """Its part of a page: both sides, one below the other, on one axis of seconds."""
        first = (*self.sides[0], *self.sides[1])[0]
        views: list[tuple[str, list[Markup]]] = []
        for letter, name, entries in zip(LETTERS, self.names, self.sides, strict=True):
            label = f"{letter}: {name}"
            shown = [
                fragment(
                    entry,
                    window=(self.start, self.end),
                    label=label,
                    sound=entry is first,  # the one recording is heard from either view
                    table=len(entries) > 1,  # a lone record's figures stand among the differences
                )
                for entry in entries
            ]
            views.append((label, [Markup(each) for each in shown]))
        return (
            html.environment("asr.inspection")
            .get_template("comparison.html")
            .render(
                transcript=first.transcript,
                start=self.start,
                end=self.end,
                reference=first.reference,
                names=list(zip(LETTERS, self.names, strict=True)),
                views=views,
                rows=list(_rows(*self.figures)),
            )
        )


def compare(
    names: tuple[str, str],
    first: Sequence[Entry],
    second: Sequence[Entry],
    figures: tuple[Mapping[str, float], Mapping[str, float]],
) -> Iterator[Comparison]:
    """What two models made of one recording, stretch by stretch.

    A stretch ends where a piece of both ends (and none goes on); the first has the ``figures`` of
    the whole. Where both listened to the recording at once, there is one.
    """
    pieces = sorted(
        [(*_span(entry), 0, entry) for entry in first]
        + [(*_span(entry), 1, entry) for entry in second],
        key=lambda piece: piece[:3],
    )
    groups: list[tuple[Seconds, Seconds, tuple[list[Entry], list[Entry]]]] = []
    for start, end, side, entry in pieces:
        if not groups or start > groups[-1][1] - _TOUCH:
            groups.append((start, end, ([], [])))
        begin, last, sides = groups[-1]
        sides[side].append(entry)
        groups[-1] = (begin, max(last, end), sides)
    for start, end, (one, other) in groups:
        yield Comparison(names, (tuple(one), tuple(other)), start, end, figures)
        figures = ({}, {})


def difference(name: str, first: float, second: float) -> str:
    """How much more the second has of a figure, signed and in its unit: ``+12 points``."""
    shown = show(name, abs(second - first))
    sign = "" if shown == show(name, 0.0) else "+" if second > first else "−"
    return sign + shown.replace("%", " points")


def _rows(
    first: Mapping[str, float], second: Mapping[str, float]
) -> Iterator[tuple[str, str, str, str, str]]:
    for name, meaning in MEANINGS.items():
        if name in first or name in second:
            one, other = (show(name, of[name]) if name in of else "–" for of in (first, second))
            both = name in first and name in second
            apart = difference(name, first[name], second[name]) if both else "–"
            yield meaning.label, one, other, apart, meaning.text


def _span(entry: Entry) -> tuple[Seconds, Seconds]:
    record = entry.record
    return record.start, record.start + record.duration
