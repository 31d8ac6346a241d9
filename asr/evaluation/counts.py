"""Error counts, and the steps of the alignment they come from."""

from __future__ import annotations

from array import array
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import NamedTuple, TypeAlias

import numpy as np
from numpy.typing import NDArray

from asr.evaluation.aligners import ALIGNERS

Table: TypeAlias = "NDArray[np.int32]"  # (n,4): hits, substitutions, deletions, insertions


@dataclass(frozen=True)
class Counts:
    """Hits and errors of an alignment of reference to hypothesis units (words or characters)."""

    hits: int = 0
    substitutions: int = 0
    deletions: int = 0
    insertions: int = 0

    @classmethod
    def total(cls, table: Table) -> Counts:
        """The sum over the rows of ``table`` (n,4)."""
        return cls(*table.sum(axis=0).tolist())

    @property
    def errors(self) -> int:
        return self.substitutions + self.deletions + self.insertions

    @property
    def reference(self) -> int:
        """Length of the reference in units."""
        return self.hits + self.substitutions + self.deletions

    @property
    def rate(self) -> float | None:
        """Errors per reference unit, a fraction that may exceed 1; None without reference units."""
        return self.errors / self.reference if self.reference else None

    def __add__(self, other: Counts) -> Counts:
        return Counts(
            self.hits + other.hits,
            self.substitutions + other.substitutions,
            self.deletions + other.deletions,
            self.insertions + other.insertions,
        )


class Step(NamedTuple):
    """One step of an alignment: ``=`` (hit), ``S``, ``D`` or ``I``, and the units (None: none)."""

    op: str
    reference: str | None
    hypothesis: str | None


def words(text: str) -> list[str]:
    """The words of ``text``: what Unicode whitespace separates."""
    return text.split()


def characters(text: str) -> str:
    """The code points of ``text`` with single spaces between words, the spaces counted."""
    return " ".join(text.split())


def steps(
    reference: Sequence[str], hypothesis: Sequence[str], *, aligner: str = "levenshtein"
) -> tuple[Step, ...]:
    """The whole alignment of one pair, hits included (see :mod:`asr.evaluation.aligners`)."""
    taken: list[Step] = []
    said = heard = 0
    for op, place, _ in ALIGNERS[aligner](reference, hypothesis):
        while said < place:
            taken.append(Step("=", reference[said], hypothesis[heard]))
            said, heard = said + 1, heard + 1
        taken.append(
            Step(
                op,
                None if op == "I" else reference[said],
                None if op == "D" else hypothesis[heard],
            )
        )
        said += op != "I"
        heard += op != "D"
    rest = zip(reference[said:], hypothesis[heard:], strict=True)
    return (*taken, *(Step("=", a, b) for a, b in rest))


class Tally:
    """Counts of many pairs, eight numbers each: alignments and texts are not kept.

    ``words`` and ``characters`` are (n,4) in the order the pairs came.
    """

    def __init__(self, aligner: str = "levenshtein") -> None:
        self._align = ALIGNERS[aligner]
        self._numbers = array("i")

    @classmethod
    def of(cls, pairs: Iterable[tuple[str, str]], *, aligner: str = "levenshtein") -> Tally:
        """Of (reference, hypothesis) texts, taken one at a time."""
        tally = cls(aligner)
        for reference, hypothesis in pairs:
            tally.add(reference, hypothesis)
        return tally

    def add(self, reference: str, hypothesis: str) -> None:
        """Count one more pair of texts."""
        said, heard = reference.split(), hypothesis.split()
        self._count(said, heard)
        self._count(" ".join(said), " ".join(heard))

    def repeat(self, other: Tally) -> None:
        """Count what ``other`` counted last."""
        self._numbers.extend(other._numbers[-8:])

    def __len__(self) -> int:
        return len(self._numbers) // 8

    @property
    def words(self) -> Table:
        return self._table()[:, :4]

    @property
    def characters(self) -> Table:
        return self._table()[:, 4:]

    def _table(self) -> Table:
        return np.array(self._numbers, dtype=np.int32).reshape(-1, 8)

    def _count(self, said: Sequence[str], heard: Sequence[str]) -> None:
        if said == heard:
            self._numbers.extend((len(said), 0, 0, 0))
            return
        ops = [edit[0] for edit in self._align(said, heard)]
        substituted, deleted = ops.count("S"), ops.count("D")
        hits = len(said) - substituted - deleted
        self._numbers.extend((hits, substituted, deleted, len(ops) - substituted - deleted))
