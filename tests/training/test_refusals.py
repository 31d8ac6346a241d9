"""What is refused before a run begins: one line that names the key, and exit status 2."""

from __future__ import annotations

import inspect
from pathlib import Path
from typing import Any

import pytest
import yaml
from lightning.pytorch import Trainer

from asr.errors import InputError
from asr.training import refusals
from asr.training.cli import main
from asr.training.keys import accepted

from .conftest import run, write

#: what a run gives Lightning where nothing is told
DEFAULTS = {
    **{name: p.default for name, p in inspect.signature(Trainer).parameters.items()},
    "accelerator": "cpu",
    "use_distributed_sampler": False,
}


@pytest.mark.parametrize(
    ("given", "expected"),
    [
        ("--model.atention=additive", "did you mean model.attention"),
        ("--model.learning_rat=1", "did you mean model.learning_rate"),
        ("--lerning_rate=1", "did you mean model.learning_rate"),
        ("--trainer.max_step=5", "did you mean trainer.max_steps"),
        ("--model.attention=lokation_aware", "did you mean location_aware?"),
        ("--model.attention=nothing_like_it", "valid: additive, "),
        ("--model.encoder=conformr", "valid: conformer"),
        ("--data=string", "valid: manifests, strings"),
        ("--model.attention.kernal=15", "did you mean model.attention.kernel"),
        ("--data.word_per_batch=15", "did you mean data.words_per_batch"),
        ("--model.encoder.heads=3", "heads=3: must divide dim=32"),
        ("--model.ctc_weight=2", "ctc_weight=2.0: needs 0 <= ctc_weight < 1"),
        ("--data.augmentation.rom=1", "did you mean data.augmentation.room"),
        ("--model.augment.time_mask=1", "did you mean model.augment.time_masks"),
        ("--model.learning_rate=fast", "model.learning_rate=fast: valid: a number\n"),
        ("--data.steps_per_epoch=1.5", "data.steps_per_epoch=1.5: valid: a whole number\n"),
        ('--data.augmentation={"room": "x"}', "data.augmentation.room=x: valid: a number\n"),
        ("--model.encoder.dim=abc", "model.encoder.dim=abc: valid: a whole number\n"),
        ("--model.augment=3", "model.augment=3: valid: a mapping of frequency_masks, "),
        ("--threads=x", "threads=x: valid: a whole number\n"),
        ("--trainer.limit_val_batches=x", "_batches=x: valid: a whole number, a number, null\n"),
        ("--trainer.precision=bf17", "trainer.precision=bf17: valid: 32-true, bf16-mixed, "),
        ("--trainer.precision=16-mixed", "valid: 32-true, bf16-mixed, 64-true; a CPU has no half"),
        ('--trainer.logger={"class_path": "CSVLogger"}', "trainer.logger: CSVLogger: "),
        ('--trainer.callbacks=[{"class_path": "Timer", "init_args": {"x": 1}}]', "Timer: "),
        ("--trainer.devices=2", "trainer.devices: 2 devices; valid: 1"),
        ("--trainer.devices=x", "`devices` selected with"),
        ("--trainer.max_time=5m", "not a valid duration"),
        ("--trainer.max_time=00:00:00:00", "trainer.max_time=00:00:00:00: must be above 0"),
        ("--trainer.val_check_interval=1.5", "val_check_interval, it has to be in"),
        ("--trainer.enable_checkpointing=false", "trainer.enable_checkpointing=false: valid: true"),
        ("--trainer.fast_dev_run=true", "trainer.fast_dev_run=true: valid: false, 0; "),
        ("--name=../x", "--name=../x: the name of a folder in "),
        ("--data.validation=[nowhere.jsonl]", "nowhere.jsonl: no such file"),
        ("--config=nowhere.yaml", "nowhere.yaml: cannot be read"),
    ],
)
def test_mistakes_are_one_line_and_exit_2(
    config: dict[str, Any],
    tmp_path: Path,
    given: str,
    expected: str,
    capsys: pytest.CaptureFixture[str],
) -> None:
    assert run(tmp_path, config, given) == 2
    err = capsys.readouterr().err
    assert err.startswith("asr: error: ") and err.count("\n") == 1
    assert expected in err
    assert not (tmp_path / "runs").exists()


@pytest.mark.parametrize(
    ("change", "expected"),
    [
        ({"model": {"lerning_rate": 1}}, "did you mean model.learning_rate"),
        (
            {"model": {"attention": {"name": "additive", "kernal": 3}}},
            "did you mean model.attention.kernel",
        ),
        ({"model": {"attention": 5}}, "model.attention: a name, or a mapping"),
        ({"modle": {}}, "unknown key 'modle'; did you mean model"),
        ({"include": 3}, "include: a list of files"),
        ({"include": "run2.yaml"}, "includes itself"),
    ],
)
def test_mistakes_in_files_are_one_line(
    config: dict[str, Any],
    tmp_path: Path,
    change: dict[str, Any],
    expected: str,
    capsys: pytest.CaptureFixture[str],
) -> None:
    second = write(tmp_path / "run2.yaml", change)
    assert run(tmp_path, config, second) == 2
    err = capsys.readouterr().err
    assert err.startswith("asr: error: ") and err.count("\n") == 1
    assert expected in err


