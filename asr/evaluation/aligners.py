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
    costs = _costs(reference, hypothesis)
    said, heard = len(reference), len(hypothesis)
    edits: list[Edit] = []
    while said or heard:
        here = costs[said][heard]
        if said and heard:
            wrong = reference[said - 1] != hypothesis[heard - 1]
            if costs[said - 1][heard - 1] + _SUBSTITUTION * wrong == here:
                said, heard = said - 1, heard - 1
                if wrong:
                    edits.append(("S", said, heard))
                continue
        if heard and costs[said][heard - 1] + _GAP == here:
            heard -= 1
            edits.append(("I", said, heard))
        else:
            said -= 1
            edits.append(("D", said, heard))
    return edits[::-1]


def _costs(reference: Sequence[str], hypothesis: Sequence[str]) -> list[list[int]]:
    """Least cost of each pair of prefixes, a row at a time.

    Along a row the cost of insertions adds up, so that it is a running minimum once the ramp
    of insertions alone is taken off.
    """
    ids: dict[str, int] = {}
    heard = np.array([ids.setdefault(unit, len(ids)) for unit in hypothesis], dtype=np.int64)
    ramp = _GAP * np.arange(len(hypothesis) + 1)
    rows = np.empty((len(reference) + 1, len(hypothesis) + 1), dtype=np.int64)
    rows[0] = ramp
    for place, unit in enumerate(reference):
        above, row = rows[place], rows[place + 1]
        np.add(above, _GAP, out=row)
        wrong = heard != ids.get(unit, -1)
        np.minimum(row[1:], above[:-1] + _SUBSTITUTION * wrong, out=row[1:])
        row -= ramp
        np.minimum.accumulate(row, out=row)
        row += ramp
    return rows.tolist()


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
