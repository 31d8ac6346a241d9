"""`asr evaluate`: score transcripts against references, or decode a manifest and score that."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from asr.cli.options import (
    UsageError,
    add_decoding_flags,
    add_model_flags,
    one_line,
    transcriber_from,
)
from asr.cli.outputs import probe
from asr.cli.scored import Pairs, from_files, from_manifest
from asr.errors import InputError

if TYPE_CHECKING:
    from asr.evaluation import Report


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
        "files", "id<TAB>text, JSON Lines with id and text, NIST trn or ctm, Kaldi text, or what "
        "transcribe -o wrote; told apart by content",
    )  # fmt: skip
    files.add_argument("--ref", type=Path, metavar="REF", help="what was said")
    files.add_argument("--hyp", type=Path, metavar="HYP", help="what was recognised")
    files.add_argument("--hyp2", type=Path, metavar="HYP2", help="what a second system recognised")
    files.add_argument(
        "--significance", action=argparse.BooleanOptionalAction, default=False,
        help="test whether the second system differs: matched pairs, and a paired bootstrap",
    )  # fmt: skip
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
        help="scores by a key of the manifest or JSON Lines reference (speaker, duration, snr ...) "
        "or by length, the words of the reference; numbers are put in bins",
    )  # fmt: skip
    scoring.add_argument(
        "--aligner", choices=("levenshtein", "sclite"), default="levenshtein",
        help="what errors are counted on: fewest errors, or the costs of NIST's sclite "
        "(default: levenshtein)",
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
    parser.add_argument(
        "--html", type=Path, metavar="OUT", help="write a page of scores and alignments here"
    )
    add_model_flags(parser)
    add_decoding_flags(parser)
    parser.set_defaults(run=run)


def run(args: argparse.Namespace) -> int:
    """Score and report; 1 when audio of the manifest could not be read, else 0."""
    _check_usage(args)
    taken = {"MANIFEST": args.manifest, "--ref": args.ref, "--hyp": args.hyp, "--hyp2": args.hyp2}
    for flag in ("json", "html"):
        if (path := getattr(args, flag)) is not None:
            probe(path, f"--{flag} {path}")
            for name, other in taken.items():
                if other is not None and path.resolve() == other.resolve():
                    raise UsageError(f"--{flag} {path}: is {name} too; choose another file")
            taken[f"--{flag}"] = path

    from asr.evaluation import calibration
    from asr.evaluation.table import render

    if args.manifest is None:
        pairs = from_files(args.ref, args.hyp, args.hyp2)
    else:
        pairs = from_manifest(
            args.manifest,
            lambda: transcriber_from(args),
            normalizer=args.normalizer,
            quiet=args.quiet,
        )
    report, second = _scored(args, pairs)
    about = dict(pairs.about)
    if pairs.onsets is not None:
        about["onsets"] = pairs.onsets.to_json()
    if pairs.words and (found := calibration.collect(report, pairs.words).pairs):
        about["calibration"] = calibration.measure(found).to_json()
    # What has taken long to find is shown first, and each file is written though another cannot be.
    print(render(report, cer=args.cer, onsets=pairs.onsets), end="", flush=True)
    failed = bool(pairs.failed)
    for flag, write in (
        ("json", lambda: report.save(args.json, **about)),
        ("html", lambda: _write_page(args, pairs, report, second)),
    ):
        if getattr(args, flag) is None:
            continue
        try:
            write()
        except InputError as error:
            print("asr: error:", one_line(error), file=sys.stderr)
            failed = True
    return 1 if failed else 0


def _scored(args: argparse.Namespace, pairs: Pairs) -> tuple[Report, Report | None]:
    from asr.evaluation import compare, score

    speakers = {id: str(row["speaker"]) for id, row in pairs.fields.items() if "speaker" in row}
    options: dict[str, Any] = {
        "normalizer": args.normalizer,
        "aligner": args.aligner,
        "speakers": speakers,
        "groups": None if args.group is None else _groups(args, pairs),
        "group_by": args.group or "",
        "ci": args.ci,
        "seed": args.seed,
        "allow_unknown": args.allow_unknown,
    }
    source = str(args.manifest or f"--ref {args.ref} --hyp {args.hyp}")
    try:
        report = score(pairs.references, pairs.hypotheses, **options)
        if pairs.second is None:
            return report, None
        source = f"--ref {args.ref} --hyp2 {args.hyp2}"
        second = score(pairs.references, pairs.second, **options)
    except InputError as error:
        raise InputError(f"{source}: {error}") from None
    comparison = compare(report, second, significance=args.significance, ci=args.ci, seed=args.seed)
    return replace(report, comparison=comparison), second


def _groups(args: argparse.Namespace, pairs: Pairs) -> dict[str, str]:
    from asr.evaluation.groups import binned, by_field
    from asr.text.normalise import normalise

    if groups := by_field(pairs.fields, args.group):
        return groups
    if args.group == "length":
        return binned(
            {
                id: len(normalise(text, args.normalizer).split())
                for id, text in pairs.references.items()
            }
        )
    source = args.ref if args.manifest is None else args.manifest
    raise InputError(
        f"{source}: no utterance has {args.group!r} to group by; "
        "give a manifest or JSON Lines with that key"
    )


def _write_page(
    args: argparse.Namespace, pairs: Pairs, report: Report, second: Report | None
) -> None:
    from asr.evaluation import page

    options: dict[str, Any] = {}
    if second is not None:
        options = {
            "second": second,
            "names": (str(args.hyp), str(args.hyp2)),
            "second_words": pairs.second_words or None,
        }
    page.write(
        report,
        args.html,
        title=f"Word errors of {args.manifest or args.hyp}",
        audio=pairs.audio,
        durations=pairs.durations,
        words=pairs.words or None,
        about=pairs.about,
        **options,
    )


def _check_usage(args: argparse.Namespace) -> None:
    files = [args.ref, args.hyp, args.hyp2] != [None, None, None]
    if args.manifest is not None and files:
        raise UsageError("give either a MANIFEST to decode, or --ref and --hyp to score, not both")
    if args.manifest is not None and args.allow_unknown:
        raise UsageError("--allow-unknown: a MANIFEST is decoded by its own ids, none is unknown")
    if args.manifest is None and (args.ref is None or args.hyp is None):
        raise UsageError("give a MANIFEST to decode, or both --ref and --hyp to score")
    if args.significance and args.hyp2 is None:
        raise UsageError("--significance: give a second system's --hyp2 to test against")
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
