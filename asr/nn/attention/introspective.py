"""A memory of the speller's own beside what it hears: a neural Turing machine."""

from __future__ import annotations

from typing import NamedTuple

import torch
from torch import Tensor, nn

from asr.nn.about import About
from asr.nn.attention.base import Attended, Attention, Memory, Mode, memory_mask
from asr.nn.attention.parts import AdditiveScore, at_least, mix, per_row
from asr.nn.masking import masked_softmax
from asr.types import Encoded


class Slots(NamedTuple):
    """content (N,M,D) of the M slots; read, write (N,M): where each head last was."""

    content: Tensor
    read: Tensor
    write: Tensor


class Head(nn.Module):
    """Where in memory to look (Graves et al. 2014, sect. 3.3): (N,controller) -> weights (N,M)."""

    def __init__(self, controller: int, width: int, shift: int) -> None:
        super().__init__()
        self.width, self.shift = width, shift
        # key; then its strength beta, gate g and sharpening gamma; then the shifts
        self.emit = nn.Linear(controller, width + 3 + 2 * shift + 1)

    def forward(self, controller: Tensor, content: Tensor, previous: Tensor) -> Tensor:
        """controller (N,X), content (N,M,D), previous (N,M) -> (N,M) float32, summing to one."""
        emitted = self.emit(controller).float()
        key, beta, gate, gamma, shifts = emitted.split(
            [self.width, 1, 1, 1, 2 * self.shift + 1], -1
        )
        return address(
            content,
            previous,
            key,
            nn.functional.softplus(beta),
            torch.sigmoid(gate),
            torch.softmax(shifts, -1),
            1 + nn.functional.softplus(gamma),
        )


def address(
    content: Tensor,
    previous: Tensor,
    key: Tensor,
    beta: Tensor,
    gate: Tensor,
    shifts: Tensor,
    gamma: Tensor,
) -> Tensor:
    """By content, then interpolated, shifted and sharpened (Graves et al. 2014, eq. 5-9).

    content (N,M,D), previous (N,M), key (N,D), beta >= 0, gate in [0,1] and gamma >= 1 (N,1),
    shifts (N,2R+1), a distribution over -R .. R slots -> (N,M).
    """
    likeness = nn.functional.cosine_similarity(content, key.unsqueeze(1), dim=-1)  # eq. 6
    by_content = torch.softmax(beta * likeness, -1)  # eq. 5
    focus = gate * by_content + (1 - gate) * previous  # eq. 7
    reach = shifts.shape[-1] // 2
    moved = torch.stack(
        [shifts[:, r + reach, None] * focus.roll(r, -1) for r in range(-reach, reach + 1)]
    ).sum(0)  # eq. 8, slots in a ring
    # eq. 9, w^gamma / sum w^gamma, by logarithms: a high power of small weights would be 0/0.
    return torch.softmax(gamma * moved.clamp_min(1e-20).log(), -1)


class Introspective(Attention):
    """Hears with an additive score, and reads and writes memory slots of its own.

    After hearing, one head writes to the slots (erase, then add: Graves et al. 2014, eq. 3-4) and
    another reads them (eq. 2), each addressed by content, interpolation gate, shift and sharpening
    (eq. 5-9) from the query and what was just heard. The context is what was heard beside what
    was read; the weights are those over glimpses, and terms ``read`` and ``write`` (N,M) are those
    over slots. Which content the slots begin with is learned; both heads begin at the first slot.

    Args:
        encoder_dim, query_dim: C, H.
        dim: K of the additive score.
        slots, width: of the memory, M x D.
        shift: how many slots a head can move either way in one step.
    """

    name = "memory"
    about = About(
        "w = sharpen(shift(g softmax(beta cos(k, M)) + (1 - g) w')), M = M' (1 - w e) + w a, "
        "r = sum_m w_m M_m, beside v · tanh(W s + V h_j + b) over glimpses",
        "Graves et al. 2014, eq. 2-9",
        looks_at="introspective",
    )

    def __init__(
        self,
        encoder_dim: int,
        query_dim: int,
        *,
        dim: int = 128,
        slots: int = 16,
        width: int = 32,
        shift: int = 1,
    ) -> None:
        super().__init__()
        at_least("slots", slots, 1)
        at_least("width", width, 1)
        if not 0 <= 2 * shift + 1 <= slots:
            raise ValueError(f"shift={shift}: needs 0 <= shift and 2 shift + 1 <= slots={slots}")
        self.context_dim = encoder_dim + width
        self.slots, self.width = slots, width
        self.score = AdditiveScore(encoder_dim, query_dim, dim)
        controller = query_dim + encoder_dim
        self.reader = Head(controller, width, shift)
        self.writer = Head(controller, width, shift)
        self.erase_and_add = nn.Linear(controller, 2 * width)
        self.initial = nn.Parameter(torch.randn(slots, width) * width**-0.5)

    def prepare(self, encoded: Encoded) -> Memory:
        return Memory(encoded.states, self.score.keys(encoded), memory_mask(encoded))

    def initial_state(self, memory: Memory, rows: int) -> Slots:
        focus = self.initial.new_zeros(rows, self.slots, dtype=torch.float32)
        focus[:, 0] = 1.0
        return Slots(self.initial.float().expand(rows, -1, -1), focus, focus)

    def step(
        self, query: Tensor, memory: Memory, state: Slots, *, mode: Mode
    ) -> tuple[Attended, Slots]:
        mask = per_row(memory.mask, len(query))
        weights = masked_softmax(self.score(query, memory.keys), mask).unsqueeze(1)
        heard = mix(weights, memory.values)
        controller = torch.cat([query, heard.to(query.dtype)], -1)
        with torch.autocast(query.device.type, enabled=False):
            controller = controller.to(self.erase_and_add.weight.dtype)
            write = self.writer(controller, state.content, state.write)
            erase, add = self.erase_and_add(controller).float().chunk(2, -1)
            at = write.unsqueeze(-1)
            kept = state.content * (1 - at * torch.sigmoid(erase).unsqueeze(1))
            content = kept + at * torch.tanh(add).unsqueeze(1)
            read = self.reader(controller, content, state.read)
            recalled = (read.unsqueeze(-1) * content).sum(1)
        context = torch.cat([heard, recalled.to(heard.dtype)], -1)
        terms = {"read": read, "write": write}
        return Attended(context, weights, terms), Slots(content, read, write)
