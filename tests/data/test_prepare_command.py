"""``asr prepare`` and the recipes' scripts."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from asr.cli.main import main
from asr.data import manifest
from asr.data.corpora import CORPORA

REPOSITORY = Path(__file__).parents[2]


@pytest.mark.usefixtures("few_strings")
def test_prepare(
    tmp_path: Path,
    public_layout: Path,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.chdir(tmp_path)
    assert main(["prepare", "fsdd", str(public_layout), "--leave_out", "bob"]) == 0
    shown = capsys.readouterr().out.splitlines()
    assert [Path(line).name for line in shown] == sorted(
        (path.name for path in Path("data/fsdd").glob("*.jsonl")),
        key=[Path(line).name for line in shown].index,
    )
    assert manifest.read("data/fsdd/test-left-out.jsonl")[0].speaker == "bob"
    assert main(["prepare", "fsdd", str(public_layout), "-o", "else"]) == 0
    assert Path("else/pool-train.jsonl").is_file()


@pytest.mark.parametrize(
    ("argv", "status", "told"),
    [
        (["timit", "."], 2, ("invalid choice: 'timit'", *CORPORA)),
        (["fsdd"], 2, ("SOURCE",)),
        (["digits", ".", "--leave-out", "x"], 2, ("--leave-out is for fsdd, not for digits",)),
        (["fsdd", "nowhere"], 1, ("nowhere: no such folder",)),
        (["fsdd", "."], 1, ("neither recordings/",)),
    ],
)
def test_what_is_wrong_is_said(
    argv: list[str],
    status: int,
    told: tuple[str, ...],
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.chdir(tmp_path)
    assert main(["prepare", *argv]) == status
    error = capsys.readouterr().err
    assert error.startswith("asr: error: ") and error.count("\n") == 1
    assert all(part in error for part in told), error


def test_a_corpus_has_its_module() -> None:
    folder = REPOSITORY / "asr" / "data" / "corpora"
    assert sorted(CORPORA) == sorted(p.stem for p in folder.glob("*.py") if p.stem != "__init__")


def test_nothing_heavy_is_imported_for_a_usage_error() -> None:
    code = (
        "import sys; from asr.cli.main import main; main(['prepare', 'timit', '.']);"
        "sys.exit('torch' in sys.modules or 'numpy' in sys.modules)"
    )
    assert subprocess.run([sys.executable, "-c", code], cwd=REPOSITORY, check=False).returncode == 0
