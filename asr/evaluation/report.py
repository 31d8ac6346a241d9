"""What scoring found, as objects and as JSON.

The JSON (``"schema": "asr-evaluation/1"``) has the headline score at its top level; every rate is a
fraction, and null where there is no reference to divide by (an insertion into an empty reference
still counts in ``insertions`` and ``errors``). Everything is ordered by id or name, so that the
order of the lines scored cannot be seen in it.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any, overload

import numpy as np

from asr.evaluation import files
from asr.evaluation.bootstrap import Interval
from asr.evaluation.counts import Counts, Step, Table, steps, words
from asr.text.normalise import normalise

if TYPE_CHECKING:
    from asr.evaluation.significance import Comparison

SCHEMA = "asr-evaluation/1"


@dataclass(frozen=True)
class UtteranceScore:
    """One utterance. ``reference`` and ``hypothesis`` are as given (None: there was none);
    ``words``, ``characters`` and ``alignment`` are of the texts after ``normalizer``."""

    id: str
    reference: str
    hypothesis: str | None
    words: Counts
    characters: Counts
    speaker: str = ""
    group: str = ""
    normalizer: str = "none"
    aligner: str = "levenshtein"

    @cached_property
    def alignment(self) -> tuple[Step, ...]:
        """The word alignment, made when it is first asked for."""
        texts = (self.reference, self.hypothesis or "")
        said, heard = (words(normalise(text, self.normalizer)) for text in texts)
        return steps(said, heard, aligner=self.aligner)

    def to_json(self) -> dict[str, Any]:
        named = {"speaker": self.speaker, "group": self.group}
        return {
            "id": self.id,
            **{key: value for key, value in named.items() if value},
            "reference": self.reference,
            "hypothesis": self.hypothesis,
            "wer": self.words.rate,
            **_word_counts(self.words),
            "cer": self.characters.rate,
            "alignment": [list(step) for step in self.alignment],
        }


@dataclass(frozen=True, eq=False)
class Utterances(Sequence[UtteranceScore]):
    """All utterances of a report in the order of their ids, each made when it is looked at.

    A million utterances are their texts and eight numbers each (``words`` and ``characters``
    (n,4)), so that memory does not grow with what nobody looks at.
    """

    ids: Sequence[str]
    references: Mapping[str, str]
    hypotheses: Mapping[str, str]
    words: Table
    characters: Table
    speakers: Mapping[str, str]
    groups: Mapping[str, str]
    normalizer: str
    aligner: str

    def __len__(self) -> int:
        return len(self.ids)

    @overload
    def __getitem__(self, index: int) -> UtteranceScore: ...
    @overload
    def __getitem__(self, index: slice) -> tuple[UtteranceScore, ...]: ...
    def __getitem__(self, index: int | slice) -> UtteranceScore | tuple[UtteranceScore, ...]:
        if isinstance(index, slice):
            return tuple(self._at(place) for place in range(len(self))[index])
        return self._at(range(len(self))[index])

    def __iter__(self) -> Iterator[UtteranceScore]:
        return map(self._at, range(len(self)))

    def _at(self, place: int) -> UtteranceScore:
        id = self.ids[place]
        return UtteranceScore(
            id,
            self.references[id],
            self.hypotheses.get(id),
            Counts(*self.words[place].tolist()),
            Counts(*self.characters[place].tolist()),
            self.speakers.get(id, ""),
            self.groups.get(id, ""),
            self.normalizer,
            self.aligner,
        )


@dataclass(frozen=True)
class Summary:
    """A set of utterances pooled: micro rates, that is total errors over total reference units."""

    utterances: int
    words: Counts
    characters: Counts
    wrong: int

    @classmethod
    def of(cls, words: Table, characters: Table) -> Summary:
        """From the word and character counts (n,4) of each utterance."""
        wrong = int(np.count_nonzero(words[:, 1:].any(axis=1)))
        return cls(len(words), Counts.total(words), Counts.total(characters), wrong)

    @property
    def wer(self) -> float | None:
        return self.words.rate

    @property
    def cer(self) -> float | None:
        return self.characters.rate

    @property
    def ser(self) -> float | None:
        """Utterances with any word error, over all utterances (empty references among them)."""
        return self.wrong / self.utterances if self.utterances else None

    def to_json(self) -> dict[str, Any]:
        return {
            "wer": self.wer,
            **_word_counts(self.words),
            "cer": self.cer,
            "characters": {
                "errors": self.characters.errors,
                "substitutions": self.characters.substitutions,
                "deletions": self.characters.deletions,
                "insertions": self.characters.insertions,
                "hits": self.characters.hits,
                "reference_characters": self.characters.reference,
            },
            "ser": self.ser,
            "wrong_utterances": self.wrong,
            "utterance_count": self.utterances,
        }


@dataclass(frozen=True)
class NormalisedSummary:
    """The same pairs under one normaliser (:func:`asr.text.normalise.describe`)."""

    normalizer: Mapping[str, str]
    summary: Summary


@dataclass(frozen=True)
class Report:
    """A score and how it was come by.

    ``summary`` is the headline, under ``normalizer``; ``raw`` and ``normalised`` the same pairs
    without and with a normaliser, always both. ``missing`` ids had no hypothesis and count as all
    deleted; ``empty_references`` have no word after normalisation, so that whatever was heard in
    them is inserted; ``unknown`` hypotheses had no reference and were left out (only when allowed).
    ``comparison`` is there when a second system was scored on the same references.
    """

    normalizer: Mapping[str, str]
    summary: Summary
    raw: Summary
    normalised: NormalisedSummary
    utterances: Sequence[UtteranceScore]
    groups: Mapping[str, Summary] = field(default_factory=dict)
    group_by: str = ""
    intervals: Mapping[str, Interval | None] = field(default_factory=dict)
    missing: tuple[str, ...] = ()
    unknown: tuple[str, ...] = ()
    empty_references: tuple[str, ...] = ()
    aligner: Mapping[str, str] = field(default_factory=dict)
    versions: Mapping[str, str] = field(default_factory=dict)
    comparison: Comparison | None = None

    @property
    def wer(self) -> float | None:
        return self.summary.wer

    @property
    def cer(self) -> float | None:
        return self.summary.cer

    @property
    def ser(self) -> float | None:
        return self.summary.ser

    @property
    def hits(self) -> int:
        return self.summary.words.hits

    @property
    def substitutions(self) -> int:
        return self.summary.words.substitutions

    @property
    def deletions(self) -> int:
        return self.summary.words.deletions

    @property
    def insertions(self) -> int:
        return self.summary.words.insertions

    @property
    def reference_words(self) -> int:
        return self.summary.words.reference

    @property
    def macro_wer(self) -> float | None:
        """Mean of the groups' WERs, each counting once; groups without a word are left out."""
        return _mean([summary.wer for summary in self.groups.values()])

    @property
    def macro_cer(self) -> float | None:
        """As :attr:`macro_wer`, of the character error rates."""
        return _mean([summary.cer for summary in self.groups.values()])

    @property
    def macro_ser(self) -> float | None:
        """As :attr:`macro_wer`, of the sentence error rates."""
        return _mean([summary.ser for summary in self.groups.values()])

    @property
    def warnings(self) -> tuple[str, ...]:
        """What a reader of these numbers has to know, a sentence each."""
        found = [interval.warning for interval in self.intervals.values() if interval]
        if self.comparison is not None:
            found += self.comparison.warnings
        return tuple(dict.fromkeys(warning for warning in found if warning))

    @property
    def empty_reference_insertions(self) -> int:
        if not self.empty_references:
            return 0
        apart = set(self.empty_references)
        return sum(u.words.insertions for u in self.utterances if u.id in apart)

    def to_json(self) -> dict[str, Any]:
        """A JSON-ready dictionary without NaN; see the module's docstring."""
        return {**self._head(), "utterances": [each.to_json() for each in self.utterances]}

    def _head(self) -> dict[str, Any]:
        return {
            "schema": SCHEMA,
            **self.summary.to_json(),
            "normalizer": dict(self.normalizer),
            "raw": self.raw.to_json(),
            "normalised": {
                "normalizer": dict(self.normalised.normalizer),
                **self.normalised.summary.to_json(),
            },
            "missing": list(self.missing),
            "unknown": list(self.unknown),
            "empty_references": {
                "ids": list(self.empty_references),
                "insertions": self.empty_reference_insertions,
            },
            "aligner": dict(self.aligner),
            "versions": dict(self.versions),
            "group_by": self.group_by or None,
            "macro_wer": self.macro_wer,
            "macro_cer": self.macro_cer,
            "macro_ser": self.macro_ser,
            "groups": [
                {"name": name, **summary.to_json()} for name, summary in self.groups.items()
            ],
            "intervals": {
                name: interval.to_json() if interval else None
                for name, interval in self.intervals.items()
            },
            "comparison": self.comparison.to_json() if self.comparison else None,
            "warnings": list(self.warnings),
        }

    def save(self, path: str | Path, **about: Any) -> None:
        """Write the JSON, ``about`` (what was scored, how it was decoded) beside the rest.

        Written beside the target and renamed, so that a report is whole or absent. Raises
        InputError when the place cannot be written, ValueError when ``about`` has a key of the
        report.
        """
        head = self._head()
        if clash := about.keys() & {*head, "utterances"}:
            raise ValueError(f"about must not name {sorted(clash)}, which the report has itself")
        rows = (each.to_json() for each in self.utterances)  # the long part goes last
        files.write(Path(path), files.laid_out({**head, **about}, "utterances", rows))


def _mean(rates: Sequence[float | None]) -> float | None:
    known = [rate for rate in rates if rate is not None]
    return sum(known) / len(known) if known else None


def _word_counts(counts: Counts) -> dict[str, int]:
    return {
        "errors": counts.errors,
        "substitutions": counts.substitutions,
        "deletions": counts.deletions,
        "insertions": counts.insertions,
        "hits": counts.hits,
        "reference_words": counts.reference,
    }
