"""Self-attention of the listener: ``SelfAttention(position, mask)``."""

from asr.nn.encoders.selfattention.absolute import Absolute
from asr.nn.encoders.selfattention.base import Mask, Position, SelfAttention
from asr.nn.encoders.selfattention.masks import Banded, Causal, Full
from asr.nn.encoders.selfattention.relative import Relative
from asr.nn.encoders.selfattention.rotary import Rotary
from asr.nn.encoders.selfattention.shaw import RelativeShaw

__all__ = [
    "Absolute",
    "Banded",
    "Causal",
    "Full",
    "Mask",
    "Position",
    "Relative",
    "RelativeShaw",
    "Rotary",
    "SelfAttention",
]
