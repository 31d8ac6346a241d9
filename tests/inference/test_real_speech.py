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
from asr.types import Transcript, Waveform

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


def test_what_is_no_speech_is_doubted_and_what_is_rightly_heard_is_not(
    starter: Transcriber, words: list[tuple[Waveform, str]], speech_folder: Path
) -> None:
    found = zip(starter([wave for wave, _ in words]), words, strict=True)
    right = [each for each, (_, text) in found if each.text == text]
    assert len(right) > 50 and sum(doubted(each) for each in right) <= 3
    generator = torch.Generator().manual_seed(0)
    noises = [
        Waveform(level * torch.randn(32000, generator=generator), starter.sample_rate)
        for level in (0.3, 0.03, 0.003)
    ]
    files = ("kaldi-gstreamer-server__silence.wav", "cpython__pluck-pcm16.wav",
             "lhotse__big_buck_bunny_small.mp4", "pydub__test1-8bit.wav")  # fmt: skip
    noises += [load(speech_folder / "wild" / name, starter.sample_rate) for name in files]
    assert all(doubted(each) for each in starter(noises) if each.text)


def doubted(found: Transcript) -> bool:
    return any(w.code in ("low-confidence", "low-coverage") for w in found.warnings)
