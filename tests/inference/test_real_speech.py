"""The starter on real words, cut out tightly, and with silence around and between them."""

from __future__ import annotations

import csv
from dataclasses import replace
from pathlib import Path

import pytest
import torch

from asr.audio import load
from asr.evaluation import Report, score
from asr.inference.transcriber import Transcriber
from asr.types import Waveform

pytestmark = pytest.mark.real_speech


@pytest.fixture(scope="module")
def starter() -> Transcriber:
    return Transcriber.from_bundle(device="cpu", search={"beam_size": 4})


@pytest.fixture(scope="module")
def words(speech_folder: Path, starter: Transcriber) -> list[tuple[Waveform, str]]:
    """Every fourth of the test words: single digits, cut out at their first and last sound."""
    folder = speech_folder / "corpora" / "fsdd"
    with open(folder / "manifest.tsv", encoding="utf-8", newline="") as file:
        rows = list(csv.DictReader(file, delimiter="\t"))
    rows = [row for row in rows if row["split"] == "test"][::4]
    assert len(rows) > 60
    return [(load(folder / r["audio"], starter.sample_rate), r["transcript"]) for r in rows]


def scored(starter: Transcriber, sounds: list[tuple[Waveform, str]]) -> Report:
    found = starter([wave for wave, _ in sounds])
    texts = {str(number): text for number, (_, text) in enumerate(sounds)}
    return score(texts, {str(n): each.text for n, each in enumerate(found)}, ci=None)


def test_tightly_cut_words(starter: Transcriber, words: list[tuple[Waveform, str]]) -> None:
    assert (scored(starter, words).wer or 1.0) < 0.12


def test_seconds_of_silence_around_and_between_words(
    starter: Transcriber, words: list[tuple[Waveform, str]]
) -> None:
    """Nothing is invented in it, be it digital or the hiss of a recorder."""
    rate = starter.sample_rate
    still = torch.zeros(3 * rate)
    hiss = torch.randn(40 * rate, generator=torch.Generator().manual_seed(0))
    sounds = []
    for first, second in zip(words[::2], words[1::2], strict=False):
        one, other = first[0].samples, second[0].samples
        sound = torch.cat([still, one / one.abs().max(), still, other / other.abs().max(), still])
        for level in (0.0, 0.002):
            noisy = 0.5 * sound + level * hiss[: len(sound)]
            sounds.append((replace(first[0], samples=noisy), f"{first[1]} {second[1]}"))
    report = scored(starter, sounds)
    assert report.reference_words > 100 and report.insertions + report.deletions < 5
    assert (report.wer or 1.0) < 0.2
