"""Models small enough that every text they could write can be listed."""

from __future__ import annotations

import itertools
from typing import Any, NamedTuple

import torch
from torch import Tensor, nn

from asr.nn.attention.base import Attended, Attention, Memory, memory_mask
from asr.nn.decoders.base import Spelled, Speller, SpellerStep
from asr.nn.masking import masked_softmax
from asr.text import EOS
from asr.types import Encoded


class Past(NamedTuple):
    """heard (N,S): all weights so far; written (N,): a hash of the tokens so far."""

    heard: Tensor
    written: Tensor


class TinyState(NamedTuple):
    hidden: Tensor  # (N,H)
    attention: Past


class TinyAttention(Attention):
    """Weights that depend on everything their own hypothesis wrote and heard before."""

    def __init__(self, encoder_dim: int, query_dim: int) -> None:
        super().__init__()
        self.context_dim = encoder_dim
        self.query = nn.Linear(query_dim, encoder_dim)

    def prepare(self, encoded: Encoded) -> Memory:
        return Memory(encoded.states, encoded.states, memory_mask(encoded))

    def initial_state(self, memory: Memory, rows: int) -> Past:
        nothing = memory.values.new_zeros(rows, memory.mask.shape[1])
        return Past(nothing, nothing.new_zeros(rows, dtype=torch.long))

    def step(self, query: Tensor, memory: Memory, state: Any, *, mode: str) -> tuple[Attended, Any]:
        utterances, frames = memory.mask.shape
        grouped = self.query(query).view(utterances, -1, self.context_dim)
        scores = grouped @ memory.keys.transpose(1, 2) - state.heard.view(utterances, -1, frames)
        weights = masked_softmax(3 * scores, memory.mask.unsqueeze(1))
        context = (weights @ memory.values).flatten(0, 1)
        flat = weights.flatten(0, 1)
        terms = {"written": state.written}
        return Attended(context, flat.unsqueeze(1), terms), state._replace(heard=state.heard + flat)


class TinySpeller(Speller):
    """A one-layer recurrent speller; ``calls`` counts the rows of each step."""

    def __init__(self, vocabulary: int, dim: int = 5, *, scale: float = 2.0) -> None:
        super().__init__()
        self.attention = TinyAttention(dim, dim)
        self.embed = nn.Embedding(vocabulary, dim)
        self.cell = nn.GRUCell(2 * dim, dim)
        self.out = nn.Linear(2 * dim, vocabulary)
        self.scale = scale
        self.calls: list[int] = []

    def start(self, encoded: Encoded, rows: int) -> tuple[Memory, TinyState]:
        memory = self.attention.prepare(encoded)
        hidden = memory.values.new_zeros(rows, self.cell.hidden_size)
        return memory, TinyState(hidden, self.attention.initial_state(memory, rows))

    def step(self, previous: Tensor, memory: Memory, state: Any) -> SpellerStep:
        self.calls.append(len(previous))
        past = state.attention
        past = past._replace(written=past.written * 31 + previous + 1)
        attended, past = self.attention.step(state.hidden, memory, past, mode="decode")
        hidden = self.cell(torch.cat([self.embed(previous), attended.context], -1), state.hidden)
        logits = self.scale * self.out(torch.cat([hidden, attended.context], -1))
        return SpellerStep(logits, attended.weights, TinyState(hidden, past), attended.terms)

    def forward(self, encoded: Encoded, targets: Tensor, lengths: Tensor, *, sampling: float = 0.0):
        memory, state = self.start(encoded, len(targets))
        steps = []
        for previous in targets.unbind(1):
            steps.append(self.step(previous, memory, state))
            state = steps[-1].state
        return Spelled(
            torch.stack([s.logits for s in steps], 1), torch.stack([s.weights for s in steps], 1)
        )


class TinyModel(nn.Module):
    """What search needs of a whole model; ctc=False leaves the CTC head out."""

    def __init__(
        self, vocabulary: int = 5, dim: int = 5, *, ctc: bool = True, scale: float = 2.0, seed=0
    ) -> None:
        super().__init__()
        torch.manual_seed(seed)
        self.vocabulary_size = vocabulary
        self.speller = TinySpeller(vocabulary, dim, scale=scale)
        self.ctc = nn.Linear(dim, vocabulary) if ctc else None

    def ctc_log_probs(self, encoded: Encoded) -> Tensor:
        return torch.log_softmax(2 * self.ctc(encoded.states), -1)


def encoded_of(*lengths: int, dim: int = 5, seed: int = 1, size: int | None = None) -> Encoded:
    """Random states; padding is filled with large numbers that must not matter."""
    generator = torch.Generator().manual_seed(seed)
    states = [torch.randn(n, dim, generator=generator) for n in lengths]
    padded = torch.full((len(lengths), max(lengths) if size is None else size, dim), 7.0)
    for row, own in zip(padded, states, strict=True):
        row[: len(own)] = own
    return Encoded(padded, torch.tensor(lengths))


def one_of(encoded: Encoded, index: int) -> Encoded:
    """One utterance alone, without padding."""
    n = int(encoded.lengths[index])
    return Encoded(encoded.states[index : index + 1, :n], encoded.lengths[index : index + 1])


def texts(tokens: range, longest: int):
    """Every sequence of the tokens up to a length, shortest first."""
    for length in range(longest + 1):
        yield from itertools.product(tokens, repeat=length)


@torch.no_grad()
def spelled(model: TinyModel, encoded: Encoded, text: tuple[int, ...]) -> tuple[Tensor, Tensor]:
    """log-probabilities (U+1,) of a text and <eos>, and weights (U+1,A,S), for one utterance."""
    inputs = torch.tensor([[EOS, *text]])
    out = model.speller(encoded, inputs, torch.tensor([len(text) + 1]))
    log_probs = out.logits.log_softmax(-1)[0]
    return log_probs.gather(1, torch.tensor([*text, EOS]).unsqueeze(1))[:, 0], out.weights[0]
