from __future__ import annotations

from copy import copy
from typing import Any

import numpy as np
import pytest

from asr.data.augment import Augmentation, Spoiler

RATE = 8000
STILL: dict[str, Any] = {
    "noise": 0.0, "room": 0.0, "tilt": 0.0, "mulaw": 0.0, "gain": (0.0, 0.0), "snr": (10.0, 10.0),
}  # fmt: skip
CLIPS = [np.sin(np.arange(3000, dtype=np.float32) * f) for f in (0.1, 0.3, 0.7)]
BANKS = Spoiler(Augmentation(), RATE, CLIPS, seed=1)


def speech(length: int = 40000) -> np.ndarray:
    times = np.arange(length) / RATE
    return (0.1 * np.sin(2 * np.pi * 400 * times) * (np.sin(9 * times) > 0)).astype(np.float32)


def spoilt(wave: np.ndarray, seed: int = 0, **plan: Any) -> np.ndarray:
    spoiler = copy(BANKS)
    spoiler.augmentation = Augmentation(**(STILL | plan))
    result = wave.copy()
    spoiler(result, np.random.default_rng(seed), float(np.sqrt(np.mean(wave**2))))
    return result


def test_nothing_asked_nothing_done() -> None:
    np.testing.assert_array_equal(spoilt(speech()), speech())


def test_noise_has_its_level_and_many_colours() -> None:
    tilts = []
    for seed in range(24):
        noise = spoilt(speech(), seed, noise=1.0) - speech()
        ratio = 10 * np.log10(np.mean(speech() ** 2) / np.mean(noise**2))
        assert ratio == pytest.approx(10.0, abs=1.0)
        power = np.abs(np.fft.rfft(noise)) ** 2
        tilts.append(power[100:2000].mean() / power[10000:].mean())
    assert min(tilts) < 1.3 and max(tilts) > 100, tilts
    assert any(2 < tilt < 50 for tilt in tilts)


def test_noise_outlasts_its_bank() -> None:
    long = spoilt(np.zeros(600_000, np.float32) + 0.1, noise=1.0) - 0.1
    assert np.abs(long[-1000:]).max() > 0


def test_a_room_rings_but_does_not_delay() -> None:
    click = np.zeros(8000, np.float32)
    click[1000] = 0.5
    for seed in range(12):
        wave = spoilt(click, seed, room=1.0)
        assert np.abs(wave).argmax() == 1000
        assert np.abs(wave[:1000]).max() < 1e-6
        assert np.abs(wave[1001:2500]).max() > 1e-3


def test_a_tilt_changes_highs_against_lows() -> None:
    white = np.random.default_rng(1).standard_normal(40000).astype(np.float32) * 0.05
    ratios = []
    for seed in range(20):
        power = np.abs(np.fft.rfft(spoilt(white, seed, tilt=1.0))) ** 2
        ratios.append(10 * np.log10(power[:10000].mean() / power[10000:].mean()))
    assert min(ratios) < -3 and max(ratios) > 3


def test_mulaw_keeps_its_distance_at_every_level() -> None:
    """The point of companding (Bell System, 1957): some 38 dB over 40 dB of levels."""
    for level in (0.9, 0.3, 0.1, 0.03):
        wave = (level * np.sin(np.arange(40000) * 0.37)).astype(np.float32)
        error = spoilt(wave, mulaw=1.0) - wave
        assert 32 < 10 * np.log10(np.mean(wave**2) / np.mean(error**2)) < 42
    assert len(np.unique(spoilt(np.linspace(-1, 1, 40000, dtype=np.float32), mulaw=1.0))) == 255


def test_gain_never_clips() -> None:
    loud = spoilt(speech() * 9, gain=(12.0, 12.0))
    assert np.abs(loud).max() == pytest.approx(1.0)
    quiet = spoilt(speech(), gain=(-20.0, -20.0))
    np.testing.assert_allclose(quiet, speech() / 10, atol=1e-6)
    assert not spoilt(np.zeros(100, np.float32), gain=(12.0, 12.0)).any()


def test_the_same_generator_spoils_the_same() -> None:
    plan = {"noise": 1.0, "room": 1.0, "tilt": 1.0, "mulaw": 1.0}
    np.testing.assert_array_equal(spoilt(speech(), 4, **plan), spoilt(speech(), 4, **plan))
    assert not np.array_equal(spoilt(speech(), 4, **plan), spoilt(speech(), 5, **plan))


@pytest.mark.parametrize(
    "wrong",
    [
        {"noise": 1.5}, {"room": -0.1}, {"tilt": 2.0}, {"mulaw": 2.0}, {"speed_share": 3.0},
        {"snr": (9.0, 1.0)}, {"gain": (1.0, 0.0)}, {"speed": (1.2, 1.1)}, {"speed": (0.1, 1.0)},
        {"word_speed": 0.9}, {"word_gain": -1.0}, {"word_cut": -0.1},
    ],
)  # fmt: skip
def test_wrong_parameters_are_named(wrong: dict[str, Any]) -> None:
    with pytest.raises(ValueError, match=f"{next(iter(wrong))} must be"):
        Augmentation(**wrong)
