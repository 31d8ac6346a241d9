"""The scripts that measure a machine run on a CPU, and print what they promise."""

from __future__ import annotations

import json
import sys
from types import ModuleType

import pytest
import torch

from asr.text import CharacterTokenizer
from recipes.benchmark import generated, gpu_check, loader


def lines(module: ModuleType, argv: list[str], capsys, monkeypatch) -> list[dict]:
    monkeypatch.setattr(sys, "argv", [f"{module.__name__}.py", *argv])
    assert not module.main()
    return [json.loads(line) for line in capsys.readouterr().out.splitlines()]


def test_gpu_check(capsys, monkeypatch) -> None:
    argv = ["--device", "cpu", "--sizes", "tiny", "--steps", "2", "--batch-seconds", "1.5"]
    argv += ["--subwords", "100", "--precisions", "32-true", "16-mixed"]
    found = lines(gpu_check, argv, capsys, monkeypatch)
    assert all({"name", "metric", "value", "unit"} <= line.keys() for line in found)
    values = {line["metric"]: line["value"] for line in found}
    assert {"step_time", "audio_hours_per_hour", "step_operations", "wall_time"} <= values.keys()
    assert values["finite_losses"] == 1 and values["same_texts"] == 1.0
    assert values["logits_difference"] == 0.0  # a CPU agrees with itself
    assert {line.get("precision") for line in found} == {"32-true", None}  # none in half there


@pytest.mark.parametrize("known", [True, False])
def test_gpu_check_takes_what_a_cpu_can_do(capsys, monkeypatch, known: bool) -> None:
    """Two steps, and bfloat16 only where the processor multiplies in it; never float16."""
    monkeypatch.setattr(gpu_check, "sensible", lambda name: known or name == "32-true")
    argv = ["--device", "cpu", "--sizes", "tiny", "--batch-seconds", "1.5", "--subwords", "100"]
    found = lines(gpu_check, argv, capsys, monkeypatch)
    expected = {"32-true", "bf16-mixed"} if known else {"32-true"}
    assert {line["precision"] for line in found if "precision" in line} == expected


def test_what_is_sensible_is_measured(monkeypatch) -> None:
    assert gpu_check.sensible("32-true") and gpu_check.sensible("16-mixed")
    for bfloat16, answer in ((4.0, True), (6.0, False)):
        ticks = iter([0.0, 1.0] * 3 + [0.0, bfloat16] * 3)
        monkeypatch.setattr(gpu_check.time, "perf_counter", lambda ticks=ticks: next(ticks))
        assert gpu_check.sensible("bf16-mixed") is answer


def test_operations_are_those_of_a_product() -> None:
    tokenizer = CharacterTokenizer(generated.LETTERS + " ")
    batch = generated.batches(tokenizer, gpu_check.RATE, seconds=1.5, count=1)[0]
    made = gpu_check.module("tiny", tokenizer)
    counted = gpu_check.operations(made, batch, torch.device("cpu"))
    frames = float(batch.wave_lengths.sum()) / gpu_check.RATE / made.model.frame_shift
    encoder = sum(p.numel() for p in made.model.encoder.blocks.parameters())
    # Forward and backward are six operations a weight and frame; the rest comes on top.
    assert 6 * encoder * frames * 0.9 < counted < 60 * encoder * frames


def test_loader(capsys, monkeypatch) -> None:
    argv = ["--workers", "0", "--size", "tiny", "--batch-seconds", "2", "--batches", "2"]
    found = lines(loader, [*argv, "--device", "cpu"], capsys, monkeypatch)
    values = {line["metric"]: line["value"] for line in found}
    assert set(values) == {"loading", "waiting", "training"}
    assert 0 <= values["waiting"] <= 1 and values["loading"] > 0


def test_lengths_are_like_librispeechs() -> None:
    made = generated.lengths(2000)
    assert made == generated.lengths(2000)
    assert 11.5 < sum(made) / len(made) < 13.5 and max(made) <= 24.5
    assert pytest.approx(generated.lengths(10, seed=1)) != generated.lengths(10)
