"""Listeners. A new one is a file here and an import line below."""

from asr.nn.encoders.base import Encoder
from asr.nn.encoders.conformer import Conformer
from asr.nn.encoders.pyramidal import Pyramidal

__all__ = ["Conformer", "Encoder", "Pyramidal"]
