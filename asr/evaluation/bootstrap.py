"""Bootstrap confidence intervals of error rates.

M. Bisani and H. Ney, "Bootstrap estimates for confidence intervals in ASR performance evaluation",
ICASSP 2004: resample units with replacement, pool errors and reference lengths over the sample,
and take percentiles of the pooled rate. The units have to be independent, which
utterances of one speaker are not, so speakers are the units where they are known.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

FEW = 50  # fewer units than this, and a 95 % interval holds the truth less often than 93 %
_BLOCK = 1_000_000  # most draws held in memory at once
_MOST_UNITS = 10_000  # more than these are pooled at random first


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

    @property
    def warning(self) -> str:
        """What is to be known before relying on it; blank where nothing is."""
        if self.units >= FEW:
            return ""
        return (
            f"only {self.units} {self.unit}s: the interval is rough, and tends to be too narrow "
            f"(fewer than {FEW})"
        )

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
        size = min(rows, replicates - start)
        drawn = generator.integers(units, size=(size, units))
        drawn += units * np.arange(size)[:, None]
        # How often each unit was drawn: exact in float64, and a matrix product pools the sample.
        often = np.bincount(drawn.ravel(), minlength=size * units).reshape(size, units)
        pooled.append(often.astype(np.float64) @ both)
    sums = np.concatenate(pooled)
    rates = np.full((replicates, kinds), np.nan)
    np.divide(sums[:, :kinds], sums[:, kinds:], out=rates, where=sums[:, kinds:] > 0)
    return rates


def by_unit(values: ArrayLike, units: Sequence[str] | None) -> NDArray[np.float64]:
    """Sums (M,K) of ``values`` (n,K) over units, in the order of the units' names.

    ``units`` (n,) names the unit of each row; None: every row is one of its own.
    """
    values = np.asarray(values, dtype=np.float64)
    if units is None:
        return values
    names, where = np.unique(np.asarray(units, dtype=object).astype(str), return_inverse=True)
    sums = np.zeros((len(names), values.shape[1]))
    np.add.at(sums, where, values)
    return sums


def intervals(
    errors: ArrayLike,
    lengths: ArrayLike,
    units: Sequence[str] | None = None,
    *,
    unit: str,
    level: float = 0.95,
    replicates: int = 2000,
    seed: int = 0,
) -> list[Interval | None]:
    """Percentile intervals of K pooled rates; None where one cannot be had.

    ``errors`` and ``lengths`` (n,K) of n utterances, ``units`` (n,) the name of the unit each
    belongs to (None: every utterance is one). There is no interval for fewer than two units, or
    without any reference length. More than 10,000 units are first pooled into 10,000 at random
    (with ``seed``), which keeps them independent and the rates as they are.
    """
    kinds = np.asarray(errors).shape[1]
    both = by_unit(np.concatenate([errors, lengths], axis=1), units)
    count = len(both)
    if count < 2:
        return [None] * kinds
    both = thinned(both, seed)
    rates = resampled_rates(both[:, :kinds], both[:, kinds:], replicates=replicates, seed=seed)
    return [
        Interval(*ends, level, replicates, seed, unit, count) if (ends := percentiles(rate, level))
        else None
        for rate in rates.T
    ]  # fmt: skip


def thinned(sums: NDArray[np.float64], seed: int) -> NDArray[np.float64]:
    """``sums`` (M,K), or those of 10,000 random pools of units where there are more."""
    if len(sums) <= _MOST_UNITS:
        return sums
    pool = np.random.default_rng(seed).permutation(len(sums)) % _MOST_UNITS
    return np.stack([np.bincount(pool, column, _MOST_UNITS) for column in sums.T], axis=1)


def percentiles(rates: NDArray[np.float64], level: float) -> tuple[float, float] | None:
    """The ends between which ``level`` of the defined ``rates`` lie; None without any."""
    defined = rates[~np.isnan(rates)]
    if not defined.size:
        return None
    low, high = np.quantile(defined, [(1 - level) / 2, (1 + level) / 2])
    return float(low), float(high)
