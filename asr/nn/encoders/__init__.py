"""Listeners. A new one is a file here and an import line below."""

from asr.nn.encoders.base import Encoder
from asr.nn.encoders.conformer import Conformer

__all__ = ["Conformer", "Encoder"]
