"""`asr evaluate`: score transcripts against references, or decode a manifest and score that."""

from __future__ import annotations

import argparse
import os
import sys
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from asr import __version__
from asr.cli.inputs import Input
from asr.cli.options import UsageError, add_decoding_flags, add_model_flags, transcriber_from
from asr.cli.stream import transcripts
from asr.errors import InputError

if TYPE_CHECKING:
    from asr.data.manifest import Utterance
    from asr.evaluation import OnsetReport
    from asr.inference.transcriber import Transcriber
    from asr.types import Transcript


class _Pairs(NamedTuple):
    """What is to be scored, and what the report says of where it came from."""

    references: Mapping[str, str]
    hypotheses: Mapping[str, str]
    fields: Mapping[str, Mapping[str, str]]
    about: dict[str, Any]
    onsets: OnsetReport | None = None
    failed: int = 0


def add_parser(subparsers: Any) -> None:
    parser = subparsers.add_parser(
        "evaluate",
        help="word error rate of transcripts, or of a model on a manifest",
        description="Word, character and sentence error rates by utterance id, with counts and a "
        "bootstrap interval. Either decode a manifest and score that, or score files.",
    )
    parser.add_argument(
        "manifest", nargs="?", type=Path, metavar="MANIFEST",
        help="JSON Lines with id, audio and text: decoded with the model, then scored",
    )  # fmt: skip
    files = parser.add_argument_group(
        "files", "id<TAB>text, JSON Lines with id and text, NIST trn, Kaldi text, or a folder that "
        "transcribe -o wrote; told apart by content",
    )  # fmt: skip
    files.add_argument("--ref", type=Path, metavar="REF", help="what was said")
    files.add_argument("--hyp", type=Path, metavar="HYP", help="what was recognised")
    scoring = parser.add_argument_group("scoring")
    scoring.add_argument(
        "--normalizer", choices=("none", "basic", "english"), default="none",
        help="decides which score is the headline; raw and normalised are both reported "
        "(default: none)",
    )  # fmt: skip
    scoring.add_argument(
        "--cer", action=argparse.BooleanOptionalAction, default=False,
        help="show the character error rate too",
    )  # fmt: skip
    scoring.add_argument(
        "--group", metavar="KEY",
        help="scores by a key of the manifest or JSON Lines reference: speaker, split ...",
    )  # fmt: skip
    scoring.add_argument(
        "--ci", type=_level, default=0.95, metavar="LEVEL",
        help="level of the bootstrap intervals (default: 0.95)",
    )  # fmt: skip
    scoring.add_argument(
        "--no-ci", dest="ci", action="store_const", const=None, help="no intervals"
    )
    scoring.add_argument(
        "--seed", type=_seed, default=0, metavar="N", help="of the bootstrap (default: 0)"
    )
    scoring.add_argument(
        "--allow-unknown", action=argparse.BooleanOptionalAction, default=False,
        help="leave out hypotheses whose id has no reference",
    )  # fmt: skip
    parser.add_argument("--json", type=Path, metavar="OUT", help="write the whole report here")
    add_model_flags(parser)
    add_decoding_flags(parser)
    parser.set_defaults(run=run)


def run(args: argparse.Namespace) -> int:
    """Score and report; 1 when audio of the manifest could not be read, else 0."""
    _check_usage(args)
    if args.json is not None:
        _check_writable(args.json)

    from asr.evaluation import score
    from asr.evaluation.table import render

    pairs = _from_manifest(args) if args.manifest is not None else _from_files(args)
    groups = None
    if args.group is not None:
        groups = _column(pairs.fields, args.group)
        if not groups:
            source = args.ref if args.manifest is None else args.manifest
            raise InputError(
                f"{source}: no utterance has {args.group!r} to group by; "
                "give a manifest or JSON Lines with that key"
            )
    try:
        report = score(
            pairs.references,
            pairs.hypotheses,
            normalizer=args.normalizer,
            speakers=_column(pairs.fields, "speaker"),
            groups=groups,
            group_by=args.group or "",
            ci=args.ci,
            seed=args.seed,
            allow_unknown=args.allow_unknown,
        )
    except InputError as error:
        source = args.manifest or f"--ref {args.ref} --hyp {args.hyp}"
        raise InputError(f"{source}: {error}") from None
    if args.json is not None:
        onsets = {"onsets": pairs.onsets.to_json()} if pairs.onsets else {}
        report.save(args.json, **pairs.about, **onsets)
    print(render(report, cer=args.cer, onsets=pairs.onsets), end="")
    return 1 if pairs.failed else 0


