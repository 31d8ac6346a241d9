"""`asr transcribe`: audio in, text out."""

from __future__ import annotations

import argparse
import logging
import os
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

from asr.cli import writers
from asr.cli.inputs import Input, expand, name_outputs
from asr.cli.options import (
    UsageError,
    add_decoding_flags,
    add_model_flags,
    at_least,
    one_line,
    positive_float,
    positive_int,
    printable,
    transcriber_from,
)
from asr.cli.stream import transcripts
from asr.errors import InputError

if TYPE_CHECKING:
    from asr.inference.transcriber import Transcriber
    from asr.types import Transcript, TranscriptWarning

_log = logging.getLogger(__name__)


def add_parser(subparsers: argparse._SubParsersAction) -> argparse.ArgumentParser:
    """Add ``transcribe``."""
    parser = subparsers.add_parser(
        "transcribe",
        help="write down what is said in audio files",
        description="Write down what is said in audio files.",
        epilog="A lone file's text goes to standard output bare, that of several as path<TAB>text "
        "and that of a manifest as id<TAB>text.",
    )
    parser.add_argument(
        "inputs", nargs="+", metavar="INPUT",
        help="file, folder, glob, - (standard input), @list.txt or .jsonl manifest",
    )  # fmt: skip
    output = parser.add_argument_group("output")
    output.add_argument("-o", "--output-dir", type=Path, metavar="DIR", help="folder to write into")
    output.add_argument(
        "-f", "--format", dest="formats", type=_formats, metavar="F,...",
        help=f"any of {','.join(writers.FORMATS)} (default: txt,json with -o; on standard output "
        "txt, or json as one object a line)",
    )  # fmt: skip
    output.add_argument(
        "--word-timestamps", action=argparse.BooleanOptionalAction, default=False,
        help="one cue a word in srt and vtt, one row a word in tsv (json, textgrid and "
        "ctm have the words always)",
    )  # fmt: skip
    output.add_argument(
        "--on-exists", choices=("error", "skip", "overwrite"),
        help="what to do about results that are there already; skip looks for all formats asked "
        "for (default: error, before anything is transcribed)",
    )  # fmt: skip
    output.add_argument(
        "--nbest", type=positive_int, metavar="N", help="alternatives to list in the json"
    )
    reading = parser.add_argument_group("reading")
    reading.add_argument(
        "--recursive", action=argparse.BooleanOptionalAction, default=False,
        help="look for files below the folders, too",
    )  # fmt: skip
    reading.add_argument(
        "--channel", type=_channel, default="mix", metavar="mix|N|split",
        help="the mean of all channels, one of them (from 0), or each by itself (default: mix)",
    )  # fmt: skip
    reading.add_argument(
        "--batch-seconds", type=positive_float, default=60.0, metavar="S",
        help="seconds of audio to decode at once, padding counted (default: 60)",
    )  # fmt: skip
    reading.add_argument(
        "--chunk-length", type=at_least(1.0, "second"), metavar="S",
        help="longer audio is cut, at quiet places, into pieces of at most this, from 1 s on "
        "(default: as the model's bundle says)",
    )  # fmt: skip
    reading.add_argument(
        "--fail-fast", action=argparse.BooleanOptionalAction, default=False,
        help="stop at the first input that fails",
    )  # fmt: skip
    add_decoding_flags(parser)
    add_model_flags(parser)
    parser.set_defaults(run=run)
    return parser


def _formats(text: str) -> tuple[str, ...]:
    asked = tuple(dict.fromkeys(part.strip() for part in text.split(",") if part.strip()))
    wrong = [part for part in asked if part not in writers.FORMATS]
    if wrong or not asked:
        raise argparse.ArgumentTypeError(
            f"{','.join(wrong) or 'nothing'} is not among {', '.join(writers.FORMATS)}"
        )
    return asked


def _channel(text: str) -> str | int:
    if text in ("mix", "split"):
        return text
    if not text.isdecimal():
        raise argparse.ArgumentTypeError(f"{text!r} is neither mix, split nor a number from 0")
    return int(text)


def run(args: argparse.Namespace) -> int:
    """Transcribe; exit status 0, or 1 when some inputs failed. Raises UsageError."""
    formats = args.formats or (("txt", "json") if args.output_dir else ("txt",))
    _check(args, formats)
    expanded = expand(args.inputs, recursive=args.recursive)
    inputs: Sequence[Input] = expanded.inputs
    if args.output_dir:
        writers.probe_folder(args.output_dir)
        inputs = _to_do(name_outputs(inputs), args, formats)
    work = _Work(args, formats)
    try:
        for error in expanded.errors:
            work.fail(error, error)
        if inputs:
            work.do(inputs, transcriber_from(args))
    except _Stop:
        print("asr: stopped at the first failure (--fail-fast)", file=sys.stderr)
    total = len(expanded.inputs) + len(expanded.errors)
    if work.failed and total > 1:
        print(f"asr: {len(work.failed)} of {total} inputs failed", file=sys.stderr)
    return 1 if work.failed else 0


