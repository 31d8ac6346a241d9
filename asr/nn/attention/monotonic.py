"""Hard monotonic attention, and a soft window before each stop."""

from __future__ import annotations

from typing import NamedTuple

import torch
from torch import Tensor, nn

from asr.nn.about import About
from asr.nn.attention.base import Attended, Attention, Memory, Mode, memory_mask
from asr.nn.attention.parts import AdditiveScore, at_least, mix, per_row, windows
from asr.nn.masking import masked_softmax
from asr.types import Encoded


class Stops(NamedTuple):
    """place (N,S): where the row stands, one-hot; in training the probability of each frame."""

    place: Tensor


class Monotonic(Attention):
    """Reads from left to right and stops at a frame for each token (Raffel et al. 2017).

    Each frame from the last stop on is stopped at with probability p = sigmoid(e), with
    e = g v/|v| · tanh(W s + V h_j + b) + r (their eq. 16). Training mixes glimpses by the
    probability that the token stops there (eq. 9-10; see :func:`expected_stops`), with noise on e
    that drives p to 0 or 1. Transcribing stops at the first frame where e > 0.

    A token for which there is no such frame hears nothing (rows of weights may sum to less than
    one), and the next one looks on from where the last stop was. The paper leaves that open; where
    such a token ends all hearing instead, as if it had walked past the end, one undecided letter
    silences the rest of the utterance. Training expects the same (:func:`expected_place`).

    Args:
        encoder_dim, query_dim: C, H.
        dim: K.
        offset: r when training begins; the more frames a token has, the lower.
        noise: standard deviation of the noise on e, in training.
    """

    name = "monotonic"
    about = About(
        "the first j past the last stop with p_j > 1/2, p_j = sigmoid(g v/|v| · tanh(W s + V h_j "
        "+ b) + r); training: a_ij = p_ij ((1 - p_i,j-1) a_i,j-1 / p_i,j-1 + a_i-1,j)",
        "Raffel et al. 2017, eq. 9-16",
        kind="hard",
        looks_at="content+location",
    )
    normalised = False

    def __init__(
        self,
        encoder_dim: int,
        query_dim: int,
        *,
        dim: int = 128,
        offset: float = -2.0,
        noise: float = 1.0,
    ) -> None:
        super().__init__()
        at_least("noise", noise, 0)
        self.context_dim = encoder_dim
        self.noise = noise
        self.score = AdditiveScore(encoder_dim, query_dim, dim)
        # g = rms sqrt(K): the root mean square of a vector of length g. Adam moves every parameter
        # about as far in a step, so that g grows as fast as the length of a free v; learned itself,
        # it stays too small for a thousand steps for any frame to be surely stopped at.
        self.rms = nn.Parameter(torch.tensor(1 / dim))
        self.offset = nn.Parameter(torch.tensor(float(offset)))

    def prepare(self, encoded: Encoded) -> Memory:
        return Memory(encoded.states, self.score.keys(encoded), memory_mask(encoded))

    def initial_state(self, memory: Memory, rows: int) -> Stops:
        # Before the first token one stands at the first frame (eq. 8).
        size = memory.mask.shape[1]
        start = memory.values.new_zeros(rows, size, dtype=torch.float32)
        start[:, :1] = 1.0
        return Stops(start)

    def step(
        self, query: Tensor, memory: Memory, state: Stops, *, mode: Mode
    ) -> tuple[Attended, Stops]:
        stops, place = self.stops(query, memory, state.place, mode)
        weights = stops.unsqueeze(1)
        return Attended(mix(weights, memory.values), weights), Stops(place)

    def stops(
        self, query: Tensor, memory: Memory, place: Tensor, mode: Mode
    ) -> tuple[Tensor, Tensor]:
        """The probability of stopping at each frame (one or none when transcribing), and of
        standing there afterwards, both (N,S)."""
        mask = per_row(memory.mask, len(query))
        direction = self.score.energy.weight.float()
        gain = self.rms.float() * direction.numel() ** 0.5
        scale = gain / direction.norm().clamp(min=1e-12)
        scores = self.score(query, memory.keys) * scale + self.offset.float()
        if mode == "decode":
            stops = first_stop((scores > 0) & mask, place)
            return stops, torch.where(stops.any(-1, keepdim=True), stops, place)
        if self.noise:
            scores = scores + self.noise * torch.randn_like(scores)
        stops = expected_stops(scores, place) * mask
        return stops, expected_place(scores, mask, place, stops)


