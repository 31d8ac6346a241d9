"""Scoring hypotheses against references, matched by utterance id and never by position."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from importlib.metadata import version

import numpy as np

from asr.errors import InputError
from asr.evaluation import aligners, bootstrap
from asr.evaluation.bootstrap import Interval
from asr.evaluation.counts import Table, Tally
from asr.evaluation.groups import NO_GROUP, ordered
from asr.evaluation.report import NormalisedSummary, Report, Summary, Utterances
from asr.text.normalise import describe, normalise

_COMPANION = "basic"  # reported beside the raw score when no other normaliser was asked for


def score(
    references: Mapping[str, str],
    hypotheses: Mapping[str, str],
    *,
    normalizer: str = "none",
    aligner: str = "levenshtein",
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

    ``aligner`` decides what is counted as an error (:mod:`asr.evaluation.aligners`). ``speakers``
    and ``groups`` give names by id; ids they lack are a unit of their own and the group
    ``unknown``. ``ci`` is the level of the bootstrap intervals (None: no intervals), over
    speakers when two or more are known, else over utterances.

    Raises InputError without any reference, or when a hypothesis has no reference (unless
    ``allow_unknown``); ValueError for a ``normalizer``, ``aligner``, ``ci`` or ``replicates`` out
    of range.
    """
    if ci is not None and not 0 < ci < 1:
        raise ValueError(f"ci must lie between 0 and 1, not {ci!r}")
    if replicates < 1:
        raise ValueError(f"replicates must be 1 or more, not {replicates!r}")
    name, aligned_by = describe(normalizer), aligners.describe(aligner)
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
    companion = _COMPANION if normalizer == "none" else normalizer
    raw, normalised = Tally(aligner), Tally(aligner)
    for id in ids:
        said, heard = references[id], hypotheses.get(id, "")
        raw.add(said, heard)
        if (written := (normalise(said, companion), normalise(heard, companion))) == (said, heard):
            normalised.repeat(raw)  # many corpora are normalised already
        else:
            normalised.add(*written)
    headline = raw if normalizer == "none" else normalised
    words, characters = headline.words, headline.characters
    speakers = {id: name for id, name in (speakers or {}).items() if name and id in references}
    named = {} if groups is None else {id: groups.get(id) or NO_GROUP for id in ids}
    return Report(
        normalizer=name,
        summary=Summary.of(words, characters),
        raw=Summary.of(raw.words, raw.characters),
        normalised=NormalisedSummary(
            describe(companion), Summary.of(normalised.words, normalised.characters)
        ),
        utterances=Utterances(
            ids, references, hypotheses, words, characters, speakers, named, normalizer, aligner
        ),
        groups={
            name: Summary.of(words[rows], characters[rows])
            for name, rows in ordered(ids, named).items()
        },
        group_by=group_by if groups is not None else "",
        intervals={}
        if ci is None
        else _intervals(words, characters, units(ids, speakers), ci, replicates, seed),
        missing=tuple(id for id in ids if id not in hypotheses),
        unknown=tuple(unknown),
        empty_references=tuple(
            ids[place] for place in np.flatnonzero(words[:, :3].sum(axis=1) == 0)
        ),
        aligner=aligned_by,
        versions={"numpy": version("numpy")},
    )


def listed(ids: Sequence[str], most: int = 3) -> str:
    """A few ids for a one-line message, quoted so that none can break the line."""
    shown = ", ".join(repr(id) for id in ids[:most])
    return shown + (f" and {len(ids) - most} more" if len(ids) > most else "")


def units(ids: Sequence[str], speakers: Mapping[str, str]) -> list[str] | None:
    """What resampling draws: speakers where two or more are known, and each utterance of which
    none is known for itself; None: utterances."""
    if len(set(speakers.values())) < 2:
        return None
    # The prefixes keep an utterance without a speaker apart from a speaker of the same name.
    return [f"s:{speakers[id]}" if id in speakers else f"u:{id}" for id in ids]


def _intervals(
    words: Table,
    characters: Table,
    units: Sequence[str] | None,
    level: float,
    replicates: int,
    seed: int,
) -> dict[str, Interval | None]:
    errors = [words[:, 1:].sum(axis=1), characters[:, 1:].sum(axis=1), words[:, 1:].any(axis=1)]
    lengths = [words[:, :3].sum(axis=1), characters[:, :3].sum(axis=1), np.ones(len(words))]
    found = bootstrap.intervals(
        np.stack(errors, axis=1),
        np.stack(lengths, axis=1),
        units,
        unit="utterance" if units is None else "speaker",
        level=level,
        replicates=replicates,
        seed=seed,
    )
    return dict(zip(("wer", "cer", "ser"), found, strict=True))
