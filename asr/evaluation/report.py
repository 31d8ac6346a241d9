"""What scoring found, as objects and as JSON.

The JSON (``"schema": "asr-evaluation/1"``) has the headline score at its top level; every rate is a
fraction, and null where there is no reference to divide by (an insertion into an empty reference
still counts in ``insertions`` and ``errors``). Everything is ordered by id or name, so that the
order of the lines scored cannot be seen in it.
"""

from __future__ import annotations

import json
import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from asr.errors import InputError
from asr.evaluation.bootstrap import Interval
from asr.evaluation.counts import Counts, Step

SCHEMA = "asr-evaluation/1"


@dataclass(frozen=True)
class UtteranceScore:
    """One utterance. ``reference`` and ``hypothesis`` are as given (None: there was none);
    ``words``, ``characters`` and ``alignment`` after the headline's normaliser."""

    id: str
    reference: str
    hypothesis: str | None
    words: Counts
    characters: Counts
    alignment: tuple[Step, ...] = ()
    speaker: str = ""
    group: str = ""

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


@dataclass(frozen=True)
class Summary:
    """A set of utterances pooled: micro rates, that is total errors over total reference units."""

    utterances: int
    words: Counts
    characters: Counts
    wrong: int

    @classmethod
    def of(cls, pairs: Sequence[tuple[Counts, Counts]]) -> Summary:
        """From the word and character counts of each utterance."""
        return cls(
            len(pairs),
            sum((words for words, _ in pairs), Counts()),
            sum((characters for _, characters in pairs), Counts()),
            sum(words.errors > 0 for words, _ in pairs),
        )

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
    """

    normalizer: Mapping[str, str]
    summary: Summary
    raw: Summary
    normalised: NormalisedSummary
    utterances: tuple[UtteranceScore, ...]
    groups: Mapping[str, Summary] = field(default_factory=dict)
    group_by: str = ""
    intervals: Mapping[str, Interval | None] = field(default_factory=dict)
    missing: tuple[str, ...] = ()
    unknown: tuple[str, ...] = ()
    empty_references: tuple[str, ...] = ()
    aligner: Mapping[str, str] = field(default_factory=dict)
    versions: Mapping[str, str] = field(default_factory=dict)

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
        rates = [s.wer for s in self.groups.values() if s.wer is not None]
        return sum(rates) / len(rates) if rates else None

    @property
    def empty_reference_insertions(self) -> int:
        apart = set(self.empty_references)
        return sum(u.words.insertions for u in self.utterances if u.id in apart)

    def to_json(self) -> dict[str, Any]:
        """A JSON-ready dictionary without NaN; see the module's docstring."""
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
            "groups": [
                {"name": name, **summary.to_json()} for name, summary in self.groups.items()
            ],
            "intervals": {
                name: interval.to_json() if interval else None
                for name, interval in self.intervals.items()
            },
            "utterances": [utterance.to_json() for utterance in self.utterances],
        }

    def save(self, path: str | Path, **about: Any) -> None:
        """Write the JSON, ``about`` (what was scored, how it was decoded) beside the rest.

        Written beside the target and renamed, so that a report is whole or absent. Raises
        InputError when the place cannot be written, ValueError when ``about`` has a key of the
        report.
        """
        path = Path(path)
        content = self.to_json()
        if clash := about.keys() & content.keys():
            raise ValueError(f"about must not name {sorted(clash)}, which the report has itself")
        utterances = content.pop("utterances")  # the long part goes last
        text = _laid_out({**content, **about, "utterances": utterances})
        try:
            if path.exists() and not path.is_file():  # /dev/stdout and its like are not replaced
                path.write_text(text, encoding="utf-8")
                return
            partial = path.with_name(f".{path.name}.partial")
            partial.write_text(text, encoding="utf-8")
            os.replace(partial, path)
        except OSError as error:
            raise InputError(f"cannot write {path}: {error.strerror or error}") from error


def _laid_out(content: Mapping[str, Any]) -> str:
    """JSON for people and ``diff``: a key a line, and of a list of objects one object a line."""

    def dumped(value: Any) -> str:
        return json.dumps(value, ensure_ascii=False, allow_nan=False)

    parts = []
    for key, value in content.items():
        if isinstance(value, list) and value and isinstance(value[0], dict):
            rows = ",\n".join(f"  {dumped(row)}" for row in value)
            parts.append(f" {dumped(key)}: [\n{rows}\n ]")
        else:
            parts.append(f" {dumped(key)}: {dumped(value)}")
    return "{\n" + ",\n".join(parts) + "\n}\n"


def _word_counts(counts: Counts) -> dict[str, int]:
    return {
        "errors": counts.errors,
        "substitutions": counts.substitutions,
        "deletions": counts.deletions,
        "insertions": counts.insertions,
        "hits": counts.hits,
        "reference_words": counts.reference,
    }
