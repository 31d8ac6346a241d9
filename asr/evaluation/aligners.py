"""The two alignments that errors are counted on, by name.

``levenshtein``: fewest errors; substitutions, deletions and insertions cost the same, as every
published word error rate of the last decades has it. rapidfuzz finds it, and jiwer passes on the
very same alignment.

``sclite``: what NIST's sclite does: substitutions cost 4, deletions and insertions 3, so that it
rather takes an insertion and a deletion than lines up words that differ. Its rate is never lower,
and seldom higher; counts here are those that sclite prints.

Both may have several best alignments; each takes the same one always. Where the two disagree on
the division into S, D and I neither is wrong, which is why a report names its aligner.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from importlib.metadata import version
from typing import Any, Literal, TypeAlias

import numpy as np
from rapidfuzz.distance import Levenshtein

Op: TypeAlias = Literal["S", "D", "I"]
_OPS: dict[str, Op] = {"replace": "S", "delete": "D", "insert": "I"}
_SUBSTITUTION, _GAP = 4, 3  # sclite's costs
_DIAGONAL, _INSERT, _DELETE = range(3)


#: An error, and the positions in reference and hypothesis it stands at: for an insertion that of
#: the reference unit it comes before, for a deletion that of the hypothesis unit it comes before.
Edit: TypeAlias = tuple[Op, int, int]


def levenshtein(reference: Sequence[str], hypothesis: Sequence[str]) -> list[Edit]:
    """The errors of an alignment with as few as can be, in order."""
    found: list[Any] = Levenshtein.editops(reference, hypothesis).as_list()
    return [(_OPS[tag], said, heard) for tag, said, heard in found]


def sclite(reference: Sequence[str], hypothesis: Sequence[str]) -> list[Edit]:
    """The errors of the alignment that NIST's sclite prints, in order.

    Of equally good ends it takes a hit or substitution first, then an insertion, then a deletion.
    """
    moves = _moves(reference, hypothesis)
    said, heard = len(reference), len(hypothesis)
    edits: list[Edit] = []
    while said or heard:
        move = moves[said][heard]
        said -= move != _INSERT
        heard -= move != _DELETE
        if move == _INSERT:
            edits.append(("I", said, heard))
        elif move == _DELETE:
            edits.append(("D", said, heard))
        elif reference[said] != hypothesis[heard]:
            edits.append(("S", said, heard))
    return edits[::-1]


def _moves(reference: Sequence[str], hypothesis: Sequence[str]) -> list[bytes]:
    """The last move of the best alignment of each pair of prefixes, a byte each.

    Costs are found a row at a time. Along a row the cost of insertions adds up, so that it is a
    running minimum once the ramp of insertions alone is taken off.
    """
    ids: dict[str, int] = {}
    heard = np.array([ids.setdefault(unit, len(ids)) for unit in hypothesis], dtype=np.int64)
    ramp = _GAP * np.arange(len(hypothesis) + 1)
    above = ramp
    moves = [bytes([_INSERT]) * (len(hypothesis) + 1)]
    for unit in reference:
        diagonal = above[:-1] + _SUBSTITUTION * (heard != ids.get(unit, -1))
        row = above + _GAP
        np.minimum(row[1:], diagonal, out=row[1:])
        row = np.minimum.accumulate(row - ramp) + ramp
        move = np.full(len(row), _DELETE, dtype=np.uint8)
        move[1:][row[:-1] + _GAP == row[1:]] = _INSERT
        move[1:][diagonal == row[1:]] = _DIAGONAL
        moves.append(move.tobytes())
        above = row
    return moves


ALIGNERS: dict[str, Callable[[Sequence[str], Sequence[str]], list[Edit]]] = {
    "levenshtein": levenshtein,
    "sclite": sclite,
}


def describe(name: str) -> dict[str, str]:
    """What a report says of its aligner. Raises ValueError for an unknown name."""
    if name == "levenshtein":
        library = f"rapidfuzz {version('rapidfuzz')}"
        return {"name": name, "costs": "S 1, D 1, I 1", "library": library}
    if name == "sclite":
        return {"name": name, "costs": f"S {_SUBSTITUTION}, D {_GAP}, I {_GAP}", "library": "asr"}
    raise ValueError(f"aligner must be one of {', '.join(ALIGNERS)}, not {name!r}")
