"""Which glimpses may see which."""

from __future__ import annotations

from asr.nn.about import About
from asr.nn.encoders.selfattention.base import Mask


class Full(Mask):
    """Every glimpse sees every other: global attention (Luong et al. 2015, sect. 3.1)."""

    name = "full"
    about = About("every i sees every j", "Luong et al. 2015, sect. 3.1", looks_at="location")


class Causal(Mask):
    """No glimpse sees a later one (Vaswani et al. 2017, sect. 3.2.3)."""

    name = "causal"
    about = About("i sees j <= i", "Vaswani et al. 2017, sect. 3.2.3", looks_at="location")
    after = 0


class Banded(Mask):
    """Each glimpse sees a fixed number on each side (local: Luong et al. 2015, sect. 3.2).

    Time and memory grow linearly with S.

    Args:
        before, after: glimpses seen on either side, besides its own. ``after=0`` is causal too.
    """

    name = "banded"
    about = About(
        "i sees j in [i - before, i + after]",
        "Luong et al. 2015, sect. 3.2",
        reach="local",
        looks_at="location",
    )

    def __init__(self, *, before: int = 32, after: int = 32) -> None:
        super().__init__()
        for key, value in (("before", before), ("after", after)):
            if value < 0:
                raise ValueError(f"{key}={value}: at least 0 is needed")
        self.before, self.after = before, after