def _check_usage(args: argparse.Namespace) -> None:
    files = args.ref is not None or args.hyp is not None
    if args.manifest is not None and files:
        raise UsageError("give either a MANIFEST to decode, or --ref and --hyp to score, not both")
    if args.manifest is not None and args.allow_unknown:
        raise UsageError("--allow-unknown: a MANIFEST is decoded by its own ids, none is unknown")
    if args.manifest is None and (args.ref is None or args.hyp is None):
        raise UsageError("give a MANIFEST to decode, or both --ref and --hyp to score")
    if files:
        idle = [
            action.option_strings[-1]
            for action in _decoding_actions()
            if getattr(args, action.dest) != action.default
        ]
        if idle:
            raise UsageError(f"{', '.join(idle)}: nothing is decoded with --ref and --hyp")


def _decoding_actions() -> Sequence[argparse.Action]:
    parser = argparse.ArgumentParser(add_help=False)
    add_model_flags(parser)
    add_decoding_flags(parser)
    return parser._actions


def _check_writable(path: Path) -> None:
    """Before the long run, not after it."""
    if path.is_dir():
        raise UsageError(f"--json {path}: is a folder; a file name is expected")
    if not path.parent.is_dir():
        raise UsageError(f"--json {path}: the folder {path.parent} does not exist")
    target = path if path.exists() and not path.is_file() else path.parent
    if not os.access(target, os.W_OK):
        raise UsageError(f"--json {path}: cannot be written (no permission on {target})")


def _from_files(args: argparse.Namespace) -> _Pairs:
    from asr.evaluation import read

    references, hypotheses = read(args.ref), read(args.hyp)
    about = {
        "asr_version": __version__,
        "references": {"path": str(args.ref), "format": references.format},
        "hypotheses": {"path": str(args.hyp), "format": hypotheses.format},
    }
    return _Pairs(references.texts, hypotheses.texts, references.fields, about)


def _from_manifest(args: argparse.Namespace) -> _Pairs:
    from asr.data import manifest
    from asr.evaluation import onset_errors

    utterances = manifest.read(args.manifest, needs=("text",))
    if not utterances:
        raise InputError(f"{args.manifest}: no utterance to decode")
    transcriber = transcriber_from(args)
    hypotheses: dict[str, str] = {}
    heard: dict[str, list[tuple[str, float]]] = {}
    about: dict[str, Any] = {
        "asr_version": __version__,
        "references": {"path": str(args.manifest), "format": "manifest"},
    }
    failed: dict[str, str] = {}
    for transcript in _decoded(transcriber, utterances, failed, quiet=args.quiet):
        hypotheses[transcript.id] = transcript.text
        heard[transcript.id] = [(word.word, word.start) for word in transcript.words]
        about.update(model=dict(transcript.model), decoding=dict(transcript.decoding))
    about["failed"] = failed
    timed = {u.id: [(w.word, w.start) for w in u.words] for u in utterances if u.words}
    return _Pairs(
        {u.id: u.text for u in utterances},
        hypotheses,
        {u.id: _fields(u) for u in utterances},
        about,
        onset_errors(timed, heard, normalizer=args.normalizer) if timed else None,
        len(failed),
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


def _fields(utterance: Utterance) -> dict[str, str]:
    extra = {key: str(value) for key, value in utterance.extra.items() if value is not None}
    return {**extra, "speaker": utterance.speaker, "split": utterance.split}


def _column(fields: Mapping[str, Mapping[str, str]], key: str) -> dict[str, str]:
    return {id: row[key] for id, row in fields.items() if row.get(key)}


def _level(text: str) -> float:
    value = float(text)
    if not 0 < value < 1:
        raise argparse.ArgumentTypeError(f"{text} is not between 0 and 1, as 0.95 is")
    return value


def _seed(text: str) -> int:
    value = int(text)
    if value < 0:
        raise argparse.ArgumentTypeError(f"{text} is not a whole number from 0")
    return value
