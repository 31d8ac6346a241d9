"""Speller attention. A new mechanism is a file here and an import line below."""

from asr.nn.attention.additive import Additive
from asr.nn.attention.base import Attended, Attention, Memory, Mode
from asr.nn.attention.content import Cosine, Dot, General, ScaledDot
from asr.nn.attention.coverage import Coverage
from asr.nn.attention.hard import Hard
from asr.nn.attention.introspective import Introspective
from asr.nn.attention.local import LocalM, LocalP
from asr.nn.attention.location_aware import LocationAware
from asr.nn.attention.location_based import LocationBased
from asr.nn.attention.monotonic import MoChunk, Monotonic
from asr.nn.attention.multi_head import MultiHead, MultiHeadLocation
from asr.nn.attention.none import NoAttention

__all__ = [
    "Additive",
    "Attended",
    "Attention",
    "Cosine",
    "Coverage",
    "Dot",
    "General",
    "Hard",
    "Introspective",
    "LocalM",
    "LocalP",
    "LocationAware",
    "LocationBased",
    "Memory",
    "MoChunk",
    "Mode",
    "Monotonic",
    "MultiHead",
    "MultiHeadLocation",
    "NoAttention",
    "ScaledDot",
]
