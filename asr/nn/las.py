"""The wiring: sound -> glimpses -> listener -> speller, with a CTC head beside it."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from typing import Any

import torch
from torch import Tensor, nn

from asr.errors import InputError
from asr.glimpses.base import Frontend
from asr.glimpses.timing import shift_of
from asr.nn.attention import Attention
from asr.nn.decoders import Speller
from asr.nn.encoders import Encoder
from asr.types import Encoded, Seconds


class LAS(nn.Module):
    """Listen, attend and spell (Chan et al. 2016) with joint CTC (Kim et al. 2017).

    Args:
        sample_rate: of the sound, Hz.
        vocabulary_size: V, ids 0 ``<blank>``, 1 ``<eos>``, 2 ``<unk>`` included.
        frontend: makes the front end from (sample_rate).
        encoder: makes the listener from (input_dim).
        attention: makes the mechanism from (encoder_dim, query_dim).
        speller: makes the speller from (vocabulary_size, attention, encoder_dim).
        ctc: whether there is a CTC head over the listener.
    """

    def __init__(
        self,
        sample_rate: int,
        vocabulary_size: int,
        *,
        frontend: Callable[[int], Frontend],
        encoder: Callable[[int], Encoder],
        attention: Callable[[int, int], Attention],
        speller: Callable[[int, Callable[[int, int], Attention], int], Speller],
        ctc: bool = True,
    ) -> None:
        super().__init__()
        if vocabulary_size < 3:
            raise ValueError(f"vocabulary_size={vocabulary_size}: <blank>, <eos>, <unk> need 3")
        self.sample_rate, self.vocabulary_size = sample_rate, vocabulary_size
        self.frontend = frontend(sample_rate)
        self.encoder = encoder(self.frontend.dim)
        self.speller = speller(vocabulary_size, attention, self.encoder.output_dim)
        self.ctc = nn.Linear(self.encoder.output_dim, vocabulary_size) if ctc else None

    @property
    def frame_shift(self) -> Seconds:
        """The length of one encoder frame in seconds."""
        return shift_of(self.frontend.hop, self.sample_rate, self.encoder.subsampling)

    def encode(
        self,
        waves: Tensor,
        lengths: Tensor,
        *,
        inspect: Collection[str] = (),
        augment: Callable[[Tensor, Tensor], Tensor] | None = None,
    ) -> Encoded:
        """waves (B,L), lengths (B,) samples -> states (B,S,C), S = ceil(ceil(L/hop)/subsampling).

        ``augment`` changes the glimpses (B,T,F), (B,) before the listener hears them.
        """
        frames, lengths = self.frontend(waves, lengths)
        if augment is not None:
            frames = augment(frames, lengths)
        return self.encoder(frames, lengths, inspect=inspect)

    def ctc_log_probs(self, encoded: Encoded) -> Tensor:
        """(B,S,V) float32 log-probabilities of the CTC head."""
        if self.ctc is None:
            raise ValueError("this model has no CTC head: train with ctc=true or decode without it")
        return torch.log_softmax(self.ctc(encoded.states).float(), -1)

    def spec(self) -> dict[str, Any]:
        """Everything needed to build the same model again, JSON-ready."""
        return {
            "sample_rate": self.sample_rate,
            "vocabulary_size": self.vocabulary_size,
            "frontend": self.frontend.spec(),
            "encoder": self.encoder.spec(),
            "attention": self.speller.attention.spec(),
            "speller": self.speller.spec(),
            "ctc": self.ctc is not None,
        }

    @classmethod
    def from_spec(cls, spec: Mapping[str, Any]) -> LAS:
        """Build what :meth:`spec` describes.

        Raises InputError where a key is missing or unknown, a name is not registered, or an
        argument is refused; nothing outside the registries is ever imported or called.
        """
        keys = {
            "sample_rate", "vocabulary_size", "frontend", "encoder", "attention", "speller", "ctc"
        }  # fmt: skip
        if set(spec) != keys:
            wrong = ", ".join(sorted(set(spec) ^ keys))
            raise InputError(f"model description: keys missing or unknown: {wrong}")

        def made(family: type[Any], key: str) -> Callable[..., Any]:
            return lambda *dimensions: family.build(spec[key], *dimensions)

        try:
            return cls(
                spec["sample_rate"],
                spec["vocabulary_size"],
                frontend=made(Frontend, "frontend"),
                encoder=made(Encoder, "encoder"),
                attention=made(Attention, "attention"),
                speller=lambda size, attention, dim: Speller.resolve(
                    spec["speller"].get("name", "")
                )(
                    size,
                    attention,
                    dim,
                    **{k: v for k, v in spec["speller"].items() if k != "name"},
                ),
                ctc=spec["ctc"],
            )
        except InputError:
            raise
        except (TypeError, ValueError, AttributeError) as error:
            raise InputError(f"model description: {error}") from None
