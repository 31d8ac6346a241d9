"""Bootstrap confidence intervals of error rates.

M. Bisani and H. Ney, "Bootstrap estimates for confidence intervals in ASR performance evaluation",
ICASSP 2004: resample units with replacement, pool errors and reference lengths over the sample,
and take percentiles of the pooled rate (their eq. 5-7). The units have to be independent, which
utterances of one speaker are not, so speakers are the units where they are known.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

_BLOCK = 4_000_000  # most draws held in memory at once


@dataclass(frozen=True)
class Interval:
    """``low`` and ``high`` (fractions) of a percentile interval, and all that reproduces it.

    ``unit`` says what was resampled, ``units`` how many of them there were.
    """

    low: float
    high: float
    level: float
    replicates: int
    seed: int
    unit: str
    units: int

    def to_json(self) -> dict[str, Any]:
        return asdict(self)


def resampled_rates(
    errors: ArrayLike, lengths: ArrayLike, *, replicates: int, seed: int
) -> NDArray[np.float64]:
    """Pooled error rates of bootstrap samples, (replicates, K).

    ``errors`` and ``lengths`` (M,K): M units, K rates that share the same samples. A sample
    without any reference length has the rate NaN.
    """
    errors = np.asarray(errors, dtype=np.float64)
    lengths = np.asarray(lengths, dtype=np.float64)
    units, kinds = errors.shape
    both = np.concatenate([errors, lengths], axis=1)
    generator = np.random.default_rng(seed)
    rows = max(1, _BLOCK // units)
    pooled = []
    for start in range(0, replicates, rows):
        size = (min(rows, replicates - start), units)
        # How often each unit was drawn: exact in float64, and a matrix product pools the sample.
        drawn = generator.multinomial(units, np.full(units, 1 / units), size=size[0])
        pooled.append(drawn.astype(np.float64) @ both)
    sums = np.concatenate(pooled)
    rates = np.full((replicates, kinds), np.nan)
    np.divide(sums[:, :kinds], sums[:, kinds:], out=rates, where=sums[:, kinds:] > 0)
    return rates


def intervals(
    errors: ArrayLike,
    lengths: ArrayLike,
    units: Sequence[str],
    *,
    unit: str,
    level: float = 0.95,
    replicates: int = 2000,
    seed: int = 0,
) -> list[Interval | None]:
    """Percentile intervals of K pooled rates; None where one cannot be had.

    ``errors`` and ``lengths`` (n,K) of n utterances, ``units`` (n,) the name of the unit each
    belongs to. There is no interval for fewer than two units, or without any reference length.
    """
    errors = np.asarray(errors, dtype=np.float64)
    lengths = np.asarray(lengths, dtype=np.float64)
    names, where = np.unique(np.asarray(units, dtype=object).astype(str), return_inverse=True)
    if len(names) < 2:
        return [None] * errors.shape[1]
    unit_errors = np.zeros((len(names), errors.shape[1]))
    unit_lengths = np.zeros_like(unit_errors)
    np.add.at(unit_errors, where, errors)
    np.add.at(unit_lengths, where, lengths)
    rates = resampled_rates(unit_errors, unit_lengths, replicates=replicates, seed=seed)
    tail = (1 - level) / 2
    found: list[Interval | None] = []
    for column in rates.T:
        defined = column[~np.isnan(column)]
        if not defined.size:
            found.append(None)
            continue
        low, high = np.quantile(defined, [tail, 1 - tail])
        found.append(
            Interval(float(low), float(high), level, replicates, seed, unit, len(names))
        )
    return found
