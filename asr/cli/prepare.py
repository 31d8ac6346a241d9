"""``asr prepare``: a corpus on disk -> manifests to train and measure with."""

from __future__ import annotations

import argparse
import sys
import time
from importlib import import_module
from pathlib import Path
from typing import Any

from asr.cli.options import UsageError, fraction, positive_float, positive_int
from asr.data.corpora import CORPORA, DOWNLOADED, OPTIONS, TABLES
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
    # A list, since argparse would take an absent optional word before it has seen the options.
    parser.add_argument(
        "inputs", nargs="*", metavar="SOURCE",
        help="folder the corpus is in (a table may be named itself); without one, "
        f"{', '.join(DOWNLOADED)} is downloaded",
    )  # fmt: skip
    parser.add_argument(
        "-o",
        "--out",
        type=Path,
        metavar="DIR",
        help="where the manifests go (default: data/CORPUS)",
    )
    # What is not given is None: only what is given is checked, and handed on.
    own = parser.add_argument_group("options of a corpus")
    own.add_argument(
        "--leave-out", action="append", metavar="SPEAKER",
        help=f"{_takers('leave_out')}: keep this speaker out of training and validation, and "
        "write test-left-out.jsonl of the speaker's strings (may be given again)",
    )  # fmt: skip
    own.add_argument(
        "--subset", action="append", metavar="NAME",
        help=f"{_takers('subset')}: 10min, 1h, 10h, mini, 100, 460 or 960, or a part such as "
        "test-clean (may be given again)",
    )  # fmt: skip
    own.add_argument(
        "--url", metavar="URL", help=f"{_takers('url')}: download from this server instead"
    )
    own.add_argument(
        "--skip-broken", action="store_true", default=None,
        help=f"{_takers('skip_broken')}: leave out, by name, what is broken",
    )  # fmt: skip
    own.add_argument(
        "--column", action="append", metavar="KEY=NAME",
        help=f"{_takers('column')}: column of a table that holds audio, text, id, speaker or split "
        "(may be given again)",
    )  # fmt: skip
    own.add_argument(
        "--folders-are-speakers", action="store_true", default=None,
        help=f"{_takers('folders_are_speakers')}: the folder a recording is in names its speaker",
    )  # fmt: skip
    for name, what in (("valid", "validation"), ("test", "the test set")):
        own.add_argument(
            f"--{name}", type=fraction, metavar="X",
            help=f"{_takers(name)}: share of the hours for {what} (default: 0.1)",
        )  # fmt: skip
    for name, what, seconds in (("shortest", "below", 0.3), ("longest", "above", 30)):
        own.add_argument(
            f"--{name}", type=positive_float, metavar="S",
            help=f"{_takers(name)}: {what} this many seconds is suspicious (default: {seconds})",
        )  # fmt: skip
    own.add_argument(
        "--subwords", type=positive_int, metavar="N",
        help=f"{_takers('subwords')}: train a tokenizer of N subwords (default: characters)",
    )  # fmt: skip
    own.add_argument(
        "--tokenizer", metavar="DIR",
        help=f"{_takers('tokenizer')}: check the texts against this tokenizer, or a bundle's",
    )  # fmt: skip
    parser.set_defaults(run=run)
    return parser


def run(args: argparse.Namespace) -> int:
    """Prepare, and name the manifests on standard output. InputError for a bad source."""
    corpus = args.corpus
    source = _source(corpus, args.inputs)
    started = time.monotonic()
    out = args.out or Path("data") / corpus
    prepare = import_module(f"asr.data.corpora.{corpus}").prepare
    for path in prepare(source, out, **_given(args)):
        print(path)
    if not args.quiet:
        print(f"{out}: prepared in {time.monotonic() - started:.1f} s", file=sys.stderr)
    return 0


def _source(corpus: str, given: list[str]) -> Path | None:
    if len(given) > 1:
        raise UsageError(f"one SOURCE is expected, not {', '.join(given)}")
    if not given:
        if corpus not in DOWNLOADED:
            raise UsageError(f"{corpus}: a SOURCE is needed")
        return None
    source = Path(given[0])
    if not source.is_dir() and not (corpus in TABLES and source.is_file()):
        raise InputError(f"{source}: no such folder; the corpus must be on disk already")
    return source


def _given(args: argparse.Namespace) -> dict[str, Any]:
    """The options that were given, all of them ones that the corpus takes."""
    given: dict[str, Any] = {}
    for name in dict.fromkeys(name for names in OPTIONS.values() for name in names):
        value = getattr(args, name)
        if name in OPTIONS[args.corpus]:
            given |= {} if value is None else {name: value}
        elif value is not None and name != "quiet":
            option = name.replace("_", "-")
            raise UsageError(f"--{option} is for {_takers(name)}, not for {args.corpus}")
    return given


def _takers(option: str) -> str:
    return ", ".join(corpus for corpus, names in OPTIONS.items() if option in names)


def recipe(corpus: str, source: Path | None = None) -> int:
    """What a recipe's ``prepare.py`` runs: ``asr prepare`` with the source as ``--source DIR``.

    ``source`` is the default, where there is one. Returns the exit status.
    """
    from asr.cli.main import Parser, main

    parser = Parser(
        description=f"Prepare {corpus}: {CORPORA[corpus]}.",
        epilog=f"Other options are those of `asr prepare {corpus}`.",
    )
    parser.add_argument(
        "--source",
        default=source,
        required=source is None and corpus not in DOWNLOADED,
        metavar="DIR",
        help="folder the corpus is in",
    )
    own, others = parser.parse_known_args()
    sources = [] if own.source is None else [str(own.source)]
    return main(["prepare", corpus, *sources, *others])
