"""Error counts, and the alignment they come from."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import jiwer


@dataclass(frozen=True)
class Counts:
    """Hits and errors of an alignment of reference to hypothesis units (words or characters)."""

    hits: int = 0
    substitutions: int = 0
    deletions: int = 0
    insertions: int = 0

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


class Aligned(NamedTuple):
    counts: Counts
    steps: tuple[Step, ...]


def words(text: str) -> list[str]:
    """The words of ``text``: what Unicode whitespace separates."""
    return text.split()


def characters(text: str) -> list[str]:
    """The code points of ``text`` with single spaces between words, the spaces counted."""
    return list(" ".join(text.split()))


def align(
    references: Sequence[list[str]], hypotheses: Sequence[list[str]], *, steps: bool = True
) -> list[Aligned]:
    """Minimum edit distance alignments, pair by pair, as jiwer computes them.

    The number of errors is unique; how it divides into S, D and I may differ between aligners,
    which is why reports name theirs. With ``steps=False`` the counts alone are kept.
    """
    if not references:
        return []
    # The pairs are units already, so that jiwer's own splitting of strings is bypassed.
    output = jiwer.process_words(
        list(references),  # type: ignore[arg-type]
        list(hypotheses),  # type: ignore[arg-type]
        reference_transform=_as_given,  # type: ignore[arg-type]
        hypothesis_transform=_as_given,  # type: ignore[arg-type]
    )
    return [
        Aligned(_count(chunks), _expand(chunks, reference, hypothesis) if steps else ())
        for chunks, reference, hypothesis in zip(
            output.alignments, references, hypotheses, strict=True
        )
    ]


def _as_given(sentences: Any) -> Any:
    return sentences


def _count(chunks: Sequence[jiwer.AlignmentChunk]) -> Counts:
    total = {"equal": 0, "substitute": 0, "delete": 0, "insert": 0}
    for chunk in chunks:
        total[chunk.type] += max(
            chunk.ref_end_idx - chunk.ref_start_idx, chunk.hyp_end_idx - chunk.hyp_start_idx
        )
    return Counts(total["equal"], total["substitute"], total["delete"], total["insert"])


def _expand(
    chunks: Sequence[jiwer.AlignmentChunk], reference: list[str], hypothesis: list[str]
) -> tuple[Step, ...]:
    steps: list[Step] = []
    for chunk in chunks:
        heard = hypothesis[chunk.hyp_start_idx : chunk.hyp_end_idx]
        said = reference[chunk.ref_start_idx : chunk.ref_end_idx]
        if chunk.type == "delete":
            steps += [Step("D", word, None) for word in said]
        elif chunk.type == "insert":
            steps += [Step("I", None, word) for word in heard]
        else:
            op = "=" if chunk.type == "equal" else "S"
            steps += [Step(op, a, b) for a, b in zip(said, heard, strict=True)]
    return tuple(steps)
