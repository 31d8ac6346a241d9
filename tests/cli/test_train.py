"""``asr train`` hands everything on, and costs nothing before it is used."""

from __future__ import annotations

import argparse
import subprocess
import sys

import pytest

from asr.cli import train


@pytest.fixture
def parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="asr")
    train.add_parser(parser.add_subparsers())
    return parser


@pytest.mark.parametrize(
    "given",
    [
        ["--config", "a.yaml", "--model.attention=dot", "--trainer.max_steps", "3"],
        ["--help"],
        ["-c", "a.yaml", "--", "x"],
        [],
    ],
)
def test_every_argument_is_handed_on(
    parser: argparse.ArgumentParser, given: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    seen: list[list[str]] = []

    def main(arguments: list[str]) -> int:
        seen.append(arguments)
        return 3

    from asr.training import cli

    monkeypatch.setattr(cli, "main", main)
    arguments = parser.parse_args(["train", *given])
    assert arguments.run(arguments) == 3
    assert seen == [given]


def test_it_imports_no_torch() -> None:
    code = "import sys, asr.cli.train; sys.exit(bool({'torch', 'lightning'} & sys.modules.keys()))"
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0


def test_usage_errors_exit_2(capsys: pytest.CaptureFixture[str]) -> None:
    arguments = argparse.Namespace(arguments=["--config=nowhere.yaml"])
    assert train.run(arguments) == 2
    assert capsys.readouterr().err.startswith("asr: error: nowhere.yaml: cannot be read")
