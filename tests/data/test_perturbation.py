"""Whole utterances at another pace and in noise."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
import soundfile
import torch

from asr.data.augment import Perturbation, paced
from asr.data.dataset import ManifestDataset, sift
from asr.data.manifest import Utterance, WordTime
from asr.text import CharacterTokenizer

RATE = 8000
STILL = {"speed_share": 0.0, "noise": 0.0, "gain": (0.0, 0.0)}


@pytest.fixture
def tones(tmp_path: Path, letters: CharacterTokenizer) -> list[Utterance]:
    made = []
    for number in range(4):
        times = np.arange(RATE) / RATE
        path = tmp_path / f"{number}.wav"
        soundfile.write(path, 0.3 * np.sin(2 * np.pi * 400 * times), RATE, subtype="FLOAT")
        words = (WordTime("a", 0.2, 0.4),)
        made.append(Utterance(str(number), path, 1.0, "a", words=words))
    return made


def dataset(tones: list[Utterance], **plan: object) -> ManifestDataset:
    given = Perturbation(**{**STILL, **plan})  # type: ignore[arg-type]
    return ManifestDataset(tones, CharacterTokenizer("abc "), RATE, perturbation=given)


def peak(wave: np.ndarray) -> float:
    """The loudest frequency, Hz."""
    return float(np.abs(np.fft.rfft(wave * np.hanning(len(wave)))).argmax() * RATE / len(wave))


@pytest.mark.parametrize("speed", [0.9, 1.0, 1.1])
def test_pace_takes_pitch_and_length_along(tones: list[Utterance], speed: float) -> None:
    made = dataset(tones, speed_share=1.0, speed=(speed, speed))
    example = made.perturbed(0, np.random.default_rng(1))
    assert len(example.wave) == pytest.approx(RATE / speed, abs=1)
    assert peak(example.wave.numpy()) == pytest.approx(400 * speed, abs=1)
    assert example.words[0].start == pytest.approx(0.2 / speed)
    wave = np.ones(100, np.float32)
    assert paced(wave, 1.0) is wave


def test_noise_is_as_strong_as_asked(tones: list[Utterance]) -> None:
    made = dataset(tones, noise=1.0, snr=(10.0, 10.0))
    clean = made[0].wave
    for seed in range(4):
        noise = made.perturbed(0, np.random.default_rng(seed)).wave - clean
        ratio = 10 * torch.log10(clean.square().mean() / noise.square().mean())
        assert float(ratio) == pytest.approx(10.0, abs=3.0)  # a second of a bank of 40
    torch.testing.assert_close(dataset(tones).perturbed(0, np.random.default_rng(0)).wave, clean)


def test_draws_change_from_epoch_to_epoch_and_repeat_with_the_index(tones: list[Utterance]) -> None:
    made = dataset(tones, speed_share=1.0, speed=(0.9, 1.1), noise=1.0)
    one, other = made.batches(10.0, seed=1), made.batches(10.0, seed=1)
    assert torch.equal(one[0].waves, other[0].waves)
    assert len(set(one[0].wave_lengths.tolist())) > 1  # each utterance draws its own pace
    later = one[len(one)]
    assert sorted(later.ids) == sorted(one[0].ids)
    assert sorted(later.wave_lengths.tolist()) != sorted(one[0].wave_lengths.tolist())
    assert set(made.batches(10.0)[0].wave_lengths.tolist()) == {RATE}  # validation: as it is


def test_batches_have_room_for_the_slowest_pace(tones: list[Utterance]) -> None:
    made = dataset(tones, speed_share=1.0, speed=(0.5, 1.0))
    batches = made.batches(4.0, seed=1)
    assert all(len(batches.members(index)) == 2 for index in range(len(batches)))
    assert all(b.waves.numel() <= 4.0 * RATE for b in (batches[i] for i in range(len(batches))))


def test_what_is_too_dense_at_the_fastest_pace_is_left_out() -> None:
    given = [Utterance("u", Path("none.wav"), 0.32, "abcabcab")]
    letters = CharacterTokenizer("abc")
    assert len(sift(given, letters, frame_shift=0.04)[0]) == 1
    _, rejected = sift(given, letters, frame_shift=0.04, fastest=1.25)
    assert str(rejected[0]) == "u: infeasible for CTC (8 frames needed, 7 there)"


def test_a_character_that_the_tokenizer_lacks_is_named() -> None:
    given = [Utterance("u", Path("none.wav"), 1.0, "abxaz")]
    _, rejected = sift(given, CharacterTokenizer("abc"), frame_shift=0.04)
    assert str(rejected[0]) == "u: the tokenizer lacks 'x', 'z'"


@pytest.mark.parametrize("wrong", [{"speed": (0.3, 1.0)}, {"noise": 1.5}, {"snr": (5.0, 1.0)}])
def test_parameters_out_of_range(wrong: dict[str, object]) -> None:
    with pytest.raises(ValueError, match=next(iter(wrong))):
        Perturbation(**wrong)  # type: ignore[arg-type]
