"""``asr prepare``: a corpus on disk -> manifests to train and measure with."""

from __future__ import annotations

import argparse
import sys
import time
from importlib import import_module
from pathlib import Path

from asr.cli.options import UsageError
from asr.data.corpora import CORPORA, LEAVING_OUT
from asr.errors import InputError


def add_parser(subparsers: argparse._SubParsersAction) -> argparse.ArgumentParser:
    """Add ``prepare`` to the commands."""
    parser = subparsers.add_parser(
        "prepare",
        help="make manifests of a corpus",
        description="Make manifests of a corpus. Doing it again changes nothing that is right.",
        epilog="Corpora: " + "; ".join(f"{name} ({summary})" for name, summary in CORPORA.items()),
    )
    parser.add_argument(
        "corpus", metavar="CORPUS", choices=sorted(CORPORA), help=", ".join(CORPORA)
    )
    parser.add_argument("source", type=Path, metavar="SOURCE", help="folder the corpus is in")
    parser.add_argument(
        "-o",
        "--out",
        type=Path,
        metavar="DIR",
        help="where the manifests go (default: data/CORPUS)",
    )
    parser.add_argument(
        "--leave-out",
        action="append",
        default=[],
        metavar="SPEAKER",
        help=f"{', '.join(LEAVING_OUT)}: keep this speaker out of training and "
        "validation, and write test-left-out.jsonl of the speaker's strings "
        "(may be given again)",
    )
    parser.set_defaults(run=run)
    return parser


def run(args: argparse.Namespace) -> int:
    """Prepare, and name the manifests on standard output. InputError for a bad source."""
    if args.leave_out and args.corpus not in LEAVING_OUT:
        raise UsageError(f"--leave-out is for {', '.join(LEAVING_OUT)}, not for {args.corpus}")
    if not args.source.is_dir():
        raise InputError(f"{args.source}: no such folder; the corpus must be on disk already")
    options = {"leave_out": args.leave_out} if args.leave_out else {}
    started = time.monotonic()
    out = args.out or Path("data") / args.corpus
    prepare = import_module(f"asr.data.corpora.{args.corpus}").prepare
    for path in prepare(args.source, out, **options):
        print(path)
    if not args.quiet:
        print(f"{out}: prepared in {time.monotonic() - started:.1f} s", file=sys.stderr)
    return 0


def recipe(corpus: str, source: Path | None = None) -> int:
    """What a recipe's ``prepare.py`` runs: ``asr prepare`` with the source as ``--source DIR``.

    ``source`` is the default, where there is one. Returns the exit status.
    """
    from asr.cli.main import Parser, main

    parser = Parser(
        description=f"Prepare {corpus}: {CORPORA[corpus]}.",
        epilog="Other options are those of `asr prepare`.",
    )
    parser.add_argument(
        "--source",
        default=source,
        required=source is None,
        metavar="DIR",
        help="folder the corpus is in",
    )
    own, others = parser.parse_known_args()
    return main(["prepare", corpus, str(own.source), *others])
