"""Any text can be drawn, in whatever script, and matplotlib has nothing to warn of."""

from __future__ import annotations

import warnings
from collections.abc import Iterator
from pathlib import Path

import matplotlib as mpl
import pytest
from matplotlib import font_manager
from matplotlib.ft2font import FT2Font

from asr.inspection import figures, fonts
from asr.inspection.fonts import MONO, REPLACEMENT, SANS, drawable
from asr.inspection.spectrogram import spectrogram_of
from asr.types import Word
from tests.inspection.planted import record, rows, wave

#: Chinese, an emoji, private use, a control character, half a character; Latin and Greek besides.
ANY = ("你好", "🦜", "\ue123", "a\x00b\n", "\ud800", "naïve λόγος")


@pytest.fixture
def only_matplotlibs_fonts(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """As on a machine without any font of its own."""
    own = Path(mpl.get_data_path())
    kept = [f for f in font_manager.fontManager.ttflist if own in Path(f.fname).parents]
    assert kept
    monkeypatch.setattr(font_manager.fontManager, "ttflist", kept)
    fonts._others.cache_clear()
    yield
    fonts._others.cache_clear()


def test_what_the_font_has_is_left_alone() -> None:
    for family in (SANS, MONO):
        assert drawable(["naïve λόγος ␣▁<eos>", "$"], family) == (
            ["naïve λόγος ␣▁<eos>", "$"],
            [family],
            "normal",
        )
        assert REPLACEMENT in fonts._characters(family, "normal")
        assert REPLACEMENT in fonts._characters(family, "bold")
    assert drawable([]) == ([], [SANS], "normal")


def test_what_no_font_has_is_replaced(only_matplotlibs_fonts: None) -> None:
    texts, families, _ = drawable(ANY)
    assert texts == [
        REPLACEMENT * 2, REPLACEMENT, REPLACEMENT, f"a{REPLACEMENT}b{REPLACEMENT}", REPLACEMENT,
        "naïve λόγος",
    ]  # fmt: skip
    assert families == [SANS]


def test_another_font_helps_where_one_is_there(only_matplotlibs_fonts: None) -> None:
    combining = "\u20e4"  # an enclosing triangle: STIX has it, DejaVu Sans has not
    assert ord(combining) not in FT2Font(font_manager.findfont(SANS)).get_charmap()
    assert drawable([f"a{combining}"]) == ([f"a{combining}"], [SANS, "STIXGeneral"], "normal")


def test_bold_gives_way_where_only_a_plain_font_has_it(only_matplotlibs_fonts: None) -> None:
    bold = (fonts._characters(name, "bold") for name in (SANS, *fonts._others("bold")))
    plain = min(fonts._characters(SANS, "normal").difference(*bold))
    assert drawable([plain], weight="bold") == ([plain], [SANS], "normal")
    assert drawable(["\ue123"], weight="bold") == ([REPLACEMENT], [SANS], "bold")


@pytest.mark.parametrize("form", ["png", "svg"])
def test_a_figure_of_any_text_warns_of_nothing(
    tmp_path: Path, form: str, caplog: pytest.LogCaptureFixture
) -> None:
    spans = [(4 * u, 4 * u + 4) for u in range(len(ANY) + 1)]
    example = record(rows(*spans, frames=28), (*ANY, "\u20e4"), id="".join(ANY))
    words = [Word(text, 0.2 * u, 0.2 * u + 0.1, 0.5) for u, text in enumerate(ANY)]
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        figure = figures.draw(example, spectrogram_of(wave(1.12)), words=words)
        figures.save(figure, tmp_path / f"x.{form}")
        figures.save(figures.draw_small(example), tmp_path / f"y.{form}")
    assert (tmp_path / f"x.{form}").stat().st_size > 10_000 and not caplog.records


def test_a_broken_font_is_passed_over(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "bad.ttf").write_bytes(b"no font")
    monkeypatch.setattr(fonts, "findfont", lambda properties: str(tmp_path / "bad.ttf"))
    assert fonts._characters("never asked for before", "normal") == frozenset()
