"""The listener's matrices as they are picked, shrunk, drawn and embedded."""

from __future__ import annotations

import base64
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import torch

from asr.inspection import figures, listener, page, records
from asr.inspection.page import Entry
from asr.types import AttentionRecord
from tests.html_page import Parsed
from tests.inspection.planted import SHIFT, record, rows, transcript, wave


def made(frames: int = 25, heads: int = 3, layers: int = 2, **fields: object) -> AttentionRecord:
    torch.manual_seed(0)
    matrices = {
        f"block{i}": torch.randn(heads, frames, frames).mul(3).softmax(-1) for i in range(layers)
    }
    planted = record(rows((0, 5), (5, 25), frames=frames), "ab", **fields)
    return replace(planted, listener=matrices)


def test_heads_are_picked() -> None:
    whole = made()
    (picked,) = listener.pick(transcript(whole), (2, 0)).records
    for name, matrix in whole.listener.items():
        assert picked.listener[name].equal(matrix[[2, 0]])
    assert picked.weights is whole.weights
    one = listener.pick(transcript(whole), (1,))
    assert one.record is one.records[0]
    with pytest.raises(IndexError):
        listener.pick(transcript(whole), (3,))


def test_large_matrices_are_shown_by_their_strongest_weights() -> None:
    matrix = torch.zeros(2, 10, 10)
    matrix[0, 9, 1], matrix[1, 4, 7] = 0.5, 0.25
    same, frames = listener.pooled(matrix, 10)
    assert same is matrix and frames == 1
    small, frames = listener.pooled(matrix, 4)
    assert small.shape == (2, 4, 4) and frames == 3
    assert small.nonzero().tolist() == [[0, 3, 0], [1, 1, 2]]
    assert small[0, 3, 0] == 0.5 and small[1, 1, 2] == 0.25
    assert listener.pooled(torch.zeros(2, 0, 0))[0].shape == (2, 0, 0)


def test_a_panel_for_every_layer_and_head(tmp_path: Path) -> None:
    figure = listener.draw(made(start=3.0), (0, 2, 5))
    assert [axes.get_title().split(" (")[0] for axes in figure.axes] == [
        f"block{layer}, head {head}" for layer in (0, 1) for head in (0, 2, 5)
    ]
    for axes in figure.axes:
        (image,) = axes.images
        assert image.get_extent() == pytest.approx((3.0, 4.0, 4.0, 3.0))  # the first row on top
    figures.save(figure, tmp_path / "x.png")
    figures.save(listener.draw(made(frames=0)), tmp_path / "y.svg")
    with pytest.raises(ValueError, match="inspect="):
        listener.draw(made(layers=0))


def test_what_is_saved_tells_its_heads(tmp_path: Path) -> None:
    records.save(made(), tmp_path / "x.npz", heads=(0, 2, 5))
    with np.load(tmp_path / "x.npz") as file:
        assert file["listener/block1"].shape == (3, 25, 25)
        assert file["listener_heads"].tolist() == [0, 2, 5]
    records.save(made(layers=0), tmp_path / "x.npz", heads=(0, 2, 5))
    with np.load(tmp_path / "x.npz") as file:
        assert "listener_heads" not in file


def test_the_page_has_them(tmp_path: Path) -> None:
    whole = made()
    entry = Entry(transcript(whole), wave(1.0), heads=(0, 2, 5))
    parsed = Parsed(page.render([entry]))
    (data,) = parsed.data()
    names = [f"block{layer}, head {head}" for layer in (0, 1) for head in (0, 2, 5)]
    assert [shown["name"] for shown in data["listener"]] == names and data["cell"] == SHIFT
    matrices = torch.cat(list(whole.listener.values()))
    for shown, matrix in zip(data["listener"], matrices, strict=True):
        packed = np.frombuffer(base64.b64decode(shown["weights"]), np.uint8)
        found = shown["most"] * (packed.reshape(25, 25) / 255.0) ** 2
        np.testing.assert_allclose(found, matrix, atol=0.006)
    assert any("what each listened to" in text for tag, text in parsed.text if tag == "p")
    bare = Parsed(page.render([Entry(transcript(record(whole.weights)), wave(1.0))]))
    assert not bare.all("details")[1:] and "listener" not in bare.data()[0]


def test_a_long_utterance_stays_small() -> None:
    long = made(frames=900, heads=4, layers=2, duration=36.0)
    html = page.render([Entry(transcript(long), wave(36.0))])
    (data,) = Parsed(html).data()
    assert data["listener"][0]["size"] == 225 and data["cell"] == pytest.approx(4 * SHIFT)
    assert "strongest of 4 × 4 frames" in html and len(html) < 5_000_000
