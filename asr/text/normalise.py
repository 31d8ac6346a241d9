"""Text normalisation for training and scoring, by name, with the version that did it.

``none`` leaves the text alone; ``basic`` is defined here and works for any language with spaces
between words; ``english`` is OpenAI's ``EnglishTextNormalizer`` as whisper-normalizer packages it
(spelling variants, contractions, numbers, fillers), whose version decides the outcome and is
therefore reported with it.
"""

from __future__ import annotations

import re
import unicodedata
from functools import cache
from typing import Any

NORMALIZERS = ("none", "basic", "english")

_BASIC_VERSION = "1"  # counts up whenever `basic` would change any text
_LIBRARY = "whisper-normalizer"

# What keyboards and word processors put where an apostrophe is meant. Mapped before NFKC, which
# would turn a spacing acute accent into a space and a combining mark.
_APOSTROPHES = str.maketrans(dict.fromkeys("\u2018\u2019\u201b\u02bc\u00b4\u0060\u2032\uff07", "'"))
_JOINERS = "\u200c\u200d"  # format characters, but they spell words in Persian and Indic scripts


class _Spacing(dict[int, Any]):
    """Translation table, filled as characters are met: punctuation to a space, and so on."""

    def __missing__(self, code: int) -> int | str | None:
        character = chr(code)
        category = unicodedata.category(character)
        result: int | str | None = code
        if character == "'" or character in _JOINERS:
            pass
        elif category[0] in "PS" or category == "Cc":
            result = " "
        elif category == "Cf":
            result = None
        self[code] = result
        return result


_SPACING = _Spacing()


def normalise(text: str, how: str = "basic") -> str:
    """``text`` as ``how`` writes it.

    ``none``: unchanged. ``basic``: Unicode NFKC, lower case, punctuation and symbols replaced by
    spaces except apostrophes inside a word (typographic ones become ``'``), whitespace collapsed.
    ``english``: whisper's English normaliser. All three are pure functions of the text; ``none``
    and ``basic`` are idempotent. Raises ValueError for another name.
    """
    if how == "none":
        return text
    if how == "basic":
        return _basic(text)
    if how == "english":
        return str(_english()(text)).strip()
    raise ValueError(_unknown(how))


def describe(how: str) -> dict[str, str]:
    """``name`` and ``version`` of a normaliser, for reports; ``library`` where it is one.

    Raises ValueError for an unknown name.
    """
    if how == "none":
        return {"name": "none", "version": ""}
    if how == "basic":
        return {"name": "basic", "version": _BASIC_VERSION}
    if how == "english":
        from importlib.metadata import version

        return {"name": "english", "version": version(_LIBRARY), "library": _LIBRARY}
    raise ValueError(_unknown(how))


def _basic(text: str) -> str:
    text = unicodedata.normalize("NFKC", text.translate(_APOSTROPHES)).lower()
    # Lower-casing can decompose (a capital I with a dot), so compose once more.
    text = unicodedata.normalize("NFKC", text).translate(_SPACING)
    if "'" not in text:  # most texts, and the rest is slow
        return " ".join(text.split())
    text = re.sub("'{2,}", " ", text)  # doubled, they are quotation marks
    # An apostrophe at either end of a word quotes; what is left stands inside one.
    return " ".join(word for part in text.split() if (word := part.strip("'")))


@cache
def _english() -> Any:
    from whisper_normalizer.english import EnglishTextNormalizer

    return EnglishTextNormalizer()


def _unknown(how: str) -> str:
    return f"how must be one of {', '.join(NORMALIZERS)}, not {how!r}"
