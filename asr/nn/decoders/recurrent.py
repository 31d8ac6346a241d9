"""The recurrent speller of listen, attend and spell."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import torch
from torch import Tensor, nn

from asr.nn.attention.base import Attended, Attention, Memory, Mode, stack_attended
from asr.nn.decoders.base import Spelled, Speller, SpellerStep
from asr.nn.decoders.deferred import deferred
from asr.types import Encoded


class RecurrentState(NamedTuple):
    """hidden, cell (N,layers,H); context (N,context_dim); the attention's own state."""

    hidden: Tensor
    cell: Tensor
    context: Tensor
    attention: Any


class Recurrent(Speller):
    """s_i = LSTM(s_{i-1}, y_{i-1}, c_{i-1}), c_i = Attend(s_i, h), y_i ~ MLP(s_i, c_i).

    Chan et al. 2016, eq. 6-8.

    Args:
        vocabulary_size: V.
        attention: makes the mechanism from (encoder_dim, query_dim).
        encoder_dim: C.
        dim: H.
        layers: LSTM layers; the first one sees the token and the context.
        embedding: width of a token's vector.
        dropout: on embeddings and before the output layer.
    """

    name = "recurrent"

    def __init__(
        self,
        vocabulary_size: int,
        attention: Callable[[int, int], Attention],
        encoder_dim: int,
        *,
        dim: int = 256,
        layers: int = 1,
        embedding: int = 64,
        dropout: float = 0.1,
    ) -> None:
        super().__init__()
        for key, value in (("dim", dim), ("layers", layers), ("embedding", embedding)):
            if value < 1:
                raise ValueError(f"{key}={value}: at least 1 is needed")
        if not 0 <= dropout < 1:
            raise ValueError(f"dropout={dropout}: needs 0 <= dropout < 1")
        self.dim, self.layers = dim, layers
        self.attention = attention(encoder_dim, dim)
        context = self.attention.context_dim
        self.embed = nn.Embedding(vocabulary_size, embedding)
        # The first cell in two parts: what the token adds is known for all positions at once
        # under teacher forcing, what the context and the past add only step by step.
        self.from_token = nn.Linear(embedding, 4 * dim)
        self.from_past = nn.Linear(context + dim, 4 * dim, bias=False)
        self.upper = nn.ModuleList(nn.LSTMCell(dim, dim) for _ in range(layers - 1))
        self.readout = nn.Linear(dim + context, dim)
        self.output = nn.Linear(dim, vocabulary_size)
        self.dropout = nn.Dropout(dropout)
        with torch.no_grad():
            # Remembering first (Jozefowicz et al. 2015, sect. 2.2): the forget gate starts open.
            self.from_token.bias[dim : 2 * dim] += 1.0

    def start(self, encoded: Encoded, rows: int) -> tuple[Memory, RecurrentState]:
        memory = self.attention.prepare(encoded)
        nothing = encoded.states.new_zeros(rows, self.layers, self.dim)
        context = encoded.states.new_zeros(rows, self.attention.context_dim)
        state = self.attention.initial_state(memory, rows)
        return memory, RecurrentState(nothing, nothing, context, state)

    def step(self, previous: Tensor, memory: Memory, state: RecurrentState) -> SpellerStep:
        token = self.from_token(self.dropout(self.embed(previous)))
        attended, state = self._advance(token, memory, state, "decode")
        logits = self._read(state.hidden[:, -1], attended.context)
        return SpellerStep(logits, attended.weights, state, attended.terms)

    def forward(
        self, encoded: Encoded, targets: Tensor, lengths: Tensor, *, sampling: float = 0.0
    ) -> Spelled:
        # Teacher forcing while evaluating is what transcribing would do: nothing drawn, no noise.
        # Here alone that choice becomes a mode, which is all that a mechanism knows of it.
        mode: Mode = "train" if self.training else "decode"
        memory, state = self.start(encoded, targets.shape[0])
        tokens = self.from_token(self.dropout(self.embed(targets)))
        past: list[Tensor] | None = None  # what each step adds to ``tokens`` is made from
        if self.training and not sampling:
            past = []
            tokens = deferred(tokens, self.from_past.weight, past)
        steps: list[Attended] = []
        queries: list[Tensor] = []
        for token in tokens.unbind(1):
            if sampling and steps:
                token = self._sample(token, queries[-1], steps[-1].context, sampling)
            attended, state = self._advance(token, memory, state, mode, past)
            steps.append(attended)
            queries.append(state.hidden[:, -1])
        if not steps:
            raise ValueError(f"targets of shape {tuple(targets.shape)}: need <sos> at least")
        attended = stack_attended(steps)
        logits = self._read(torch.stack(queries, 1), attended.context)
        return Spelled(logits, attended.weights, attended.terms)

    def _advance(
        self,
        token: Tensor,
        memory: Memory,
        state: RecurrentState,
        mode: Mode,
        seen: list[Tensor] | None = None,
    ) -> tuple[Attended, RecurrentState]:
        """One token further; where ``seen`` is given, ``from_past`` has its gradient deferred."""
        past = torch.cat([state.context, state.hidden[:, 0]], -1)
        weight = self.from_past.weight
        if seen is not None:
            weight = weight.detach()
            seen.append(past.detach())
        gates = token + nn.functional.linear(past, weight)
        take, forget, new, give = gates.chunk(4, -1)
        cell = torch.sigmoid(forget) * state.cell[:, 0] + torch.sigmoid(take) * torch.tanh(new)
        hidden = torch.sigmoid(give) * torch.tanh(cell)
        hiddens, cells = [hidden], [cell]  # of all layers
        for layer, module in enumerate(self.upper, start=1):
            hidden, cell = module(
                self.dropout(hidden), (state.hidden[:, layer], state.cell[:, layer])
            )
            hiddens.append(hidden)
            cells.append(cell)
        attended, attention = self.attention.step(hidden, memory, state.attention, mode=mode)
        return attended, RecurrentState(
            torch.stack(hiddens, 1), torch.stack(cells, 1), attended.context, attention
        )

    def _read(self, hidden: Tensor, context: Tensor) -> Tensor:
        mixed = torch.tanh(self.readout(torch.cat([hidden, context], -1)))
        return self.output(self.dropout(mixed))

    def _sample(self, token: Tensor, hidden: Tensor, context: Tensor, sampling: float) -> Tensor:
        """Each row's token replaced, with probability ``sampling``, by the model's own choice."""
        with torch.no_grad():
            own = self._read(hidden, context).argmax(-1)
        replaced = torch.rand(len(token), 1, device=token.device) < sampling
        return torch.where(replaced, self.from_token(self.dropout(self.embed(own))), token)
