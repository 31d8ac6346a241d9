"""``asr bundle``: made, shown, and refused."""

from __future__ import annotations

import subprocess
import sys
from functools import partial

import pytest
import torch

from asr.cli.main import main
from asr.glimpses import LogMel
from asr.inference import bundle
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
        '"location_aware"', "{'beam_size': 2}", "6 characters",
    ):  # fmt: skip
        assert expected in shown


def test_what_is_there_stays_unless_overwritten(checkpoint, tmp_path, capsys):
    command = ["bundle", str(checkpoint), "-o", str(tmp_path / "b")]
    assert main(command) == 0
    assert main(command) == 1
    assert "exists already" in capsys.readouterr().err
    assert main([*command, "--overwrite"]) == 0


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
