"""``asr bundle``: made, shown, and refused."""

from __future__ import annotations

import shutil
import subprocess
import sys
from dataclasses import replace
from functools import partial

import pytest
import torch

from asr.cli.main import main
from asr.glimpses import LogMel
from asr.inference import bundle
from asr.inference.transcriber import STARTER
from asr.nn.attention import LocationAware
from asr.nn.decoders import Recurrent
from asr.nn.encoders import Conformer
from asr.nn.las import LAS
from asr.text import CharacterTokenizer


@pytest.fixture(scope="module")
def checkpoint(tmp_path_factory):
    model = LAS(
        16000,
        6,
        frontend=partial(LogMel, bins=12),
        encoder=partial(Conformer, dim=16, heads=2, blocks=1, channels=4),
        attention=LocationAware,
        speller=partial(Recurrent, dim=16),
    )
    card = {"licence": "CC0", "data": "three letters"}
    settings = bundle.Settings(name="letters", search={"beam_size": 2})
    path = tmp_path_factory.mktemp("run") / "best.ckpt"
    state = bundle.describe_for_checkpoint(
        model, CharacterTokenizer("abc"), card=card, settings=settings
    )
    weights = {f"model.{key}": value for key, value in model.state_dict().items()}
    torch.save({"state_dict": weights, "asr": state}, path)
    return path


@pytest.mark.parametrize("name", ["new", "new.zip", "deep/er/new"])
def test_a_bundle_is_made_and_shown(checkpoint, tmp_path, capsys, name):
    assert main(["bundle", str(checkpoint), "-o", str(tmp_path / name)]) == 0
    assert capsys.readouterr().out == f"{tmp_path / name}\n"
    loaded = bundle.load(tmp_path / name)
    assert loaded.name == "letters"
    assert main(["bundle", "--show", str(tmp_path / name)]) == 0
    shown = capsys.readouterr().out
    count = sum(p.numel() for p in loaded.model.parameters())
    for expected in (
        "# letters", "CC0", "three letters", f"{count:,}", loaded.fingerprint,
        '"location_aware"', "search: beam_size 2\n", "6 characters",
    ):  # fmt: skip
        assert expected in shown


def test_what_is_there_stays_unless_overwritten(checkpoint, tmp_path, capsys):
    command = ["bundle", str(checkpoint), "-o", str(tmp_path / "b")]
    assert main(command) == 0
    assert main(command) == 2  # as with every output that is there already
    assert "exists already" in capsys.readouterr().err
    assert main([*command, "--overwrite"]) == 0
    (tmp_path / "thesis").write_text("years of work")
    assert main(["bundle", str(checkpoint), "-o", str(tmp_path / "thesis"), "--overwrite"]) == 2
    assert "not a bundle, so it is not replaced" in capsys.readouterr().err


@pytest.fixture
def run(checkpoint, tmp_path):
    """The folder of a run whose best checkpoint is not its last."""
    folder = tmp_path / "runs" / "letters"
    (folder / "checkpoints").mkdir(parents=True)
    shutil.copy(checkpoint, folder / "checkpoints" / "best.ckpt")
    content = torch.load(checkpoint, weights_only=True)
    content["state_dict"] = {key: value + 1 for key, value in content["state_dict"].items()}
    torch.save(content, folder / "checkpoints" / "last.ckpt")
    return folder


def test_a_runs_folder_gives_its_best_checkpoint(checkpoint, run, tmp_path):
    assert main(["bundle", str(run), "-o", str(tmp_path / "a")]) == 0
    assert main(["bundle", str(checkpoint), "-o", str(tmp_path / "b")]) == 0
    prints = [bundle.load(tmp_path / name).fingerprint for name in "ab"]
    assert prints[0] == prints[1]
    (run / "checkpoints" / "best.ckpt").unlink()  # nothing was validated yet
    assert main(["bundle", str(run), "-o", str(tmp_path / "c")]) == 0
    assert bundle.load(tmp_path / "c").fingerprint != prints[0]


def test_a_finished_runs_folder_gives_what_was_measured_too(run, tmp_path):
    best = bundle.from_checkpoint(run / "checkpoints" / "best.ckpt")
    finished = partial(
        bundle.save, run / "bundle", best.model, best.tokenizer,
        settings=replace(best.settings, onset_shift=0.25), overwrite=True,
    )  # fmt: skip
    finished(card={**best.card, "results": [{"set": "test", "wer": 0.5}]})
    assert main(["bundle", str(run), "-o", str(tmp_path / "a.zip")]) == 0
    made = bundle.load(tmp_path / "a.zip")
    assert made.settings.onset_shift == 0.25 and made.card["results"][0]["wer"] == 0.5
    # The run went on since: what was measured is not of its best checkpoint any more.
    (run / "checkpoints" / "last.ckpt").replace(run / "checkpoints" / "best.ckpt")
    assert main(["bundle", str(run), "-o", str(tmp_path / "b.zip")]) == 0
    assert "results" not in bundle.load(tmp_path / "b.zip").card


def test_a_folder_that_is_no_runs_is_refused(tmp_path, capsys):
    assert main(["bundle", str(tmp_path), "-o", str(tmp_path / "b")]) == 1
    err = capsys.readouterr().err
    assert f"{tmp_path}: no checkpoints/best.ckpt in it" in err and err.count("\n") == 1


def test_the_starter_is_shown_by_name(tmp_path, capsys, monkeypatch):
    monkeypatch.chdir(tmp_path)
    assert main(["bundle", "--show", "starter"]) == 0
    by_name = capsys.readouterr().out
    assert main(["bundle", "--show", str(STARTER)]) == 0
    assert capsys.readouterr().out == by_name and "## Word error rate" in by_name
    (tmp_path / "starter").mkdir()  # one of that name goes first
    assert main(["bundle", "--show", "starter"]) == 1
    assert "starter: config.json is missing" in capsys.readouterr().err


@pytest.mark.parametrize(
    "arguments",
    [[], ["x.ckpt"], ["x.ckpt", "--show", "y"], ["--show", "y", "-o", "z"], ["--sow", "y"]],
)
def test_usage_errors_exit_2(arguments, capsys):
    assert main(["bundle", *arguments]) == 2
    assert capsys.readouterr().err.startswith("asr: error: ")


@pytest.mark.parametrize("arguments", [["{}", "-o", "{}-out"], ["--show", "{}"]])
@pytest.mark.parametrize("content", [None, b"junk"])
def test_bad_files_exit_1_with_one_line(tmp_path, capsys, arguments, content):
    path = tmp_path / "some.ckpt"
    if content is not None:
        path.write_bytes(content)
    assert main(["bundle", *(word.format(path) for word in arguments)]) == 1
    captured = capsys.readouterr()
    assert captured.out == ""
    assert captured.err.startswith(f"asr: error: {path}: ")
    assert captured.err.count("\n") == 1
    assert not (tmp_path / "some.ckpt-out").exists()


def test_usage_errors_need_no_torch():
    script = (
        "import sys; from asr.cli.main import main; main(['bundle']); "
        "sys.exit('torch' in sys.modules)"
    )
    assert subprocess.run([sys.executable, "-c", script], check=False).returncode == 0
