"""The log-mel front end against librosa and against itself in company."""

from __future__ import annotations

import librosa
import numpy as np
import pytest
import torch

from asr.glimpses import LogMel


def noise(samples: int, seed: int = 0) -> torch.Tensor:
    return 0.1 * torch.randn(samples, generator=torch.Generator().manual_seed(seed))


@pytest.mark.parametrize(("rate", "bins"), [(16000, 80), (8000, 64)])
@pytest.mark.parametrize("samples", [1, 399, 16000, 12345])
def test_equals_librosa(rate: int, bins: int, samples: int) -> None:
    front = LogMel(rate, bins=bins, normalise="none")
    wave = noise(samples)
    frames, lengths = front(wave[None], torch.tensor([samples]))

    count = -(-samples // front.hop)
    left = (front.n_fft - front.hop) // 2
    padded = np.pad(wave.numpy(), (left, front.n_fft + front.hop * count))
    power = librosa.feature.melspectrogram(
        y=padded,
        sr=rate,
        n_fft=front.n_fft,
        hop_length=front.hop,
        win_length=front.win,
        window="hann",
        center=False,
        power=2.0,
        n_mels=bins,
        fmin=20.0,
        fmax=rate / 2,
    )[:, :count]
    expected = np.log(np.maximum(power, front.floor)).T
    assert lengths.tolist() == [count]
    assert frames.shape == (1, count, bins)
    np.testing.assert_allclose(frames[0].numpy(), expected, atol=2e-3, rtol=1e-3)


def test_frames_are_centred_on_their_cells() -> None:
    """A click in the middle of cell 30 is loudest in frame 30."""
    front = LogMel(16000, normalise="none")
    wave = torch.zeros(16000)
    wave[30 * front.hop + front.hop // 2] = 1.0
    frames, _ = front(wave[None], torch.tensor([16000]))
    assert int(frames[0].sum(-1).argmax()) == 30


@pytest.mark.parametrize("normalise", ["none", "utterance", "global"])
def test_padding_and_company_change_nothing(normalise: str) -> None:
    front = LogMel(8000, bins=40, normalise=normalise)
    lengths = torch.tensor([4000, 0, 79, 2500])
    waves = torch.randn(4, 6000)  # what lies beyond a length is rubbish, not silence
    together, counts = front(waves, lengths)
    assert counts.tolist() == [50, 0, 1, 32]
    for wave, length, frames, count in zip(waves, lengths, together, counts, strict=True):
        alone, _ = front(wave[None, :length], length[None])
        torch.testing.assert_close(frames[:count], alone[0], atol=1e-5, rtol=1e-5)
        assert not frames[count:].any()


def test_utterance_normalisation_forgets_loudness_and_channel() -> None:
    front = LogMel(8000, bins=40)
    wave, length = noise(8000)[None], torch.tensor([8000])
    torch.testing.assert_close(
        front(wave, length)[0], front(0.1 * wave, length)[0], atol=1e-3, rtol=1e-3
    )


def test_global_normalisation_is_fitted_and_kept() -> None:
    front = LogMel(8000, bins=40, normalise="global")
    batches = [
        (torch.randn(3, 8000) * 0.1, torch.tensor([8000, 4000, 100])),
        (torch.randn(1, 8000) * 0.3, torch.tensor([8000])),
    ]
    front.fit(batches)
    frames = torch.cat([f[: int(c)] for w, n in batches for f, c in zip(*front(w, n), strict=True)])
    torch.testing.assert_close(frames.mean(0), torch.zeros(40), atol=1e-4, rtol=0)
    torch.testing.assert_close(frames.std(0), torch.ones(40), atol=1e-2, rtol=0)
    again = LogMel(8000, bins=40, normalise="global")
    again.load_state_dict(front.state_dict())
    assert torch.equal(again.mean, front.mean)
    with pytest.raises(ValueError, match="normalise='utterance'"):
        LogMel(8000).fit(batches)


def test_digital_silence_is_finite() -> None:
    for normalise in ("none", "utterance", "global"):
        frames, _ = LogMel(8000, normalise=normalise)(torch.zeros(1, 800), torch.tensor([800]))
        assert torch.isfinite(frames).all()


@pytest.mark.parametrize(
    ("arguments", "named"),
    [
        ({"bins": 0}, "bins=0"),
        ({"shift": 0.03}, "shift=0.03"),
        ({"normalise": "batch"}, "normalise='batch'"),
        ({"maximum_hz": 9000.0}, "maximum_hz=9000.0"),
    ],
)
def test_refuses(arguments: dict, named: str) -> None:
    with pytest.raises(ValueError, match=named):
        LogMel(16000, **arguments)