def test_broken_yaml_names_the_file(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "x.yaml").write_text("a: [")
    assert main(["--config", str(tmp_path / "x.yaml")]) == 2
    assert "x.yaml: not YAML" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("option", "valid"),
    [
        ("barebones=true", "valid: false; "),
        ("default_root_dir=elsewhere", "--runs and --name say where"),
        ("enable_autolog_hparams=false", "valid: true; "),
        ("enable_checkpointing=false", "valid: true, null; the bundle is made of"),
        ("enable_model_summary=true", "asr bundle --show"),
        ("fast_dev_run=true", "--trainer.max_steps=2"),
        ("fast_dev_run=3", "valid: false, 0; --trainer.max_steps=2"),
        ("gradient_clip_algorithm=value", "valid: norm, null; "),
        ("inference_mode=false", "valid: true; "),
        ("limit_predict_batches=2", "valid: null, 1.0; "),
        ("limit_test_batches=2", "name shorter data.test"),
        ("limit_train_batches=0.5", "--trainer.max_steps says"),
        ("model_registry=x", "valid: null; "),
        ("num_nodes=2", "valid: 1; a run has one device"),
        ("overfit_batches=2", "a manifest of a few utterances"),
        ("strategy=ddp", "valid: auto; "),
        ("sync_batchnorm=true", "valid: false; "),
        ("use_distributed_sampler=true", "valid: false; "),
        ("accumulate_grad_batches=0", "at least 1 is needed"),
        ("check_val_every_n_epoch=0", "at least 1 is needed"),
        ("gradient_clip_val=-1", "at least 0 is needed"),
        ("log_every_n_steps=0", "at least 1 is needed"),
        ("max_epochs=0", "at least 1, or -1 for no bound is needed"),
        ("max_steps=0", "at least 1, or -1 for no bound is needed"),
        ("max_steps=-5", "at least 1, or -1 for no bound is needed"),
        ("min_epochs=-1", "at least 0 is needed"),
        ("min_steps=-1", "at least 0 is needed"),
        ("num_sanity_val_steps=-3", "at least 0, or -1 for no bound is needed"),
        ("limit_val_batches=0", "must be above 0"),
        ("val_check_interval=0", "must be above 0"),
    ],
)
def test_what_a_run_would_ignore_or_break_on_is_refused(option: str, valid: str) -> None:
    key, _, value = option.partition("=")
    given = {**DEFAULTS, key: yaml.safe_load(value)}
    with pytest.raises(InputError) as refused:
        refusals.check_trainer(given)
    assert str(refused.value).startswith(f"trainer.{option}: ") and valid in str(refused.value)


def test_what_lightning_takes_by_default_is_fine() -> None:
    refusals.check_trainer(DEFAULTS)


def test_every_option_of_the_trainer_is_judged() -> None:
    """One that a new Lightning brings must be looked at: does it do what it says in a run?"""
    works = {
        "accelerator", "benchmark", "callbacks", "detect_anomaly", "deterministic", "devices",
        "enable_progress_bar", "logger", "max_time", "plugins", "precision", "profiler",
        "reload_dataloaders_every_n_epochs",
    }  # fmt: skip
    judged = {*refusals._ONLY, *refusals._LEAST, *refusals._ABOVE_0, *works}
    assert set(inspect.signature(Trainer).parameters) == judged


@pytest.mark.parametrize("name", ["", ".", "..", "../x", "a/b", "a\\b", "/tmp/x", "a\0b"])
def test_a_name_leads_nowhere_else(name: str) -> None:
    with pytest.raises(InputError, match="the name of a folder in runs is expected, without /"):
        refusals.check_name(name, "runs")
    refusals.check_name("digits.v2 (night)", "runs")


@pytest.mark.parametrize(
    ("key", "words"),
    [
        ("model.learning_rate", "a number"),
        ("model.encoder", "conformer, pyramidal"),
        ("model.encoder.dim", "a whole number"),
        ("model.augment", "a mapping of frequency_masks, "),
        ("data.pool", "a list (each a text)"),
        ("data.shares", "a list (each a number), null"),
        ("data.augmentation.room", "a number"),
        ("trainer.max_time", "a text, "),
        ("trainer.callbacks", "a list (each Callback), Callback, null"),
        ("trainer.nothing", ""),
    ],
)
def test_what_a_key_takes(key: str, words: str) -> None:
    assert accepted(key).startswith(words) and bool(accepted(key)) == bool(words)


def test_what_lightning_finds_late_is_one_line_too(
    config: dict[str, Any], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run(tmp_path, config, "--trainer.val_check_interval=7") == 2
    err = capsys.readouterr().err
    assert err.splitlines()[-1].startswith("asr: error: `val_check_interval` (7) must be")


def test_mistakes_of_the_program_keep_their_traceback() -> None:
    for error in (RuntimeError("x"), KeyError("x"), ZeroDivisionError()):
        assert refusals.explained(error, []) is None
        assert refusals.lightnings(error) is None
    assert refusals.explained(InputError("x"), []) == "x"


@pytest.mark.parametrize("given", [[], ["--seed_everything=1"], ["--trainer.max_steps=2"]])
def test_without_data_a_file_is_named(given: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    assert main(given) == 2
    err = capsys.readouterr().err
    assert err.startswith("asr: error: --config FILE is needed") and err.count("\n") == 1
    assert "--config conf/fsdd.yaml" in err
    assert (Path(__file__).parents[2] / "conf" / "fsdd.yaml").is_file()
