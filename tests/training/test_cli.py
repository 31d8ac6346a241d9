"""Runs as users start them: the folder they leave, what is refused, and resuming."""

from __future__ import annotations

import json
import logging
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
import torch
import yaml
from lightning.pytorch import Callback, Trainer

from asr.inference import bundle
from asr.training import cli
from asr.training.cli import main

from .conftest import run, write


def weights(folder: Path, name: str = "last.ckpt") -> dict[str, torch.Tensor]:
    content = torch.load(folder / "checkpoints" / name, weights_only=True)
    return {**content["state_dict"], **content["current_model_state"]}


def same(a: dict[str, torch.Tensor], b: dict[str, torch.Tensor]) -> bool:
    return a.keys() == b.keys() and all(torch.equal(a[key], b[key]) for key in a)


def test_a_run_leaves_what_explains_and_continues_it(
    config: dict[str, Any], tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    config["figures"] = {"utterances": 1, "every_n_epochs": 2}
    assert run(tmp_path, config, "--model.attention=additive", "--model.attention.dim=8") == 0
    out, err = capfd.readouterr()
    folder = tmp_path / "runs" / "tones"
    report = json.loads((folder / "report.json").read_text())
    names = ("wer", "substitutions", "deletions", "insertions", "reference_words")
    assert all(name in report for name in names) and report["reference_words"] == 8
    assert report["steps"] == 12 and report["seed"] == 1 and report["decoding"]["beam_size"] == 8
    assert f"({report['substitutions']} substitutions" in out and out.count("\n") == 1
    assert err.count("| validation wer") == 3 and "1 threads" in err

    lines = [json.loads(line) for line in (folder / "log.jsonl").read_text().splitlines()]
    assert [row["step"] for row in lines if "train/loss" in row] == [1, 3, 5, 7, 9, 11]
    assert len([row for row in lines if "val/wer" in row and "val/relative_entropy" in row]) == 3
    events = b"".join(path.read_bytes() for path in (folder / "tensorboard").glob("events*"))
    # One utterance: in the second epoch of three, and at the end.
    assert events.count(b"attention/string") == 2

    used = yaml.safe_load((folder / "config.yaml").read_text())
    assert used["model"]["attention"] == {"name": "additive", "dim": 8, "heads": 1} or (
        used["model"]["attention"]["dim"] == 8
    )
    assert main([f"--config={folder / 'config.yaml'}", "--name=again"]) == 0
    assert same(weights(folder), weights(tmp_path / "runs" / "again"))

    made = bundle.load(folder / "bundle")
    assert made.name == "tones" and made.card["seed"] == 1
    assert made.card["results"][0]["wer"] == report["wer"] and "torch" not in made.card
    assert f"manifests: {config['data']['pool'][0]}" in made.card["data"]
    best = torch.load(folder / "checkpoints" / "best.ckpt", weights_only=True)["state_dict"]
    assert all(torch.equal(best[f"model.{k}"], v) for k, v in made.model.state_dict().items())


def test_a_run_is_not_overwritten(
    config: dict[str, Any], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    folder = tmp_path / "runs" / "tones"
    folder.mkdir(parents=True)
    (folder / "report.json").write_text("{}")
    assert run(tmp_path, config) == 2
    assert "a run is there already; choose another --name, or delete" in capsys.readouterr().err
    (folder / "checkpoints").mkdir()
    (folder / "checkpoints" / "last.ckpt").touch()
    assert run(tmp_path, config) == 2
    assert f"already; resume it with --resume={folder}, or choose" in capsys.readouterr().err
    assert (folder / "report.json").read_text() == "{}"


def noisy(config: dict[str, Any]) -> dict[str, Any]:
    """Everything that draws random numbers is in use."""
    config["model"]["encoder"]["dropout"] = 0.2
    config["model"]["augment"] = {"time_masks": 1}
    config["model"]["scheduled_sampling"] = 0.3
    config["data"]["augmentation"] = {"room": 0.5}
    return config


class Interrupt(Callback):
    def on_train_batch_start(self, trainer: Trainer, *_: Any) -> None:
        if trainer.global_step == 9:
            raise KeyboardInterrupt


def test_stopped_and_resumed_equals_left_alone(
    config: dict[str, Any], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert run(tmp_path, noisy(config)) == 0
    parts = ("--name=parts", "--trainer.enable_progress_bar=false")
    with monkeypatch.context() as patch:
        # Interrupted in the third epoch; a lower max_steps would change the schedule.
        patch.setattr(cli, "Lines", Interrupt)
        patch.setattr(signal, "signal", lambda *_: None)
        assert run(tmp_path, config, *parts) == 130
    folder = tmp_path / "runs" / "parts"
    assert not same(weights(folder), weights(tmp_path / "runs" / "tones"))
    assert main([f"--resume={folder}"]) == 0
    assert same(weights(folder), weights(tmp_path / "runs" / "tones"))
    assert (folder / "bundle").is_dir()


#: a run that kills itself in the middle of its second epoch, and of a step's two batches
KILLED = """
import os, signal, sys
from datetime import timedelta
from asr.training import checkpoints, cli

class Killed(cli.Lines):
    def on_train_batch_start(self, trainer, module, batch, index):
        if trainer.global_step == 3 and index == 3:
            os.kill(os.getpid(), signal.SIGKILL)

cli.Lines, checkpoints.OFTEN = Killed, timedelta(0)
cli.main(sys.argv[1:])
"""


@pytest.mark.parametrize("kind", ["strings", "manifests"])
def test_killed_and_resumed_equals_left_alone(
    config: dict[str, Any], utterances: dict[str, Any], tmp_path: Path, kind: str
) -> None:
    config = noisy(config)
    if kind == "manifests":
        config["data"] = {**utterances, "perturbation": {"room": 0.5}}
    config["data"]["workers"] = 1
    config["trainer"] |= {"max_steps": 6, "accumulate_grad_batches": 2}
    assert run(tmp_path, config) == 0
    folder = tmp_path / "runs" / "b"
    command = [sys.executable, "-c", KILLED, write(tmp_path / "b.yaml", config), "--name=b"]
    done = subprocess.run(command, stderr=subprocess.DEVNULL, timeout=300, check=False)
    assert done.returncode == -signal.SIGKILL and not (folder / "report.json").exists()
    saved = torch.load(folder / "checkpoints" / "last.ckpt", weights_only=True)
    assert saved["global_step"] == 3 and saved["epoch"] == 1
    assert not same(weights(folder), weights(tmp_path / "runs" / "tones"))
    assert main([f"--resume={folder}"]) == 0
    assert same(weights(folder), weights(tmp_path / "runs" / "tones"))


def test_resumed_within_an_epoch_equals_left_alone(config: dict[str, Any], tmp_path: Path) -> None:
    checkpoint = {
        "class_path": "lightning.pytorch.callbacks.ModelCheckpoint",
        "init_args": {"dirpath": str(tmp_path), "filename": "mid", "every_n_train_steps": 6},
    }
    config["trainer"]["max_steps"] = 11
    assert run(tmp_path, noisy(config), f"--trainer.callbacks={json.dumps([checkpoint])}") == 0
    # Of steps 6 and 12, only the former was reached, and it lies within the second epoch.
    assert torch.load(tmp_path / "mid.ckpt", weights_only=True)["global_step"] == 6
    assert main([f"--resume={tmp_path / 'mid.ckpt'}", "--name=b", "--trainer.callbacks=null"]) == 0
    assert same(weights(tmp_path / "runs" / "b"), weights(tmp_path / "runs" / "tones"))
    lines = (tmp_path / "runs" / "b" / "log.jsonl").read_text().splitlines()
    steps = [json.loads(line)["step"] for line in lines if "train/loss" in line]
    assert steps == [7, 9]


def test_a_run_that_time_ends_is_finished_like_any_other(
    config: dict[str, Any], tmp_path: Path
) -> None:
    config["trainer"] |= {"max_steps": 100_000, "max_time": "00:00:00:02", "log_every_n_steps": 1}
    assert run(tmp_path, config) == 0
    folder = tmp_path / "runs" / "tones"
    assert json.loads((folder / "report.json").read_text())["steps"] < 1000
    rows = [json.loads(line) for line in (folder / "log.jsonl").read_text().splitlines()]
    rates = [row["train/learning_rate"] for row in rows if "train/learning_rate" in row]
    # The cosine follows the clock: near its floor at the end, though few of the steps were made.
    assert rates[-1] < 0.1 * max(rates)
    assert "val/wer" in rows[-1] or "val/wer" in rows[-2]


@pytest.mark.parametrize(
    ("bounds", "steps"),
    [
        ({"max_steps": 3}, 3),  # an epoch has four
        ({"max_steps": 5, "check_val_every_n_epoch": 5, "min_epochs": 3}, 5),
        ({"max_steps": 3, "val_check_interval": "00:01:00:00"}, 3),
        ({"max_steps": -1, "max_epochs": 1, "check_val_every_n_epoch": 5}, 4),
        ({"max_steps": 10**5, "max_time": "00:00:00:01", "check_val_every_n_epoch": 10**5}, None),
    ],
)
def test_a_run_shorter_than_its_interval_keeps_its_last_step(
    config: dict[str, Any], tmp_path: Path, bounds: dict[str, Any], steps: int | None
) -> None:
    config["trainer"] |= bounds
    assert run(tmp_path, config) == 0
    folder = tmp_path / "runs" / "tones"
    report = json.loads((folder / "report.json").read_text())
    assert report["reference_words"] == 8 and report["steps"] == (steps or report["steps"]) > 0
    assert (folder / "bundle" / "model.safetensors").is_file()
    rows = [json.loads(line) for line in (folder / "log.jsonl").read_text().splitlines()]
    assert [row["step"] for row in rows if "val/wer" in row] == [report["steps"] - 1]
    assert b"attention/" in b"".join(p.read_bytes() for p in folder.glob("tensorboard/events*"))


def test_a_short_run_on_utterances_goes_on(
    config: dict[str, Any], utterances: dict[str, Any], tmp_path: Path
) -> None:
    config["data"] = utterances
    config["trainer"]["max_steps"] = 3
    assert run(tmp_path, config) == 0
    folder = tmp_path / "runs" / "tones"
    assert json.loads((folder / "report.json").read_text())["steps"] == 3
    # Another two epochs and a part of one: from within the first, which has four steps.
    assert main([f"--resume={folder}", "--trainer.max_steps=10"]) == 0
    assert json.loads((folder / "report.json").read_text())["steps"] == 10
    rows = [json.loads(line) for line in (folder / "log.jsonl").read_text().splitlines()]
    assert [row["step"] for row in rows if "val/wer" in row] == [2, 3, 7, 9]


def test_where_nothing_was_validated_the_last_step_is_kept(
    config: dict[str, Any], tmp_path: Path
) -> None:
    config["trainer"] |= {"max_steps": 8, "check_val_every_n_epoch": 5}
    assert run(tmp_path, config) == 0
    folder = tmp_path / "runs" / "tones"
    # As a run looks that was killed before its first validation, and has no time left.
    (folder / "checkpoints" / "best.ckpt").unlink()
    (folder / "report.json").unlink()
    assert main([f"--resume={folder}", "--trainer.max_time=00:00:00:00"]) == 0
    assert json.loads((folder / "report.json").read_text())["steps"] == 8


def test_a_checkpoint_of_elsewhere_goes_on_in_a_folder_of_its_own(
    half: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main([f"--resume={half}", "--name=b", "--trainer.max_steps=5"]) == 0
    assert main([f"--resume={half}", "--name=b", "--trainer.max_steps=6"]) == 2
    assert f"{half.parent / 'b'}: a run is there already" in capsys.readouterr().err


def test_help_lists_the_short_names(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as ended:
        main(["--help"])
    assert ended.value.code == 0
    out = " ".join(capsys.readouterr().out.split())
    assert "--model.attention: additive," in out and "--data: manifests, strings" in out


def test_options_of_the_trainer_do_what_they_say(config: dict[str, Any], tmp_path: Path) -> None:
    stopper = {
        "class_path": "EarlyStopping",
        "init_args": {"monitor": "val/wer", "patience": 1, "min_delta": 1e6},
    }
    config["data"]["batch_seconds"] = 0.5
    config["figures"] = {"utterances": 9, "every_n_epochs": 1}
    config["trainer"] |= {
        "num_sanity_val_steps": 1,
        "limit_val_batches": 1,
        "reload_dataloaders_every_n_epochs": 1,
        "callbacks": [stopper],
    }
    assert run(tmp_path, config) == 0
    folder = tmp_path / "runs" / "tones"
    report = json.loads((folder / "report.json").read_text())
    # Stopped after the second of three epochs; the report is about the whole set nevertheless.
    assert report["steps"] == 8 and report["reference_words"] == 8
    rows = [json.loads(line) for line in (folder / "log.jsonl").read_text().splitlines()]
    assert [row["step"] for row in rows if "val/wer" in row] == [3, 7]
    events = b"".join(path.read_bytes() for path in (folder / "tensorboard").glob("events*"))
    assert 0 < sum(f"attention/string{i}".encode() in events for i in range(4)) < 4


def test_a_run_without_loggers_still_has_its_own_log(
    config: dict[str, Any], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    told: list[str] = []
    kept = logging.Handler()
    monkeypatch.setattr(kept, "emit", lambda record: told.append(record.getMessage()))
    monkeypatch.setattr(logging.getLogger("lightning.pytorch.profilers"), "handlers", [kept])
    config["trainer"] |= {"max_steps": 2, "logger": False, "profiler": "simple"}
    assert run(tmp_path, config) == 0
    folder = tmp_path / "runs" / "tones"
    assert "val/wer" in (folder / "log.jsonl").read_text()
    assert sorted(p.name for p in folder.iterdir() if p.is_dir()) == ["bundle", "checkpoints"]
    assert "Profiler Report" in "".join(told)


def test_gradients_of_several_batches_make_a_step(config: dict[str, Any], tmp_path: Path) -> None:
    config["trainer"]["max_steps"] = 6
    assert run(tmp_path, config, "--trainer.accumulate_grad_batches=2") == 0
    report = json.loads((tmp_path / "runs" / "tones" / "report.json").read_text())
    assert report["steps"] == 6


@pytest.fixture
def half(config: dict[str, Any], tmp_path: Path) -> Path:
    config["trainer"]["max_steps"] = 4
    assert run(tmp_path, config) == 0
    return tmp_path / "runs" / "tones"


def test_a_resume_with_other_settings_is_refused(
    half: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    capsys.readouterr()
    given = ["--model.learning_rate=0.01", "--model.encoder.dropout=0.5", "--seed_everything=3"]
    assert main([f"--resume={half}", *given]) == 2
    err = capsys.readouterr().err
    assert "--model.learning_rate: 0.002 there, 0.01 here" in err
    assert "--model.encoder.dropout: 0.0 there, 0.5 here" in err
    assert "--seed_everything: 1 there, 3 here" in err and err.count("\n") == 1
    assert main([f"--resume={half}", "--model.attention=additive"]) == 2
    assert "'location_aware' there, 'additive' here" in capsys.readouterr().err
    before = json.loads((half / "report.json").read_text())["training_seconds"]
    # How long and on what it runs is free to change.
    assert main([f"--resume={half}", "--trainer.max_steps=8", "--threads=1"]) == 0
    report = json.loads((half / "report.json").read_text())
    assert report["steps"] == 8 and report["training_seconds"] > before > 0
    # Once more, with nothing left to do.
    assert main([f"--resume={half}", "--trainer.max_steps=8"]) == 0
    assert json.loads((half / "report.json").read_text())["wer"] == report["wer"]


@pytest.mark.parametrize("content", [b"", b"no checkpoint", None])
def test_what_is_no_checkpoint_is_refused(
    tmp_path: Path, content: bytes | None, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "x.ckpt"
    if content is None:
        torch.save({"state_dict": {}}, path)
    else:
        path.write_bytes(content)
    assert main([f"--resume={path}"]) == 2
    assert f"asr: error: {path}: not a checkpoint" in capsys.readouterr().err
    assert main([f"--resume={tmp_path}"]) == 2
