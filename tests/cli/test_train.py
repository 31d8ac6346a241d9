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


def test_alone_it_names_a_file_and_imports_no_torch() -> None:
    code = (
        "import sys; from asr.cli.main import main; status = main(['train']);"
        "sys.exit(9 if {'torch', 'lightning'} & sys.modules.keys() else status)"
    )
    done = subprocess.run([sys.executable, "-c", code], check=False, capture_output=True, text=True)
    assert done.returncode == 2 and done.stderr.count("\n") == 1
    assert done.stderr.startswith("asr: error: --config FILE is needed")


def test_usage_errors_exit_2(capsys: pytest.CaptureFixture[str]) -> None:
    arguments = argparse.Namespace(arguments=["--config=nowhere.yaml"])
    assert train.run(arguments) == 2
    assert capsys.readouterr().err.startswith("asr: error: nowhere.yaml: cannot be read")
