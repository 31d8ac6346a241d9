"""`asr inspect`: where the model listened, as a page to look at and listen to."""

from __future__ import annotations

import argparse
import os
import sys
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING

from asr.cli import writers
from asr.cli.inputs import Input, expand, name_outputs
from asr.cli.options import UsageError, add_decoding_flags, add_model_flags, transcriber_from
from asr.errors import InputError

if TYPE_CHECKING:
    from asr.inference.transcriber import Transcriber
    from asr.inspection.page import Entry
    from asr.types import Transcript, Waveform

EXPORTS = ("npz", "png", "svg")


def add_parser(subparsers: argparse._SubParsersAction) -> argparse.ArgumentParser:
    """Add ``inspect``."""
    parser = subparsers.add_parser(
        "inspect",
        help="see and hear where the model listened, token by token",
        description="Transcribe audio and write one HTML page, complete in itself, with the "
        "spectrogram, the attention of every token, and the sound. It shows the text that the "
        "model really produced, unless a text is forced on it.",
        epilog="The page's path goes to standard output; pages above 20 MB go on in "
        "report-2.html and so on.",
    )
    parser.add_argument(
        "inputs", nargs="+", metavar="INPUT",
        help="file, folder, glob, - (standard input), @list.txt or .jsonl manifest",
    )  # fmt: skip
    text = parser.add_argument_group("text")
    text.add_argument(
        "--text", metavar="REF",
        help="what is said in the one INPUT: forced on the model, or with --mode free shown "
        "beside its own text",
    )  # fmt: skip
    text.add_argument(
        "--mode", choices=("free", "forced"),
        help="free: the model's own text; forced: the text of --text or of the manifest is "
        "dictated to it (default: forced with --text, else free)",
    )  # fmt: skip
    output = parser.add_argument_group("output")
    output.add_argument(
        "-o", "--output", type=Path, default=Path("report.html"), metavar="FILE",
        help="the page (default: report.html)",
    )  # fmt: skip
    output.add_argument(
        "--export", type=_exports, default=(), metavar="F,...",
        help=f"also write any of {','.join(EXPORTS)} for every input, into the page's folder",
    )  # fmt: skip
    output.add_argument(
        "--on-exists", choices=("error", "skip", "overwrite"), default="error",
        help="what to do where these files are there already; skip does nothing when all of them "
        "are (default: error, before anything is transcribed)",
    )  # fmt: skip
    parser.add_argument_group("reading").add_argument(
        "--recursive", action=argparse.BooleanOptionalAction, default=False,
        help="look for files below the folders, too",
    )  # fmt: skip
    add_decoding_flags(parser)
    add_model_flags(parser)
    parser.set_defaults(run=run)
    return parser


def _exports(text: str) -> tuple[str, ...]:
    asked = tuple(dict.fromkeys(part.strip() for part in text.split(",") if part.strip()))
    wrong = [part for part in asked if part not in EXPORTS]
    if wrong or not asked:
        raise argparse.ArgumentTypeError(
            f"{','.join(wrong) or 'nothing'} is not among {', '.join(EXPORTS)}"
        )
    return asked


def run(args: argparse.Namespace) -> int:
    """Write the page; exit status 0, or 1 when some inputs failed. Raises UsageError."""
    if args.output.is_dir():
        raise UsageError(f"{args.output}: is a folder; name a file, as {args.output}/report.html")
    expanded = expand(args.inputs, recursive=args.recursive)
    inputs = name_outputs(expanded.inputs)
    if args.text is not None:
        if len(inputs) + len(expanded.errors) != 1:
            raise UsageError(
                f"--text: belongs to one input, and there are {len(inputs)}; "
                "a manifest can hold a text for each"
            )
        inputs = [replace(each, text=args.text) for each in inputs]
    for error in expanded.errors:
        print("asr: error:", error, file=sys.stderr)
    writers.probe_folder(args.output.parent)
    if inputs and _done(args, inputs):
        print(f"asr: {args.output}: there already, skipped", file=sys.stderr)
        inputs = []
    work = _Work(args, failed=len(expanded.errors))
    if inputs:
        work.write(inputs)
    if work.failed:
        total = len(expanded.inputs) + len(expanded.errors)
        print(f"asr: {work.failed} of {total} inputs failed", file=sys.stderr)
    return 1 if work.failed else 0


