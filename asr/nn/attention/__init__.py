"""Speller attention. A new mechanism is a file here and an import line below."""

from asr.nn.attention.additive import Additive
from asr.nn.attention.base import Attended, Attention, Memory, Mode
from asr.nn.attention.location_aware import LocationAware

__all__ = ["Additive", "Attended", "Attention", "LocationAware", "Memory", "Mode"]
