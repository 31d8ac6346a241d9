"""`asr attentions`: every mechanism, from the classes themselves."""

from __future__ import annotations

import argparse
import json
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any

from asr.cli.options import UsageError, positive_int

if TYPE_CHECKING:
    from asr.nn.registry import Component

#: the families of the table: key in the JSON -> what people read above it
_TITLES = {
    "speller": "what the speller can attend with (--model.attention=NAME)",
    "position": "how the listener's self-attention knows position (--model.encoder.position=NAME)",
    "mask": "which glimpses the listener's self-attention may see (--model.encoder.mask=NAME)",
}
_SCHEMA = "asr-attentions/1"


@dataclass(frozen=True)
class Row:
    """A mechanism as the table says it; ``parameters`` None where it cannot have these sizes."""

    name: str
    kind: str
    reach: str
    looks_at: str
    equation: str
    source: str
    parameters: int | None
    options: dict[str, Any]


def add_parser(subparsers: argparse._SubParsersAction) -> argparse.ArgumentParser:
    """Add ``attentions``."""
    parser = subparsers.add_parser(
        "attentions",
        help="list every attention mechanism: kind, equation, source, parameters",
        description="List every attention mechanism, its name first on its line, then its kind "
        "(soft or hard, global or local, what it looks at), parameters, equation and source.",
    )
    parser.add_argument(
        "--json", action=argparse.BooleanOptionalAction, default=False,
        help="the table as one JSON object, options and their defaults besides",
    )  # fmt: skip
    group = parser.add_argument_group("sizes", "that parameters are counted at")
    group.add_argument(
        "--encoder-dim", type=positive_int, default=256, metavar="C", help="default: 256"
    )
    group.add_argument(
        "--query-dim", type=positive_int, default=256, metavar="H", help="default: 256"
    )
    group.add_argument(
        "--heads", type=positive_int, default=4, metavar="A",
        help="of the listener's self-attention (default: 4)",
    )  # fmt: skip
    parser.set_defaults(run=run)
    return parser


def run(args: argparse.Namespace) -> int:
    """Print the table; 0. Raises UsageError for sizes that no listener has."""
    if args.encoder_dim % args.heads:
        raise UsageError(f"--heads {args.heads} does not divide --encoder-dim {args.encoder_dim}")
    tables = rows(args.encoder_dim, args.query_dim, args.heads)
    if args.json:
        report = {
            "schema": _SCHEMA,
            "encoder_dim": args.encoder_dim,
            "query_dim": args.query_dim,
            "heads": args.heads,
            **{family: [asdict(row) for row in table] for family, table in tables.items()},
        }
        print(json.dumps(report, indent=2, ensure_ascii=False))
        return 0
    sizes = f"parameters at C={args.encoder_dim}, H={args.query_dim}, A={args.heads}"
    for family, table in tables.items():
        print(f"# {_TITLES[family]}; {sizes}")
        cells = [
            (
                row.name, row.kind, row.reach, row.looks_at,
                "-" if row.parameters is None else f"{row.parameters:,}",
            )
            for row in table
        ]  # fmt: skip
        widths = [max(map(len, column)) for column in zip(*cells, strict=True)]
        for row, (*words, count) in zip(table, cells, strict=True):
            left = "  ".join(f"{word:{width}}" for word, width in zip(words, widths, strict=False))
            print(f"{left}  {count:>{widths[-1]}}  {row.equation}  [{row.source}]")
    return 0


def rows(encoder_dim: int, query_dim: int, heads: int) -> dict[str, list[Row]]:
    """The table of each family, by name."""
    from asr.nn.attention import Attention
    from asr.nn.encoders.selfattention import Mask, Position

    families: dict[str, tuple[type[Component], tuple[int, ...]]] = {
        "speller": (Attention, (encoder_dim, query_dim)),
        "position": (Position, (encoder_dim, heads)),
        "mask": (Mask, ()),
    }
    return {
        key: [_row(family, name, sizes) for name in sorted(family.registry)]
        for key, (family, sizes) in families.items()
    }


def _row(family: type[Component], name: str, sizes: tuple[int, ...]) -> Row:
    import inspect

    import torch

    made: Any = family.resolve(name)
    try:
        with torch.device("meta"):  # counted, never filled
            parameters = sum(p.numel() for p in made(*sizes).parameters())
    except ValueError:
        parameters = None
    taken = inspect.signature(made.__init__).parameters.values()
    options = {p.name: p.default for p in taken if p.kind is p.KEYWORD_ONLY}
    return Row(name=name, parameters=parameters, options=options, **asdict(made.about))
