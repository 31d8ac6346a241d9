"""Which fonts can draw a text: a token may be in any script, and no one font has them all."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache
from typing import NamedTuple

from matplotlib.font_manager import FontProperties, findfont, fontManager
from matplotlib.ft2font import FT2Font

SANS, MONO = "DejaVu Sans", "DejaVu Sans Mono"  # come with matplotlib
#: What no font here can draw. Both fonts have it.
REPLACEMENT = "\N{REPLACEMENT CHARACTER}"
#: Names of fonts of many scripts, looked into first.
_WIDE = ("CJK", "Noto Sans", "Unicode")
#: Boxes that only name a character's block, private characters, and fonts of other encodings.
_UNFIT = ("Last Resort", "STIXNonUnicode", "STIXSize", "cm")
_WEIGHTS = {"normal": (400, "normal", "regular"), "bold": (700, "bold")}


class Drawable(NamedTuple):
    """Texts as they can be drawn, and the font families and the weight that it takes."""

    texts: list[str]
    family: list[str]
    weight: str


def drawable(texts: Sequence[str], family: str = SANS, weight: str = "normal") -> Drawable:
    """Texts in ``family``, and in other fonts where it lacks a character.

    Where no font has a character, and for control characters, it is replaced by
    :data:`REPLACEMENT`: matplotlib would warn of each. Bold becomes normal where that helps.
    """
    families = [family]
    missing = set().union(*texts) - _characters(family, weight)
    for other in _others(weight) if missing else ():
        if found := missing & _characters(other, weight):
            families.append(other)
            missing -= found
        if not missing:
            break
    if missing and weight != "normal":
        plain = drawable(texts, family)
        if missing & set().union(*plain.texts):
            return plain
    table = dict.fromkeys(map(ord, missing), REPLACEMENT)
    return Drawable([text.translate(table) for text in texts], families, weight)


@cache
def _characters(family: str, weight: str) -> frozenset[str]:
    """What the font can draw that matplotlib takes for a family."""
    try:
        font = FT2Font(findfont(FontProperties(family=[family], weight=weight)))
    except (RuntimeError, OSError):  # not a font after all, or gone since matplotlib looked
        return frozenset()
    return frozenset(chr(code) for code in font.get_charmap() if code >= 32)


@cache
def _others(weight: str) -> tuple[str, ...]:
    # Of the very weight: matplotlib says on standard error when it has to take another.
    found = {
        font.name
        for font in fontManager.ttflist
        if font.style == "normal" and font.weight in _WEIGHTS[weight]
    }
    fit = (name for name in found if not name.startswith(_UNFIT))
    return tuple(sorted(fit, key=lambda name: (not any(w in name for w in _WIDE), name)))
