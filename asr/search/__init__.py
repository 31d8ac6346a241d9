"""From an encoded utterance to text: scorers, greedy search, batched beam search.

Nothing is imported before it is asked for, so that a command can check its options
(:class:`SearchOptions` needs no torch) before anything heavy is loaded.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from asr.search.beam_search import beam
    from asr.search.ctc import CTCPrefixScorer
    from asr.search.dispatch import search
    from asr.search.one_best import forced, greedy
    from asr.search.options import SearchOptions
    from asr.search.scorers import LengthBonus, Scorer, Scores, SpellerScorer, Weighted

_HOMES = {
    "CTCPrefixScorer": "ctc",
    "LengthBonus": "scorers",
    "Scorer": "scorers",
    "Scores": "scorers",
    "SearchOptions": "options",
    "SpellerScorer": "scorers",
    "Weighted": "scorers",
    "beam": "beam_search",
    "forced": "one_best",
    "greedy": "one_best",
    "search": "dispatch",
}
__all__ = [
    "CTCPrefixScorer",
    "LengthBonus",
    "Scorer",
    "Scores",
    "SearchOptions",
    "SpellerScorer",
    "Weighted",
    "beam",
    "forced",
    "greedy",
    "search",
]


def __getattr__(name: str) -> Any:
    if name not in _HOMES:
        raise AttributeError(f"module 'asr.search' has no attribute {name!r}")
    return getattr(import_module(f"asr.search.{_HOMES[name]}"), name)
