"""``asr train``: what recipes' ``train.py`` run. The options are LightningCLI's, passed through."""

from __future__ import annotations

import argparse


def add_parser(subparsers: argparse._SubParsersAction) -> argparse.ArgumentParser:
    """Add ``train``; everything after it goes to :func:`asr.training.cli.main` untouched."""
    parser = subparsers.add_parser(
        "train",
        help="train a model from configuration files",
        description="asr train --config FILE... [--key=value as LightningCLI takes it]",
        add_help=False,
        prefix_chars="\0",  # no option is argparse's own: --help too is LightningCLI's
    )
    parser.add_argument("arguments", nargs=argparse.REMAINDER)
    parser.set_defaults(run=run)
    return parser


def run(arguments: argparse.Namespace) -> int:
    """Train; the exit status. UsageError where nothing is said at all."""
    from asr.cli.options import UsageError
    from asr.training import NEEDED

    if not arguments.arguments:
        raise UsageError(NEEDED)
    from asr.training.cli import main

    return main(arguments.arguments)
