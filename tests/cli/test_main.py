"""What scripts rely on: exit status, one-line errors, what goes to which stream."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

import asr as package
from asr.cli import main as cli
from asr.cli import transcribe
from asr.cli.options import UsageError
from asr.errors import InputError
from tests.cli.fakes import Done, FakeTranscriber, sound, text_of

Run = Callable[..., Done]
NEVER = ("torch", "numpy", "rich", "lightning", "soundfile", "av", "yaml")


CHEAP = [
    (["--help"], 0),
    (["--version"], 0),
    (["transcribe", "--help"], 0),
    ([], 2),
    (["nonsense"], 2),
    (["transcribe"], 2),
    (["transcribe", "a.wav", "--beem-size", "3"], 2),
    (["transcribe", "a.wav", "--beam-size", "0"], 2),
    (["transcribe", "a.wav", "--ctc-weight", "nan"], 2),
    (["transcribe", "a.wav", "--log-level", "loud"], 2),
    (["transcribe", "a.wav", "--channel", "-1"], 2),
    (["transcribe", "a.wav", "-f", "docx"], 2),
    (["transcribe", "a.wav", "-f", "srt"], 2),
    (["transcribe", "a.wav", "--word-timestamps"], 2),
    (["transcribe", "nowhere.wav"], 1),
    (["attentions", "--help"], 0),
    (["attentions", "--heads", "3"], 2),
]


def test_answers_without_torch(tmp_path: Path) -> None:
    """Help, usage errors and inputs that are not there: nothing heavy has been imported."""
    code = (
        "import contextlib, io, json, sys\n"
        "from asr.cli.main import main\n"
        "for arguments in json.loads(sys.argv[1]):\n"
        "    with contextlib.redirect_stdout(io.StringIO()) as out:\n"
        "        with contextlib.redirect_stderr(io.StringIO()) as err:\n"
        "            status = main(arguments)\n"
        "    print(json.dumps([status, out.getvalue(), err.getvalue()]))\n"
        f"heavy = set({NEVER}) & set(sys.modules)\n"
        "assert not heavy, heavy\n"
    )
    arguments = json.dumps([arguments for arguments, _ in CHEAP])
    done = subprocess.run(
        [sys.executable, "-c", code, arguments], capture_output=True, text=True, cwd=tmp_path
    )
    assert done.returncode == 0, done.stderr
    lines = done.stdout.splitlines()
    for (_, wanted), line in zip(CHEAP, lines, strict=True):
        status, out, err = json.loads(line)
        assert status == wanted
        if status == 0:
            assert out and not err
        else:
            assert not out and err.startswith("asr: error: ") and len(err.splitlines()) == 1


def test_version(asr: Run) -> None:
    assert asr("--version").out == f"asr {package.__version__}\n"


def test_unknown_option_names_the_one_meant(asr: Run) -> None:
    done = asr("transcribe", "a.wav", "--beem_size=3")
    assert done.status == 2
    assert "--beem-size" in done.err and "did you mean --beam-size" in done.err


def test_prefixes_of_options_are_not_guessed(asr: Run) -> None:
    assert asr("transcribe", "a.wav", "--beam", "3").status == 2


@pytest.mark.parametrize("flag", ["--output-dir", "--output_dir", "-o", "--output_dir="])
def test_underscores_for_hyphens(
    asr: Run, fake: type[FakeTranscriber], tmp_path: Path, flag: str
) -> None:
    path = sound(tmp_path / "a_b.wav")
    target = tmp_path / "out_put"
    option = [f"{flag}{target}"] if flag.endswith("=") else [flag, target]
    assert asr("transcribe", path, *option, "--on_exists=skip", "--no_recursive").status == 0
    assert (target / "a_b.txt").read_text(encoding="utf-8") == text_of(1600) + "\n"


def test_inputs_may_stand_between_options(
    asr: Run, fake: type[FakeTranscriber], tmp_path: Path
) -> None:
    first, second = sound(tmp_path / "a.wav", 800), sound(tmp_path / "b.wav", 900)
    done = asr("transcribe", first, "--beam-size", "2", second)
    assert done.out == f"{first}\t{text_of(800)}\n{second}\t{text_of(900)}\n"


def test_train_gets_its_arguments_as_they_are(asr: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    seen: list[str] = []
    monkeypatch.setitem(
        sys.modules,
        "asr.training.cli",
        SimpleNamespace(main=lambda arguments: seen.extend(arguments) or 0),
    )
    arguments = ["--config", "a_b.yaml", "--trainer.max_epochs=3", "--help", "--quiet", "x"]
    assert asr("train", *arguments).status == 0
    assert seen == arguments
    assert asr("--log-level", "info", "train", "fit").status == 0
    assert seen[-1] == "fit"


@pytest.mark.parametrize(
    ("error", "status", "line"),
    [
        (InputError("a.wav:\n  bad"), 1, "asr: error: a.wav: bad"),
        (UsageError("--x does not go with --y"), 2, "asr: error: --x does not go with --y"),
        (KeyboardInterrupt(), 130, "asr: interrupted"),
        (OSError(28, "No space left on device", "out/a.txt"), 1,
         "asr: error: out/a.txt: No space left on device"),
    ],
)  # fmt: skip
def test_exit_status(
    asr: Run, monkeypatch: pytest.MonkeyPatch, error: BaseException, status: int, line: str
) -> None:
    def fails(args: Any) -> int:
        raise error

    monkeypatch.setattr(transcribe, "run", fails)
    assert asr("transcribe", "a.wav") == Done(status, "", line + "\n")


def test_bugs_are_not_dressed_up(monkeypatch: pytest.MonkeyPatch) -> None:
    def fails(args: Any) -> int:
        raise ZeroDivisionError

    monkeypatch.setattr(transcribe, "run", fails)
    with pytest.raises(ZeroDivisionError):
        cli.main(["transcribe", "a.wav"])


def test_a_reader_that_leaves(tmp_path: Path) -> None:
    """`asr ... | head -1`: no traceback, no complaint at exit."""
    code = (
        "import sys; from asr.cli import main, transcribe\n"
        "def run(args):\n  print('x' * 10**6, flush=True); print('y' * 10**6, flush=True)\n"
        "transcribe.run = run\nsys.exit(main.main(['transcribe', 'a.wav']))"
    )
    process = subprocess.Popen(
        [sys.executable, "-c", code], stdout=subprocess.PIPE, stderr=subprocess.PIPE
    )
    assert process.stdout and process.stderr
    process.stdout.read(1)
    process.stdout.close()
    assert process.stderr.read() == b""
    process.stderr.close()
    assert process.wait() == 1


def test_messages_by_level(asr: Run, fake: type[FakeTranscriber], tmp_path: Path) -> None:
    empty = sound(tmp_path / "empty.wav", 0, channels=2)
    shown = asr("transcribe", empty)
    assert shown.status == 0 and shown.out == "\n"
    assert "asr: warning:" in shown.err and "there are no samples" in shown.err
    assert "asr: fake on cpu, float32" in shown.err
    assert asr("transcribe", empty, "--quiet").err == ""
    assert asr("--quiet", "transcribe", empty).err == ""
    assert "mixed to one" in asr("transcribe", empty, "--log-level=info").err
    assert "mixed to one" not in shown.err


@pytest.mark.parametrize(
    "environment",
    [
        {"LC_ALL": "C", "PYTHONCOERCECLOCALE": "0", "PYTHONUTF8": "0"},
        {"PYTHONIOENCODING": "latin-1", "PYTHONUTF8": "0"},
    ],
    ids=["C locale", "latin-1 streams"],
)
def test_any_name_in_any_locale(tmp_path: Path, environment: dict[str, str]) -> None:
    """Redirected, in a real process, with names that the streams' own encoding does not have."""
    names = ["l'été d'“Ann”.wav", "日本 語.wav", os.fsdecode(b"caf\xe9.wav")]
    for name in names:
        sound(tmp_path / name)
    code = (
        "import sys; from tests.cli.fakes import FakeTranscriber; "
        "import asr.inference.transcriber as t; t.Transcriber = FakeTranscriber; "
        "from asr.cli.main import main; "
        "assert not main(['transcribe', *sys.argv[2:], '-f', 'txt,json,srt,vtt', '-o', 'out']); "
        "sys.exit(main(['transcribe', '.', sys.argv[1]]))"
    )
    root = Path(__file__).parents[2]
    done = subprocess.run(
        [sys.executable, "-c", code, "nowhere-日本.wav", *names], cwd=tmp_path, capture_output=True,
        env={**os.environ, "PYTHONPATH": str(root), **environment},
    )  # fmt: skip
    assert done.returncode == 1 and b"Traceback" not in done.stderr, done.stderr
    for name in names:
        text = (tmp_path / "out" / name).with_suffix(".txt").read_bytes().decode()
        assert text == text_of(1600) + "\n"
    assert len(done.stdout.splitlines()) == 3
    if "latin-1" not in environment.values():
        assert "日本 語.wav\tit's 1600 <é>".encode() in done.stdout
        assert b"caf\xe9.wav\t" in done.stdout
    else:
        assert b"\\u65e5\\u672c \\u8a9e.wav\tit's 1600 <\xe9>" in done.stdout
