"""What recordings suffer, done to speech: noise, rooms, microphones, telephones."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import soxr
from numpy import fft
from numpy.typing import NDArray

from asr.types import Seconds

Sound = NDArray[np.float32]

_NOISE: Seconds = 40.0
_ROOMS, _ROOM_LENGTH = 48, 0.25
_LOWEST_HEARD = 50.0  # Hz
_MULAW = 255.0


@dataclass(frozen=True)
class Perturbation:
    """How often, and how far, whole utterances are changed.

    ``speed`` (slowest, fastest) of those that change pace, and pitch with it (Ko et al. 2015), a
    share ``speed_share`` of all. ``noise``, ``room``, ``tilt`` and ``mulaw`` are the shares with
    noise at ``snr`` (lowest, highest) dB, a simple room's reverberation, a first-order spectral
    tilt, and 8-bit mu-law coding. ``gain`` (lowest, highest) dB holds for the utterance.
    """

    speed: tuple[float, float] = (0.9, 1.1)
    speed_share: float = 0.67
    noise: float = 0.3
    snr: tuple[float, float] = (10.0, 40.0)
    room: float = 0.0
    tilt: float = 0.0
    mulaw: float = 0.0
    gain: tuple[float, float] = (-10.0, 6.0)

    def __post_init__(self) -> None:
        for name in ("speed_share", "noise", "room", "tilt", "mulaw"):
            if not 0 <= getattr(self, name) <= 1:
                raise ValueError(f"{name} must be a share from 0 to 1, not {getattr(self, name)}")
        for name in ("speed", "snr", "gain"):
            low, high = getattr(self, name)
            if low > high:
                raise ValueError(f"{name} must be (lowest, highest), not {(low, high)}")
        if not 0.5 <= self.speed[0] <= self.speed[1] <= 2:
            raise ValueError(f"speed must be within 0.5 to 2, not {self.speed}")

    @property
    def slowest(self) -> float:
        """The least pace that an utterance may get, at most 1."""
        return min(1.0, self.speed[0]) if self.speed_share else 1.0

    @property
    def fastest(self) -> float:
        """The greatest pace that an utterance may get, at least 1."""
        return max(1.0, self.speed[1]) if self.speed_share else 1.0


@dataclass(frozen=True)
class Augmentation(Perturbation):
    """How often, and how far, strings of words are changed.

    Beside what may happen to any utterance: each word is off the string's pace by up to
    ``word_speed`` more, and off its gain by up to ``word_gain`` dB, up or down. Half of all words'
    beginnings and half of their ends are silenced for up to ``word_cut`` seconds, but for no more
    than a quarter of the word: weak consonants get lost on the way through cheap microphones and
    where recordings are trimmed.
    """

    speed: tuple[float, float] = (0.8, 1.25)
    speed_share: float = 0.7
    noise: float = 0.5
    snr: tuple[float, float] = (3.0, 40.0)
    room: float = 0.2
    tilt: float = 0.5
    mulaw: float = 0.1
    gain: tuple[float, float] = (-20.0, 6.0)
    word_speed: float = 0.05
    word_gain: float = 3.0
    word_cut: float = 0.0

    def __post_init__(self) -> None:
        super().__post_init__()
        if not 0 <= self.word_speed <= 0.25:
            raise ValueError(f"word_speed must be from 0 to 0.25, not {self.word_speed}")
        if self.word_gain < 0:
            raise ValueError(f"word_gain must be 0 dB or more, not {self.word_gain}")
        if self.word_cut < 0:
            raise ValueError(f"word_cut must be 0 s or more, not {self.word_cut}")


USUAL = Augmentation()


class Spoiler:
    """Applies a :class:`Perturbation` but for its speed, in place, from banks made once.

    ``babble`` are the clips that a murmur of voices is made of, if there are any; ``seed`` fixes
    the banks.
    """

    def __init__(
        self,
        augmentation: Perturbation,
        sample_rate: int,
        babble: Sequence[Sound] = (),
        seed: int = 0,
    ) -> None:
        self.augmentation = augmentation
        rng = np.random.default_rng([seed, 1])
        size = _power_of_two(round(_NOISE * sample_rate))
        self._noises = [_coloured(rng, size, s, sample_rate) for s in (0.0, -0.5, -1.0)]
        if babble:
            self._noises.append(_murmur(rng, size, babble))
        self._rooms = [_room(rng, sample_rate) for _ in range(_ROOMS)]
        self._companded = _mulaw_table()

    def __call__(self, wave: Sound, rng: np.random.Generator, loudness: float) -> None:
        """Spoil ``wave`` (L,), whose speech has the root mean square ``loudness``."""
        plan, chance, amount = self.augmentation, rng.random(4), rng.random(8)
        if chance[0] < plan.room:
            room = self._rooms[int(amount[0] * _ROOMS)]
            size = _power_of_two(len(wave) + len(room))
            wave[:] = fft.irfft(fft.rfft(wave, size) * fft.rfft(room, size), size)[: len(wave)]
        if chance[1] < plan.tilt:
            coefficient = np.float32(1.6 * amount[1] - 0.8)
            wave[1:] += coefficient * wave[:-1]
            wave /= 1 + abs(coefficient)
        if chance[2] < plan.noise:
            noise = self._noises[int(amount[2] * len(self._noises))]
            start = int(amount[3] * max(0, len(noise) - len(wave)))
            decibels = plan.snr[0] + amount[4] * (plan.snr[1] - plan.snr[0])
            level = np.float32(loudness * 10 ** (-decibels / 20))
            wave += level * np.resize(noise[start : start + len(wave)], len(wave))
        gain = 10 ** ((plan.gain[0] + amount[5] * (plan.gain[1] - plan.gain[0])) / 20)
        peak = max(float(wave.max(initial=0.0)), -float(wave.min(initial=0.0)))
        wave *= np.float32(min(gain, 1 / max(peak, 1e-9)))  # louder, but never clipped
        if chance[3] < plan.mulaw:
            wave[:] = self._companded[(wave * 32767).astype(np.int32) + 32768]


def paced(wave: Sound, speed: float) -> Sound:
    """``wave`` (L,) at ``speed`` times its pace and pitch, band-limited: (about L / speed,)."""
    # A rate that soxr can turn into a ratio of small numbers, whatever was drawn.
    return soxr.resample(wave, round(1000 * speed), 1000, "HQ") if speed != 1.0 else wave


def _coloured(rng: np.random.Generator, size: int, slope: float, rate: int) -> Sound:
    """Noise whose amplitude goes with frequency to the power ``slope``, from where one hears it."""
    spectrum = fft.rfft(rng.standard_normal(size))
    spectrum *= np.maximum(fft.rfftfreq(size, 1 / rate), _LOWEST_HEARD) ** slope
    return _levelled(fft.irfft(spectrum, size))


def _murmur(rng: np.random.Generator, size: int, clips: Sequence[Sound], voices: int = 6) -> Sound:
    total = np.zeros(size)
    for _ in range(voices):
        line, filled = np.zeros(size), 0
        while filled < size and clips:
            clip = clips[int(rng.random() * len(clips))][: size - filled]
            line[filled : filled + len(clip)] = clip
            filled += max(1, len(clip))
        total += _levelled(line)
    return _levelled(total)


def _room(rng: np.random.Generator, rate: int) -> Sound:
    """The direct sound, then noise that dies away by 60 dB in 0.1 to 0.6 s, 3 to 18 dB weaker."""
    times = np.arange(round(_ROOM_LENGTH * rate)) / rate
    decay = 0.1 + 0.5 * rng.random()
    tail = rng.standard_normal(len(times)) * 10 ** (-3 * times / decay)
    tail *= 10 ** (-(3 + 15 * rng.random()) / 20) / np.sqrt(np.sum(tail**2))
    tail[0] = 1.0
    return (tail / np.sqrt(np.sum(tail**2))).astype(np.float32)


def _mulaw_table() -> Sound:
    """ITU-T G.711's characteristic (the continuous one) with 8 bits, for every 16-bit sample."""
    linear = np.arange(-32768, 32768) / 32768
    coded = np.sign(linear) * np.log1p(_MULAW * np.abs(linear)) / np.log1p(_MULAW)
    steps = np.round(coded * 127) / 127
    return (np.sign(steps) * np.expm1(np.abs(steps) * np.log1p(_MULAW)) / _MULAW).astype(np.float32)


def _power_of_two(least: int) -> int:
    return 1 << (least - 1).bit_length()


def _levelled(sound: NDArray[np.float64]) -> Sound:
    return (sound / max(float(np.sqrt(np.mean(sound**2))), 1e-9)).astype(np.float32)
