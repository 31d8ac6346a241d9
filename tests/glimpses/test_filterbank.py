"""The learned filterbank against a plain loop, its beginning, and that it learns."""

from __future__ import annotations

import cmath
import math

import pytest
import torch

from asr.glimpses import Filterbank, LogMel


@torch.no_grad()
def test_equals_a_loop() -> None:
    """Gabor filters at each moment, energies pooled over moments, the logarithm: in float64."""
    rate, bins = 8000, 6
    front = Filterbank(rate, bins=bins, normalise="none")
    front.centre += 0.1 * torch.rand(bins)  # not as it begins
    front.width -= 0.3 * torch.rand(bins)
    front.pooling += 0.3 * torch.rand(bins)
    wave = (0.1 * torch.randn(500, generator=torch.Generator().manual_seed(3))).double()
    got = front(wave[None].float(), torch.tensor([500]))[0][0]
    step, half, around = 2, 100, 50  # samples, samples, moments; 12.5 ms to either side
    assert (front.step, front.radius, front.around) == (step, half, around)
    sound = {index: float(x) for index, x in enumerate(wave)}
    for n in range(bins):
        centre, width, pooling = (
            math.exp(float(p[n])) for p in (front.centre, front.width, front.pooling)
        )
        envelope = {
            s: math.exp(-((s / rate / width) ** 2) / 2) * math.cos(math.pi * s / (2 * half)) ** 2
            for s in range(-half, half + 1)
        }
        total = sum(envelope.values())
        for frame in (0, 3, 6):
            energy = weight = 0.0
            for m in range(-around, around + 1):
                middle = frame * 80 + 40 + m * step
                response = sum(
                    sound.get(middle + s, 0.0) * e * cmath.exp(-2j * math.pi * centre * s / rate)
                    for s, e in envelope.items()
                )
                pool = math.exp(-((m * step / rate / pooling) ** 2) / 2)
                energy += pool * abs(2 * response / total) ** 2
                weight += pool
            assert float(got[frame, n]) == pytest.approx(math.log(energy / weight), abs=1e-3)


@pytest.mark.parametrize(("rate", "bins"), [(8000, 64), (16000, 80)])
def test_it_begins_as_log_mel(rate: int, bins: int) -> None:
    """A gliding tone in noise: nearly the same picture."""
    times = torch.arange(rate) / rate
    tone = torch.sin(2 * math.pi * (200 * times + 0.2 * rate * times.square()))
    noise = 0.02 * torch.randn(rate, generator=torch.Generator().manual_seed(1))
    sound = (tone + noise)[None], torch.tensor([rate])
    learned, fixed = (kind(rate, bins=bins)(*sound)[0] for kind in (Filterbank, LogMel))
    pair = torch.stack([learned.detach().flatten(), fixed.flatten()])
    assert torch.corrcoef(pair)[0, 1] > 0.98
    assert (learned.argmax(-1) - fixed.argmax(-1)).abs().float().mean() < 1


def test_a_sine_sounds_in_its_own_filter_at_full_scale() -> None:
    front = Filterbank(8000, bins=30, normalise="none")
    for n in (4, 15, 28):
        hertz = float(front.centre[n].detach().exp())
        wave = torch.sin(2 * math.pi * hertz * torch.arange(8000) / 8000)
        frame = front(wave[None], torch.tensor([8000]))[0][0, 50].detach()
        assert int(frame.argmax()) == n
        assert float(frame[n]) == pytest.approx(0.0, abs=0.02)  # the logarithm of 1


def test_it_learns_where_a_tone_is() -> None:
    """One filter, started beside a tone, moves to it when told to be loud."""
    front = Filterbank(8000, bins=1, minimum_hz=600.0, maximum_hz=1400.0, normalise="none")
    with torch.no_grad():
        front.centre.fill_(math.log(900.0))
    wave = torch.sin(2 * math.pi * 1000 * torch.arange(2400) / 8000)[None], torch.tensor([2400])
    for _ in range(12):
        loss = front(*wave)[0][0, 5:25].square().mean()  # full scale is the logarithm of 1
        for parameter, gradient in zip(
            front.parameters(),
            torch.autograd.grad(loss, list(front.parameters())),
            strict=True,
        ):
            parameter.data -= 0.02 * gradient.sign()
    assert abs(float(front.centre.detach().exp()) - 1000) < 40


def test_the_grid_of_moments_divides_the_hop() -> None:
    steps = {rate: Filterbank(rate, bins=80).step for rate in (8000, 11025, 16000, 22050, 44100)}
    assert steps == {8000: 20, 11025: 22, 16000: 20, 22050: 22, 44100: 9}
    assert Filterbank(8000, bins=8, shift=101 / 8000, window=0.03).step == 1  # a prime
