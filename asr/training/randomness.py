"""Random numbers that do not remember: the same (seed, batch) gives the same draws."""

from __future__ import annotations

import hashlib
import random

import numpy as np
import torch


def mixed(*parts: int) -> int:
    """63 bits from integers, so that neighbouring steps get unrelated seeds."""
    digest = hashlib.blake2b(repr(parts).encode(), digest_size=8).digest()
    return int.from_bytes(digest, "little") >> 1


def reseed(*parts: int) -> None:
    """Seed Python's, NumPy's and torch's (every device's) generators from integers.

    Done before each step, it makes the step a function of where the run is. Restoring saved
    generator states would do so only if nothing else drew in between - a validation, a new
    iterator over a loader, and each of them on every resume.
    """
    seed = mixed(*parts)
    random.seed(seed)
    np.random.seed(seed % 2**32)
    torch.manual_seed(seed)
