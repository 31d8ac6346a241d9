"""The training step: every precision a CPU has, what is skipped, and that it learns."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import torch
from lightning.pytorch import Trainer

from asr.errors import InputError
from asr.glimpses import LogMel, SpecAugment
from asr.nn.decoders import Recurrent
from asr.nn.encoders import Conformer
from asr.training.average import Average
from asr.training.data import ManifestData
from asr.training.module import LASModule, TrainingStopped
from asr.training.validation import alignment_warning


def data_of(corpus: Path) -> ManifestData:
    path = [str(corpus / "strings.jsonl")]
    return ManifestData(train=path, validation=path, sample_rate=8000, workers=0)


def module_of(data: ManifestData, **options: Any) -> LASModule:
    torch.manual_seed(0)
    parts: dict[str, Any] = {
        "frontend": lambda rate: LogMel(rate, bins=16),
        "encoder": lambda dim: Conformer(
            dim, dim=32, blocks=1, heads=2, kernel=5, channels=8, dropout=0.0
        ),
        "speller": lambda size, attention, dim: Recurrent(
            size, attention, dim, dim=48, embedding=8, dropout=0.0
        ),
    }
    return LASModule(data.tokenizer, data.sample_rate, **{**parts, **options})


def trainer_of(folder: Path, **options: Any) -> Trainer:
    quiet: dict[str, Any] = {
        "accelerator": "cpu",
        "logger": False,
        "enable_checkpointing": False,
        "enable_progress_bar": False,
        "enable_model_summary": False,
        "num_sanity_val_steps": 0,
        "default_root_dir": folder,
    }
    return Trainer(**{**quiet, **options})


@pytest.mark.parametrize("precision", ["32-true", "bf16-mixed", "64-true"])
def test_one_step_in_every_precision(corpus: Path, tmp_path: Path, precision: str) -> None:
    data = data_of(corpus)
    module = module_of(data, augment=SpecAugment(), scheduled_sampling=0.5, sampling_share=0.0)
    before = [p.clone() for p in module.parameters()]
    trainer = trainer_of(tmp_path, precision=precision, max_steps=1, log_every_n_steps=1)
    trainer.fit(module, datamodule=data)
    assert module.non_finite == 0
    logged = trainer.callback_metrics
    assert {
        "train/loss",
        "train/ctc",
        "train/guided_attention",
        "val/loss",
        "val/wer",
    } <= logged.keys()
    assert all(torch.isfinite(value) for value in logged.values())
    after = [p.float() for p in module.parameters()]
    assert any(not torch.equal(a, b) for a, b in zip(before, after, strict=True))


def test_four_utterances_are_learned_by_heart(corpus: Path, tmp_path: Path) -> None:
    data = data_of(corpus)
    module = module_of(data, learning_rate=5e-3, warmup_steps=10, label_smoothing=0.0)
    trainer = trainer_of(
        tmp_path,
        max_steps=160,
        check_val_every_n_epoch=160,
        gradient_clip_val=5.0,
        callbacks=[Average(decay=0.9)],
    )
    trainer.fit(module, datamodule=data)
    assert module.metrics["wer"] == 0.0, [(d.reference, d.text) for d in module.decoded]
    assert module.metrics["monotonicity"] > 0.8
    for decoded in module.decoded:
        assert decoded.record.tokens[-1] == "<eos>" and decoded.record.mode == "free"


class Spoilt(LASModule):
    """Its loss is not a number in the steps given."""

    bad: frozenset[int] = frozenset()

    def losses(self, *given: Any) -> dict[str, torch.Tensor]:
        parts = super().losses(*given)
        if self.trainer.global_step in self.bad:
            parts["loss"] = parts["loss"] * float("nan")
        return parts


@pytest.fixture
def spoilt(corpus: Path) -> tuple[Spoilt, ManifestData]:
    data = data_of(corpus)
    module = module_of(data, non_finite_limit=3)
    module.__class__ = Spoilt
    return module, data


def test_a_step_that_is_not_finite_changes_nothing(
    spoilt: tuple[Spoilt, ManifestData], tmp_path: Path
) -> None:
    module, data = spoilt
    module.bad = frozenset({0, 1})
    before = {k: v.clone() for k, v in module.state_dict().items()}
    trainer_of(tmp_path, max_steps=2).fit(module, datamodule=data)
    assert module.non_finite == 2
    assert all(torch.equal(before[k], v) for k, v in module.state_dict().items())


def test_a_run_that_stays_broken_is_stopped_with_a_reason(
    spoilt: tuple[Spoilt, ManifestData], tmp_path: Path
) -> None:
    module, data = spoilt
    module.bad = frozenset({0, 1, 3, 4, 5})
    with pytest.raises(TrainingStopped, match=r"not finite 3 steps in a row.*learning_rate"):
        trainer_of(tmp_path, max_steps=9).fit(module, datamodule=data)
    assert module.non_finite == 5


def test_the_listener_learns_at_a_rate_of_its_own(corpus: Path, tmp_path: Path) -> None:
    data = data_of(corpus)
    moved: dict[float | None, dict[str, float]] = {}
    for rate in (None, 0.0, 2e-5):
        torch.manual_seed(1)
        module = module_of(data, encoder_learning_rate=rate, warmup_steps=1)
        before = {name: p.detach().clone() for name, p in module.model.named_parameters()}
        trainer_of(tmp_path / str(rate), max_steps=2).fit(module, datamodule=data)
        moved[rate] = {"encoder": 0.0, "speller": 0.0, "ctc": 0.0}
        for name, parameter in module.model.named_parameters():
            part = name.split(".")[0]
            far = float((parameter.detach() - before[name]).abs().max())
            moved[rate][part] = max(moved[rate][part], far)
    assert moved[0.0]["encoder"] == 0 < moved[2e-5]["encoder"] < moved[None]["encoder"] / 10
    for part in ("speller", "ctc"):
        assert min(found[part] for found in moved.values()) > moved[2e-5]["encoder"] * 10


@pytest.mark.parametrize(
    ("option", "value"),
    [
        ("ctc_weight", 1.0),
        ("encoder_learning_rate", -1e-4),
        ("label_smoothing", -0.1),
        ("scheduled_sampling", 1.5),
    ],
)
def test_options_out_of_range_are_named(corpus: Path, option: str, value: float) -> None:
    with pytest.raises(ValueError, match=option):
        module_of(data_of(corpus), **{option: value})


def test_utterances_that_cannot_be_trained_on_are_named(
    corpus: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = [str(corpus / "strings.jsonl")]
    data = ManifestData(
        train=path, validation=path, sample_rate=8000, workers=0, longest=0.8, batch_seconds=1.0
    )
    trainer_of(tmp_path, max_steps=1).fit(module_of(data), datamodule=data)
    assert "not trained on: string2: too long" in capsys.readouterr().err
    with pytest.raises(InputError, match="no utterance"):
        data.longest = 0.1
        trainer_of(tmp_path, max_steps=1).fit(module_of(data), datamodule=data)


def test_the_warning_comes_late_and_names_the_remedy() -> None:
    blurred = {"wer": 0.9, "relative_entropy": 0.95, "monotonicity": 1.0, "coverage": 1.0}
    assert alignment_warning(blurred, 0.1) is None
    assert "guided_attention" in (alignment_warning(blurred, 0.5) or "")
    assert "back and forth" in (
        alignment_warning({**blurred, "relative_entropy": 0.2, "monotonicity": 0.4}, 0.5) or ""
    )
    assert alignment_warning({**blurred, "wer": 0.1}, 0.5) is None
    assert alignment_warning({}, 0.5) is None
