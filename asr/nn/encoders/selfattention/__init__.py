"""Self-attention of the listener: ``SelfAttention(position, mask)``."""

from asr.nn.encoders.selfattention.base import Mask, Position, SelfAttention
from asr.nn.encoders.selfattention.masks import Full
from asr.nn.encoders.selfattention.relative import Relative

__all__ = ["Full", "Mask", "Position", "Relative", "SelfAttention"]
