"""What of a piece the model is given, and where that lies in the piece."""

from __future__ import annotations

import math

import pytest
import torch

from asr.audio import Meter
from asr.inference.pieces import Piece
from asr.inference.silence import Given, Level, given, level
from asr.types import Hypothesis

RATE = 8000
FRAME = 320  # 40 ms
MARGIN = 0.25  # 7 frames


def noise(seconds: float, level: float = 0.1, seed: int = 0) -> torch.Tensor:
    generator = torch.Generator().manual_seed(seed)
    return torch.randn(round(seconds * RATE), generator=generator) * level


def still(seconds: float) -> torch.Tensor:
    return torch.zeros(round(seconds * RATE))


def measured(samples: torch.Tensor, rate: int) -> Level:
    meter = Meter(rate)
    meter.add(samples[:, None].numpy())
    return level(meter.energies()[0])


def take(samples: torch.Tensor, margin: float = MARGIN, level: Level | None = None) -> Given | None:
    return given(Piece(0, samples, RATE), level or measured(samples, RATE), FRAME, margin)


def rms(samples: torch.Tensor) -> float:
    return float(samples.square().mean().sqrt())


def frames(*stretches: tuple[float, float]) -> list[int]:
    """The frames that hold a moment of any of these stretches, in seconds."""
    return [
        frame
        for frame in range(1000)
        if any(frame * 0.04 < end and (frame + 1) * 0.04 > start for start, end in stretches)
    ]


@pytest.mark.parametrize("seconds", [0.04, 0.1, 0.5, 0.523])
def test_a_tightly_cut_word_gets_a_margin_on_both_sides(seconds: float) -> None:
    word = noise(seconds)
    found = take(word)
    assert found is not None
    assert torch.equal(found.samples[7 * FRAME : -7 * FRAME], word)
    assert found.kept.tolist() == list(range(math.ceil(len(word) / FRAME)))
    assert found.duration == pytest.approx(seconds + 2 * 7 * 0.04)


def test_a_margin_is_made_of_what_its_recording_lacks() -> None:
    """Noise 6 dB under the quietest moment of a noisy recording, nothing where that is nothing."""
    sound = noise(1.0)
    sound[3000:3400] *= 0.1  # 50 ms, 20 dB quieter
    found = take(sound)
    for edge in (found.samples[: 7 * FRAME], found.samples[-7 * FRAME :]):
        assert rms(edge) == pytest.approx(0.005, rel=0.1)
    sound[3000:3400] = 0.0
    found = take(sound)
    assert rms(found.samples[: 7 * FRAME]) == 0


def test_silence_that_is_there_serves_as_margin() -> None:
    sound = torch.cat([still(0.16), noise(0.4), still(0.16)])
    found = take(sound)
    # Blurring lets a sound reach 20 ms further: 3 frames of silence are left of the 4.
    assert found.margin == 4
    assert len(found.samples) == len(sound) + 2 * 4 * FRAME
    assert found.kept.tolist() == list(range(18))


def test_only_what_is_near_a_sound_is_kept() -> None:
    """Before, between and after: all silence comes down to the margin, whatever its length."""
    parts = [still(3.0), noise(0.4), still(0.4), noise(0.5), still(5.0), noise(0.6), still(2.0)]
    found = take(torch.cat(parts))
    near = 0.02 + 0.28  # blurring, and 7 frames
    expected = frames((3.0 - near, 4.3 + near), (9.3 - near, 9.9 + near))
    assert set(found.kept.tolist()) ^ set(expected) <= {
        border + step for border in (67, 115, 224, 255) for step in (-1, 0, 1)
    }
    assert found.margin == 0
    assert len(found.samples) == FRAME * len(found.kept)
    sound = torch.nn.functional.pad(torch.cat(parts), (0, 100))
    kept = torch.cat([sound[k * FRAME : (k + 1) * FRAME] for k in found.kept.tolist()])
    assert torch.equal(found.samples, kept)


def test_a_last_frame_that_is_not_full() -> None:
    sound = torch.cat([still(2.0), noise(0.41)])
    assert len(sound) % FRAME
    found = take(sound)
    assert found.kept[-1] == found.size - 1 == len(sound) // FRAME
    assert torch.equal(found.samples[-7 * FRAME - 800 : -7 * FRAME], sound[-800:])


def test_noise_around_words_is_silence_too() -> None:
    background = noise(8.0, 0.003, seed=1)
    sound = background.clone()
    sound[3 * RATE : 4 * RATE] += noise(1.0)
    found = take(sound)
    assert 1.4 < found.duration < 1.8
    assert found.kept[0] * 0.04 == pytest.approx(2.7, abs=0.05)


@pytest.mark.parametrize("below", [3.0, 15.0])
def test_nothing_is_taken_out_of_a_noisy_recording(below: float) -> None:
    sound = noise(6.0, 0.1 * 10 ** (-below / 20), seed=1)
    sound[2 * RATE : 3 * RATE] += noise(1.0)
    found = take(sound)
    assert found.kept.tolist() == list(range(found.size)) == list(range(150))


