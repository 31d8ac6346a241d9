"""Geometry of the page's plots; the templates draw it as SVG. All lengths in SVG user units."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import NamedTuple

from asr.evaluation.breakdown import Span
from asr.evaluation.calibration import Calibration
from asr.evaluation.counts import Counts

LEFT, TOP, BELOW = 44.0, 22.0, 58.0
SLOT, HEIGHT = 62.0, 170.0
SQUARE = 220.0


class Box(NamedTuple):
    """A part of a bar: ``kind`` S, D or I."""

    x: float
    y: float
    width: float
    height: float
    kind: str


class Bar(NamedTuple):
    """One system's bar over a bin: its parts, and the rate written above it."""

    x: float
    y: float
    boxes: tuple[Box, ...]
    rate: str
    title: str


class Slot(NamedTuple):
    """One bin: its bars, and its label and size below them."""

    x: float
    label: str
    utterances: int
    bars: tuple[Bar, ...]


class Tick(NamedTuple):
    at: float
    text: str


class Bars(NamedTuple):
    width: float
    height: float
    base: float
    slots: tuple[Slot, ...]
    ticks: tuple[Tick, ...]


def percent(rate: float | None) -> str:
    """A fraction as a percentage with two digits, a dash for None."""
    return "–" if rate is None else f"{100 * rate:.2f}"


def signed(value: float, digits: int = 2) -> str:
    """With its sign, a true minus among them."""
    return f"{value:+.{digits}f}".replace("-", "−")


def plural(number: int, one: str, more: str) -> str:
    """A number and what it counts."""
    return f"{number:,} {one if number == 1 else more}"


def bars(spans: Sequence[Span], names: Sequence[str], *, whole: bool) -> Bars:
    """WER of each bin, a bar a system, in its parts; ``whole``: the bins' values are integers."""
    highest = max((counts.rate or 0 for span in spans for counts in span.counts), default=0)
    step = _step(100 * highest)
    top = step * max(1, math.ceil(100 * highest / step - 1e-9))
    base = TOP + HEIGHT

    def y(rate: float) -> float:
        return base - HEIGHT * 100 * rate / top

    width = (SLOT - 16) / len(names)
    slots = []
    for index, span in enumerate(spans):
        left = LEFT + index * SLOT + 8
        drawn = tuple(
            _bar(left + system * width, width - 2, counts, base, y, names[system], len(names) == 1)
            for system, counts in enumerate(span.counts)
        )
        slots.append(Slot(left + (SLOT - 16) / 2, _range(span, whole), span.utterances, drawn))
    ticks = tuple(Tick(y(value / 100), f"{value:g} %") for value in _multiples(step, top))
    return Bars(LEFT + SLOT * len(spans) + 6, base + BELOW, base, tuple(slots), ticks)


def _bar(x, width, counts: Counts, base, y, name: str, alone: bool) -> Bar:  # type: ignore[no-untyped-def]
    if not counts.reference:
        return Bar(x + width / 2, base, (), "–" if alone else "", f"{name}: no reference words")
    boxes, sofar = [], 0
    for kind, number in zip(
        "SDI", (counts.substitutions, counts.deletions, counts.insertions), strict=True
    ):
        if number:
            low = y(sofar / counts.reference)
            sofar += number
            high = y(sofar / counts.reference)
            boxes.append(Box(x, high, width, low - high, kind))
    rate = 100 * (counts.rate or 0)
    title = (
        f"{name + ': ' if name else ''}WER {rate:.2f} %: {counts.substitutions} substitutions, "
        f"{counts.deletions} deletions, {counts.insertions} insertions, {counts.reference} words"
    )
    shown = f"{rate:.1f}" if rate < 99.95 else f"{rate:.0f}"
    return Bar(x + width / 2, y(counts.errors / counts.reference), tuple(boxes), shown, title)


def _range(span: Span, whole: bool) -> str:
    low, high = (f"{value:.0f}" if whole else f"{value:.1f}" for value in (span.low, span.high))
    return low if low == high else f"{low}–{high}"


def _step(highest: float) -> float:
    """A round distance between four or so ticks up to ``highest``."""
    if highest <= 0:
        return 1
    rough = highest / 4
    power = 10 ** math.floor(math.log10(rough))
    return float(next(power * unit for unit in (1, 2, 5, 10) if rough <= power * unit * 1.0001))


def _multiples(step: float, top: float) -> list[float]:
    return [step * index for index in range(round(top / step) + 1)]


class Dot(NamedTuple):
    """A bin of the reliability diagram, with the 95 % Wilson interval of its accuracy."""

    x: float
    y: float
    radius: float
    low: float
    high: float
    title: str


class Curves(NamedTuple):
    """Reliability ``dots`` and the ROC's ``points`` (of a polyline) of one system."""

    dots: tuple[Dot, ...]
    line: str
    roc: str


def curves(found: Calibration) -> Curves:
    """In a square of side SQUARE whose origin is at (LEFT, TOP + SQUARE)."""

    def at(x: float, y: float) -> tuple[float, float]:
        return LEFT + SQUARE * x, TOP + SQUARE * (1 - y)

    largest = max((bin.words for bin in found.bins), default=0)
    dots = []
    for bin in found.bins:
        if bin.accuracy is None or bin.confidence is None:
            continue
        low, high = wilson(bin.accuracy, bin.words)
        x, y = at(bin.confidence, bin.accuracy)
        dots.append(
            Dot(
                x, y, 2.5 + 5 * math.sqrt(bin.words / largest), at(0, low)[1], at(0, high)[1],
                f"confidence {bin.low:.1f} to {bin.high:.1f}: {bin.words} words, mean confidence "
                f"{bin.confidence:.3f}, {100 * bin.accuracy:.1f} % right",
            )
        )  # fmt: skip
    line = _points([(dot.x, dot.y) for dot in dots])
    return Curves(tuple(dots), line, _points([at(*point) for point in found.roc]))


def wilson(share: float, n: int, z: float = 1.959964) -> tuple[float, float]:
    """Score interval of a share of ``n`` (E. B. Wilson, JASA 1927), which stays within [0, 1]."""
    middle = (share + z * z / (2 * n)) / (1 + z * z / n)
    half = z / (1 + z * z / n) * math.sqrt(share * (1 - share) / n + z * z / (4 * n * n))
    return max(0.0, middle - half), min(1.0, middle + half)


def _points(at: Sequence[tuple[float, float]]) -> str:
    return " ".join(f"{x:.1f},{y:.1f}" for x, y in at)
