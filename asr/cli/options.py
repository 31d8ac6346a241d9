"""Options that several commands share, and the recogniser that they describe."""

from __future__ import annotations

import argparse
import math
import sys
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

from asr.errors import InputError

if TYPE_CHECKING:
    from asr.inference.transcriber import Transcriber


# What would break a line, or steer a terminal: file names may hold it.
_CONTROLS = {code: f"\\x{code:02x}" for code in (*range(32), *range(127, 160))}
_CONTROLS |= {ord("\t"): "\\t", ord("\n"): "\\n", ord("\r"): "\\r"}


class UsageError(InputError):
    """A command line that asks for something impossible: exit status 2."""


def printable(name: str) -> str:
    """A name as it can be shown: control characters as escapes."""
    return name.translate(_CONTROLS)


def one_line(message: object) -> str:
    """A message as one line that can be shown."""
    return printable(" ".join(part.strip() for part in str(message).splitlines()))


def positive_int(text: str) -> int:
    return int(_number(text, "a whole number above 0", lambda n: n == int(n) and n > 0))


def positive_float(text: str) -> float:
    return _number(text, "a number above 0", lambda n: n > 0)


def fraction(text: str) -> float:
    return _number(text, "a number from 0 to 1", lambda n: 0 <= n <= 1)


def finite_float(text: str) -> float:
    return _number(text, "a number", lambda n: True)


def at_least(least: float, unit: str) -> Callable[[str], float]:
    """The type of an option that takes a number from ``least`` on."""
    return lambda text: _number(text, f"at least {least:g} {unit}", lambda n: n >= least)


def channel(text: str) -> str | int:
    """``mix``, ``split`` or the number of a channel."""
    if text in ("mix", "split"):
        return text
    if not text.isdecimal():
        raise argparse.ArgumentTypeError(f"{text!r} is neither mix, split nor a number from 0")
    return int(text)


def _number(text: str, wanted: str, fits: Callable[[float], bool]) -> float:
    try:
        value = float(text)
    except ValueError:
        value = math.nan
    if not (math.isfinite(value) and fits(value)):
        raise argparse.ArgumentTypeError(f"must be {wanted}, not {text!r}")
    return value


def add_model_flags(parser: argparse.ArgumentParser) -> None:
    """-m/--model, --device, --dtype, --threads."""
    group = parser.add_argument_group("model")
    group.add_argument(
        "-m", "--model", type=Path, metavar="BUNDLE",
        help="folder or zip that training left (default: the starter model that comes along)",
    )  # fmt: skip
    group.add_argument(
        "--device", default="auto", help="auto, cpu, cuda, cuda:1 ... (default: auto)"
    )
    group.add_argument(
        "--dtype", default="auto", choices=("auto", "float32", "bfloat16"),
        help="numbers to compute with (default: auto)",
    )  # fmt: skip
    group.add_argument(
        "--threads", type=positive_int, metavar="N", help="CPU threads (default: torch's choice)"
    )


def add_decoding_flags(parser: argparse.ArgumentParser) -> None:
    """--beam-size, --ctc-weight, --length-bonus; None stands for the bundle's own choice."""
    group = parser.add_argument_group("decoding", "what is not given is as the model's bundle says")
    group.add_argument("--beam-size", type=positive_int, metavar="N", help="hypotheses kept alive")
    group.add_argument(
        "--ctc-weight", type=fraction, metavar="X",
        help="share of the CTC score in the ranking, 0 to 1",
    )  # fmt: skip
    group.add_argument(
        "--length-bonus", type=finite_float, metavar="X", help="added to the score for every token"
    )


def transcriber_from(args: argparse.Namespace) -> Transcriber:
    """The recogniser that the model and decoding flags describe; says on stderr what it runs on.

    Raises UsageError for options that do not go together, InputError for a bundle that cannot
    be loaded.
    """
    import torch

    from asr.inference.devices import DeviceError
    from asr.inference.transcriber import Transcriber

    names = ("beam_size", "ctc_weight", "length_bonus", "nbest")
    search = {name: value for name in names if (value := getattr(args, name, None)) is not None}
    sizes = {"batch_seconds": "batch_seconds", "max_piece_seconds": "chunk_length"}
    bounds = {name: value for name, flag in sizes.items() if (value := getattr(args, flag, None))}
    try:
        transcriber = Transcriber.from_bundle(
            args.model,
            search=search or None,
            device=args.device,
            dtype=args.dtype,
            threads=args.threads,
            **bounds,
        )
    except DeviceError as error:
        raise UsageError(f"--{error}") from error
    except InputError:
        raise
    except ValueError as error:
        raise UsageError(str(error)) from error
    if not args.quiet:
        dtype = str(transcriber.dtype).removeprefix("torch.")
        print(
            f"asr: {transcriber.name} on {transcriber.device}, {dtype}, "
            f"{torch.get_num_threads()} threads",
            file=sys.stderr,
        )
    return transcriber
