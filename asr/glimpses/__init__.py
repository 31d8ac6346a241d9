"""Sound to glimpses: log-mel front end, SpecAugment, and all frame/second arithmetic."""

from asr.glimpses.augment import SpecAugment
from asr.glimpses.base import Frontend
from asr.glimpses.logmel import LogMel

__all__ = ["Frontend", "LogMel", "SpecAugment"]
