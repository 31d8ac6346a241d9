"""A learned filterbank over the waveform itself."""

from __future__ import annotations

import math
from typing import Literal

import librosa
import torch
from torch import Tensor, nn

from asr.glimpses.base import Frontend
from asr.glimpses.normalise import over_utterance
from asr.glimpses.timing import cells
from asr.nn.masking import length_mask

#: the widths of the narrowest filter that lie between the moments at which energies are taken, at
#: most: what those would miss of the energies' changes is 30 dB down, and pooled away besides
_STEP = 1.7
#: the standard deviation of the square of a Hann window of one second
_SPREAD = 0.1414


class Filterbank(Frontend):
    """log((|x * g_n|^2 * p_n)(t)): complex Gabor filters, each with a Gaussian that pools energy.

    g_n(s) = w(s) exp(-s^2 / (2 sigma_n^2)) exp(2 pi i f_n s) (Zeghidour et al. 2018, eq. 4-5), of
    which only centre f_n and width sigma_n are learned, and so is the width of the pooling p_n
    (Zeghidour et al. 2021, eq. 2-5): three numbers a filter, in logarithms, so that a step of the
    optimiser is a share of each. It begins as the mel filterbank of
    :class:`~asr.glimpses.logmel.LogMel`: |spectrum of g_n|^2 falls to half where the triangle of a
    mel filter does, and p_n is as wide as the square of its Hann window.

    Deviations: energies are taken only as often as the widest band needs (every 1.25 ms for 80
    bins at 16 kHz), not at every sample; filters taper to nothing within the window w, Hann's;
    compression is the logarithm with a floor, as of log-mel.

    Frame t is centred on its cell, and sound outside the utterance counts as silence.

    Args:
        sample_rate: Hz.
        bins: F.
        window, shift: seconds; how far a filter and its pooling reach, and between frames.
        minimum_hz, maximum_hz: edges of the mel filterbank that it begins as; 0 for
            ``maximum_hz`` is half the rate.
        normalise: ``utterance`` takes each bin's mean over the real frames away and divides by
            one standard deviation common to all bins.
        floor_db: energies below this many dB under those of a full-scale sine are cut.
    """

    name = "filterbank"
    hann: Tensor

    def __init__(
        self,
        sample_rate: int,
        *,
        bins: int = 80,
        window: float = 0.025,
        shift: float = 0.010,
        minimum_hz: float = 20.0,
        maximum_hz: float = 0.0,
        normalise: Literal["none", "utterance"] = "utterance",
        floor_db: float = -100.0,
    ) -> None:
        super().__init__()
        if bins < 1:
            raise ValueError(f"bins={bins}: at least 1 is needed")
        if not 0 < shift <= window:
            raise ValueError(f"shift={shift}: needs 0 < shift <= window ({window})")
        if normalise not in ("none", "utterance"):
            raise ValueError(f"normalise={normalise!r}: valid are none, utterance")
        maximum_hz = maximum_hz or sample_rate / 2
        if not 0 < minimum_hz < maximum_hz <= sample_rate / 2:
            raise ValueError(
                f"minimum_hz={minimum_hz}, maximum_hz={maximum_hz}: "
                f"need 0 < minimum < maximum <= {sample_rate / 2}"
            )
        self.sample_rate = sample_rate
        self.dim = bins
        self.hop = round(shift * sample_rate)
        self.normalise = normalise
        self.floor = 10.0 ** (floor_db / 10)
        edges = torch.from_numpy(
            librosa.mel_frequencies(bins + 2, fmin=minimum_hz, fmax=maximum_hz)
        ).float()
        half_height = (edges[2:] - edges[:-2]) / 2
        widths = math.sqrt(math.log(2)) / math.pi / half_height
        # Frames fall on moments of the finer grid, so its step divides the hop.
        most = int(_STEP * float(widths.min()) * sample_rate)
        self.step = next(
            n for n in range(self.hop, 0, -1) if self.hop % n == 0 and n <= max(1, most)
        )
        #: samples and moments to either side that a filter and its pooling reach
        self.radius = round(window * sample_rate / 2)
        self.around = round(window * sample_rate / 2 / self.step)
        self.centre = nn.Parameter(edges[1:-1].log())  # log Hz
        self.width = nn.Parameter(widths.log())  # log s
        self.pooling = nn.Parameter(torch.full((bins,), math.log(_SPREAD * window)))  # log s
        hann = torch.hann_window(2 * self.radius + 1, periodic=False)
        self.register_buffer("hann", hann, persistent=False)

    def filters(self) -> Tensor:
        """(2F,1,K): real parts, then imaginary ones; a sine at its centre has the energy 1."""
        times = _moments(self.radius, 1 / self.sample_rate, self.hann)
        widths = self.width.exp().clamp_min(1 / self.sample_rate).unsqueeze(1)
        centres = self.centre.exp().clamp_max(self.sample_rate / 2).unsqueeze(1)
        envelope = torch.exp(-0.5 * (times / widths).square()) * self.hann
        envelope = 2 * envelope / envelope.sum(1, keepdim=True)
        phase = 2 * math.pi * centres * times
        return torch.cat([envelope * phase.cos(), envelope * phase.sin()]).unsqueeze(1)

    def frames(self, waves: Tensor, lengths: Tensor) -> tuple[Tensor, Tensor]:
        """The log energies themselves, before normalisation: (B,T,F), (B,)."""
        waves = waves.float() * length_mask(lengths, waves.shape[-1])
        count = int(cells(waves.shape[-1], self.hop))
        if count == 0:
            return waves.new_zeros(waves.shape[0], 0, self.dim), cells(lengths, self.hop)
        # The first moment that the first frame pools, and the last that the last one does.
        left = self.around * self.step + self.radius - self.hop // 2
        reach = (count - 1) * self.hop + 2 * (self.around * self.step + self.radius) + 1
        padded = nn.functional.pad(waves, (max(0, left), max(0, reach - left - waves.shape[-1])))
        # No autocast: half precision has too little range for energies.
        with torch.autocast(waves.device.type, enabled=False):
            parts = nn.functional.conv1d(padded.unsqueeze(1), self.filters(), stride=self.step)
            energies = parts.unflatten(1, (2, self.dim)).square().sum(1)
            times = _moments(self.around, self.step / self.sample_rate, self.hann)
            widths = self.pooling.exp().clamp_min(self.step / self.sample_rate / 2).unsqueeze(1)
            pool = torch.exp(-0.5 * (times / widths).square())
            pool = (pool / pool.sum(1, keepdim=True)).unsqueeze(1)
            pooled = nn.functional.conv1d(
                energies, pool, stride=self.hop // self.step, groups=self.dim
            )
            frames = pooled[..., :count].transpose(1, 2)
            return frames.clamp_min(self.floor).log(), cells(lengths, self.hop)

    def forward(self, waves: Tensor, lengths: Tensor) -> tuple[Tensor, Tensor]:
        frames, lengths = self.frames(waves, lengths)
        if self.normalise == "utterance":
            return over_utterance(frames, lengths), lengths
        return frames * length_mask(lengths, frames.shape[1]).unsqueeze(-1), lengths


def _moments(around: int, apart: float, like: Tensor) -> Tensor:
    """(2 around + 1,) seconds from the middle."""
    return torch.arange(-around, around + 1, device=like.device) * apart
