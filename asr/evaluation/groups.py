"""Groups of utterances: by what a manifest says of them, numbers in bins."""

from __future__ import annotations

import math
import re
from collections.abc import Mapping, Sequence

import numpy as np
from numpy.typing import NDArray

NO_GROUP = "unknown"
_BINS = 5
_DECIMAL = re.compile(r"[-+]?\d+\.\d+")
_NUMBER = re.compile(r"-?\d+(\.\d+)?")


def by_field(fields: Mapping[str, Mapping[str, str | float]], key: str) -> dict[str, str]:
    """A group's name by id from the field ``key``, for those that have it; numbers in bins.

    Numbers are JSON numbers, and texts with a decimal point in them ("12.5"); where every value is
    one they are binned. Speakers are never binned, whatever they are called.
    """
    values = {id: row[key] for id, row in fields.items() if row.get(key) not in (None, "")}
    numbers = {id: _number(value) for id, value in values.items()}
    known = {id: number for id, number in numbers.items() if number is not None}
    if key == "speaker" or len(known) < len(values):
        return {id: str(value) for id, value in values.items()}
    return binned(known)


def binned(values: Mapping[str, float], most: int = _BINS) -> dict[str, str]:
    """A bin's name by id, at most ``most`` bins of about as many utterances each.

    ``most`` different values or fewer are groups of their own. A bin is named by the least and
    greatest value in it, so that equal values never fall apart.
    """
    if not values:
        return {}
    numbers = np.array(list(values.values()), dtype=np.float64)
    distinct = np.unique(numbers)
    if len(distinct) <= most:
        return {id: _shown(value) for id, value in values.items()}
    cuts = np.unique(np.quantile(numbers, np.arange(1, most) / most, method="lower"))
    place = np.searchsorted(cuts, numbers)  # a cut belongs to the bin it ends
    names = {}
    for bin in np.unique(place):
        inside = numbers[place == bin]
        low, high = _shown(inside.min()), _shown(inside.max())
        names[bin] = low if low == high else f"{low} to {high}"
    return dict(zip(values, (names[bin] for bin in place), strict=True))


def ordered(ids: Sequence[str], groups: Mapping[str, str]) -> dict[str, NDArray[np.intp]]:
    """Rows of each group: numbered groups by their number, then the others by name."""
    members: dict[str, list[int]] = {}
    for row, id in enumerate(ids):
        if id in groups:
            members.setdefault(groups[id], []).append(row)
    return {name: np.array(members[name]) for name in sorted(members, key=_rank)}


def _number(value: str | float) -> float | None:
    if isinstance(value, str):
        return float(value) if _DECIMAL.fullmatch(value) else None
    return None if isinstance(value, bool) or not math.isfinite(value) else float(value)


def _rank(name: str) -> tuple[float, str]:
    number = _NUMBER.match(name)
    return (float(number[0]) if number else math.inf, name)


def _shown(value: float) -> str:
    return f"{value:.4g}" if abs(value) < 10_000 else f"{value:.0f}"
