"""Log-mel glimpses on tensors."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Literal

import torch
import torchaudio
from torch import Tensor, nn

from asr.glimpses.base import Frontend
from asr.glimpses.normalise import over_utterance
from asr.glimpses.timing import cells
from asr.nn.masking import length_mask

Normalisation = Literal["none", "utterance", "global"]


class LogMel(Frontend):
    """Log-mel filterbank energies: Hann windows of 25 ms every 10 ms, Slaney-style mel scale.

    The filters and the power spectrum are librosa's (``htk=False, norm="slaney"``), so each
    figure can be checked there. Frame t is centred on its cell: its window spans ``win`` samples
    around ``(t + 1/2) hop``, and sound outside the utterance counts as silence, whoever else is
    in the batch.

    Args:
        sample_rate: Hz.
        bins: F.
        window, shift: seconds.
        minimum_hz, maximum_hz: edges of the filterbank; 0 for ``maximum_hz`` is half the rate.
        normalise: ``utterance`` takes each bin's mean over the real frames away and divides by
            one standard deviation common to all bins; ``global`` uses the buffers ``mean`` and
            ``deviation`` (F,), which are measured on training data and kept in the bundle.
        floor_db: energies below this many dB under full scale are cut, so that digital silence
            is a number like any other.
    """

    name = "log_mel"
    filters: Tensor
    hann: Tensor
    mean: Tensor
    deviation: Tensor

    def __init__(
        self,
        sample_rate: int,
        *,
        bins: int = 80,
        window: float = 0.025,
        shift: float = 0.010,
        minimum_hz: float = 20.0,
        maximum_hz: float = 0.0,
        normalise: Normalisation = "utterance",
        floor_db: float = -100.0,
    ) -> None:
        super().__init__()
        if bins < 1:
            raise ValueError(f"bins={bins}: at least 1 is needed")
        if not 0 < shift <= window:
            raise ValueError(f"shift={shift}: needs 0 < shift <= window ({window})")
        if normalise not in ("none", "utterance", "global"):
            raise ValueError(f"normalise={normalise!r}: valid are none, utterance, global")
        maximum_hz = maximum_hz or sample_rate / 2
        if not 0 <= minimum_hz < maximum_hz <= sample_rate / 2:
            raise ValueError(
                f"minimum_hz={minimum_hz}, maximum_hz={maximum_hz}: "
                f"need 0 <= minimum < maximum <= {sample_rate / 2}"
            )
        self.sample_rate = sample_rate
        self.dim = bins
        self.hop = round(shift * sample_rate)
        self.win = round(window * sample_rate)
        # Twice the window: narrow low filters of a low rate would fall between bins otherwise.
        self.n_fft = 1 << (2 * self.win - 1).bit_length()
        self.normalise = normalise
        self.floor = 10.0 ** (floor_db / 10)
        filters = torchaudio.functional.melscale_fbanks(
            self.n_fft // 2 + 1, minimum_hz, maximum_hz, bins, sample_rate, "slaney", "slaney"
        )
        self.register_buffer("filters", filters, persistent=False)
        self.register_buffer("hann", torch.hann_window(self.win), persistent=False)
        if normalise == "global":
            self.register_buffer("mean", torch.zeros(bins))
            self.register_buffer("deviation", torch.ones(bins))

    def frames(self, waves: Tensor, lengths: Tensor) -> tuple[Tensor, Tensor]:
        """The log-mel energies themselves (natural log), before normalisation: (B,T,F), (B,)."""
        waves = waves.float() * length_mask(lengths, waves.shape[-1])
        count = int(cells(waves.shape[-1], self.hop))
        left = (self.n_fft - self.hop) // 2
        right = count * self.hop - waves.shape[-1] + self.n_fft - self.hop - left
        if count == 0:
            return waves.new_zeros(waves.shape[0], 0, self.dim), cells(lengths, self.hop)
        padded = nn.functional.pad(waves, (left, right))
        # No autocast: half precision has no FFT on most devices and too little range for power.
        with torch.autocast(waves.device.type, enabled=False):
            spectrum = torch.stft(
                padded,
                self.n_fft,
                self.hop,
                self.win,
                self.hann,
                center=False,
                return_complex=True,
            )
            # Not a sum over a last axis of two: that is an order of magnitude slower on a CPU.
            power = spectrum.real.square() + spectrum.imag.square()
            mel = power.transpose(1, 2) @ self.filters
            return mel.clamp_min(self.floor).log(), cells(lengths, self.hop)

    def forward(self, waves: Tensor, lengths: Tensor) -> tuple[Tensor, Tensor]:
        frames, lengths = self.frames(waves, lengths)
        if self.normalise == "utterance":
            return over_utterance(frames, lengths), lengths
        if self.normalise == "global":
            frames = (frames - self.mean) / self.deviation
        return frames * length_mask(lengths, frames.shape[1]).unsqueeze(-1), lengths

    @torch.no_grad()
    def fit(self, batches: Iterable[tuple[Tensor, Tensor]]) -> None:
        """Measure ``mean`` and ``deviation`` over an iterable of (waves (B,L), lengths (B,))."""
        if self.normalise != "global":
            raise ValueError(f"normalise={self.normalise!r}: only 'global' has anything to fit")
        count, total = 0, torch.zeros(self.dim, dtype=torch.float64)
        squares = torch.zeros_like(total)
        for waves, lengths in batches:
            frames, real = self.frames(waves, lengths)
            kept = frames[length_mask(real, frames.shape[1])].double()
            count, total = count + len(kept), total + kept.sum(0)
            squares = squares + kept.square().sum(0)
        if count == 0:
            raise ValueError("batches: there is no frame to measure")
        mean = total / count
        self.mean.copy_(mean)
        self.deviation.copy_((squares / count - mean.square()).clamp_min(1e-4).sqrt())