def _done(args: argparse.Namespace, inputs: Sequence[Input]) -> bool:
    """Whether there is nothing to do. Raises UsageError where --on-exists forbids to go on."""
    if args.on_exists == "overwrite":
        return False
    folder = args.output.parent
    paths = [args.output]
    paths += [writers.target(folder, each.name, form) for each in inputs for form in args.export]
    there = [path for path in paths if os.path.lexists(path)]
    if there and args.on_exists == "error":
        more = f" and {len(there) - 1} more" if len(there) > 1 else ""
        raise UsageError(
            f"{there[0]}{more}: there already; --on-exists skip or overwrite says what to do"
        )
    return len(there) == len(paths)


@dataclass
class _Work:
    """What has been asked for, and how many inputs have failed so far."""

    args: argparse.Namespace
    failed: int = 0

    def write(self, inputs: Sequence[Input]) -> None:
        """Write the page, one input after another, and its exports; print the pages' paths."""
        from itertools import chain

        from asr.inspection import page

        entries = self.entries(inputs, transcriber_from(self.args))
        first = next(entries, None)
        if first is None:
            return  # every input has failed: a page would have nothing to show
        title = "Attention" if len(inputs) > 1 else f"Attention: {inputs[0].id}"
        for path in page.write(chain([first], entries), self.args.output, title=title):
            print(path, flush=True)

    def entries(self, inputs: Sequence[Input], transcriber: Transcriber) -> Iterator[Entry]:
        """What there is to show of each input; those that fail are named on standard error."""
        from asr.cli.stream import read_waves
        from asr.inspection.page import Entry
        from asr.inspection.records import by_piece

        for each in inputs:
            try:
                wave = read_waves(each, transcriber.sample_rate, "mix")[0]
                transcript = self.transcript(each, wave, transcriber)
                pieces = by_piece(transcript)
                self.export(each, pieces, wave)
            except (InputError, RuntimeError, MemoryError) as error:  # torch's are RuntimeErrors
                message = " ".join(str(error).split()) or type(error).__name__
                named = message.startswith(each.shown)
                line = message if named else f"{each.shown}: {message}"
                print("asr: error:", line, file=sys.stderr)
                self.failed += 1
                continue
            for piece in pieces:
                yield Entry(piece, wave, each.text)

    def transcript(self, each: Input, wave: Waveform, transcriber: Transcriber) -> Transcript:
        if (self.args.mode or ("free" if self.args.text is None else "forced")) == "free":
            return transcriber([wave], record=True)[0]
        if not each.text.strip():
            raise InputError(
                f"{each.shown}: there is no text to force; give --text, or a manifest with texts"
            )
        return transcriber.force([wave], [each.text])[0]

    def export(self, each: Input, pieces: Sequence[Transcript], wave: Waveform) -> None:
        """Write the --export files of an input. Raises InputError for one that cannot be."""
        for form in self.args.export:
            for number, piece in enumerate(pieces, 1):
                name = each.name if number == 1 else f"{each.name}-{number}"
                path = writers.target(self.args.output.parent, name, form)
                try:
                    path.parent.mkdir(parents=True, exist_ok=True)
                    _export(piece, wave, path)
                except OSError as error:
                    raise InputError(f"{path}: cannot be written ({error.strerror})") from error


def _export(piece: Transcript, wave: Waveform, path: Path) -> None:
    from asr.inspection import figures, records
    from asr.inspection.diagnostics import measure
    from asr.inspection.spectrogram import spectrogram_of

    if piece.record is None:
        return  # nothing was heard: there is no attention to write
    if path.suffix == ".npz":
        records.save(piece.record, path)
        return
    figure = figures.draw(
        piece.record,
        spectrogram_of(records.sound_of(piece.record, wave)),
        words=piece.words,
        measures=piece.attention or measure(piece.record),
    )
    figures.save(figure, path)
