"""Location-aware attention, the default."""

from __future__ import annotations

from typing import Literal, NamedTuple

import torch
from torch import Tensor, nn

from asr.nn.about import About
from asr.nn.attention.base import Attended, Attention, Memory, Mode, memory_mask
from asr.nn.attention.parts import additive_energies, located, mix
from asr.nn.masking import masked_softmax
from asr.types import Encoded


class LocationState(NamedTuple):
    """previous (N,S): the vector before this token; total (N,S): the sum of all before it."""

    previous: Tensor
    total: Tensor


class LocationAware(Attention):
    """score = v · tanh(W s + V h_j + U f_j + b), f = F * a_{i-1} (Chorowski et al. 2015, eq. 8-9).

    Args:
        encoder_dim, query_dim: C, H.
        dim: K.
        channels, kernel: of the convolution F over the earlier attention; ``kernel`` is odd, in
            encoder frames.
        convolve: what F sees: the ``previous`` vector, or the ``accumulated`` sum of all earlier
            ones, or ``both``, each with filters of its own.
        sharpening: beta, which multiplies the scores before the softmax (sect. 2.3, eq. 10).
        smoothing: sigmoid in place of exp in the softmax (sect. 2.3, eq. 11).
        window: when above 0, only frames within this many of the median of the previous vector
            are looked at (sect. 2.2). Only when decoding: an alignment that has not formed yet
            has no median worth following.
    """

    name = "location_aware"
    about = About(
        "v · tanh(W s + V h_j + U f_j + b), f = F * a_{i-1}",
        "Chorowski et al. 2015, eq. 8-11",
        looks_at="content+location",
    )

    def __init__(
        self,
        encoder_dim: int,
        query_dim: int,
        *,
        dim: int = 128,
        channels: int = 10,
        kernel: int = 31,
        convolve: Literal["previous", "accumulated", "both"] = "both",
        sharpening: float = 1.0,
        smoothing: bool = False,
        window: int = 0,
    ) -> None:
        super().__init__()
        for key, value in (("dim", dim), ("channels", channels)):
            if value < 1:
                raise ValueError(f"{key}={value}: at least 1 is needed")
        if kernel < 1 or kernel % 2 == 0:
            raise ValueError(f"kernel={kernel}: must be odd, so that a frame is its centre")
        if convolve not in ("previous", "accumulated", "both"):
            raise ValueError(f"convolve={convolve!r}: valid are previous, accumulated, both")
        if not sharpening > 0:
            raise ValueError(f"sharpening={sharpening}: must be above 0")
        if window < 0:
            raise ValueError(f"window={window}: at least 0 is needed")
        self.context_dim = encoder_dim
        self.convolve, self.kernel = convolve, kernel
        self.sharpening, self.smoothing, self.window = sharpening, smoothing, window
        self.query = nn.Linear(query_dim, dim, bias=False)
        self.key = nn.Linear(encoder_dim, dim)
        self.energy = nn.Linear(dim, 1, bias=False)
        inputs = 2 if convolve == "both" else 1
        self.filters = nn.Parameter(torch.empty(inputs * kernel, channels))
        self.location = nn.Linear(channels, dim, bias=False)
        nn.init.uniform_(self.filters, -((inputs * kernel) ** -0.5), (inputs * kernel) ** -0.5)

    def prepare(self, encoded: Encoded) -> Memory:
        return Memory(encoded.states, self.key(encoded.states), memory_mask(encoded))

    def initial_state(self, memory: Memory, rows: int) -> LocationState:
        nothing = memory.values.new_zeros(rows, memory.mask.shape[1], dtype=torch.float32)
        return LocationState(nothing, nothing)

    def step(
        self, query: Tensor, memory: Memory, state: LocationState, *, mode: Mode
    ) -> tuple[Attended, LocationState]:
        batch, size, _ = memory.keys.shape
        share = len(query) // batch
        energies = additive_energies(
            self.query(query),
            memory.keys,
            self.energy.weight,
            *self._location(state),
        )
        energies = energies.view(batch, share, size) * self.sharpening
        mask = memory.mask.unsqueeze(1)
        if self.window and mode == "decode":
            mask = mask & self._near(state.previous).view(batch, share, size)
        if self.smoothing:
            raw = torch.sigmoid(energies) * mask
            weights = raw / raw.sum(-1, keepdim=True).clamp_min(torch.finfo(raw.dtype).tiny)
        else:
            weights = masked_softmax(energies, mask)
        weights = weights.view(len(query), size)
        attended = Attended(mix(weights.unsqueeze(1), memory.values), weights.unsqueeze(1))
        return attended, LocationState(weights, state.total + weights)

    def _location(self, state: LocationState) -> tuple[Tensor, Tensor | None]:
        """F * a, and U to extend it with."""
        around = {
            "previous": (state.previous,),
            "accumulated": (state.total,),
            "both": (state.previous, state.total),
        }[self.convolve]
        vectors = [vector.unsqueeze(1) for vector in around]
        return located(vectors, self.filters.unsqueeze(0), self.location.weight.t().unsqueeze(0))

    def _near(self, previous: Tensor) -> Tensor:
        """(N,S) True within ``window`` frames of the median of ``previous``; at first of 0."""
        # Half of the mass itself, not one half: the first vector is all zeros.
        running = previous.cumsum(-1)
        median = (running < 0.5 * running[:, -1:]).sum(-1, keepdim=True)
        frames = torch.arange(previous.shape[-1], device=previous.device)
        return (frames - median).abs() <= self.window