def _check(args: argparse.Namespace, formats: Sequence[str]) -> None:
    if not args.output_dir and formats not in (("txt",), ("json",)):
        raise UsageError(
            f"--format {','.join(formats)} needs a folder to write into: add -o DIR "
            "(standard output takes txt or json alone)"
        )
    if args.on_exists and not args.output_dir:
        raise UsageError("--on-exists: there are no files to write without -o DIR")
    if args.nbest and "json" not in formats:
        raise UsageError("--nbest: only json has room for alternatives; add -f json")
    if args.word_timestamps and not set(writers.TIMED).intersection(formats):
        raise UsageError(
            "--word-timestamps: plain text has no room for times; add -f with any of "
            + ", ".join(writers.TIMED)
        )


def _to_do(
    inputs: Sequence[Input], args: argparse.Namespace, formats: Sequence[str]
) -> list[Input]:
    """The inputs whose results are not there yet. Raises UsageError where --on-exists forbids."""
    if args.on_exists == "overwrite":
        return list(inputs)
    left, there = [], []
    for each in inputs:
        names = _names(each, args.channel)
        paths = [
            path
            for name in names
            for format in formats
            if os.path.lexists(path := writers.target(args.output_dir, name, format))
        ]
        there += paths
        if len(paths) < len(names) * len(formats):
            left.append(each)
    if there and args.on_exists != "skip":
        more = f" and {len(there) - 1} more" if len(there) > 1 else ""
        raise UsageError(
            f"{there[0]}{more}: there already; --on-exists skip or overwrite says what to do"
        )
    if (skipped := len(inputs) - len(left)) and not args.quiet:
        print(f"asr: {skipped} of {len(inputs)} inputs skipped: done already", file=sys.stderr)
    return left


def _names(each: Input, channel: str | int) -> list[str]:
    """The output names of an input: with ``--channel split`` its header must be read for that."""
    if channel != "split" or each.path is None:
        return [each.name]
    from asr.audio import probe

    try:
        return [f"{each.name}.ch{index}" for index in range(probe(each.path).channels)]
    except InputError:
        return [each.name]  # named as an error when its turn comes


class _Stop(Exception):
    """--fail-fast met a failure."""


@dataclass
class _Work:
    """What has been asked for, and which inputs have failed so far."""

    args: argparse.Namespace
    formats: tuple[str, ...]
    failed: set[str] = field(default_factory=set)

    def fail(self, name: str, error: object) -> None:
        """One line on standard error. Raises _Stop with --fail-fast."""
        message = str(error) or type(error).__name__
        named = message if message.startswith(name) else f"{name}: {message}"
        print("asr: error:", one_line(named), file=sys.stderr)
        self.failed.add(name)
        if self.args.fail_fast:
            raise _Stop

    def do(self, inputs: Sequence[Input], transcriber: Transcriber) -> None:
        """Transcribe all inputs: to files as they are done, to standard output in their order."""
        results = transcripts(
            inputs,
            transcriber,
            fail=lambda each, error: self.fail(each.shown, error),
            channel=self.args.channel,
            batch_seconds=self.args.batch_seconds,
        )
        held: dict[int, list[Transcript]] = {}
        turn = 0
        with _bar(self.args, len(inputs)) as advance:
            for index, found in results:
                each = inputs[index]
                for transcript in found:
                    for warning in transcript.warnings:
                        _log.warning("%s: %s%s", each.shown, warning.message, _span(warning))
                    if self.args.output_dir:
                        self._write(each, transcript)
                held[index] = found
                while turn in held:
                    for transcript in held.pop(turn):
                        if not self.args.output_dir:
                            print(self._line(inputs[turn], transcript), flush=True)
                    turn += 1
                advance()

    def _write(self, each: Input, transcript: Transcript) -> None:
        errors = []
        name = each.name + transcript.id.removeprefix(each.id)  # .ch0 and so on
        for format in self.formats:
            path = writers.target(self.args.output_dir, name, format)
            try:
                writers.write(path, transcript, format, by_word=self.args.word_timestamps)
            except InputError as error:  # of this format alone: the others are still written
                errors.append(str(error))
        if errors:
            self.fail(each.shown, "; ".join(errors))

    def _line(self, each: Input, transcript: Transcript) -> str:
        if self.formats == ("json",):
            return writers.json_line(transcript)
        channel = transcript.id.removeprefix(each.id)
        if each.label is None and not channel:
            return transcript.text
        return f"{printable(each.shown + channel)}\t{transcript.text}"


def _span(warning: TranscriptWarning) -> str:
    if warning.start is None or warning.end is None:
        return ""
    return f" ({warning.start:.2f} to {warning.end:.2f} s)"


@contextmanager
def _bar(args: argparse.Namespace, total: int) -> Iterator[Callable[[], object]]:
    """A progress bar where a person looks on and no text runs through it."""
    if args.quiet or not sys.stderr.isatty() or not (args.output_dir or not sys.stdout.isatty()):
        yield lambda: None
        return
    from rich.console import Console
    from rich.progress import MofNCompleteColumn, Progress, TimeRemainingColumn

    columns = (*Progress.get_default_columns()[:2], MofNCompleteColumn(), TimeRemainingColumn())
    console = Console(file=sys.stderr)
    with Progress(*columns, console=console, transient=True, redirect_stdout=False) as progress:
        task = progress.add_task("transcribing", total=total)
        yield lambda: progress.advance(task)
