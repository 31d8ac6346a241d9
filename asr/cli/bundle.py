"""``asr bundle``: a model that can be handed on, from a checkpoint; and what is in one."""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import TYPE_CHECKING

from asr.errors import InputError

if TYPE_CHECKING:
    from asr.inference.bundle import Bundle

_STARTER = "starter"


def add_parser(subparsers: argparse._SubParsersAction) -> argparse.ArgumentParser:
    """Add ``bundle`` to the commands."""
    parser = subparsers.add_parser(
        "bundle",
        help="make a model bundle of a checkpoint, or show one",
        description="Make a bundle of a training checkpoint, or of a run: "
        "asr bundle CHECKPOINT -o DIR; or show what a bundle holds: asr bundle --show BUNDLE.",
    )
    parser.add_argument(
        "checkpoint", nargs="?", type=Path, metavar="CHECKPOINT",
        help="a .ckpt that training wrote, or a run's folder: its best one",
    )  # fmt: skip
    parser.add_argument(
        "-o", "--output", type=Path, metavar="DIR",
        help="the bundle's folder; a name that ends in .zip makes one file",
    )  # fmt: skip
    parser.add_argument(
        "--overwrite", action=argparse.BooleanOptionalAction, default=False,
        help="replace a bundle that is there already (default: refuse)",
    )  # fmt: skip
    parser.add_argument(
        "--show", type=Path, metavar="BUNDLE",
        help=f"print its card and contents; {_STARTER} is the model that comes along",
    )  # fmt: skip
    parser.set_defaults(run=run)
    return parser


def run(args: argparse.Namespace) -> int:
    """Make or show a bundle; the exit status. Raises UsageError and InputError."""
    from asr.cli.options import UsageError

    if (args.checkpoint is None) == (args.show is None):
        raise UsageError("bundle: give either a CHECKPOINT and -o DIR, or --show BUNDLE")
    if args.show is not None:
        if args.output is not None or args.overwrite:
            raise UsageError("bundle: --show writes nothing: leave -o and --overwrite out")
        return _show(args.show)
    if args.output is None:
        raise UsageError("bundle: -o DIR is missing: where the bundle is to be")

    from asr.inference import archive, bundle

    try:
        archive.check_target(args.output, overwrite=args.overwrite)  # before the long part
    except InputError as error:
        raise UsageError(str(error)) from None
    if args.checkpoint.is_dir():
        from asr.training.folder import RunFolder

        made = RunFolder(args.checkpoint).made()
    else:
        made = bundle.from_checkpoint(args.checkpoint)
    bundle.save(
        args.output,
        made.model,
        made.tokenizer,
        card=made.card,
        settings=made.settings,
        overwrite=args.overwrite,
    )
    print(args.output)
    return 0


def _show(path: Path) -> int:
    import json

    from asr.inference import bundle
    from asr.inference.card import render
    from asr.inference.transcriber import STARTER

    named = str(path) == _STARTER and not path.exists()
    loaded = bundle.load(STARTER if named else path)
    print(render(loaded.card, loaded.config))
    print("## Contents\n")
    for key, value in _contents(loaded):
        print(f"- {key}: {value}")
    print("\n## Specification\n")
    print(json.dumps(loaded.config["model"], indent=2))
    return 0


def _contents(loaded: Bundle) -> list[tuple[str, object]]:
    model = loaded.model
    parameters = {
        name: sum(p.numel() for p in part.parameters()) for name, part in model.named_children()
    }
    parts = ", ".join(f"{name} {count:,}" for name, count in parameters.items() if count)
    return [
        ("parameters", f"{sum(parameters.values()):,} ({parts})"),
        ("vocabulary", f"{loaded.tokenizer.vocabulary_size} {loaded.tokenizer.kind}"),
        ("encoder frame", f"{1000 * model.frame_shift:g} ms"),
        ("longest piece", f"{loaded.settings.max_piece_seconds:g} s"),
        ("search", ", ".join(f"{k} {v}" for k, v in loaded.settings.search.items()) or "defaults"),
        ("fingerprint", loaded.fingerprint),
    ]