class MoChunk(Monotonic):
    """MoChA: soft attention over the ``width`` frames up to each stop (Chiu & Raffel 2018).

    Where to stop is as in :class:`Monotonic`; a second additive score u spreads each stop over its
    chunk (their eq. 10-11), in training each frame's probability of being the stop (eq. 18-19).

    Args:
        encoder_dim, query_dim: C, H.
        dim: K of both scores.
        width: w, frames of a chunk; the stop is its last one.
        offset, noise: as in :class:`Monotonic`.
    """

    name = "mochunk"
    about = About(
        "softmax(v · tanh(W s + V h_j + b)) over the w frames up to a monotonic stop",
        "Chiu & Raffel 2018, eq. 10-19",
        reach="local",
        looks_at="content+location",
    )

    def __init__(
        self,
        encoder_dim: int,
        query_dim: int,
        *,
        dim: int = 128,
        width: int = 4,
        offset: float = -2.0,
        noise: float = 1.0,
    ) -> None:
        super().__init__(encoder_dim, query_dim, dim=dim, offset=offset, noise=noise)
        at_least("width", width, 1)
        self.width, self.dim = width, dim
        self.chunk = AdditiveScore(encoder_dim, query_dim, dim)

    def prepare(self, encoded: Encoded) -> Memory:
        keys = torch.cat([self.score.keys(encoded), self.chunk.keys(encoded)], -1)
        return Memory(encoded.states, keys, memory_mask(encoded))

    def step(
        self, query: Tensor, memory: Memory, state: Stops, *, mode: Mode
    ) -> tuple[Attended, Stops]:
        for_stop, for_chunk = memory.keys.split(self.dim, -1)
        stops, place = self.stops(query, memory._replace(keys=for_stop), state.place, mode)
        within = spread(stops, self.chunk(query, for_chunk), self.width)
        weights = within.unsqueeze(1)
        return Attended(mix(weights, memory.values), weights), Stops(place)


def expected_stops(scores: Tensor, place: Tensor) -> Tensor:
    """The probability that a token stops at each frame (Raffel et al. 2017, eq. 9-10).

    scores (N,S) before the sigmoid, place (N,S) the probability of standing at each frame before
    it -> (N,S). With q_j the probability of arriving at frame j, a_j = p_j q_j and
    q_j = (1 - p_{j-1}) q_{j-1} + place_j.

    The closed form divides by a product of 1 - p, which is 0 in float32 after some dozen frames,
    and its logarithm loses the digits that matter. So the recurrence is solved by doubling:
    everything stays in [0, 1] and is exact for any length, in log2(S) passes over all frames.
    """
    passed = torch.sigmoid(-scores)  # 1 - p, without cancellation
    arrived = linear_scan(nn.functional.pad(passed, (1, -1)) if scores.shape[-1] else passed, place)
    return torch.sigmoid(scores) * arrived


def expected_place(scores: Tensor, mask: Tensor, place: Tensor, stops: Tensor) -> Tensor:
    """Where a row stands after a token: where that stopped, or where it was if it stopped nowhere.

    scores, mask (True on real frames), place before and stops, all (N,S) -> (N,S), which has the
    sum of ``place``. A row at frame j passes all frames with probability prod_{k >= j} (1 - p_k).
    """
    passed = nn.functional.logsigmoid(-scores) * mask
    passed_all = passed.flip(-1).cumsum(-1).flip(-1).exp()
    return stops + place * passed_all


def linear_scan(decay: Tensor, inputs: Tensor) -> Tensor:
    """y_j = decay_j y_{j-1} + inputs_j over the last axis, y before the first 0, by doubling.

    After the pass of stride d, ``inputs`` holds what the last 2d frames contribute and ``decay``
    the product over them (Hillis & Steele 1986).
    """
    stride, size = 1, inputs.shape[-1]
    while stride < size:
        back = (stride, -stride)
        inputs = inputs + decay * nn.functional.pad(inputs, back)
        decay = decay * nn.functional.pad(decay, back)
        stride *= 2
    return inputs


def first_stop(chosen: Tensor, place: Tensor) -> Tensor:
    """chosen (N,S) bool, place (N,S) one-hot -> (N,S) one-hot, or all 0 for no stop."""
    allowed = chosen & (place.cumsum(-1) > 0.5)
    return (allowed & (allowed.cumsum(-1) == 1)).float()


def spread(stops: Tensor, scores: Tensor, width: int) -> Tensor:
    """stops (N,S), each shared out over the ``width`` frames up to it by softmax of scores (N,S).

    Chiu & Raffel 2018, eq. 18. A softmax of each window by itself: with one maximum for all of
    them, a window of low scores would be 0/0.
    """
    size = stops.shape[-1]
    there = windows(torch.ones_like(stops), width - 1, 0) > 0.5
    shares = masked_softmax(windows(scores, width - 1, 0), there) * stops.unsqueeze(-1)
    # Column m of the window that ends at frame k is frame k - (width - 1) + m.
    moved = [nn.functional.pad(shares[..., m], (m, width - 1 - m)) for m in range(width)]
    return torch.stack(moved).sum(0)[:, width - 1 : width - 1 + size]
