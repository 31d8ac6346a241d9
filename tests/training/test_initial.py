"""Fine-tuning: a run that begins with a bundle."""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import Any

import pytest
import torch
import yaml

from asr.inference import bundle
from asr.nn.las import LAS
from asr.text import CharacterTokenizer
from asr.training.cli import main

from .conftest import write


def model(vocabulary: int, **encoder: Any) -> LAS:
    torch.manual_seed(3)
    small = {"dim": 32, "blocks": 1, "heads": 2, "kernel": 5, "channels": 8, "dropout": 0.0}
    return LAS.from_spec(
        {
            "sample_rate": 8000,
            "vocabulary_size": vocabulary,
            "frontend": {"name": "log_mel", "bins": 16},
            "encoder": {"name": "conformer", **small, **encoder},
            "attention": {"name": "additive", "dim": 8},
            "speller": {"name": "recurrent", "dim": 32, "embedding": 8},
            "ctc": True,
        }
    )


@pytest.fixture
def begun(tmp_path: Path) -> Path:
    """A bundle with more characters than the corpus has."""
    tokenizer = CharacterTokenizer(" abcd")
    bundle.save(tmp_path / "begun", model(tokenizer.vocabulary_size), tokenizer, card={})
    return tmp_path / "begun"


@pytest.fixture
def config(corpus: Path, tmp_path: Path) -> dict[str, Any]:
    """A run that says nothing of a model, and learns next to nothing in its one step."""
    path = [str(corpus / "strings.jsonl")]
    return {
        "name": "tuned",
        "runs": str(tmp_path / "runs"),
        "threads": 1,
        "trainer": {"max_steps": 1, "accelerator": "cpu"},
        "average": {"decay": 0.0},
        "model": {"learning_rate": 1e-9, "warmup_steps": 0, "guided_attention": 0.0},
        "data": {"name": "manifests", "train": path, "validation": path, "workers": 0},
    }


def run(path: Path, config: dict[str, Any], *more: str) -> int:
    return main([write(path / "run.yaml", config), *more])


def test_model_weights_and_tokenizer_are_the_bundles(
    begun: Path, config: dict[str, Any], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run(tmp_path, config, f"--init_from={begun}") == 0
    assert "begins as begun: " in (err := capsys.readouterr().err) and "not copied" not in err
    made = bundle.load(tmp_path / "runs" / "tuned" / "bundle")
    first = bundle.load(begun)
    assert made.tokenizer.fingerprint == first.tokenizer.fingerprint
    assert made.model.spec() == first.model.spec()
    for name, tensor in first.model.state_dict().items():
        torch.testing.assert_close(made.model.state_dict()[name], tensor, atol=1e-6, rtol=0)
    assert f"began as: {begun}" in made.card["data"]
    used = yaml.safe_load((tmp_path / "runs" / "tuned" / "config.yaml").read_text())
    assert used["data"]["tokenizer"] == str(begun) and used["data"]["sample_rate"] == 8000
    # What was begun with may be gone when the run is resumed, but for its tokenizer.
    for name in ("config.json", "model.safetensors", "card.json"):
        (begun / name).unlink()
    assert main([f"--resume={tmp_path / 'runs' / 'tuned'}", "--trainer.max_steps=2"]) == 0


def test_a_zip_and_another_tokenizer(
    begun: Path, config: dict[str, Any], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    archive = shutil.make_archive(str(tmp_path / "packed"), "zip", begun)
    config["init_from"] = archive
    config["data"]["tokenizer"] = "characters"
    assert run(tmp_path, config) == 0
    err = capsys.readouterr().err
    assert "not copied, so learnt anew: speller.embed.weight, speller.output.weight" in err
    assert bundle.load(tmp_path / "runs" / "tuned" / "bundle").tokenizer.vocabulary_size == 7


def test_as_many_tokens_are_not_the_same_tokens(
    config: dict[str, Any], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    other = CharacterTokenizer("xyz ")  # as many as the corpus has
    bundle.save(tmp_path / "other", model(other.vocabulary_size), other, card={})
    config["data"]["tokenizer"] = "characters"
    assert run(tmp_path, config, "--init_from", str(tmp_path / "other")) == 0
    assert "learnt anew: speller.embed.weight" in capsys.readouterr().err


def test_what_is_told_replaces_the_bundles(
    begun: Path, config: dict[str, Any], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    given = ("--model.attention=location_aware", "--model.encoder.dropout=0.2")
    assert run(tmp_path, config, f"--init_from={begun}", *given) == 0
    assert "speller.attention." in capsys.readouterr().err
    used = yaml.safe_load((tmp_path / "runs" / "tuned" / "config.yaml").read_text())["model"]
    assert used["attention"]["name"] == "location_aware"
    assert used["encoder"]["dropout"] == 0.2 and used["encoder"]["dim"] == 32


@pytest.mark.parametrize(
    ("given", "told"),
    [
        (["--data.sample_rate=16000"], "hears at 8000 Hz, this model at 16000 Hz; valid: --data."),
        (["--model.encoder.dim=48"], "the bundle does not fit: of this model's listener it has"),
        (["--init_from=nowhere"], "--init_from: nowhere: no such bundle"),
        (["--init_from=."], "a bundle holds config.json"),
        (["--init_form=."], "did you mean init_from"),
    ],
)
def test_what_does_not_fit_is_one_line(
    begun: Path,
    config: dict[str, Any],
    tmp_path: Path,
    given: list[str],
    told: str,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.chdir(tmp_path)
    assert run(tmp_path, config, f"--init_from={begun}", *given) == 2
    err = capsys.readouterr().err
    assert err.startswith("asr: error: ") and err.count("\n") == 1 and told in err, err
    assert not (tmp_path / "runs").exists()


def test_texts_that_the_tokenizer_lacks_are_named(
    config: dict[str, Any], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    few = CharacterTokenizer(" ab")
    bundle.save(tmp_path / "few", model(few.vocabulary_size), few, card={})
    assert run(tmp_path, config, f"--init_from={tmp_path / 'few'}") == 0
    err = capsys.readouterr().err
    assert "not trained on: string1: the tokenizer lacks 'c'" in err
