"""Sound to glimpses: front ends, SpecAugment, and all frame/second arithmetic.

A new front end is a file here and an import line below.
"""

from asr.glimpses.augment import SpecAugment
from asr.glimpses.base import Frontend
from asr.glimpses.filterbank import Filterbank
from asr.glimpses.logmel import LogMel

__all__ = ["Filterbank", "Frontend", "LogMel", "SpecAugment"]
