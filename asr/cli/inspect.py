"""`asr inspect`: where the model listened, as a page to look at and listen to."""

from __future__ import annotations

import argparse
import os
import sys
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

from asr.cli import exports, layers, writers
from asr.cli.inputs import Expanded, Input, channel_names, expand, listed, name_outputs
from asr.cli.options import UsageError, add_decoding_flags, add_model_flags, channel, one_line
from asr.cli.outputs import POLICIES, Outputs, probe
from asr.cli.shown import Shown
from asr.inspection.contents import Contents, contents


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
        "inputs", nargs="*", metavar="INPUT",
        help="file, folder, glob, - (standard input), @list.txt or .jsonl manifest (default: the "
        "recordings of --manifest)",
    )  # fmt: skip
    text = parser.add_argument_group("text")
    text.add_argument(
        "--text", metavar="REF",
        help="what is said in the one INPUT: forced on the model, or with --mode free shown "
        "beside its own text",
    )  # fmt: skip
    text.add_argument(
        "--manifest", type=Path, metavar="M",
        help="what is said in each INPUT, by id; a file's id is its name without suffix",
    )  # fmt: skip
    text.add_argument(
        "--mode", choices=("free", "forced"),
        help="free: the model's own text; forced: the text of --text or of a manifest is "
        "dictated to it (default: forced with --text or --manifest, else free)",
    )  # fmt: skip
    output = parser.add_argument_group("output")
    output.add_argument(
        "-o", "--output", type=Path, default=Path("report.html"), metavar="FILE",
        help="the page (default: report.html)",
    )  # fmt: skip
    output.add_argument(
        "--export", type=_exports, default=(), metavar="F,...",
        help=f"also write any of {','.join(exports.FORMS)} for every input, into the page's folder",
    )  # fmt: skip
    output.add_argument(
        "--on-exists", choices=POLICIES, default="error",
        help="what to do where any of these files is there already; skip leaves those as they are "
        "and makes the others (default: error, before anything is transcribed)",
    )  # fmt: skip
    reading = parser.add_argument_group("reading")
    reading.add_argument(
        "--recursive", action=argparse.BooleanOptionalAction, default=False,
        help="look for files below the folders, too",
    )  # fmt: skip
    reading.add_argument(
        "--channel", type=channel, default="mix", metavar="mix|N|split",
        help="the mean of all channels, one of them (from 0), or each by itself (default: mix)",
    )  # fmt: skip
    layers.add_flags(parser)
    parser.add_argument_group("implicit attention").add_argument(
        "--saliency", action=argparse.BooleanOptionalAction, default=False,
        help="also show and export what each token depended on: the derivatives of its "
        "log-probability with respect to every glimpse (takes a few times the transcribing)",
    )  # fmt: skip
    add_decoding_flags(parser)
    add_model_flags(parser)
    parser.add_argument_group("comparison").add_argument(
        "--compare", type=Path, metavar="BUNDLE",
        help="let a second model hear the same, and show both on one axis of seconds, with what "
        f"sets their figures apart; its exports are named NAME{exports.COMPARED}",
    )  # fmt: skip
    parser.set_defaults(run=run)
    return parser


def _exports(text: str) -> tuple[str, ...]:
    asked = tuple(dict.fromkeys(part.strip() for part in text.split(",") if part.strip()))
    wrong = [part for part in asked if part not in exports.FORMS]
    if wrong or not asked:
        raise argparse.ArgumentTypeError(
            f"{','.join(wrong) or 'nothing'} is not among {', '.join(exports.FORMS)}"
        )
    return asked


def run(args: argparse.Namespace) -> int:
    """Write the page; exit status 0, or 1 when some inputs failed. Raises UsageError."""
    mode = _checked_mode(args)
    expanded = _expanded(args)
    inputs = name_outputs(expanded.inputs)
    total = len(inputs) + len(expanded.errors)
    if args.text is not None and total != 1:
        raise UsageError(
            f"--text: belongs to one input, and there are {total}; "
            "--manifest can hold a text for each"
        )
    if mode == "forced" and inputs and not any(each.text.strip() for each in inputs):
        told = f"{args.manifest} has none for these inputs" if args.manifest else ""
        raise UsageError(
            "--mode forced: there is no text to force; "
            + (told or "give --text, or a --manifest with texts")
        )
    outputs = _planned(args, inputs)
    for error in expanded.errors:
        print("asr: error:", one_line(error), file=sys.stderr)
    shown = Shown(args, mode, outputs, failed=len(expanded.errors))
    report = contents(args.output)
    page = not (args.on_exists == "skip" and _is_there(args.output, report))
    if inputs and not page:
        print(f"asr: {args.output}: there already, skipped", file=sys.stderr)
        inputs = [each for each in inputs if not _done(each, shown.exports, args, report)]
    if inputs:
        shown.write(inputs, paged=page)
    if shown.failed:
        print(f"asr: {shown.failed} of {total} inputs failed", file=sys.stderr)
    return 1 if shown.failed else 0


