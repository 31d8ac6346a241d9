"""What `asr evaluate` scores: files that hold transcripts, or a manifest that is decoded now."""

from __future__ import annotations

import sys
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from asr import __version__
from asr.cli.inputs import Input
from asr.cli.stream import transcripts
from asr.errors import InputError

if TYPE_CHECKING:
    from asr.data.manifest import Utterance
    from asr.evaluation import OnsetReport
    from asr.inference.transcriber import Transcriber
    from asr.types import Transcript

Words = Mapping[str, Sequence[tuple[str, float]]]  # recognised words and confidences by id


@dataclass(frozen=True)
class Pairs:
    """What is to be scored, all by utterance id, and what the report says of its origin.

    ``second`` and ``second_words`` are another system's; ``audio`` and ``durations`` (seconds)
    are what a manifest knows; ``failed`` counts recordings that could not be read.
    """

    references: Mapping[str, str]
    hypotheses: Mapping[str, str]
    fields: Mapping[str, Mapping[str, str | float]]
    about: dict[str, Any]
    words: Words = field(default_factory=dict)
    second: Mapping[str, str] | None = None
    second_words: Words = field(default_factory=dict)
    audio: Mapping[str, Path] = field(default_factory=dict)
    durations: Mapping[str, float] = field(default_factory=dict)
    onsets: OnsetReport | None = None
    failed: int = 0


def from_files(ref: Path, hyp: Path, hyp2: Path | None) -> Pairs:
    """References and one or two systems' hypotheses. Raises InputError as ``read`` does."""
    from asr.evaluation import read

    references, hypotheses = read(ref), read(hyp)
    second = None if hyp2 is None else read(hyp2)
    about: dict[str, Any] = {
        "asr_version": __version__,
        "references": {"path": str(ref), "format": references.format},
        "hypotheses": {"path": str(hyp), "format": hypotheses.format},
    }
    if second is not None:
        about["second_hypotheses"] = {"path": str(hyp2), "format": second.format}
    seconds = {id: row.get("duration") for id, row in references.fields.items()}
    return Pairs(
        references.texts,
        hypotheses.texts,
        references.fields,
        about,
        hypotheses.words,
        None if second is None else second.texts,
        {} if second is None else second.words,
        durations={id: float(s) for id, s in seconds.items() if isinstance(s, int | float)},
        audio={
            id: ref.parent / audio
            for id, row in references.fields.items()
            if isinstance(audio := row.get("audio"), str)
        },
    )


def from_manifest(path: Path, transcriber: Any, *, normalizer: str, quiet: bool) -> Pairs:
    """A manifest's texts, and what a model makes of its sounds.

    ``transcriber`` is called for one when the manifest is known to be good. Raises InputError for
    a manifest that is not.
    """
    from asr.data import manifest
    from asr.evaluation import onset_errors

    utterances = manifest.read(path, needs=("text",))
    if not utterances:
        raise InputError(f"{path}: no utterance to decode")
    about: dict[str, Any] = {
        "asr_version": __version__,
        "references": {"path": str(path), "format": "manifest"},
    }
    hypotheses: dict[str, str] = {}
    onsets: dict[str, list[tuple[str, float]]] = {}
    words: dict[str, list[tuple[str, float]]] = {}
    durations = {u.id: u.duration for u in utterances if u.duration}
    failed: dict[str, str] = {}
    for transcript in _decoded(transcriber(), utterances, failed, quiet=quiet):
        hypotheses[transcript.id] = transcript.text
        onsets[transcript.id] = [(word.word, word.start) for word in transcript.words]
        words[transcript.id] = [(word.word, word.confidence) for word in transcript.words]
        durations.setdefault(transcript.id, transcript.duration)
        about.update(model=dict(transcript.model), decoding=dict(transcript.decoding))
    about["failed"] = failed
    timed = {u.id: [(w.word, w.start) for w in u.words] for u in utterances if u.words}
    return Pairs(
        {u.id: u.text for u in utterances},
        hypotheses,
        {u.id: _fields(u, durations) for u in utterances},
        about,
        words,
        # A piece of a longer file cannot be played by itself.
        audio={u.id: u.audio for u in utterances if not u.start and u.end is None},
        durations=durations,
        onsets=onset_errors(timed, onsets, normalizer=normalizer) if timed else None,
        failed=len(failed),
    )


def _decoded(
    transcriber: Transcriber,
    utterances: Sequence[Utterance],
    failed: dict[str, str],
    *,
    quiet: bool,
) -> Iterator[Transcript]:
    """Transcripts of what can be read; the reason for the rest goes to ``failed`` by id."""
    from rich.console import Console
    from rich.progress import track

    def fail(each: Input, error: Exception) -> None:
        failed[each.id] = " ".join(str(error).split())
        print(f"asr: error: {each.id}: {failed[each.id]}; counted as deleted", file=sys.stderr)

    inputs = [Input(u.audio, u.id, u.id, u.id, start=u.start, end=u.end) for u in utterances]
    shown = track(
        transcripts(inputs, transcriber, fail=fail),
        total=len(inputs),
        description="decoding",
        console=Console(stderr=True),
        disable=quiet or not sys.stderr.isatty(),
    )
    for _, found in shown:
        yield from found


def _fields(utterance: Utterance, durations: Mapping[str, float]) -> dict[str, str | float]:
    known = {key: v for key, v in utterance.extra.items() if isinstance(v, str | int | float)}
    known |= {"speaker": utterance.speaker, "split": utterance.split}
    if utterance.id in durations:
        known["duration"] = durations[utterance.id]
    return known
