"""Spellers. A new one is a file here and an import line below."""

from asr.nn.decoders.base import Spelled, Speller, SpellerStep
from asr.nn.decoders.recurrent import Recurrent

__all__ = ["Recurrent", "Spelled", "Speller", "SpellerStep"]
