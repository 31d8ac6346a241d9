"""--layers and --heads: which of a listener's self-attention matrices to look at."""

from __future__ import annotations

import argparse
from dataclasses import dataclass
from typing import TYPE_CHECKING

from asr.cli.options import UsageError

if TYPE_CHECKING:
    from asr.inference.transcriber import Transcriber


def add_flags(parser: argparse.ArgumentParser) -> None:
    """--layers, --heads."""
    group = parser.add_argument_group(
        "listener", "its self-attention: which moments of the sound listened to which"
    )
    group.add_argument(
        "--layers", type=_names, default=(), metavar="L,...",
        help="show and export these layers' matrices: all, numbers from 0, or names as block3",
    )  # fmt: skip
    group.add_argument(
        "--heads", type=_numbers, default=(), metavar="H,...",
        help="of these heads, numbers from 0 (default: all)",
    )  # fmt: skip


def _names(text: str) -> tuple[str, ...]:
    names = tuple(dict.fromkeys(part.strip() for part in text.split(",") if part.strip()))
    if not names:
        raise argparse.ArgumentTypeError("is empty; all, numbers from 0, or names are expected")
    return names


def _numbers(text: str) -> tuple[int, ...]:
    names = _names(text)
    if wrong := [name for name in names if not name.isdecimal()]:
        raise argparse.ArgumentTypeError(f"{wrong[0]!r} is not a number from 0")
    return tuple(dict.fromkeys(map(int, names)))


@dataclass(frozen=True)
class Chosen:
    """Layers by name and heads by number, as a model has them; none where none are asked for."""

    layers: tuple[str, ...] = ()
    heads: tuple[int, ...] = ()


def chosen(args: argparse.Namespace, transcriber: Transcriber) -> Chosen:
    """What is asked for, in the order in which the model has it.

    Raises UsageError where the listener has no such layer or head.
    """
    if not args.layers:
        return Chosen()
    valid = transcriber.model.encoder.inspectable
    if not valid:
        raise UsageError(f"--layers: the listener of {transcriber.name} has no self-attention")
    wanted = set(valid) if "all" in args.layers else set()
    for name in args.layers:
        if name.isdecimal() and int(name) < len(valid):
            wanted.add(valid[int(name)])
        elif name in valid:
            wanted.add(name)
        elif name != "all":
            raise UsageError(
                f"--layers {name}: {transcriber.name} has no such layer; valid are all, "
                f"{', '.join(valid)} or 0 to {len(valid) - 1}"
            )
    layers = tuple(name for name in valid if name in wanted)
    count = _heads(transcriber, layers)
    if wrong := [head for head in args.heads if head >= count]:
        raise UsageError(
            f"--heads {wrong[0]}: the listener of {transcriber.name} has heads 0 to {count - 1}"
        )
    return Chosen(layers, tuple(sorted(args.heads)) or tuple(range(count)))


def _heads(transcriber: Transcriber, layers: tuple[str, ...]) -> int:
    """How many heads there are in each of some layers: one frame of nothing tells."""
    import torch

    model = transcriber.model
    samples = max(1, round(model.frame_shift * model.sample_rate))
    with torch.inference_mode():
        encoded = model.encode(
            torch.zeros(1, samples, device=transcriber.device),
            torch.tensor([samples], device=transcriber.device),
            inspect=layers,
        )
    return min(matrix.shape[1] for matrix in encoded.attention.values())
