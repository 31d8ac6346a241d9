"""Reordering any state: tensors nested in NamedTuples, tuples, lists and mappings."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, TypeVar

from torch import Tensor

TreeT = TypeVar("TreeT")
SharedT = TypeVar("SharedT")


def take(tree: TreeT, index: Tensor) -> TreeT:
    """``index_select`` on the first axis of every tensor in ``tree``; other leaves stay."""
    made: Any = tree
    if isinstance(tree, Tensor):
        made = tree.index_select(0, index)
    elif isinstance(tree, tuple):
        leaves = [take(leaf, index) for leaf in tree]
        made = type(tree)(*leaves) if hasattr(tree, "_fields") else tuple(leaves)
    elif isinstance(tree, list):
        made = [take(leaf, index) for leaf in tree]
    elif isinstance(tree, Mapping):
        made = {name: take(leaf, index) for name, leaf in tree.items()}
    return made


def survive(
    shared: SharedT, state: TreeT, rows: Tensor, *, utterances: int, beam: int
) -> tuple[SharedT, TreeT]:
    """The one way out of a search: what is per utterance and what is per row, shortened together.

    ``shared`` is B-first, ``state`` N-first with N = B x beam, utterance-major; ``rows`` (N',) are
    the rows that go on, ``beam`` of them for each utterance that goes on.
    """
    if rows.shape[0] != utterances * beam:
        shared = take(shared, rows[::beam] // beam)
    return shared, take(state, rows)
