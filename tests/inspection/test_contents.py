"""A report tells what it holds, and only a report of ours does."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from asr.inspection import page
from asr.inspection.contents import contents, continues, piece_name
from tests.inspection.test_page import EVIL, entry


@pytest.fixture
def pages(tmp_path: Path) -> list[Path]:
    names = (("a/ü & b", 1), ("a/ü & b", 2), (EVIL, 0))
    entries = [replace(entry(), name=name, piece=piece) for name, piece in names]
    return page.write(entries, tmp_path / "my report#1.html", limit=1000)


def test_pages_and_pieces(pages: list[Path]) -> None:
    found = contents(pages[0])
    assert found == (tuple(pages), {"a/ü & b": 2, EVIL: 0}) and found.whole
    pages[1].unlink()
    found = contents(pages[0])
    assert found is not None and found.pages == tuple(pages[:2]) and not found.whole


def test_which_pages_go_on_from_which(pages: list[Path], tmp_path: Path) -> None:
    first, second, third = pages
    assert continues(second, first) and continues(third, first)
    assert not continues(first, first) and not continues(third, tmp_path / "other.html")
    second.unlink()
    first.unlink()
    assert continues(third, first)


@pytest.mark.parametrize(
    "text", ["", "mine", '<a href="x.html" rel="next">', '<a href="%2F" rel="next">']
)
def test_what_is_no_report(tmp_path: Path, text: str) -> None:
    (tmp_path / "x.html").write_text(text)
    assert contents(tmp_path / "x.html") is None
    assert not continues(tmp_path / "x.html", tmp_path / "y.html")
    assert contents(tmp_path / "gone.html") is None


def test_links_are_not_followed_in_circles(pages: list[Path]) -> None:
    first, second, _ = pages
    text = second.read_text().replace("report%231-3.html", "report%231.html")
    second.write_text(text)
    found = contents(first)
    assert found is not None and found.pages == (first, second)


def test_names_of_pieces() -> None:
    assert [piece_name("a/b", piece) for piece in range(4)] == ["a/b", "a/b", "a/b-2", "a/b-3"]