def test_words_are_quiet_and_loud() -> None:
    """28 dB below the loudest word is a word still; what is fainter all along is a breath."""
    for loudness, heard in ((0.004, True), (0.0015, False)):
        sound = torch.cat([noise(0.5), still(2.0), noise(0.5, loudness), still(2.0)])
        sound += noise(5.0, 0.0002, seed=1)
        kept = set(take(sound).kept.tolist())
        assert {*frames((0.0, 0.5))} <= kept
        assert ({*frames((2.52, 2.98))} <= kept) == heard
        assert (round(2.75 / 0.04) in kept) == heard


def test_one_bang_makes_no_word_faint() -> None:
    sound = torch.cat([noise(0.4, 0.01), still(1.0)] * 100)
    sound[800:820] = 1.0
    assert len(take(sound).kept) * 0.04 > 90


def test_a_click_in_silence_is_no_speech() -> None:
    sound = torch.cat([still(2.0), noise(0.4), still(4.0)])
    sound[round(5.0 * RATE) : round(5.005 * RATE)] = 0.5
    assert take(sound).kept.max() * 0.04 < 3.0
    sound[round(2.5 * RATE) : round(2.505 * RATE)] = 0.5  # 0.1 s after the word: a stop's release
    assert round(2.5 / 0.04) in take(sound).kept
    rest = torch.cat([noise(0.02), still(3.0), noise(0.4), still(3.0), noise(0.02)])
    found = take(rest)  # what the edges cut off may have been words
    assert found.kept[0] == 0 and found.kept[-1] == found.size - 1


@pytest.mark.parametrize("level", [0.0, 9e-5])
def test_nothing_in_silence(level: float) -> None:
    assert take(noise(2.0, level)) is None
    assert take(noise(2.0, level), 0.0) is None


def test_what_is_silent_beside_the_rest_of_the_recording_is_silent() -> None:
    background = noise(4.0, 0.0002)
    assert take(background) is not None
    assert take(background, level=Level(loud=0.1**2, background=0.0002**2)) is None


def test_without_a_margin_a_piece_is_taken_as_it_is() -> None:
    sound = torch.cat([still(3.0), noise(0.41), still(3.0)])
    found = take(sound, 0.0)
    assert torch.equal(found.samples, sound)
    assert found.kept.tolist() == list(range(found.size)) and found.margin == 0


def test_the_level_of_a_recording() -> None:
    sound = torch.cat([noise(10.0, 0.001), noise(9.0, 0.1), still(0.01)])
    level = measured(sound, RATE)
    assert math.sqrt(level.loud) == pytest.approx(0.1, rel=0.2)
    assert math.sqrt(level.background) == pytest.approx(0.001, rel=0.2)
    assert measured(still(1.0), RATE) == measured(still(0.0), RATE) == Level(0.0, 0.0)


def test_attention_is_placed_where_it_was_heard() -> None:
    """Against a plain loop: each frame's weight goes to its own frame, a margin's to the next."""
    found = take(torch.cat([noise(0.4), still(3.0), noise(0.43), still(0.12)]))
    size = math.ceil(len(found.samples) / FRAME)
    weights = torch.rand(3, 2, size).softmax(-1)
    placed = found.placed(Hypothesis((4, 5), -1.0, (-0.1, -0.1, -0.1), weights)).weights
    expected = torch.zeros(3, 2, found.size)
    kept = found.kept.tolist()
    for frame in range(size):
        own = kept[min(max(frame - found.margin, 0), len(kept) - 1)]
        expected[..., own] += weights[..., frame]
    assert found.margin > 0 and size > found.margin + len(kept)
    assert torch.allclose(placed, expected)
    assert torch.allclose(placed.sum(-1), torch.ones(()))
    left_out = [frame for frame in range(found.size) if frame not in kept]
    assert left_out and not placed[..., left_out].any()


def test_a_listener_matrix_is_placed_likewise() -> None:
    found = take(torch.cat([noise(0.4), still(3.0), noise(0.43)]))
    size = math.ceil(len(found.samples) / FRAME)
    matrix = torch.rand(2, size, size).softmax(-1)
    placed = found.matrix(matrix)
    assert placed.shape == (2, found.size, found.size)
    kept = found.kept.tolist()
    assert torch.allclose(placed[:, kept].sum(-1), torch.ones(()))
    assert torch.allclose(
        placed[:, kept[3], kept[5]], matrix[:, found.margin + 3, found.margin + 5]
    )
    assert placed.sum() == pytest.approx(2 * len(kept), abs=1e-3)


def test_moments_are_found_again_in_the_piece() -> None:
    """Moments before and after 3 s of silence, of which half a second was given, and outside."""
    found = take(torch.cat([noise(0.4), still(3.0), noise(0.43)]))
    before = found.margin * 0.04
    first = int((found.kept.diff() > 1).nonzero()) + 1  # frames up to the seam
    seam, ahead, behind = (
        (found.margin + first) * 0.04,
        first * 0.04,
        float(found.kept[first]) * 0.04,
    )
    left_out = behind - ahead
    for moment, place in [
        (0.0, 0.0), (before, 0.0), (before + 0.123, 0.123),
        (seam - 0.01, ahead - 0.01), (seam, behind), (seam + 0.05, behind + 0.05),
        (found.duration - 0.5, found.duration - 0.5 - before + left_out),
        (found.duration, 3.83),
    ]:  # fmt: skip
        assert found.when(moment, 0.04) == pytest.approx(place)
        ending = ahead if moment == seam else place
        assert found.when(moment, 0.04, ends=True) == pytest.approx(ending)