def _checked_mode(args: argparse.Namespace) -> str:
    """``free`` or ``forced``. Raises UsageError for flags that do not go together."""
    if args.output.is_dir():
        raise UsageError(f"{args.output}: is a folder; name a file, as {args.output}/report.html")
    if not args.inputs and args.manifest is None:
        raise UsageError("give an INPUT, or --manifest M for the recordings that it lists")
    if args.text is not None and args.manifest is not None:
        raise UsageError("--text and --manifest: both say what is spoken; give one of them")
    if args.text is not None and not args.text.strip():
        raise UsageError("--text: is empty; it is to say what is spoken")
    if args.heads and not args.layers:
        raise UsageError("--heads: of which layers? Give --layers too, as --layers all")
    if args.manifest is not None and not args.manifest.is_file():
        raise UsageError(f"--manifest {args.manifest}: no such file")
    if args.compare is not None and not args.compare.exists():
        raise UsageError(f"--compare {args.compare}: no such model bundle")
    mode = args.mode or ("free" if args.text is None and args.manifest is None else "forced")
    decoding = argparse.ArgumentParser(add_help=False)
    add_decoding_flags(decoding)
    idle = [
        action.option_strings[-1]
        for action in decoding._actions
        if getattr(args, action.dest) != action.default
    ]
    if mode == "forced" and idle:
        raise UsageError(f"{', '.join(idle)}: nothing is searched for where the text is forced")
    return mode


def _expanded(args: argparse.Namespace) -> Expanded:
    """The inputs with their texts. Raises InputError for a --manifest that is none."""
    if args.manifest is None:
        found = expand(args.inputs, recursive=args.recursive)
        if args.text is None:
            return found
        texts = dict.fromkeys((each.id for each in found.inputs), args.text)
    else:
        utterances = listed(args.manifest)
        if not args.inputs:
            return Expanded(tuple(utterances), ())
        found = expand(args.inputs, recursive=args.recursive)
        texts = {each.id: each.text for each in utterances if each.text}
    told = (replace(each, text=texts.get(each.id, each.text)) for each in found.inputs)
    return replace(found, inputs=tuple(told))


def _planned(args: argparse.Namespace, inputs: Sequence[Input]) -> Outputs:
    """The files that will be written, as far as they are known. Raises UsageError."""
    outputs = Outputs(args.on_exists)
    for argument in args.inputs:
        if (path := Path(argument.removeprefix("@"))).is_file():
            outputs.reads(path, "an input")
    for each in inputs:
        if each.path is not None:
            outputs.reads(each.path, "an input")
    if args.manifest is not None:
        outputs.reads(args.manifest, "the manifest")
    if args.model is not None:
        outputs.reads(args.model, "the model")
    if args.compare is not None:
        outputs.reads(args.compare, "the model of --compare")
    wanted = [(args.output, "the page")]
    asked = exports.Exports.of(args, outputs)
    for each in inputs:
        for name in _names(each, args) if args.export else ():
            wanted += asked.wanted(name)
    outputs.plan(wanted)
    if inputs:
        for folder in dict.fromkeys(path.parent for path, _ in wanted):
            writers.probe_folder(folder)
        probe(args.output, str(args.output))
    return outputs


def _is_there(page: Path, report: Contents | None) -> bool:
    """Whether a page is there, and if it is a report of ours, all pages that go on from it."""
    return os.path.lexists(page) if report is None else report.whole


def _names(each: Input, args: argparse.Namespace) -> list[str]:
    """The names of an input's exports: one for each channel and model."""
    suffixes = [""] if args.compare is None else ["", exports.COMPARED]
    return [name + suffix for name in channel_names(each, args.channel) for suffix in suffixes]


def _done(
    each: Input, asked: exports.Exports, args: argparse.Namespace, report: Contents | None
) -> bool:
    """Whether all files of an input are there, as many as the report that is there tells of."""
    pieces = {} if report is None else report.pieces
    return all(
        os.path.lexists(path)
        for name in _names(each, args)
        for path, _ in asked.wanted(name, pieces.get(name, 1))
    )
