"""What a table of mechanisms says of each, kept with the class that it describes."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal


@dataclass(frozen=True)
class About:
    """A mechanism in the field's terms.

    ``equation`` is plain text, h_j a glimpse, s the query, a the weights. ``kind``: whether
    glimpses are mixed (soft) or one is chosen (hard). ``reach``: whether all glimpses may be
    looked at, or those near a position. ``looks_at``: what decides - what is there (content), where
    it is (location), both, or the mechanism's own memory besides (introspective).
    """

    equation: str
    source: str
    kind: Literal["soft", "hard"] = "soft"
    reach: Literal["global", "local"] = "global"
    looks_at: Literal["nothing", "content", "location", "content+location", "introspective"] = (
        "content"
    )
