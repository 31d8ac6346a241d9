"""The `asr` command: parsing, messages and exit status; the work is in one module a command.

A command module holds ``add_parser(subparsers)``, which sets ``run(args) -> int`` as a default.
Nothing here, nor at the top of those modules, imports more than the standard library.
"""

from __future__ import annotations

import argparse
import codecs
import logging
import os
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any, NoReturn

from asr import __version__
from asr.cli import attentions, bundle, doctor, evaluate, inspect, prepare, train, transcribe
from asr.cli.options import UsageError, one_line
from asr.errors import InputError

#: as --help lists them
COMMANDS = (transcribe, inspect, evaluate, attentions, prepare, train, bundle, doctor)
LEVELS = ("debug", "info", "warning", "error")
DONE, SOME_FAILED, USAGE, INTERRUPTED = 0, 1, 2, 130


def main(argv: Sequence[str] | None = None) -> int:
    """Run one command; returns its exit status (0 done, 1 some inputs failed, 2 usage, 130 ^C)."""

    def command() -> int:
        args = _parse(list(sys.argv[1:] if argv is None else argv))
        with _messages("error" if args.quiet else args.log_level):
            return int(args.run(args) or 0)

    return run(command)


def run(command: Callable[[], int]) -> int:
    """The exit status of a command; what goes wrong in it is one line on standard error."""
    _speak_any_text()
    try:
        try:
            status = command()
        except SystemExit as stop:  # argparse's way out of --help, --version and usage errors
            return int(stop.code or 0)
        sys.stdout.flush()
        return status
    except UsageError as error:
        return _fail(error, USAGE)
    except InputError as error:
        return _fail(error, SOME_FAILED)
    except BrokenPipeError:
        # The reader has gone (`| head`); what Python flushes at exit must not complain again.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return SOME_FAILED
    except OSError as error:
        name = f"{error.filename}: " if error.filename else ""
        return _fail(f"{name}{error.strerror or error}", SOME_FAILED)
    except KeyboardInterrupt:
        print("asr: interrupted", file=sys.stderr)
        return INTERRUPTED


class Parser(argparse.ArgumentParser):
    """argparse whose errors are one line, and whose options are never guessed from a prefix."""

    def __init__(self, *args: Any, **keywords: Any) -> None:
        keywords.setdefault("allow_abbrev", False)
        super().__init__(*args, **keywords)

    def error(self, message: str) -> NoReturn:
        self.exit(USAGE, f"asr: error: {one_line(message)} (see {self.prog} --help)\n")


def _fail(error: object, status: int) -> int:
    print("asr: error:", one_line(error), file=sys.stderr)
    return status


def _parser() -> tuple[Parser, dict[str, Parser]]:
    parser = Parser(
        prog="asr",
        description="Speech recognition whose attention can be seen, heard and measured.",
        epilog="`asr COMMAND --help` describes a command.",
    )
    parser.add_argument("--version", action="version", version=f"asr {__version__}")
    _add_common(parser, quiet=False, log_level="warning")
    commands = parser.add_subparsers(dest="command", metavar="COMMAND", required=True)
    for module in COMMANDS:
        module.add_parser(commands)
    for name, command in commands.choices.items():
        if name != "train":  # behind it stands a grammar of its own
            _add_common(command, quiet=argparse.SUPPRESS, log_level=argparse.SUPPRESS)
    return parser, dict(commands.choices)


def _add_common(parser: argparse.ArgumentParser, *, quiet: Any, log_level: str) -> None:
    group = parser.add_argument_group("messages")
    group.add_argument(
        "--quiet", action="store_true", default=quiet,
        help="errors only: no progress, no warnings",
    )  # fmt: skip
    group.add_argument(
        "--log-level", choices=LEVELS, default=log_level, metavar="|".join(LEVELS),
        help="default: warning",
    )  # fmt: skip


def _parse(argv: list[str]) -> argparse.Namespace:
    parser, commands = _parser()
    at = _command_at(argv)
    if argv[at : at + 1] == ["train"]:
        return parser.parse_args([*_hyphens(argv[:at]), *argv[at:]])
    args, left = parser.parse_known_args(_plain(argv))
    # argparse takes positionals from one place only; `a.wav -o out b.wav` is fine by us.
    if left and hasattr(args, "inputs") and all(word == "-" or word[:1] != "-" for word in left):
        args.inputs = [*args.inputs, *left]
    elif left:
        commands[args.command].error(_unknown(left, commands[args.command]))
    return args


def _command_at(argv: list[str]) -> int:
    at = 0
    while at < len(argv) and argv[at].startswith("-"):
        at += 2 if argv[at].replace("_", "-") == "--log-level" else 1
    return at


def _plain(argv: list[str]) -> list[str]:
    """The words without a bare `--`: what follows it is no option, `-x.wav` becomes `./-x.wav`.

    argparse would take it for one where there are other inputs before it.
    """
    end = argv.index("--") if "--" in argv else len(argv)
    inputs = (
        os.path.join(os.curdir, word) if word.startswith("-") and word != "-" else word
        for word in argv[end + 1 :]
    )
    return [*_hyphens(argv[:end]), *inputs]


def _hyphens(argv: list[str]) -> list[str]:
    """`--output_dir=a_b` becomes `--output-dir=a_b`."""
    words = []
    for word in argv:
        name, equals, value = word.partition("=")
        words.append(name.replace("_", "-") + equals + value if name.startswith("--") else word)
    return words


def _unknown(left: list[str], parser: argparse.ArgumentParser) -> str:
    from difflib import get_close_matches

    word = next((word for word in left if word.startswith("-")), left[0])
    if not word.startswith("-"):
        return f"unexpected argument {word!r}"
    name = word.partition("=")[0]
    close = get_close_matches(name, parser._option_string_actions, n=2, cutoff=0.6)
    hint = f"; did you mean {' or '.join(close)}?" if close else ""
    return f"unknown option {name}{hint}"


def _speak_any_text() -> None:
    """Let both streams print every name and text, whatever the locale.

    ASCII becomes UTF-8. Bytes of a file name that are not text go out as they came in, and what
    the stream's encoding lacks is written as an escape.
    """

    def escape(error: UnicodeError) -> tuple[str | bytes, int]:
        try:
            return codecs.lookup_error("surrogateescape")(error)
        except UnicodeError:
            return codecs.lookup_error("backslashreplace")(error)

    codecs.register_error("asr-any-text", escape)
    for stream in (sys.stdout, sys.stderr):
        if reconfigure := getattr(stream, "reconfigure", None):
            ascii_only = codecs.lookup(stream.encoding or "ascii").name == "ascii"
            reconfigure(encoding="utf-8" if ascii_only else None, errors="asr-any-text")


class _ToStderr(logging.Handler):
    """Log records as one line each on what standard error is now: a bar may stand in for it."""

    def emit(self, record: logging.LogRecord) -> None:
        line = one_line(record.getMessage())
        trace = ""
        if record.exc_info:
            trace = "\n" + logging.Formatter().formatException(record.exc_info)
        print(f"asr: {record.levelname.lower()}: {line}{trace}", file=sys.stderr)


@contextmanager
def _messages(level: str) -> Iterator[None]:
    logger, handler = logging.getLogger("asr"), _ToStderr()
    before = logger.level
    logger.addHandler(handler)
    logger.setLevel(level.upper())
    try:
        yield
    finally:
        logger.removeHandler(handler)
        logger.setLevel(before)


if __name__ == "__main__":
    sys.exit(main())
