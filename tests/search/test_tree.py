"""Reordering nested states."""

from __future__ import annotations

from typing import NamedTuple

import torch

from asr.search.tree import survive, take


class Inner(NamedTuple):
    rows: torch.Tensor
    nothing: None = None


class Outer(NamedTuple):
    inner: Inner
    many: tuple
    named: dict
    size: int = 3


def test_every_tensor_at_any_depth_is_reordered_and_the_rest_stays():
    rows = torch.arange(6.0)
    tree = Outer(Inner(rows), (rows.view(6, 1), [rows]), {"a": rows})
    got = take(tree, torch.tensor([5, 0, 0]))
    assert type(got) is Outer and type(got.inner) is Inner and got.size == 3
    for leaf in (got.inner.rows, got.many[0].flatten(), got.many[1][0], got.named["a"]):
        assert leaf.tolist() == [5.0, 0.0, 0.0]
    assert got.inner.nothing is None


def test_memory_shrinks_with_the_rows_and_only_then():
    memory, state = torch.arange(3), torch.arange(6)
    kept, rows = survive(memory, state, torch.tensor([1, 0, 5, 5]), utterances=3, beam=2)
    assert kept.tolist() == [0, 2] and rows.tolist() == [1, 0, 5, 5]
    kept, _ = survive(memory, state, torch.tensor([1, 0, 2, 3, 5, 5]), utterances=3, beam=2)
    assert kept is memory
