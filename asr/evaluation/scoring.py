"""Scoring hypotheses against references, matched by utterance id and never by position."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from importlib.metadata import version
from typing import NamedTuple

from asr.errors import InputError
from asr.evaluation import bootstrap
from asr.evaluation.bootstrap import Interval
from asr.evaluation.counts import Aligned, align, characters, words
from asr.evaluation.report import NormalisedSummary, Report, Summary, UtteranceScore
from asr.text.normalise import describe, normalise

NO_GROUP = "unknown"
_COMPANION = "basic"  # reported beside the raw score when no other normaliser was asked for


class _Scored(NamedTuple):
    words: list[Aligned]
    characters: list[Aligned]

    @property
    def summary(self) -> Summary:
        pairs = zip(self.words, self.characters, strict=True)
        return Summary.of([(word.counts, character.counts) for word, character in pairs])


def score(
    references: Mapping[str, str],
    hypotheses: Mapping[str, str],
    *,
    normalizer: str = "none",
    speakers: Mapping[str, str] | None = None,
    groups: Mapping[str, str] | None = None,
    group_by: str = "group",
    ci: float | None = 0.95,
    replicates: int = 2000,
    seed: int = 0,
    allow_unknown: bool = False,
) -> Report:
    """Word, character and sentence error rates of ``hypotheses`` by id.

    An id without a hypothesis counts as all deleted and is listed; a hypothesis that is there but
    blank is a hypothesis. Words are what whitespace separates after ``normalizer``; characters are
    code points, the single spaces between words among them. Raw and normalised scores are both in
    the report, ``normalizer`` decides which is the headline.

    ``speakers`` and ``groups`` give names by id; ids they lack are a unit of their own and the
    group ``unknown``. ``ci`` is the level of the bootstrap intervals (None: no intervals), over
    speakers when two or more are known, else over utterances.

    Raises InputError without any reference, or when a hypothesis has no reference (unless
    ``allow_unknown``); ValueError for a ``normalizer``, ``ci`` or ``replicates`` out of range.
    """
    if ci is not None and not 0 < ci < 1:
        raise ValueError(f"ci must lie between 0 and 1, not {ci!r}")
    if replicates < 1:
        raise ValueError(f"replicates must be 1 or more, not {replicates!r}")
    name = describe(normalizer)
    if not references:
        raise InputError("no references to score against: give at least one utterance")
    unknown = sorted(hypotheses.keys() - references.keys())
    if unknown and not allow_unknown:
        raise InputError(
            f"{len(unknown)} of {len(hypotheses)} hypotheses have no reference: {listed(unknown)}; "
            f"the references hold {listed(sorted(references))} "
            "(--allow-unknown, or allow_unknown=True, leaves them out)"
        )
    ids = sorted(references)
    said = [references[id] for id in ids]
    heard = [hypotheses.get(id, "") for id in ids]
    raw = _align(said, heard)
    companion = _COMPANION if normalizer == "none" else normalizer
    written = [[normalise(text, companion) for text in texts] for texts in (said, heard)]
    # Many corpora are normalised already, and aligning is what takes time.
    normalised = raw if written == [said, heard] else _align(*written)
    headline = raw if normalizer == "none" else normalised

    speaker_of = speakers or {}
    group_of = groups or {}
    utterances = tuple(
        UtteranceScore(
            id,
            references[id],
            hypotheses.get(id),
            word.counts,
            character.counts,
            word.steps,
            speaker_of.get(id, ""),
            group_of.get(id, "") or NO_GROUP if groups is not None else "",
        )
        for id, word, character in zip(ids, headline.words, headline.characters, strict=True)
    )
    return Report(
        normalizer=name,
        summary=headline.summary,
        raw=raw.summary,
        normalised=NormalisedSummary(describe(companion), normalised.summary),
        utterances=utterances,
        groups=_grouped(utterances) if groups is not None else {},
        group_by=group_by if groups is not None else "",
        intervals={} if ci is None else _intervals(utterances, ci, replicates, seed),
        missing=tuple(id for id in ids if id not in hypotheses),
        unknown=tuple(unknown),
        empty_references=tuple(u.id for u in utterances if not u.words.reference),
        aligner={
            "name": "jiwer",
            "version": version("jiwer"),
            "backend": f"rapidfuzz {version('rapidfuzz')}",
        },
        versions={"numpy": version("numpy")},
    )


def listed(ids: Sequence[str], most: int = 3) -> str:
    """A few ids for a one-line message, quoted so that none can break the line."""
    shown = ", ".join(repr(id) for id in ids[:most])
    return shown + (f" and {len(ids) - most} more" if len(ids) > most else "")


def _align(references: Sequence[str], hypotheses: Sequence[str]) -> _Scored:
    return _Scored(
        align([words(text) for text in references], [words(text) for text in hypotheses]),
        align(
            [characters(text) for text in references],
            [characters(text) for text in hypotheses],
            steps=False,
        ),
    )


def _grouped(utterances: Sequence[UtteranceScore]) -> dict[str, Summary]:
    members: dict[str, list[UtteranceScore]] = {}
    for utterance in utterances:
        members.setdefault(utterance.group, []).append(utterance)
    return {
        name: Summary.of([(u.words, u.characters) for u in members[name]])
        for name in sorted(members)
    }


def _intervals(
    utterances: Sequence[UtteranceScore], level: float, replicates: int, seed: int
) -> dict[str, Interval | None]:
    by_speaker = len(Counter(u.speaker for u in utterances if u.speaker)) > 1
    # The prefixes keep an utterance without a speaker apart from a speaker of the same name.
    units = [f"s:{u.speaker}" if by_speaker and u.speaker else f"u:{u.id}" for u in utterances]
    found = bootstrap.intervals(
        [[u.words.errors, u.characters.errors, u.words.errors > 0] for u in utterances],
        [[u.words.reference, u.characters.reference, 1] for u in utterances],
        units,
        unit="speaker" if by_speaker else "utterance",
        level=level,
        replicates=replicates,
        seed=seed,
    )
    return dict(zip(("wer", "cer", "ser"), found, strict=True))
